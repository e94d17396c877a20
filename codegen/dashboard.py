"""Coverage as pages: the manifest says what is built, the recorded run what was reached and what agrees with upstream."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

GRADES = ("agrees", "differs", "built", "refused")
ORDERS = {"first": "grad", "second": "grad²", "tangent": "jvp"}
# dtypes in the order of their columns, by the names of the claims
DTYPES = {
    "float32": "f32", "float64": "f64", "bfloat16": "bf16", "float16": "f16", "int64": "i64", "int32": "i32", "int16": "i16",
    "int8": "i8", "uint8": "u8", "bool": "bool", "complex64": "c64", "complex128": "c128", "complex32": "c32",
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One operator."""

    name: str
    family: str
    way: str
    grade: str
    demand: int  # transformers architectures that reach it
    reason: str
    dtypes: dict[str, str]  # dtype -> agrees, differs, refused
    gradients: dict[str, str]  # order -> the same


def cell(counts: list[int]) -> str:
    """[agree, differ, refused, error, crash] of one operator and dtype."""
    agree, differ, refused, error, crash = counts
    if differ or error or crash:
        return "differs"
    return "refused" if refused else "agrees" if agree else ""


def gradient_cell(counts: list[int]) -> str:
    """[agree, differ, refused, error, crash, forward, unsent] of one operator's gradients in one order."""
    return cell(counts[:5])


def grade(way: str, dtypes: Iterable[str]) -> str:
    states = set(dtypes)
    if way == "refuse":
        return "refused"
    if "differs" in states:
        return "differs"
    return "agrees" if "agrees" in states else "built"


def demand_of(path: Path) -> dict[str, tuple[str, int]]:
    """Operator -> (family, architectures)."""
    lines = [line.split("\t") for line in path.read_text().splitlines() if not line.startswith("#")][1:]
    return {line[0]: (line[1], int(line[2] or 0)) for line in lines}


def rows(
    manifest: dict[str, Any],
    grades: dict[str, Any],
    demand: dict[str, tuple[str, int]],
    gradients: dict[str, Any] | None = None,
) -> list[Row]:
    derived = gradients["ops"] if gradients else {}
    found = []
    for name, entry in sorted(manifest["ops"].items()):
        family, architectures = demand.get(name, ("-", 0))
        dtypes = {d: s for d, counts in grades["ops"].get(name, {}).items() if (s := cell(counts))}
        reason = entry.get("reason", "")
        orders = {o: s for o, counts in derived.get(name, {}).items() if (s := gradient_cell(counts))}
        found.append(
            Row(name, family, entry["way"], grade(entry["way"], dtypes.values()), architectures, reason, dtypes, orders)
        )
    return found


@dataclass(frozen=True)
class Total:
    label: str
    counts: tuple[int, ...]  # by GRADES

    @property
    def all(self) -> int:
        return sum(self.counts)

    @property
    def shares(self) -> list[tuple[str, int, float]]:
        """(grade, count, percent) for bars and tables."""
        return [(g, n, 100 * n / self.all if self.all else 0.0) for g, n in zip(GRADES, self.counts, strict=True)]


def total(label: str, chosen: Iterable[Row]) -> Total:
    counts = Counter(r.grade for r in chosen)
    return Total(label, tuple(counts[g] for g in GRADES))


def totals(found: list[Row]) -> dict[str, list[Total]]:
    families = sorted({r.family for r in found})
    asked = [("all operators", 0), ("reached by a transformers architecture", 1)]
    asked += [(f"by {n} or more", n) for n in (10, 100, 400)]
    return {
        "demand": [total(label, (r for r in found if r.demand >= least)) for label, least in asked],
        "family": [total(f, (r for r in found if r.family == f)) for f in families],
    }


def next_wanted(found: list[Row], count: int = 25) -> list[Row]:
    """What workloads ask for most among all that doesn't agree yet."""
    open_rows = [r for r in found if r.grade != "agrees" and r.demand]
    return sorted(open_rows, key=lambda r: (-r.demand, r.name))[:count]


def compact(found: list[Row]) -> str:
    """The per-operator table for the page's script: one list a row; a dtype's state by its first letter."""

    def letters(r: Row) -> str:
        states = [r.dtypes.get(d, " ") for d in DTYPES] + [r.gradients.get(o, " ") for o in ORDERS]
        return "".join(s[0] for s in states)

    families = sorted({r.family for r in found})
    table = [[r.name, families.index(r.family), r.way, GRADES.index(r.grade), r.demand, letters(r), r.reason] for r in found]
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in table)
    return f'{{"families": {json.dumps(families)}, "rows": [\n{lines}\n]}}'.replace("</", "<\\/")


@dataclass(frozen=True)
class Gradients:
    """One order of the recorded comparison of gradients."""

    order: str
    agree: int  # OpInfos whose samples all agree
    compared: int  # OpInfos that agree forward in these samples and have gradients
    wrong: list[tuple[str, list[int], str]]

    @property
    def share(self) -> float:
        return 100 * self.agree / self.compared if self.compared else 0.0


def gradients_of(recorded: dict[str, Any], order: str) -> Gradients:
    agree, wrong = 0, []
    for name, entry in sorted(recorded["opinfos"].items()):
        counts = entry.get(order)
        if not counts or counts[5] or not any(counts[:5]):
            continue
        if any(counts[1:5]):
            wrong.append((name, counts, entry["what"][order].replace("|", "\\|")))
        else:
            agree += 1
    return Gradients(order, agree, agree + len(wrong), wrong)


def render(root: Path) -> dict[str, str]:
    """Path -> text of the pages, from what is recorded under the root."""
    report = root / "coverage-report"
    manifest = json.loads((root / "generated" / "manifest.json").read_text())
    recorded = report / "grades.json"
    grades = json.loads(recorded.read_text()) if recorded.exists() else {"ops": {}, "opinfos": {}}
    derived = json.loads((report / "gradients.json").read_text()) if (report / "gradients.json").exists() else None
    found = rows(manifest, grades, demand_of(report / "demand.tsv"), derived)
    samples = Counter[str]()
    for entry in grades["opinfos"].values():
        samples.update(dict(zip(("agree", "differ", "refused", "error", "crash", "unsent"), entry["counts"], strict=True)))
    context = {
        "upstream": manifest["summary"]["upstream"],
        "grades": GRADES,
        "dtypes": [*DTYPES.values(), *ORDERS.values()],
        "gradients": [gradients_of(derived, order) for order in ORDERS] if derived else [],
        "totals": totals(found),
        "wanted": next_wanted(found),
        "samples": samples,
        "opinfos": len(grades["opinfos"]),
        "whole": sum(e["counts"][0] == sum(e["counts"][:5]) > 0 for e in grades["opinfos"].values()),
        "wrong": [
            (name, e["counts"], e["first"].replace("|", "\\|"))
            for name, e in sorted(grades["opinfos"].items())
            if e["counts"][1] or e["counts"][3] or e["counts"][4]
        ],
        "table": compact(found),
    }
    loader = jinja2.FileSystemLoader(root / "templates")
    env = jinja2.Environment(loader=loader, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
                             keep_trailing_newline=True)  # fmt: skip
    pages = {"coverage-report/index.html": "dashboard.html.j2", "docs/coverage.md": "coverage.md.j2"}
    return {path: env.get_template(template).render(context) for path, template in pages.items()}
