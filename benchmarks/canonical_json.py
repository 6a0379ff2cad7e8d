"""Canonical JSON of ASCII documents against `json.dumps(sort_keys=True)` (evidence.md, section 13)."""

from __future__ import annotations

import json
import sys
from functools import partial

from benchmarks.harness import Figure, ratio, report
from skill_effectiveness.evidence.canonical import dump

GOAL = 1.5
_LINE = "The reviewer compares both answers and names the better one.\n"


def _nested(depth: int) -> object:
    if depth == 0:
        return {"leaf": "x", "count": 3}
    return {"left": _nested(depth - 1), "right": _nested(depth - 1)}


SHAPES: dict[str, object] = {
    "request": {"case": "case-01", "verdict": "A win", "seat": 1, "valid": True, "note": None},
    "rows": [
        {
            "case": f"case-{n:04d}",
            "verdict": "tie",
            "seat": n,
            "valid": True,
            "note": None,
            "sha256": "5f" * 32,
        }
        for n in range(2_000)
    ],
    "integers": {"rows": [list(range(n, n + 20)) for n in range(500)]},
    "nested": _nested(10),
    "texts": [{"id": n, "prompt": _LINE * 40} for n in range(200)],
    "words": {f"word-{n}": _LINE[:20] for n in range(5_000)},
}


def main() -> int:
    figures = []
    for name, value in SHAPES.items():
        repeats = max(1, 200_000 // len(dump(value)))
        cost = ratio(
            partial(dump, value), partial(json.dumps, value, sort_keys=True), rounds=25, repeats=repeats
        )
        figures.append(Figure(f"canonical_json/{name}", cost, GOAL))
    return report(*figures)


if __name__ == "__main__":
    sys.exit(main())
