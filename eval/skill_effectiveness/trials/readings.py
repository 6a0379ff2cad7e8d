r"""A text as a reader takes it in, whatever its characters are: what a leak scan compares.

Two texts that look alike to a person or a model have equal readings in these cases, on both sides of every
comparison. What is undone:

- capitals;
- accents, composed or apart, full-width, mathematical, ligature forms: compatibility decomposition (Unicode
  TR 15, NFKD), of which combining marks are left out;
- Cyrillic, Greek and other letters drawn like Latin ones, letters with a stroke, small capitals, capitals on
  discs and squares and in outline, by a table of the usual ones (the idea of Unicode TS 39, section 4), and
  dashes of every kind;
- zero-width, bidirectional, filler, tag, control, unassigned characters, soft hyphens and terminal colours:
  left out, and taken as a space in a reading of its own;
- tag characters besides, which spell ASCII that no person sees and a model reads: shown, in a reading of its
  own;
- percent, HTML and backslash escapes (`\x70`, `\u0070`, `\n`), up to three deep, in readings of their own.

What is not undone: encodings that have to be computed (base64, hex, octal, reversed or rotated letters),
digits for letters, mark-up in the middle of a word, several disguises of spaces in one run, translation and
paraphrase.
"""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass, replace
from functools import lru_cache
from string import ascii_uppercase
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

ESCAPES_DEEP: Final = 3

# Letters that are drawn like Latin ones in common fonts: first Cyrillic, then Greek, others, small capitals,
# letters with a stroke or hook.
_DRAWN_LIKE: Final = {
    "A": "\u0410\u0391\u13aa\ua4ee",
    "B": "\u0412\u0392\u13f4\ua4d0",
    "C": "\u0421\u03f9\u13df\ua4da",
    "D": "\u13a0\ua4d3\u0110",
    "E": "\u0415\u0395\u13ac\ua4f0",
    "F": "\ua4dd",
    "G": "\u13c0\ua4d6",
    "H": "\u041d\u0397\u13bb\ua4e7\u0126",
    "I": "\u0406\u04c0\u0399\ua4f2",
    "J": "\u0408\u13ab\ua4d9",
    "K": "\u041a\u039a\u13e6\ua4d7",
    "L": "\u13de\ua4e1\u0141",
    "M": "\u041c\u039c\u13b7\ua4df",
    "N": "\u039d\ua4e0",
    "O": "\u041e\u039f\u0555\ua4f3\u00d8",
    "P": "\u0420\u03a1\u13e2\ua4d1",
    "R": "\u13a1\ua4e3",
    "S": "\u0405\u054f\u13da\ua4e2",
    "T": "\u0422\u03a4\u13a2\ua4d4\u0166",
    "U": "\ua4f4",
    "V": "\u13d9\ua4e6",
    "W": "\u13b3\ua4ea",
    "X": "\u0425\u03a7\ua4eb",
    "Y": "\u04ae\u03a5\ua4ec",
    "Z": "\u0396\u13c3\ua4dc",
    "a": "\u0430\u03b1\u0251\u1d00",
    "b": "\u0299\u0180",
    "c": "\u0441\u03f2\u1d04",
    "d": "\u0501\u1d05\u0111",
    "e": "\u0435\u0454\u1d07",
    "f": "\u0493\ua730\u0192",
    "g": "\u0261\u0262\u01e5",
    "h": "\u04bb\u0570\u029c\u0127",
    "i": "\u0456\u03b9\u0131\u0269\u026a\u0268",
    "j": "\u0458\u03f3\u0237\u1d0a",
    "k": "\u043a\u03ba\u1d0b",
    "l": "\u04cf\u01c0\u2223\u029f\u0142",
    "m": "\u1d0d",
    "n": "\u0578\u057c\u0274",
    "o": "\u043e\u03bf\u0585\u1d0f\u00f8",
    "p": "\u0440\u03c1\u1d18\u1d7d",
    "q": "\u051b\u0566\ua7af",
    "r": "\u0280\u027e",
    "s": "\u0455\ua731",
    "t": "\u1d1b\u0167",
    "u": "\u03c5\u057d\u1d1c\u0289",
    "v": "\u0475\u03bd\u1d20",
    "w": "\u051d\u0461\u1d21",
    "x": "\u0445\u03c7",
    "y": "\u0443\u03b3\u028f",
    "z": "\u1d22\u01b6",
}
# The capitals of these alphabets have no decomposition, or one that a newer Unicode knows: white on a black
# disc, white on a black square, the halves of flags, outlined.
_ALPHABETS: Final = (0x1F150, 0x1F170, 0x1F1E6, 0x1CCD6)
_LOOK_ALIKES: Final = {ord(other): latin for latin, others in _DRAWN_LIKE.items() for other in others} | {
    first + place: letter for first in _ALPHABETS for place, letter in enumerate(ascii_uppercase)
}
_DASH_PUNCTUATION: Final = "Pd"
# Drawn as dashes although their category says symbol or other punctuation: minus, bullet of a list.
_DASHES: Final = frozenset("\u2212\u2043\u02d7")
# Each spells the ASCII character that many places below it (Unicode, section 23.9).
_TAGS: Final = {0xE0000 + char: char for char in range(0x20, 0x7F)}
# Drawn as nothing although their category says letter, mark or other symbol.
_INVISIBLE: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u2800\u3164\uffa0")
# Everything but visible ASCII and white space, colours and movements of a terminal (ECMA-48, 5.4) as a whole.
_UNUSUAL: Final = re.compile(r"(?P<terminal>(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~])|[^\t\n\v\f\r\x1c-\x1f -~]")
# What of `_UNUSUAL` is ASCII, as one class, which is searched several times faster.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")
_ESCAPE: Final = re.compile(
    r"(?P<percent>(?:%[0-9A-Fa-f]{2})+)"
    r"|(?P<entity>&(?:\#[0-9]{1,8}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});?)"
    r"|(?P<unicode>(?:\\u[0-9A-Fa-f]{4})+)"
    r"|\\(?:u\{(?P<braced>[0-9A-Fa-f]{1,6})\}|x(?P<hex>[0-9A-Fa-f]{2})|U(?P<wide>[0-9A-Fa-f]{8}))"
    r"|\\(?P<white>[nrtfv])"
    r"|\\(?P<quoted>[\"'/\\])"
)
# Format, control, half of a surrogate pair, private, unassigned.
_NOTHING: Final = frozenset({"Cf", "Cc", "Cs", "Co", "Cn"})
_HIGHEST: Final = 0x10FFFF
_SHAPES_KEPT: Final = 16_384


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a text.

    Attributes:
        folded: without case.
        cased: the same characters, one for one, with the case they had.
        starts, ends: for each of them the place in the text that it came from, in code points.
    """

    folded: str
    cased: str
    starts: Sequence[int]
    ends: Sequence[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Offset and length in the text of what stands from `start` up to `end` in the reading."""
        return self.starts[start], self.ends[end - 1] - self.starts[start]


Readings: TypeAlias = tuple[Reading, Reading, Reading, Reading, Reading]


def readings(text: str) -> Readings:
    """The text as it stands and decoded, each without its invisible characters and with spaces for them.

    The last one is decoded and shows what tag characters spell. Readings that do not differ are the same
    object, so most texts have one, five times.
    """
    if text.isascii() and not _CONTROL.search(text) and not _has_escape(text):
        places = range(len(text))
        only = Reading(text.lower(), text, places, range(1, len(text) + 1))
        return only, only, only, only, only
    source = _Source.of(text)
    without, spaced = as_it_stands = _both(source)
    decoded = source.decoded()
    plain, separate = as_it_stands if decoded is source else _both(decoded)
    shown = decoded.with_tags_shown()
    return without, spaced, plain, separate, plain if shown is decoded else _read(shown, "")


def _has_escape(text: str) -> bool:
    # The signs are looked for first, since most texts have none of them.
    return ("%" in text or "&" in text or "\\" in text) and _ESCAPE.search(text) is not None


def folded(text: str) -> str:
    """The first reading of a text, for names that are looked for."""
    return readings(text)[0].folded


def cased(text: str) -> str:
    """The first reading of a text with its case."""
    return readings(text)[0].cased


@dataclass(frozen=True, slots=True)
class _Source:
    """Characters with the places they came from."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    @classmethod
    def of(cls, text: str) -> _Source:
        return cls(text, range(len(text)), range(1, len(text) + 1))

    def decoded(self) -> _Source:
        """Without its escapes, or itself when it has none."""
        source = self
        for _ in range(ESCAPES_DEEP):
            after = source._decoded_once()
            if after is source:
                break
            source = after
        return source

    def with_tags_shown(self) -> _Source:
        """With the text that tag characters spell, decoded as well, or itself when it has none."""
        text = self.text.translate(_TAGS)
        return self if text == self.text else replace(self, text=text).decoded()

    def _decoded_once(self) -> _Source:
        parts: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        done = 0
        for match in _ESCAPE.finditer(self.text):
            meant = _meant(match)
            if meant == match.group():
                continue
            parts += (self.text[done : match.start()], meant)
            starts += self.starts[done : match.start()]
            ends += self.ends[done : match.start()]
            starts += [self.starts[match.start()]] * len(meant)
            ends += [self.ends[match.end() - 1]] * len(meant)
            done = match.end()
        if done == 0:
            return self
        parts.append(self.text[done:])
        starts += self.starts[done:]
        ends += self.ends[done:]
        return _Source("".join(parts), starts, ends)


def _meant(match: re.Match[str]) -> str:
    """What an escape stands for; the escape itself when it stands for nothing."""
    said = match.group()
    match match.lastgroup:
        case "percent":
            # What is no UTF-8 must not take the rest of the run with it.
            return bytes.fromhex(said.replace("%", "")).decode("utf-8", "replace")
        case "entity":
            return html.unescape(said)
        case "unicode":
            return bytes.fromhex(said.replace("\\u", "")).decode("utf-16-be", "surrogatepass")
        case "white":
            return " "
        case "quoted":
            return match["quoted"]
        case name:
            number = int(match[str(name)], 16)
            return chr(number) if number <= _HIGHEST else said


def _both(source: _Source) -> tuple[Reading, Reading]:
    without = _read(source, "")
    spaced = _read(source, " ")
    return (without, without) if without.folded == spaced.folded else (without, spaced)


def _read(source: _Source, invisible: str) -> Reading:
    """One reading, with this text in the place of every invisible character."""
    lower: list[str] = []
    kept: list[str] = []
    starts: list[int] = []
    ends: list[int] = []

    def take_plain(start: int, end: int) -> None:
        lower.append(source.text[start:end].lower())
        kept.append(source.text[start:end])
        starts.extend(source.starts[start:end])
        ends.extend(source.ends[start:end])

    def take_unusual(shapes: str, start: int, end: int) -> None:
        for shape in shapes:
            low = shape.casefold()
            lower.append(low)
            kept.append(shape * len(low))
            starts.extend([source.starts[start]] * len(low))
            ends.extend([source.ends[end - 1]] * len(low))

    done = 0
    for match in _UNUSUAL.finditer(source.text):
        take_plain(done, match.start())
        shapes = invisible if match["terminal"] else _shape(match.group(), invisible)
        take_unusual(shapes, *match.span())
        done = match.end()
    take_plain(done, len(source.text))
    return Reading("".join(lower), "".join(kept), starts, ends)


@lru_cache(_SHAPES_KEPT)
def _shape(char: str, invisible: str) -> str:
    """What a character looks like: nothing, a space, or one or more plain characters with their case."""
    category = unicodedata.category(char)
    if char in _DASHES or category == _DASH_PUNCTUATION:
        return "-"
    if char.isspace():
        return " "
    if char in _INVISIBLE or (category in _NOTHING and ord(char) not in _LOOK_ALIKES):
        return invisible
    # A combining mark by itself, of an accent written apart or a variation selector, is no break.
    parts = (part for part in unicodedata.normalize("NFKD", char) if unicodedata.category(part)[0] != "M")
    return "".join(parts).translate(_LOOK_ALIKES)
