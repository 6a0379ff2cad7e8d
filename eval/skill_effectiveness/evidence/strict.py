"""Strict reading of foreign bytes: I-JSON (RFC 7493), one parser, every fault of a document at once.

Source: evidence.md, section 2. The normal way is `read_json(data, Profile.WIRE)` for a whole document and
`read_rows(stream)` for a JSONL file. Both give plain `dict`, `list`, `str`, `int`, `float`, `bool` and
`None`, which `canonical.dump` accepts, or raise one `StrictError`.

Reading goes in four steps, and a step runs only when the one before found nothing:

1. the bytes: size, byte order mark, UTF-8, emptiness;
2. a linear scan of the brackets and commas outside texts: depth and nodes, so that no hostile nesting reaches
   the parser;
3. the parser of the standard library, whose hooks leave a mark where a value is refused instead of stopping
   at the first one;
4. only when something was marked or some text looked suspicious, a walk that turns every mark into a fault
   with its JSON pointer.

A node is a value: an object, an array, a text, a number or a literal; member names are not counted. A number
without fraction and exponent becomes an `int` (`-0` becomes `0`), any other a `float` (`-0.0` becomes `0.0`),
so that an integer field can tell `1` from `1.0`. Needs the standard library only.
"""

from __future__ import annotations

import json
import math
import re
from enum import Enum
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from skill_effectiveness.evidence.faults import Fault, StrictCode, StrictError
from skill_effectiveness.evidence.pointer import Location, pointer_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

LARGEST_INTEGER: Final = 2**53 - 1
"""Beyond ± this, a double no longer tells neighbouring integers apart."""
LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""Half a surrogate pair, which has no UTF-8 form."""
MOST_FAULTS: Final = 1_000
"""So many faults of one document are listed."""

_LONGEST_NUMBER: Final = 64


class Profile(Enum):
    """How much one document may hold: bytes, nesting of objects and arrays, nodes."""

    WIRE = (1_048_576, 64, 200_000)
    DOCUMENT = (67_108_864, 64, 5_000_000)
    ROW = (1_048_576, 32, 100_000)

    def __init__(self, max_bytes: int, max_depth: int, max_nodes: int) -> None:
        self.max_bytes = max_bytes
        self.max_depth = max_depth
        self.max_nodes = max_nodes


class RowStream(Protocol):
    """A binary file open for reading, as far as `read_rows` needs it."""

    def readline(self, size: int, /) -> bytes:
        """The next bytes up to and with LF, at most `size`; fewer without LF only at the end."""


def read_json(data: bytes, profile: Profile, *, want_object: bool = False) -> JsonValue:
    """Read one document.

    Args:
        data: the bytes as received.
        profile: the limits.
        want_object: refuse a document that is not an object.

    Raises:
        StrictError: with every fault of the document that can be told, at most 1,000; `where` is a JSON
            pointer, empty for the whole document.
    """
    text = _decode(data, profile)
    _measure(data, profile)
    hooks = _Hooks()
    value, faults = _parse(text, hooks)
    if hooks.marked or any(sieve.search(data) for sieve in _SIEVES):
        faults = [*islice(_walk(value), MOST_FAULTS), *faults]
    if want_object and not isinstance(value, dict | _Repeated):
        faults.append(_fault(StrictCode.NOT_AN_OBJECT))
    _refuse(faults)
    return value


def read_rows(stream: RowStream, profile: Profile = Profile.ROW) -> Iterator[JsonValue]:
    """Read the rows of a JSONL file one by one, split on the byte 0x0A only; the file itself has no limit.

    A row over the limit is refused after reading one byte more than the limit.

    Raises:
        StrictError: at the first bad row, with all faults of that row; `where` is the row number (from 1)
            followed by the JSON pointer.
    """
    number = 0
    while line := stream.readline(profile.max_bytes + 1):
        number += 1
        yield _read_row(line, number, profile)


def _read_row(line: bytes, number: int, profile: Profile) -> JsonValue:
    if not line.endswith(b"\n"):
        code = StrictCode.TOO_LARGE if len(line) > profile.max_bytes else StrictCode.TORN_ROW
        raise StrictError(_fault(code, str(number)))
    row = line[:-1]
    if not row.strip(_SPACE):
        raise StrictError(_fault(StrictCode.BLANK_ROW, str(number)))
    try:
        return read_json(row, profile)
    except StrictError as error:
        faults = [Fault(fault.code, f"{number}{fault.where}", fault.sentence) for fault in error.faults]
        raise StrictError(*faults) from None


_SENTENCES: Final = {
    StrictCode.EMPTY: "There is nothing here; a JSON value is needed.",
    StrictCode.TOO_LARGE: "This is larger than a document of its kind may be; split it.",
    StrictCode.TOO_DEEP: "Objects and arrays are nested deeper than in a document of its kind; flatten it.",
    StrictCode.TOO_MANY_NODES: "This holds more values than a document of its kind may; split it.",
    StrictCode.BOM: "The bytes begin with a byte order mark; save the file as UTF-8 without one.",
    StrictCode.NOT_UTF8: "This is not UTF-8; save the file as UTF-8.",
    StrictCode.SYNTAX: "This is not JSON (RFC 8259); correct it.",
    StrictCode.TRAILING_DATA: "Something follows the JSON value; only one value is read.",
    StrictCode.DUPLICATE_KEY: "The same member name stands twice in one object; keep one.",
    StrictCode.NON_FINITE: "This number is not finite; write a finite one.",
    StrictCode.NUMBER_RANGE: (
        "This number cannot be kept exactly: whole numbers reach to 9007199254740991, none may shrink to "
        "zero, and a spelling has at most 64 characters."
    ),
    StrictCode.LONE_SURROGATE: "This text holds one half of a surrogate pair; remove it.",
    StrictCode.NONCHARACTER: "This text holds a code point reserved as no character; remove it.",
    StrictCode.NOT_AN_OBJECT: "A JSON object is needed here.",
    StrictCode.TORN_ROW: "The last row does not end with a line feed; it may have been cut off.",
    StrictCode.BLANK_ROW: "This row is empty; every row holds one JSON value.",
}


def _fault(code: StrictCode, where: str = "", place: str = "") -> Fault:
    return Fault(code, where, place + _SENTENCES[code])


def _refuse(faults: list[Fault]) -> None:
    if faults:
        raise StrictError(*faults)


# Step 1: the bytes.

_SPACE: Final = b" \t\r\n"
_BOM: Final = b"\xef\xbb\xbf"


def _decode(data: bytes, profile: Profile) -> str:
    if len(data) > profile.max_bytes:
        raise StrictError(_fault(StrictCode.TOO_LARGE))
    if not data.strip(_SPACE):
        raise StrictError(_fault(StrictCode.EMPTY))
    faults = [_fault(StrictCode.BOM)] if data.startswith(_BOM) else []
    text = ""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        faults.append(_fault(StrictCode.NOT_UTF8, place=f"Byte {error.start + 1}: "))
    _refuse(faults)
    return text


# Step 2: depth and nodes. Up to its first syntax error the parser sees the same texts and brackets as this
# scan. It goes window by window, so that it ends early and holds little, whatever the document is made of.

_WINDOW: Final = 1 << 18
# What stands outside texts becomes brackets, commas and a 0 for each byte of anything else.
_STRUCTURE: Final = bytes(byte if byte in b"[]{}," else ord("0") for byte in range(256))
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
# Read as signed bytes, an opening bracket is +1 and a closing one -1.
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")


def _measure(data: bytes, profile: Profile) -> None:
    scan = _Scan()
    for start in range(0, len(data), _WINDOW):
        scan.take(data[start : start + _WINDOW])
        faults = []
        if scan.deepest > profile.max_depth:
            faults.append(_fault(StrictCode.TOO_DEEP))
        if scan.nodes > profile.max_nodes:
            faults.append(_fault(StrictCode.TOO_MANY_NODES))
        _refuse(faults)


class _Scan:
    """Counts nodes and nesting of a document that is taken a window at a time.

    Attributes:
        deepest: the deepest nesting so far.
    """

    def __init__(self) -> None:
        self.deepest = 0
        self._counted = 1
        self._depth = 0
        self._in_text = False
        self._escape = b""
        self._last = b""

    def take(self, window: bytes) -> None:
        structure = self._outside_texts(window).translate(_STRUCTURE, _SPACE)
        opened = structure.count(b"[") + structure.count(b"{")
        closed = structure.count(b"]") + structure.count(b"}")
        seam = self._last + structure[:1]
        empty = sum(part.count(pair) for part in (structure, seam) for pair in (b"[]", b"{}"))
        # Every value but the first stands behind a comma or is the first in its container.
        self._counted += structure.count(b",") + opened - empty
        steps = memoryview(structure.translate(_STEPS, _NOT_BRACKETS)).cast("b")
        deepest_here = max(accumulate(steps, initial=self._depth))
        self.deepest = max(self.deepest, deepest_here)
        self._depth += opened - closed
        self._last = structure[-1:] or self._last

    @property
    def nodes(self) -> int:
        """Values met so far."""
        # A container that was just opened may turn out to be empty.
        return self._counted - (self._last in {b"[", b"{"})

    def _outside_texts(self, window: bytes) -> bytes:
        """The window with a 0 for each text that begins in it."""
        # Pairs of backslashes first, so that a quote is escaped exactly if a backslash is left before it.
        plain = (self._escape + window).replace(b"\\\\", b"")
        self._escape = b"\\" if plain.endswith(b"\\") else b""
        pieces = plain.removesuffix(b"\\").replace(b'\\"', b"").split(b'"')
        outside = b"0".join(pieces[self._in_text :: 2])
        self._in_text ^= len(pieces) % 2 == 0
        return outside + b"0" if self._in_text and len(pieces) > 1 else outside


# Step 3: the parser and its marks.


class _Refused(NamedTuple):
    """Stands where a number is refused."""

    code: StrictCode


class _Repeated:
    """Stands where an object names a member twice; holds all its members in order."""

    __slots__ = ("members",)

    def __init__(self, members: list[tuple[str, JsonValue]]) -> None:
        self.members = members


class _Hooks:
    """What the parser calls for numbers and objects; `marked` tells whether any mark was left."""

    __slots__ = ("marked",)

    def __init__(self) -> None:
        self.marked = False

    def integer(self, token: str) -> int | _Refused:
        if len(token) > _LONGEST_NUMBER:
            return self._mark(StrictCode.NUMBER_RANGE)
        number = int(token)
        return number if abs(number) <= LARGEST_INTEGER else self._mark(StrictCode.NUMBER_RANGE)

    def fraction(self, token: str) -> float | _Refused:
        if len(token) > _LONGEST_NUMBER:
            return self._mark(StrictCode.NUMBER_RANGE)
        number = float(token)
        if math.isinf(number):
            return self._mark(StrictCode.NON_FINITE)
        # Every double that large is whole, so a spelling such as 9007199254740992.0 ends here too.
        if abs(number) > LARGEST_INTEGER or (number == 0 and _NONZERO.match(token)):
            return self._mark(StrictCode.NUMBER_RANGE)
        return number + 0.0  # turns -0.0 into 0.0

    def constant(self, _name: str) -> _Refused:
        return self._mark(StrictCode.NON_FINITE)

    def members(self, pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue] | _Repeated:
        value = dict(pairs)
        if len(value) == len(pairs):
            return value
        self.marked = True
        return _Repeated(pairs)

    def _mark(self, code: StrictCode) -> _Refused:
        self.marked = True
        return _Refused(code)


_NONZERO: Final = re.compile(r"-?[0.]*[1-9]")
_SPACES: Final = re.compile(r"[ \t\r\n]*")


def _parse(text: str, hooks: _Hooks) -> tuple[JsonValue, list[Fault]]:
    decoder = json.JSONDecoder(
        parse_int=hooks.integer,
        parse_float=hooks.fraction,
        parse_constant=hooks.constant,
        object_pairs_hook=hooks.members,
    )
    try:
        value, end = decoder.raw_decode(text, _after_space(text, 0))
    except json.JSONDecodeError as error:
        raise StrictError(_fault(StrictCode.SYNTAX, place=_line_and_column(text, error.pos))) from None
    end = _after_space(text, end)
    if end == len(text):
        return value, []
    return value, [_fault(StrictCode.TRAILING_DATA, place=_line_and_column(text, end))]


def _after_space(text: str, start: int) -> int:
    match = _SPACES.match(text, start)
    return start if match is None else match.end()


def _line_and_column(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return f"Line {line}, column {column}: "


# Step 4: the walk that names every fault.

_RESERVED: Final = "\ufdd0-\ufdef" + "".join(
    chr(plane * 0x10000 + low) for plane in range(17) for low in (0xFFFE, 0xFFFF)
)
_NONCHARACTER: Final = re.compile(f"[{_RESERVED}]")
# What the bytes of a document must hold before any of its texts can be refused; each begins with fixed bytes,
# which makes the search fast. An escape of a surrogate, or of U+FDxx or U+FFxx (a pair of escapes begins with
# a surrogate); U+FDD0 to U+FDEF; a code point that ends in FFFE or FFFF (and some harmless ones).
_SIEVES: Final = (
    re.compile(rb"\\u(?:[dD][89a-fA-F]|[fF][dDfF])"),
    re.compile(rb"\xef\xb7[\x90-\xaf]"),
    re.compile(rb"\xbf[\xbe\xbf]"),
)


def _walk(document: JsonValue | _Repeated) -> Iterator[Fault]:
    """Every fault in document order; holds one iterator for each level, whatever the width."""
    yield from _faults_at(None, document)
    levels = [_children(None, document)]
    while levels:
        child = next(levels[-1], None)
        if child is None:
            levels.pop()
            continue
        yield from _faults_at(*child)
        levels.append(_children(*child))


def _children(place: Location | None, value: object) -> Iterator[tuple[Location, object]]:
    children = enumerate(value) if isinstance(value, list) else _members(value)
    return ((Location(place, segment), child) for segment, child in children)


def _members(value: object) -> Iterable[tuple[str, object]]:
    if isinstance(value, dict):
        return value.items()
    return value.members if isinstance(value, _Repeated) else ()


def _faults_at(place: Location | None, value: object) -> Iterator[Fault]:
    if isinstance(value, str):
        yield from _text_faults(place, value)
    elif isinstance(value, _Refused):
        yield _fault(value.code, pointer_to(place))
    seen: set[str] = set()
    for name, _child in _members(value):
        here = Location(place, name)
        yield from _text_faults(here, name)
        if name in seen:
            yield _fault(StrictCode.DUPLICATE_KEY, pointer_to(here))
        seen.add(name)


def _text_faults(place: Location | None, text: str) -> Iterator[Fault]:
    if LONE_SURROGATE.search(text):
        yield _fault(StrictCode.LONE_SURROGATE, pointer_to(place))
    if _NONCHARACTER.search(text):
        yield _fault(StrictCode.NONCHARACTER, pointer_to(place))
