"""Inputs that once killed the process, and memory that must not be written."""

import math

from canonical import case, err, vals

inf, nan = math.inf, math.nan


@case("in-place on expanded memory is refused; overlapping operands too", "pytorch/pytorch#17935")
def inplace_overlap():
    import torch

    y = torch.tensor(math.pi / 4).expand(3)
    a = torch.ones(1, 2)
    b = torch.arange(6.0)
    return [
        vals(y.cos()),
        err(lambda: y.cos_()),
        err(lambda: y.add_(1)),
        err(lambda: y.copy_(torch.zeros(3))),
        err(lambda: torch.ones(3).expand(2, 3).fill_(1)),
        err(lambda: a.sub_(a[:, :1])),
        err(lambda: b[1:].add_(b[:-1])),
        err(lambda: torch.add(b[:-1], 1, out=b[1:])),
        err(lambda: b.add_(b).tolist()),
        err(lambda: y.zero_()),
        err(lambda: torch.zeros(2, 1).expand(2, 2).mul_(2)),
        err(lambda: torch.arange(4.0).as_strided((3, 2), (1, 1)).mul_(2).tolist()),
        err(lambda: torch.arange(4.0).unfold(0, 2, 2).mul_(2).tolist()),
    ]
