"""Which names a private folder may hold: a judgement without effects.

Source: evidence.md, section 4, rows "names" and "leftovers".
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.faults import Fault, FileCode, FileError

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME_BYTES: Final = 255
TOKEN_BYTES: Final = 8
# A file is written under its temporary name first, which is this much longer: two dots, sixteen digits,
# ".tmp".
_ROOM: Final = len(b"..0123456789abcdef.tmp")
_OUTSIDE_ID: Final = re.compile(r"[A-Za-z0-9._-]+")
# The few names of a root are written over and over; what is wrong with one never changes.
_REMEMBERED: Final = 1_024
_TEMPORARY: Final = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{16}\.tmp", re.DOTALL)


def check_name(name: str, prefix: str = "") -> None:
    """Demand one segment of 1 to 255 bytes of UTF-8 without control characters.

    Args:
        name: the segment.
        prefix: what stands before it in a root-relative name.

    Raises:
        FileError: `name_form`.
    """
    if (reason := _fault_of_form(name)) is not None:
        # The name itself may hold anything, so people are shown its escaped form.
        shown = prefix + ascii(name)
        raise FileError(Fault(FileCode.NAME_FORM, shown, f"{shown} is no name for a file here: {reason}."))


@lru_cache(maxsize=_REMEMBERED)
def _fault_of_form(name: str) -> str | None:
    """What is wrong with a segment; `None` when nothing is."""
    if name in {"", ".", ".."}:
        return "it must name something inside the folder"
    if "/" in name:
        return "it must be one segment without a slash"
    if not name.isprintable() and any(unicodedata.category(character) == "Cc" for character in name):
        return "it holds a control character"
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "it is not UTF-8"
    if size > NAME_BYTES:
        return f"it is longer than {NAME_BYTES} bytes"
    return None


def check_written_name(name: str, prefix: str = "") -> None:
    """Demand a name that can be written atomically: short enough, and not of the form of a temporary.

    Raises:
        FileError: `name_form`.
    """
    check_name(name, prefix)
    if (reason := _fault_of_writing(name)) is not None:
        raise FileError(
            Fault(FileCode.NAME_FORM, prefix + name, f"{prefix}{name} cannot be written: {reason}.")
        )


@lru_cache(maxsize=_REMEMBERED)
def _fault_of_writing(name: str) -> str | None:
    """Why a segment cannot be written atomically; `None` when it can."""
    if len(name.encode()) > NAME_BYTES - _ROOM:
        return f"a written name may have at most {NAME_BYTES - _ROOM} bytes"
    if temporary_of(name) is not None:
        return "names of this form are swept away as leftovers"
    return None


def check_outside_id(text: str) -> None:
    """Demand an id from outside that is safe as a name: `^[A-Za-z0-9._-]+$`, neither `.` nor `..`.

    Raises:
        FileError: `name_form`.
    """
    check_name(text)
    if _OUTSIDE_ID.fullmatch(text) is None:
        sentence = f"The id {text!a} may hold only letters A to Z, digits, dot, underscore and hyphen."
        raise FileError(Fault(FileCode.NAME_FORM, ascii(text), sentence))


def check_collision(name: str, existing: Iterable[str], prefix: str = "") -> None:
    """Demand that no other name equals this one after case folding: some file systems hold only one of them.

    Raises:
        FileError: `name_collision`.
    """
    folded = name.casefold()
    for other in existing:
        if other != name and other.casefold() == folded:
            sentence = (
                f"{prefix}{name} differs from the existing {prefix}{other} only in case; choose another name."
            )
            raise FileError(Fault(FileCode.NAME_COLLISION, prefix + name, sentence))


def temporary_name(name: str, token: bytes) -> str:
    """The name under which a file is written before it has its own.

    Args:
        name: the final name.
        token: eight random bytes.
    """
    return f".{name}.{token.hex()}.tmp"


def temporary_of(name: str) -> str | None:
    """The final name that a temporary was meant for; `None` for any other name."""
    match = _TEMPORARY.fullmatch(name)
    return None if match is None else match["name"]
