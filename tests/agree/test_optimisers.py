"""Every optimiser of torch.optim, each form: 20 steps give upstream's parameters, by the tolerance rule."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tolerance import excess

PROGRAM = Path(__file__).with_name("optimisers.py")


def answers(python: str, dtype: str, **more: str) -> dict[str, Any]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | more
    run = subprocess.run(
        [python, str(PROGRAM), "--dtype", dtype], env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)


def test_twenty_steps(oracle: str) -> None:
    wide, theirs = answers(oracle, "float64"), answers(oracle, "float32")
    ours = answers(sys.executable, "float32", PYTHONPATH=os.environ.get("PYTHONPATH", ""))
    assert {n: set(f) for n, f in ours.items()} == {n: set(f) for n, f in theirs.items()}
    wrong = []
    for name, forms in theirs.items():
        for form, values in forms.items():
            over = excess(ours[name][form], values, wide[name][form])
            if over > 1:
                wrong.append(f"{name} {form}: {over:.2f} of the allowance")
    assert not wrong, "\n".join(wrong)
