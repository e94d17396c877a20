"""codegen.upstream: the pin is checked, and a damaged or foreign wheel stops the build."""

from __future__ import annotations

import base64
import hashlib
import json
import zipfile
from pathlib import Path

import pytest

from codegen import upstream

METADATA = """Metadata-Version: 2.4
Name: torch
Version: 9.9.9
License-File: LICENSE
License-File: third_party/onnx/LICENSE
Requires-Dist: filelock
Requires-Dist: triton==3.7.1; platform_system == "Linux"
Requires-Dist: optree>=0.13.0; extra == "optree"

Words about torch.
Version: not a header
"""
VERSION = "__all__ = ['__version__', 'debug', 'cuda', 'git_version']\n__version__ = '9.9.9'\ndebug = False\ncuda = None\n"


def make_wheel(folder: Path, *, damage: str | None = None, version_file: str | None = None) -> Path:
    info = "torch-9.9.9.dist-info"
    files = {
        "torch/__init__.py": "from torch._C import *\n",
        "torch/version.py": version_file or VERSION + "git_version = 'abc'\n",
        "torch/_C.cpython-311-darwin.so": "machine code",
        "torch/lib/libtorch.dylib": "machine code",
        "torch/include/ATen/ATen.h": "#pragma once\n",
        "torch/utils/benchmark/utils/timeit_template.cpp": "// read by Python\n",
        "torchgen/model.py": "",
        "functorch/__init__.py": "",
        **dict.fromkeys(upstream.INPUTS, "- func: relu(Tensor self) -> Tensor\n"),
        f"{info}/METADATA": METADATA,
        f"{info}/entry_points.txt": "",
        f"{info}/licenses/LICENSE": "BSD\n",
    }
    record = ""
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(text)}\n"
    path = folder / "torch-9.9.9-cp311-cp311-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text + ("# damage\n" if name == damage else ""))
        archive.writestr(f"{info}/RECORD", record)
    return path


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(upstream, "STORE", tmp_path / "store")
    monkeypatch.setattr(upstream, "PIN_FILE", tmp_path / "upstream.toml")
    monkeypatch.setenv("TN_UPSTREAM_WHEEL", str(make_wheel(tmp_path)))
    pin = upstream.Pin("1.0.0", "tn7", "any", "3.11", "0" * 64, {})
    upstream.PIN_FILE.write_text(upstream._pin_text(pin))
    upstream.pin("9.9.9")
    return tmp_path / "store"


def test_takes_the_python_tree_and_its_data(store: Path):
    tree = upstream.fetch()
    assert tree == store / "9.9.9"
    assert (tree / "torch/utils/benchmark/utils/timeit_template.cpp").is_file()
    for left_out in ("torch/_C.cpython-311-darwin.so", "torch/lib", "torch/include"):
        assert not (tree / left_out).exists()
    assert "torch/__init__.py" in upstream.record() and "torch/version.py" not in upstream.record()


def test_second_call_does_nothing(store: Path, monkeypatch: pytest.MonkeyPatch):
    first = upstream.fetch()
    monkeypatch.setattr(upstream, "_download", lambda *_: pytest.fail("downloaded again"))
    assert upstream.fetch() == first


def test_version_file_is_ours(store: Path):
    values: dict[str, object] = {}
    exec((upstream.fetch() / "torch/version.py").read_text(), values)
    assert values["__version__"] == "9.9.9+tn7" and values["git_version"] == "abc" and values["cuda"] is None


def test_metadata_drops_what_only_the_binary_needs(store: Path):
    folder = upstream.dist_info()
    assert folder.name == "torch-9.9.9+tn7.dist-info"
    text = (folder / "METADATA").read_text()
    assert "Version: 9.9.9+tn7\n" in text and "triton" not in text and "onnx" not in text
    assert text.endswith("Version: not a header\n")
    assert (folder / "top_level.txt").read_text().split() == ["functorch", "torch", "torchgen"]
    assert upstream.run_time_requirements() == ["filelock"]
    assert not (folder / "RECORD").exists()


def test_foreign_wheel_stops(store: Path):
    text = upstream.PIN_FILE.read_text()
    upstream.PIN_FILE.write_text(text.replace(upstream.read_pin().wheel_sha256, "1" * 64))
    with pytest.raises(upstream.UpstreamError, match=r"expected sha256 1{64} \(upstream.toml\), got [0-9a-f]{64}"):
        upstream.fetch()


def test_wrong_hash_of_an_input_stops(store: Path):
    digest = upstream.read_pin().files[upstream.INPUTS[0]]
    upstream.PIN_FILE.write_text(upstream.PIN_FILE.read_text().replace(digest, "2" * 64))
    with pytest.raises(upstream.UpstreamError, match=r"native_functions.yaml: expected sha256 2{64}"):
        upstream.fetch()


def test_damaged_file_stops(store: Path, tmp_path: Path):
    make_wheel(tmp_path, damage="torch/__init__.py")
    upstream.pin("9.9.9")
    with pytest.raises(upstream.UpstreamError, match=r"torch/__init__.py does not have the hash"):
        upstream.fetch()
    assert not (store / "9.9.9").exists()


def test_accelerator_build_stops(store: Path, tmp_path: Path):
    make_wheel(tmp_path, version_file=VERSION.replace("cuda = None", "cuda = '13.0'") + "git_version = 'abc'\n")
    upstream.pin("9.9.9")
    with pytest.raises(upstream.UpstreamError, match="expected accelerator names that are None"):
        upstream.fetch()


def test_moving_the_pin_is_repeatable(store: Path):
    text = upstream.PIN_FILE.read_text()
    upstream.pin("9.9.9")
    assert upstream.PIN_FILE.read_text() == text


def test_stage_keeps_what_the_build_put_there(store: Path, tmp_path: Path):
    into = tmp_path / "python"
    upstream.stage(into)
    (into / "torch" / "lib").mkdir()
    for built in ("torch/_C.cpython-311-x86_64-linux-gnu.so", "torch/lib/libhwy.so.1"):
        (into / built).write_text("built")
    (into / "torch" / "left_over.py").write_text("of an older upstream")
    (into / "torch-9.9.8+tn7.dist-info").mkdir()
    # Another record.json, as after a move of the pin.
    record = store / "9.9.9" / "record.json"
    record.write_text(json.dumps(json.loads(record.read_text())))
    upstream.stage(into)
    assert (into / "torch/_C.cpython-311-x86_64-linux-gnu.so").is_file() and (into / "torch/lib/libhwy.so.1").is_file()
    assert [path.name for path in into.glob("torch-*.dist-info")] == ["torch-9.9.9+tn7.dist-info"]
    assert not (into / "torch/left_over.py").exists() and (into / "torch/__init__.py").is_file()
