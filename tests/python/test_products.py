"""Products of matrices whose factor is zero, and convolutions of unequal dtypes."""

import pytest
import torch
import torch.nn.functional as F

NAN = float("nan")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_alpha_zero_leaves_the_product_out(dtype):
    a, b, one = torch.ones(2, 3, dtype=dtype), torch.full((3, 2), NAN, dtype=dtype), torch.ones(2, 2, dtype=dtype)
    for addend in (one, one[0]):
        assert torch.equal(torch.addmm(addend, a, b, alpha=0), one)
        assert torch.equal(torch.addmm(addend, a, b, alpha=0, beta=2), 2 * one)
    assert torch.equal(torch.addmv(one[0], a, b[:, 0], alpha=0), one[0])
    big = torch.ones(2, 20, 20, dtype=dtype)
    assert torch.equal(torch.baddbmm(big, big, big * NAN, alpha=0), big)


def test_upstream_s_loops_multiply_by_zero_alpha():
    one = torch.ones(1, 2, 2)
    assert torch.baddbmm(one, one, one * NAN, alpha=0).isnan().all()
    assert torch.addmm(one[0].bfloat16(), one[0].bfloat16(), one[0].bfloat16() * NAN, alpha=0).isnan().all()
    assert torch.addr(one[0], one[0, 0], one[0, 0] * NAN, alpha=0).isnan().all()


ONE_DNN = r"Input type \(torch.FloatTensor\) and weight type \(torch.DoubleTensor\) should be the same"
LOOPS = "expected scalar type Float but found Double"


@pytest.mark.parametrize(
    "sizes, weight, groups, message",
    [
        ((1, 4, 9, 8), (2, 4, 2, 2), 1, LOOPS),
        ((2, 4, 9, 8), (2, 4, 2, 2), 1, ONE_DNN),
        ((1, 4, 9, 8), (2, 4, 4, 4), 1, ONE_DNN),
        ((1, 4, 90, 80), (2, 4, 2, 2), 1, ONE_DNN),
        ((1, 4, 9, 8), (4, 1, 2, 2), 4, ONE_DNN),
    ],
)
def test_convolution_names_both_dtypes(sizes, weight, groups, message):
    with pytest.raises(RuntimeError, match=message):
        F.conv2d(torch.ones(sizes), torch.ones(weight, dtype=torch.float64), groups=groups)
