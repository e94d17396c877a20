"""A training step of tiny models: the loss, and some elements of every parameter's gradient, as upstream computes them.

python tests/models/training_step.py       # with upstream's torch: writes tests/data/tiny_gradients.json
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "data" / "tiny_gradients.json"
TEXTS = ("bert", "gpt2", "llama", "mixtral", "t5")
IMAGES = ("vit", "resnet", "convnext")
KINDS = TEXTS + IMAGES
ELEMENTS = 17  # of each gradient, evenly from the first to the last


def _recorded() -> Any:
    name = "recorded"
    if name not in sys.modules:
        spec: Any = importlib.util.spec_from_file_location(name, HERE / "recorded.py")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def build_for_images(kind: str) -> torch.nn.Module:
    """Five classes, images of 16 by 16. A ResNet's batch norms are in training mode: they use the batch."""
    import transformers

    if kind == "vit":
        config: Any = transformers.ViTConfig(
            hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=16, patch_size=4,
            num_labels=5,
        )  # fmt: skip
        return _recorded().fill(transformers.ViTForImageClassification(config))
    if kind == "resnet":
        config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[16, 24], depths=[1, 2], num_labels=5)
        return _recorded().fill(transformers.ResNetForImageClassification(config)).train()
    config = transformers.ConvNextConfig(
        num_stages=2, hidden_sizes=[16, 24], depths=[1, 2], patch_size=2, image_size=16, num_labels=5
    )
    return _recorded().fill(transformers.ConvNextForImageClassification(config))


def inputs(kind: str, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    if kind in TEXTS:
        given = _recorded().inputs()
        return {**given, "labels": given["input_ids"]}
    i = torch.arange(4 * 3 * 16 * 16)
    pixels = ((i * 40503 + 10007) * (i % 61 + 1) % 65536 - 32768).to(dtype) * 2.0**-15
    return {"pixel_values": pixels.reshape(4, 3, 16, 16), "labels": torch.tensor([0, 3, 1, 4])}


def build(kind: str) -> torch.nn.Module:
    import transformers

    if kind in IMAGES:
        return build_for_images(kind)
    recorded = _recorded()
    if kind in ("bert", "llama"):
        return recorded.build(kind)
    ids = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)
    size = recorded.VOCABULARY
    if kind == "gpt2":
        config: Any = transformers.GPT2Config(
            vocab_size=size, n_positions=64, n_embd=32, n_layer=2, n_head=4, n_inner=48, **ids
        )
        return recorded.fill(transformers.GPT2LMHeadModel(config))
    if kind == "t5":
        config = transformers.T5Config(vocab_size=size, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4,
                                       pad_token_id=0, eos_token_id=2, decoder_start_token_id=0)  # fmt: skip
        return recorded.fill(transformers.T5ForConditionalGeneration(config))
    config = transformers.MixtralConfig(
        vocab_size=size, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2,         max_position_embeddings=64, num_local_experts=4, num_experts_per_tok=2, **ids,
    )  # fmt: skip
    config._experts_implementation = "eager"  # experts by indexing; the grouped product has no float64
    return recorded.fill(transformers.MixtralForCausalLM(config))


def step(kind: str, dtype: torch.dtype) -> dict[str, list[float]]:
    """'loss' and the chosen elements of each gradient."""
    model = build(kind).to(dtype)
    loss = model(**inputs(kind, dtype)).loss
    loss.backward()
    found = {"loss": [loss.item()]}
    for name, p in model.named_parameters():
        flat = p.grad.reshape(-1).tolist()
        count = min(ELEMENTS, len(flat))
        found[name] = [flat[i * (len(flat) - 1) // max(1, count - 1)] for i in range(count)]
    return found


def record() -> dict[str, Any]:
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    for kind in KINDS:
        found[kind] = {}
        for name, digits in (("float32", ".9g"), ("float64", ".15g")):
            values = step(kind, getattr(torch, name))
            found[kind][name] = {k: [float(format(x, digits)) for x in v] for k, v in values.items()}
    return found


if __name__ == "__main__":
    text = json.dumps({"torch": torch.__version__} | record(), separators=(",", ":"))
    DATA.write_text(text.replace("],", "],\n") + "\n")
