"""The four sections of an issue, read from its Markdown body.

Source: outcome.md, section 10. Headings are those of CommonMark's ATX form; a section runs to the next
heading of any level. An entry is one line, or a list item with the lines that continue it; a code fence joins
the entry above it. Lines that are joined are joined by one blank, so the same body always gives the same
criterion, on one line.

Whoever reads the issue sees no HTML comment, so none is heading or content: hidden criteria must not take the
place of those that people see, and a template that was left as it came says nothing. An indented comment of
several lines may belong to a list item and end with it, which cannot be told line by line: what stands in one
stays content, and a section whose heading stands in one is absent, so that either way less is accepted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from skill_effectiveness.acceptance.outcome.words import SECTIONS

_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_HEADING: Final = re.compile(r" {0,3}#{1,6}(?:[ \t]+(?P<text>.*))?")
_FENCE: Final = re.compile(r"(?P<mark>`{3,})[^`]*|(?P<other>~{3,}).*")
_MARKER: Final = re.compile(r"(?:[-*+]|[0-9]{1,9}\.)(?:[ \t]+|$)")
_CHECKBOX: Final = re.compile(r"\[[ xX]\](?:[ \t]+|$)")
_COMMENT: Final = re.compile(r" {0,3}<!--")
_COMMENT_MARK: Final = "<!--"
_COMMENT_END: Final = "-->"
# Its end may share the two dashes of its beginning: <!--> is a whole one.
_WITHIN_MARK: Final = 2
_COMMENTS: Final = re.compile(r"(?:<!--(?:(?!-->).)*-->\s*)+")
_NAMES: Final = {name.replace("_", " "): name for name in SECTIONS}


@dataclass(frozen=True, slots=True)
class Sections:
    """What an issue says, section by section, in entries; a section that is absent has none."""

    problem: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    acceptance_criteria: tuple[str, ...] = ()
    success_metrics: tuple[str, ...] = ()

    @property
    def scoped(self) -> bool:
        """Whether all four are there."""
        return all(getattr(self, name) for name in SECTIONS)


def read_sections(body: str) -> Sections:
    """The sections of an issue's body."""
    reader = _Reader()
    for line in _LINE_END.split(body):
        reader.take(line)
    return Sections(
        **{name: tuple(" ".join(lines) for lines in entries) for name, entries in reader.found.items()}
    )


class _Reader:
    """Takes a body line by line.

    Attributes:
        found: entries of every section whose heading was met, each as the lines that it joins.
    """

    def __init__(self) -> None:
        self.found: dict[str, list[list[str]]] = {}
        self._entries: list[list[str]] | None = None
        self._fence = ""
        # Whether a line without a marker that comes now would go on with a list item.
        self._in_item = False
        self._in_comment = False
        # In an indented comment, or already behind the list item that it was in.
        self._unclear = False

    def take(self, line: str) -> None:
        """Take the next line."""
        text = line.strip()
        if self._fence:
            self._join(text)
            if set(text) == {self._fence[0]} and len(text) >= len(self._fence):
                self._fence = ""
            return
        if self._in_comment or self._hides(line, text):
            self._pass_by(text)
            return
        self._unclear = self._unclear or _begins(text)
        heading = _HEADING.fullmatch(line)
        if heading is not None:
            self._enter(heading["text"] or "", text)
        elif not text:
            self._in_item = False
        elif not self._opens(text):
            self._entry(text)
        self._unclear = self._unclear and _COMMENT_END not in text

    def _hides(self, line: str, text: str) -> bool:
        """Whether a line begins a comment that surely belongs to no list item, or is one by itself."""
        if self._unclear:
            return False
        return line.startswith(_COMMENT_MARK) or (_COMMENT.match(line) is not None and not _begins(text))

    def _pass_by(self, text: str) -> None:
        """Take a line on which a comment begins or goes on; content is what stands behind its end."""
        end = text.find(_COMMENT_END, 0 if self._in_comment else _WITHIN_MARK)
        self._in_item = False
        self._in_comment = end < 0
        if end >= 0:
            self._append(text[end + len(_COMMENT_END) :].strip())

    def _enter(self, heading: str, text: str) -> None:
        """Begin the section of a heading, or none; of two with one name the first counts."""
        name = _NAMES.get(_plain(heading))
        if self._unclear:
            if name is not None:
                self.found.setdefault(name, [])
            self._entry(text)
            return
        self._in_item = False
        self._entries = None if name is None or name in self.found else self.found.setdefault(name, [])

    def _opens(self, text: str) -> bool:
        """Begin a fence, if the line does."""
        fence = _FENCE.fullmatch(text)
        if fence is None:
            return False
        self._fence = fence["mark"] or fence["other"]
        self._join(text)
        return True

    def _entry(self, text: str) -> None:
        """Take a line of content: an item, the rest of one, or a line of its own."""
        marker = _MARKER.match(text)
        if marker is None and self._in_item:
            self._join(text)
            return
        rest = text[marker.end() :].strip() if marker else text
        self._unclear = self._unclear or _begins(rest)
        checkbox = _CHECKBOX.match(rest)
        rest = rest[checkbox.end() :].strip() if checkbox else rest
        if _COMMENTS.fullmatch(rest):
            rest = ""
        self._in_item = marker is not None and bool(rest)
        self._append(rest)
        fence = _FENCE.fullmatch(rest) if marker else None
        if fence is not None:
            self._fence = fence["mark"] or fence["other"]

    def _append(self, text: str) -> None:
        """Begin an entry, if there is anything in it."""
        if text and self._entries is not None:
            self._entries.append([text])

    def _join(self, text: str) -> None:
        """Add a line to the entry above, or begin one where there is none."""
        if self._entries is None or not text:
            return
        if self._entries:
            self._entries[-1].append(text)
        else:
            self._entries.append([text])


def _begins(text: str) -> bool:
    """Whether a comment begins here that does not end on the same line."""
    return text.startswith(_COMMENT_MARK) and _COMMENT_END not in text[_WITHIN_MARK:]


def _plain(heading: str) -> str:
    """A heading as it is compared: lower case, one blank for whatever is neither letter nor digit."""
    letters = "".join(letter if letter.isalnum() else " " for letter in heading.lower())
    return " ".join(letters.split())
