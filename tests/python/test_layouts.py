"""What a layout must not change: a channels-last input gives the numbers of a contiguous one, an expanded number those
of its copies."""

from __future__ import annotations

import operator

import pytest
import torch
import torch.nn.functional as F


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("channels", [3, 64, 70])  # less than, exactly and more than one block of channels
def test_max_pool_backward_of_channels_last(channels: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(channels)
    x = torch.randn(2, channels, 9, 7, generator=generator).to(dtype)
    for pool in (
        lambda x: F.max_pool2d(x, 3, 2, 1),
        lambda x: F.max_pool2d(x, 2, 1),
        lambda x: F.adaptive_max_pool2d(x, (4, 3)),
    ):
        grads = []
        for layout in (torch.contiguous_format, torch.channels_last):
            leaf = x.clone(memory_format=layout).requires_grad_()
            y = pool(leaf)
            weights = torch.arange(y.numel(), dtype=torch.float32).reshape(y.shape).remainder(13).to(dtype)
            grads.append(torch.autograd.grad(y, leaf, weights)[0])
        assert grads[1].is_contiguous(memory_format=torch.channels_last)
        assert torch.equal(*grads)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv])
def test_a_number_that_stands_still_equals_its_copies(op, dtype: torch.dtype) -> None:
    for n in (1, 2, 15, 16, 17, 33, 600):
        row = torch.linspace(-3, 5, n, dtype=dtype)
        row[n // 2] = float("nan")
        number = torch.tensor(0.7, dtype=dtype)
        copies = torch.full((n,), 0.7, dtype=dtype)
        for left, right, dense in ((row, number, (row, copies)), (number, row, (copies, row))):
            assert torch.equal(op(left, right).nan_to_num(9), op(*dense).nan_to_num(9))
        column = torch.tensor([[1.5], [-2.0], [0.25]], dtype=dtype)
        want = torch.stack([op(torch.full((n,), float(c), dtype=dtype), row) for c in column])
        assert torch.equal(op(column, row).nan_to_num(9), want.nan_to_num(9))
        own = row.clone()
        own.mul_(own[-1].clone())
        assert torch.equal(own.nan_to_num(9), (row * torch.full_like(row, float(row[-1]))).nan_to_num(9))
