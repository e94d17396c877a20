"""Pooling, convolution, padding, resizing, grid sampling, normalisation layers."""

import math

from canonical import T, case, data, err, num, vals

inf, nan = math.inf, math.nan


@case(
    "avg_pool with ceil_mode: overhanging windows divide by what they cover",
    "apple/coremltools#2844",
    right=lambda: {
        "a2": [[4.0, 7.0, 9.5], [25.0, 28.0, 30.5], [42.5, 45.5, 48.0]],
        "a1": [0.5, 3.5, 6.0],
        "pad": [0.25, 3.0, 6.0, 6.0],
        "nopad": [0.5, 3.0, 6.0, 6.0],
    },
)
def avg_pool_ceil():
    import torch

    F = torch.nn.functional
    x, y = torch.arange(49.0).reshape(1, 1, 7, 7), torch.arange(7.0).reshape(1, 1, 7)
    z = torch.tensor([[[0.5, 2.0, 4.0, 6.0, 6.0]]])
    p = F.avg_pool1d(z, 2, 2, padding=1, ceil_mode=True)
    q = F.avg_pool1d(z, 2, 2, padding=1, ceil_mode=True, count_include_pad=False)
    r = {"a2": vals(F.avg_pool2d(x, 2, 3, ceil_mode=True)[0, 0]), "a1": vals(F.avg_pool1d(y, 2, 3, ceil_mode=True)[0, 0])}
    r["pad"] = [p[0, 0, 0].item(), p[0, 0, 1].item(), p[0, 0, 2].item(), 6.0]
    r["nopad"] = [q[0, 0, 0].item(), q[0, 0, 1].item(), q[0, 0, 2].item(), 6.0]
    return r


@case(
    "interpolate by a fractional factor samples by the factor; recompute_scale_factor by the size",
    "Tencent/ncnn#6836",
    rtol=1e-5,
)
def interpolate_fraction():
    import torch

    F = torch.nn.functional
    x = data((1, 1, 7, 7))
    o = []
    for m in ("bilinear", "bicubic", "nearest", "nearest-exact", "area"):
        for kw in (
            dict(scale_factor=1.5),
            dict(scale_factor=1.5, recompute_scale_factor=True),
            dict(size=(10, 10)),
            dict(scale_factor=0.6),
        ):
            y = F.interpolate(x, mode=m, **kw)
            o.append([list(y.shape), vals(y[0, 0, 3]), num(y.sum().item())])
    return o + [
        vals(F.interpolate(x[0], scale_factor=1.4, mode="linear")[0, 0]),
        vals(F.interpolate(x[:, :, :3, :3, None].expand(1, 1, 3, 3, 2), scale_factor=1.5, mode="trilinear")[0, 0, 1, 1]),
    ]


@case(
    "conv with non-contiguous weights and inputs, size-one strides, string padding, groups",
    "pytorch/pytorch#16018",
    rtol=1e-4,
    atol=1e-5,
)
def conv_strided():
    import torch

    F = torch.nn.functional
    x, w = data((2, 5, 6, 3)).permute(0, 3, 1, 2), data((3, 3, 3, 4), b=2.0).permute(3, 0, 1, 2)
    eq = torch.allclose(F.conv2d(x, w), F.conv2d(x.contiguous(), w.contiguous()), atol=1e-5)
    z = data((1, 1, 16)).transpose(1, 2)
    k = data((2, 16, 1))
    d = data((1, 4, 9, 8))
    return [
        eq,
        T(F.conv1d(z, k)),
        T(F.conv2d(d, data((4, 1, 3, 3)), padding="same", groups=4, dilation=2)),
        T(F.conv2d(d, data((2, 2, 3, 2)), stride=(2, 3), padding=(1, 0), groups=2)),
        T(F.conv2d(d[0], data((1, 4, 9, 8)))),
        err(lambda: F.conv2d(d, data((2, 4, 2, 2)), padding="same", stride=2)),
        err(lambda: F.conv2d(d, data((2, 3, 2, 2)))),
        err(lambda: F.conv2d(d, data((2, 4, 10, 2)))),
        T(F.conv1d(d[0, :, 0], data((2, 4, 3)), padding=1)),
        T(F.conv3d(d[None], data((1, 1, 2, 2, 2)), stride=3)),
        err(lambda: F.conv2d(d, data((2, 4, 2, 2)).double())),
        T(F.unfold(d[:, :1, :4, :4], 2, stride=2)),
        T(F.fold(F.unfold(d[:, :1, :4, :4], 3), (4, 4), 3)),
    ]


@case("empty batches through conv, pools, norms, linear and their gradients", "pytorch/pytorch#12013")
def empty_batches():
    import torch

    nn = torch.nn
    o = []
    for m, s in (
        (nn.Conv2d(3, 2, 3), (0, 3, 5, 5)),
        (nn.ConvTranspose2d(3, 2, 3), (0, 3, 4, 4)),
        (nn.Linear(3, 2), (0, 3)),
        (nn.LayerNorm(3), (0, 3)),
        (nn.GroupNorm(1, 3), (0, 3, 2)),
        (nn.MaxPool2d(2), (0, 3, 4, 4)),
        (nn.AvgPool2d(2), (0, 3, 4, 4)),
        (nn.AdaptiveAvgPool2d(1), (0, 3, 4, 4)),
        (nn.BatchNorm1d(3), (0, 3)),
        (nn.BatchNorm1d(3), (0, 3, 9)),
        (nn.InstanceNorm1d(3), (0, 3, 4)),
        (nn.Upsample(scale_factor=2), (0, 3, 2, 2)),
        (nn.Embedding(3, 2), None),
        (nn.Softmax(1), (0, 3)),
        (nn.GELU(), (0, 3)),
        (nn.Bilinear(2, 2, 2), "b"),
    ):

        def go():
            if s is None:
                return list(m(torch.zeros(0, 2, dtype=torch.int64)).shape)
            if s == "b":
                return list(m(torch.zeros(0, 2), torch.zeros(0, 2)).shape)
            x = torch.zeros(s, requires_grad=True)
            y = m(x)
            y.sum().backward()
            return [
                list(y.shape),
                list(x.grad.shape),
                [num(p.grad.abs().sum().item()) for p in m.parameters()],
                [vals(b) for b in m.buffers()],
            ]

        o.append(err(go))
    return o
