"""100,000 opening brackets in one read are refused in under 50 ms (evidence.md, section 13).

The figure is the time divided by 50 ms.
"""

from __future__ import annotations

import sys

from benchmarks.harness import Figure, best_seconds, report
from skill_effectiveness.evidence.faults import StrictCode, StrictError
from skill_effectiveness.evidence.strict import Profile, read_json

GOAL_SECONDS = 0.05
HOSTILE = b"[" * 100_000


def refuse() -> StrictCode | None:
    try:
        read_json(HOSTILE, Profile.WIRE)
    except StrictError as error:
        return StrictCode(error.code)
    return None


def main() -> int:
    assert refuse() is StrictCode.TOO_DEEP
    (seconds,) = best_seconds(refuse)
    return report(Figure("strict_deep", seconds / GOAL_SECONDS, 1.0))


if __name__ == "__main__":
    sys.exit(main())
