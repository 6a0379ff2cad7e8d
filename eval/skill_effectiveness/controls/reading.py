"""What a reader sees of a text: signs that do not show are not there, and letters that look alike are one.

A selector may be a person or a program, and both take a word in wide letters, or with a foreign letter or an
invisible sign in it, for the word. The table of letters is a choice out of Unicode Technical Standard 39
(confusables): those that stand for a letter of a reserved word.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

# Unicode, Default_Ignorable_Code_Point, as far as it is not of the category Cf.
_FILLERS: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0100-\U000e01ef]"
)
_TAGS: Final = range(0xE0020, 0xE007F)
_TAG_OFFSET: Final = 0xE0000
# A text has few different signs, each many times.
_REMEMBERED: Final = 4_096
_LOOK_ALIKE: Final = {
    **dict.fromkeys("\u0430\u03b1", "a"),
    "\u0441": "c",
    "\u0501": "d",
    **dict.fromkeys("\u0435\u03b5", "e"),
    **dict.fromkeys("\u04bb\u043d\u03b7", "h"),
    **dict.fromkeys("\u0456\u03b9\u0131", "i"),
    **dict.fromkeys("\u043a\u03ba", "k"),
    "\u04cf": "l",
    **dict.fromkeys("\u043c\u03bc", "m"),
    **dict.fromkeys("\u043e\u03bf\u0585", "o"),
    **dict.fromkeys("\u0440\u03c1", "p"),
    "\u0455": "s",
    **dict.fromkeys("\u0442\u03c4", "t"),
    **dict.fromkeys("\u057d\u03c5", "u"),
    **dict.fromkeys("\u0475\u03bd", "v"),
    **dict.fromkeys("\u0445\u03c7", "x"),
    **dict.fromkeys("\u0443\u03b3", "y"),
    **dict.fromkeys("\u2010\u2012\u2013\u2212", "-"),
}


@lru_cache(maxsize=_REMEMBERED)
def shows(sign: str) -> bool:
    """Whether a reader sees anything of a sign, if only a gap."""
    return unicodedata.category(sign) != "Cf" and _FILLERS.match(sign) is None


def readings(line: str) -> Iterator[tuple[str, list[int]]]:
    """A line as it may be read, in small plain letters, and for each of them its place in the line.

    Twice where signs do not show: as gaps, tags as the letters that they hide, and as nothing.
    """
    if line.isascii():
        yield line.lower(), list(range(len(line)))
        return
    yield _read(line, hidden=True)
    if not all(map(shows, line)):
        yield _read(line, hidden=False)


def reads_alike(one: str, other: str) -> bool:
    """Whether two texts differ in nothing but gaps, line ends and signs that do not show."""
    return as_read(one) == as_read(other)


def as_read(text: str) -> str:
    """A text without signs that do not show, and with one blank for each gap."""
    shown = text if text.isascii() else unicodedata.normalize("NFC", "".join(filter(shows, text)))
    return " ".join(shown.split())


def _read(line: str, *, hidden: bool) -> tuple[str, list[int]]:
    # Folding can lengthen, so each letter remembers where it came from.
    parts, places = [], []
    for place, sign in enumerate(line):
        if ord(sign) in _TAGS:
            folded = chr(ord(sign) - _TAG_OFFSET).lower() if hidden else ""
        elif shows(sign):
            folded = _plain(sign)
        else:
            folded = sign if hidden else ""
        parts.append(folded)
        places += [place] * len(folded)
    return "".join(parts), places


@lru_cache(maxsize=_REMEMBERED)
def _plain(sign: str) -> str:
    whole = unicodedata.normalize("NFKC", sign).casefold()
    return "".join(_LOOK_ALIKE.get(letter, letter) for letter in whole)
