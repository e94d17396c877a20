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


def test_gradients_count_opinfos_that_agree_forward() -> None:
    recorded = {
        "ops": {"a": {"first": [2, 0, 0, 0, 0, 0, 0], "second": [1, 1, 0, 0, 0, 0, 0]}},
        "opinfos": {
            "whole/": {"first": [3, 0, 0, 0, 0, 0, 1]},
            "wrong/": {"first": [3, 1, 0, 0, 0, 0, 0], "what": {"first": "differ: a|b"}},
            "refused/": {"first": [3, 0, 1, 0, 0, 0, 0], "what": {"first": "refused: x"}},
            "forward/": {"first": [3, 0, 0, 0, 0, 1, 0]},
            "unsent/": {"first": [0, 0, 0, 0, 0, 0, 4]},
        },
    }
    found = dashboard.gradients_of(recorded, "first")
    assert (found.agree, found.compared) == (1, 3)
    assert [name for name, _, _ in found.wrong] == ["refused/", "wrong/"] and "a\\|b" in found.wrong[1][2]
    rows = dashboard.rows({"ops": {"a": {"way": "raw"}}}, {"ops": {}}, {}, recorded)
    assert rows[0].gradients == {"first": "agrees", "second": "differs"}
