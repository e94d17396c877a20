"""Softmax family and losses at their edges."""

import math

from canonical import T, V, case, vals

inf, nan = math.inf, math.nan


@case("logcumsumexp with -inf prefixes and runs, and NaN", "pytorch/pytorch#52213")
def logcumsumexp_inf():
    import torch

    x = torch.tensor([[2.0, -inf, -inf, 1, -inf, -inf, 3], [-inf, -inf, 1, -inf, 2, nan, 3], [inf, 1, inf, -inf, 1, 2, 3]])
    return [vals(torch.logcumsumexp(x, 1)), vals(torch.logcumsumexp(x, 0)), T(torch.logcumsumexp(torch.tensor(1.5), 0))]


def _ce(logits, tgt, w, eps, ign, red):
    """Cross entropy with label smoothing, written out in Python."""
    num_, den, each = 0.0, 0.0, []
    C = len(logits[0])
    for row, t in zip(logits, tgt):
        if t == ign:
            each.append(0.0)
            continue
        m = max(row)
        lse = m + math.log(sum(math.exp(v - m) for v in row))
        lp = [v - lse for v in row]
        w_ = w or [1.0] * C
        l = -(1 - eps) * w_[t] * lp[t] - eps / C * sum(a * b for a, b in zip(w_, lp))
        each.append(l)
        num_ += l
        den += w_[t]
    return each if red == "none" else num_ if red == "sum" else (num_ / den if den else nan)


LG = [[1.0, 2.0, -0.5], [3.0, 0.4, 0.1], [-1.0, 0.2, 2.2], [0.3, 0.3, 0.3]]


@case(
    "cross_entropy with weight, label smoothing and ignored rows together",
    "pytorch/pytorch#69339",
    rtol=1e-5,
    right=lambda: [
        V(_ce(LG, t, w, e, -100, r))
        for t in ([-100, 1, 2, 0], [0, 1, 2, 2], [-100] * 4)
        for w in (None, [0.2, 0.3, 1.5])
        for e in (0.0, 0.1)
        for r in ("none", "sum", "mean")
    ],
)
def cross_entropy_smoothing_ignore():
    import torch

    F = torch.nn.functional
    x = torch.tensor(LG)
    return [
        V(
            F.cross_entropy(
                x, torch.tensor(t), weight=None if w is None else torch.tensor(w), label_smoothing=e, reduction=r
            ).tolist()
        )
        for t in ([-100, 1, 2, 0], [0, 1, 2, 2], [-100] * 4)
        for w in (None, [0.2, 0.3, 1.5])
        for e in (0.0, 0.1)
        for r in ("none", "sum", "mean")
    ]
