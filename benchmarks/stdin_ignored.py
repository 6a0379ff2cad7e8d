"""A child that never reads its stdin is over within its timeout and two seconds (calibration.md, section 12).

Two children: one that ends when it is asked to, and one that ignores that and is killed after the grace. The
figure is the time beyond the timeout divided by two seconds.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from benchmarks.harness import Figure, report
from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.execution import Ended, Limits, run_process

TIMEOUT_SECONDS = 1.0
GOAL_SECONDS = 2.0
PROMPT = b"x" * 16_000_000
CHILDREN = {
    "polite": ["/bin/sleep", "600"],
    "stubborn": ["/bin/sh", "-c", "trap '' TERM; while :; do sleep 1; done"],
}


def seconds_beyond(argv: list[str]) -> float:
    began = time.monotonic()
    result = run_process(
        argv,
        cwd=Path("/"),
        env={"PATH": "/usr/bin:/bin"},
        stdin=PROMPT,
        limits=Limits(TIMEOUT_SECONDS),
        on_line=lambda _line: False,
        around=Surroundings.real(),
    )
    assert result.ended is Ended.WALL_TIMEOUT
    assert not result.stdin_complete
    return time.monotonic() - began - TIMEOUT_SECONDS


def main() -> int:
    return report(
        *(
            Figure(f"child that never reads stdin ({name})", seconds_beyond(argv) / GOAL_SECONDS, 1.0)
            for name, argv in CHILDREN.items()
        )
    )


if __name__ == "__main__":
    sys.exit(main())
