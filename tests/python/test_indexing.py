"""Tensor.__getitem__ and __setitem__: shapes, strides, aliasing and errors as upstream's."""

import pytest
import torch


def sample():
    return torch.tensor([float(i) for i in range(24)]).view(2, 3, 4)


@pytest.mark.parametrize(
    "index,shape",
    [
        (0, (3, 4)),
        ((0, 1), (4,)),
        ((None, 0, None), (1, 1, 3, 4)),
        ((..., 0), (2, 3)),
        ((slice(None), slice(None, None, 2)), (2, 2, 4)),
        (True, (1, 2, 3, 4)),
        (False, (0, 2, 3, 4)),
        ((0, True), (1, 3, 4)),
    ],
)
def test_basic(index, shape):
    x = sample()
    assert tuple(x[index].shape) == shape


@pytest.mark.parametrize(
    "index,error,message",
    [
        (5, IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        ((0, 5), IndexError, "index 5 is out of bounds for dimension 1 with size 3"),
        ((0, 0, 0, 0), IndexError, "too many indices for tensor of dimension 3"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (1.5, IndexError, r"valid indices \(got float\)"),
        ("a", TypeError, "new\\(\\): invalid data type 'str'"),
    ],
)
def test_errors(index, error, message):
    with pytest.raises(error, match=message):
        sample()[index]


def test_views_share_memory():
    x = sample()
    x[0, 1] = 7
    assert x[0, 1].tolist() == [7.0] * 4
    assert x[:, :].data_ptr() == x.data_ptr() and x[:, :] is not x


def test_assignment_errors():
    x = sample()
    with pytest.raises(TypeError, match="can't assign a list to a torch.FloatTensor"):
        x[0] = [1, 2, 3]
    with pytest.raises(TypeError, match="Tensor does not support deleting items"):
        del x[0]
