"""The comparison of gradients itself: upstream against upstream agrees, and each kind of damage to an answer is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gradient_grades import GradientGrades
from harness import Harness, gradient_harness
from test_rule import verdicts_after

OPS = ["add", "nn.functional.relu", "split", "nn.functional.batch_norm", "nn.functional.dropout"]


@pytest.fixture(scope="module")
def upstream_twice(oracle: str, tmp_path_factory: pytest.TempPathFactory) -> Harness:
    harness = gradient_harness(oracle, oracle, 2, tmp_path_factory.mktemp("agree"))
    harness.prepare()
    return harness


def test_upstream_agrees_with_itself(upstream_twice: Harness) -> None:
    grades = GradientGrades()
    for verdicts in upstream_twice.run(upstream_twice.names(OPS)):
        grades.add(verdicts)
    assert len(grades.opinfos) >= len(OPS)
    assert not grades.wrong()
    for name, by in grades.opinfos.items():
        for counts in by.values():
            assert set(counts) <= {"agree", "unsent"} and counts["agree"], (name, by)
    assert {"add.Tensor", "add_.Tensor", "relu"} <= grades.cells.keys()
    everything = (len(grades.opinfos), len(grades.opinfos))
    assert grades.agreeing("first") == grades.agreeing("second") == grades.agreeing("tangent") == everything


def flip(mask: int, of: int) -> Callable[[dict[str, Any], bytearray], None]:
    def damage(document: dict[str, Any], blob: bytearray) -> None:
        blob[document["grads"]["v"][0]["storage"][0] + of] ^= mask

    return damage


def raises(stage: str, refused: bool) -> Callable[[dict[str, Any], bytearray], None]:
    def damage(document: dict[str, Any], blob: bytearray) -> None:
        for key in ("outputs", "needs", "grads"):
            document.pop(key)
        document |= {"raises": "builtins.RuntimeError", "message": "x", "refused": refused, "stage": stage}

    return damage


DAMAGE: dict[str, tuple[Callable[[dict[str, Any], bytearray], None], str]] = {
    "gradient": (flip(0x10, 0), "differ"),
    "exponent": (flip(0x40, 3), "differ"),
    "no gradient": (lambda d, b: d["grads"]["v"].__setitem__(0, None), "differ"),
    "shape": (lambda d, b: d["grads"]["v"][0]["shape"].append(1), "differ"),
    "one more": (lambda d, b: d["grads"]["v"].append(d["grads"]["v"][0]), "differ"),
    "needs": (lambda d, b: d.__setitem__("needs", [False]), "differ"),
    "result": (lambda d, b: d["outputs"]["v"].__setitem__(0, None), "forward"),
    "refusal": (raises("backward", True), "refused"),
    "error": (raises("backward", False), "error"),
    "forward": (raises("forward", True), "forward"),
}


@pytest.mark.parametrize(
    ("kind", "leg"), [(kind, "first") for kind in DAMAGE] + [("gradient", "second"), ("gradient", "tangent")]
)
def test_finds_damage(kind: str, leg: str, upstream_twice: Harness, tmp_path: Path) -> None:
    damage, status = DAMAGE[kind]

    def pick(head: dict[str, Any], answer: dict[str, Any]) -> bool:
        if head["dtype"] != "float32" or head["leg"] != leg:
            return False
        shape = answer["grads"]["v"][0]["shape"]
        return bool(shape) and 0 not in shape

    found = verdicts_after(upstream_twice, "mul/", pick, damage, tmp_path)
    hit = [v for v in found if v["status"] != "agree"]
    assert hit, f"the {kind} was damaged and nothing noticed"
    assert {v["status"] for v in hit} == {status}
    assert {v["dtype"] for v in hit} == {"float32"} and {v["leg"] for v in hit} == {leg}
