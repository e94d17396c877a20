"""Distances and cross products against their definitions; gradients by gradcheck."""

import math

import pytest
import torch
from torch.autograd import gradcheck

POWERS = [0.0, 0.5, 1.0, 2.0, 3.0, math.inf]


def lp(a: torch.Tensor, b: torch.Tensor, p: float) -> float:
    sizes = [abs(x - y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    if p == 0:
        return float(sum(s != 0 for s in sizes))
    return max(sizes) if math.isinf(p) else sum(s**p for s in sizes) ** (1 / p)


@pytest.mark.parametrize("p", POWERS)
def test_cdist_and_pdist(p: float) -> None:
    a, b = torch.randn(2, 3, 11, dtype=torch.float64), torch.randn(4, 11, dtype=torch.float64)
    found = torch.cdist(a, b, p=p)
    assert found.shape == (2, 3, 4)
    expected = [[[lp(x, y, p) for y in b] for x in rows] for rows in a]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))
    pairs = [lp(b[i], b[j], p) for i in range(4) for j in range(i + 1, 4)]
    torch.testing.assert_close(torch.pdist(b, p), torch.tensor(pairs, dtype=torch.float64))


def test_cdist_through_a_product_for_many_rows() -> None:
    a, b = torch.randn(40, 7, dtype=torch.float64), torch.randn(30, 7, dtype=torch.float64)
    direct = torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")
    torch.testing.assert_close(torch.cdist(a, b), direct)


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0, math.inf])
def test_distance_gradients(p: float) -> None:
    torch.manual_seed(0)
    a, b = (torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert gradcheck(lambda x, y: torch.cdist(x, y, p=p), (a, b))
    assert gradcheck(lambda x: torch.pdist(x, p), (a,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int16, torch.complex64])
def test_cross_is_orthogonal(dtype: torch.dtype) -> None:
    a, b = torch.randint(-5, 5, (2, 3, 4)).to(dtype), torch.randint(-5, 5, (3, 1)).to(dtype)
    c = torch.linalg.cross(a, b.expand(1, 3, 4), dim=1)
    assert c.shape == (2, 3, 4)
    assert torch.equal((a * c).sum(1), torch.zeros(2, 4, dtype=dtype))
    assert torch.equal(torch.linalg.cross(torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0])), torch.tensor([0, 0, 1]))


def test_errors_name_the_operator() -> None:
    with pytest.raises(RuntimeError, match=r"linalg.cross: inputs dimension -1 must have length 3. Got 2 and 2"):
        torch.linalg.cross(torch.ones(2), torch.ones(2))
    with pytest.raises(RuntimeError, match=r"X1 and X2 must have the same number of columns. X1: 2 X2: 3"):
        torch.cdist(torch.ones(1, 2), torch.ones(1, 3))
