"""The journal: an append-only history in segments, in which nothing is lost, changed or cut unnoticed.

The normal way: `with Journal.open(root, purpose="study", state=state) as journal:`, then
`journal.append([Entry("slot_started", {…})])`, which returns once the rows survive a power loss, and
`journal.rows()` to read them again. Source: evidence.md, section 7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.journal_base import ID_BYTES, Acknowledged, Opening, OpenJournal, missing
from skill_effectiveness.evidence.journal_faults import JournalCode, refusal
from skill_effectiveness.evidence.journal_layout import SEGMENT_LIMIT, SEGMENTED
from skill_effectiveness.evidence.journal_pin import CONTRACT, PinLine, Position, SegmentedPin
from skill_effectiveness.evidence.journal_rows import (
    KERNEL_BODIES,
    Entry,
    JournalOpen,
    Repin,
    Row,
    SegmentOpen,
    Tear,
    is_type,
    row_time,
)
from skill_effectiveness.evidence.lock import DEFAULT_WAIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import BaseModel

    from skill_effectiveness.evidence.journal_faults import JournalReport
    from skill_effectiveness.evidence.journal_survey import Survey
    from skill_effectiveness.evidence.root import PrivateRoot

__all__ = ["Acknowledged", "Entry", "Journal", "Row"]

NAME: Final = "journal"
GROUP_MAX: Final = 64


class Journal(OpenJournal):
    """An open journal of the segmented form; made by `open` only.

    Several processes may have the same journal open. Each append takes the lock and is refused when somebody
    else appended since (`journal_changed`): what a row means depends on the rows before it.
    """

    def __init__(
        self, root: PrivateRoot, name: str, state: PrivateRoot | None, limit: int, opening: Opening
    ) -> None:
        if not opening.create and not root.exists(name):
            raise missing(root.folder.where(name))
        folder = root.child(name, create=opening.create)
        super().__init__(root, folder, name, SEGMENTED, state)
        self._limit = limit
        self._about: JournalOpen | None = None
        self._pin_line: PinLine | None = None
        self._start(opening)

    @classmethod
    def open(
        cls,
        root: PrivateRoot,
        *,
        purpose: str,
        state: PrivateRoot | None,
        name: str = NAME,
        group_max: int = GROUP_MAX,
        segment_limit: int = SEGMENT_LIMIT,
        create: bool = True,
        wait: float = DEFAULT_WAIT,
    ) -> Self:
        """Open a journal, settling what a crash left, or begin one.

        Args:
            root: where its folder lies; stays the caller's.
            purpose: what it is for; an existing one must be for the same.
            state: the root with the copies of pins; stays the caller's and open as long as the journal.
                `None` gives up noticing that journal and pin were both replaced by older ones.
            name: of its folder.
            group_max: how many rows one append may hold, 1 to 1,024; counts when it is begun.
            segment_limit: bytes; a file that is larger is closed.
            create: begin one where there is none.
            wait: seconds to wait for the lock.

        Raises:
            JournalError: `journal_missing`, `not_a_journal`, `journal_damaged` (with the report),
                `purpose_differs`, `row_refused` (purpose or `group_max`).
            LockError: the lock was not obtained.
            RootError, FileError: something is not private, or reading or writing failed.
        """
        return cls(root, name, state, segment_limit, Opening(create, wait, group_max, purpose))

    @classmethod
    def repin(
        cls,
        root: PrivateRoot,
        *,
        reason: str,
        state: PrivateRoot | None,
        name: str = NAME,
        wait: float = DEFAULT_WAIT,
    ) -> JournalReport:
        """Make a pin anew that leads, lags, is missing or cannot be read; a row keeps the reason.

        For a person who knows why: whatever was cut off or rolled back stays lost, and the row says so for
        ever.

        Args:
            root: where the journal's folder lies.
            reason: in that person's words.
            state: as for `open`.
            name: of the journal's folder.
            wait: seconds to wait for the lock.

        Returns:
            The report afterwards.

        Raises:
            JournalError: `reason_needed`; `repin_refused`: nothing is wrong with the pin, or something is
                wrong with the rows, which no pin repairs; `journal_missing`.
            LockError, RootError, FileError: as `open`.
        """
        opening = Opening(create=False, wait=wait, repin_reason=reason)
        with cls(root, name, state, SEGMENT_LIMIT, opening) as journal:
            return journal.verify()

    @property
    def journal_id(self) -> str:
        """32 hex digits, made once."""
        return self._begun.journal_id

    @property
    def group_max(self) -> int:
        """How many rows one append may hold."""
        return self._begun.group_max

    @property
    def purpose(self) -> str:
        """What the journal is for."""
        return self._begun.purpose

    def append(self, rows: Sequence[Entry], *, wait: float = DEFAULT_WAIT) -> Acknowledged:
        """Append a group of rows, which are acknowledged together.

        Of a group that was not acknowledged, a crash may leave the first rows: read them before repeating it.

        Args:
            rows: 1 to `group_max`.
            wait: seconds to wait for the lock.

        Returns:
            Proof that they are durable and pinned.

        Raises:
            JournalError: `group_size`, `row_refused`, `journal_changed`, `journal_dead`.
            LockError: the lock was not obtained.
            RootError, FileError: writing failed. The rows are not acknowledged; unless the object is dead
                then, nothing of them stays and the same call may be repeated.
        """
        self._demand_group(rows)
        time = row_time(self._around.now())
        members = [self._members(entry, time) for entry in rows]
        with self._lock.hold(wait, f"append to {self._where}"):
            self._store.demand_as_remembered(self._end)
            self._rotate()
            return self._commit(members)

    def _members(self, entry: Entry, time: str) -> dict[str, Any]:
        if not is_type(entry.type) or entry.type in KERNEL_BODIES:
            told = (
                f"{entry.type!a} cannot be the type of a row here: it is no word of 1 to 64 letters, or ours."
            )
            raise refusal(JournalCode.ROW_REFUSED, self._where, told)
        if type(entry.body) is not dict:
            told = f"The body of a row for {self._where} is an object, not {type(entry.body).__name__}."
            raise refusal(JournalCode.ROW_REFUSED, self._where, told)
        return {"body": entry.body, "time": time, "type": entry.type}

    def _rotate(self) -> None:
        """Close the file when it is large, and begin the next one."""
        end = self._end
        if end.offset > self._limit:
            self._store.attach(end.segment + 1, 0)
        if self._store.segment > end.segment:
            closed = self._store.segment_digest(end.segment, end.offset)
            self._write("segment_open", SegmentOpen(closed=closed, segment=self._store.segment))

    def _write(self, kind: str, *bodies: BaseModel) -> None:
        """Append rows of the kernel."""
        time = row_time(self._around.now())
        rows = [{"body": body.model_dump(mode="json"), "time": time, "type": kind} for body in bodies]
        self._commit(rows)

    @property
    def _begun(self) -> JournalOpen:
        if self._about is None:
            raise ValueError("this journal was not opened")
        return self._about

    # Settling.

    def _adopt(self, found: Survey, opening: Opening) -> None:
        self._about = found.opened or self._new(opening)
        if opening.purpose not in {None, self._about.purpose}:
            told = f"{self._where} is for {self._about.purpose!a}, not for {opening.purpose!a}; name another."
            raise refusal(JournalCode.PURPOSE_DIFFERS, self._where, told)

    def _new(self, opening: Opening) -> JournalOpen:
        """The body of row 0 of a journal that begins now."""
        body = {
            "group_max": opening.group_max,
            "journal_id": self._around.entropy(ID_BYTES).hex(),
            "purpose": opening.purpose,
        }
        try:
            return validate(JournalOpen, body)
        except EvidenceError as error:
            told = f"No journal can be begun like this: {error.faults[0].where}: {error.faults[0].sentence}"
            raise refusal(JournalCode.ROW_REFUSED, self._where, told) from error

    def _pin_settled(self, found: Survey, repin: Repin | None) -> None:
        if repin is not None:
            self._write("repin", repin)
        elif self._end.count == 0:
            self._write("journal_open", self._begun)
        else:
            self._put_pins(found)
        if found.segments > self._end.segment:
            # A crash left the next file without a row.
            self._store.attach(found.segments, 0)
            self._rotate()

    def _acknowledge(self, tears: Sequence[Tear]) -> None:
        for start in range(0, len(tears), self.group_max):
            self._write("tear", *tears[start : start + self.group_max])

    def _pin_at(self, end: Position) -> bytes:
        if self._pin_line is None:
            self._pin_line = PinLine(
                SegmentedPin(
                    schema_version=1,
                    artifact_contract=CONTRACT,
                    journal_id=self.journal_id,
                    count=end.count,
                    head=end.head,
                    offset=end.offset,
                    segment=end.segment,
                )
            )
        return self._pin_line.at(end)
