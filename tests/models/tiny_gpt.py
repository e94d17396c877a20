"""A small GPT that learns a text by characters: the same losses as upstream's from the same seed, step by step.

    python tests/models/tiny_gpt.py --record        # with upstream's torch: writes tests/data/tiny_gpt.json

Recorded in both precisions, so that upstream's own float32 error says how far a float32 curve may be off.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data" / "tiny_gpt.json"
STEPS = 300
BATCH, CONTEXT, WIDTH, HEADS, LAYERS = 8, 32, 32, 4, 2
# The BSD licence's text is fixed, and it lies in the repository.
TEXT = ROOT / "LICENSE"


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before_attention = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.before_mlp = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, t, c = x.shape
        q, k, v = (y.view(n, t, HEADS, c // HEADS).transpose(1, 2) for y in self.qkv(self.before_attention(x)).split(c, 2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(n, t, c))
        return x + self.mlp(self.before_mlp(x))


class Gpt(nn.Module):
    def __init__(self, characters: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(characters, WIDTH)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, characters, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.tokens(x) + self.places(torch.arange(x.shape[1]))
        for block in self.blocks:
            y = block(y)
        return self.head(self.norm(y))


def learn(dtype: torch.dtype, steps: int = STEPS) -> list[float]:
    """The loss of each step. Weights are drawn in float32 whatever the precision, so both start at one point."""
    text = TEXT.read_text(encoding="utf-8")
    letters = sorted(set(text))
    ids = torch.tensor([letters.index(c) for c in text])
    torch.manual_seed(0)
    model = Gpt(len(letters)).to(dtype)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    generator = torch.Generator().manual_seed(1)
    losses = []
    for _ in range(steps):
        starts = torch.randint(len(ids) - CONTEXT, (BATCH,), generator=generator).tolist()
        x = torch.stack([ids[i : i + CONTEXT] for i in starts])
        y = torch.stack([ids[i + 1 : i + CONTEXT + 1] for i in starts])
        logits = model(x)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        losses.append(loss.item())
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    found = {"torch": torch.__version__, "float32": learn(torch.float32), "float64": learn(torch.float64)}
    if args.record:
        DATA.write_text(json.dumps(found, separators=(",", ":")).replace('],"', '],\n"') + "\n")
    for precision in ("float32", "float64"):
        losses = found[precision]
        print(precision, *(f"{losses[i]:.6f}" for i in (0, 1, 19, 99, len(losses) - 1)))


if __name__ == "__main__":
    main()
