"""Values as bytes, so that two interpreters with different torch can pass them: JSON beside raw storages.

A file is a sequence of records; a record is one JSON document and one blob. Runs under both interpreters and asks
little of torch: attributes of a tensor and raw memory, and `as_strided` or `set_` to build one.
"""

from __future__ import annotations

import contextlib
import ctypes
import inspect
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

MAX_BYTES = 1 << 24  # of one storage: larger ones make a sample "unsent"
_HEAD = struct.Struct("<IQ")
_WIDER = {
    "float16": "float64",
    "bfloat16": "float64",
    "float32": "float64",
    "complex32": "complex128",
    "complex64": "complex128",
}


class Unsent(Exception):
    """A value that this format can't carry; the sample is counted as such."""


def write_record(file: Any, document: dict[str, Any], blob: bytes) -> None:
    text = json.dumps(document, separators=(",", ":")).encode()
    file.write(_HEAD.pack(len(text), len(blob)) + text + blob)


def read_records(path: Path) -> Iterator[tuple[dict[str, Any], bytes]]:
    """The whole records of a file; a torn last one (its writer was killed) is left out."""
    data = path.read_bytes()
    at = 0
    while at + _HEAD.size <= len(data):
        n, m = _HEAD.unpack_from(data, at)
        end = at + _HEAD.size + n + m
        if end > len(data):
            return
        start = at + _HEAD.size
        yield json.loads(data[start : start + n]), data[start + n : end]
        at = end


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def raw_bytes(t: torch.Tensor) -> bytes:
    """The bytes of a tensor's whole storage, as they lie in memory."""
    storage = t.untyped_storage()
    n = storage.nbytes()
    if n > MAX_BYTES:
        raise Unsent(f"a storage of {n} bytes")
    return ctypes.string_at(storage.data_ptr(), n) if n else b""


class Writer:
    """Encodes values into JSON and collects the storages that they refer to."""

    def __init__(self) -> None:
        self.blob = bytearray()
        self._storages: dict[int, list[int]] = {}
        self._kept: list[Any] = []  # addresses are names only as long as the objects live
        self.replace: Callable[[torch.Tensor], Any] = lambda t: None

    def storage(self, t: torch.Tensor) -> list[int]:
        """[start, bytes] in the blob; equal for tensors that share memory."""
        # Both torches keep the C++ storage's address in `_cdata`; data_ptr is 0 for every empty one.
        key = t.untyped_storage()._cdata
        if key not in self._storages:
            data = raw_bytes(t)
            self._storages[key] = [len(self.blob), len(data)]
            self.blob += data
            self._kept.append(t)
        return self._storages[key]

    def tensor(self, t: torch.Tensor) -> dict[str, Any]:
        if t.layout is not torch.strided:
            raise Unsent(f"layout {t.layout}")
        if t.device.type not in ("cpu", "meta"):
            raise Unsent(f"device {t.device}")
        out: dict[str, Any] = {
            "$": "tensor",
            "dtype": dtype_name(t.dtype),
            "shape": list(t.shape),
            "stride": list(t.stride()),
            "offset": t.storage_offset(),
        }
        if type(t) is not torch.Tensor:
            out["class"] = f"{type(t).__module__}.{type(t).__qualname__}"
        if t.device.type == "meta":
            return out | {"device": "meta"}
        for flag in ("conj", "neg"):
            with contextlib.suppress(NotImplementedError):  # unserved: no flag, which differs where upstream has one
                if getattr(t, f"is_{flag}")():
                    out[flag] = True
        if t.requires_grad:
            out["requires_grad"] = True
        return out | {"storage": self.storage(t)}

    def value(self, v: Any) -> Any:
        """One value as JSON; `replace` may answer for tensors that have another name."""
        if isinstance(v, torch.Tensor):
            found = self.replace(v)
            return self.tensor(v) if found is None else found
        if v is None or isinstance(v, (bool, str)):
            return v
        if type(v) is int:
            return v if abs(v) < 1 << 53 else {"$": "int", "v": str(v)}
        if type(v) is float:
            return {"$": "float", "v": v.hex()}
        if isinstance(v, complex):
            return {"$": "complex", "v": [v.real.hex(), v.imag.hex()]}
        if isinstance(v, torch.Size):
            return {"$": "size", "v": list(v)}
        if isinstance(v, (list, tuple)):
            return self._sequence(v)
        if isinstance(v, dict):
            return {"$": "dict", "v": [[self.value(k), self.value(x)] for k, x in v.items()]}
        if isinstance(v, (torch.dtype, torch.layout, torch.memory_format)):
            return {"$": "torch", "v": str(v).removeprefix("torch.")}
        if isinstance(v, torch.device):
            return {"$": "device", "v": str(v)}
        if isinstance(v, slice):
            return {"$": "slice", "v": [self.value(x) for x in (v.start, v.stop, v.step)]}
        if v is Ellipsis:
            return {"$": "ellipsis"}
        return self._foreign(v)

    def _sequence(self, v: Any) -> dict[str, Any]:
        out = {"$": "list" if isinstance(v, list) else "tuple", "v": [self.value(x) for x in v]}
        if type(v) not in (list, tuple):
            out["class"] = f"{type(v).__module__}.{type(v).__qualname__}"
        return out

    def _foreign(self, v: Any) -> dict[str, Any]:
        kind = type(v)
        if isinstance(v, range):
            return {"$": "range", "v": [v.start, v.stop, v.step]}
        if isinstance(v, int) or isinstance(v, float):  # enum members, numpy's float64
            return self.value(kind.__mro__[-2](v)) if kind.__module__ != "numpy" else self._numpy(v)
        if kind.__module__ == "numpy":
            return self._numpy(v)
        if inspect.isclass(v) and v in (bool, int, float, complex):
            return {"$": "builtin", "v": v.__name__}
        raise Unsent(f"a {kind.__module__}.{kind.__qualname__}")

    @staticmethod
    def _numpy(v: Any) -> dict[str, Any]:
        if getattr(v, "shape", None) != ():
            raise Unsent(f"a numpy {type(v).__name__}")
        return {"$": "numpy", "dtype": v.dtype.str, "v": v.tobytes().hex()}


class Reader:
    """Builds values again. With `wider`, floating tensors and dtypes become float64 and complex128."""

    def __init__(self, blob: bytes, wider: bool = False) -> None:
        self.blob, self.wider = blob, wider
        self.widened = False
        self._storages: dict[tuple[int, int, str], torch.Tensor] = {}
        self.lookup: Callable[[dict[str, Any]], Any] = lambda v: v

    def flat(self, where: list[int], dtype: str) -> torch.Tensor:
        """The storage at `where` as a flat tensor, one for each use of the same storage."""
        key = (where[0], where[1], dtype)
        if key not in self._storages:
            kind = getattr(torch, dtype)
            n = where[1] // kind.itemsize
            flat = torch.empty(n, dtype=kind)
            ctypes.memmove(
                flat.untyped_storage().data_ptr(), self.blob[where[0] : where[0] + n * kind.itemsize], n * kind.itemsize
            )
            if self.wider and dtype in _WIDER:
                flat = flat.to(getattr(torch, _WIDER[dtype]))
                self.widened = True
            self._storages[key] = flat
        return self._storages[key]

    def tensor(self, v: dict[str, Any]) -> torch.Tensor:
        if v.get("device") == "meta":
            return torch.empty_strided(v["shape"], v["stride"], dtype=getattr(torch, v["dtype"]), device="meta")
        flat = self.flat(v["storage"], v["dtype"])
        t = torch.as_strided(flat, v["shape"], v["stride"], v["offset"])
        if v.get("conj"):
            t = torch.conj(t)
        if v.get("neg"):
            t = torch._neg_view(t)
        if v.get("requires_grad"):
            t.requires_grad_()
        return t

    def value(self, v: Any) -> Any:
        if not isinstance(v, dict):
            return v
        kind = v["$"]
        if kind == "tensor":
            return self.tensor(v)
        if kind in ("list", "tuple"):
            items = [self.value(x) for x in v["v"]]
            return items if kind == "list" else tuple(items)
        if kind == "dict":
            return {self.value(k): self.value(x) for k, x in v["v"]}
        simple = self._simple(kind, v)
        return self.lookup(v) if simple is NotImplemented else simple

    def _simple(self, kind: str, v: dict[str, Any]) -> Any:
        if kind == "torch":
            name = v["v"]
            if self.wider and name in _WIDER:
                self.widened, name = True, _WIDER[name]
            return getattr(torch, name)
        if kind == "numpy":
            import numpy

            return numpy.frombuffer(bytes.fromhex(v["v"]), dtype=v["dtype"])[0]
        if kind == "ellipsis":
            return Ellipsis
        if kind == "slice":
            return slice(*(self.value(x) for x in v["v"]))
        makers: dict[str, Callable[[Any], Any]] = {
            "int": int,
            "float": float.fromhex,
            "complex": lambda x: complex(float.fromhex(x[0]), float.fromhex(x[1])),
            "size": torch.Size,
            "device": torch.device,
            "range": lambda x: range(*x),
            "builtin": lambda x: {"bool": bool, "int": int, "float": float, "complex": complex}[x],
        }
        return makers[kind](v["v"]) if kind in makers else NotImplemented
