"""What the reports share: the `case` mark, and the canonical form in which results are recorded and compared.

Nothing here calls into torch beyond `tolist`, `dtype` and `shape`, so that a core with few operators still reaches the
one that a case is about.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CASES: list[Case] = []


@dataclass(frozen=True)
class Case:
    run: Callable[[], Any]
    what: str
    report: str  # repository and number of the public issue
    rtol: float
    atol: float
    right: Any  # the value, or a function that gives it without torch, where upstream isn't the judge
    sz: bool  # whether the sign of zero counts
    timeout: float


def case(
    what: str, report: str, rtol: float = 1e-5, atol: float = 1e-7, right: Any = None, sz: bool = False, timeout: float = 60
):
    """Marks a function of no arguments as a case; `Case` tells what the arguments are."""

    def mark(run: Callable[[], Any]) -> Callable[[], Any]:
        CASES.append(Case(run, what, report, rtol, atol, right, sz, timeout))
        return run

    return mark


def num(x):
    if isinstance(x, bool) or x is None or isinstance(x, (int, str)):
        return x
    if isinstance(x, complex):
        return {"re": num(x.real), "im": num(x.imag)}
    try:
        x = float(x)
    except (TypeError, ValueError):
        return str(x)
    if math.isnan(x):
        return "nan"
    if math.isinf(x):
        return "inf" if x > 0 else "-inf"
    if x == 0.0 and math.copysign(1.0, x) < 0:
        return "-0.0"
    return x


def V(x):
    """Python values, nested."""
    if isinstance(x, dict):
        return {str(k): V(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [V(v) for v in x]
    if hasattr(x, "dtype") and hasattr(x, "tolist"):
        return T(x)
    return num(x)


def T(t):
    """A tensor (or numpy array): dtype, shape, values."""
    dt = str(t.dtype).replace("torch.", "")
    return {"dt": dt, "sh": [int(s) for s in t.shape], "v": V(t.tolist())}


def R(dt, sh, v):
    """The same form, written by hand (for `right`)."""
    return {"dt": dt, "sh": list(sh), "v": V(v)}


def vals(t):
    return V(t.tolist())


def err(f, words=5):
    """Class and first words of what f raises; or its value."""
    try:
        r = f()
    except BaseException as e:  # noqa: BLE001
        if isinstance(e, (KeyboardInterrupt, SystemExit)):
            raise
        first = (str(e).strip().splitlines() or [""])[0]
        return {"err": type(e).__name__, "msg": " ".join(first.split()[:words]), "full": first[:200]}
    return {"ok": V(r)}


def data(shape, dtype=None, a=0.7, b=0.3, scale=1.0):
    """Fixed values that need no random generator."""
    import torch

    n = 1
    for s in shape:
        n *= s
    vals_ = [scale * math.sin(a * i + b + 0.013 * i * i) for i in range(n)]
    return torch.tensor(vals_, dtype=dtype or torch.float32).reshape(shape)


def difference(got: Any, known: Any, case: Case) -> str:
    """Where two canonical results differ and how, or nothing."""
    if isinstance(known, dict):
        if not isinstance(got, dict):
            return f"got {got!r}"
        if "err" in known:
            same = got.get("err") == known["err"] and got.get("msg") == known["msg"]
            return "" if same else f"{got.get('err')}: {got.get('msg')} {got.get('full')} for {known['err']}: {known['msg']}"
        if "err" in got:
            return f"raised {got['err']}: {got.get('full', '')[:200]}"
        if got.keys() != known.keys():
            return f"keys {sorted(got)} for {sorted(known)}"
        parts = [(k, got[k], known[k]) for k in known]
    elif isinstance(known, list):
        if not isinstance(got, list) or len(got) != len(known):
            return f"{str(got)[:80]} for {str(known)[:80]}"
        parts = [(i, a, b) for i, (a, b) in enumerate(zip(got, known, strict=True))]
    else:
        return "" if _same(got, known, case) else f"{got!r} for {known!r}"
    found = ((k, difference(a, b, case)) for k, a, b in parts)
    return next((f"[{k}] {why}" for k, why in found if why), "")


def _same(got: Any, known: Any, case: Case) -> bool:
    if not case.sz:
        got, known = (0.0 if x == "-0.0" else x for x in (got, known))
    inexact = (type(got), type(known)) in ((float, float), (float, int), (int, float))
    if inexact:
        return got == known or abs(got - known) <= case.atol + case.rtol * abs(known)
    return type(got) is type(known) and got == known
