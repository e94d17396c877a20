"""Window functions, splits by name, and diagonals written in place."""

import math

import pytest
import torch


def test_windows() -> None:
    n = 9
    wave = [0.5 - 0.5 * math.cos(2 * math.pi * i / n) for i in range(n)]
    torch.testing.assert_close(torch.hann_window(n, dtype=torch.float64).tolist(), wave)
    torch.testing.assert_close(torch.hann_window(n), torch.hann_window(n + 1, periodic=False)[:-1])
    torch.testing.assert_close(torch.hamming_window(n, True, 0.5, 0.5), torch.hann_window(n))
    assert torch.bartlett_window(5, periodic=False).tolist() == [0, 0.5, 1, 0.5, 0]
    torch.testing.assert_close(torch.kaiser_window(n, periodic=True, beta=0.0), torch.ones(n))
    assert torch.blackman_window(1).tolist() == [1] and torch.blackman_window(0).shape == (0,)
    with pytest.raises(RuntimeError, match="hann_window expects floating point dtypes"):
        torch.hann_window(3, dtype=torch.int64)


def test_splits_are_views_along_their_dimension() -> None:
    x = torch.arange(24).reshape(2, 3, 4)
    for split, dim in ((torch.vsplit, 0), (torch.hsplit, 1), (torch.dsplit, 2)):
        parts = split(x, [1])
        assert torch.equal(torch.cat(parts, dim), x) and parts[0].data_ptr() == x.data_ptr()
    assert [p.tolist() for p in torch.hsplit(torch.arange(4), 2)] == [[0, 1], [2, 3]]
    with pytest.raises(
        RuntimeError, match=r"torch.hsplit attempted to split along dimension 1, but the size of the dimension 3"
    ):
        torch.hsplit(x, 2)
    with pytest.raises(
        RuntimeError, match=r"torch.dsplit requires a tensor with at least 3 dimension, but got a tensor with 1"
    ):
        torch.dsplit(torch.arange(4), 2)


def test_fill_diagonal_wraps() -> None:
    x = torch.zeros(7, 3).fill_diagonal_(1, wrap=True)
    assert x.nonzero()[:, 0].tolist() == [0, 1, 2, 4, 5, 6]
    assert torch.zeros(3, 3, 3).fill_diagonal_(1).sum() == 3


def test_sum_to_size_undoes_a_broadcast() -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    assert torch.equal(x.sum_to_size(3, 1), x.sum((0, 2)).unsqueeze(1))
    with pytest.raises(RuntimeError, match="is not expandable to size"):
        x.sum_to_size(2, 4)


def test_rrelu_scales_negative_numbers_alone() -> None:
    x = torch.linspace(-2, 2, 9, requires_grad=True)
    y = torch.nn.functional.rrelu(x, 0.1, 0.3, training=True)
    y.sum().backward()
    slopes = x.grad
    assert slopes is not None and torch.equal(y, x * slopes)
    negative = slopes[x <= 0]
    assert (slopes[x > 0] == 1).all() and (negative >= 0.1).all() and (negative < 0.3).all()
    assert negative.unique().numel() > 1
