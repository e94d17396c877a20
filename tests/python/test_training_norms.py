"""Normalisations in training: definitions, running statistics, memory formats, gradients by differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck, gradgradcheck


def wide(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def check(f: Callable[..., Any], *inputs: torch.Tensor, twice: bool = True) -> None:
    assert gradcheck(f, inputs, check_undefined_grad=False)
    if twice:
        assert gradgradcheck(f, inputs, check_undefined_grad=False)


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 5), (2, 3, 4, 5), (2, 3, 2, 3, 2)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_batch_norm_is_its_definition(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x, w, b = torch.randn(shape, dtype=dtype), torch.rand(3), torch.rand(3)
    if dtype == torch.float64:
        w, b = w.double(), b.double()
    mean, var = torch.zeros_like(w), torch.ones_like(w)
    found = F.batch_norm(x, mean, var, w, b, training=True, momentum=0.25)
    dims = [d for d in range(x.dim()) if d != 1]
    of_x = x.double()
    middle, spread = of_x.mean(dims), of_x.var(dims, correction=0)
    at = [1, 3] + [1] * (x.dim() - 2)
    expected = (of_x - middle.view(at)) / (spread.view(at) + 1e-5).sqrt() * w.double().view(at) + b.double().view(at)
    torch.testing.assert_close(
        found,
        expected.to(dtype),
        rtol=None if dtype != torch.bfloat16 else 1e-2,
        atol=None if dtype != torch.bfloat16 else 2e-2,
    )
    torch.testing.assert_close(mean.double(), 0.25 * middle, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(var.double(), 0.75 + 0.25 * of_x.var(dims), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("norm", ["batch", "group"])
def test_memory_formats_give_the_same_values_and_stay(norm: str) -> None:
    x = torch.randn(3, 4, 5, 6)
    last = x.contiguous(memory_format=torch.channels_last)

    def run(t: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        t = t.detach().requires_grad_()
        w = torch.arange(1.0, 5.0)
        out = F.batch_norm(t, None, None, w, w, training=True) if norm == "batch" else F.group_norm(t, 2, w, w)
        (out * x).sum().backward()
        assert t.grad is not None
        return out.detach(), t.grad

    (out, grad), (out_last, grad_last) = run(x), run(last)
    assert out_last.is_contiguous(memory_format=torch.channels_last) and out.is_contiguous()
    assert grad_last.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(out, out_last.contiguous(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(grad, grad_last.contiguous(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5), (2, 3, 2, 3)])
def test_gradients_of_batch_norm(shape: tuple[int, ...]) -> None:
    mean, var = torch.zeros(3, dtype=torch.float64), torch.full((3,), 2.0, dtype=torch.float64)
    check(lambda x, w, b: F.batch_norm(x, mean.clone(), var.clone(), w, b, training=True), wide(*shape), wide(3), wide(3))
    check(lambda x, w, b: F.batch_norm(x, mean, var, w, b), wide(*shape), wide(3), wide(3))
    check(lambda x: F.batch_norm(x, None, None, training=True), wide(*shape))


def test_gradients_of_the_others() -> None:
    check(lambda x, w, b: F.layer_norm(x, (4,), w, b), wide(2, 3, 4), wide(4), wide(4))
    check(lambda x: F.layer_norm(x, (3, 4)), wide(2, 3, 4))
    check(lambda x, w, b: F.group_norm(x, 2, w, b), wide(2, 4, 3), wide(4), wide(4))
    check(lambda x, w, b: F.group_norm(x, 2, w, b), wide(3, 4), wide(4), wide(4))
    check(lambda x, w: F.rms_norm(x, (4,), w), wide(2, 3, 4), wide(4))
    check(lambda x, w, b: F.instance_norm(x, None, None, w, b), wide(2, 3, 4), wide(3), wide(3))


def test_instance_norm_averages_running_statistics() -> None:
    x, mean, var = torch.randn(4, 3, 10), torch.zeros(3), torch.ones(3)
    F.instance_norm(x, mean, var, momentum=1.0)
    torch.testing.assert_close(mean, x.mean(2).mean(0))
    torch.testing.assert_close(var, x.var(2).mean(0))


def test_rms_norm_in_one_pass_is_the_composition() -> None:
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        x, w = torch.randn(5, 37, dtype=dtype), torch.rand(37, dtype=dtype)
        with torch.no_grad():
            fast = F.rms_norm(x, (37,), w)
        slow = F.rms_norm(x.clone().requires_grad_(), (37,), w).detach()
        torch.testing.assert_close(fast, slow)


def test_mixed_dtypes_and_their_errors() -> None:
    x, w = torch.randn(4, 3, 2).bfloat16(), torch.ones(3)
    out, mean, _ = torch.native_batch_norm(x, w, w, None, None, True, 0.1, 1e-5)
    assert out.dtype == torch.bfloat16 and mean.dtype == torch.float32
    with pytest.raises(RuntimeError, match="mixed dtype .CPU.: all inputs must share same datatype"):
        torch.native_batch_norm(x.double(), w, w, None, None, True, 0.1, 1e-5)
    with pytest.raises(RuntimeError, match="mixed dtype .CPU.: expect parameter to have scalar type of Float"):
        torch.native_batch_norm(x, w, w.bfloat16(), None, None, True, 0.1, 1e-5)
    with pytest.raises(RuntimeError, match="running_mean must be defined in evaluation mode"):
        torch.batch_norm(x, None, None, None, None, False, 0.1, 1e-5, False)


def test_other_backends_refuse_by_name() -> None:
    x, w = torch.randn(4, 3, 2), torch.ones(3)
    with pytest.raises(NotImplementedError, match="cudnn_batch_norm"):
        torch.cudnn_batch_norm(x, w, w, w, w, True, 0.1, 1e-5)
    with pytest.raises(NotImplementedError, match="miopen_batch_norm"):
        torch.miopen_batch_norm(x, w, w, w, w, True, 0.1, 1e-5)
