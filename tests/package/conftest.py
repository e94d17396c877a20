"""The tree under test: build/python by default; with TN_WHEEL=<file>, environments that the wheel was installed in."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from environments import Environment, new_environment

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


@pytest.fixture(scope="session")
def wheel() -> Path:
    given = os.environ.get("TN_WHEEL")
    if not given:
        pytest.fail("TN_WHEEL is not set: run `make test-package`")
    return Path(given)


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel and its run-time requirements; tests that change it restore nothing, so they use one of their own."""
    made = new_environment(tmp_path_factory.mktemp("installed"))
    made.pip("install", "-q", wheel)
    return made


@pytest.fixture(scope="session")
def tree(request: pytest.FixtureRequest) -> Path:
    """The folder on sys.path that holds torch/."""
    if os.environ.get("TN_WHEEL"):
        return request.getfixturevalue("environment").site
    return ROOT / "build" / "python"
