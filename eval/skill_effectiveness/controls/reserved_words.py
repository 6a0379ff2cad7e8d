"""Words that a selector must not read (controls.md section 4).

They would tell where a text comes from, or point at the evaluated material. Texts are compared after case
folding. A whole word ends where a letter or digit does not go on, so `author_note` holds `author` and
`authority` does not.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ANYWHERE: Final = (
    "ccl-skills:",
    "agents.md",
    "session-start.md",
    "held-out",
    "held_out",
    "grader_truth",
    "expected_output",
    "ccl_layer",
    "controller_state",
    "generation_evidence",
)
WHOLE: Final = ("provenance", "provider", "model", "author", "commitment", "attestation")

_PATTERN: Final = re.compile(
    "|".join([*map(re.escape, ANYWHERE), rf"(?<![^\W_])(?:{'|'.join(map(re.escape, WHOLE))})(?![^\W_])"])
)


class ReservedWord(NamedTuple):
    """One find: line and column from 1, in code points of the text as it was written."""

    line: int
    column: int
    word: str


def reserved_words(text: str) -> Iterator[ReservedWord]:
    """Every reserved word of a text, in order."""
    for number, line in enumerate(text.split("\n"), start=1):
        folded, places = _folded(line)
        for match in _PATTERN.finditer(folded):
            yield ReservedWord(number, places[match.start()] + 1, match[0])


def _folded(line: str) -> tuple[str, list[int]]:
    """The folded line, and for each of its code points the place it came from: folding can lengthen."""
    parts, places = [], []
    for place, sign in enumerate(line):
        folded = sign.casefold()
        parts.append(folded)
        places += [place] * len(folded)
    return "".join(parts), places
