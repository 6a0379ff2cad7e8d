"""Words that a selector must not read (controls.md section 4).

They would tell where a text comes from, or point at the evaluated material. Texts are compared after case
folding, as a reader takes them (`reading`). A whole word ends where a letter or digit does not go on, so
`author_note` holds `author` and `authority` does not.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from skill_effectiveness.controls.reading import readings

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
        found = {
            ReservedWord(number, places[match.start()] + 1, match[0])
            for letters, places in readings(line)
            for match in _PATTERN.finditer(letters)
        }
        yield from sorted(found)
