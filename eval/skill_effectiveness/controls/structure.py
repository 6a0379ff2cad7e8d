"""The three structural counts of a text, and when two texts are of one size (controls.md section 5).

They say nothing about meaning. CRLF and CR count as LF.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from skill_effectiveness.controls.documents import Checks, Counts, MeasuredScope, ScopeContents
from skill_effectiveness.evidence.canonical import digest_text

if TYPE_CHECKING:
    from skill_effectiveness.protocol.registries import Scope

_ITEM: Final = re.compile(r"[ \t]*(?:[-*+]|[0-9]+[.)])[ \t]+\S")
_TOKEN: Final = re.compile(r"[A-Za-z0-9_]+|[^\sA-Za-z0-9_]")


def counts(text: str) -> Counts:
    """Paragraphs, instructions and tokens of a text."""
    normal = text.replace("\r\n", "\n").replace("\r", "\n")
    return Counts(
        paragraph_count=_paragraphs(normal.strip()),
        instruction_count=sum(_ITEM.match(line) is not None for line in normal.split("\n")),
        token_count=sum(1 for _ in _TOKEN.finditer(normal)),
    )


def _paragraphs(text: str) -> int:
    """Blocks of lines between lines that hold nothing but blanks and tabs."""
    found, inside = 0, False
    for line in text.split("\n"):
        blank = not line.strip(" \t")
        found += not blank and not inside
        inside = not blank
    return found


def within_tolerance(owner: int, selected: int) -> bool:
    """Whether a count lies within a tenth of the owner's, both ends included, in whole numbers."""
    return owner > 0 and 9 * owner <= 10 * selected <= 11 * owner


def measure_scope(selected: ScopeContents, owner: ScopeContents, scope: Scope) -> MeasuredScope:
    """One scope of the choice against the owner's."""
    ours, theirs = counts(selected.of(scope)), counts(owner.of(scope))
    checks = Checks(
        paragraph_count=within_tolerance(theirs.paragraph_count, ours.paragraph_count),
        instruction_count=within_tolerance(theirs.instruction_count, ours.instruction_count),
        token_count=within_tolerance(theirs.token_count, ours.token_count),
    )
    return MeasuredScope(
        selected_scope_content_hash=digest_text(selected.of(scope)),
        owner_scope_content_hash=digest_text(owner.of(scope)),
        selected=ours,
        owner=theirs,
        checks=checks,
        status="pass" if checks.passed else "fail",
    )
