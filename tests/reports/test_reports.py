"""Bugs that people reported in public, to upstream and to others: each case's answers against the recorded ones.

python tests/reports/test_reports.py       # with upstream's torch: writes expected.json
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "agree")]

import canonical  # noqa: E402
import forks  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402

EXPECTED = HERE / "expected.json"
SERVED_ELSEWHERE = ("canonical", "test_reports")
SPARSE = "sparse layouts are not served yet"
REFUSED = {"embedding_padding": SPARSE}  # cases that end at a refusal, and its reason


def load() -> dict[str, canonical.Case]:
    if not canonical.CASES:
        for path in sorted(HERE.glob("*.py")):
            if path.stem not in SERVED_ELSEWHERE:
                importlib.import_module(f"{path.stem}")
    return {c.run.__name__: c for c in canonical.CASES}


def answer(case: canonical.Case) -> Any:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return json.loads(json.dumps(case.run()))


@pytest.mark.parametrize("name", load())
def test_answer_is_right(name: str) -> None:
    case = load()[name]
    ((_, got, failure),) = forks.each([case], answer, case.timeout)
    if name in REFUSED:
        assert "_Refusal" in failure and REFUSED[name] in failure
        return
    assert not failure
    assert not canonical.difference(got, json.loads(EXPECTED.read_text())[name], case)


def test_a_wrong_answer_is_noticed() -> None:
    known = json.loads(EXPECTED.read_text())
    for name, case in load().items():
        assert not canonical.difference(known[name], known[name], case)
        assert canonical.difference(_spoilt(known[name]), known[name], case), name


def _spoilt(value: Any) -> Any:
    if isinstance(value, dict):
        last = list(value)[-1]
        return {**value, last: _spoilt(value[last])}
    if isinstance(value, list):
        return [*value[:-1], _spoilt(value[-1])] if value else [0]
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return "another"
    return value + 1 + abs(value)


def plain(value: Any) -> Any:
    """Without the errors' full texts."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if not (k == "full" and "err" in value)}
    return [plain(v) for v in value] if isinstance(value, list) else value


def record() -> None:
    rows = []
    for name, case in sorted(load().items()):
        right = case.right() if callable(case.right) else case.right
        rows.append(f"{json.dumps(name)}: {json.dumps(plain(answer(case)) if right is None else right, sort_keys=True)}")
    EXPECTED.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    record()
