"""Gradients against finite differences, and what composites' out= and in-place forms leave behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch


def leaf(*shape: int, seed: int = 0) -> torch.Tensor:
    torch.manual_seed(seed)
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def zeros_in(t: torch.Tensor, *places: int) -> torch.Tensor:
    t = t.detach().clone()
    t.view(-1)[list(places)] = 0
    return t.requires_grad_()


INDEX = torch.tensor([2, 0, 2])
CASES: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "cat": (lambda a, b: torch.cat([a, b, a], 1), (leaf(2, 3), leaf(2, 1, seed=1))),
    "cat of an empty one": (lambda a: torch.cat([torch.empty(0, dtype=torch.float64), a]), (leaf(2, 2),)),
    "stack": (lambda a, b: torch.stack([a, b], -1), (leaf(2, 2), leaf(2, 2, seed=1))),
    "index with a missing index": (lambda a: a[:, INDEX], (leaf(2, 3),)),
    "index by tensors and masks": (lambda a: a[INDEX, INDEX] * a[torch.eye(3, dtype=torch.bool)], (leaf(3, 3),)),
    "index_put": (lambda a, v: a.clone().index_put((INDEX,), v, accumulate=True), (leaf(3, 2), leaf(3, 2, seed=1))),
    "prod with one zero": (lambda a: a.prod(1), (zeros_in(leaf(2, 3), 1),)),
    "prod with two zeros": (lambda a: a.prod(1), (zeros_in(leaf(2, 3), 0, 2),)),
    "prod of a 0-dim zero": (lambda a: a.prod(), (torch.zeros((), dtype=torch.float64, requires_grad=True),)),
    "cumprod with a zero": (lambda a: a.cumprod(0), (zeros_in(leaf(4), 1),)),
    "logcumsumexp": (lambda a: a.logcumsumexp(0), (leaf(4),)),
    "a window that overlaps itself": (lambda a: a.as_strided((3, 2), (1, 1), 1), (leaf(6),)),
    "unfold": (lambda a: a.unfold(0, 3, 1), (leaf(5),)),
    "unfold of a 0-dim tensor": (lambda a: a.unfold(0, 1, 1), (leaf(),)),
    "writes into views": (lambda a, b: a.clone().t().copy_(b).t()[0].mul(a[1]), (leaf(2, 2), leaf(2, 2, seed=1))),
    "a composite in place": (lambda a: a.clone().square_().mul_(a), (leaf(3),)),
    "where of optional clamps": (lambda a: a.clamp(min=-0.1) * a.clamp(max=0.3), (leaf(5),)),
    "var and std": (lambda a: a.var(0) + a.std(0, correction=0), (leaf(4, 2),)),
    "norms": (lambda a: a.norm(3) + torch.linalg.vector_norm(a, 1.5), (leaf(4),)),
    "bilinear": (torch.nn.functional.bilinear, (leaf(2, 3), leaf(2, 2, seed=1), leaf(2, 3, 2, seed=2))),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    function, inputs = CASES[name]
    assert torch.autograd.gradcheck(function, inputs)
    assert torch.autograd.gradgradcheck(function, inputs)


def test_windows_share_the_gradient_of_shared_elements() -> None:
    """Upstream's rule: elements of the input that are one number get equal parts."""
    x = torch.zeros(3, dtype=torch.float64).expand(2, 3).detach().requires_grad_()
    (grad,) = torch.autograd.grad(x.as_strided((3,), (1,)), x, torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64))
    assert grad.tolist() == [[0.5, 1.0, 1.5], [0.5, 1.0, 1.5]]


def test_windows_outside_of_their_input_have_no_gradient() -> None:
    x = torch.arange(8.0)[4:].detach().requires_grad_()
    (grad,) = torch.autograd.grad(x.as_strided((3,), (1,), 2), x, torch.tensor([1.0, 2.0, 3.0]))
    assert grad.tolist() == [3.0, 0.0, 0.0, 0.0]


OUT_FORMS: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "diag": lambda x, out: torch.diag(x, out=out),
    "msort": lambda x, out: torch.msort(x, out=out),
    "var": lambda x, out: torch.var(x, dim=0, out=out),
}


@pytest.mark.parametrize("name", OUT_FORMS)
def test_out_forms_of_composites_count_as_writes(name: str) -> None:
    call, x = OUT_FORMS[name], leaf(3, 3)
    out = torch.zeros_like(call(x.detach(), torch.empty(0, dtype=x.dtype)))
    before = out._version
    call(x.detach(), out)
    assert out._version == before + 1
    kept = torch.ones_like(out).requires_grad_()
    used = kept * out  # saves out for kept's gradient
    call(x.detach() + 1, out)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        used.sum().backward()
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        call(x, out)
    with torch.no_grad():
        call(x, out)
