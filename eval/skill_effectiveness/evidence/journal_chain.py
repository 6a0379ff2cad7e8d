"""Judging the rows of a journal, one after the other: a judgement without effects.

Source: evidence.md, section 7. A row is right when it can be read, has the members of its form, goes on with
the number of the row before and names its digest. Whatever is wrong becomes a finding at the row concerned,
and judging goes on behind it, so that one damage is told once.

A link between two rows does not say which of them was changed. When the links on both sides of a row are
broken, it is that row; when one is, the earlier row no longer has the bytes that the later one names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError, StrictCode, StrictError
from skill_effectiveness.evidence.journal_faults import Finding
from skill_effectiveness.evidence.journal_pin import Position
from skill_effectiveness.evidence.journal_rows import (
    KERNEL_BODIES,
    ORIGIN,
    JournalOpen,
    Row,
    RowForm,
    SegmentOpen,
    Tear,
    fits,
    read_row,
    row_digest,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from skill_effectiveness.evidence.journal_findings import Findings

_TORN: Final = frozenset(
    {
        StrictCode.EMPTY,
        StrictCode.TOO_LARGE,
        StrictCode.BOM,
        StrictCode.NOT_UTF8,
        StrictCode.SYNTAX,
        StrictCode.TRAILING_DATA,
    }
)
"""What a line may be after a crash that left parts of a write out. Other faults need a hand."""

_ANY: Final = 2**53
"""Beyond the number of any row."""


class NoFirstRowError(Exception):
    """The first row is not one, and nothing else says that this is a journal."""


@dataclass(frozen=True, slots=True)
class Tail:
    """A torn end: bytes behind the last good row that are no rows, or that row itself without its LF.

    Attributes:
        segment: number of the file.
        offset: where it begins.
        size: in bytes.
        lines: how many line feeds it holds.
    """

    segment: int
    offset: int
    size: int
    lines: int


class _Place(NamedTuple):
    """A row and where it stands."""

    seq: int
    segment: int
    offset: int


class Chain:
    """The rows seen so far.

    Args:
        form: who decides what a row holds.
        findings: where to put what is wrong.
        pinned: the acknowledged end; `None` without a pin that can be read.
        watched: numbers of rows whose end is wanted, in `ends`.
        on_row: called with every row that was accepted while nothing was wrong yet.
        on_open: called with the body of row 0 before the row counts.
        on_tear: called with the body of each row that acknowledges a torn tail.
    """

    def __init__(
        self,
        form: RowForm,
        findings: Findings,
        *,
        pinned: Position | None,
        watched: Iterable[int] = (),
        on_row: Callable[[Row], object] | None = None,
        on_open: Callable[[JournalOpen], object] | None = None,
        on_tear: Callable[[Tear], object] | None = None,
    ) -> None:
        self._form = form
        self._findings = findings
        self._pinned = pinned
        self._on_row = on_row
        self._on_open = on_open
        self._on_tear = on_tear
        self.ends: dict[int, Position | None] = dict.fromkeys(watched)
        self.opened: JournalOpen | None = None
        self.tail: Tail | None = None
        self.unended = False
        self.clean = True
        # The next row has a number from low to high and names head; None: its link cannot be judged.
        self._low = self._high = 0
        self._head: str | None = ORIGIN
        self._segment, self._offset = 1, 0
        self._is_last, self._at_start = False, True
        self._closed: str | None = None
        self._before = _Place(0, 1, 0)
        self._suspects: tuple[_Place, _Place] | None = None
        self._time = ""
        # The end of the last row accepted while all was clean, as plain values: an object for each row would
        # cost as much as judging it.
        self._good = (0, ORIGIN, 1, 0)
        self._tail_start: int | None = None
        self._tail_lines = 0

    @property
    def position(self) -> Position:
        """The end of the unbroken beginning."""
        return Position(*self._good)

    @property
    def count(self) -> int:
        """How many rows there are by their numbers."""
        return self._low

    @property
    def offset(self) -> int:
        """Where the next line begins in its file."""
        return self._offset

    def begin(self, segment: int, closed: str | None, *, is_last: bool) -> None:
        """Go on with a file.

        Args:
            segment: its number.
            closed: digest of the file before; `None` when that is not known.
            is_last: whether no other file follows.
        """
        self._segment, self._offset = segment, 0
        self._is_last, self._at_start, self._closed = is_last, True, closed

    def skip(self) -> None:
        """Go on behind a file that is missing, or at one that stands elsewhere."""
        self._high, self._head, self.clean = _ANY, None, False

    def line(self, line: bytes, size: int) -> None:
        """Judge the next complete line, without its LF.

        Args:
            line: its bytes; only the beginning when it is longer than a row may be.
            size: how long it is.

        Raises:
            NoFirstRowError, EnoughError: looking further tells nothing.
        """
        start = self._offset
        self._offset = start + size + 1
        if self._tail_start is not None:
            self._tail_lines += 1
            return
        try:
            row = read_row(line)
        except StrictError as error:
            if self._may_be_torn(error):
                self._tail_start, self._tail_lines = start, 1
            else:
                self._bad(start, f"The row cannot be read. {error.faults[0].sentence}")
            return
        if not fits(row, self._form):
            self._bad(start, "The row does not have the members that rows of this journal have.")
        elif self._form is RowForm.OWN or self._is_in_place(row, start):
            self._judge(row, row_digest(line), start)

    def end(self, rest: bytes, size: int) -> None:
        """End a file.

        Args:
            rest: what stands behind its last LF, or the beginning of that.
            size: how long that is.

        Raises:
            NoFirstRowError, EnoughError: as `line`.
        """
        if self._tail_start is None and size:
            if not self._is_last:
                self._bad(self._offset, "A row inside the journal does not end with a line feed.")
                return
            if self._is_pinned_row(rest):
                self.unended = True
                self.tail = Tail(self._segment, self._offset, size, 0)
                self.line(rest, size)
                return
            self._tail_start = self._offset
        if self._tail_start is not None:
            whole = self._offset + size - self._tail_start
            self.tail = Tail(self._segment, self._tail_start, whole, self._tail_lines)

    def finish(self) -> None:
        """End the journal: settle what was left open.

        Raises:
            EnoughError: as `line`.
        """
        if self._suspects is not None:
            earlier, later = self._suspects
            end = self.ends.get(later.seq)
            confirmed = self._pinned is not None and end is not None and end.head == self._pinned.head
            self._blame(earlier if confirmed else later)

    # Torn or damaged.

    def _may_be_torn(self, error: StrictError) -> bool:
        beyond = self._pinned is not None and self._low >= self._pinned.count
        return self._is_last and self.clean and beyond and error.code in _TORN

    def _is_pinned_row(self, rest: bytes) -> bool:
        """Whether an unterminated line is the last acknowledged row, which only lost its LF."""
        pinned = self._pinned
        return (
            pinned is not None
            and self.clean
            and (pinned.count, pinned.segment) == (self._low + 1, self._segment)
            and pinned.head == row_digest(rest)
        )

    # One row.

    def _judge(self, row: dict[str, Any], digest: str, start: int) -> None:
        """Judge number and link of a row."""
        seq = row["seq"]
        place = _Place(seq, self._segment, start)
        if not self._low <= seq <= self._high:
            self._gap(place)
        elif self._head is not None and row["prev"] != self._head:
            self._break_link(place)
        elif self._suspects is not None:
            self._blame(self._suspects[0])
        self._before = place
        self._low = self._high = seq + 1
        self._head = digest
        if self.clean:
            self._good = (seq + 1, digest, self._segment, self._offset)
            if self._on_row is not None:
                self._on_row(Row(seq, digest, row))
        if seq in self.ends:
            self.ends[seq] = Position(seq + 1, digest, self._segment, self._offset)

    def _bad(self, start: int, sentence: str) -> None:
        if self._pinned is None and self._high == 0:
            raise NoFirstRowError(sentence)
        seq = self._low if self._high == _ANY else self._high
        self._find(Finding.BAD_ROW, sentence, _Place(seq, self._segment, start))
        # Perhaps it took the place of a row, perhaps it was put between two.
        self._high = min(self._high + 1, _ANY)
        self._head, self._at_start = None, False

    def _gap(self, place: _Place) -> None:
        seq = min(place.seq, self._low)
        sentence = f"Row {self._low} was expected, but the row found is {place.seq}."
        self._find(Finding.SEQ_GAP, sentence, place._replace(seq=seq))

    def _break_link(self, place: _Place) -> None:
        self.clean = False
        if self._suspects is None:
            self._suspects = (self._before, place)
        else:
            self._blame(self._suspects[1])

    def _blame(self, place: _Place) -> None:
        """Say which row a broken link is about."""
        self._suspects = None
        sentence = "The row is not the one that its neighbours were chained to; it was changed."
        self._find(Finding.PREV_MISMATCH, sentence, place)

    def _find(self, finding: Finding, sentence: str, place: _Place) -> None:
        if self._suspects is not None:
            self._blame(self._suspects[0])
        self.clean = False
        seq, segment, offset = place
        self._findings.add(finding, sentence, segment=segment, seq=seq, offset=offset)

    # The kernel's own rows.

    def _is_in_place(self, row: dict[str, Any], start: int) -> bool:
        """Judge time and type of a row of the segmented form; `False` when it counts as a bad row."""
        seq, time = row["seq"], row["time"]
        if self._at_start or row["type"] in KERNEL_BODIES:
            at_start, self._at_start = self._at_start, False
            sentence = self._fault_of_kind(row, _Place(seq, self._segment, start), at_start=at_start)
            if sentence is not None:
                self._bad(start, sentence)
                return False
        if time < self._time:
            sentence = "The clock went back before this row was written."
            self._findings.warn(
                Finding.TIME_BACKWARDS, sentence, segment=self._segment, seq=seq, offset=start
            )
        self._time = time
        return True

    def _fault_of_kind(self, row: dict[str, Any], place: _Place, *, at_start: bool) -> str | None:
        """What makes the first row of a file, or a row of the kernel, a bad row; `None` for nothing."""
        kind = row["type"]
        if at_start and self._segment > 1:
            return self._fault_of_start(row, place)
        if kind not in KERNEL_BODIES:
            return "Row 0 does not open a journal." if place.seq == 0 else None
        if kind == "segment_open" or (kind == "journal_open") != (at_start and place.seq == 0):
            return "A row of this type cannot stand here."
        body = _body(row)
        if isinstance(body, JournalOpen):
            self.opened = body
            if self._on_open is not None:
                self._on_open(body)
        elif isinstance(body, Tear) and self._on_tear is not None:
            self._on_tear(body)
        return None if body is not None else "The body of the row is not what its type needs."

    def _fault_of_start(self, row: dict[str, Any], place: _Place) -> str | None:
        """Judge the first row of a later file."""
        kind = row["type"]
        if kind != "segment_open":
            # Where the first rows are missing, that is told by their numbers.
            if kind == "journal_open" or self._low <= place.seq <= self._high:
                self._misplaced(place)
            return None
        body = _body(row)
        if not isinstance(body, SegmentOpen):
            return "The body of the row is not what its type needs."
        if body.segment != self._segment:
            self._misplaced(place)
        elif self.clean and self._closed is not None and body.closed != self._closed:
            sentence = "The row names another digest than the file before it has."
            self._find(Finding.PREV_MISMATCH, sentence, place)
        return None

    def _misplaced(self, place: _Place) -> None:
        sentence = f"The file does not begin as segment {self._segment}; it was renamed or put there."
        self._find(Finding.SEGMENT_ORDER, sentence, place)
        self.skip()
        self._low = min(self._low, place.seq)


def _body(row: dict[str, Any]) -> object:
    """The body of a row of the kernel as its model; `None` when it does not fit."""
    try:
        return validate(KERNEL_BODIES[row["type"]], row["body"])
    except EvidenceError:
        return None
