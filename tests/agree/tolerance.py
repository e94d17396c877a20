"""The tolerance rule for lists of Python floats, where an answer of upstream is kept in a file. judge.py has it for tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence

FLOOR = 4.0  # units in the last place of float32
NEIGHBOURS, SHARE = 8, 16  # as in judge.py


def ulp32(x: float) -> float:
    return 2.0 ** (max(math.frexp(x)[1] - 1, -126) - 23)


def excess(ours: Sequence[float], theirs: Sequence[float], wide: Sequence[float]) -> float:
    """The largest share of the allowance that any element takes: agreement is at most 1. NaN and infinities are exact."""
    if not len(ours) == len(theirs) == len(wide):
        return math.inf
    order = sorted(range(len(wide)), key=lambda i: abs(wide[i]))
    off = [abs(theirs[i] - wide[i]) if math.isfinite(theirs[i]) and math.isfinite(wide[i]) else 0.0 for i in order]
    side = max(NEIGHBOURS, len(order) // SHARE)
    worst = 0.0
    for k, i in enumerate(order):
        if not (math.isfinite(ours[i]) and math.isfinite(wide[i]) and math.isfinite(theirs[i])):
            if ours[i] != theirs[i] and not (math.isnan(ours[i]) and math.isnan(theirs[i])):
                return math.inf
            continue
        near = max(off[max(0, k - side) : k + side + 1])
        worst = max(worst, abs(ours[i] - wide[i]) / (2 * near + FLOOR * ulp32(wide[i])))
    return worst
