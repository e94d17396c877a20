"""Says for each recorded sample whether our answer agrees with upstream's, by the tolerance rule.

    python judge.py --samples DIR --answers DIR NAME...    one JSON line for each sample

Runs in upstream's environment. The rule (architecture.md, "Numbers"): against a reference in higher precision we may be off
by at most twice upstream's own error, taken as the largest among neighbours in magnitude, plus FLOOR units in the last
place. Without a wider reference torch.testing's default tolerance holds. Integers, booleans, indices, shapes, dtypes, strides,
shared memory, written inputs and error classes are exact.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch
from wire import Reader, read_records

FLOOR = 4.0
# Neighbours on each side, in the order of magnitudes: 8, or a sixteenth of the elements. With 8 in a tensor of 2,688 (MiniLM's
# embeddings) upstream's AVX2 and scalar paths already miss the allowance that its AVX-512 path gives (1.2 and 1.4 times).
NEIGHBOURS, SHARE = 8, 16
# torch.testing's defaults: (rtol, atol)
DEFAULT = {
    torch.float16: (1e-3, 1e-5), torch.bfloat16: (1.6e-2, 1e-5), torch.float32: (1.3e-6, 1e-5), torch.float64: (1e-7, 1e-7),
}  # fmt: skip
# Memory that upstream leaves undefined: only the metadata is compared.
UNDEFINED = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "resize_",
    "resize_as_",
}
# Random draws that go through arithmetic which may differ in the last bits; all other draws are equal in every bit.
COMPUTED_DRAWS = {"svd_lowrank", "pca_lowrank", "nn.functional.scaled_dot_product_attention",
                  "nn.functional.multi_head_attention_forward"}  # fmt: skip
# Vectors that are only determined up to a factor of magnitude one: compared by their magnitudes. {op: results}
UP_TO_PHASE = {"linalg.eig": {1}, "linalg.eigh": {1}, "linalg.svd": {0, 2}, "svd": {0, 2}}


class Difference(Exception):
    """The first thing in which an answer differs."""


def ulp(reference: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The unit in the last place of `dtype` at each value of a float64 tensor."""
    info = torch.finfo(dtype)
    exponent = torch.frexp(reference.abs().clamp(min=info.tiny))[1].to(torch.float64) - 1
    return torch.exp2(exponent) * info.eps


def neighbourhood(error: torch.Tensor, magnitude: torch.Tensor) -> torch.Tensor:
    """For each element the largest error among its neighbours in the order of magnitudes."""
    order = magnitude.argsort(stable=True)
    side = max(NEIGHBOURS, error.numel() // SHARE)
    padded = torch.nn.functional.pad(error[order], (side, side)).view(1, 1, -1)
    most = torch.nn.functional.max_pool1d(padded, 2 * side + 1, stride=1)
    result = torch.empty_like(error)
    result[order] = most.view(-1)
    return result


def describe(ours: torch.Tensor, theirs: torch.Tensor, bad: torch.Tensor, shape: list[int], note: str) -> str:
    """The first differing element, for people."""
    k = int(bad.nonzero()[0])
    index, rest = [], k
    for n in reversed(shape):
        index.append(rest % n)
        rest //= n
    values = f"{ours[k].item()!r}, upstream {theirs[k].item()!r}"
    return f"{int(bad.sum())} of {bad.numel()} values{note}, first at {index[::-1]}: {values}"


def compare_floats(ours: torch.Tensor, theirs: torch.Tensor, wide: torch.Tensor | None, shape: list[int]) -> None:
    """Flat real tensors of one floating dtype; `wide` is the float64 reference."""
    if not theirs.numel():
        return
    dtype = ours.dtype
    a, b = ours.to(torch.float64), theirs.to(torch.float64)
    odd = ~(a.isfinite() & b.isfinite())
    same = (a == b) | (a.isnan() & b.isnan())
    bad = odd & ~same
    rtol, atol = DEFAULT.get(dtype, (0.0, 0.0))
    off = (a - b).abs()
    loose = off > atol + rtol * b.abs()
    if wide is None:
        bad |= ~odd & loose
        note = " by torch.testing's tolerance"
    else:
        known = wide.isfinite() & ~odd
        bad |= ~odd & ~known & loose
        reference = torch.where(known, wide, 0.0)
        theirs_off = torch.where(known, (b - reference).abs(), 0.0)
        allowed = 2 * neighbourhood(theirs_off, reference.abs()) + FLOOR * ulp(reference, dtype)
        off = (a - reference).abs()
        bad |= known & (off > allowed)
        worst = float(torch.where(known, off / allowed, 0.0).max())
        note = f" by up to {worst:.2g} times the allowance"
    if bad.any():
        raise Difference(describe(ours, theirs, bad, shape, note))


def flat(t: torch.Tensor) -> torch.Tensor:
    """The values in order, in memory of their own: one-element tensors may have any stride and count as contiguous."""
    return torch.empty(t.numel(), dtype=t.dtype).copy_(t.reshape(-1))


def compare_tensors(ours: torch.Tensor, theirs: torch.Tensor, wide: torch.Tensor | None, how: str) -> None:
    shape = list(theirs.shape)
    if theirs.is_meta or how == "undefined":
        return
    a, b = flat(ours), flat(theirs)
    if wide is not None and (list(wide.shape) != shape or wide.dtype not in (torch.float64, torch.complex128)):
        wide = None
    if b.dtype in (torch.float64, torch.complex128):
        wide = None  # a reference that is no wider than the answer tells nothing of upstream's error
    if wide is not None:
        wide = flat(wide)
    if not (b.dtype.is_floating_point or b.dtype.is_complex) or how == "bits" or b.dtype.itemsize == 1:
        bits = torch.uint8 if b.numel() else None
        bad = (a.view(bits).view(-1, b.dtype.itemsize) != b.view(bits).view(-1, b.dtype.itemsize)).any(1) if bits else None
        if bad is not None and bad.any():
            raise Difference(describe(a, b, bad, shape, ", exact"))
        return
    if how == "phase":
        a, b, wide = a.abs(), b.abs(), None if wide is None else wide.abs()
    if b.dtype.is_complex:
        a, b = torch.view_as_real(a).reshape(-1), torch.view_as_real(b).reshape(-1)
        wide = None if wide is None else torch.view_as_real(wide).reshape(-1)
        shape = [*shape, 2]
    if wide is not None and not wide.dtype.is_floating_point:
        wide = None
    compare_floats(a, b, wide, shape)


class Judge:
    """Compares two outcomes of one sample."""

    def __init__(self, head: dict[str, Any], blobs: list[bytes], answer: dict[str, Any], blob: bytes) -> None:
        self.head, self.answer = head, answer
        self.theirs, self.ours = Reader(blobs[1]), Reader(blob)
        self.wide = Reader(blobs[2]) if len(blobs) > 2 else None
        self.base = head["op"].partition("/")[0]

    def how(self, index: int) -> str:
        if self.base in UNDEFINED:
            return "undefined"
        if self.head["random"] and self.base not in COMPUTED_DRAWS:
            return "bits"
        return "phase" if index in UP_TO_PHASE.get(self.base, ()) else ""

    def value(self, ours: Any, theirs: Any, wide: Any, where: str, index: int = 0) -> None:
        """Walks both documents; the values of tensors come from the blobs."""
        if not isinstance(theirs, dict) or not isinstance(ours, dict):
            if ours != theirs or type(ours) is not type(theirs):
                raise Difference(f"{where}: {ours!r}, upstream {theirs!r}")
            return
        if theirs["$"] != ours["$"] or theirs.get("class") != ours.get("class"):
            raise Difference(
                f"{where} is a {ours.get('class') or ours['$']}, upstream's a {theirs.get('class') or theirs['$']}"
            )
        wide = wide if isinstance(wide, dict) and wide["$"] == theirs["$"] else None
        if theirs["$"] == "tensor":
            self.tensor(ours, theirs, wide, where, index)
        elif theirs["$"] in ("list", "tuple", "dict"):
            if len(theirs["v"]) != len(ours["v"]):
                raise Difference(f"{where} has {len(ours['v'])} items, upstream's {len(theirs['v'])}")
            for i, (x, y) in enumerate(zip(ours["v"], theirs["v"], strict=True)):
                w = wide["v"][i] if wide and len(wide["v"]) == len(theirs["v"]) else None
                if theirs["$"] == "dict":
                    self.value(x[0], y[0], None, f"{where} key {i}")
                    x, y, w = x[1], y[1], w and w[1]
                self.value(x, y, w, f"{where}[{i}]", i)
        elif theirs["$"] in ("float", "complex"):
            self.number(ours, theirs, wide, where)
        elif ours != theirs:
            raise Difference(f"{where}: {ours['v']!r}, upstream {theirs['v']!r}")

    def number(self, ours: Any, theirs: Any, wide: Any, where: str) -> None:
        # A Python number comes from a tensor of the sample's dtype, so its precision is that dtype's.
        dtype = getattr(torch, self.head["dtype"], torch.float64) if self.head["dtype"] != "-" else torch.float64
        if dtype.is_complex:
            dtype = dtype.to_real()
        if not dtype.is_floating_point or self.head["random"]:
            dtype = torch.float64
        a, b, w = (None if v is None else torch.tensor(Reader(b"").value(v)).reshape(1) for v in (ours, theirs, wide))
        if b.is_complex():
            a, b, w = (None if t is None else torch.view_as_real(t).reshape(-1) for t in (a, b, w))
        w = None if w is None or dtype is torch.float64 else w.to(torch.float64)
        try:
            compare_floats(a.to(dtype), b.to(dtype), w, [b.numel()])
        except Difference as error:
            raise Difference(f"{where}: {error}") from None

    def tensor(self, ours: Any, theirs: Any, wide: Any, where: str, index: int) -> None:
        for key in ("dtype", "shape", "stride", "offset", "device", "conj", "neg", "requires_grad"):
            if ours.get(key) != theirs.get(key):
                raise Difference(f"{where}.{key}: {ours.get(key)}, upstream {theirs.get(key)}")
        if theirs.get("device") == "meta":
            return
        w = self.wide.value(wide) if wide and self.wide else None
        try:
            compare_tensors(self.ours.value(ours), self.theirs.value(theirs), w, self.how(index))
        except Difference as error:
            raise Difference(f"{where}: {error}") from None

    def __call__(self) -> tuple[str, str]:
        """(status, what): agree, differ, refused, error or crash."""
        theirs, ours = self.head["expect"], self.answer
        if "crash" in ours:
            return "crash", ours["crash"].strip().splitlines()[-1]
        if "unsent" in ours:
            return "differ", f"the answer holds {ours['unsent']}"
        if ours.get("stage"):
            kind = "refused" if ours["refused"] else "error"
            return kind, f"{ours['message']} (while building the inputs)"
        if ours.get("refused"):
            return "refused", ours["message"]
        if "raises" in theirs:
            if "raises" not in ours:
                return "differ", f"no error, upstream {theirs['raises']}: {theirs['message']}"
            if ours["raises"] != theirs["raises"]:
                return "differ", f"{ours['raises']}: {ours['message']}; upstream {theirs['raises']}: {theirs['message']}"
            return "agree", ""
        if "raises" in ours:
            return "error", f"{ours['raises']}: {ours['message']}"
        wide = self.head.get("reference") or {}
        try:
            self.value(ours["value"], theirs["value"], wide.get("value"), "result")
            if ours["shares"] != theirs["shares"]:
                raise Difference(f"results share memory with inputs {ours['shares']}, upstream's with {theirs['shares']}")
            if ours["changed"].keys() != theirs["changed"].keys():
                raise Difference(f"wrote to inputs {sorted(ours['changed'])}, upstream to {sorted(theirs['changed'])}")
            for i, after in theirs["changed"].items():
                self.value(ours["changed"][i], after, wide.get("changed", {}).get(i), f"input {i} afterwards")
        except Difference as error:
            return "differ", str(error)
        return "agree", ""


class GradientJudge(Judge):
    """Compares gradients, where the forward results agree. 'forward' says that they don't, or that there are none."""

    def how(self, index: int) -> str:
        return ""

    def __call__(self) -> tuple[str, str]:
        theirs, ours = self.head["expect"], self.answer
        if "crash" in ours:
            return "crash", ours["crash"].strip().splitlines()[-1]
        if "unsent" in ours:
            return "differ", f"the answer holds {ours['unsent']}"
        if "raises" in ours:
            kind = "forward" if ours["stage"] != "backward" else "refused" if ours["refused"] else "error"
            return kind, f"{ours['raises']}: {ours['message']}"
        wide = self.head.get("reference") or {}
        try:
            self.value(ours["outputs"], theirs["outputs"], wide.get("outputs"), "result")
        except Difference as error:
            return "forward", str(error)
        try:
            if ours["needs"] != theirs["needs"]:
                raise Difference(f"results need gradients: {ours['needs']}, upstream's {theirs['needs']}")
            self.value(ours["grads"], theirs["grads"], wide.get("grads"), "gradients")
        except Difference as error:
            return "differ", str(error)
        return "agree", ""


def judge(samples: Path, answers: Path) -> list[dict[str, Any]]:
    """One verdict for each sample of an OpInfo."""
    given = {a["id"]: (a, blob) for a, blob in read_records(answers)}
    verdicts = []
    for head, blob in read_records(samples):
        verdict = {k: head[k] for k in ("op", "dtype", "leg", "n")} | {"overloads": head.get("overloads", [])}
        if "unsent" in head:
            status, what = "unsent", head["unsent"]
        elif head["id"] not in given:
            status, what = "crash", "no answer"
        else:
            blobs, at = [], 0
            for n in head["sizes"]:
                blobs.append(blob[at : at + n])
                at += n
            kind = GradientJudge if "order" in head else Judge
            status, what = kind(head, blobs, *given[head["id"]])()
        verdicts.append(verdict | {"status": status, "what": what})
    return verdicts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=Path, required=True)
    parser.add_argument("--answers", type=Path, required=True)
    parser.add_argument("names", nargs="*")
    args = parser.parse_intermixed_args()
    torch.set_num_threads(1)
    for name in args.names:
        for verdict in judge(args.samples / f"{name}.samples", args.answers / f"{name}.answers"):
            print(json.dumps(verdict), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
