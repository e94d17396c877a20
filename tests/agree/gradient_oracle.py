"""Upstream's side of the comparison of gradients: programs on inputs that need gradients, and upstream's gradients of them,
also in forward mode.

    python gradient_oracle.py sample --out DIR NAME...

Samples of float32 and float64, as upstream's own gradient tests take them.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import forks
import torch
from gradients import ORDERS, derive
from oracle import Watch, database, seed, spread
from program import trace
from wire import Unsent, dtype_name, write_record

FIRST, SECOND, INPLACE, TANGENT = 8, 4, 3, 5  # samples of one operator and dtype
DTYPES = (torch.float32, torch.float64)


def calls(op: Any, dtype: torch.dtype) -> Iterator[tuple[str, int, Callable[[], Any]]]:
    """(leg, number of the sample, callable)."""

    def make(count: int) -> list[tuple[int, Any]]:
        seed()
        return spread(list(enumerate(op.sample_inputs("cpu", dtype, requires_grad=True))), count)

    def call(s: Any) -> Any:
        return s.output_process_fn_grad(op.gradcheck_wrapper(op.op, s.input, *s.args, **s.kwargs))

    for n, s in make(FIRST):
        yield "first", n, lambda s=s: call(s)
    inplace = op.inplace_variant
    if inplace is not None and op.supports_inplace_autograd:
        for n, s in make(INPLACE):
            if not s.broadcasts_input and isinstance(s.input, torch.Tensor):
                yield "inplace", n, lambda s=s: inplace(s.input.clone(), *s.args, **s.kwargs)
    if op.supports_gradgrad:
        for n, s in make(SECOND):
            yield "second", n, lambda s=s: call(s)
    if op.supports_forward_ad:
        for n, s in make(TANGENT):
            yield "tangent", n, lambda s=s: call(s)


class Sampler:
    """Writes the records of one OpInfo."""

    def __init__(self, name: str, op: Any, file: Any) -> None:
        self.name, self.op, self.file, self.count = name, op, file, 0

    def unsent(self, head: dict[str, Any], why: str) -> None:
        write_record(self.file, head | {"unsent": why[:300]}, b"")

    def record(self, dtype: str, leg: str, n: int, call: Callable[[], Any]) -> None:
        head = {"id": self.count, "op": self.name, "dtype": dtype, "leg": leg, "n": n, "order": ORDERS[leg]}
        self.count += 1
        try:
            with torch.random.fork_rng():
                program, blob = trace(call)
            watch = Watch()
            order = ORDERS[leg]
            expect, found, _ = derive(program, blob, order, watch=watch)
            if "raises" in expect:
                self.unsent(head, f"upstream in {expect['stage']}: {expect['message']}")
                return
            if not any(expect["needs"]):
                self.unsent(head, "no result needs a gradient")
                return
            other = derive(program, blob, order, seed=1)[:2]
            random = other != (expect, found) and derive(program, blob, order, seed=1)[:2] == other
            head |= {"program": program, "overloads": watch.called, "expect": expect, "random": random}
            parts = [blob, found]
            if not random:
                wide, wide_blob, widened = derive(program, blob, order, wider=True)
                if widened and "grads" in wide and wide["needs"] == expect["needs"]:
                    head["reference"] = wide
                    parts.append(wide_blob)
        except Unsent as error:
            self.unsent(head, str(error))
            return
        head["sizes"] = [len(p) for p in parts]
        write_record(self.file, head, b"".join(parts))

    def all(self) -> None:
        supported = self.op.supported_backward_dtypes("cpu")
        for dtype in DTYPES:
            if dtype not in supported or not self.op.supports_autograd:
                continue
            try:
                for leg, n, call in calls(self.op, dtype):
                    self.record(dtype_name(dtype), leg, n, call)
            except Exception as error:  # upstream's sample function itself failed: nothing to compare
                head = {"id": self.count, "op": self.name, "dtype": dtype_name(dtype), "leg": "sampling", "n": 0}
                self.count += 1
                self.unsent(head, f"upstream's samples: {type(error).__name__}: {error}")


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
    parser.add_argument("do", choices=("sample",))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path, default=Path())
    args = parser.parse_intermixed_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    ops = database()
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.names:
        for _, count, problem in forks.each([name], lambda n: sample(n, ops[n], args.out), timeout=900):
            print(json.dumps({"name": name, "count": count, "problem": problem.strip().splitlines()[-1:]}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
