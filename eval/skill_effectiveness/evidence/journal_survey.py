"""Surveying a journal: everything that reading it can tell, without writing.

Source: evidence.md, section 7. Verification reports a survey; opening settles what a survey found. So both
judge alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_chunks
from skill_effectiveness.evidence.faults import EvidenceError, FileError
from skill_effectiveness.evidence.journal_chain import Chain, NoFirstRowError, Tail
from skill_effectiveness.evidence.journal_faults import (
    Finding,
    JournalReport,
    JournalStatus,
    Unreadable,
)
from skill_effectiveness.evidence.journal_findings import EnoughError, Findings
from skill_effectiveness.evidence.journal_lines import LineFeed
from skill_effectiveness.evidence.journal_pin import START, FilePin, Position, SegmentedPin, read_copy, read_pin
from skill_effectiveness.evidence.journal_rows import (
    LARGEST_GROUP,
    LARGEST_GROUP_BYTES,
    ORIGIN,
    RowForm,
    Tear,
)
from skill_effectiveness.evidence.journal_snapshot import Snapshot, segment_chunks, take_snapshot
from skill_effectiveness.evidence.journal_torn import owed_tears

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from skill_effectiveness.evidence.files import Folder
    from skill_effectiveness.evidence.journal_layout import Layout
    from skill_effectiveness.evidence.journal_rows import JournalOpen, Row
    from skill_effectiveness.evidence.root import PrivateRoot


@dataclass(frozen=True, slots=True)
class Survey:
    """What there is, and what opening has to do about it.

    Attributes:
        report: for people and machines.
        fresh: whether nothing was begun, so that a journal may begin here.
        position: the end of the rows.
        pin: as read; `None` when there is none that can be read.
        pin_data: its bytes.
        copy: bytes of the copy in the `state` root; `None` when there is none.
        opened: body of row 0, in the segmented form.
        tail: a torn tail behind the rows.
        unended: whether the last row lost its LF.
        owed: torn tails that were set aside and are not acknowledged yet.
        segments: number of the last file, which may be empty.
        rows_sound: whether whatever is wrong is about the pin only.
    """

    report: JournalReport
    fresh: bool
    position: Position
    pin: SegmentedPin | FilePin | None
    pin_data: bytes | None
    copy: bytes | None
    opened: JournalOpen | None
    tail: Tail | None
    unended: bool
    owed: tuple[Tear, ...]
    segments: int
    rows_sound: bool
