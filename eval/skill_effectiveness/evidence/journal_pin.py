"""The pin of a journal: how many rows were acknowledged, and the digest of the last one.

Source: evidence.md, section 7. Rows first, pin second: the pin may lag behind the rows, never lead. A copy in
the user's `state` root betrays that journal and pin were both replaced by an older pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from skill_effectiveness.evidence.canonical import dump, dump_line
from skill_effectiveness.evidence.documents import Canonical, One, RuleBroken, parse
from skill_effectiveness.evidence.journal_rows import (
    ORIGIN,
    DigestText,
    GroupMax,
    JournalId,
    Number,
    Repin,
    RowForm,
    Tear,
)
from skill_effectiveness.evidence.strict import LARGEST_INTEGER, Profile

if TYPE_CHECKING:
    from skill_effectiveness.evidence.root import PrivateRoot

CONTRACT: Final = "skill-effectiveness-journal-head-v1"
COPIES: Final = "pins"
PIN_LIMIT: Final = 262_144
"""Bytes of a pin that are read: enough for two thousand tears, and little enough that even a hostile one,
made of nothing but values that do not fit, is told off in a small part of the memory that verifying may take.
"""


@dataclass(frozen=True, slots=True)
class Position:
    """The end of the rows.

    Attributes:
        count: how many.
        head: digest of the last one; `ORIGIN` when there is none.
        segment: number of the file in which they end.
        offset: where in it, in bytes.
    """

    count: int
    head: str
    segment: int
    offset: int


START: Final = Position(0, ORIGIN, 1, 0)


class Pin(BaseModel):
    """What both forms of a pin say.

    Attributes:
        journal_id: 32 hex digits.
        count: acknowledged rows.
        head: digest of the last one; 64 zeros when there is none.
        offset: end of that row in its file, in bytes.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-journal-head-v1"]
    journal_id: JournalId
    count: Number
    head: DigestText
    offset: Number

    @property
    def position(self) -> Position:
        """The end of the acknowledged rows."""
        return Position(self.count, self.head, 1, self.offset)

    @model_validator(mode="after")
    def _nothing_is_nowhere(self) -> Self:
        if len({self.count == 0, self.head == ORIGIN, self.offset == 0}) > 1:
            raise RuleBroken("A pin without rows names none, and one with rows names the last.")
        return self

    def members(self) -> dict[str, object]:
        """The pin as plain JSON."""
        members = self.model_dump(mode="json")
        return {name: value for name, value in members.items() if value is not None}

    def data(self) -> bytes:
        """The bytes of the file: one canonical line."""
        return dump_line(self.members())


class SegmentedPin(Pin):
    """The pin of the segmented form.

    Attributes:
        segment: number of the file with the last acknowledged row.
    """

    count: Annotated[int, Field(ge=1, le=LARGEST_INTEGER)]
    segment: Annotated[int, Field(ge=1)]

    @property
    def position(self) -> Position:
        """The end of the acknowledged rows."""
        return Position(self.count, self.head, self.segment, self.offset)


class FilePin(Pin):
    """The pin of the single-file form, which also keeps what the other form keeps in rows.

    Attributes:
        group_max: rows that one append may hold.
        tears: acknowledged torn tails, in the order they were found.
        repins: how the pin was made anew, oldest first; absent when it never was.
    """

    group_max: GroupMax
    tears: tuple[Tear, ...]
    repins: tuple[Repin, ...] | None = None


class PinLine:
    """The bytes of one journal's pin for any end of its rows: what does not move is encoded once.

    Args:
        pin: of any end.
    """

    def __init__(self, pin: Pin) -> None:
        # In the canonical form the members stand by name, and each is encoded by itself.
        parts = [
            dump(name) + b":" + (_MOVING.get(name) or dump(value).replace(b"%", b"%%"))
            for name, value in sorted(pin.members().items())
        ]
        self._form = b"{%b}\n" % b",".join(parts)

    def at(self, end: Position) -> bytes:
        """The bytes of the pin for an end: what `Pin.data` gives of a pin that names it."""
        return self._form % {
            b"count": end.count,
            b"head": end.head.encode(),
            b"offset": end.offset,
            b"segment": end.segment,
        }


_MOVING: Final = {
    "count": b"%(count)d",
    "head": b'"%(head)b"',
    "offset": b"%(offset)d",
    "segment": b"%(segment)d",
}


def read_pin(data: bytes, form: RowForm) -> SegmentedPin | FilePin:
    """Read the bytes of a pin.

    Raises:
        StrictError, DocumentError: it is not what this program writes.
    """
    model: type[SegmentedPin | FilePin] = SegmentedPin if form is RowForm.KERNEL else FilePin
    return parse(model, data, Profile.WIRE, canonical=Canonical.LINE)


def read_copy(state: PrivateRoot, journal_id: str) -> bytes | None:
    """The copy of a pin in the `state` root; `None` when there is none.

    Raises:
        RootError, FileError: what is there cannot be trusted or read.
    """
    if not state.exists(COPIES):
        return None
    with state.child(COPIES) as folder:
        name = copy_name(journal_id)
        return folder.read(name, PIN_LIMIT) if folder.exists(name) else None


def copy_name(journal_id: str) -> str:
    """The name of a copy in its folder."""
    return f"{journal_id}.json"
