"""Convolution, pooling and resizing: gradients by differences, upstream's errors, formats of results."""

import pytest
import torch
import torch.nn.functional as F


def wave(*shape, dtype=torch.float64):
    count = torch.Size(shape).numel()
    return torch.sin(torch.arange(count, dtype=torch.float64) * 1.7 + count).reshape(shape).to(dtype)


def leaf(*shape):
    return wave(*shape).requires_grad_()


CONVOLUTIONS = [
    (lambda x, w, b: F.conv2d(x, w, b, 2, 1), (2, 2, 5, 4), (4, 2, 3, 3)),
    (lambda x, w, b: F.conv2d(x, w, b, 1, "same", groups=2), (1, 4, 5, 4), (4, 2, 2, 3)),
    (lambda x, w, b: F.conv2d(x, w, b, 2, 1, groups=4), (1, 4, 5, 6), (4, 1, 3, 3)),
    (lambda x, w, b: F.conv1d(x, w, b, 1, 2, 2), (2, 3, 7), (4, 3, 3)),
    (lambda x, w, b: F.conv3d(x, w, b, 2), (1, 2, 3, 4, 3), (4, 2, 2, 2, 2)),
    (lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1, 2), (1, 4, 3, 3), (4, 2, 3, 3)),
]


@pytest.mark.parametrize("function, x, w", CONVOLUTIONS)
def test_gradients_of_convolutions(function, x, w):
    arguments = (leaf(*x), leaf(*w), leaf(4))
    assert torch.autograd.gradcheck(function, arguments, check_undefined_grad=False)
    assert torch.autograd.gradgradcheck(function, arguments, check_undefined_grad=False)


RESIZES = [
    (lambda x: F.max_pool2d(x, 3, 2, 1), (1, 2, 5, 6)),
    (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), (1, 2, 5, 6)),
    (lambda x: F.adaptive_avg_pool2d(x, (2, 3)), (1, 2, 5, 4)),
    (lambda x: F.adaptive_max_pool2d(x, 2), (1, 2, 5, 4)),
    (lambda x: F.max_pool3d(x, 2), (1, 2, 4, 4, 4)),
    (lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), (1, 2, 4, 4)),
    (lambda x: F.interpolate(x, size=(4, 7), mode="bilinear"), (1, 2, 5, 6)),
    (lambda x: F.interpolate(x, scale_factor=1.7, mode="bicubic", align_corners=True), (1, 2, 5, 4)),
    (lambda x: F.interpolate(x, size=(3, 3), mode="bilinear", antialias=True), (1, 2, 7, 8)),
    (lambda x: F.unfold(x, 2, dilation=2, padding=1), (1, 2, 5, 4)),
    (lambda x: F.fold(x, (4, 4), 2), (1, 8, 9)),
    (lambda x: F.pixel_shuffle(x, 2), (1, 8, 2, 3)),
]


@pytest.mark.parametrize("function, x", RESIZES)
def test_gradients_of_windows_and_sizes(function, x):
    assert torch.autograd.gradcheck(function, (leaf(*x),), check_undefined_grad=False)


def test_average_divides_by_what_a_window_covers():
    x = torch.arange(7.0).reshape(1, 1, 7)
    assert F.avg_pool1d(x, 2, 3, ceil_mode=True).tolist() == [[[0.5, 3.5, 6.0]]]


def test_unshuffle_undoes_shuffle():
    x = wave(2, 8, 3, 5)
    assert torch.equal(F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2), x)
    assert F.channel_shuffle(torch.arange(6.0).reshape(1, 6, 1), 2).flatten().tolist() == [0, 3, 1, 4, 2, 5]


def test_formats_follow_the_input_or_the_weight():
    x, w = wave(2, 4, 6, 6, dtype=torch.float32), wave(6, 4, 3, 3, dtype=torch.float32)
    last = dict(memory_format=torch.channels_last)
    for a, b in ((x.contiguous(**last), w), (x, w.contiguous(**last))):
        y = F.conv2d(a, b, padding=1)
        assert y.is_contiguous(**last)
        assert torch.allclose(y, F.conv2d(x, w, padding=1), atol=1e-5)
    assert F.max_pool2d(x.contiguous(**last), 2).is_contiguous(**last)
    assert F.conv2d(x.to("meta").contiguous(**last), w.to("meta")).shape == (2, 6, 4, 4)


ERRORS = [
    (
        lambda x: F.conv2d(x, wave(6, 3, 3, 3)),
        r"Given groups=1, weight of size \[6, 3, 3, 3\], expected input\[2, 4, 6, 6\] to have 3 channels",
    ),
    (lambda x: F.conv2d(x, wave(6, 4, 9, 3)), r"Calculated padded input size per channel: \(6 x 6\)\. Kernel size: \(9 x 3\)"),
    (
        lambda x: F.conv2d(x, wave(6, 4, 3, 3), padding="same", stride=2),
        "padding='same' is not supported for strided convolutions",
    ),
    (lambda x: F.conv2d(x, wave(6, 4, 3, 3), padding=-1), "negative padding is not supported"),
    (
        lambda x: F.conv_transpose2d(x, wave(4, 3, 3, 3), output_padding=2),
        "output padding must be smaller than either stride or dilation",
    ),
    (lambda x: F.max_pool2d(x, 2, 2, 2), "pad should be at most half of effective kernel size"),
    (lambda x: F.avg_pool2d(x, 9), r"Calculated output size: \(4x0x0\)\. Output size is too small"),
    (lambda x: torch.ops.aten.upsample_nearest2d(x, [0, 3]), "Input and output sizes should be greater than 0"),
]


@pytest.mark.parametrize("call, message", ERRORS)
def test_errors_are_upstreams(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(wave(2, 4, 6, 6))
