"""What every command that reads or stores evidence has open: the evidence directory and the runner's journal.

Source: closeout.md, sections 7 and 10.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from skill_effectiveness.acceptance.closeout.errors import CloseoutCode, CloseoutError
from skill_effectiveness.acceptance.closeout.evidence_root import EvidenceRoot
from skill_effectiveness.acceptance.closeout.layout import Place
from skill_effectiveness.acceptance.closeout.records import Program
from skill_effectiveness.acceptance.closeout.runner_journal import RunnerJournal
from skill_effectiveness.acceptance.closeout.words import RUNNER, Trust
from skill_effectiveness.evidence.faults import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.acceptance.closeout.evaluation import StoredRecord
    from skill_effectiveness.acceptance.closeout.site import Request, Site, Situation


@contextmanager
def open_desk(site: Site, request: Request, situation: Situation) -> Iterator[Desk]:
    """The open evidence directory and journal of a situation.

    Raises:
        CloseoutError: `store_unsafe`, `journal_broken`, `evidence_unreadable`.
    """
    try:
        store = site.store_path
    except EvidenceError as error:
        raise CloseoutError(CloseoutCode.STORE_UNSAFE, CloseoutCode.STORE_UNSAFE.value, str(error)) from error
    with (
        RunnerJournal.open(store, site.around, site.root) as journal,
        EvidenceRoot.open(site.evidence_path, site.around) as evidence,
    ):
        yield Desk(site, request, situation, journal, evidence)


class Desk:
    """Everything open that a command works with."""

    def __init__(
        self,
        site: Site,
        request: Request,
        situation: Situation,
        journal: RunnerJournal,
        evidence: EvidenceRoot,
    ) -> None:
        self.site = site
        self.request = request
        self.situation = situation
        self.journal = journal
        self.evidence = evidence

    def records(self) -> tuple[StoredRecord, ...]:
        """All evidence, with what the evaluator has to know about it."""
        site = self.site
        digests = self.journal.record_digests() if site.trust is Trust.JOURNAL else frozenset()
        return self.evidence.records(self.situation.inputs(site, self.request), digests.__contains__)

    @property
    def runner(self) -> Program:
        """This runner, as records name it."""
        return Program(name=RUNNER, version=self.site.version)

    def about(self, place: Place) -> dict[str, object]:
        """What a journal row says about the item and candidate of a place."""
        situation = self.situation
        return {
            "itemId": place.item_id,
            "base": situation.base,
            "head": situation.head,
            "policyDigest": place.digest,
        }

    def place(self, item_id: str) -> Place:
        """Where the evidence of an item at this candidate under this policy lies.

        Raises:
            CloseoutError: `evidence_path_invalid`.
        """
        return Place(self.situation.policy.digest or "", self.situation.head, item_id)
