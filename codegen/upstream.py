"""Gets upstream's Python tree out of its own wheel, checked against the pin in upstream.toml.

    python -m codegen.upstream fetch [VERSION]      # -> build/upstream/<version>/
    python -m codegen.upstream stage DIR            # lays the pinned tree into DIR, importable beside our torch._C
    python -m codegen.upstream pin VERSION          # moves the pin: rewrites upstream.toml

Every file but torch/version.py keeps upstream's bytes. The wheels of one version differ between platforms only in
binaries and torch/version.py, so the smallest one serves every platform and every Python version.
"""

from __future__ import annotations

import argparse
import ast
import base64
import csv
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PIN_FILE = ROOT / "upstream.toml"
STORE = ROOT / "build" / "upstream"

PACKAGES = ("torch", "torchgen", "functorch")
# Compiled code, C++ headers and what only serves them; everything else is the Python tree and its data.
LEFT_OUT_FOLDERS = ("torch/lib/", "torch/bin/", "torch/include/", "torch/share/", "torch/test/")
LEFT_OUT_SUFFIXES = (".so", ".dylib", ".pyd", ".dll", ".a", ".lib")
OUR_VERSION_FILE = "torch/version.py"

_NATIVE = "torchgen/packaged/ATen/native/"
_AUTOGRAD = "torchgen/packaged/autograd/"
# What the generator reads. Hashes of these stand in the pin beside the wheel's, for a reviewer of a bump.
INPUTS = (
    _NATIVE + "native_functions.yaml",
    _NATIVE + "tags.yaml",
    _AUTOGRAD + "derivatives.yaml",
    _AUTOGRAD + "deprecated.yaml",
)

# Raised when what this module writes beside upstream's files changes, so that old trees are laid anew.
LAYOUT = 2


class UpstreamError(RuntimeError):
    """The upstream wheel is missing, damaged or not the pinned one."""


@dataclass(frozen=True)
class Pin:
    version: str
    label: str
    platform: str
    python: str
    wheel_sha256: str
    files: dict[str, str]

    def local_version(self, version: str) -> str:
        return f"{version}+{self.label}"


def read_pin() -> Pin:
    data = tomllib.loads(PIN_FILE.read_text(encoding="utf-8"))
    wheel = data["wheel"]
    return Pin(
        version=data["version"],
        label=data["label"],
        platform=wheel["platform"],
        python=wheel["python"],
        wheel_sha256=wheel["sha256"],
        files=dict(data["files"]),
    )


def fetch(version: str | None = None) -> Path:
    """Lays upstream's tree at build/upstream/<version>/ and returns that path; a second call does nothing.

    A version other than the pinned one is checked against the wheel's own RECORD only.
    """
    pin = read_pin()
    version = version or pin.version
    target = STORE / version
    pinned = version == pin.version
    wanted = {"layout": LAYOUT, "version": pin.local_version(version), "wheel": pin.wheel_sha256 if pinned else None}
    if _is_current(target, wanted):
        return target
    STORE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=STORE) as scratch:
        wheel = _download(version, pin, Path(scratch) / "wheel")
        digest = _sha256_file(wheel)
        if pinned and digest != pin.wheel_sha256:
            raise UpstreamError(f"{wheel.name}: expected sha256 {pin.wheel_sha256} (upstream.toml), got {digest}")
        tree = Path(scratch) / "tree"
        record = _extract(wheel, tree)
        if pinned:
            _check_inputs(tree, pin)
        local = pin.local_version(version)
        _write_version_file(wheel, tree, local)
        _write_dist_info(wheel, tree, version, local)
        stamp = {**wanted, "wheel": digest if pinned else None, "wheel_name": wheel.name, "files": record}
        (tree / "record.json").write_text(json.dumps(stamp, indent=0, sort_keys=True) + "\n", encoding="utf-8")
        if target.exists():
            shutil.rmtree(target)
        tree.rename(target)
    return target


def record(version: str | None = None) -> dict[str, str]:
    """Upstream's own RECORD (path -> "sha256=<base64>") for each file taken over unchanged."""
    return json.loads((fetch(version) / "record.json").read_text(encoding="utf-8"))["files"]


def dist_info(version: str | None = None) -> Path:
    """The folder that tells other packages which torch is installed; it has no RECORD on purpose."""
    (folder,) = fetch(version).glob("torch-*.dist-info")
    return folder


def pin(version: str) -> Pin:
    """Rewrites upstream.toml for another upstream version and returns the new pin."""
    old = read_pin()
    STORE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=STORE) as scratch:
        wheel = _download(version, old, Path(scratch))
        with zipfile.ZipFile(wheel) as archive:
            files = {name: hashlib.sha256(archive.read(name)).hexdigest() for name in INPUTS}
        digest = _sha256_file(wheel)
    new = Pin(version, old.label, old.platform, old.python, digest, files)
    PIN_FILE.write_text(_pin_text(new), encoding="utf-8")
    return new


def stage(into: Path, version: str | None = None) -> Path:
    """Lays the tree into `into`, where the build puts torch._C and torchnative; keeps what the build put there.

    Hard links, not symbolic ones: Python must see one real path for each module.
    """
    source = fetch(version)
    stamp = into / ".staged"
    mark = _sha256_file(source / "record.json")
    if stamp.exists() and stamp.read_text() == mark:
        return into
    into.mkdir(parents=True, exist_ok=True)
    for package in PACKAGES:
        if (into / package).exists():
            _remove_all_but_built(into / package)
    for old in into.glob("torch-*.dist-info"):
        shutil.rmtree(old)
    for folder, subfolders, names in os.walk(source):
        subfolders[:] = [name for name in subfolders if name != "__pycache__"]
        relative = Path(folder).relative_to(source)
        for name in names:
            if relative == Path(".") and name == "record.json":
                continue
            _link(Path(folder) / name, into / relative / name)
    ours = into / "torchnative"
    if not ours.is_symlink() and (ROOT / "torchnative").is_dir():
        ours.symlink_to(ROOT / "torchnative", target_is_directory=True)
    stamp.write_text(mark)
    return into


def _is_current(target: Path, wanted: dict[str, object]) -> bool:
    path = target / "record.json"
    if not path.exists():
        return False
    have = json.loads(path.read_text(encoding="utf-8"))
    return all(have.get(key) == value for key, value in wanted.items())


def _download(version: str, pin: Pin, folder: Path) -> Path:
    given = os.environ.get("TN_UPSTREAM_WHEEL")
    if given:
        return Path(given)
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--platform", pin.platform, "--python-version", pin.python, "--dest", str(folder), f"torch=={version}"]
    print(f"getting upstream's wheel of torch {version} (about 110 MB)", file=sys.stderr, flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    wheels = sorted(folder.glob("torch-*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        raise UpstreamError(f"pip download of torch {version} failed:\n{done.stdout}")
    return wheels[0]


def _extract(wheel: Path, tree: Path) -> dict[str, str]:
    """Writes the Python tree, each file checked against the wheel's RECORD; returns the RECORD of these files."""
    kept: dict[str, str] = {}
    with zipfile.ZipFile(wheel) as archive:
        hashes = _wheel_record(archive)
        for name in archive.namelist():
            if not _is_python_tree(name):
                continue
            data = archive.read(name)
            if _record_hash(data) != hashes.get(name):
                raise UpstreamError(f"{wheel.name}: {name} does not have the hash in the wheel's RECORD")
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            if name != OUR_VERSION_FILE:
                kept[name] = hashes[name]
    return kept


def _is_python_tree(name: str) -> bool:
    if name.split("/", 1)[0] not in PACKAGES or name.endswith("/"):
        return False
    return not name.startswith(LEFT_OUT_FOLDERS) and not name.endswith(LEFT_OUT_SUFFIXES)


def _wheel_record(archive: zipfile.ZipFile) -> dict[str, str]:
    text = archive.read(_dist_info_member(archive, "RECORD")).decode("utf-8")
    return {row[0]: row[1] for row in csv.reader(io.StringIO(text)) if row}


def _dist_info_member(archive: zipfile.ZipFile, file: str) -> str:
    names = [name for name in archive.namelist() if name.endswith(f".dist-info/{file}") and name.count("/") == 1]
    if len(names) != 1:
        raise UpstreamError(f"expected one {file} in the wheel, got {len(names)}")
    return names[0]


def _check_inputs(tree: Path, pin: Pin) -> None:
    if set(pin.files) != set(INPUTS):
        raise UpstreamError(f"upstream.toml: expected hashes of {', '.join(INPUTS)}, got {', '.join(pin.files)}")
    for name, expected in pin.files.items():
        got = _sha256_file(tree / name)
        if got != expected:
            raise UpstreamError(f"{name}: expected sha256 {expected} (upstream.toml), got {got}")


def _write_version_file(wheel: Path, tree: Path, local: str) -> None:
    """Our torch/version.py: upstream's names, our version, upstream's commit, and no accelerator."""
    with zipfile.ZipFile(wheel) as archive:
        theirs = ast.parse(archive.read(OUR_VERSION_FILE))
    values: dict[str, object] = {}
    for node in theirs.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            values[ast.unparse(target)] = ast.literal_eval(node.value)
    names = values.pop("__all__")
    fixed = {"__version__": local, "debug": False, "git_version": values["git_version"]}
    unknown = {name: value for name, value in values.items() if name not in fixed and value is not None}
    if unknown:
        raise UpstreamError(f"torch/version.py: expected accelerator names that are None, got {unknown}")
    lines = ["from typing import Optional", "", f"__all__ = {names!r}"]
    for name in names:
        lines.append(f"{name} = {fixed[name]!r}" if name in fixed else f"{name}: Optional[str] = None")
    (tree / OUR_VERSION_FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_dist_info(wheel: Path, tree: Path, version: str, local: str) -> None:
    """Metadata under upstream's name, so that packages which ask for torch find it installed.

    Without a RECORD: pip then refuses to replace or remove it by itself, and INSTALLER names who can.
    """
    folder = tree / f"torch-{local}.dist-info"
    (folder / "licenses").mkdir(parents=True)
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(_dist_info_member(archive, "METADATA")).decode("utf-8")
        (folder / "entry_points.txt").write_bytes(archive.read(_dist_info_member(archive, "entry_points.txt")))
        stem = _dist_info_member(archive, "METADATA").rsplit("/", 1)[0]
        (folder / "licenses" / "LICENSE").write_bytes(archive.read(f"{stem}/licenses/LICENSE"))
    (folder / "METADATA").write_text(_our_metadata(metadata, version, local), encoding="utf-8")
    # Not every upstream wheel has it; without a RECORD it is all that tells which modules are torch's.
    (folder / "top_level.txt").write_text("".join(f"{name}\n" for name in sorted(PACKAGES)), encoding="utf-8")
    (folder / "INSTALLER").write_text("torchnative\n", encoding="utf-8")


def _our_metadata(text: str, version: str, local: str) -> str:
    head, _, body = text.partition("\n\n")
    lines = []
    for line in head.split("\n"):
        key, _, value = line.partition(": ")
        if key == "Version":
            if value != version:
                raise UpstreamError(f"METADATA: expected Version {version}, got {value}")
            line = f"Version: {local}"
        # CUDA and Triton, which only upstream's binary needs.
        if key == "Requires-Dist" and "platform_system" in value:
            continue
        # Licences of libraries inside upstream's binaries, which are not in our wheel.
        if key == "License-File" and value != "LICENSE":
            continue
        lines.append(line)
    return "\n".join(lines) + "\n\n" + body


def run_time_requirements(version: str | None = None) -> list[str]:
    """What torch's Python tree asks for at run time; our own metadata repeats it."""
    text = (dist_info(version) / "METADATA").read_text(encoding="utf-8")
    wanted = Parser().parsestr(text, headersonly=True).get_all("Requires-Dist", [])
    return [line for line in wanted if "extra ==" not in line]


def _remove_all_but_built(folder: Path) -> None:
    """Removes an old tree, but not what the compiler put there: torch/_C*.so, torch/lib and torch/bin."""
    for path in folder.iterdir():
        if folder.name == "torch" and (path.name in ("lib", "bin") or path.suffix == ".so"):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _record_hash(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    return "sha256=" + digest.rstrip(b"=").decode("ascii")


def _sha256_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _pin_text(pin: Pin) -> str:
    lines = [
        "# The upstream release whose Python tree we ship and whose data we generate from.",
        "# Moved by `make codegen TORCH_VERSION=x.y.z`, never by hand.",
        f'version = "{pin.version}"',
        "# Local version label of what we install as torch; raised when a release repeats an upstream version.",
        f'label = "{pin.label}"',
        "",
        "# One wheel serves all platforms: they differ only in binaries and torch/version.py; this is the smallest.",
        "[wheel]",
        f'platform = "{pin.platform}"',
        f'python = "{pin.python}"',
        f'sha256 = "{pin.wheel_sha256}"',
        "",
        "# What the generator reads, sha256.",
        "[files]",
    ]
    lines += [f'"{name}" = "{digest}"' for name, digest in pin.files.items()]
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m codegen.upstream", description=__doc__.split("\n", 1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fetch").add_argument("version", nargs="?")
    commands.add_parser("pin").add_argument("version")
    commands.add_parser("stage").add_argument("into", type=Path)
    arguments = parser.parse_args(argv)
    try:
        if arguments.command == "fetch":
            print(fetch(arguments.version))
        elif arguments.command == "pin":
            print(f"pinned torch {pin(arguments.version).version}")
        else:
            print(stage(arguments.into.absolute()))
    except UpstreamError as error:
        print(f"codegen.upstream: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
