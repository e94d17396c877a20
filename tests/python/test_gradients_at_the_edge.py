"""Gradients and tangents where formulas are delicate: zero, nothing, large numbers; by derived truths."""

import pytest
import torch
import torch.autograd.forward_ad as fw


def second(f, x):
    (g,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
    return g, torch.autograd.grad(g.sum(), x)[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bessel_functions_at_zero(dtype):
    # I1 = x/2 + x^3/16 + ..., and exp(-|x|) I1 has the slope 1/2 at zero.
    x = torch.tensor([0.0, 1.0], dtype=dtype, requires_grad=True)
    g, h = second(torch.special.i1, x)
    assert g[0] == 0.5 and h[0] == 0
    g, h = second(torch.special.i1e, x)
    assert g[0] == 0.5 and h[0] == 0
    # I1'' = I1 - I1'/x + I1/x^2 away from zero
    i0, i1 = torch.special.i0(x.detach()[1]), torch.special.i1(x.detach()[1])
    assert torch.allclose(second(torch.special.i1, x)[1][1], i1 - (i0 - i1) + i1)


@pytest.mark.parametrize("shift", [0.0, 500.0, -500.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tangent_of_logcumsumexp_does_not_depend_on_the_size(dtype, shift):
    # Multiples of 1/16 keep x + shift exact.
    x = torch.tensor([-64, 32, 5, -3, 32, 0], dtype=dtype) / 16 + shift
    t = torch.tensor([8, -2, 3, 16, -5, 1], dtype=dtype) / 16
    with fw.dual_level():
        got = fw.unpack_dual(torch.logcumsumexp(fw.make_dual(x, t), 0)).tangent
    w = (x.double() - x.double().max()).exp()
    want = (w * t.double()).cumsum(0) / w.cumsum(0)
    eps = torch.finfo(dtype).eps
    assert (got.double() - want).abs().max() <= 8 * eps
    assert got[0] == t[0]


def test_tangent_of_logcumsumexp_after_minus_infinity():
    x = torch.tensor([-torch.inf, -torch.inf, 1.0, -torch.inf])
    with fw.dual_level():
        got = fw.unpack_dual(torch.logcumsumexp(fw.make_dual(x, torch.tensor([3.0, 4.0, 5.0, 6.0])), 0)).tangent
    assert got.tolist() == [0, 0, 5, 5]


def test_tangent_of_cholesky_inverse_is_the_derivative():
    torch.manual_seed(0)
    for upper in (False, True):
        lower = torch.randn(4, 4, dtype=torch.float64).tril() + 3 * torch.eye(4, dtype=torch.float64)
        factor = lower.mT.contiguous() if upper else lower
        t = torch.randn(4, 4, dtype=torch.float64)
        t = t.triu() if upper else t.tril()
        with fw.dual_level():
            got = fw.unpack_dual(torch.cholesky_inverse(fw.make_dual(factor, t), upper=upper)).tangent
        a = lambda f: torch.linalg.inv(f.mT @ f if upper else f @ f.mT)  # noqa: B023, E731
        want = (a(factor + 1e-6 * t) - a(factor - 1e-6 * t)) / 2e-6
        assert torch.allclose(got, want, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("shape", [(0, 0), (3, 0, 0)])
def test_gradients_of_empty_determinants(shape):
    # Upstream: a gradient of the input's shape that depends on nothing; slogdet's depends on the logarithm's gradient alone.
    a = torch.empty(shape, requires_grad=True)
    (g,) = torch.autograd.grad(torch.linalg.det(a).sum(), a, create_graph=True)
    assert g.shape == a.shape and not g.requires_grad
    sign, log = torch.linalg.slogdet(a)
    of_sign, of_log = (torch.ones_like(sign, requires_grad=True) for _ in range(2))
    (g,) = torch.autograd.grad((sign, log), a, (of_sign, of_log), create_graph=True)
    deep = torch.autograd.grad(g.sum(), (of_sign, of_log), allow_unused=True)
    assert g.shape == a.shape and deep[0] is None and deep[1] is not None


@pytest.mark.parametrize(("m", "k"), [(5, 0), (0, 0)])
def test_gradient_of_ormqr_without_reflections(m, k):
    factors, tau = torch.empty(m, k, requires_grad=True), torch.empty(k, requires_grad=True)
    other = torch.randn(m, 3, requires_grad=True)
    out = torch.ormqr(factors, tau, other)
    of = torch.autograd.grad(out.sum(), (factors, tau, other), allow_unused=True)
    assert of[0] is None and of[1] is None
    assert torch.equal(of[2], torch.ones(m, 3))


def test_second_gradient_of_fractional_pooling_of_an_empty_batch():
    x = torch.empty(0, 1, 6, 6, 6, requires_grad=True)
    out = torch.nn.functional.fractional_max_pool3d(x, 2, output_size=3)
    cotangent = torch.ones_like(out, requires_grad=True)
    (g,) = torch.autograd.grad(out, x, cotangent, create_graph=True)
    (again,) = torch.autograd.grad(g, cotangent, torch.ones_like(g))
    assert again.shape == out.shape
