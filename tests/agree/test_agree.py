"""Upstream's samples through both torches. What a manifest row claims must agree; what agreed once must not be lost."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from harness import GRADES, WRONG, Grades, Harness, lost, upstream_version, write_grades


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
        wrong = [f"{n}: {grades.first[n]}" for n, c in grades.opinfos.items() if any(c[s] for s in WRONG)]
        assert not wrong, "\n".join(wrong)
        return
    gone = lost(json.loads(GRADES.read_text()), document) if GRADES.exists() else []
    if request.config.getoption("--record"):
        write_grades(document)
    assert not gone, "\n".join(gone)
    crashes = [f"{n}: {grades.first[n]}" for n, c in grades.opinfos.items() if c["crash"]]
    assert not crashes, "\n".join(crashes)
