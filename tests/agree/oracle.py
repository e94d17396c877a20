"""Upstream's side: its samples as programs, what upstream answers, and the answer in higher precision.

    python oracle.py list                          every OpInfo: name, variant, aliases, dtypes
    python oracle.py sample --out DIR NAME...      one file of records for each OpInfo 'name/variant'

Runs in upstream's own environment with one thread. Seeds are fixed, so that a file depends on upstream's version alone.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import forks
import numpy as np
import torch
from program import outcome, trace
from wire import Unsent, dtype_name, write_record

SAMPLES = 16  # of one operator and dtype, spread evenly over upstream's
METHODS, INPLACE, OUT = 2, 8, 4  # of those, how many are also called in these ways


def database() -> dict[str, Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    return {f"{op.name}/{op.variant_test_name}": op for op in op_db}


def seed() -> None:
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)


def spread(samples: list[Any], count: int) -> list[Any]:
    """`count` of the samples, evenly; the first and the last are among them."""
    if len(samples) <= count:
        return samples
    return [samples[round(i * (len(samples) - 1) / (count - 1))] for i in range(count)]


def calls(op: Any, dtype: torch.dtype) -> Iterator[tuple[str, int, Callable[[], Any]]]:
    """(leg, number of the sample, callable) for one OpInfo and dtype."""

    def make() -> list[tuple[int, Any]]:
        seed()
        return spread(list(enumerate(op.sample_inputs("cpu", dtype, requires_grad=False))), SAMPLES)

    for n, s in make():
        yield "function", n, lambda s=s: op.op(s.input, *s.args, **s.kwargs)
    method = op.method_variant
    if method is not None:
        for n, s in make()[:METHODS]:
            yield "method", n, lambda s=s: method(s.input, *s.args, **s.kwargs)
    inplace = op.inplace_variant
    if inplace is not None:
        for n, s in spread(make(), INPLACE):
            if not s.broadcasts_input:
                yield "inplace", n, lambda s=s: inplace(s.input, *s.args, **s.kwargs)
    if op.supports_out:
        for n, s in spread(make(), OUT):
            yield "out", n, lambda s=s: with_out(op, s, empty=False)
        for n, s in make()[:1]:
            yield "out", n, lambda s=s: with_out(op, s, empty=True)


def with_out(op: Any, s: Any, empty: bool) -> Any:
    """Calls with out= of the right shape and strange content, or with tensors of no elements, to be resized."""
    with torch._C.DisableTorchFunction():
        expected = op.op(s.input, *s.args, **s.kwargs)

    def target(t: torch.Tensor) -> torch.Tensor:
        with torch._C.DisableTorchFunction():
            return torch.empty(0, dtype=t.dtype) if empty else torch.full(t.shape, 3, dtype=t.dtype)

    flat = isinstance(expected, torch.Tensor)
    out = target(expected) if flat else tuple(target(t) for t in expected)
    return op.op(s.input, *s.args, **s.kwargs, out=out)


def error_calls(op: Any) -> Iterator[tuple[str, int, Callable[[], Any]]]:
    if op.error_inputs_func is None:
        return
    seed()
    for n, e in enumerate(op.error_inputs("cpu")):
        s = e.sample_input
        yield "errors", n, lambda s=s: op.op(s.input, *s.args, **s.kwargs)


class Watch:
    """Makes a call and keeps the operators that it called from outside, with their overloads, as the profiler saw them."""

    def __init__(self) -> None:
        self.called: list[str] = []

    def __call__(self, call: Callable[[], Any]) -> Any:
        from torch._C._profiler import _ExperimentalConfig
        from torch.profiler import ProfilerActivity, profile

        config = _ExperimentalConfig(capture_overload_names=True)
        p = profile(activities=[ProfilerActivity.CPU], experimental_config=config)
        try:
            with p:
                return call()
        finally:
            names = {f"{e.name}.{e.overload_name}".removesuffix(".") for e in p.events() if e.cpu_parent is None}
            self.called = sorted(n.removeprefix("aten::") for n in names if n.startswith("aten::"))


class Sampler:
    """Writes the records of one OpInfo."""

    def __init__(self, name: str, op: Any, file: Any) -> None:
        self.name, self.op, self.file, self.count = name, op, file, 0

    def record(self, dtype: str, leg: str, n: int, call: Callable[[], Any]) -> None:
        head = {"id": self.count, "op": self.name, "dtype": dtype, "leg": leg, "n": n}
        self.count += 1
        try:
            with torch.random.fork_rng():
                program, blob = trace(call)
            watch = Watch()
            expect, expect_blob, _ = outcome(program, blob, watch=watch)
            random = self._random(program, blob, (expect, expect_blob))
        except Unsent as error:
            write_record(self.file, head | {"unsent": str(error)}, b"")
            return
        head |= {"program": program, "overloads": watch.called, "expect": expect, "random": random}
        parts = [blob, expect_blob]
        if "value" in expect and not head["random"]:
            try:
                wide, wide_blob, widened = outcome(program, blob, wider=True)
            except Unsent:
                widened = False
            if widened and "value" in wide:
                head["reference"] = wide
                parts.append(wide_blob)
        head["sizes"] = [len(p) for p in parts]
        write_record(self.file, head, b"".join(parts))

    @staticmethod
    def _random(program: dict[str, Any], blob: bytes, found: tuple[Any, bytes]) -> bool:
        """Whether the outcome depends on the seed, as a random draw does. Some of upstream's reductions differ in the
        last bits from run to run (by the alignment of their inputs): what differs for one seed is not a random draw."""
        import program as module

        kept = torch.manual_seed
        module.torch.manual_seed = lambda _: kept(1)
        try:
            document, other, _ = outcome(program, blob)
            document_again, other_again, _ = outcome(program, blob)
        finally:
            module.torch.manual_seed = kept
        return (document, other) != found and (document, other) == (document_again, other_again)

    def all(self) -> None:
        order = sorted(self.op.supported_dtypes("cpu"), key=dtype_name)
        for dtype in order:
            self._leg(dtype_name(dtype), lambda dtype=dtype: calls(self.op, dtype))
        self._leg("-", lambda: error_calls(self.op))

    def _leg(self, dtype: str, source: Callable[[], Iterator[Any]]) -> None:
        try:
            for leg, n, call in source():
                self.record(dtype, leg, n, call)
        except Exception as error:  # upstream's sample function itself failed: nothing to compare
            head = {"id": self.count, "op": self.name, "dtype": dtype, "leg": "sampling", "n": 0}
            self.count += 1
            write_record(self.file, head | {"unsent": f"upstream's samples: {type(error).__name__}: {error}"[:300]}, b"")


def sample(name: str, op: Any, out: Path) -> int:
    path = out / f"{name.replace('/', '@')}.samples"
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        sampler = Sampler(name, op, file)
        sampler.all()
    part.rename(path)
    return sampler.count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("list", "sample"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path, default=Path())
    args = parser.parse_intermixed_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    ops = database()
    if args.do == "list":
        for name, op in ops.items():
            aliases = [a.name for a in op.aliases] + ([op.aten_name] if op.aten_name else [])
            print(json.dumps({"name": name, "aliases": aliases}))
        return 0
    args.out.mkdir(parents=True, exist_ok=True)
    # One child an OpInfo: a batch of one item, so that memory goes back and no state passes on.
    for name in args.names:
        for _, count, problem in forks.each([name], lambda n: sample(n, ops[n], args.out), timeout=900):
            print(json.dumps({"name": name, "count": count, "problem": problem.strip().splitlines()[-1:]}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
