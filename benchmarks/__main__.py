"""Run every benchmark in a process of its own and say which goals were met."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SUPPORT = {"__init__", "__main__", "harness", "trial_bench"}


def main() -> int:
    missed = []
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem in SUPPORT:
            continue
        if subprocess.run([sys.executable, "-m", f"benchmarks.{path.stem}"], check=False).returncode:  # noqa: S603 - our own modules
            missed.append(path.stem)
    print(f"missed: {', '.join(missed) if missed else 'none'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
