"""The one byte form of a value (RFC 8785), every digest over it, and the draws keyed by it.

Source: evidence.md, section 3. `dump` accepts plain `dict`, `list`, `str`, `bool`, `None`, `int` within
±(2^53-1) and finite `float`, nested at most 64 deep, and refuses everything else: tuples, sets, bytes,
`Decimal`, enum members and every other subclass, member names that are not text, texts with half a surrogate
pair. A value that passes has exactly one byte form, so a digest over it means the value and nothing else.

Three encoders stand behind it. Values without floats and with ASCII member names go through the C encoder of
the standard library; those with floats of an everyday size are written here, value by value; both are proved
equal by test. All others go through the `rfc8785` library, which is loaded only then.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
from itertools import chain, islice
from json import encoder as json_encoder
from typing import TYPE_CHECKING, Any, Final, cast

from skill_effectiveness.evidence.chunks import file_chunks
from skill_effectiveness.evidence.faults import CanonicalCode, CanonicalError, Fault
from skill_effectiveness.evidence.pointer import Location, pointer_to
from skill_effectiveness.evidence.strict import LARGEST_INTEGER, LONE_SURROGATE, MOST_FAULTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem

DEEPEST: Final = 64
"""Nesting of objects and arrays: what `strict` still reads."""


def dump(value: object) -> bytes:
    """The canonical bytes of a value, without line feed.

    Raises:
        CanonicalError: with every reason why the value has no canonical form, at most 1,000; `where` is a
            JSON pointer.
    """
    for way in (_dump_fast, _dump_each):
        data = way(value)
        if data is not None:
            return data
    return _dump_slow(value)


def dump_plain(value: object) -> bytes | None:
    """What `dump` gives for a small value of a kind that needs no second look, else `None`.

    That is ASCII texts without control characters but those that have a short escape, whole numbers, `true`,
    `false`, `null`, and objects and arrays of them, in fewer than 4,096 bytes. `None` says nothing about the
    value.
    """
    try:
        text = "".join(_write_ascii(value, 0))
        return text.encode() if _is_plainly_written(value, text) else None
    except (TypeError, ValueError, RecursionError):
        # `dump` tells why.
        return None


def dump_line(value: object) -> bytes:
    """The canonical bytes of a value and one LF: the form of a JSON file and of a row.

    Raises:
        CanonicalError: as `dump`.
    """
    return dump(value) + b"\n"


# Digests.


def list_chunks(elements: Iterable[bytes]) -> Iterator[bytes]:
    """What `dump` gives for a list, piece by piece, of what it gives for each element."""
    yield b"["
    before = b""
    for element in elements:
        yield before + element
        before = b","
    yield b"]"


def digest_bytes(data: bytes) -> str:
    """`sha256:` and the 64 hex digits of the SHA-256 of the bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest_chunks(chunks: Iterable[bytes]) -> str:
    """The digest of the chunks put together."""
    running = RunningDigest()
    for chunk in chunks:
        running.add(chunk)
    return running.digest


class RunningDigest:
    """The digest of bytes that come one piece after the other, for who needs the pieces too."""

    def __init__(self) -> None:
        self._state = hashlib.sha256()

    def add(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._state.update(chunk)

    @property
    def digest(self) -> str:
        """The digest of what was taken so far."""
        return "sha256:" + self._state.hexdigest()


def digest_text(text: str) -> str:
    """The digest of the UTF-8 bytes of a text, without quotes.

    Raises:
        CanonicalError: `lone_surrogate`.
    """
    if LONE_SURROGATE.search(text):
        raise CanonicalError(_fault(CanonicalCode.LONE_SURROGATE, None))
    return digest_bytes(text.encode())


def digest_object(value: object) -> str:
    """`H(value)`: the digest of the canonical bytes.

    Raises:
        CanonicalError: as `dump`.
    """
    return digest_bytes(dump(value))


def digest_file(fs: FileSystem, path: Path) -> str:
    """The digest of a regular file's bytes.

    Args:
        fs: file operations.
        path: absolute; a link as its last segment is not followed.

    Raises:
        FileError: as `chunks.file_chunks`; `where` is the last segment.
    """
    return digest_chunks(file_chunks(fs, None, str(path), path.name))


# Keyed proofs and draws.


def mac(key: bytes, value: object) -> bytes:
    """The 32 bytes of HMAC-SHA256 (RFC 2104) over the canonical bytes.

    Raises:
        CanonicalError: as `dump`.
    """
    return hmac.digest(key, dump(value), "sha256")


_WORD: Final = 4
_FIRST_BLOCK: Final = 4096


def draws(seed: bytes, use: str) -> Iterator[int]:
    """The endless stream of 32-bit words that a seed gives to one use.

    SHAKE-256 (FIPS 202) over `dump({"seed": hex, "use": use})`, cut into little-endian words (studies.md,
    head).

    Raises:
        CanonicalError: `use` holds half a surrogate pair.
    """
    state = hashlib.shake_256(dump({"seed": seed.hex(), "use": use}))
    return _words(state.digest)


def draw_bytes(seed: bytes, use: str, words: int) -> bytes:
    """The first words of the same stream at once, four little-endian bytes each.

    Args:
        seed: what the plan keeps secret until it is opened.
        use: what the words are for.
        words: how many, from 0.

    Raises:
        CanonicalError: `use` holds half a surrogate pair.
        ValueError: a negative number.
    """
    return hashlib.shake_256(dump({"seed": seed.hex(), "use": use})).digest(_WORD * words)


def _words(digest: Callable[[int], bytes]) -> Iterator[int]:
    done, size = 0, _FIRST_BLOCK
    while True:
        # hashlib cannot go on squeezing, only squeeze again from the start; doubling keeps that linear.
        block = digest(size)
        for start in range(done, size, _WORD):
            yield int.from_bytes(block[start : start + _WORD], "little")
        done, size = size, 2 * size


# Portable numbers.

_SMALLEST_PORTABLE: Final = 1e-4
_LARGEST_PORTABLE: Final = 1e16


def check_portable(value: object) -> None:
    """Refuse a value that holds a number which common writers spell in two ways.

    Such a number is read as a `float` (it was written with a fraction or an exponent) and is whole (`100.0`,
    also `0.0`), or not zero and below 1e-4 or from 1e16 up in magnitude.

    Raises:
        CanonicalError: `number_form` for each such number, at most 1,000; `where` is its JSON pointer.
    """
    faults = _number_forms(value)
    if faults:
        raise CanonicalError(*faults)


def check_caller_digest(value: object, digest: str) -> None:
    """Accept a digest that a caller computed over the value, however its writer spells numbers.

    Raises:
        CanonicalError: the digest is not `digest_object(value)`. `number_form` with the pointers when the
            value holds numbers that are not portable, since their spelling may be the reason; else
            `digest_mismatch`. Also as `dump`.
    """
    if hmac.compare_digest(digest_object(value).encode(), digest.encode("utf-8", "surrogatepass")):
        return
    check_portable(value)
    raise CanonicalError(_fault(CanonicalCode.DIGEST_MISMATCH, None))


def _number_forms(value: object) -> list[Fault]:
    odd = (
        place for place, node, _depth in _nodes(value) if isinstance(node, float) and not _is_portable(node)
    )
    return [_fault(CanonicalCode.NUMBER_FORM, place) for place in islice(odd, MOST_FAULTS)]


def _is_portable(number: float) -> bool:
    return not number.is_integer() and _SMALLEST_PORTABLE <= abs(number) < _LARGEST_PORTABLE


# The fast encoder. It writes first and its output is judged afterwards: a value that contains itself then
# ends in a RecursionError at once, and what was written bounds the cost of judging.

_FAST_TYPES: Final = frozenset({dict, list, str, int, bool, type(None)})
_NAME_TYPES: Final = frozenset({str})
_SCALAR_TYPES: Final = frozenset({str, int, bool, type(None)})
_BEYOND_ASCII: Final = re.compile(r"\\u(?!00[01])")
_DIGITS_AS_ZERO: Final = bytes(ord("0") if chr(byte).isdecimal() else ord(" ") for byte in range(256))
_LONG_RUN: Final = b"0" * len(str(LARGEST_INTEGER))
_DENSE: Final = 32
_SMALL: Final = 4_096
"""Characters; up to here a look at each value is cheaper than a survey."""


def _no_other_type(value: object) -> object:
    raise TypeError(type(value).__name__)


def _encoder(escape: Callable[[str], str]) -> Callable[[object, int], tuple[str, ...]]:
    # What json.dumps makes anew for every call; for small values that costs more than the encoding.
    make: Any = json_encoder.c_make_encoder  # type: ignore[attr-defined] # not in the stub
    encoder: Callable[[object, int], tuple[str, ...]]
    encoder = make(None, _no_other_type, escape, None, ":", ",", True, False, False)  # noqa: FBT003 - C signature
    return encoder


# The first is faster and shows in its output whether any text left ASCII; then the second writes it raw.
_write_ascii = _encoder(json_encoder.encode_basestring_ascii)
_write_raw = _encoder(json_encoder.encode_basestring)


def _dump_fast(value: object) -> bytes | None:
    """The canonical bytes, or `None` when this way cannot be sure of them."""
    try:
        text = "".join(_write_ascii(value, 0))
        if _is_plainly_written(value, text):
            return text.encode()
        survey = _Survey()
        if not survey.covers(value) or not survey.integers_fit(text):
            return None
        # From the right, because that search is three times as fast and most texts hold no such escape.
        if text.rfind("\\u") < 0 or not _BEYOND_ASCII.search(text):
            return text.encode()
        return "".join(_write_raw(value, 0)).encode() if survey.names_are_ascii() else None
    except (TypeError, ValueError, RecursionError):
        # Another type, a float that is not finite, half a surrogate pair, nesting without end: the slow way
        # names them all.
        return None


def _is_plainly_written(value: object, text: str) -> bool:
    """Whether a value that the fast encoder wrote as `text` is small and needs no survey."""
    return len(text) < _SMALL and text.rfind("\\u") < 0 and _is_plain(value, DEEPEST)


def _is_plain(value: object, deepest: int) -> bool:
    """Whether a small value is of types that the fast encoder writes canonically; `_Survey` in few steps."""
    kind = type(value)
    if kind in _SCALAR_TYPES:
        return kind is not int or _is_exact(value)
    if deepest == 0:
        return False
    if kind is dict:
        node = cast("dict[object, object]", value)
        if not _NAME_TYPES.issuperset(map(type, node)):
            return False
        below: Iterable[object] = node.values()
    elif kind is list:
        below = cast("list[object]", value)
    else:
        return False
    for each in below:  # noqa: SIM110 - a generator would cost more than what it is asked
        # Most values are texts, which need no call each.
        if type(each) is not str and not _is_plain(each, deepest - 1):
            return False
    return True


def _is_exact(number: object) -> bool:
    """Whether an integer is an exact double."""
    return -LARGEST_INTEGER <= cast("int", number) <= LARGEST_INTEGER


class _Survey:
    """The exact types of everything in a value, looked at level by level.

    Attributes:
        nodes: number of values.
        objects: all objects, in groups.
        numbered: groups of values that hold integers.
    """

    __slots__ = ("nodes", "numbered", "objects")

    def __init__(self) -> None:
        self.nodes = 0
        self.objects: list[list[dict[str, object]]] = []
        self.numbered: list[list[object]] = []

    def covers(self, value: object) -> bool:
        """Whether everything is of a type that the fast encoder writes canonically, and not too deep."""
        level = [value]
        for depth in range(DEEPEST + 1):
            kinds = set(map(type, level))
            self.nodes += len(level)
            if int in kinds:
                self.numbered.append(level)
            if _SCALAR_TYPES.issuperset(kinds):
                return True
            if depth == DEEPEST or not _FAST_TYPES.issuperset(kinds):
                return False
            below = self._level_below(level, kinds)
            if below is None:
                return False
            level = below
        return False

    def _level_below(self, level: list[Any], kinds: set[type]) -> list[object] | None:
        """The values inside the objects and arrays; `None` when a member name is not plain text."""
        below: list[object] = []
        if dict in kinds:
            group = level if len(kinds) == 1 else [node for node in level if type(node) is dict]
            if not _NAME_TYPES.issuperset(map(type, chain.from_iterable(group))):
                return None
            self.objects.append(group)
            below.extend(chain.from_iterable(map(dict.values, group)))
        if list in kinds:
            group = level if len(kinds) == 1 else [node for node in level if type(node) is list]
            below.extend(chain.from_iterable(group))
        return below

    def names_are_ascii(self) -> bool:
        """Whether sorting by code points is sorting by UTF-16 code units."""
        return all(name.isascii() for group in self.objects for name in chain.from_iterable(group))

    def integers_fit(self, text: str) -> bool:
        """Whether all integers of the value, which was written as `text`, are exact doubles."""
        if not self.numbered:
            return True
        # One look for a long run of digits is cheaper than a look at each of many integers, unless the text
        # is mostly not numbers.
        if len(text) < _DENSE * self.nodes and _LONG_RUN not in text.encode().translate(_DIGITS_AS_ZERO):
            return True
        return all(
            -LARGEST_INTEGER <= node <= LARGEST_INTEGER
            for group in self.numbered
            for node in group
            if type(node) is int
        )


# The encoder for values with floats. It looks at each value and writes it at once, so its cost is bounded by
# what is in the value; what contains itself ends at the deepest level.

_quoted: Final[Callable[[str], str]] = json_encoder.encode_basestring
_WORDS: Final[Mapping[object, str]] = {None: "null", True: "true", False: "false"}


class _UnsureError(Exception):
    """This way cannot be sure of a value's canonical form, if it has one."""


def _dump_each(value: object) -> bytes | None:
    """The canonical bytes, or `None` when this way cannot be sure of them."""
    try:
        return _each(value, DEEPEST).encode()
    except (_UnsureError, UnicodeEncodeError, RecursionError):
        # An odd number, name or type, half a surrogate pair, nesting too deep: left to the slow way.
        return None


def _each(value: object, deepest: int) -> str:
    kind = type(value)
    if kind is str:
        return _quoted(cast("str", value))
    if kind is float:
        return _float_text(cast("float", value))
    if kind is int and _is_exact(value):
        return str(value)
    if kind is bool or value is None:
        return _WORDS[value]
    if deepest == 0:
        raise _UnsureError
    if kind is list:
        return f"[{','.join([_each(node, deepest - 1) for node in cast('list[object]', value)])}]"
    if kind is dict:
        return _object_text(cast("dict[object, object]", value), deepest - 1)
    raise _UnsureError


def _object_text(members: dict[object, object], deepest: int) -> str:
    if not _NAME_TYPES.issuperset(map(type, members)):
        raise _UnsureError
    names = cast("list[str]", list(members))
    # Of ASCII names alone the order of code points is surely that of UTF-16 code units.
    if not "".join(names).isascii():
        raise _UnsureError
    return f"{{{','.join([f'{_quoted(name)}:{_each(members[name], deepest)}' for name in sorted(names)])}}}"


def _float_text(number: float) -> str:
    """The ECMAScript form of a number that Python spells alike, or that is a whole and exact one."""
    if _is_portable(number):
        return repr(number)
    if number.is_integer() and abs(number) <= LARGEST_INTEGER:
        return str(int(number))
    raise _UnsureError


# The slow encoder, and the reasons why a value has no canonical form.


def _dump_slow(value: object) -> bytes:
    faults = list(islice(_faults(value), MOST_FAULTS))
    if faults:
        raise CanonicalError(*faults)
    import rfc8785  # noqa: PLC0415 - this module must load without it

    return rfc8785.dumps(cast("Any", value))


def _faults(value: object) -> Iterator[Fault]:
    for place, node, depth in _nodes(value):
        kind = type(node)
        if kind is dict or kind is list:
            if depth > DEEPEST:
                # Perhaps without end, so this is the last one told.
                yield _fault(CanonicalCode.TOO_DEEP, place)
                return
            if kind is dict:
                yield from _name_faults(place, cast("dict[object, object]", node))
        elif code := _scalar_code(node):
            yield _fault(code, place)


def _name_faults(place: Location | None, members: dict[object, object]) -> Iterator[Fault]:
    for name in members:
        if type(name) is not str:
            yield _fault(CanonicalCode.UNSUPPORTED_TYPE, place)
        elif LONE_SURROGATE.search(name):
            yield _fault(CanonicalCode.LONE_SURROGATE, Location(place, name))


def _scalar_code(node: object) -> CanonicalCode | None:
    kind = type(node)
    if kind is str:
        return CanonicalCode.LONE_SURROGATE if LONE_SURROGATE.search(cast("str", node)) else None
    if kind is int:
        return None if abs(cast("int", node)) <= LARGEST_INTEGER else CanonicalCode.NUMBER_RANGE
    if kind is float:
        return None if math.isfinite(cast("float", node)) else CanonicalCode.NON_FINITE
    return None if node is None or kind is bool else CanonicalCode.UNSUPPORTED_TYPE


def _nodes(value: object) -> Iterator[tuple[Location | None, object, int]]:
    """Every value with its place and one more than the number of containers around it, in document order."""
    yield None, value, 1
    levels = [_children(None, value)]
    while levels:
        child = next(levels[-1], None)
        if child is None:
            levels.pop()
            continue
        yield (*child, len(levels) + 1)
        if len(levels) < DEEPEST:
            levels.append(_children(*child))


def _children(place: Location | None, node: object) -> Iterator[tuple[Location, object]]:
    members: Iterable[tuple[str | int, object]] = ()
    if type(node) is list:
        members = enumerate(node)
    elif type(node) is dict:
        members = ((name, child) for name, child in node.items() if type(name) is str)
    return ((Location(place, segment), child) for segment, child in members)


_SENTENCES: Final = {
    CanonicalCode.UNSUPPORTED_TYPE: "Only plain JSON values have a canonical form; convert this one first.",
    CanonicalCode.NUMBER_RANGE: "Whole numbers reach to 9007199254740991; write this one as text.",
    CanonicalCode.NON_FINITE: "This number is not finite; write a finite one.",
    CanonicalCode.LONE_SURROGATE: "This text holds one half of a surrogate pair; store its bytes instead.",
    CanonicalCode.TOO_DEEP: "Objects and arrays are nested more than 64 deep; flatten them.",
    CanonicalCode.NUMBER_FORM: (
        "number form: writers spell this number in different ways, so digests over it differ; write whole "
        "numbers without fraction and exponent, and none smaller than 0.0001."
    ),
    CanonicalCode.DIGEST_MISMATCH: (
        "The digest does not belong to this value; compute it over the canonical bytes (RFC 8785)."
    ),
}


def _fault(code: CanonicalCode, place: Location | None) -> Fault:
    return Fault(code, pointer_to(place), _SENTENCES[code])
