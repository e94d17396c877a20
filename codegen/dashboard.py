"""The coverage dashboard: what the manifest says of each family, and why the rest is refused."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

WAYS = ("pointwise", "structured", "raw", "compose", "python")


def render(manifest: dict, grades: dict) -> str:
    """Markdown. `grades` maps 'op' to its recorded grade; empty until a comparison was recorded."""
    families: dict[str, Counter[str]] = defaultdict(Counter)
    reasons: Counter[str] = Counter()
    for row in manifest["ops"].values():
        if row["way"] == "refuse":
            reasons[row["reason"]] += 1
        else:
            families[row["family"]][row["way"]] += 1
    summary = manifest["summary"]
    total = len(manifest["ops"])
    lines = [
        f"# Coverage of upstream {summary['upstream']}",
        "",
        f"{total} operator overloads: {total - summary['refused']} have a kernel (the grade *builds*), {summary['refused']} refuse by name.",
        f"Grades recorded from comparisons with upstream's samples: {len(grades)}." + ("" if grades else " None is recorded yet."),
        "",
        f"| family | overloads | {' | '.join(WAYS)} |",
        f"| --- | --- | {' | '.join('---' for _ in WAYS)} |",
    ]
    for family, ways in sorted(families.items()):
        lines.append(f"| {family} | {ways.total()} | {' | '.join(str(ways[w]) for w in WAYS)} |")
    lines += ["", "| refused because | overloads |", "| --- | --- |"]
    lines += [f"| {reason} | {count} |" for reason, count in reasons.most_common()]
    return "\n".join(lines) + "\n"


def write(root: Path) -> Path:
    manifest = json.loads((root / "generated" / "manifest.json").read_text(encoding="utf-8"))
    recorded = root / "coverage-report" / "grades.json"
    grades = json.loads(recorded.read_text(encoding="utf-8")) if recorded.exists() else {}
    path = root / "coverage-report" / "README.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(render(manifest, grades), encoding="utf-8")
    return path
