"""Our side: runs recorded programs and writes what happened. No sample comes from here, and no judgement.

    python subject.py --samples DIR --out DIR NAME...     names as the files of samples are called

Each program runs in a forked child; one that crashes or hangs is recorded as such and costs nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import forks
import torch
from gradients import derive
from program import outcome
from wire import Unsent, read_records, write_record

TIMEOUT = 60


def answer(item: tuple[dict[str, Any], bytes]) -> tuple[dict[str, Any], bytes]:
    head, blob = item
    try:
        given = blob[: head["sizes"][0]]
        document, found, _ = (
            derive(head["program"], given, head["order"]) if "order" in head else outcome(head["program"], given)
        )
    except Unsent as error:
        return {"id": head["id"], "unsent": str(error)}, b""
    return {"id": head["id"]} | document, found


def run(name: str, samples: Path, out: Path) -> tuple[int, int]:
    """Answers every sample of one file; (samples, crashes)."""
    items = [r for r in read_records(samples / f"{name}.samples") if "program" in r[0]]
    part = out / f"{name}.part"
    crashes = 0
    with part.open("wb") as file:
        for (head, _), result, problem in forks.each(items, answer, TIMEOUT):
            crashes += bool(problem)
            document, blob = result if result else ({"id": head["id"], "crash": problem}, b"")
            write_record(file, document, blob)
    part.rename(out / f"{name}.answers")
    return len(items), crashes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("names", nargs="*")
    args = parser.parse_intermixed_args()
    warnings.simplefilter("ignore")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with contextlib.suppress(NotImplementedError):
        torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.names:
        count, crashes = run(name, args.samples, args.out)
        print(json.dumps({"name": name, "count": count, "crashes": crashes}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
