"""What a model server was asked, as lines that can be counted: two requests differ by what each has more.

Where a line stands does not count, since one more line moves all others; a tool is one line. What is another
one each time is named: the folders of a session, ids of sessions and messages, dates.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_NAMED = (
    (re.compile(r"/\S*/skill-effectiveness-[0-9a-f]{16}"), "SESSION"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "ID"),
    (re.compile(r"ses_[0-9A-Za-z]{20,}"), "ID"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "ID"),
    (re.compile(r"\b20[0-9]{2}-[01][0-9]-[0-3][0-9]\b"), "DATE"),
    (re.compile(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [0-3][0-9] 20[0-9]{2}\b"), "DATE"),
    (re.compile(r'"(?:turn_started_at_unix_ms|window_number)":[0-9]+'), "NUMBER"),
)


def request_lines(body: Mapping[str, Any]) -> Counter[str]:
    """Every line of a request, and how often it is there."""
    return Counter(_named(line) for line in _lines("", body) if line.strip())


def _lines(member: str, value: object) -> Iterator[str]:
    if member == "tools" and isinstance(value, list):
        yield from (f"tool {json.dumps(tool, sort_keys=True)}" for tool in value)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _lines(name, inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _lines(member, inner)
    elif isinstance(value, str):
        yield from value.splitlines()
    else:
        yield f"{member}={value}"


def _named(line: str) -> str:
    for pattern, name in _NAMED:
        line = pattern.sub(name, line)
    return line
