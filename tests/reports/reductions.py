"""Reductions: precision, empty input, degrees of freedom, matrix products at their edges."""

import math

from canonical import T, case, data, err, num, vals

inf, nan = math.inf, math.nan


@case("mean of float16 and float32 does not overflow in between where upstream does not", "pytorch/pytorch#91597", rtol=1e-3)
def mean_overflow():
    import torch

    return [
        num(torch.ones(100000, dtype=torch.float16).mean().item()),
        num(torch.full((3,), 40000.0, dtype=torch.float16).mean().item()),
        vals(torch.full((3, 3), 40000.0, dtype=torch.float16).mean(1)),
        num(torch.ones(70000, dtype=torch.bfloat16).mean().item()),
        num(torch.full((3,), 3e38).mean().item()),
        num(torch.full((3,), 40000.0, dtype=torch.float16).var().item()),
        num(torch.full((3,), 40000.0, dtype=torch.float16).sum().item()),
    ]


@case("var and std when the correction reaches the count, with one value, with none", "pytorch/pytorch#109186")
def variance_degrees():
    import torch

    x = torch.arange(12.0).reshape(1, 3, 2, 2)
    e = torch.zeros(0)
    return [
        vals(torch.var(x, dim=2, correction=3)),
        vals(torch.var(x, 2, correction=2)),
        vals(torch.std(torch.zeros(2, 1), 1)),
        num(torch.var(torch.tensor(3.0)).item()),
        num(e.var().item()),
        num(e.std(correction=-5).item()),
        num(torch.var(torch.tensor([1.0, inf])).item()),
        vals(torch.var(x, dim=(2, 3), correction=0.5)),
        vals(torch.stack(torch.var_mean(x, dim=1, unbiased=False))),
        err(lambda: torch.arange(3).var()),
        T(torch.var(torch.tensor([1 + 2j, 3 - 1j]))),
        vals(torch.cov(torch.tensor([[1.0, 2, 4], [3, 1, 0]]), correction=0)),
    ]


@case("addmm, baddbmm, addmv, addr, addbmm: beta=0 ignores NaN, alpha=0, inner size 0", "pytorch/pytorch#196596")
def addmm_beta_zero():
    import torch

    n2, n3 = torch.full((2, 2), nan), torch.full((1, 2, 2), nan)
    a, b = torch.ones(2, 3), torch.ones(3, 2)
    r = [
        vals(torch.addmm(n2, a, b, beta=0)),
        vals(torch.baddbmm(n3, a[None], b[None], beta=0)),
        vals(torch.addmv(n2[0], a, b[:, 0], beta=0)),
        vals(torch.addr(n2, a[:, 0], b[0], beta=0)),
        vals(torch.addbmm(n2, a[None], b[None], beta=0)),
        vals(torch.addmm(torch.ones(2), a, b * nan, alpha=0)),
        vals(torch.addmm(torch.ones(2, 2), a[:, :0], b[:0], beta=3)),
        vals(torch.baddbmm(torch.ones(2), a[None, :, :0], b[None, :0], beta=2)),
        vals(a[:, :0] @ b[:0]),
        T(torch.zeros(0, 3) @ b),
        T(torch.zeros(4, 0, 3) @ b),
        T(torch.addmm(torch.ones(1, 2).long(), a.long(), b.long(), beta=2, alpha=3)),
        err(lambda: torch.addmm(torch.ones(1, 2), a.long(), b.long())),
        err(lambda: torch.addmm(torch.ones(3), a, b)),
        err(lambda: torch.addmm(torch.ones(2).long(), a.long(), b.long(), alpha=0.5)),
    ]
    big = torch.full((5, 40, 40), nan)
    x = data((5, 40, 7))
    r.append(bool(torch.isfinite(torch.baddbmm(big, x, x.transpose(1, 2), beta=0)).all()))
    return r
