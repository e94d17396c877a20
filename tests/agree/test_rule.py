"""The comparison itself: upstream against upstream agrees everywhere, and each kind of damage to an answer is found."""

from __future__ import annotations

import copy
import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness import HERE, Grades, Harness

_HEAD = struct.Struct("<IQ")
OPS = ["add", "nn.functional.relu", "sort", "split", "linalg.eigh", "nn.functional.batch_norm", "normal"]


def records(path: Path) -> list[tuple[dict[str, Any], bytes]]:
    """As wire.read_records, without torch."""
    data, at, out = path.read_bytes(), 0, []
    while at < len(data):
        n, m = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        out.append((json.loads(data[at : at + n]), data[at + n : at + n + m]))
        at += n + m
    return out


@pytest.fixture(scope="module")
def upstream_twice(oracle: str, tmp_path_factory: pytest.TempPathFactory) -> Harness:
    harness = Harness(oracle, oracle, 2, tmp_path_factory.mktemp("agree"))
    harness.prepare()
    return harness


def test_upstream_agrees_with_itself(upstream_twice: Harness) -> None:
    grades = Grades()
    for verdicts in upstream_twice.run(upstream_twice.names(OPS)):
        grades.add(verdicts)
    assert len(grades.opinfos) >= len(OPS)
    for name, counts in grades.opinfos.items():
        assert set(counts) <= {"agree", "unsent"}, (name, counts, grades.first[name])
    assert sum(c["agree"] for c in grades.opinfos.values()) > 500
    assert {"add.Tensor", "add_.Tensor", "add.out", "relu"} <= grades.cells.keys()


def first_tensor(v: Any) -> dict[str, Any]:
    if v["$"] == "tensor":
        return v
    return first_tensor(v["v"][0])


def flip_bits(mask: int, of: int) -> Callable[[dict[str, Any], bytearray], None]:
    """Damage to one byte of the first element: `of` counts from its least significant byte."""

    def damage(document: dict[str, Any], blob: bytearray) -> None:
        t = first_tensor(document["value"])
        blob[t["storage"][0] + t["offset"] * 4 + of] ^= mask

    return damage


def change(key: str, make: Callable[[Any], Any]) -> Callable[[dict[str, Any], bytearray], None]:
    def damage(document: dict[str, Any], blob: bytearray) -> None:
        t = first_tensor(document["value"])
        t[key] = make(t[key])

    return damage


def replace(**new: Any) -> Callable[[dict[str, Any], bytearray], None]:
    def damage(document: dict[str, Any], blob: bytearray) -> None:
        document |= new

    return damage


def drop_value(**new: Any) -> Callable[[dict[str, Any], bytearray], None]:
    def damage(document: dict[str, Any], blob: bytearray) -> None:
        for key in ("value", "shares", "changed"):
            document.pop(key, None)
        document |= new

    return damage


DAMAGE = {
    "value": (flip_bits(0x10, 0), "differ", "times the allowance"),
    "exponent": (flip_bits(0x40, 3), "differ", "times the allowance"),
    "nan": (lambda d, b: b.__setitem__(slice(0, 4), b"\0\0\xc0\x7f"), "differ", "values"),
    "stride": (change("stride", lambda s: [x + 1 for x in s]), "differ", "stride"),
    "shape": (change("shape", lambda s: [*s, 1]), "differ", "shape"),
    "dtype": (change("dtype", lambda _: "int32"), "differ", "dtype"),
    "shares": (replace(shares=[0]), "differ", "share memory"),
    "type": (lambda d, b: d.__setitem__("value", {"$": "list", "v": [d["value"]]}), "differ", "list"),
    "written": (lambda d, b: d["changed"].__setitem__("0", d["value"]), "differ", "wrote"),
    "error": (drop_value(raises="builtins.RuntimeError", message="x", refused=False), "error", "RuntimeError"),
    "refusal": (drop_value(raises="builtins.NotImplementedError", message="torchnative: x", refused=True), "refused", ""),
    "crash": (drop_value(crash="crash: SIGSEGV"), "crash", "SIGSEGV"),
}


def verdicts_after(harness: Harness, name: str, pick: Callable[..., bool], damage: Any, to: Path) -> list[dict[str, Any]]:
    """The verdicts on answers of which the picked ones are damaged."""
    list(harness.run([name]))
    file = name.replace("/", "@")
    heads = {h["id"]: h for h, _ in records(harness.work / "samples" / f"{file}.samples")}
    with (to / f"{file}.answers").open("wb") as out:
        for document, blob in records(harness.work / "answers" / f"{file}.answers"):
            if pick(heads[document["id"]], document):
                changed = bytearray(blob)
                document = copy.deepcopy(document)
                damage(document, changed)
                blob = bytes(changed)
            text = json.dumps(document).encode()
            out.write(_HEAD.pack(len(text), len(blob)) + text + blob)
    args = ["--samples", str(harness.work / "samples"), "--answers", str(to), file]
    done = subprocess.run([harness.oracle, str(HERE / "judge.py"), *args], capture_output=True, text=True, env={}, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("kind", DAMAGE)
def test_finds_damage(kind: str, upstream_twice: Harness, tmp_path: Path) -> None:
    damage, status, text = DAMAGE[kind]

    def pick(head: dict[str, Any], answer: dict[str, Any]) -> bool:
        t = answer.get("value")
        picked = head["dtype"] == "float32" and head["leg"] == "function" and isinstance(t, dict) and t["$"] == "tensor"
        return picked and t["shape"] != [] and 0 not in t["shape"]

    found = verdicts_after(upstream_twice, "nn.functional.relu/", pick, damage, tmp_path)
    hit = [v for v in found if v["status"] != "agree"]
    assert hit, f"the {kind} was damaged and nothing noticed"
    assert {v["status"] for v in hit} == {status} and {v["dtype"] for v in hit} == {"float32"}
    assert all(text in v["what"] for v in hit), hit


def test_finds_wrong_error_class(upstream_twice: Harness, tmp_path: Path) -> None:
    def damage(document: dict[str, Any], blob: bytearray) -> None:
        document["raises"] = "builtins.OSError"

    found = verdicts_after(upstream_twice, "masked_fill/", lambda head, answer: "raises" in answer, damage, tmp_path)
    hit = [v for v in found if v["status"] != "agree"]
    assert hit and all("OSError" in v["what"] and v["status"] == "differ" for v in hit)
    assert {v["leg"] for v in hit} >= {"errors"}


def test_a_dead_child_costs_one_sample(tmp_path: Path) -> None:
    """Also a child that hangs, and one that raises; the others are answered."""
    code = (
        "import os, time, forks\n"
        "def work(i):\n"
        "    if i == 2: os.kill(os.getpid(), 11)\n"
        "    if i == 4: time.sleep(30)\n"
        "    if i == 6: raise ValueError('no')\n"
        "    return i * i\n"
        "for item in forks.each(list(range(8)), work, 1.0): print(item)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 8
    assert lines[2] == "(2, None, 'crash: SIGSEGV')" and lines[4] == "(4, None, 'timeout')" and "ValueError" in lines[6]
    assert [lines[i] for i in (0, 1, 3, 5, 7)] == [f"({i}, {i * i}, '')" for i in (0, 1, 3, 5, 7)]


def test_torn_files_end_at_the_last_whole_record(upstream_twice: Harness, oracle: str, tmp_path: Path) -> None:
    list(upstream_twice.run(["nn.functional.relu/"]))
    whole = upstream_twice.work / "answers" / "nn.functional.relu@.answers"
    torn = tmp_path / "torn"
    shutil.copy(whole, torn)
    torn.write_bytes(torn.read_bytes()[:-1])
    code = "import sys, pathlib, wire; print(len(list(wire.read_records(pathlib.Path(sys.argv[1])))))"
    done = subprocess.run([oracle, "-c", code, str(torn)], cwd=HERE, capture_output=True, text=True, check=True, env={})
    assert int(done.stdout) == len(records(whole)) - 1
