"""Differences, the trapezoidal rule, gradients of samples and moments against their definitions."""

import pytest
import torch


def test_diff_is_repeated_subtraction() -> None:
    x = torch.randn(6, 4)
    assert torch.equal(torch.diff(x, n=2, dim=0), (x[2:] - x[1:-1]) - (x[1:-1] - x[:-2]))
    joined = torch.diff(x, prepend=x[:, :1], append=torch.zeros(6, 2))
    assert torch.equal(joined, torch.diff(torch.cat([x[:, :1], x, torch.zeros(6, 2)], 1)))
    assert torch.diff(x, n=9).shape == (6, 0)
    assert torch.diff(torch.tensor([True, True, False])).tolist() == [False, True]


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient_of_a_parabola(edge_order: int) -> None:
    at = torch.tensor([0.0, 1.0, 1.5, 4.0, 6.0], dtype=torch.float64)
    (slope,) = torch.gradient(at**2, spacing=(at,), edge_order=edge_order)
    inner = slice(None) if edge_order == 2 else slice(1, -1)
    torch.testing.assert_close(slope[inner], 2 * at[inner])
    even = torch.arange(6, dtype=torch.float64) * 0.5
    rows, columns = torch.gradient(even[:, None] ** 2 + 3 * even, spacing=0.5, edge_order=edge_order)
    torch.testing.assert_close(rows[inner, 0], 2 * even[inner])
    torch.testing.assert_close(columns, torch.full((6, 6), 3.0, dtype=torch.float64))


def test_trapezoids() -> None:
    at = torch.tensor([0.0, 0.5, 2.0, 3.0])
    y = torch.stack([2 * at, torch.ones(4)])
    torch.testing.assert_close(torch.trapezoid(y, at), torch.tensor([9.0, 3.0]))
    torch.testing.assert_close(torch.cumulative_trapezoid(y, at)[0], at[1:] ** 2)
    torch.testing.assert_close(torch.trapezoid(y[1], dx=2), torch.tensor(6.0))


def test_covariance() -> None:
    x = torch.randn(3, 8, dtype=torch.float64)
    centred = x - x.mean(1, keepdim=True)
    torch.testing.assert_close(torch.cov(x), centred @ centred.T / 7)
    counts = torch.tensor([2, 1, 0, 3, 1, 1, 1, 1])
    torch.testing.assert_close(torch.cov(x, fweights=counts), torch.cov(x.repeat_interleave(counts, dim=1)))
    torch.testing.assert_close(torch.corrcoef(x).diagonal(), torch.ones(3, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="fweights cannot be negative"):
        torch.cov(x, fweights=-counts)


def test_vander_and_nanmean() -> None:
    assert torch.vander(torch.tensor([2, 3]), N=3).tolist() == [[4, 2, 1], [9, 3, 1]]
    assert torch.linalg.vander(torch.tensor([2.0, 3.0]), N=3).tolist() == [[1, 2, 4], [1, 3, 9]]
    assert torch.nanmean(torch.tensor([[1.0, torch.nan], [2.0, 4.0]]), 1).tolist() == [1, 3]
