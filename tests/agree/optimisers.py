"""Every optimiser of torch.optim in each of its forms, 20 steps on one small problem: the parameters that come out.

    python optimisers.py [--dtype float64] > FILE          what this interpreter's torch gives, as JSON
    python optimisers.py --record WIDE.json NARROW.json    both of upstream's answers as the table for tests/python

The configurations are upstream's own (torch.testing._internal.common_optimizers.optim_db).
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

STEPS = 20
FORMS = ("single", "foreach", "fused")


def cases() -> Iterator[tuple[str, str, type, dict[str, Any]]]:
    """(name, form, class, arguments). SparseAdam is for sparse gradients alone."""
    from torch.testing._internal.common_optimizers import optim_db  # imports much

    for info in optim_db:
        name = info.optim_cls.__name__
        if name == "SparseAdam":
            continue
        for n, config in enumerate(info.optim_inputs_func(device=torch.device("cpu"))):
            for form in FORMS:
                if form != "single" and form not in info.supported_impls:
                    continue
                kwargs = {k: v for k, v in config.kwargs.items() if k not in (*FORMS, "capturable", "differentiable")}
                if "foreach" in info.supported_impls:
                    kwargs |= {"foreach": form == "foreach"}
                if form == "fused":
                    kwargs = {k: v for k, v in kwargs.items() if k != "foreach"} | {"fused": True}
                yield f"{name}/{n}", form, info.optim_cls, kwargs


class Problem:
    """Parameters, their optimiser and a loss with a different gradient for each element."""

    def __init__(self, cls: type, kwargs: dict[str, Any], dtype: torch.dtype) -> None:
        shapes = [(2, 3), (5,)] if cls.__name__ != "Muon" else [(2, 3), (3, 2)]  # Muon takes matrices alone
        self.parameters = [self._parameter(shape, dtype) for shape in shapes]
        kwargs = {k: v.to(dtype) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}
        self.optimiser = cls(self.parameters, **kwargs)

    @staticmethod
    def _parameter(shape: tuple[int, ...], dtype: torch.dtype) -> torch.nn.Parameter:
        n = torch.Size(shape).numel()
        return torch.nn.Parameter(((torch.arange(n, dtype=torch.float64) * 7 % 11 - 5) / 4).to(dtype).view(shape))

    def _loss(self) -> torch.Tensor:
        self.optimiser.zero_grad()
        terms = []
        for p in self.parameters:
            scale = torch.arange(1, p.numel() + 1, dtype=p.dtype).view(p.shape) / 4
            terms.append((scale * (p - 0.25) * (p - 0.25)).sum() + (p * p * p * p).sum() / 8)
        loss = sum(terms[1:], terms[0])
        loss.backward()
        return loss

    def run(self, steps: int = STEPS) -> list[float]:
        for _ in range(steps):
            self.optimiser.step(self._loss)
        return [x for p in self.parameters for x in p.detach().reshape(-1).tolist()]

    def save(self) -> bytes:
        file = io.BytesIO()
        torch.save({"parameters": [p.detach() for p in self.parameters], "optimiser": self.optimiser.state_dict()}, file)
        return file.getvalue()

    def load(self, saved: bytes) -> None:
        state = torch.load(io.BytesIO(saved), weights_only=True)
        for p, kept in zip(self.parameters, state["parameters"], strict=True):
            p.detach().copy_(kept)
        self.optimiser.load_state_dict(state["optimiser"])


def answers(dtype: torch.dtype) -> dict[str, dict[str, list[float]]]:
    found: dict[str, dict[str, list[float]]] = {}
    for name, form, cls, kwargs in cases():
        found.setdefault(name, {})[form] = Problem(cls, kwargs, dtype).run()
    return found


def record(wide: Path, narrow: Path) -> str:
    """One line a configuration: its forms, upstream's answer in float64, and its single-tensor form's in float32."""
    wides, narrows = json.loads(wide.read_text()), json.loads(narrow.read_text())
    lines = []
    for name, forms in narrows.items():
        row = {
            "wide": [float(f"{x:.12g}") for x in wides[name]["single"]],
            "forms": list(forms),
            "narrow": [float(f"{x:.9g}") for x in forms["single"]],
        }
        lines.append(f" {json.dumps(name)}: {json.dumps(row)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument("--record", nargs=2, type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if args.record:
        sys.stdout.write(record(*args.record))
    else:
        json.dump(answers(getattr(torch, args.dtype)), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
