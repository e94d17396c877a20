"""A training step of whole models: loss and every parameter's gradient against upstream's, recorded in both precisions."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
pytest.importorskip("transformers")


def load(path: str) -> Any:
    spec: Any = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(spec.name, module)
    spec.loader.exec_module(module)
    return module


training_step = load("tests/models/training_step.py")
UPSTREAM = json.loads(training_step.DATA.read_text())


def ulp32(x: float) -> float:
    return 2.0 ** (max(math.frexp(x)[1] - 1, -126) - 23)


def excess(ours: list[float], theirs: list[float], wide: list[float]) -> float:
    """The error in units of what upstream's own error within this gradient allows: at most 1."""
    assert len(ours) == len(theirs) == len(wide)
    if not all(map(math.isfinite, ours)):
        return math.inf
    off = max(abs(a - w) for a, w in zip(ours, wide, strict=True))
    near = max(abs(b - w) for b, w in zip(theirs, wide, strict=True))
    return off / (2 * near + 4 * ulp32(max(map(abs, wide))))


@pytest.mark.parametrize("kind", training_step.KINDS)
def test_gradients_agree_with_upstream(kind: str) -> None:
    ours, known = training_step.step(kind, torch.float32), UPSTREAM[kind]
    assert list(ours) == list(known["float32"])
    found = {n: excess(v, known["float32"][n], known["float64"][n]) for n, v in ours.items()}
    assert not {n: x for n, x in found.items() if not x <= 1}


def test_double_precision_agrees_to_its_digits() -> None:
    """BERT computes nothing in float32 of its own accord."""
    ours, known = training_step.step("bert", torch.float64), UPSTREAM["bert"]["float64"]
    largest = max(abs(x) for v in known.values() for x in v)
    for name, values in ours.items():
        off = max(abs(a - b) for a, b in zip(values, known[name], strict=True))
        assert off <= 1e-13 * largest, name


def test_the_rule_can_fail() -> None:
    known = UPSTREAM["llama"]
    name = "model.layers.0.mlp.down_proj.weight"
    theirs, wide = known["float32"][name], known["float64"][name]
    assert excess(theirs, theirs, wide) <= 0.5
    for k in (0, len(wide) // 2, len(wide) - 1):
        worse = list(theirs)
        worse[k] += 3 * max(abs(a - b) for a, b in zip(theirs, wide, strict=True)) + 8 * ulp32(max(map(abs, wide)))
        assert excess(worse, theirs, wide) > 1
        worse[k] = math.nan
        assert excess(worse, theirs, wide) == math.inf
