"""What the journal of a study has acknowledged, from its files alone: rows up to the count of its pin."""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def acknowledged(study: Path) -> list[dict[str, Any]]:
    """The rows of a study's journal that its pin counts, in their order."""
    journal = study / "journal"
    count = int(json.loads((journal / "head.json").read_bytes())["count"])
    segments = (path.read_bytes().split(b"\n") for path in sorted(journal.glob("*.jsonl")))
    lines = list(chain.from_iterable(segment[:-1] for segment in segments))
    assert len(lines) >= count, "the pin counts rows that are not there"
    return [json.loads(line) for line in lines[:count]]


def bodies(rows: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """The bodies of all rows of a kind."""
    return [row["body"] for row in rows if row["type"] == kind]
