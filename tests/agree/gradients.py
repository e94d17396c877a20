"""Gradients of a recorded program: what the results' gradients with respect to the inputs are, first and second order, and
the results' tangents in forward mode.

Runs under both interpreters. The gradients of the results (cotangents) and the tangents of the inputs are small multiples of
1/16, exact in every dtype and made without the torch under test.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import torch
from program import Run, raised
from torch.autograd import forward_ad
from wire import Unsent, Writer

ORDERS = {"first": 1, "inplace": 1, "second": 2, "tangent": 0}  # 0: forward mode


def tensors_of(value: Any) -> list[torch.Tensor]:
    """The tensors of a result in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for v in value.values() for t in tensors_of(v)]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_of(v)]
    return []


def cotangent(t: torch.Tensor, number: int, needs_grad: bool) -> torch.Tensor:
    draw = random.Random(number)
    n = t.numel() * (2 if t.dtype.is_complex else 1)
    if n > 1 << 18:
        raise Unsent(f"a result of {n} numbers")
    values: list[Any] = [draw.choice((-1, 1)) * draw.randint(4, 24) / 16 for _ in range(n)]
    if t.dtype.is_complex:
        values = [complex(a, b) for a, b in zip(values[::2], values[1::2], strict=True)]
    return torch.tensor(values, dtype=t.dtype).reshape(t.shape).requires_grad_(needs_grad)


def tangents(program: dict[str, Any], blob: bytes, wider: bool) -> list[torch.Tensor | None]:
    """The tangents of the results, in order, where every input that needs a gradient has one."""
    run = Run(program, blob, wider)
    with forward_ad.dual_level():
        run.inputs = [
            forward_ad.make_dual(x.detach(), cotangent(x, 1000 + k, False)) if x.requires_grad else x
            for k, x in enumerate(run.inputs)
        ]
        found = [forward_ad.unpack_dual(t).tangent for t in tensors_of(run())]
        return [None if t is None else t.clone() for t in found]


def plain(t: torch.Tensor | None) -> Any:
    """The values alone: strides of gradients are no promise."""
    if t is None:
        return None
    t = t.detach().resolve_conj().resolve_neg()
    return torch.empty(t.shape, dtype=t.dtype).copy_(t)


def derive(
    program: dict[str, Any], blob: bytes, order: int, wider: bool = False, seed: int = 0,
    watch: Callable[[Callable[[], Any]], Any] = lambda call: call(),
) -> tuple[dict[str, Any], bytes, bool]:  # fmt: skip
    """(document, blob, widened). The document holds the forward results, which of them need gradients, and the gradients of
    the inputs (for the second order also those of the cotangents; for order 0 the tangents of the results, and which results
    have one); or the error and the stage that raised it."""
    writer = Writer()
    stage, widened = "inputs", False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.manual_seed(seed)
            run = Run(program, blob, wider)
            stage = "forward"
            found = tensors_of(watch(run))
            widened = run.reader.widened
            stage = "backward"
            if order == 0:
                kept = [plain(t) for t in found]
                torch.manual_seed(seed)
                moved = tangents(program, blob, wider)
                document = {"outputs": writer.value(kept), "needs": [t is not None for t in moved]}
                document["grads"] = writer.value([plain(t) for t in moved])
                return document, bytes(writer.blob), widened
            inputs = [x for x in run.inputs if x.requires_grad]
            needs = [t.requires_grad for t in found]
            outputs = [t for t in found if t.requires_grad]
            kept = [plain(t) for t in found]
            grads = [cotangent(t, k, order > 1) for k, t in enumerate(outputs)]
            more: list[torch.Tensor] = []
            for step in range(order):
                if not outputs:
                    break
                found_grads = torch.autograd.grad(
                    outputs, inputs + more, grads, allow_unused=True, create_graph=step + 1 < order
                )
                more = more + grads
                outputs = [g for g in found_grads if g is not None and g.requires_grad]
                grads = [cotangent(t, 100 * (step + 1) + k, False) for k, t in enumerate(outputs)]
                kept_grads = [plain(g) for g in found_grads]
            document = {"outputs": writer.value(kept), "needs": needs, "grads": writer.value(kept_grads if any(needs) else [])}
        except Unsent:
            raise
        except Exception as error:
            return raised(error) | {"stage": stage}, b"", widened
    return document, bytes(writer.blob), widened
