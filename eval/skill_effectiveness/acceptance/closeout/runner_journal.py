"""The runner's own history, in the private store outside every checkout.

Source: closeout.md, sections 7 (trust) and 10, step 5. One journal for all repositories of a user: a row says
what was started and which bytes were stored; nothing in it is a decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

from skill_effectiveness.acceptance.closeout.errors import CloseoutCode, CloseoutError
from skill_effectiveness.acceptance.outside import lies_in_checkout
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.journal import Entry, Journal
from skill_effectiveness.evidence.journal_faults import JournalCode, JournalError
from skill_effectiveness.evidence.root import PrivateRoot, RootKind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

    from skill_effectiveness.evidence.surroundings import Surroundings

FOLDER: Final = "closeout"
PURPOSE: Final = "closeout"
STARTED: Final = "command_started"
COMMAND: Final = "command_recorded"
REVIEW: Final = "review_recorded"
ADDED: Final = "evidence_added"
DECIDED: Final = "decision_recorded"
_RECORDS: Final = frozenset({COMMAND, REVIEW, ADDED})
_TRIES: Final = 50


class RunnerJournal:
    """The open journal; made by `open` only."""

    def __init__(self, store: PrivateRoot, folder: PrivateRoot) -> None:
        self._store = store
        self._folder = folder
        self._journal = Journal.open(folder, purpose=PURPOSE, state=store)

    @classmethod
    def open(cls, path: Path, around: Surroundings, checkout: Path | None) -> Self:
        """Open the store and its journal, making both where they are missing.

        Args:
            path: the store, absolute.
            around: the surroundings.
            checkout: the checkout that is being decided about.

        Raises:
            CloseoutError: `store_unsafe`, `journal_broken`.
        """
        try:
            if lies_in_checkout(path, around):
                raise CloseoutError(
                    CloseoutCode.STORE_UNSAFE,
                    CloseoutCode.STORE_UNSAFE.value,
                    "The store lies in a checkout; name a private folder outside with --store.",
                )
            store = PrivateRoot.create(path, RootKind.STATE, around=around, checkout=checkout)
        except EvidenceError as error:
            raise _unsafe(error) from error
        try:
            folder = store.child(FOLDER, create=True)
        except EvidenceError as error:
            store.close()
            raise _unsafe(error) from error
        try:
            return cls(store, folder)
        except EvidenceError as error:
            folder.close()
            store.close()
            raise _refused(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._journal.close()
        self._folder.close()
        self._store.close()

    def note(self, *rows: Entry) -> None:
        """Append rows; they are durable when this returns.

        Raises:
            CloseoutError: `journal_broken`, `store_unsafe`.
        """
        for left in reversed(range(_TRIES)):
            try:
                self._journal.append(rows)
            except JournalError as error:
                # Another command of this user appended since; what these rows mean does not depend on it.
                if str(error.code) != JournalCode.JOURNAL_CHANGED.value or not left:
                    raise _refused(error) from error
                self._reopen()
            except EvidenceError as error:
                raise _refused(error) from error
            else:
                return

    def record_digests(self) -> frozenset[str]:
        """The digests of the bytes of every record that was stored by this user's runner.

        Raises:
            CloseoutError: `journal_broken`, `store_unsafe`.
        """
        try:
            return frozenset(
                str(row.body.get("recordDigest")) for row in self._journal.rows() if row.type in _RECORDS
            )
        except EvidenceError as error:
            raise _refused(error) from error

    def last_decision(self, about: Mapping[str, object]) -> str | None:
        """The digest of the newest decision about a candidate; `None` before the first.

        Args:
            about: members of its row that say which candidate it is about, and under what.

        Raises:
            CloseoutError: `journal_broken`, `store_unsafe`.
        """
        newest = None
        try:
            for row in self._journal.rows():
                if row.type == DECIDED and all(row.body.get(name) == value for name, value in about.items()):
                    newest = str(row.body.get("decisionDigest"))
        except EvidenceError as error:
            raise _refused(error) from error
        return newest

    def _reopen(self) -> None:
        self._journal.close()
        try:
            self._journal = Journal.open(self._folder, purpose=PURPOSE, state=self._store)
        except EvidenceError as error:
            raise _refused(error) from error


def _unsafe(error: EvidenceError) -> CloseoutError:
    return CloseoutError(CloseoutCode.STORE_UNSAFE, CloseoutCode.STORE_UNSAFE.value, str(error))


def _refused(error: EvidenceError) -> CloseoutError:
    report = error.report if isinstance(error, JournalError) else None
    if report is None or not report.findings:
        return _unsafe(error)
    seq = next((found.seq for found in report.findings if found.seq is not None), report.count)
    return CloseoutError(
        CloseoutCode.JOURNAL_BROKEN,
        f"{CloseoutCode.JOURNAL_BROKEN.value} at row {seq}",
        "Keep the store as evidence and name a new one with --store.",
    )
