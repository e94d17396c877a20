"""A small GPT's 300 steps and the digits network's twelve epochs follow upstream's curves from the same seed."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
SHARP = 20  # steps in which rounding has not grown yet


def load(name: str) -> Any:
    spec: Any = importlib.util.spec_from_file_location(name, ROOT / "tests" / "models" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tiny_gpt = load("tiny_gpt")
UPSTREAM = json.loads(tiny_gpt.DATA.read_text())


def ulp32(x: float) -> float:
    return 2.0 ** (math.frexp(x)[1] - 24)


def first_step_off(ours: list[float], theirs: list[float], wide: list[float]) -> int | None:
    """The first of the sharp steps off by more than twice upstream's own error so far and a few units in the last place."""
    near = 0.0
    for step in range(SHARP):
        near = max(near, abs(theirs[step] - wide[step]))
        if not abs(ours[step] - wide[step]) <= 2 * near + 4 * ulp32(wide[step]):
            return step
    return None


def test_float32_follows_upstream() -> None:
    ours, theirs, wide = tiny_gpt.learn(torch.float32), UPSTREAM["float32"], UPSTREAM["float64"]
    assert len(ours) == len(theirs) == tiny_gpt.STEPS
    assert first_step_off(ours, theirs, wide) is None
    # Later, rounding grows with the steps on either side: near is what ten times upstream's largest error is not.
    largest = max(abs(a - b) for a, b in zip(theirs, wide, strict=True))
    assert abs(ours[-1] - wide[-1]) <= 10 * largest
    assert ours[-1] < 0.5 * ours[0]


def test_float64_keeps_upstream_s_digits() -> None:
    ours, theirs = tiny_gpt.learn(torch.float64, 40), UPSTREAM["float64"]
    assert max(abs(a - b) for a, b in zip(ours, theirs, strict=False)) <= 1e-12


def test_digits_follow_upstream_through_two_workers() -> None:
    pytest.importorskip("sklearn")
    curve = load("digits_curve")
    known = json.loads(curve.DATA.read_text())
    theirs, wide = known["float32"]["losses"], known["float64"]["losses"]
    assert curve.example().WORKERS == 2
    ours, accuracy = curve.learn(torch.float32)
    assert len(ours) == len(theirs)
    assert first_step_off(ours, theirs, wide) is None
    assert abs(accuracy - known["float32"]["accuracy"]) <= 0.5


def test_the_rule_can_fail() -> None:
    theirs, wide = UPSTREAM["float32"], UPSTREAM["float64"]
    assert first_step_off(theirs, theirs, wide) is None
    for step in (0, 7, SHARP - 1):
        worse = list(theirs)
        worse[step] += 3 * max(abs(a - b) for a, b in zip(theirs[:SHARP], wide, strict=False)) + 8 * ulp32(wide[step])
        assert first_step_off(worse, theirs, wide) == step
        worse[step] = math.nan
        assert first_step_off(worse, theirs, wide) == step
