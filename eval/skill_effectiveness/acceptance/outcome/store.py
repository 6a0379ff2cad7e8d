"""The private store of claims: one journal, one lock for every command that writes, the policy beside them.

Source: outcome.md, sections 6, 11 and 14. It lies in `outcome/` of the user's private store, outside every
checkout. Readers take no lock and write nothing at all; a writer holds the lock from before it reads what its
decision rests on until its rows are durable.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.outcome.claims import Ledger, LedgerError
from skill_effectiveness.acceptance.outcome.errors import OutcomeCode, OutcomeError
from skill_effectiveness.acceptance.outcome.records import NO_POLICY, PolicyDocument
from skill_effectiveness.acceptance.outcome.sibling_records import replaced_receipts
from skill_effectiveness.acceptance.outside import lies_in_checkout
from skill_effectiveness.evidence.documents import parse
from skill_effectiveness.evidence.faults import EvidenceError, FileCode, JournalCode, LockCode, RootCode
from skill_effectiveness.evidence.journal import Entry, Journal
from skill_effectiveness.evidence.journal_faults import JournalError, JournalStatus, Unreadable
from skill_effectiveness.evidence.journal_verify import verify_segments
from skill_effectiveness.evidence.lock import Lock
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.strict import Profile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pydantic import BaseModel

    from skill_effectiveness.evidence.journal_faults import JournalReport
    from skill_effectiveness.evidence.journal_rows import Row
    from skill_effectiveness.evidence.surroundings import Surroundings

FOLDER: Final = "outcome"
PURPOSE: Final = "accepted-outcome"
JOURNAL: Final = "journal"
LOCK: Final = "lock"
POLICY: Final = "policy.json"
LOCK_SECONDS: Final = 10.0
_POLICY_BYTES: Final = 1_048_576
_UNSAFE_FILE: Final = frozenset(
    {
        FileCode.FILE_SYMLINK,
        FileCode.NOT_REGULAR,
        FileCode.FILE_MODE,
        FileCode.FILE_OWNER,
        FileCode.FILE_LINKS,
    }
)
_FULL: Final = frozenset({FileCode.NO_SPACE, FileCode.IO_ERROR})


class Desk:
    """The open store of a writing command, under its lock; made by `writing` only.

    Attributes:
        root: the whole store, whose other folders hold the records of sibling tools.
        ledger: what all rows add up to, the own ones included.
    """

    def __init__(self, root: PrivateRoot, folder: PrivateRoot, journal: Journal, failed: OutcomeCode) -> None:
        self.root = root
        self.ledger = Ledger()
        self._folder = folder
        self._journal = journal
        self._failed = failed
        self._read = 0
        self._catch_up()

    def append(self, *rows: tuple[str, BaseModel]) -> None:
        """Write records; they are durable when this returns.

        Raises:
            OutcomeError: `claim_not_recorded` or `record_not_stored`, as the command said.
        """
        entries = [Entry(kind, record.model_dump(mode="json")) for kind, record in rows]
        try:
            self._journal.append(entries, wait=LOCK_SECONDS)
        except EvidenceError as error:
            sentence = f"Nothing was stored ({error.code}). {error.faults[0].sentence}"
            if error.code is JournalCode.ROW_REFUSED:
                sentence = "Nothing was stored: it is more than one row may hold; shorten the criteria."
            raise OutcomeError(self._failed, sentence) from error
        self._catch_up()

    def policy(self) -> PolicyDocument:
        """The policy as it is now.

        Raises:
            OutcomeError: `policy_unreadable`, `policy_unsafe`.
        """
        return read_policy(self._folder)

    def replaced(self) -> frozenset[str]:
        """The receipts that their tools have put others in the place of; see `replaced_receipts`."""
        return replaced_receipts(self.root)

    def _catch_up(self) -> None:
        try:
            for row in self._journal.rows(self._read):
                _take(self.ledger, row)
                self._read = row.seq + 1
        except EvidenceError as error:
            raise _refused(error) from error


@contextmanager
def writing(
    path: Path,
    around: Surroundings,
    checkout: Path | None,
    action: str,
    failed: OutcomeCode = OutcomeCode.RECORD_NOT_STORED,
) -> Iterator[Desk]:
    """The store, open for writing and held against every other writer; made where it is missing.

    Args:
        path: the private store, absolute.
        around: the surroundings.
        checkout: the source checkout of this program.
        action: what is being done, for whoever waits.
        failed: what it is called when a row cannot be written.

    Raises:
        OutcomeError: `store_unsafe`, `store_locked`, `journal_broken`; `failed` where the disk is full.
    """
    with ExitStack() as stack:
        try:
            _demand_outside(path, around)
            root = stack.enter_context(
                PrivateRoot.create(path, RootKind.STATE, around=around, checkout=checkout)
            )
            folder = stack.enter_context(root.child(FOLDER, create=True))
            stack.enter_context(Lock(folder, LOCK).hold(LOCK_SECONDS, action))
            journal = stack.enter_context(
                Journal.open(folder, purpose=PURPOSE, state=root, name=JOURNAL, wait=LOCK_SECONDS)
            )
        except EvidenceError as error:
            if _is_full(error):
                sentence = f"{error.faults[0].sentence} Nothing was stored."
                raise OutcomeError(failed, sentence) from error
            raise _refused(error) from error
        yield Desk(root, folder, journal, failed)


class Reading:
    """What a reading command finds: the ledger and the policy, or nothing yet.

    Attributes:
        ledger: what all rows add up to.
        policy: as it was when they were read.
        replaced: the receipts that their tools have put others in the place of; read when asked, because
            whoever only shows a claim needs no sibling's journal.
    """

    def __init__(
        self, ledger: Ledger, policy: PolicyDocument, replaced: Callable[[], frozenset[str]] = frozenset
    ) -> None:
        self.ledger: Final = ledger
        self.policy: Final = policy
        self.replaced: Final = replaced


def reading(path: Path, around: Surroundings, checkout: Path | None) -> Reading:
    """Read the store without lock and without changing anything; a missing one is empty.

    Raises:
        OutcomeError: `store_unsafe`, `journal_broken`, `policy_unreadable`, `policy_unsafe`.
    """
    try:
        _demand_outside(path, around)
        root = PrivateRoot.open(path, RootKind.STATE, around=around, checkout=checkout)
    except EvidenceError as error:
        if error.code is RootCode.ROOT_MISSING:
            return Reading(Ledger(), NO_POLICY)
        raise _refused(error) from error
    with root:
        try:
            folder = root.child(FOLDER)
        except EvidenceError as error:
            if error.code is RootCode.ROOT_MISSING:
                return Reading(Ledger(), NO_POLICY)
            raise _refused(error) from error
        with folder:
            replaced = partial(_replaced, path, around, checkout)
            return Reading(_ledger(root, folder), read_policy(folder), replaced)


def _replaced(path: Path, around: Surroundings, checkout: Path | None) -> frozenset[str]:
    try:
        root = PrivateRoot.open(path, RootKind.STATE, around=around, checkout=checkout)
    except EvidenceError as error:
        raise _refused(error) from error
    with root:
        return replaced_receipts(root)


def _ledger(root: PrivateRoot, folder: PrivateRoot) -> Ledger:
    """The ledger of an existing store."""
    ledger = Ledger()
    rows: list[Row] = []
    report = verify_segments(root.around.fs, folder.path / JOURNAL, state=root, on_row=rows.append)
    if not report.sound:
        if report.status is JournalStatus.UNREADABLE and report.why in {
            Unreadable.MISSING,
            Unreadable.NOT_BEGUN,
        }:
            return ledger
        raise _broken(report)
    for row in rows:
        _take(ledger, row)
    return ledger


def read_policy(folder: PrivateRoot) -> PolicyDocument:
    """The policy in an open `outcome/`; an absent file is a policy that allows nothing.

    Raises:
        OutcomeError: `policy_unreadable`, `policy_unsafe`; never read as "off".
    """
    try:
        if not folder.exists(POLICY):
            return NO_POLICY
        data = folder.read(POLICY, _POLICY_BYTES)
    except EvidenceError as error:
        unsafe = error.code in _UNSAFE_FILE
        code = OutcomeCode.POLICY_UNSAFE if unsafe else OutcomeCode.POLICY_UNREADABLE
        sentence = f"{error.faults[0].sentence} Nothing is decided until the policy can be trusted."
        raise OutcomeError(code, sentence) from error
    try:
        return parse(PolicyDocument, data, Profile.WIRE)
    except EvidenceError as error:
        fault = error.faults[0]
        sentence = f"{fault.sentence} Nothing is decided; correct {POLICY}."
        raise OutcomeError(OutcomeCode.POLICY_UNREADABLE, sentence, f" at {fault.where or '/'}") from error


def _take(ledger: Ledger, row: Row) -> None:
    try:
        ledger.take(row)
    except (EvidenceError, LedgerError) as error:
        sentence = "A row is none that this program writes. Keep the store as evidence and name a new one."
        raise OutcomeError(OutcomeCode.JOURNAL_BROKEN, sentence, f" at row {row.seq}") from error


def _demand_outside(path: Path, around: Surroundings) -> None:
    if lies_in_checkout(path, around):
        sentence = "The store lies in a checkout; name a private folder outside with --store."
        raise OutcomeError(OutcomeCode.STORE_UNSAFE, sentence)


def _is_full(error: EvidenceError) -> bool:
    """Whether the disk took nothing any more, be it for a row or for the lock."""
    cause = error.__cause__ if error.code is LockCode.LOCK_UNAVAILABLE else error
    return isinstance(cause, EvidenceError) and cause.code in _FULL


def _refused(error: EvidenceError) -> OutcomeError:
    if isinstance(error, JournalError) and error.report is not None and error.report.findings:
        return _broken(error.report)
    sentence = error.faults[0].sentence
    if error.code is LockCode.LOCK_BUSY:
        return OutcomeError(OutcomeCode.STORE_LOCKED, f"{sentence} Nothing was written.")
    return OutcomeError(OutcomeCode.STORE_UNSAFE, f"{sentence} Name another private folder with --store.")


def _broken(report: JournalReport) -> OutcomeError:
    seq = next((found.seq for found in report.findings if found.seq is not None), report.count)
    what = report.findings[0].sentence if report.findings else report.sentence
    sentence = f"{what} Nothing was repaired; keep the store as evidence and name a new one."
    return OutcomeError(OutcomeCode.JOURNAL_BROKEN, sentence, f" at row {seq}")
