"""Prints the slowest compilations of the last build, from ninja's log: python cmake/slowest.py BUILD_DIR [COUNT]"""

import sys
from pathlib import Path


def last_build(log: Path) -> list[tuple[float, str]]:
    """(seconds, output) of each entry of the last build: within one, entries stand in the order of their end."""
    entries: list[tuple[float, str]] = []
    previous_end = 0
    for line in log.read_text(encoding="utf-8").splitlines()[1:]:
        start, end, _, output, _ = line.split("\t")
        if int(end) < previous_end:
            entries.clear()
        previous_end = int(end)
        entries.append(((int(end) - int(start)) / 1000, output))
    return entries


def main() -> int:
    build = Path(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    log = build / ".ninja_log"
    if not log.exists():
        return 0
    objects = {output: seconds for seconds, output in last_build(log) if output.endswith(".o")}
    if not objects:
        print("nothing was compiled")
        return 0
    print(f"compiled {len(objects)} files in {sum(objects.values()):.0f} s of compiler time; the slowest:")
    for output, seconds in sorted(objects.items(), key=lambda entry: -entry[1])[:count]:
        print(f"  {seconds:6.1f} s  {output.split('.dir/')[-1].removesuffix('.o')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
