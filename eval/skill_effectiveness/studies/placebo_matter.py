"""Front matter with the keys of another and none of its words (studies.md, "Generated placebo").

Line by line every text becomes text of the bank; keys, numbers, true, false and null stay. What comes out is
read again and must have the same keys and kinds of values, or it is refused: writing YAML in all its forms is
not worth being nearly right.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.pointer import json_pointer
from skill_effectiveness.evidence.yaml12 import YamlError, read_yaml, read_yaml_document
from skill_effectiveness.studies.placebo_prose import tokens_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.studies.placebo_prose import Prose

FRONT_MATTER: Final = re.compile(r"---\n(.*?\n)---(\n|\Z)", re.DOTALL)

_KEY: Final = re.compile(r"(\"[^\"]*\"|'[^']*'|[^\s:#\"'\[{&*!?|>-][^:#]*?)([ \t]*:)([ \t]+|$)(.*)")
_LEAD: Final = re.compile(r"[ \t]*(?:-[ \t]+)*")
_BLOCK: Final = re.compile(r"[|>][-+0-9]*(?=[ \t]|$)")
_COMMENT: Final = re.compile(r"((?:^|[ \t]+)#[# \t]*)(.*)")
_NAME: Final = "name"


class UnwritableError(Exception):
    """The front matter is written in a form that is not taken apart here."""


def placebo_matter(text: str, prose: Prose, guide: str | None) -> str | None:
    """Front matter of the same keys; None where the text is none.

    Args:
        text: between the two lines of dashes, with its last line end.
        prose: gives the new text.
        guide: the value of `name`; None makes it text as any other.

    Raises:
        UnwritableError: the same keys and kinds of values did not come out.
    """
    try:
        document = read_yaml_document(text.encode())
    except YamlError:
        return None
    held = document.value
    if not isinstance(held, dict):
        return None
    starts = {document.mark(json_pointer([key])).line - 1: key for key in held}
    made = "".join(f"{line}\n" for line in _written(text.split("\n")[:-1], starts, held, prose, guide))
    try:
        found = read_yaml(made.encode())
    except YamlError as error:
        raise UnwritableError from error
    named = isinstance(found, dict) and (_NAME not in held or guide is None or found.get(_NAME) == guide)
    wanted = held if guide is None or _NAME not in held else {**held, _NAME: guide}
    if not named or _shape(found) != _shape(wanted):
        raise UnwritableError
    return made


def _written(
    lines: Sequence[str],
    starts: Mapping[int, str],
    held: Mapping[str, JsonValue],
    prose: Prose,
    guide: str | None,
) -> Iterator[str]:
    firsts = sorted(starts)
    for line in lines[: firsts[0]] if firsts else lines:
        yield _comment(line, prose)
    for first, end in zip(firsts, [*firsts[1:], len(lines)], strict=True):
        key = starts[first]
        member = _Member(lines[first:end], prose)
        if key == _NAME and guide is not None:
            yield member.named(guide)
        else:
            yield from member.written(held[key])


class _Member:
    """One key at the top with the lines of its value."""

    def __init__(self, lines: Sequence[str], prose: Prose) -> None:
        found = _KEY.fullmatch(lines[0])
        if found is None:
            raise UnwritableError
        self._head = found[1] + found[2] + found[3]
        self._rest = found[4]
        self._others = lines[1:]
        self._prose = prose

    def named(self, guide: str) -> str:
        """The line of the name; what it had more or fewer tokens is owed."""
        self._prose.owe(tokens_in("\n".join([self._rest, *self._others])) - tokens_in(guide))
        return f"{self._head.rstrip()} {guide}"

    def written(self, value: JsonValue) -> Iterator[str]:
        if isinstance(value, str):
            yield self._head + self._text()
            for line in self._others:
                yield _filled(line, self._prose)
            return
        yield self._head + _value(self._rest, self._prose)
        names = frozenset(_names(value))
        for line in self._others:
            yield _nested(line, names, self._prose)

    def _text(self) -> str:
        block = _BLOCK.match(self._rest)
        if block is not None:
            self._prose.owe(tokens_in(self._rest[block.end() :]))
            return block[0]
        tokens = tokens_in(self._rest)
        return self._prose.sentences(tokens) if tokens else ""


def _nested(line: str, names: frozenset[str], prose: Prose) -> str:
    """A line below a list or mapping; only what is known to be a key is kept as one."""
    lead = _LEAD.match(line)
    head = lead[0] if lead else ""
    rest = line[len(head) :]
    key = _KEY.fullmatch(rest)
    if key is not None and key[1].strip("\"'") in names:
        head, rest = head + key[1] + key[2] + key[3], key[4]
    return head + _value(rest, prose)


def _value(text: str, prose: Prose) -> str:
    """One value on one line, with what is a comment behind it."""
    if not tokens_in(text) or _BLOCK.fullmatch(text):
        return text
    try:
        value = read_yaml(text.encode())
    except YamlError:
        return prose.sentences(tokens_in(text))
    comment = _COMMENT.search(text)
    if isinstance(value, str) or (isinstance(value, list | dict) and text[0] not in "[{"):
        return prose.sentences(tokens_in(text))
    bare = text if comment is None else text[: comment.start()]
    if isinstance(value, list | dict) and value:
        bare = _flow(value, bare, prose)
    return bare if comment is None else bare + _comment(text[comment.start() :], prose)


def _flow(value: JsonValue, text: str, prose: Prose) -> str:
    """A list of texts on one line; other collections on one line are not taken apart."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise UnwritableError
    sizes = [max(1, tokens_in(str(each))) for each in value]
    prose.owe(tokens_in(text) - sum(sizes) - len(sizes) - 1)
    return f"[{', '.join(prose.sentences(size) for size in sizes)}]"


def _comment(line: str, prose: Prose) -> str:
    found = _COMMENT.fullmatch(line)
    if found is None or not tokens_in(found[2]):
        return line
    return found[1] + prose.sentences(tokens_in(found[2]))


def _filled(line: str, prose: Prose) -> str:
    """A line of a text over several lines."""
    lead = _LEAD.match(line)
    head = lead[0] if lead else ""
    tokens = tokens_in(line[len(head) :])
    return head + prose.sentences(tokens) if tokens else line


def _names(value: JsonValue) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _names(each)


def _shape(value: JsonValue) -> object:
    """Keys, numbers of elements and kinds of values; texts are all one."""
    if isinstance(value, dict):
        return {key: _shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_shape(each) for each in value]
    return "" if isinstance(value, str) else [type(value).__name__, value]
