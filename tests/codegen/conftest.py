"""Tiny surfaces for the generator: a few schemas and claims in, files out."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))

from codegen import claims, upstream  # noqa: E402
from codegen.model import Surface, load  # noqa: E402


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="accept what the generator writes now as the golden files")


@pytest.fixture(scope="session")
def tree() -> Path:
    """Upstream's Python tree, whose torchgen parses."""
    found = upstream.fetch(upstream.read_pin().version)
    if str(found) not in sys.path:
        sys.path.append(str(found))
    return found


@pytest.fixture
def surface(tree: Path, tmp_path: Path) -> Callable[[str, str], Surface]:
    """A surface of its own native_functions.yaml and derivatives.yaml."""

    def make(natives: str, derivatives: str = "[]") -> Surface:
        native = tmp_path / "tree/torchgen/packaged/ATen/native"
        autograd = tmp_path / "tree/torchgen/packaged/autograd"
        native.mkdir(parents=True)
        autograd.mkdir(parents=True)
        shutil.copy(tree / "torchgen/packaged/ATen/native/tags.yaml", native)
        (autograd / "deprecated.yaml").write_text("[]")
        (native / "native_functions.yaml").write_text(natives)
        (autograd / "derivatives.yaml").write_text(derivatives)
        import torchgen.gen  # noqa: F401 - the real one, before `load` puts the tiny tree on the path

        return load(tmp_path / "tree", "0.0")

    return make


@pytest.fixture
def planned(tmp_path: Path) -> Callable[[Surface, dict[str, str]], claims.Plan]:
    """A plan from {family: text of its yaml}."""

    def make(surface: Surface, families: dict[str, str]) -> claims.Plan:
        kernels = tmp_path / "kernels"
        for family, text in families.items():
            (kernels / family).mkdir(parents=True)
            (kernels / family / f"{family}.yaml").write_text(text)
        (tmp_path / "codegen").mkdir(exist_ok=True)
        (tmp_path / "codegen" / "refusals.yaml").write_text("- {match: '_cuda', reason: another backend}\n")
        return claims.plan(surface, kernels)

    return make
