"""Build backend: scikit-build-core, and after it the metadata that makes other packages see torch.

A wheel may hold one top-level dist-info only, and scikit-build-core leaves out any other; pip takes a second one from
.data/purelib, which it lays into site-packages and lists in our RECORD, so that uninstalling removes it as well.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import stat
import sys
import tempfile
import zipfile
from pathlib import Path

from scikit_build_core import build as _inner

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from codegen import upstream

get_requires_for_build_sdist = _inner.get_requires_for_build_sdist
get_requires_for_build_wheel = _inner.get_requires_for_build_wheel
build_sdist = _inner.build_sdist


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as scratch:
        name = _inner.build_wheel(scratch, config_settings, None)
        _add_torch_metadata(Path(scratch) / name, Path(wheel_directory) / name)
    return name


def _add_torch_metadata(source: Path, target: Path) -> None:
    stem = "-".join(source.name.split("-")[:2])
    record_name = f"{stem}.dist-info/RECORD"
    torch_info = upstream.dist_info()
    rows: list[tuple[str, str, str]] = []
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:

        def add(info: zipfile.ZipInfo, data: bytes) -> None:
            info.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(info, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode("ascii")
            rows.append((info.filename, f"sha256={digest}", str(len(data))))

        record = old.getinfo(record_name)
        for info in old.infolist():
            if info.filename != record_name:
                add(info, old.read(info))
        for path in sorted(torch_info.rglob("*")):
            if path.is_file():
                relative = path.relative_to(torch_info.parent).as_posix()
                add(_like(record, f"{stem}.data/purelib/{relative}"), path.read_bytes())
        # Without it importlib.metadata would name us, not torch, as the distribution of the module torch.
        add(_like(record, f"{stem}.dist-info/top_level.txt"), b"torchnative\n")
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([*rows, (record_name, "", "")])
        new.writestr(_like(record, record_name), text.getvalue())


def _like(model: zipfile.ZipInfo, name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, model.date_time)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    return info
