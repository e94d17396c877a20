"""Grades from counts, and pages that hold them."""

import json

import pytest

from codegen import dashboard


@pytest.mark.parametrize(
    ("counts", "state"),
    [([3, 0, 0, 0, 0], "agrees"), ([3, 1, 0, 0, 0], "differs"), ([3, 0, 0, 1, 0], "differs"), ([3, 0, 0, 0, 1], "differs"),
     ([3, 0, 2, 0, 0], "refused"), ([0, 0, 0, 0, 0], "")],
)  # fmt: skip
def test_cell(counts: list[int], state: str) -> None:
    assert dashboard.cell(counts) == state


@pytest.mark.parametrize(
    ("way", "states", "grade"),
    [("raw", ["agrees", "refused"], "agrees"), ("raw", ["agrees", "differs"], "differs"), ("raw", [], "built"),
     ("raw", ["refused"], "built"), ("refuse", ["agrees"], "refused")],
)  # fmt: skip
def test_grade(way: str, states: list[str], grade: str) -> None:
    assert dashboard.grade(way, states) == grade


def test_totals_count_each_operator_once() -> None:
    manifest = {"ops": {"a": {"way": "raw"}, "b": {"way": "refuse", "reason": "no kernel yet"}, "c": {"way": "raw"}}}
    grades = {"ops": {"a": {"float32": [2, 0, 0, 0, 0]}, "c": {"float32": [1, 1, 0, 0, 0]}}}
    found = dashboard.rows(manifest, grades, {"a": ("unary", 12), "b": ("unary", 3)})
    totals = dashboard.totals(found)
    assert totals["demand"][0].counts == (1, 1, 0, 1)
    assert totals["demand"][1].counts == (1, 0, 0, 1)
    assert sum(t.all for t in totals["family"]) == 3
    assert [r.name for r in dashboard.next_wanted(found)] == ["b"]
    table = json.loads(dashboard.compact(found))
    assert [row[0] for row in table["rows"]] == ["a", "b", "c"]
