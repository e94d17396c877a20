"""The generator's commands. All file access is here.

python -m codegen generate [--out DIR] [--torch-version X]   write generated/
python -m codegen dashboard                                   coverage-report/index.html and docs/coverage.md
python -m codegen derivatives                                 nodes whose formulas still call something that is missing
python -m codegen show OP                                     one operator: schema, way, slot, today's refusal
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from codegen import claims, dashboard, names, upstream
from codegen.derivatives import Derivatives
from codegen.emit import Emitter
from codegen.model import Surface, load

ROOT = Path(__file__).resolve().parents[1]


def surface() -> Surface:
    """The pinned upstream's operators; fetches its Python tree when it isn't there."""
    version = upstream.read_pin().version
    return load(upstream.fetch(version), version)


def write_changed(files: dict[str, str], out: Path) -> list[str]:
    """Writes what differs and removes what is no longer generated, so that nothing unchanged recompiles."""
    changed = []
    for name, text in sorted(files.items()):
        path = out / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        changed.append(name)
    for path in sorted(out.rglob("*")) if out.exists() else ():
        if path.is_file() and path.relative_to(out).as_posix() not in files:
            path.unlink()
            changed.append(f"-{path.relative_to(out)}")
    return changed


def difference(before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]) -> list[str]:
    """What changed between two manifests' operators, for the reader of a bump or of a new kernel."""
    lines = [f"added           {name}" for name in sorted(after.keys() - before.keys())]
    lines += [f"removed         {name}" for name in sorted(before.keys() - after.keys())]
    for name in sorted(before.keys() & after.keys()):
        was, now = before[name], after[name]
        if was.get("schema") != now["schema"]:
            lines.append(f"schema changed  {name}")
        if was["way"] != now["way"]:
            what = "now refused" if now["way"] == "refuse" else "now served"
            lines.append(f"{what:<15} {name}" + (f": {now['reason']}" if now["way"] == "refuse" else f": {now['way']}"))
        elif {k: v for k, v in was.items() if k != "schema"} != {k: v for k, v in now.items() if k != "schema"}:
            lines.append(f"changed         {name}")
    return lines


def generate(args: argparse.Namespace) -> int:
    if args.torch_version:
        upstream.pin(args.torch_version)
    manifest = args.out / "manifest.json"
    before = json.loads(manifest.read_text())["ops"] if manifest.exists() else {}
    plan = claims.plan(surface(), ROOT / "kernels")
    files = Emitter(plan).files(names.files())
    changed = write_changed(files, args.out)
    after = json.loads(files["manifest.json"])["ops"]
    for line in difference(before, after):
        print(line)
    counts = f"{len(plan.served)} operators served, {len(plan.python)} by decomposition, {len(plan.refused)} refused"
    print(f"{counts}; {len(changed)} files changed")
    return 0


def show(args: argparse.Namespace) -> int:
    plan = claims.plan(surface(), ROOT / "kernels")
    found = [op for op in plan.surface.ops if args.op in (op.full, op.name, op.name.rstrip("_"))]
    if not found:
        print(f"show: expected an operator of upstream {plan.surface.version}, got '{args.op}'", file=sys.stderr)
        return 1
    for op in found:
        served = plan.served.get(op.full)
        by_python = plan.python.get(op.full)
        state = f"{served.claim.way} ({served.claim.where}, form {served.form})" if served else plan.refused.get(op.full, "")
        state = f"upstream's decomposition ({by_python.where})" if by_python else state
        print(f"{op.schema}\n  kind {op.kind}, keys {' '.join(op.keys)}, tags {' '.join(op.tags) or '-'}")
        print(f"  {'served: ' if served or by_python else 'refused: '}{state}\n  C++ {op.signature}")
    return 0


def derivatives(args: argparse.Namespace) -> int:
    for line in Derivatives(claims.plan(surface(), ROOT / "kernels")).report():
        print(line)
    return 0


def write_dashboard(args: argparse.Namespace) -> int:
    for name, text in dashboard.render(ROOT).items():
        (ROOT / name).write_text(text, encoding="utf-8")
        print(f"wrote {name}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="codegen", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("generate")
    make.add_argument("--out", type=Path, default=ROOT / "generated")
    make.add_argument("--torch-version", default="")
    one = commands.add_parser("show")
    one.add_argument("op")
    commands.add_parser("dashboard")
    commands.add_parser("derivatives")
    args = parser.parse_args()
    try:
        run = {"generate": generate, "show": show, "dashboard": write_dashboard, "derivatives": derivatives}
        return run[args.command](args)
    except claims.ClaimError as error:
        print(error, file=sys.stderr)
        return 1
