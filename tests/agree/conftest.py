"""Options of the comparison with upstream, and the two interpreters that it needs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from harness import ROOT, Harness


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--op", action="append", default=[], help="compare this operator alone (may be repeated)")
    parser.addoption("--record", action="store_true", help="write coverage-report/grades.json from a whole run")
    parser.addoption("--agree-jobs", type=int, default=2)


@pytest.fixture(scope="session")
def oracle() -> str:
    """An interpreter with upstream's torch, from `make oracle`."""
    python = os.environ.get("TN_ORACLE", str(ROOT / "build" / "oracle" / "bin" / "python"))
    if not Path(python).exists():
        pytest.fail("agree: expected upstream's interpreter in TN_ORACLE (`make oracle`), got none")
    return python


@pytest.fixture(scope="session")
def harness(oracle: str, request: pytest.FixtureRequest) -> Harness:
    found = Harness(oracle, sys.executable, request.config.getoption("--agree-jobs"))
    found.prepare()
    return found
