"""NaN and order: min, max, sort, topk, unique, quantile, histograms, search."""

import math

from canonical import T, case, err, num, vals

inf, nan = math.inf, math.nan


@case("min, max, minimum, maximum, fmin, fmax with NaN on either side, short and long", "pytorch/pytorch#32438")
def binary_min_max_nan():
    import torch

    out = []
    for n in (1, 35):
        a, b = torch.zeros(n), torch.full((n,), nan)
        for d in (torch.float32, torch.bfloat16, torch.float64):
            x, y = a.to(d), b.to(d)
            for f in (torch.min, torch.max, torch.minimum, torch.maximum, torch.fmin, torch.fmax):
                out += [num(f(x, y)[-1].item()), num(f(y, x)[-1].item())]
    return out


@case("stable sort: ties keep their order both ways, NaN after inf, 0-dim and empty", "pytorch/pytorch#22393")
def stable_sort():
    import torch

    x = torch.tensor([9, 6, 2, 2, 3, 2, 1, 1, 3, 2, 1, 1, 2, 2, 2, 3] * 3)
    f = torch.tensor([1.0, nan, -inf, inf, nan, 0.0, -0.0])
    a, d = x.sort(stable=True), x.sort(stable=True, descending=True)
    m = x.reshape(6, 8).t()
    return [
        vals(a.indices),
        vals(d.indices),
        vals(f.sort(stable=True).indices),
        vals(f.sort(stable=True, descending=True).indices),
        vals(f.sort(descending=True).values),
        vals(m.sort(dim=0, stable=True).indices),
        vals(torch.argsort(m, dim=1, stable=True)),
        [T(t) for t in torch.tensor(4.0).sort()],
        [list(t.shape) for t in torch.zeros(0, 3).sort(0)],
        vals(torch.tensor([True, False, True]).sort(stable=True).indices),
        err(lambda: torch.zeros(2, dtype=torch.complex64).sort()),
    ]
