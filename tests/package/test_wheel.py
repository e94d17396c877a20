"""The wheel as users and other packages meet it. Run by `make test-package`: asks the package registry."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from environments import Environment, new_environment

from codegen import upstream

pytestmark = pytest.mark.network

ASK = "import importlib.metadata as m; print(m.version('torch'), m.packages_distributions()['torch'])"


def planned(report: str) -> set[str]:
    return {item["metadata"]["name"].lower() for item in json.loads(report)["install"]}


def test_wheel_is_small(wheel: Path):
    assert wheel.stat().st_size < 20e6


def test_wheel_lists_torchs_metadata_in_our_record_only(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        record = archive.read(next(name for name in names if name.endswith(".dist-info/RECORD"))).decode()
    assert [name for name in names if name.endswith("/RECORD")] == ["torchnative-0.1.0.dist-info/RECORD"]
    pin = upstream.read_pin()
    inner = f"torchnative-0.1.0.data/purelib/torch-{pin.local_version(pin.version)}.dist-info/"
    assert {inner + "METADATA", inner + "INSTALLER"} <= set(names)
    assert len(names) == len(set(names)) == len(record.splitlines())


def test_our_metadata_has_torchs_requirements(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith("torchnative-0.1.0.dist-info/METADATA"))
        ours = Parser().parsestr(archive.read(name).decode(), headersonly=True).get_all("Requires-Dist", [])
    assert sorted(ours) == sorted(upstream.run_time_requirements())


def test_other_packages_see_torch(environment: Environment):
    pin = upstream.read_pin()
    assert environment.run("-c", ASK).stdout.split("\n")[0] == f"{pin.local_version(pin.version)} ['torch']"
    environment.pip("check")


def test_dependents_download_no_torch(environment: Environment):
    report = environment.pip("install", "-q", "--dry-run", "--report", "-", "accelerate", "peft").stdout
    names = planned(report)
    assert {"accelerate", "peft"} <= names
    assert "torch" not in names and not any(name.startswith(("nvidia", "triton")) for name in names)


def test_imports_without_numpy(environment: Environment):
    code = "import sys, torch; assert 'numpy' not in sys.modules; print(torch.relu(torch.tensor([-1.0, 2.0])).tolist())"
    assert environment.run("-c", code).stdout.strip() == "[0.0, 2.0]"


def test_starts_on_an_old_cpu(environment: Environment):
    emulator = shutil.which("qemu-x86_64")
    assert emulator, "qemu-user is not installed"
    code = "import torch; print(torch.relu(torch.tensor([-1.0, 2.0])).tolist())"
    python = environment.python.resolve()
    done = subprocess.run(
        [emulator, "-cpu", "Nehalem", "-E", f"PYTHONPATH={environment.site}", python, "-c", code],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[0.0, 2.0]"


def test_another_torch_stops_and_leaves_ours_intact(wheel: Path, tmp_path: Path):
    """With --no-deps, so that the CUDA libraries of that release aren't downloaded first; torch itself is."""
    environment = new_environment(tmp_path / "venv")
    environment.pip("install", "-q", "--no-deps", wheel)
    before = environment.files()
    done = environment.pip("install", "--no-deps", "torch==2.12.0", check=False)
    assert done.returncode != 0
    assert re.search(r"no RECORD file was found for torch", done.stdout + done.stderr)
    assert "torchnative" in done.stdout + done.stderr
    assert environment.files() == before
    for name in upstream.record():
        assert (environment.site / name).is_file()


def test_uninstall_leaves_nothing_behind(wheel: Path, tmp_path: Path):
    environment = new_environment(tmp_path / "venv")
    before = environment.files()
    environment.pip("install", "-q", "--no-deps", wheel)
    assert environment.files() != before
    environment.run("-c", "import torch._vendor.packaging.version", check=False)
    environment.pip("uninstall", "-q", "-y", "torchnative")
    assert environment.files() - before == set()
