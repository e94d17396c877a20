"""Linear algebra by what must hold of its results: products of factors, equations solved, derivatives by differences."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
SIZES = [1, 3, 40, 70]  # below and above the sizes at which factorisations go by blocks
LinAlgError = torch.linalg.LinAlgError


def tolerance(dtype: torch.dtype) -> float:
    return 3e-4 if dtype in (torch.float32, torch.complex64) else 1e-11


def near(ours: Tensor, wanted: Tensor, factor: float = 1.0) -> None:
    assert ours.shape == wanted.shape
    if ours.numel():
        error = (ours - wanted).abs().max() / (wanted.abs().max() + 1)
        assert error <= factor * tolerance(ours.dtype), float(error)


def random(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(sum(shape)))


def positive(n: int, dtype: torch.dtype = torch.float64) -> Tensor:
    a = random(2, n, n, dtype=dtype)
    return a @ a.mH + torch.eye(n, dtype=dtype) * 0.1


def eye(like: Tensor) -> Tensor:
    return torch.eye(like.shape[-1], dtype=like.dtype).expand_as(like)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_factors_of_square_matrices(n: int, dtype: torch.dtype) -> None:
    a, s, b = random(2, n, n, dtype=dtype), positive(n, dtype), random(2, n, 3, dtype=dtype)
    low, up = torch.linalg.cholesky(s), torch.linalg.cholesky(s, upper=True)
    near(low @ low.mH, s)
    near(up.mH @ up, s)
    near(s @ torch.cholesky_solve(b, low), b, 100)
    near(s @ torch.cholesky_inverse(up, upper=True), eye(s), 100)
    near(a @ torch.linalg.solve(a, b), b, 100)
    near(torch.linalg.solve(a, b.mT, left=False) @ a, b.mT, 100)
    near(a @ torch.linalg.inv(a), eye(a), 100)
    values, vectors = torch.linalg.eigh(s)
    assert bool((values.diff() >= 0).all())
    near(vectors @ torch.diag_embed(values.to(dtype)) @ vectors.mH, s, 3)
    near(torch.linalg.eigvalsh(s.triu(), UPLO="U"), values, 3)
    values, vectors = torch.linalg.eig(a)
    near(a.to(vectors.dtype) @ vectors, vectors * values.unsqueeze(-2), 3)
    near(torch.linalg.vector_norm(vectors, dim=-2), torch.ones_like(values.real))
    unit = a / n**0.5  # whose determinant no float overflows
    sign, log = torch.linalg.slogdet(unit)
    near(sign * log.exp(), torch.linalg.det(unit), 100)
    near(torch.linalg.det(unit @ unit), torch.linalg.det(unit) ** 2, 100)
    half = torch.linalg.matrix_exp(a / n)
    near(half @ half, torch.linalg.matrix_exp(2 * a / n), 3)
    for hermitian in (False, True):
        h = a + (a.mH if hermitian else a.mT)
        ld, pivots = torch.linalg.ldl_factor(h, hermitian=hermitian)
        near(h @ torch.linalg.ldl_solve(ld, pivots, b, hermitian=hermitian), b, 100)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 5), (40, 40), (70, 33), (33, 70), (7, 2), (90, 3), (2, 7), (1, 1)])
def test_factors_of_rectangles(shape: tuple[int, int], dtype: torch.dtype) -> None:
    m, n = shape
    k = min(m, n)
    a = random(2, m, n, dtype=dtype)
    p, low, up = torch.linalg.lu(a)
    near(p @ low @ up, a)
    assert float(low.abs().max()) <= (1 if not dtype.is_complex else 2**0.5) + 1e-6
    near(torch.stack(torch.lu_unpack(*torch.linalg.lu_factor(a))[1].unbind()), low)
    for mode in ("reduced", "complete"):
        q, r = torch.linalg.qr(a, mode=mode)
        near(q @ r, a)
        near(q.mH @ q, eye(q.mH @ q))
        assert not r.tril(-1).any()
    q, _ = torch.linalg.qr(a, mode="complete")
    v, tau = torch.geqrf(a)
    near(torch.ormqr(v, tau, a, transpose=True), q.mH @ a)
    near(torch.ormqr(v, tau, a.mH.contiguous(), left=False), a.mH @ q)
    if m >= n:
        near(torch.linalg.householder_product(v, tau), q[..., :n])
    for full in (False, True):
        u, s, vh = torch.linalg.svd(a, full_matrices=full)
        assert bool((s.diff() <= 0).all()) and bool((s >= 0).all())
        near((u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], a)
        near(u.mH @ u, eye(u.mH @ u))
        near(vh @ vh.mH, eye(vh @ vh.mH))
        near(torch.linalg.svdvals(a), s)
    b = random(2, m, 3, dtype=dtype)
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        x = torch.linalg.lstsq(a, b, driver=driver).solution
        near(a.mH @ (a @ x), a.mH @ b, 100)
    pinv = torch.linalg.pinv(a)
    near(a @ pinv @ a, a, 10)
    near(x, pinv @ b, 100)
    assert torch.linalg.matrix_rank(a).tolist() == [k, k]


@pytest.mark.parametrize("dtype", DTYPES)
def test_triangular_systems(dtype: torch.dtype) -> None:
    n = 45
    a = random(2, n, n, dtype=dtype) / n + 2 * torch.eye(n, dtype=dtype)
    for upper, left, unit in itertools.product((True, False), repeat=3):
        b = random(2, n, 4, dtype=dtype) if left else random(2, 4, n, dtype=dtype)
        t = a.triu() if upper else a.tril()
        if unit:
            t = t - torch.diag_embed(t.diagonal(dim1=-2, dim2=-1)) + torch.eye(n, dtype=dtype)
        x = torch.linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit)
        near(t @ x if left else x @ t, b, 10)
    lu, pivots = torch.linalg.lu_factor(a)
    for left, adjoint in itertools.product((True, False), repeat=2):
        b = random(2, n, 4, dtype=dtype) if left else random(2, 4, n, dtype=dtype)
        x, op = torch.linalg.lu_solve(lu, pivots, b, left=left, adjoint=adjoint), a.mH if adjoint else a
        near(op @ x if left else x @ op, b, 10)


def test_results_lie_by_columns_and_broadcast() -> None:
    a = random(2, 3, 3)
    for result in (*torch.linalg.qr(a), torch.linalg.inv(a), torch.linalg.eigh(a)[1], torch.linalg.lu_factor(a)[0]):
        assert result.stride() == (9, 1, 3)
    x = torch.linalg.solve(a.unsqueeze(1), random(4, 3, 2))
    assert x.shape == (2, 4, 3, 2)
    near(a.unsqueeze(1) @ x, random(4, 3, 2).expand(2, 4, 3, 2), 100)
    assert torch.linalg.solve(a, random(3)).shape == (2, 3)
    out = torch.empty(0, dtype=torch.float64)
    assert torch.linalg.inv(a, out=out) is out
    near(out, torch.linalg.inv(a))
    assert torch.linalg.svd(torch.empty(2, 3, 5, device="meta")).U.shape == (2, 3, 3)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (2, 0, 0)])
def test_empty_matrices(shape: tuple[int, ...]) -> None:
    a = torch.zeros(shape)
    for function in (torch.linalg.cholesky, torch.linalg.inv, torch.linalg.matrix_exp):
        assert function(a).shape == a.shape
    assert torch.equal(torch.linalg.det(a), torch.ones(shape[:-2]))
    assert torch.linalg.eigh(a).eigenvalues.shape == shape[:-1]
    assert torch.linalg.svd(a).S.shape == shape[:-1]
    assert torch.linalg.qr(torch.zeros(3, 0), mode="complete").Q.shape == (3, 3)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda z: torch.linalg.cholesky(z), "linalg.cholesky: .*the leading minor of order 1 is not positive-definite"),
        (lambda z: torch.linalg.cholesky(z.expand(2, 3, 3)), r"linalg.cholesky: \(Batch element 0\): The factorization"),
        (lambda z: torch.linalg.inv(z), "linalg.inv: The diagonal element 1 is zero, the inversion could not be completed"),
        (lambda z: torch.linalg.solve(z, z), "torch.linalg.solve: The solver failed because the input matrix is singular."),
        (lambda z: torch.linalg.svd(z / 0), "linalg.svd: .* because the input matrix contained non-finite values."),
        (lambda z: torch.linalg.eigh(z / 0), "linalg.eigh: The algorithm failed to converge"),
    ],
)
def test_failures_are_linalg_errors(call: Callable[[Tensor], object], text: str) -> None:
    with pytest.raises(LinAlgError, match=text):
        call(torch.zeros(3, 3))


def test_hard_singular_values() -> None:
    cases = [torch.zeros(4, 4), torch.ones(6, 3), torch.diag(torch.tensor([1.0, 0, 2, 0])), torch.eye(5)[:, :3]]
    cases += [torch.triu(torch.ones(3, 3), 1), torch.triu(torch.ones(30, 30)) * 1e-20, torch.randn(20, 20) * 1e30]
    for a in [*cases, *(c.mT for c in cases)]:
        u, s, vh = torch.linalg.svd(a, full_matrices=False)
        assert float((u * s @ vh - a).abs().max()) <= 1e-5 * float(a.abs().max())
        near(u.mT @ u, torch.eye(len(s)))
        near(vh @ vh.mT, torch.eye(len(s)))
    assert torch.linalg.matrix_rank(torch.ones(6, 3)) == 1


def test_norms() -> None:
    a = random(2, 4, 3)
    s = torch.linalg.svdvals(a)
    near(torch.linalg.matrix_norm(a, 2), s[:, 0])
    near(torch.linalg.matrix_norm(a, -2), s[:, -1])
    near(torch.linalg.matrix_norm(a, "nuc"), s.sum(-1))
    near(torch.linalg.matrix_norm(a), (a**2).sum((1, 2)).sqrt())
    near(torch.linalg.matrix_norm(a, 1), a.abs().sum(1).max(1).values)
    near(torch.linalg.matrix_norm(a, float("inf"), dim=(0, 2), keepdim=True), a.abs().sum(2, True).amax(0, True))
    near(torch.linalg.norm(a[0], 2), s[0, 0])
    near(torch.linalg.cond(a), s[:, 0] / s[:, -1])
    near(
        torch.linalg.cond(positive(3), 1),
        torch.linalg.norm(positive(3), 1, (1, 2)) * torch.linalg.norm(torch.linalg.inv(positive(3)), 1, (1, 2)),
    )
    near(torch.linalg.matrix_power(a[:, :3], -3) @ a[:, :3] @ a[:, :3] @ a[:, :3], eye(a[:, :3]), 100)


def symmetric(a: Tensor) -> Tensor:
    return (a + a.mH) / 2


GRADIENTS: dict[str, tuple[Callable[..., object], list[tuple[int, ...]]]] = {
    "cholesky": (lambda a: torch.linalg.cholesky(a @ a.mH + torch.eye(3)), [(2, 3, 3)]),
    "cholesky upper": (lambda a: torch.linalg.cholesky(a @ a.mH + torch.eye(3), upper=True), [(3, 3)]),
    "cholesky_solve": (lambda a, b: torch.cholesky_solve(b, a.tril() + 3 * torch.eye(3)), [(3, 3), (2, 3, 2)]),
    "cholesky_inverse": (lambda a: torch.cholesky_inverse(a.triu() + 3 * torch.eye(3), upper=True), [(3, 3)]),
    "det": (torch.linalg.det, [(2, 3, 3)]),
    "slogdet": (torch.linalg.slogdet, [(3, 3)]),
    "inv": (torch.linalg.inv, [(2, 3, 3)]),
    "solve": (torch.linalg.solve, [(2, 3, 3), (3, 2)]),
    "solve vector": (torch.linalg.solve, [(2, 3, 3), (2, 3)]),
    "solve right": (lambda a, b: torch.linalg.solve(a, b, left=False), [(3, 3), (2, 2, 3)]),
    "lu": (lambda a: torch.linalg.lu(a)[1:], [(3, 3)]),
    "lu wide": (lambda a: torch.linalg.lu(a)[1:], [(2, 4)]),
    "lu tall": (lambda a: torch.linalg.lu(a)[1:], [(4, 2)]),
    "lu_factor": (lambda a: torch.linalg.lu_factor(a)[0], [(2, 4, 3)]),
    "solve_triangular": (lambda a, b: torch.linalg.solve_triangular(a + 3 * torch.eye(3), b, upper=True), [(3, 3), (2, 3, 2)]),
    "qr": (torch.linalg.qr, [(2, 4, 3)]),
    "qr wide": (torch.linalg.qr, [(3, 5)]),
    "householder_product": (torch.linalg.householder_product, [(2, 4, 3), (2, 2)]),
    "ormqr": (lambda a, t, c: torch.ormqr(a, t, c, transpose=True), [(4, 2), (2,), (4, 3)]),
    "svdvals": (torch.linalg.svdvals, [(4, 3)]),
    "svd": (lambda a: [u.abs() for u in torch.linalg.svd(a, full_matrices=False)], [(4, 3)]),
    "svd wide": (lambda a: [u.abs() for u in torch.linalg.svd(a, full_matrices=False)], [(2, 4)]),
    "eigh": (lambda a: [v.abs() for v in torch.linalg.eigh(symmetric(a))], [(3, 3)]),
    "eig": (lambda a: [v.abs() for v in torch.linalg.eig(a)], [(3, 3)]),
    "pinv": (torch.linalg.pinv, [(2, 4, 3)]),
    "pinv wide": (torch.linalg.pinv, [(2, 4)]),
    "lstsq": (lambda a, b: torch.linalg.lstsq(a, b, driver="gelsd")[:2], [(4, 2), (4, 3)]),
    "matrix_exp": (torch.linalg.matrix_exp, [(2, 3, 3)]),
    "nuclear norm": (lambda a: torch.linalg.matrix_norm(a, "nuc"), [(3, 4)]),
    "weight_norm": (lambda v, g: torch._weight_norm(v, g, 0), [(3, 2, 2), (3, 1, 1)]),
    "weight_norm last": (lambda v, g: torch._weight_norm(v, g, 2), [(3, 2, 4), (1, 1, 4)]),
    "weight_norm middle": (lambda v, g: torch._weight_norm(v, g, 1), [(3, 2, 4), (1, 2, 1)]),
}


REAL_AND_COMPLEX = [(n, d) for n in GRADIENTS for d in (torch.float64, torch.complex128)]


@pytest.mark.parametrize(
    ("name", "dtype"), [(n, d) for n, d in REAL_AND_COMPLEX if not (d.is_complex and n.startswith("weight_norm"))]
)
def test_gradients_by_differences(name: str, dtype: torch.dtype) -> None:
    function, shapes = GRADIENTS[name]
    inputs = tuple(random(*shape, dtype=dtype).requires_grad_() for shape in shapes)

    def run(*given: Tensor) -> tuple[Tensor, ...]:
        made = function(*given)
        made = tuple(made) if isinstance(made, (tuple, list)) else (made,)
        return tuple(m for m in made if m.is_floating_point() or m.is_complex())

    forward = "weight_norm" not in name and "ormqr" not in name
    assert torch.autograd.gradcheck(run, inputs, check_forward_ad=forward)


@pytest.mark.parametrize(
    "name", ["cholesky", "det", "slogdet", "inv", "solve", "lu", "qr", "svdvals", "pinv", "matrix_exp", "householder_product"]
)
def test_second_derivatives(name: str) -> None:
    function, shapes = GRADIENTS[name]
    inputs = tuple(random(*shape).requires_grad_() for shape in shapes)
    assert torch.autograd.gradgradcheck(function, inputs)


def test_determinant_of_a_singular_matrix_has_a_gradient() -> None:
    a = torch.diag(torch.tensor([1.0, 2.0, 0.0], dtype=torch.float64)).requires_grad_()
    (grad,) = torch.autograd.grad(torch.linalg.det(a), a)
    near(grad, torch.diag(torch.tensor([0.0, 0.0, 2.0], dtype=torch.float64)))


def test_orthogonal_initialisation() -> None:
    for shape in ((5, 3), (3, 5), (4, 2, 3)):
        w = torch.nn.init.orthogonal_(torch.empty(shape)).flatten(1)
        square = w @ w.mT if w.shape[0] <= w.shape[1] else w.mT @ w
        near(square, eye(square))
