"""The comparison with upstream, driven: samples, answers, verdicts, grades. Needs no torch itself.

    python tests/agree/harness.py [--op OP]... [--gradients] [--oracle PYTHON] [--python PYTHON] [--jobs N] [--record]

Everything lies in build/agree and is kept: samples as long as upstream's version and our sampler stay, answers as long as the
binary under test stays. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradient_grades import GradientGrades

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GRADES = ROOT / "coverage-report" / "grades.json"
GRADIENTS = ROOT / "coverage-report" / "gradients.json"
STATES = ("agree", "differ", "refused", "error", "crash", "unsent")
WRONG = ("differ", "error", "crash")


def file_of(name: str) -> str:
    """OpInfos are called 'name/variant'; their files 'name@variant'."""
    return name.replace("/", "@")


@dataclass
class Harness:
    """One comparison: which interpreters, and where its files are."""

    oracle: str
    python: str
    jobs: int = 2
    work: Path = ROOT / "build" / "agree"
    log: Any = field(default=None, repr=False)
    sampler: str = "oracle.py"  # or gradient_oracle.py

    def _run(self, python: str, script: str, *args: str) -> str:
        env = dict(os.environ)
        if python == self.oracle:
            env.pop("PYTHONPATH", None)  # our tree must not shadow upstream's torch
        env |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "KINETO_LOG_LEVEL": "99"}
        done = subprocess.run([python, str(HERE / script), *args], env=env, capture_output=True, text=True)
        with (self.work / "log.txt").open("a") as log:
            log.write(f"== {script} {' '.join(args)}\n{done.stderr}")
        if done.returncode:
            raise RuntimeError(f"{script}: expected exit code 0, got {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout

    def prepare(self) -> None:
        """Drops what an earlier upstream, sampler or binary has left."""
        self.work.mkdir(parents=True, exist_ok=True)
        (self.work / "log.txt").unlink(missing_ok=True)
        files = ["wire.py", "program.py", "oracle.py"]
        files += ["gradients.py", self.sampler] if self.sampler != "oracle.py" else []
        source = b"".join((HERE / f).read_bytes() for f in files)
        source += (ROOT / "upstream.toml").read_bytes()
        self._keep("samples", hashlib.sha256(source).hexdigest())
        self._keep("answers", self._binary())
        rule = hashlib.sha256((HERE / "judge.py").read_bytes()).hexdigest()
        if not (self.work / "rule.of").exists() or (self.work / "rule.of").read_text() != rule:
            for old in (self.work / "answers").glob("*.verdicts"):
                old.unlink()
            (self.work / "rule.of").write_text(rule)

    def _binary(self) -> str:
        code = "import torch._C as c, hashlib; print(hashlib.sha256(open(c.__file__, 'rb').read()).hexdigest())"
        done = subprocess.run([self.python, "-c", code], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"agree: expected an importable torch in {self.python}, got {done.stderr[-1500:]}")
        return done.stdout.strip() + hashlib.sha256((self.work / "samples.of").read_bytes()).hexdigest()

    def _keep(self, kind: str, stamp: str) -> None:
        mark = self.work / f"{kind}.of"
        if not mark.exists() or mark.read_text() != stamp:
            shutil.rmtree(self.work / kind, ignore_errors=True)
            mark.write_text(stamp)
        (self.work / kind).mkdir(exist_ok=True)

    def names(self, wanted: Iterable[str]) -> list[str]:
        """The OpInfos that an operator's name means: by last part, alias or the whole name; all for none."""
        listing = self.work / "samples" / "list.json"
        if not listing.exists():
            lines = [line for line in self._run(self.oracle, "oracle.py", "list").splitlines() if line.startswith("{")]
            listing.write_text("\n".join(lines))
        known = [json.loads(line) for line in listing.read_text().splitlines()]
        wanted = [w.removeprefix("aten::").partition(".out")[0] for w in wanted]
        if not wanted:
            return [k["name"] for k in known]
        return [k["name"] for k in known if any(self._means(w, k) for w in wanted)]

    @staticmethod
    def _means(wanted: str, known: dict[str, Any]) -> bool:
        base = known["name"].partition("/")[0]
        names = {known["name"], base, base.rpartition(".")[2], base.replace(".", "_"), *known["aliases"]}
        return bool(names & {wanted, wanted.rstrip("_"), wanted.partition(".")[0]})

    def run(self, names: list[str]) -> Iterator[list[dict[str, Any]]]:
        """The verdicts of each OpInfo, as they come."""
        with ThreadPoolExecutor(self.jobs) as pool:
            size = max(1, min(48, len(names) // (2 * self.jobs)))
            chunks = [names[i : i + size] for i in range(0, len(names), size)]
            for part in pool.map(self._chunk, chunks):
                yield from part

    def _chunk(self, names: list[str]) -> list[list[dict[str, Any]]]:
        samples, answers = self.work / "samples", self.work / "answers"
        todo = [n for n in names if not (samples / f"{file_of(n)}.samples").exists()]
        if todo:
            self._run(self.oracle, self.sampler, "sample", "--out", str(samples), *todo)
        have = [n for n in names if (samples / f"{file_of(n)}.samples").exists()]
        places = ["--samples", str(samples)]
        todo = [file_of(n) for n in have if not (answers / f"{file_of(n)}.answers").exists()]
        if todo:
            self._run(self.python, "subject.py", *places, "--out", str(answers), *todo)
        todo = [file_of(n) for n in have if not (answers / f"{file_of(n)}.verdicts").exists()]
        if todo:
            judged = self._run(self.oracle, "judge.py", *places, "--answers", str(answers), *todo)
            by_op: dict[str, list[str]] = defaultdict(list)
            for line in judged.splitlines():
                by_op[file_of(json.loads(line)["op"])].append(line)
            for name in todo:
                (answers / f"{name}.verdicts").write_text("\n".join(by_op[name]))
        lost = [[{"op": n, "dtype": "-", "leg": "sampling", "n": 0, "overloads": [], "status": "unsent",
                  "what": "upstream's samples could not be made"}] for n in names if n not in have]  # fmt: skip
        read = [(answers / f"{file_of(n)}.verdicts").read_text().splitlines() for n in have]
        return lost + [[json.loads(line) for line in lines] for lines in read]


@dataclass
class Grades:
    """What the verdicts say about each OpInfo and each operator."""

    opinfos: dict[str, Counter[str]] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)
    cells: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)  # operator -> dtype -> states

    def add(self, verdicts: list[dict[str, Any]]) -> None:
        for v in verdicts:
            counts = self.opinfos.setdefault(v["op"], Counter())
            counts[v["status"]] += 1
            worst = {s: i for i, s in enumerate(("crash", "error", "differ", "refused"))}
            if v["status"] in worst:
                text = f"{v['status']}: {v['leg']} {v['dtype']} sample {v['n']}: {v['what'].splitlines()[0][:200]}"
                old = self.first.get(v["op"], "refused:").partition(":")[0]
                if v["op"] not in self.first or worst[v["status"]] < worst[old]:
                    self.first[v["op"]] = text
            for overload in v["overloads"] if v["dtype"] != "-" else ():
                self.cells.setdefault(overload, {}).setdefault(v["dtype"], Counter())[v["status"]] += 1

    def wrong(self) -> list[str]:
        return [f"{n}: {self.first[n]}" for n, counts in self.opinfos.items() if any(counts[s] for s in WRONG)]

    def document(self, upstream: str) -> dict[str, Any]:
        """The recorded form, sorted: [agree, differ, refused, error, crash] for each operator and dtype."""
        row = lambda c: [c[s] for s in STATES[:5]]  # noqa: E731
        return {
            "upstream": upstream,
            "states": STATES[:5],
            "ops": {o: {d: row(c) for d, c in sorted(by.items())} for o, by in sorted(self.cells.items())},
            "opinfos": {
                name: {"counts": [counts[s] for s in STATES]} | ({"first": self.first[name]} if name in self.first else {})
                for name, counts in sorted(self.opinfos.items())
            },
        }

    def lines(self) -> Iterator[str]:
        yield f"{'OpInfo':<48}" + "".join(f"{s:>9}" for s in STATES)
        total: Counter[str] = Counter()
        for name, counts in sorted(self.opinfos.items()):
            total += counts
            yield f"{name:<48}" + "".join(f"{counts[s] or '':>9}" for s in STATES) + f"  {self.first.get(name, '')}"
        yield f"{'all':<48}" + "".join(f"{total[s]:>9}" for s in STATES)


def write_grades(document: dict[str, Any], path: Path = GRADES) -> None:
    """One line for each operator, so that a change of grades is a diff that people can read."""
    compact = lambda x: json.dumps(x, separators=(",", ":"))  # noqa: E731
    part = lambda key: ",\n".join(f"  {json.dumps(k)}: {compact(v)}" for k, v in document[key].items())  # noqa: E731
    path.parent.mkdir(exist_ok=True)
    head = f'{{"upstream": {json.dumps(document["upstream"])}, "states": {compact(document["states"])},\n'
    path.write_text(f'{head} "ops": {{\n{part("ops")}\n }},\n "opinfos": {{\n{part("opinfos")}\n }}}}\n')


def lost(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What agreed in a recorded run and does no longer: 'operator dtype'."""
    out = []
    for op, by in new["ops"].items():
        for dtype, now in by.items():
            was = old["ops"].get(op, {}).get(dtype)
            if was and was[0] == sum(was) and now[0] != sum(now):
                out.append(f"{op} {dtype}: all {was[0]} samples agreed, now {dict(zip(STATES, now, strict=False))}")
    return out


def gradient_harness(oracle: str, python: str, jobs: int, work: Path = ROOT / "build" / "agree") -> Harness:
    """The comparison of gradients, its files beside those of the results."""
    return Harness(oracle, python, jobs, work / "gradients", sampler="gradient_oracle.py")


def upstream_version() -> str:
    lines = (ROOT / "upstream.toml").read_text().splitlines()
    return next(line for line in lines if line.startswith("version")).split('"')[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--op", action="append", default=[])
    parser.add_argument("--oracle", default=os.environ.get("TN_ORACLE", str(ROOT / "build/oracle/bin/python")))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "agree")
    parser.add_argument("--record", action="store_true", help="write coverage-report/grades.json (whole runs)")
    parser.add_argument("--gradients", action="store_true", help="compare gradients; --record writes gradients.json")
    args = parser.parse_args()
    harness: Harness = Harness(args.oracle, args.python, args.jobs, args.work)
    grades: Grades | GradientGrades = Grades()
    if args.gradients:
        harness, grades = gradient_harness(args.oracle, args.python, args.jobs, args.work), GradientGrades()
    harness.prepare()
    for verdicts in harness.run(harness.names(args.op)):
        grades.add(verdicts)
        name = verdicts[0]["op"] if verdicts else "?"
        print(f"{name}: {dict(Counter(v['status'] for v in verdicts))}", flush=True)
    print("\n".join(grades.lines()))
    if args.record:
        write_grades(grades.document(upstream_version()), GRADIENTS if args.gradients else GRADES)
    return int(bool(grades.wrong()))


if __name__ == "__main__":
    sys.exit(main())
