"""Tiny models with weights that no generator draws, and what upstream answers for them.

    python tests/models/recorded.py       # with upstream's torch: writes tests/data/tiny_models.json

Weights and inputs come from integer arithmetic, which every torch does exactly.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import torch

DATA = Path(__file__).resolve().parents[1] / "data" / "tiny_models.json"
VOCABULARY, SEQUENCE, NEW_TOKENS = 96, 10, 12


def fill(model: torch.nn.Module) -> torch.nn.Module:
    """Each parameter from its number and its elements' positions: multiples of 2**-17 in [-0.25, 0.25), norms around 1."""
    with torch.no_grad():
        for k, (name, p) in enumerate(model.named_parameters()):
            i = torch.arange(p.numel(), dtype=torch.int64)
            mixed = (i * 40503 + (k + 1) * 10007) * ((i + 7 * k) % 61 + 1) % 65536
            values = (mixed - 32768).to(torch.float32) * 2.0**-17
            p.copy_((values + (1.0 if "norm" in name.lower() and "weight" in name else 0.0)).reshape(p.shape))
    return model.eval()


def build(kind: str) -> torch.nn.Module:
    import transformers

    sizes: dict[str, Any] = dict(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=64, pad_token_id=0,
    )  # fmt: skip
    if kind == "bert":
        return fill(transformers.BertForMaskedLM(transformers.BertConfig(**sizes)))
    ends = dict(num_key_value_heads=2, bos_token_id=1, eos_token_id=2)
    return fill(transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, **ends)))


def inputs() -> dict[str, torch.Tensor]:
    """Two sequences, the second one padded at the left."""
    ids = (torch.arange(2 * SEQUENCE) * 37 + 11) % (VOCABULARY - 3) + 3
    mask = torch.ones(2, SEQUENCE, dtype=torch.int64)
    mask[1, :3] = 0
    return {"input_ids": ids.reshape(2, SEQUENCE) * mask, "attention_mask": mask}


def logits(model: torch.nn.Module) -> torch.Tensor:
    with torch.no_grad():
        out = model(**inputs()).logits
    return out[inputs()["attention_mask"].bool()]  # padded positions have no defined answer


def tokens(model: Any) -> list[list[int]]:
    return model.generate(**inputs(), max_new_tokens=NEW_TOKENS, do_sample=False).tolist()


def saved(model: Any) -> str:
    """The hash of the file that save_pretrained writes."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return hashlib.sha256((Path(folder) / "model.safetensors").read_bytes()).hexdigest()


def record() -> None:
    torch.set_num_threads(1)
    found: dict[str, Any] = {"torch": torch.__version__}
    for kind in ("bert", "llama"):
        model = build(kind)
        one: dict[str, Any] = {"safetensors": saved(model)}
        if kind == "llama":
            one["tokens"] = tokens(model)
        one["float32"] = [float(f"{x:.9g}") for x in logits(model).flatten().tolist()]
        one["float64"] = [float(f"{x:.15g}") for x in logits(model.double()).flatten().tolist()]
        found[kind] = one
    DATA.write_text(json.dumps(found, separators=(",", ":")).replace("},", "},\n") + "\n")


if __name__ == "__main__":
    record()
