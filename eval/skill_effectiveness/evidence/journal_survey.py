"""Surveying a journal: everything that reading it can tell, without writing.

Source: evidence.md, section 7. Verification reports a survey; opening settles what a survey found. So both
judge alike.
"""

from __future__ import annotations

from collections import deque
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
from skill_effectiveness.evidence.journal_judgement import (
    Sides,
    group_max,
    judge_copy,
    judge_missing_pin,
    judge_pin,
)
from skill_effectiveness.evidence.journal_lines import LineFeed
from skill_effectiveness.evidence.journal_pin import (
    FilePin,
    Position,
    SegmentedPin,
    read_copy,
    read_pin,
)
from skill_effectiveness.evidence.journal_rows import (
    LARGEST_GROUP_BYTES,
    RowForm,
    Tear,
)
from skill_effectiveness.evidence.journal_snapshot import Snapshot, segment_chunks, take_snapshot
from skill_effectiveness.evidence.journal_torn import TornTails

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
        tail: a torn tail.
        unended: whether that is the last acknowledged row, which only lost its LF.
        owed: torn tails that were set aside and are not acknowledged yet.
        segments: number of the last file, which may be empty.
        rows_sound: whether it has rows and whatever is wrong is about the pin only.
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


def survey(
    folder: Folder,
    layout: Layout,
    state: PrivateRoot | None,
    on_row: Callable[[Row], object] | None = None,
) -> Survey:
    """Survey a journal; whatever lies there becomes a report, never an error.

    Args:
        folder: where its parts lie; need not be private.
        layout: their names.
        state: the root with the copies of pins; `None` when there is none to ask.
        on_row: called with each row up to the first that is wrong, in order.
    """
    surveyor = _Surveyor(folder, layout, state, on_row)
    try:
        surveyor.look()
    except EnoughError:
        return surveyor.result()
    except NoFirstRowError as error:
        return surveyor.unreadable(Unreadable.NO_FIRST_ROW, f"This is no journal. {error}")
    except FileError as error:
        return surveyor.unreadable(Unreadable.NOT_READABLE, error.faults[0].sentence)
    return surveyor.result()


class _Surveyor:
    """One survey on its way."""

    def __init__(
        self,
        folder: Folder,
        layout: Layout,
        state: PrivateRoot | None,
        on_row: Callable[[Row], object] | None,
    ) -> None:
        self._folder = folder
        self._layout = layout
        self._state = state
        self._on_row = on_row
        self._findings = Findings()
        self._pin_findings = Findings()
        self._snapshot = Snapshot(None, None, {}, (), ())
        self._pin: SegmentedPin | FilePin | None = None
        self._copy: SegmentedPin | FilePin | None = None
        self._copy_data: bytes | None = None
        self._chain = Chain(layout.form, self._findings, pinned=None)
        self._torn = TornTails(folder, layout, (), self._findings)
        self._owed: tuple[Tear, ...] = ()

    def look(self) -> None:
        """Read and judge everything.

        Raises:
            FileError, NoFirstRowError: this is no journal, or cannot be read.
            EnoughError: too much is wrong to go on.
        """
        self._snapshot = take_snapshot(self._folder, self._layout, self._read_pin)
        known = [pin for pin in (self._pin, self._copy) if pin is not None]
        self._torn = TornTails(self._folder, self._layout, self._snapshot.torn, self._findings)
        self._chain = Chain(
            self._layout.form,
            self._findings,
            pinned=None if self._pin is None else self._pin.position,
            watched=[pin.count - 1 for pin in known],
            on_row=self._on_row,
            on_open=self._on_open,
            on_tear=self._torn.acknowledge,
        )
        for name in self._snapshot.foreign:
            sentence = f"{self._folder.where(ascii(name))} is nothing that a journal has there."
            self._findings.add(Finding.FOREIGN_FILE, sentence)
        self._read_rows()
        self._chain.finish()
        self._judge_tail()
        for tear in self._pin.tears if isinstance(self._pin, FilePin) else ():
            self._torn.acknowledge(tear)
        self._owed = self._torn.owed()
        self._judge_pins()

    # Reading.

    def _read_pin(self, data: bytes | None, fault: str | None) -> None:
        """Read the pin and its copy, from which the chain will begin."""
        self._pin_findings = Findings()
        self._pin = self._copy = self._copy_data = None
        if data is not None:
            try:
                self._pin = read_pin(data, self._layout.form)
            except EvidenceError as error:
                fault = error.faults[0].sentence
        if fault is not None:
            self._pin_findings.add(Finding.PIN_DAMAGED, f"The pin cannot be read. {fault}")
        if self._pin is not None:
            self._read_copy(self._pin.journal_id)

    def _on_open(self, opened: JournalOpen) -> None:
        """Look for a copy of a pin that is not there itself."""
        if self._pin is None:
            self._read_copy(opened.journal_id)
            if self._copy is not None:
                self._chain.ends[self._copy.count - 1] = None

    def _read_copy(self, journal_id: str) -> None:
        if self._state is None:
            return
        try:
            data = read_copy(self._state, journal_id)
            copy = None if data is None else read_pin(data, self._layout.form)
        except EvidenceError as error:
            told = f"The copy of the pin in the state folder cannot be used. {error.faults[0].sentence}"
            self._pin_findings.add(Finding.PIN_DAMAGED, told)
            return
        if copy is not None and copy.journal_id != journal_id:
            told = "The copy of the pin in the state folder belongs to another journal."
            self._pin_findings.add(Finding.PIN_DAMAGED, told)
            return
        self._copy, self._copy_data = copy, data

    def _read_rows(self) -> None:
        """Send every row through the chain."""
        sizes, chain = self._snapshot.sizes, self._chain
        closed: str | None = None
        expected = 1
        for number, size in sorted(sizes.items()):
            is_last = number == self._segments
            if size == 0 and not is_last:
                # Told as missing when the next one is met.
                continue
            for missing in range(expected, number):
                sentence = f"Segment {missing} is missing."
                self._findings.add(Finding.SEGMENT_MISSING, sentence, segment=missing)
                chain.skip()
                closed = None
            chain.begin(number, closed, is_last=is_last)
            feed = LineFeed(chain.line)
            fed = self._fed(number, size, feed)
            if is_last:
                # Nothing names the digest of a file that is not closed.
                deque(fed, maxlen=0)
            else:
                closed = digest_chunks(fed)
            chain.end(*feed.rest())
            expected = number + 1

    def _fed(self, number: int, size: int, feed: LineFeed) -> Iterator[bytes]:
        # Rows and digest of a file come out of one pass: what is hashed goes by the chain on its way.
        for chunk in segment_chunks(self._folder, self._layout, number, size):
            feed.feed(chunk)
            if feed.rest()[1] > LARGEST_GROUP_BYTES:
                self._give_up(number)
            yield chunk

    def _give_up(self, number: int) -> None:
        """Stop at a line that is longer than anything that one append writes."""
        if not self._begun:
            raise NoFirstRowError("What stands first is longer than anything that is written at once.")
        sentence = "There is no line feed in more bytes than one append writes; nothing behind them was read."
        self._findings.add(
            Finding.BAD_ROW, sentence, segment=number, seq=self._chain.count, offset=self._chain.offset
        )
        raise EnoughError

    @property
    def _segments(self) -> int:
        """The number of the last file."""
        return max(self._snapshot.sizes, default=0)

    # Judging.

    @property
    def _unpinned(self) -> int:
        return self._chain.count - (0 if self._pin is None else self._pin.count)

    def _judge_tail(self) -> None:
        """Demand that a torn tail is one that our own append can have left."""
        tail, chain = self._chain.tail, self._chain
        if tail is None:
            return
        lines = tail.lines + max(self._unpinned, 0)
        if tail.size > LARGEST_GROUP_BYTES or lines > group_max(chain, self._pin):
            sentence = "More bytes than one append writes are no rows."
            self._findings.add(
                Finding.BAD_ROW, sentence, segment=tail.segment, seq=chain.count, offset=tail.offset
            )

    def _judge_pins(self) -> None:
        chain, found = self._chain, self._pin_findings
        if self._pin is not None:
            judge_pin(chain, self._pin, self._copy, self._segments, Sides(self._findings, found))
        elif not self._snapshot.has_pin:
            judge_missing_pin(chain, self._layout.form, found)
        # Without a pin the copy alone knows which rows were acknowledged.
        agreed = self._pin is None or not (found or self._findings)
        if self._copy is not None and chain.clean and agreed:
            judge_copy(chain, self._pin, self._copy, found)

    # Telling.

    @property
    def _begun(self) -> bool:
        """Whether anything here says that it is a journal."""
        return self._pin is not None or self._chain.count > 0

    def result(self) -> Survey:
        """The survey of what was looked at."""
        if not self._begun:
            return self._not_begun()
        return self._survey(self._status(), None, fresh=False)

    def unreadable(self, why: Unreadable, sentence: str) -> Survey:
        """The survey of what is no journal."""
        return self._survey(JournalStatus.UNREADABLE, why, sentence=sentence, fresh=False)

    def _not_begun(self) -> Survey:
        single = self._layout.form is RowForm.OWN
        # The pin of a single file is published before its first row, so bytes without a pin are not ours.
        if self._snapshot.has_pin or (single and self._chain.tail is not None):
            return self.unreadable(
                Unreadable.NO_FIRST_ROW, "This is no journal: it holds neither a row nor a pin."
            )
        sentence = "No journal was begun here: there is neither a first row nor a pin."
        return self._survey(
            JournalStatus.UNREADABLE, Unreadable.NOT_BEGUN, sentence=sentence, fresh=not self._findings
        )

    def _status(self) -> JournalStatus:
        chain = self._chain
        if self._findings or self._pin_findings:
            return JournalStatus.DAMAGED
        begins_again = self._segments > chain.position.segment
        if chain.tail or chain.unended or self._owed or self._unpinned or self._pin is None or begins_again:
            return JournalStatus.RECOVERABLE
        return JournalStatus.INTACT_WITH_TEARS if self._tears else JournalStatus.INTACT

    @property
    def _tears(self) -> int:
        return len(self._pin.tears) if isinstance(self._pin, FilePin) else self._torn.acknowledged

    def _survey(
        self, status: JournalStatus, why: Unreadable | None, *, fresh: bool, sentence: str | None = None
    ) -> Survey:
        chain, end, tail = self._chain, self._chain.position, self._chain.tail
        identity = self._pin or chain.opened
        single = self._layout.form is RowForm.OWN and self._begun
        report = JournalReport(
            status=status,
            journal_id=None if identity is None else identity.journal_id,
            count=end.count,
            head=end.head,
            segments=len(self._snapshot.sizes),
            tears=self._tears,
            unpinned=max(self._unpinned, 0) if status is not JournalStatus.UNREADABLE else 0,
            torn_bytes=0 if tail is None else tail.size,
            findings=(*self._findings, *self._pin_findings),
            warnings=tuple(self._findings.warnings),
            why=why,
            sentence=sentence or _SENTENCES[status],
        )
        return Survey(
            report=report,
            fresh=fresh,
            position=end,
            pin=self._pin,
            pin_data=self._snapshot.pin,
            copy=self._copy_data,
            opened=chain.opened,
            tail=tail,
            unended=chain.unended,
            owed=self._owed,
            segments=self._segments,
            rows_sound=not self._findings and (chain.opened is not None or single),
        )


_SENTENCES: Final = {
    JournalStatus.INTACT: "Every row is there, unchanged, and the pin agrees.",
    JournalStatus.INTACT_WITH_TEARS: (
        "Every row is there, unchanged, and the pin agrees; torn tails of earlier crashes are kept beside it."
    ),
    JournalStatus.RECOVERABLE: "A crash left its end open; the next start that appends to it settles that.",
    JournalStatus.DAMAGED: "It was changed or lost something, see the findings; nothing is appended to it.",
}
