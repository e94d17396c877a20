"""Every schema of the pinned upstream can be called without a crash, and what isn't served says so by name, with its reason."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import forks
import pytest
import torch

OPS = json.loads((Path(__file__).parents[2] / "generated" / "manifest.json").read_text())["ops"]
REFUSED = {name: row["reason"] for name, row in OPS.items() if row["way"] == "refuse"}
FORM = re.compile(r"torchnative: \S.* refused: .+; reason: .+", re.DOTALL)
CHUNK = 200
NAMES = sorted(OPS)
CHUNKS = [NAMES[i : i + CHUNK] for i in range(0, len(NAMES), CHUNK)]

# What a plausible call passes: tensors by a maker, lists of ints of the length that goes with their rank.
PROFILES: dict[str, tuple[Callable[[], Any], int]] = {
    "matrix": (lambda: torch.ones(2, 2), 1),
    "image": (lambda: torch.ones(1, 2, 4, 4), 2),
    "index": (lambda: torch.ones(3, dtype=torch.int64), 1),
    "empty": (lambda: torch.ones(0, 3), 2),
    "bool": (lambda: torch.ones((), dtype=torch.bool), 1),
}
STRINGS = {
    "reduction": "mean",
    "mode": "constant",
    "rounding_mode": "floor",
    "side": "left",
    "indexing": "ij",
    "equation": "ij->ji",
}


def overload(name: str) -> Any:
    base, _, rest = name.partition(".")
    return getattr(getattr(torch.ops.aten, base), rest or "default")


def plausible(argument: Any, profile: str) -> Any:
    """A value for an argument, by the type of its schema."""
    make, length = PROFILES[profile]
    text = str(argument.type).replace("NoneType", "None")
    if text.startswith("Optional[") and "Tensor" not in text:
        return None
    text = text.removeprefix("Optional[").removesuffix("]") if text.startswith("Optional[") else text
    if "Tensor" in text:
        return [make(), make()] if text.startswith("List[") else make()
    if text.startswith("List["):
        inner = text[5:-1]
        count = getattr(argument, "N", None) or length
        item = {"bool": True, "float": 1.0, "Dimname": "N", "str": "x"}.get(inner, 1)
        return [item] * count
    if text == "Storage":
        return torch.ones(2).untyped_storage()
    if text == "Stream":
        return torch.Stream(device="cpu")
    simple: dict[str, Any] = {
        "int": 1,
        "SymInt": 1,
        "float": 0.5,
        "number": 1,
        "Scalar": 1,
        "bool": False,
        "Device": torch.device("cpu"),
    }
    if text in ("str", "Dimname"):
        return STRINGS.get(argument.name, "N")
    return simple.get(text, 0)


def call(item: tuple[str, str]) -> tuple[str, str]:
    """(class of the error, message), or ('', '')."""
    name, profile = item
    op = overload(name)
    positional, keyword = [], {}
    for argument in op._schema.arguments:
        if argument.has_default_value():
            continue
        value = plausible(argument, profile)
        if argument.kwarg_only:
            keyword[argument.name] = value
        else:
            positional.append(value)
    try:
        op(*positional, **keyword)
    except Exception as error:
        kind = "NotImplementedError" if isinstance(error, NotImplementedError) else type(error).__name__
        return kind, str(error)
    return "", ""


def judge(name: str, result: tuple[str, str] | None, trouble: str) -> str:
    """What is wrong with a call's outcome, or ''."""
    if result is None:
        return trouble.strip().splitlines()[-1]
    kind, message = result
    if name in REFUSED:
        expected = f"torchnative: aten::{name} refused: call; reason: {REFUSED[name]}"
        return "" if (kind, message) == ("NotImplementedError", expected) else f"expected '{expected}', got {kind}: {message}"
    if kind == "NotImplementedError" and "torchnative" in message and not FORM.fullmatch(message):
        return f"a refusal without name or reason: {message}"
    return ""


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("first", range(0, len(NAMES), CHUNK), ids=[chunk[0] for chunk in CHUNKS])
def test_every_schema_can_be_called(first: int, profile: str) -> None:
    items = [(name, profile) for name in NAMES[first : first + CHUNK]]
    wrong = []
    for (name, _), result, trouble in forks.each(items, call, timeout=30):
        if problem := judge(name, result, trouble):
            wrong.append(f"{name}: {problem}")
    assert not wrong, f"{len(wrong)} of {len(items)}:\n" + "\n".join(wrong)


def test_the_schemas_are_upstreams() -> None:
    assert len(OPS) == 3101
    known = {f"aten::{name}" for name in OPS}
    assert known <= set(torch._C._dispatch_get_all_op_names())


def test_judge_finds_what_is_wrong() -> None:
    name = next(iter(REFUSED))
    good = f"torchnative: aten::{name} refused: call; reason: {REFUSED[name]}"
    assert judge(name, ("NotImplementedError", good), "") == ""
    assert judge(name, ("RuntimeError", good), "")
    assert judge(name, ("NotImplementedError", good + "!"), "")
    assert judge(name, ("", ""), "")
    assert judge("add.Tensor", None, "crash: SIGSEGV") == "crash: SIGSEGV"
    assert judge("add.Tensor", ("NotImplementedError", "torchnative: no"), "")


def refusal(work: Callable[[], Any]) -> str:
    with pytest.raises(NotImplementedError) as caught:
        work()
    return str(caught.value)


def test_unserved_dtype_names_itself() -> None:
    message = refusal(lambda: torch.add(torch.ones(2, dtype=torch.complex32), torch.ones(2, dtype=torch.complex32)))
    assert message == "torchnative: aten::add.Tensor refused: dtype complex32; reason: no kernel for this dtype"


def test_unserved_layout_names_itself() -> None:
    assert FORM.fullmatch(refusal(lambda: torch.ones(2, 2).to_sparse()))
    assert FORM.fullmatch(refusal(lambda: torch.sparse_coo_tensor(torch.ones(1, 1, dtype=torch.int64), torch.ones(1), (2,))))
    assert FORM.fullmatch(refusal(lambda: torch.zeros(2, layout=torch.sparse_coo)))


@pytest.mark.parametrize(
    "work",
    [
        lambda: torch.compile(lambda x: x + 1)(torch.ones(2)),
        lambda: torch.jit.load(io.BytesIO(b"nothing")),
        lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8),
    ],
    ids=["compile", "jit.load", "quantized"],
)
def test_unserved_subsystem_names_itself(work: Callable[[], Any]) -> None:
    assert FORM.search(refusal(work))


def test_cuda_is_absent_as_in_upstreams_cpu_build() -> None:
    assert not torch.cuda.is_available()
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        torch.ones(2).cuda()
