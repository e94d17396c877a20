"""A virtual environment of a test's own, free of the paths of the one that runs the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Environment:
    """A virtual environment, with what a test needs to ask of it."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def site(self) -> Path:
        return next((self.folder / "lib").glob("python3.*")) / "site-packages"

    def run(self, *arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [self.python, *arguments], capture_output=True, text=True, check=False, cwd=self.folder, env=_clean()
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{arguments} exited with {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def pip(self, *arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self.run("-m", "pip", "--disable-pip-version-check", *arguments, check=check)

    def files(self) -> set[str]:
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*")}


def _clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


def new_environment(folder: Path) -> Environment:
    subprocess.run([os.environ.get("TN_PYTHON", sys.executable), "-m", "venv", folder], check=True)
    environment = Environment(folder)
    environment.pip("install", "-q", "pip>=25.1")
    return environment
