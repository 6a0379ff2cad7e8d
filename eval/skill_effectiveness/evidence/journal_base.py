"""What both forms of an open journal share: opening under the lock, settling, appending, reading.

Source: evidence.md, section 7. Opening surveys everything and refuses a damaged journal; what a crash left is
settled in an order in which another crash leaves nothing new: bytes are set aside before they are cut off,
rows are durable before the pin names them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.journal_faults import JournalCode, JournalStatus, refusal
from skill_effectiveness.evidence.journal_lines import LineFeed
from skill_effectiveness.evidence.journal_pin import START, Position
from skill_effectiveness.evidence.journal_rows import (
    LARGEST_GROUP_BYTES,
    ORIGIN,
    Repin,
    Row,
    fits,
    read_row,
    row_digest,
    write_row,
)
from skill_effectiveness.evidence.journal_snapshot import segment_chunks
from skill_effectiveness.evidence.journal_store import Store
from skill_effectiveness.evidence.journal_survey import survey
from skill_effectiveness.evidence.lock import Lock, LockLevel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import TracebackType

    from skill_effectiveness.evidence.journal_faults import JournalError, JournalReport
    from skill_effectiveness.evidence.journal_layout import Layout
    from skill_effectiveness.evidence.journal_rows import Tear
    from skill_effectiveness.evidence.journal_survey import Survey
    from skill_effectiveness.evidence.root import PrivateRoot

ID_BYTES: Final = 16
_ANY_SIZE: Final = 2**63


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """That rows are durable: they survive a kill and a power loss.

    Attributes:
        first: number of the first of them.
        last: number of the last of them.
        head: digest of the last of them.
    """

    first: int
    last: int
    head: str


@dataclass(frozen=True, slots=True)
class Opening:
    """How a journal is to be opened.

    Attributes:
        create: begin one where there is none.
        wait: seconds to wait for the lock.
        group_max: how many rows one append to a new one may hold.
        purpose: what it is for; `None` when any will do.
        repin_reason: why its pin is to be made anew; `None` for the normal way.
    """

    create: bool
    wait: float
    group_max: int = 64
    purpose: str | None = None
    repin_reason: str | None = None


class OpenJournal(ABC):
    """A journal that rows can be appended to; made by `open` of one of the two forms.

    Holds descriptors until `close` or the end of `with`.
    """

    def __init__(
        self, home: PrivateRoot, folder: PrivateRoot, name: str, layout: Layout, state: PrivateRoot | None
    ) -> None:
        self._around = home.around
        self._folder = folder
        self._owns_folder = folder is not home
        self._layout = layout
        self._state = state
        self._where = home.folder.where(name)
        self._lock = Lock(home, f".{name}.lock", LockLevel.JOURNAL)
        self._store = Store(folder, layout, self._where)
        self._end = START

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files; closing again does nothing."""
        self._store.close()
        if self._owns_folder:
            self._folder.close()

    @property
    def count(self) -> int:
        """How many rows are acknowledged, as far as this object knows."""
        return self._end.count

    @property
    def head(self) -> str:
        """Digest of the last of them; `ORIGIN` when there is none."""
        return self._end.head

    @property
    @abstractmethod
    def journal_id(self) -> str:
        """32 hex digits, made once."""

    @property
    @abstractmethod
    def group_max(self) -> int:
        """How many rows one append may hold."""

    def verify(self) -> JournalReport:
        """Verify it from its first byte, as `journal_verify` does; takes no lock and writes nothing."""
        return survey(self._folder.folder, self._layout, self._state).report

    def rows(self, since: int = 0) -> Iterator[Row]:
        """The rows that are acknowledged now, read from the files and held against their chain.

        Args:
            since: number of the first row wanted.

        Raises:
            JournalError: `journal_damaged`: a row is not what it was.
            FileError: it could not be read.
        """
        end, expected, head = self._end, 0, ORIGIN
        for line in self._lines(end):
            row = self._read(line)
            if row is None or row["seq"] != expected or row["prev"] != head:
                break
            expected, head = expected + 1, row_digest(line)
            if expected > since:
                yield Row(expected - 1, head, row)
        if (expected, head) != (end.count, end.head):
            sentence = f"Row {expected} of {self._where} is not what was acknowledged; verify it."
            raise refusal(JournalCode.JOURNAL_DAMAGED, self._where, sentence)

    def _lines(self, end: Position) -> Iterator[bytes]:
        lines: list[bytes] = []
        feed = LineFeed(lambda line, _size: lines.append(line))
        for segment in range(1, end.segment + 1):
            size = end.offset if segment == end.segment else _ANY_SIZE
            for chunk in segment_chunks(self._folder.folder, self._layout, segment, size):
                feed.feed(chunk)
                yield from lines
                lines.clear()

    def _read(self, line: bytes) -> dict[str, Any] | None:
        try:
            row = read_row(line)
        except EvidenceError:
            return None
        return row if fits(row, self._layout.form) else None

    # Opening.

    def _start(self, opening: Opening) -> None:
        """Open the journal, settling what a crash left, or begin it; closes everything on an error."""
        with self._closed_on_error():
            self._demand_there(create=opening.create)
            if opening.repin_reason is not None:
                self._demand_journal()
            with self._lock.hold(opening.wait, f"open {self._where}"):
                found = self._surveyed()
                repin = None
                if opening.repin_reason is not None:
                    self._demand_repinnable(found)
                    repin = self._repin_of(found, opening.repin_reason)
                elif not found.fresh and not found.report.sound:
                    raise self._refused(found.report)
                if found.fresh and not opening.create:
                    raise missing(self._where)
                self._adopt(found, opening)
                self._store.belongs_to(self.journal_id)
                self._settle(found, repin)

    @abstractmethod
    def _adopt(self, found: Survey, opening: Opening) -> None:
        """Take over what the survey tells about the journal, or think up what a new one needs."""

    @contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _demand_there(self, *, create: bool) -> None:
        """Demand that there is anything to open, before a lock file is made beside it."""
        names = self._folder.names()
        if not create and not any(self._is_trusted(name) for name in names):
            raise missing(self._where)

    def _demand_journal(self) -> None:
        """Demand that it is one, before a lock file is made beside something that merely has its name.

        Raises:
            JournalError: `repin_refused`.
        """
        found = survey(self._folder.folder, self._layout, None)
        if found.report.status is JournalStatus.UNREADABLE:
            self._demand_repinnable(found)

    def _surveyed(self) -> Survey:
        """Survey the journal, under the lock, once everything that it trusts is private.

        Raises:
            RootError, FileError: it is not, or cannot be read.
        """
        if self._state is not None:
            self._store.keep_copies(self._state)
        self._store.sweep()
        names = self._folder.names()
        self._store.demand_private([name for name in names if self._is_trusted(name)])
        found = survey(self._folder.folder, self._layout, self._state)
        self._store.remember(found.pin_data)
        return found

    def _is_trusted(self, name: str) -> bool:
        return name == self._layout.pin or self._layout.segment_number(name) is not None

    def _refused(self, report: JournalReport) -> JournalError:
        """The error for a journal that is not opened."""
        if report.status is JournalStatus.UNREADABLE:
            return refusal(JournalCode.NOT_A_JOURNAL, self._where, report.sentence, report=report)
        told = [found.sentence for found in report.findings]
        return refusal(JournalCode.JOURNAL_DAMAGED, self._where, *told, report=report)

    def _settle(self, found: Survey, repin: Repin | None = None) -> None:
        """Settle what a crash left: set aside, cut, attach, begin, pin, acknowledge.

        Args:
            found: the survey.
            repin: why the pin is made anew; `None` when it is right.
        """
        owed = {tear.file_name: tear for tear in found.owed}
        end, tail = found.position, found.tail
        if tail is not None:
            tear = self._store.set_aside(end.count - found.unended, tail)
            owed[tear.file_name] = tear
            if not found.unended:
                self._store.cut(tail.segment, end.offset if tail.segment == end.segment else 0)
        self._end = end
        self._store.attach(end.segment, end.offset, unended=found.unended)
        self._pin_settled(found, repin)
        self._acknowledge(list(owed.values()))

    @abstractmethod
    def _pin_settled(self, found: Survey, repin: Repin | None) -> None:
        """Begin what is not begun, and have the pin and its copy name every row."""

    @abstractmethod
    def _acknowledge(self, tears: Sequence[Tear]) -> None:
        """Note torn tails that were set aside."""

    @abstractmethod
    def _pin_at(self, end: Position) -> bytes:
        """The bytes of the pin for an end of the rows."""

    def _demand_repinnable(self, found: Survey) -> None:
        """Demand that the pin is wrong and nothing else.

        Raises:
            JournalError: `repin_refused`.
        """
        if found.report.sound:
            told = f"The pin of {self._where} is right; there is nothing to make anew."
        elif not found.rows_sound:
            told = (
                f"More than the pin of {self._where} is wrong, which no pin repairs. {found.report.sentence}"
            )
        else:
            return
        raise refusal(JournalCode.REPIN_REFUSED, self._where, told, report=found.report)

    def _repin_of(self, found: Survey, reason: str) -> Repin:
        """What is kept about a pin that is made anew.

        Raises:
            JournalError: `reason_needed`: there is none, or it is no text that can be kept.
        """
        former = None if found.pin is None else {"count": found.pin.count, "head": found.pin.head}
        if not reason.strip():
            told = "A pin is made anew only with a reason; say why."
            raise refusal(JournalCode.REASON_NEEDED, self._where, told)
        codes = [str(code) for code in dict.fromkeys(wrong.finding for wrong in found.report.findings)]
        try:
            return validate(Repin, {"findings": codes, "former": former, "reason": reason})
        except EvidenceError as error:
            told = f"The reason cannot be kept: {error.faults[0].sentence} Use up to 10,000 characters."
            raise refusal(JournalCode.REASON_NEEDED, self._where, told) from error

    def _put_pins(self, found: Survey) -> None:
        """Have pin and copy name the end, writing only what does not."""
        data = self._pin_at(self._end)
        if found.pin_data != data:
            self._store.put_pin(data)
        elif found.copy != data:
            self._store.put_copy(data)

    # Appending.

    def _commit(self, rows: Iterable[dict[str, Any]]) -> Acknowledged:
        """Append rows under the lock, which the caller holds.

        Raises:
            JournalError: `row_refused`, `group_size`, `pin_full`.
            FileError, RootError: writing failed.
        """
        first = self._end.count
        lines, head = self._chained(rows)
        self._end = self._store.commit(self._end, lines, head, self._pin_at)
        return Acknowledged(first, self._end.count - 1, self._end.head)

    def _demand_group(self, rows: Sequence[object]) -> None:
        if not 1 <= len(rows) <= self.group_max:
            sentence = f"One append to {self._where} holds 1 to {self.group_max} rows, not {len(rows)}."
            raise refusal(JournalCode.GROUP_SIZE, self._where, sentence)

    def _chained(self, rows: Iterable[dict[str, Any]]) -> tuple[list[bytes], str]:
        """The lines of rows that go on from the end, and the digest of the last.

        Raises:
            JournalError: `row_refused`, `group_size`.
        """
        lines: list[bytes] = []
        seq, prev = self._end.count, self._end.head
        for members in rows:
            line = self._line({**members, "prev": prev, "seq": seq})
            lines.append(line)
            seq, prev = seq + 1, row_digest(line)
        if sum(map(len, lines)) + len(lines) > LARGEST_GROUP_BYTES:
            sentence = f"One append to {self._where} holds at most {LARGEST_GROUP_BYTES} bytes; make it two."
            raise refusal(JournalCode.GROUP_SIZE, self._where, sentence)
        return lines, prev

    def _line(self, row: dict[str, Any]) -> bytes:
        try:
            return write_row(row)
        except EvidenceError as error:
            told = error.faults[0]
            sentence = f"A row for {self._where} cannot be written: at {told.where or '/'}: {told.sentence}"
            raise refusal(JournalCode.ROW_REFUSED, self._where, sentence) from error


def missing(where: str) -> JournalError:
    """The error for a journal that is not there and must not be begun."""
    return refusal(JournalCode.JOURNAL_MISSING, where, f"There is no journal {where}.")
