"""The curve of examples/adapt_digits.py: every step's loss of its training, and the accuracy on clean digits at the end.

python tests/models/digits_curve.py       # with upstream's torch: writes tests/data/digits_curve.json
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data" / "digits_curve.json"


def example() -> Any:
    if "adapt_digits" not in sys.modules:
        spec: Any = importlib.util.spec_from_file_location("adapt_digits", ROOT / "examples" / "adapt_digits.py")
        sys.modules["adapt_digits"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["adapt_digits"])
    return sys.modules["adapt_digits"]


def learn(dtype: torch.dtype) -> tuple[list[float], float]:
    """Losses and final accuracy in percent. Weights are drawn in float32 whatever the precision."""
    digits = example()
    torch.manual_seed(0)
    data, test = digits.digits()
    model = digits.network().to(dtype)
    losses = digits.train(model, data)
    model.eval()
    clean = [(x.to(dtype), y) for x, y in DataLoader(test, digits.BATCH)]
    return losses, digits.accuracy(model, clean)[0]


if __name__ == "__main__":
    torch.set_num_threads(1)
    found: dict[str, Any] = {"torch": torch.__version__}
    for name in ("float32", "float64"):
        losses, accuracy = learn(getattr(torch, name))
        found[name] = {"losses": losses, "accuracy": accuracy}
        print(name, losses[:3], accuracy)
    DATA.write_text(json.dumps(found, separators=(",", ":")).replace('},"', '},\n"') + "\n")
