"""torch.where and masked_fill where the operands' strides can't be coalesced into one row."""

import itertools

import pytest
import torch

SHAPES = [((2, 1, 3, 5), (1, 4, 3, 5)), ((2, 1, 1, 5), (2, 4, 3, 5)), ((1, 4, 1, 5), (2, 1, 3, 1)), ((), (2, 3, 4, 5))]


def picked(mask: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> list[float]:
    shape = torch.broadcast_shapes(mask.shape, a.shape, b.shape)
    m, x, y = mask.expand(shape), a.expand(shape), b.expand(shape)
    return [(x if m[i] else y)[i].item() for i in itertools.product(*map(range, shape))]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int8, torch.bfloat16])
@pytest.mark.parametrize("mask_shape, shape", SHAPES)
def test_where_broadcasts(mask_shape: tuple[int, ...], shape: tuple[int, ...], dtype: torch.dtype) -> None:
    mask = torch.randint(0, 2, mask_shape).bool()
    a, b = torch.randint(-9, 9, shape).to(dtype), torch.randint(-9, 9, shape[1:]).to(dtype)
    for x, y in ((a, b), (a.transpose(-1, -2).contiguous().transpose(-1, -2), a), (b, a)):
        assert torch.where(mask, x, y).flatten().tolist() == picked(mask, x, y)


@pytest.mark.parametrize("mask_shape, shape", SHAPES)
def test_masked_fill_broadcasts(mask_shape: tuple[int, ...], shape: tuple[int, ...]) -> None:
    mask = torch.randint(0, 2, mask_shape).bool()
    full = torch.broadcast_shapes(mask_shape, shape)
    a = torch.randn(shape).expand(full)
    assert a.masked_fill(mask, 7).flatten().tolist() == picked(mask, torch.tensor(7.0), a)
    filled = a.clone().masked_fill_(mask, 7)
    assert filled.flatten().tolist() == picked(mask, torch.tensor(7.0), a)
