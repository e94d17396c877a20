"""saved_tensors_hooks, checkpoints and gradcheck's own nodes: the same gradients as without them."""

import pytest
import torch
from torch.autograd.graph import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint


@pytest.fixture
def problem() -> tuple[torch.Tensor, torch.Tensor, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    x, w = torch.randn(3, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)
    return x, w, torch.autograd.grad(function(x, w), (x, w))


def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x @ w).tanh().exp().sum()


def equal(a: tuple[torch.Tensor, ...], b: tuple[torch.Tensor, ...]) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoint(problem, reentrant: bool) -> None:
    x, w, expected = problem
    checkpoint(function, x, w, use_reentrant=reentrant).backward()
    assert x.grad is not None and w.grad is not None
    assert equal((x.grad, w.grad), expected)


def test_hooks_pack_and_unpack_every_saved_tensor(problem) -> None:
    x, w, expected = problem
    seen: list[str] = []

    def pack(t: torch.Tensor) -> list[float]:
        seen.append("pack")
        return [t.detach().clone(), t.shape]

    def unpack(packed: list) -> torch.Tensor:
        seen.append("unpack")
        return packed[0].reshape(packed[1])

    with saved_tensors_hooks(pack, unpack):
        y = function(x, w)
    assert seen == ["pack"] * 4
    assert equal(torch.autograd.grad(y, (x, w), retain_graph=True), expected)
    assert seen == ["pack"] * 4 + ["unpack"] * 4
    with pytest.raises(TypeError, match="expected to be a Tensor but got result of type int"):
        with saved_tensors_hooks(lambda t: 1, lambda p: p):
            function(x, w).backward()
    with pytest.raises(RuntimeError, match="pack hook is modifying its input in place"):
        with saved_tensors_hooks(lambda t: t.add_(1), lambda p: p):
            (x * 2).tanh()


def test_leaves_keep_their_gradient_and_double_backward_works(problem) -> None:
    x, w, expected = problem
    with save_on_cpu():
        (first,) = torch.autograd.grad((x.sin() * x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(second, 2 * x.cos() - x * x.sin())


def test_disabled_hooks_say_why() -> None:
    with disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"):
        with saved_tensors_hooks(lambda t: t, lambda t: t):
            pass


def test_gradcheck_with_undefined_gradients_and_second_order() -> None:
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: (t.sin(), t.exp()), (x,))
    assert torch.autograd.gradgradcheck(lambda t: t.sin() * t, (x,))


def test_delayed_error() -> None:
    x = torch.ones(2, requires_grad=True)
    y = torch._C._functions.DelayedError("too late", 1)(x)
    with pytest.raises(RuntimeError, match="too late"):
        y.sum().backward()
