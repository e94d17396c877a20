"""300 steps of a small GPT follow upstream's curve from the same seed."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[2]
SPEC: Any = importlib.util.spec_from_file_location("tiny_gpt", ROOT / "tests" / "models" / "tiny_gpt.py")
tiny_gpt = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tiny_gpt)
UPSTREAM = json.loads(tiny_gpt.DATA.read_text())
SHARP = 20  # steps in which rounding has not grown yet


def ulp32(x: float) -> float:
    return 2.0 ** (math.frexp(x)[1] - 24)


def test_float32_follows_upstream() -> None:
    ours, theirs, wide = tiny_gpt.learn(torch.float32), UPSTREAM["float32"], UPSTREAM["float64"]
    assert len(ours) == len(theirs) == tiny_gpt.STEPS
    # Twice upstream's own error so far, and a few units in the last place.
    near = 0.0
    for step in range(SHARP):
        near = max(near, abs(theirs[step] - wide[step]))
        assert abs(ours[step] - wide[step]) <= 2 * near + 4 * ulp32(wide[step]), step
    # Later, rounding grows with the steps on either side: near is what ten times upstream's largest error is not.
    largest = max(abs(a - b) for a, b in zip(theirs, wide, strict=True))
    assert abs(ours[-1] - wide[-1]) <= 10 * largest
    assert ours[-1] < 0.5 * ours[0]


def test_float64_keeps_upstream_s_digits() -> None:
    ours, theirs = tiny_gpt.learn(torch.float64, 40), UPSTREAM["float64"]
    assert max(abs(a - b) for a, b in zip(ours, theirs, strict=False)) <= 1e-12
