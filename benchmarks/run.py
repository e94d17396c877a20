"""Our torch (this interpreter's) against upstream's, as `make bench` runs it; more options: bench.py --help.

TN_ORACLE=.../python python benchmarks/run.py [--only PATTERN] [--threads N] [--rounds N] [--clock cpu]
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


def main() -> int:
    oracle = os.environ.get("TN_ORACLE", str(ROOT / "build" / "oracle" / "bin" / "python"))
    if not Path(oracle).exists():
        print("bench: expected upstream's interpreter in TN_ORACLE (`make oracle`), got none", file=sys.stderr)
        return 2
    bench = [sys.executable, str(HERE / "bench.py")]
    # Kept between runs: other load can only worsen a limit, so each run keeps the better figure.
    limits = ["--limits", str(ROOT / "build" / "limits.json")]
    (ROOT / "build").mkdir(exist_ok=True)
    if not (ROOT / "build" / "limits.json").exists():
        subprocess.run([*bench, "limits", *limits], check=True)
    command = [*bench, "compare", "--a", sys.executable, "--b", oracle, *limits, "--json", str(ROOT / "build" / "bench.json")]
    return subprocess.run([*command, *sys.argv[1:]]).returncode


if __name__ == "__main__":
    sys.exit(main())
