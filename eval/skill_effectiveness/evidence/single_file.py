"""The single-file form of the journal, for a contract that fixes the name of a file and the rows in it.

The normal way: `with FileJournal.open(root, "events.ndjson", state=state) as journal:`, then
`journal.append([{…}])` with the contract's own members; `seq` and `prev` are added. Chain, tears and
acknowledgement are those of `journal`; what the other form keeps in rows of its own stands in the pin here
(`<name>.head.json`), which is published with count 0 before the first row. Source: evidence.md, section 7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.journal_base import ID_BYTES, Acknowledged, Opening, OpenJournal
from skill_effectiveness.evidence.journal_faults import JournalCode, refusal
from skill_effectiveness.evidence.journal_layout import Layout, is_part
from skill_effectiveness.evidence.journal_pin import CONTRACT, FilePin, PinLine
from skill_effectiveness.evidence.journal_rows import ORIGIN
from skill_effectiveness.evidence.lock import DEFAULT_WAIT
from skill_effectiveness.evidence.names import check_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.evidence.journal_faults import JournalReport
    from skill_effectiveness.evidence.journal_pin import Position
    from skill_effectiveness.evidence.journal_rows import Repin, Tear
    from skill_effectiveness.evidence.journal_survey import Survey
    from skill_effectiveness.evidence.root import PrivateRoot

__all__ = ["Acknowledged", "FileJournal"]

GROUP_MAX = 64


class FileJournal(OpenJournal):
    """An open journal of the single-file form; made by `open` only.

    Shared between processes as `journal.Journal` is.
    """

    def __init__(self, root: PrivateRoot, name: str, state: PrivateRoot | None, opening: Opening) -> None:
        check_name(name, root.folder.prefix)
        where = root.folder.where(name)
        if is_part(name):
            # Before a lock file and a pin are put among the parts of another journal, where they are foreign.
            told = f"{where} has the name of one file of a journal that is a folder; name the folder."
            raise refusal(JournalCode.NOT_A_JOURNAL, where, told)
        super().__init__(root, root, name, Layout.single(name), state)
        self._known: FilePin | None = None
        self._pin_line: PinLine | None = None
        self._start(opening)

    @classmethod
    def open(
        cls,
        root: PrivateRoot,
        name: str,
        *,
        state: PrivateRoot | None,
        group_max: int = GROUP_MAX,
        create: bool = True,
        wait: float = DEFAULT_WAIT,
    ) -> Self:
        """Open a journal, settling what a crash left, or begin one.

        Args:
            root: the folder that holds the file, its pin, its torn tails and anything else; stays the
                caller's and open as long as the journal.
            name: of the file.
            state: the root with the copies of pins; likewise. `None` gives up noticing that journal and pin
                were both replaced by older ones.
            group_max: how many rows one append may hold, 1 to 1,024; counts when it is begun.
            create: begin one where there is none.
            wait: seconds to wait for the lock.

        Raises:
            JournalError: `journal_missing`, `not_a_journal`, `journal_damaged` (with the report),
                `row_refused` (`group_max`), `pin_full`: thousands of torn tails were found already.
            LockError: the lock was not obtained.
            RootError, FileError: something is not private, or reading or writing failed.
        """
        return cls(root, name, state, Opening(create, wait, group_max))

    @classmethod
    def repin(
        cls,
        root: PrivateRoot,
        name: str,
        *,
        reason: str,
        state: PrivateRoot | None,
        group_max: int = GROUP_MAX,
        wait: float = DEFAULT_WAIT,
    ) -> JournalReport:
        """Make a pin anew that leads, lags, is missing or cannot be read; the new pin keeps the reason.

        A pin that is missing or cannot be read takes the journal's id along: it gets a new one.

        Args:
            root: the folder that holds the file.
            name: of the file.
            reason: in the words of a person who knows why.
            state: as for `open`.
            group_max: how many rows one append may hold, if the old pin does not say.
            wait: seconds to wait for the lock.

        Returns:
            The report afterwards.

        Raises:
            JournalError: `reason_needed`; `repin_refused`: nothing is wrong with the pin, or something is
                wrong with the rows, which no pin repairs; `journal_missing`; `row_refused` (`group_max`);
                `not_a_journal`: the name is that of a part of one.
            LockError, RootError, FileError: as `open`.
        """
        opening = Opening(create=False, wait=wait, group_max=group_max, repin_reason=reason)
        with cls(root, name, state, opening) as journal:
            return journal.verify()

    @property
    def journal_id(self) -> str:
        """32 hex digits, made once."""
        return self._pin.journal_id

    @property
    def group_max(self) -> int:
        """How many rows one append may hold."""
        return self._pin.group_max

    def append(self, rows: Sequence[dict[str, Any]], *, wait: float = DEFAULT_WAIT) -> Acknowledged:
        """Append a group of rows, which are acknowledged together.

        Of a group that was not acknowledged, a crash may leave the first rows: read them before repeating it.

        Args:
            rows: 1 to `group_max` objects without `seq` and `prev`, which are added.
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
        if any(not _OURS.isdisjoint(row) for row in rows):
            told = f"The members seq and prev of a row for {self._where} are added here; leave them out."
            raise refusal(JournalCode.ROW_REFUSED, self._where, told)
        with self._lock.hold(wait, f"append to {self._where}"):
            self._store.demand_as_remembered(self._end)
            return self._commit(rows)

    # Settling.

    def _adopt(self, found: Survey, opening: Opening) -> None:
        if isinstance(found.pin, FilePin):
            self._know(found.pin)
            return
        first = {
            "artifact_contract": CONTRACT,
            "count": 0,
            "group_max": opening.group_max,
            "head": ORIGIN,
            "journal_id": self._around.entropy(ID_BYTES).hex(),
            "offset": 0,
            "schema_version": 1,
            "tears": [],
        }
        try:
            self._know(validate(FilePin, first))
        except EvidenceError as error:
            told = f"No journal can be begun like this: {error.faults[0].where}: {error.faults[0].sentence}"
            raise refusal(JournalCode.ROW_REFUSED, self._where, told) from error

    def _pin_settled(self, found: Survey, repin: Repin | None) -> None:
        if repin is not None:
            self._know(self._pin.model_copy(update={"repins": (*(self._pin.repins or ()), repin)}))
        self._put_pins(found)

    def _acknowledge(self, tears: Sequence[Tear]) -> None:
        # The same bytes torn off at the same place once more are the same file, which is told already.
        fresh = [tear for tear in tears if tear not in self._pin.tears]
        if fresh:
            self._know(self._pin.model_copy(update={"tears": (*self._pin.tears, *fresh)}))
            self._store.put_pin(self._pin_at(self._end))

    def _pin_at(self, end: Position) -> bytes:
        if self._pin_line is None:
            raise ValueError("this journal was not opened")
        return self._pin_line.at(end)

    def _know(self, pin: FilePin) -> None:
        """Take over what the pin says apart from the end of the rows."""
        self._known, self._pin_line = pin, PinLine(pin)

    @property
    def _pin(self) -> FilePin:
        if self._known is None:
            raise ValueError("this journal was not opened")
        return self._known


_OURS = frozenset({"seq", "prev"})
