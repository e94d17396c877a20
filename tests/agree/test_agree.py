"""Upstream's samples through both torches. What a manifest row claims must agree; what agreed once must not be lost."""

from __future__ import annotations

import json
import sys
from collections import Counter

import pytest
from gradient_grades import GradientGrades
from gradient_grades import lost as lost_gradients
from harness import GRADES, GRADIENTS, Grades, Harness, gradient_harness, lost, upstream_version, write_grades


def test_agrees_with_upstream(harness: Harness, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = request.config.getoption("--op")
    names = harness.names(wanted)
    assert names, f"agree: expected an operator with samples in upstream's op_db, got {wanted}"
    grades = Grades()
    with capsys.disabled():
        for verdicts in harness.run(names):
            grades.add(verdicts)
            print(f"  {verdicts[0]['op']}: {dict(Counter(v['status'] for v in verdicts))}", flush=True)
        print("\n".join(grades.lines()))
    document = grades.document(upstream_version())
    if wanted:
        wrong = grades.wrong()
        assert not wrong, "\n".join(wrong)
        return
    gone = lost(json.loads(GRADES.read_text()), document) if GRADES.exists() else []
    if request.config.getoption("--record"):
        write_grades(document)
    assert not gone, "\n".join(gone)
    crashes = [f"{n}: {grades.first[n]}" for n, c in grades.opinfos.items() if c["crash"]]
    assert not crashes, "\n".join(crashes)


def test_gradients_agree_with_upstream(oracle: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = request.config.getoption("--op")
    harness = gradient_harness(oracle, sys.executable, request.config.getoption("--agree-jobs"))
    harness.prepare()
    grades = GradientGrades()
    with capsys.disabled():
        for verdicts in harness.run(harness.names(wanted)):
            grades.add(verdicts)
        print("\n" + "\n".join(grades.lines()))
    document = grades.document(upstream_version())
    if wanted:
        assert not grades.wrong(), "\n".join(grades.wrong())
        return
    gone = lost_gradients(json.loads(GRADIENTS.read_text()), document) if GRADIENTS.exists() else []
    if request.config.getoption("--record"):
        write_grades(document, GRADIENTS)
    assert not gone, "\n".join(gone)
    crashes = [name for name, by in grades.opinfos.items() if any(c["crash"] for c in by.values())]
    assert not crashes, crashes
