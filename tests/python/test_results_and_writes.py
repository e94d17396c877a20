"""Where results go: named tuples of out= forms, lists of outputs, in-place scans, written conjugate views; complex sums."""

from __future__ import annotations

import cmath
import math

import pytest
import torch

X = torch.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]])


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian", "mode", "cummax", "cummin", "sort", "topk", "kthvalue"])
def test_out_forms_have_tuples_of_their_own(name: str) -> None:
    args = {"topk": (2, 1), "kthvalue": (2, 1)}.get(name, (1,))
    plain = getattr(torch, name)(X, *args)
    out = (torch.empty(0), torch.empty(0, dtype=torch.int64))
    given = getattr(torch, name)(X, *args, out=out)
    assert type(plain) is getattr(torch.return_types, name)
    assert type(given) is getattr(torch.return_types, f"{name}_out")
    assert given[0] is out[0] and given[1] is out[1]
    assert torch.equal(given.values, plain.values) and torch.equal(given.indices, plain.indices)


def test_out_may_be_one_list() -> None:
    out = [torch.empty(2, dtype=torch.int64), torch.empty(4, dtype=torch.int64)]
    assert torch.split_with_sizes_copy(torch.arange(6), [2, 4], out=out) is None
    assert out[0].tolist() == [0, 1] and out[1].tolist() == [2, 3, 4, 5]
    rows = [torch.empty(3), torch.empty(3)]
    torch.unbind_copy(X, out=rows)
    assert torch.equal(torch.stack(rows), X)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.uint8])
def test_in_place_scans_keep_integers(dtype: torch.dtype) -> None:
    x = torch.tensor([1, 2, 3], dtype=dtype)
    assert x.clone().cumsum_(0).tolist() == [1, 3, 6] and x.clone().cumprod_(0).dtype is dtype
    assert x.cumsum(0).dtype is torch.int64
    with pytest.raises(NotImplementedError, match='"cumsum_out_cpu" not implemented for'):
        x.bool().cumsum_(0)


WRITES = {
    "add_": lambda t: t.add_(1 + 2j),
    "mul_": lambda t: t.mul_(2j),
    "addmm_": lambda t: t.addmm_(A, A),
    "cumsum_": lambda t: t.cumsum_(0),
    "masked_fill_": lambda t: t.masked_fill_(torch.tensor([[True, False], [False, True]]), 3j),
    "index_fill_": lambda t: t.index_fill_(0, torch.tensor([1]), 3j),
    "mm out": lambda t: torch.mm(A, A, out=t),
    "add out": lambda t: torch.add(A, 1j, out=t),
}
A = torch.tensor([[1 + 2j, 3j], [0.5, -1j]])


@pytest.mark.parametrize("name", WRITES)
def test_writes_go_through_conjugate_views(name: str) -> None:
    plain, base = A.conj().resolve_conj().clone(), A.clone()
    view = base.conj()
    made = WRITES[name](view)
    assert made is view and view.is_conj()
    assert torch.equal(view.resolve_conj(), WRITES[name](plain))
    assert torch.equal(base, plain.conj().resolve_conj())
    part = torch.tensor([1 + 1j, 2 - 3j])
    part.conj().imag.mul_(3)
    assert part.tolist() == [1 + 3j, 2 - 9j]


def test_logarithms_of_complex_sums() -> None:
    z = [1 + 1j, 2 + 0j, -1j]
    x = torch.tensor(z, dtype=torch.complex128)
    sums = [cmath.log(sum(map(cmath.exp, z[: k + 1]))) for k in range(3)]
    assert torch.allclose(torch.logcumsumexp(x, 0), torch.tensor(sums, dtype=torch.complex128))
    assert cmath.isclose(torch.logsumexp(x, 0).item(), sums[-1])
    assert torch.logsumexp(torch.tensor([complex(math.inf), 1j]), 0).real.item() == math.inf


def test_degrees_of_freedom_of_complex_numbers_by_part() -> None:
    with pytest.warns(UserWarning, match="degrees of freedom"):
        std, mean = torch.std_mean(torch.tensor([1 + 1j, 2 + 1j]), correction=2)
    assert math.isnan(std.item()) and mean.item() == 1.5 + 1j


def test_float_power_writes_doubles() -> None:
    out = torch.empty(3, dtype=torch.float64)
    assert torch.float_power(X[0], 2, out=out) is out and out.tolist() == [9, 1, 4]
    assert torch.float_power(2, X[0], out=out).tolist() == [8, 2, 4]
    with pytest.raises(RuntimeError, match="the output given to float_power has dtype Float but the operation's result"):
        torch.float_power(X[0], 2, out=torch.empty(3))


def test_values_that_a_dtype_cannot_hold() -> None:
    ones, mask = torch.ones(2, dtype=torch.int64), torch.tensor([True, False])
    assert ones.masked_fill(mask, 2.5).tolist() == [2, 1]
    with pytest.raises(RuntimeError, match="value cannot be converted to type int64_t without overflow"):
        ones.masked_fill(mask, math.inf)


def test_contractions_keep_small_integers() -> None:
    a, b = torch.ones(2, 3, 1, dtype=torch.int16), torch.ones(3, 2, 1, dtype=torch.int16)
    assert torch.tensordot(a, b, dims=([1, 2], [0, 2])).dtype is torch.int16
    assert torch.ones(4)[::2].ravel().stride() == (1,)
