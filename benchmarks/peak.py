"""Compares the peak memory of a training step under two interpreters' torch, each case in fresh processes.

    python peak.py --a A/bin/python --b B/bin/python [--only PATTERN] [--rounds N]

A process warms up on a small model of the same layers, so that code and tables are loaded, builds the case, resets the
kernel's mark of its peak, and runs a few steps. The figure is the peak above what was resident before the first step
(gradients and an optimiser's state count), the least of the rounds. Linux only: /proc/self/clear_refs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

STEPS = 3
Step = Callable[[], Any]


def status(key: str) -> float:
    """MiB of one line of the process's status."""
    found = re.search(rf"{key}:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def linear(torch: Any, small: bool) -> Step:
    n = 32 if small else 1024
    layer, x = torch.nn.Linear(n, n), torch.randn(n, n, requires_grad=True)

    def step() -> None:
        layer.zero_grad()
        x.grad = None
        layer(x).sum().backward()

    return step


def mlp(torch: Any, small: bool, how: str) -> Step:
    nn, n = torch.nn, 32 if small else 1024
    model = nn.Sequential(nn.Linear(n, n), nn.ReLU(), nn.Linear(n, n), nn.ReLU(), nn.Linear(n, 10))
    x, y = torch.randn(4 * n, n), torch.randint(0, 10, (4 * n,))
    opt = getattr(torch.optim, how)(model.parameters(), lr=1e-3)

    def step() -> None:
        opt.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        opt.step()

    return step


def cnn(torch: Any, small: bool) -> Step:
    nn, c = torch.nn, 4 if small else 32
    layers = (nn.Conv2d(3, c, 3, padding=1), nn.BatchNorm2d(c), nn.ReLU(), nn.MaxPool2d(2))
    model = nn.Sequential(*layers, nn.Conv2d(c, c, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    x, y = torch.randn(c, 3, 64, 64), torch.randint(0, c, (c,))
    opt = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def step() -> None:
        opt.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        opt.step()

    return step


def llama(torch: Any, small: bool, dtype: str) -> Step:
    from transformers import LlamaConfig, LlamaForCausalLM

    n = 32 if small else 256
    shape: dict[str, Any] = dict(vocab_size=16 * n, hidden_size=n, intermediate_size=3 * n)
    config = LlamaConfig(**shape, num_hidden_layers=1 if small else 4, num_attention_heads=4, num_key_value_heads=2)
    model = LlamaForCausalLM(config).to(getattr(torch, dtype)).train()
    ids, opt = torch.randint(0, 16 * n, (4, 64)), torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> None:
        opt.zero_grad()
        model(ids, labels=ids).loss.backward()
        opt.step()

    return step


CASES: dict[str, Callable[[Any, bool], Step]] = {
    "Linear 1024 forward+backward": linear,
    "MLP SGD": lambda torch, small: mlp(torch, small, "SGD"),
    "MLP AdamW": lambda torch, small: mlp(torch, small, "AdamW"),
    "CNN 32x3x64x64": cnn,
    "small Llama 4x64 f32": lambda torch, small: llama(torch, small, "float32"),
    "small Llama 4x64 bf16": lambda torch, small: llama(torch, small, "bfloat16"),
}


def measure(name: str) -> None:
    """In a fresh process: prints the case's figure."""
    import torch

    torch.set_num_threads(1)
    warm = CASES[name](torch, True)
    for _ in range(STEPS):
        warm()
    step = CASES[name](torch, False)
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    for _ in range(STEPS):
        step()
    print(json.dumps(status("VmHWM") - before))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--a", default=sys.executable)
    parser.add_argument("--b", default=sys.executable)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        measure(args.measure)
        return 0
    print(f"{'case':<32}{'A, MiB':>10}{'B, MiB':>10}{'A/B':>7}")
    for name in (name for name in CASES if re.search(args.only, name)):
        least = [float("inf")] * 2
        for _ in range(args.rounds):
            for side, python in enumerate((args.a, args.b)):
                command = [python, __file__, "--measure", name]
                env = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
                done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
                least[side] = min(least[side], json.loads(done.stdout.splitlines()[-1]))
        print(f"{name:<32}{least[0]:>10.1f}{least[1]:>10.1f}{least[0] / least[1]:>7.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
