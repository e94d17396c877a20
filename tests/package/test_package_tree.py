"""What lies beside our torch._C is upstream's, byte for byte, and nothing of upstream's is compiled."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

from codegen import upstream

PACKAGES = ("torch", "torchgen", "functorch")
ABI = re.compile(r"_C\.cpython-3\d+-[\w-]+\.so")
# libc's own loader included: it serves thread-local storage.
SYSTEM_LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "libstdc++.so.6"}
LOADERS = re.compile(r"ld-linux[\w-]*\.so\.\d")


def is_ours(name: str) -> bool:
    return bool(ABI.fullmatch(name.removeprefix("torch/"))) or name.startswith(("torch/lib/", "torch/bin/"))


def is_binary(path: Path) -> bool:
    with path.open("rb") as file:
        magic = file.read(4)
    return magic in (b"\x7fELF", b"!<ar", b"MZ\x90\x00", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")


def files_of(tree: Path) -> dict[str, Path]:
    return {
        path.relative_to(tree).as_posix(): path
        for package in PACKAGES
        for path in (tree / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def extension(tree: Path) -> Path:
    (path,) = (tree / "torch").glob("_C" + sysconfig.get_config_var("EXT_SUFFIX"))
    return path


def dynamic(path: Path, tag: str) -> list[str]:
    text = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
    return re.findall(rf"\({tag}\).*\[([^]]*)\]", text)


def test_every_upstream_file_has_its_record_hash(tree: Path):
    wrong = []
    for name, expected in upstream.record().items():
        path = tree / name
        if not path.is_file():
            wrong.append(f"{name} is missing")
            continue
        digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
        if f"sha256={digest}" != expected:
            wrong.append(f"{name} differs")
    assert not wrong


def test_record_covers_the_whole_python_tree():
    """A wheel with half of the files would pass the test above."""
    names = upstream.record()
    assert sum(name.startswith("torch/") and name.endswith(".py") for name in names) > 2000
    assert {"torch/__init__.py", "torch/nn/functional.py", "torchgen/model.py", "functorch/__init__.py"} <= set(names)


def test_nothing_else_lies_in_upstreams_packages(tree: Path):
    allowed = set(upstream.record()) | {"torch/version.py"}
    assert [name for name in files_of(tree) if name not in allowed and not is_ours(name)] == []


def test_no_compiled_file_but_ours(tree: Path):
    compiled = {name for name, path in files_of(tree).items() if is_binary(path)}
    assert {name for name in compiled if not is_ours(name)} == set()
    assert {Path(name).name for name in compiled} - {extension(tree).name} <= {
        "libtorch_global_deps.so",
        "libhwy.so.1",
        "libsleef.so.3",
        *(path.name for path in (tree / "torch").glob("_C.*.so")),
    }


def test_version_file_has_upstreams_names(tree: Path):
    values: dict[str, object] = {}
    exec((tree / "torch" / "version.py").read_text(), values)
    pin = upstream.read_pin()
    assert values["__version__"] == pin.local_version(pin.version)
    assert set(values["__all__"]) == {"__version__", "debug", "cuda", "git_version", "hip", "rocm", "xpu"}
    assert values["debug"] is False and [values[name] for name in ("cuda", "hip", "rocm", "xpu")] == [None] * 4
    assert re.fullmatch("[0-9a-f]{40}", str(values["git_version"]))


def test_extension_needs_only_these_libraries(tree: Path):
    carried = {path.name for path in (tree / "torch" / "lib").glob("lib*.so*")}
    checked = [extension(tree), *(tree / "torch" / "lib").glob("lib*.so*")]
    for library in checked:
        needed = {name for name in dynamic(library, "NEEDED") if not LOADERS.fullmatch(name)}
        assert needed <= SYSTEM_LIBRARIES | carried, library.name
    assert dynamic(extension(tree), "RUNPATH") == ["$ORIGIN/lib"]


@pytest.mark.parametrize("which", ["extension", "libtorch_global_deps.so"])
def test_segments_fit_16_kib_pages(tree: Path, which: str):
    path = extension(tree) if which == "extension" else tree / "torch" / "lib" / which
    text = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout
    alignments = [int(line.split()[-1], 16) for line in text.splitlines() if line.split()[:1] == ["LOAD"]]
    assert alignments and min(alignments) >= 16384


def test_thread_local_storage_fits_the_static_reserve(tree: Path):
    """libc keeps 512 bytes by default for all libraries that are loaded late, and others take some, too."""
    text = subprocess.run(["readelf", "-lW", extension(tree)], capture_output=True, text=True, check=True).stdout
    sizes = [int(line.split()[5], 16) for line in text.splitlines() if line.split()[:1] == ["TLS"]]
    assert sum(sizes) <= 384


def test_extension_exports_only_its_init_function(tree: Path):
    text = subprocess.run(["nm", "-D", "--defined-only", extension(tree)], capture_output=True, text=True, check=True)
    assert [line.split()[-1] for line in text.stdout.splitlines()] == ["PyInit__C"]


def test_shm_manager_refuses_by_name(tree: Path):
    done = subprocess.run([tree / "torch" / "bin" / "torch_shm_manager"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("torchnative: torch_shm_manager refused: ")
