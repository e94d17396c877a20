"""What these tests share with the comparison with upstream: work in forked children."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "agree"))
