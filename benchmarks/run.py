"""`make bench`: our build against upstream in TN_ORACLE, interleaved; arguments go to bench.py compare (e.g. --only gemm)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    # bench.py starts both sides from one environment, so our tree's path goes into a launcher of its own.
    launcher = ROOT / "build" / "bench-python"
    launcher.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT / "build" / "python"}" exec "{sys.executable}" "$@"\n')
    launcher.chmod(0o755)
    sides = ["--a", str(launcher), "--b", os.environ["TN_ORACLE"]]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.call([sys.executable, str(ROOT / "benchmarks" / "bench.py"), "compare", *sides, *sys.argv[1:]], env=environment)


if __name__ == "__main__":
    raise SystemExit(main())
