"""What the verdicts on gradients say about each OpInfo and each operator. Needs no torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

# 'forward': the results themselves differ or are refused, so that there is no gradient to compare.
STATES = ("agree", "differ", "refused", "error", "crash", "forward", "unsent")
ORDERS = ("first", "second", "tangent")
WRONG = ("differ", "refused", "error", "crash")


@dataclass
class GradientGrades:
    """Counts by order; an OpInfo agrees in an order when each sample that agrees forward does."""

    opinfos: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)
    first: dict[str, dict[str, str]] = field(default_factory=dict)
    cells: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)  # operator -> order -> states

    def add(self, verdicts: list[dict[str, Any]]) -> None:
        for v in verdicts:
            order = v["leg"] if v["leg"] in ORDERS else "first"
            self.opinfos.setdefault(v["op"], {}).setdefault(order, Counter())[v["status"]] += 1
            if v["status"] in WRONG:
                text = f"{v['status']}: {v['leg']} {v['dtype']} sample {v['n']}: {v['what'].splitlines()[0][:200]}"
                self.first.setdefault(v["op"], {}).setdefault(order, text)
            for overload in v["overloads"]:
                self.cells.setdefault(overload, {}).setdefault(order, Counter())[v["status"]] += 1

    def wrong(self) -> list[str]:
        return [f"{name} ({order}): {text}" for name, by in sorted(self.first.items()) for order, text in sorted(by.items())]

    def agreeing(self, order: str) -> tuple[int, int]:
        """(OpInfos whose samples all agree, OpInfos that can be compared: no sample differs forward)."""
        counts = [by[order] for by in self.opinfos.values() if order in by]
        compared = [c for c in counts if not c["forward"] and any(c[s] for s in (*WRONG, "agree"))]
        return sum(not any(c[s] for s in WRONG) for c in compared), len(compared)

    def document(self, upstream: str) -> dict[str, Any]:
        """The recorded form, sorted: a list by STATES for each operator or OpInfo and order."""
        row = lambda by: {o: [by[o][s] for s in STATES] for o in ORDERS if o in by}  # noqa: E731
        return {
            "upstream": upstream,
            "states": STATES,
            "ops": {o: row(by) for o, by in sorted(self.cells.items())},
            "opinfos": {
                name: row(by) | ({"what": self.first[name]} if name in self.first else {})
                for name, by in sorted(self.opinfos.items())
            },
        }

    def lines(self) -> Iterator[str]:
        yield f"{'OpInfo':<44}{'order':>8}" + "".join(f"{s:>9}" for s in STATES)
        for name, by in sorted(self.opinfos.items()):
            for order, counts in sorted(by.items()):
                numbers = "".join(f"{counts[s] or '':>9}" for s in STATES)
                yield f"{name:<44}{order:>8}{numbers}  {self.first.get(name, {}).get(order, '')}"
        for order in ORDERS:
            good, all_ = self.agreeing(order)
            yield f"{order}: {good} of {all_} OpInfos that agree forward agree in gradients"


def lost(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What agreed in a recorded run and does no longer."""
    out = []
    for op, by in new["ops"].items():
        for order, now in by.items():
            was = old["ops"].get(op, {}).get(order)
            if was and not any(was[1:6]) and was[0] and any(now[1:6]):
                out.append(f"{op}, {order} order: {was[0]} samples agreed, now {dict(zip(STATES, now, strict=True))}")
    return out
