"""transformers' Trainer, accelerate and peft, unmodified: they train, save, resume to the same bits, and load."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")
pytest.importorskip("accelerate")
pytest.importorskip("peft")

ROOT = Path(__file__).resolve().parents[2]
STEPS, HALF, BATCH = 8, 4, 4


def tiny_llama() -> torch.nn.Module:
    if "training_step" not in sys.modules:
        spec: Any = importlib.util.spec_from_file_location("training_step", ROOT / "tests" / "models" / "training_step.py")
        sys.modules["training_step"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["training_step"])
    return sys.modules["training_step"].build("llama")


@pytest.fixture(autouse=True)
def each_test_its_own_precision() -> None:
    """accelerate keeps one state a process, which a second Accelerator may not change."""
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)


class Sequences(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 24

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        ids = (torch.arange(10) * (i + 3) * 7 + i) % 90 + 3
        return {"input_ids": ids, "labels": ids.clone()}


def first_batch() -> dict[str, torch.Tensor]:
    rows = [Sequences()[i] for i in range(BATCH)]
    return {k: torch.stack([r[k] for r in rows]) for k in rows[0]}


def same_bits(a: torch.nn.Module, b: torch.nn.Module) -> bool:
    mine, its = a.state_dict(), b.state_dict()
    return mine.keys() == its.keys() and all(torch.equal(mine[k], its[k]) for k in mine)


def trainer(model: torch.nn.Module, folder: Path, **given: Any) -> Any:
    import transformers

    args = transformers.TrainingArguments(
        output_dir=str(folder), per_device_train_batch_size=BATCH, max_steps=STEPS, logging_steps=1, save_steps=HALF,
        report_to=[], seed=1, disable_tqdm=True, learning_rate=1e-3, use_cpu=True, **given,
    )  # fmt: skip
    return transformers.Trainer(model=model, args=args, train_dataset=Sequences())


def losses(run: Any) -> list[float]:
    return [entry["loss"] for entry in run.state.log_history if "loss" in entry]


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_trainer_resumes_to_the_same_bits(tmp_path: Path, precision: str) -> None:
    given = {"bf16": precision == "bfloat16", "dataloader_num_workers": 2}
    through = trainer(tiny_llama(), tmp_path, **given)
    before = {k: v.clone() for k, v in through.model.state_dict().items()}
    through.train()
    assert len(losses(through)) == STEPS and sum(losses(through)[-2:]) < sum(losses(through)[:2])
    assert not any(torch.equal(v, before[k]) for k, v in through.model.state_dict().items() if "proj" in k)
    resumed = trainer(tiny_llama(), tmp_path, **given)
    resumed.train(resume_from_checkpoint=str(tmp_path / f"checkpoint-{HALF}"))
    assert same_bits(through.model, resumed.model)
    through.save_model(str(tmp_path / "model"))
    assert same_bits(through.model, type(through.model).from_pretrained(str(tmp_path / "model")))


@pytest.mark.parametrize("precision", ["no", "bf16"])
def test_accelerate_resumes_to_the_same_bits(tmp_path: Path, precision: str) -> None:
    from accelerate import Accelerator

    def prepared() -> tuple[Any, Any, Any, Any]:
        accelerator = Accelerator(cpu=True, mixed_precision=precision)
        model = tiny_llama()
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
        loader = torch.utils.data.DataLoader(Sequences(), batch_size=BATCH)
        return accelerator, *accelerator.prepare(model, optimiser, loader)

    def epoch(accelerator: Any, model: Any, optimiser: Any, loader: Any) -> float:
        for batch in loader:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimiser.step()
                optimiser.zero_grad()
        return loss.item()

    run = prepared()
    first = epoch(*run)
    run[0].save_state(str(tmp_path / "state"))
    second = epoch(*run)
    assert second < first
    again = prepared()
    assert not same_bits(again[1], run[1])
    again[0].load_state(str(tmp_path / "state"))
    assert epoch(*again) == second
    assert same_bits(again[1], run[1])


def test_lora_trains_saves_loads_and_merges(tmp_path: Path) -> None:
    from peft import LoraConfig, PeftModel, get_peft_model

    base = tiny_llama()
    frozen = {k: v.clone() for k, v in base.state_dict().items()}
    lora = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    model = get_peft_model(base, lora)
    moving = [p for p in model.parameters() if p.requires_grad]
    assert sum(p.numel() for p in moving) < 0.2 * sum(p.numel() for p in model.parameters())
    optimiser = torch.optim.AdamW(moving, lr=1e-2)
    batch, curve = first_batch(), []
    for _ in range(6):
        loss = model(**batch).loss
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        curve.append(loss.item())
    assert curve[-1] < curve[0]
    kept = {k.replace("base_model.model.", "").replace(".base_layer", ""): v for k, v in model.state_dict().items()}
    assert all(torch.equal(kept[k], v) for k, v in frozen.items())

    model.save_pretrained(str(tmp_path / "adapter"))
    loaded = PeftModel.from_pretrained(tiny_llama(), str(tmp_path / "adapter"))
    model.eval(), loaded.eval()
    with torch.no_grad():
        want = model(**batch).logits
        assert torch.equal(loaded(**batch).logits, want)
        merged = loaded.merge_and_unload()
        assert torch.allclose(merged(**batch).logits, want, rtol=1e-5, atol=1e-5)

    run = trainer(model.train(), tmp_path / "trainer")
    run.train()
    assert losses(run)[-1] < losses(run)[0]
