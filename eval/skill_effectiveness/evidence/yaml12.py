"""A file's bytes as a JSON value that knows where it stood: YAML 1.2, core schema, one document.

`read_yaml(data)` gives the value, `read_yaml_document(data)` also line and column of every key and value by
JSON pointer, so that whoever fits the value to a model can tell a person where to look.

Sources: closeout.md, section 4; studies.md, section 1. The library's parser cuts the text into events; what
a plain scalar means is decided here, by the core schema (YAML 1.2.2, section 10.3.2) and nothing else.
Refused: tags, merge keys, keys that are no text or stand twice, more than one document, another YAML version,
text without a UTF-8 form. Anchors and aliases are YAML 1.2 and count as often as they are used.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from skill_effectiveness.evidence.pointer import json_pointer, printable
from skill_effectiveness.evidence.strict import LARGEST_INTEGER, LONE_SURROGATE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skill_effectiveness.evidence.strict import JsonValue

BYTES_MOST: Final = 1_048_576
NODES_MOST: Final = 100_000
DEPTH_MOST: Final = 64

_NULL: Final = re.compile(r"~|null|Null|NULL|")
_TRUE: Final = re.compile(r"true|True|TRUE")
_FALSE: Final = re.compile(r"false|False|FALSE")
_DECIMAL: Final = re.compile(r"[-+]?[0-9]+")
_OCTAL: Final = re.compile(r"0o([0-7]+)")
_HEX: Final = re.compile(r"0x([0-9a-fA-F]+)")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_UNENDING: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_DIGITS_MOST: Final = 64


class Mark(NamedTuple):
    """A place in a text; both numbers count from 1, the column in code points."""

    line: int
    column: int

    def __str__(self) -> str:
        """As it is told to people."""
        return f"line {self.line}, column {self.column}"


class YamlError(Exception):
    """The bytes are no such text.

    The whole text of the error is `reason`, with line and column where there are any.

    Attributes:
        reason: what is wrong, without the place.
        mark: the place, where there is one.
    """

    def __init__(self, reason: str, mark: Mark | None = None) -> None:
        self.reason = reason
        self.mark = mark
        super().__init__(reason if mark is None else f"{reason} ({mark})")


_TOP: Final = Mark(1, 1)


class YamlDocument(NamedTuple):
    """One document.

    Attributes:
        value: what it says.
        keys: by JSON pointer of a member, where its key stands.
        values: by JSON pointer, where a value begins. What an alias repeats has the alias's place alone.
    """

    value: JsonValue
    keys: Mapping[str, Mark]
    values: Mapping[str, Mark]

    def mark(self, pointer: str) -> Mark:
        """Where a person should look for what a JSON pointer names.

        Its key, else its value, else those of the nearest thing around it.
        """
        while pointer:
            found = self.keys.get(pointer) or self.values.get(pointer)
            if found is not None:
                return found
            pointer = pointer.rpartition("/")[0]
        return self.values.get("", _TOP)


def read_yaml(data: bytes) -> JsonValue:
    """The JSON value of one YAML document.

    Raises:
        YamlError: with the reason; a repeated key says `duplicated mapping key`.
    """
    return read_yaml_document(data).value


def read_yaml_document(data: bytes) -> YamlDocument:
    """One YAML document with its places.

    Raises:
        YamlError: as `read_yaml`.
    """
    if len(data) > BYTES_MOST:
        raise YamlError(f"the file is larger than {BYTES_MOST} bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise YamlError("the file is not UTF-8") from None
    reader = YAML(typ="safe", pure=True)
    composer = _Composer()
    try:
        composer.read(reader.parse(text))
    except MarkedYAMLError as error:
        raise _told(error) from None
    except (YAMLError, ValueError, RecursionError):
        raise YamlError("the file is not YAML 1.2") from None
    return YamlDocument(
        composer.result, MappingProxyType(composer.key_marks), MappingProxyType(composer.value_marks)
    )


def _told(error: MarkedYAMLError) -> YamlError:
    problem = printable(str(error.problem or "the file is not YAML 1.2"))
    mark = error.problem_mark
    return YamlError(problem, None if mark is None else Mark(mark.line + 1, mark.column + 1))


@dataclass(slots=True)
class _Open:
    """A collection that is being read."""

    value: list[JsonValue] | dict[str, JsonValue]
    anchor: str | None
    began: int
    pointer: str
    key: str | None = None
    keyed: bool = False


@dataclass(slots=True)
class _Composer:
    """Builds the value of one document from its events."""

    around: list[_Open] = field(default_factory=list)
    anchors: dict[str, tuple[JsonValue, int]] = field(default_factory=dict)
    nodes: int = 0
    documents: int = 0
    result: JsonValue = None
    key_marks: dict[str, Mark] = field(default_factory=dict)
    value_marks: dict[str, Mark] = field(default_factory=dict)

    def read(self, events: Iterator[object]) -> None:
        for event in events:
            self._take(event)

    def _take(self, event: object) -> None:
        match event:
            case DocumentStartEvent():
                self.documents += 1
                if self.documents > 1:
                    raise _at(event, "more than one document")
                if event.version is not None and tuple(event.version) != (1, 2):
                    raise _at(event, "only YAML 1.2 is read")
            case AliasEvent():
                self._alias(event)
            case ScalarEvent():
                _demand_untagged(event)
                self._scalar(event)
            case SequenceStartEvent() | MappingStartEvent():
                _demand_untagged(event)
                self._begin(event, [] if isinstance(event, SequenceStartEvent) else {})
            case SequenceEndEvent() | MappingEndEvent():
                ended = self.around.pop()
                if ended.anchor is not None:
                    self.anchors[ended.anchor] = (ended.value, self.nodes - ended.began + 1)
            case _:
                pass

    def _count(self, event: object, nodes: int) -> None:
        self.nodes += nodes
        if self.nodes > NODES_MOST:
            raise _at(event, f"more than {NODES_MOST} values")

    def _alias(self, event: AliasEvent) -> None:
        if event.anchor not in self.anchors:
            # An anchor around the alias is not finished yet, so this also ends values inside themselves.
            raise _at(event, "alias of an anchor that is not known here")
        value, nodes = self.anchors[event.anchor]
        self._count(event, nodes)
        self._place(event, value, plain=False)

    def _scalar(self, event: ScalarEvent) -> None:
        self._count(event, 1)
        text = _joined(event)
        plain = bool(event.implicit[0])
        value = _plain_value(event, text) if plain else text
        if event.anchor is not None:
            self.anchors[event.anchor] = (value, 1)
        self._place(event, value, plain=plain)

    def _begin(self, event: object, value: list[JsonValue] | dict[str, JsonValue]) -> None:
        self._count(event, 1)
        if len(self.around) >= DEPTH_MOST:
            raise _at(event, f"nested more than {DEPTH_MOST} deep")
        pointer = self._place(event, value, plain=False)
        anchor: str | None = getattr(event, "anchor", None)
        if anchor is not None:
            # An anchor that is defined again means the new node, from here on.
            self.anchors.pop(anchor, None)
        self.around.append(_Open(value, anchor, self.nodes, pointer))

    def _place(self, event: object, value: JsonValue, *, plain: bool) -> str:
        """Put a value where it belongs; the pointer of it, or of the member whose key it is."""
        if not self.around:
            self.result = value
            return self._marked(event, "", self.value_marks)
        around = self.around[-1]
        if isinstance(around.value, list):
            around.value.append(value)
            pointer = around.pointer + json_pointer([len(around.value) - 1])
            return self._marked(event, pointer, self.value_marks)
        if not around.keyed:
            around.key, around.keyed = _key(event, value, around.value, plain=plain), True
            return self._marked(event, around.pointer + json_pointer([around.key]), self.key_marks)
        around.value[str(around.key)] = value
        around.keyed = False
        pointer = around.pointer + json_pointer([str(around.key)])
        return self._marked(event, pointer, self.value_marks)

    def _marked(self, event: object, pointer: str, marks: dict[str, Mark]) -> str:
        mark = _mark(event)
        if mark is not None:
            marks[pointer] = mark
        return pointer


def _key(event: object, value: JsonValue, members: dict[str, JsonValue], *, plain: bool) -> str:
    if plain and value == "<<":
        raise _at(event, "merge keys are not read")
    if not isinstance(value, str):
        raise _at(event, "a mapping key that is not text")
    if value in members:
        raise _at(event, f"duplicated mapping key {printable(value[:128])}")
    return value


def _plain_value(event: object, text: str) -> JsonValue:
    """What a plain scalar means by the core schema."""
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text):
        return True
    if _FALSE.fullmatch(text):
        return False
    if _UNENDING.fullmatch(text):
        raise _at(event, "a number that is not finite")
    if _FLOAT.fullmatch(text) and not _DECIMAL.fullmatch(text):
        return _fraction(event, text)
    number = _integer(event, text)
    return text if number is None else number


def _fraction(event: object, text: str) -> float:
    # Stays a float also when it is whole: no field that takes whole numbers takes one.
    number = float(text) if len(text) <= _DIGITS_MOST else math.inf
    if math.isinf(number):
        raise _at(event, "a number that cannot be kept exactly")
    return number


def _integer(event: object, text: str) -> int | None:
    if _DECIMAL.fullmatch(text):
        digits, base = text, 10
    elif match := _OCTAL.fullmatch(text):
        digits, base = match[1], 8
    elif match := _HEX.fullmatch(text):
        digits, base = match[1], 16
    else:
        return None
    if len(digits) > _DIGITS_MOST or abs(number := int(digits, base)) > LARGEST_INTEGER:
        raise _at(event, "a number outside the safe integers")
    return number


def _joined(event: ScalarEvent) -> str:
    """The text of a scalar; two escapes that are a surrogate pair, as JSON writes them, are one character."""
    text: str = event.value
    if not LONE_SURROGATE.search(text):
        return text
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise _at(event, "text with one half of a surrogate pair") from None


def _demand_untagged(event: object) -> None:
    if getattr(event, "tag", None) is not None or getattr(event, "ctag", None) is not None:
        raise _at(event, "tags are not read")


def _mark(event: object) -> Mark | None:
    mark = getattr(event, "start_mark", None)
    return None if mark is None else Mark(mark.line + 1, mark.column + 1)


def _at(event: object, reason: str) -> YamlError:
    return YamlError(reason, _mark(event))
