"""A text with the shape of another and none of its words (studies.md, "Generated placebo").

Kept are the number of lines and of each line its indentation, heading level, list, quote and fence marks;
keys of the front matter are kept by `placebo_matter`. Every line gets as many tokens as it had, so the three
counts of controls.md section 5 come out equal but where a name does not fit.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from skill_effectiveness.controls.structure import counts, within_tolerance
from skill_effectiveness.studies.placebo_matter import FRONT_MATTER, placebo_matter
from skill_effectiveness.studies.placebo_prose import tokens_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skill_effectiveness.studies.placebo_prose import Prose

_MARKS: Final = re.compile(r"(?:[ \t]*(?:>|(?:[-*+]|[0-9]+[.)])[ \t]+(?=\S)))*[ \t]*")
_HEADING: Final = re.compile(r"#{1,6}[ \t]+")
_FENCE: Final = re.compile(r"(`{3,}(?=[^`]*$)|~{3,})(.*)")
_UNDERLINE: Final = re.compile(r"[ \t]*(?:=+|-+)[ \t]*")
_RULE: Final = re.compile(r"[ \t]*([-=*_])(?:[ \t]*\1)*[ \t]*")


def placebo_text(text: str, prose: Prose, guide: str | None = None) -> str:
    """The placebo of one file.

    Args:
        text: of the file; CRLF and CR become LF.
        prose: gives the new text.
        guide: what its front matter gets as its `name`; None leaves a name to be text as any other.

    Raises:
        UnwritableError: the front matter cannot be kept in its form.
    """
    normal = text.replace("\r\n", "\n").replace("\r", "\n")
    found = FRONT_MATTER.match(normal)
    matter = None if found is None else placebo_matter(found[1], prose, guide)
    if found is None or matter is None:
        return "\n".join(_lines(normal.split("\n"), prose))
    body = normal[found.end() :]
    return f"---\n{matter}---{found[2]}" + "\n".join(_lines(body.split("\n"), prose))


def alike(text: str, made: str) -> bool:
    """Whether the three counts of two texts are equal, or within the tolerance of controls.md section 5."""
    ours, theirs = counts(made), counts(text)
    pairs = (
        (theirs.paragraph_count, ours.paragraph_count),
        (theirs.instruction_count, ours.instruction_count),
        (theirs.token_count, ours.token_count),
    )
    return all(owner == selected or within_tolerance(owner, selected) for owner, selected in pairs)


def _lines(lines: Sequence[str], prose: Prose) -> Iterator[str]:
    fence = ""
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        marks = _MARKS.match(line)
        lead = marks[0] if marks else ""
        rest = line[len(lead) :]
        mark = _FENCE.fullmatch(rest)
        if mark is not None and (not fence or _closes(mark, fence)):
            fence = "" if fence else mark[1]
            prose.owe(tokens_in(mark[2]))
            yield lead + mark[1]
        elif not tokens_in(rest) or _RULE.fullmatch(line):
            yield line
        elif not fence and (heading := _HEADING.match(rest)) and tokens_in(rest[heading.end() :]):
            yield lead + heading[0] + prose.heading(tokens_in(rest[heading.end() :]))
        elif not fence and _UNDERLINE.fullmatch(after) and not lead.strip():
            yield lead + prose.heading(tokens_in(rest))
        else:
            yield lead + prose.sentences(tokens_in(rest))


def _closes(mark: re.Match[str], fence: str) -> bool:
    return mark[1].startswith(fence) and not mark[2].strip()
