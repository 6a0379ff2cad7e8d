"""What a journal tells of how a study went: amendments, deviations, when arms became known (section 7).

A pure judgement over the rows alone, so a report and a stranger with a bundle carry over the same. A
deviation is something that did not go as planned; a run that rested, resumed or was decided early is none.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from skill_effectiveness.studies import rows
from skill_effectiveness.studies.results import AmendmentRecord, DeviationRecord
from skill_effectiveness.studies.words import EndClass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skill_effectiveness.evidence.journal import Row
    from skill_effectiveness.studies.rows import StudyRow

REPORT: Final = "report"
"""Why arms become known where nobody gives a study up."""

_LONGEST: Final = 4_000
"""Characters of a person's reason that results repeat; the journal has all of it."""


@dataclass(frozen=True, slots=True)
class Chronicle:
    """What happened beside the trials.

    Attributes:
        planned_at: when the plan was sealed; None before.
        unblinded_at: when arms became known; None before.
        analysed: digests of all results, in order.
    """

    amendments: tuple[AmendmentRecord, ...] = ()
    deviations: tuple[DeviationRecord, ...] = ()
    planned_at: str | None = None
    unblinded_at: str | None = None
    analysed: tuple[str, ...] = ()


@dataclass(slots=True)
class _Telling:
    amendments: list[AmendmentRecord] = field(default_factory=list)
    deviations: list[DeviationRecord] = field(default_factory=list)
    planned_at: str | None = None
    unblinded_at: str | None = None
    analysed: list[str] = field(default_factory=list)
    cut_off: Counter[EndClass] = field(default_factory=Counter)
    set_back: int = 0
    latest: str = ""

    def look_at_clock(self, time: str) -> None:
        """Count how often a row is earlier than the one before it, until arms are known."""
        if self.unblinded_at is None:
            self.set_back += time < self.latest
            self.latest = time

    def deviates(self, code: str, sentence: str, at: str | None) -> None:
        self.deviations.append(DeviationRecord(code=code, sentence=sentence, at=at))

    def take(self, body: StudyRow, at: str) -> None:
        match body:
            case rows.PlanSealed():
                self.planned_at = at
            case rows.Amendment():
                self.amendments.append(
                    AmendmentRecord(
                        pointer=body.pointer,
                        value=body.value,
                        former=body.former,
                        reason=body.reason[:_LONGEST],
                        at=at,
                    )
                )
            case rows.AttemptEnded():
                self.cut_off[body.ended] += 1
            case rows.Unblinded():
                self.unblinded_at = at
                if body.reason != REPORT:
                    self.deviates("given_up", f"The study was given up: {body.reason[:_LONGEST]}", at)
            case rows.Analysed():
                self.analysed.append(body.results_digest)
            case _:
                self._trouble(body, at)

    def _trouble(self, body: StudyRow, at: str) -> None:
        match body:
            case rows.LeftoversEnded():
                told = f"Processes that a killed run had left behind were ended: {body.processes}."
                self.deviates("leftovers_ended", told, at)
            case rows.WorkerLost():
                told = f"A worker was lost with the attempts it held: {len(body.slots)}."
                self.deviates("worker_lost", told, at)
            case rows.BatchVoid():
                told = f"The closing exposure assay of batch {body.batch} failed; its slots have no value."
                self.deviates("batch_void", told, at)
            case rows.LicenceRevoked():
                told = f"Known answers revoked the licence {body.licence_id}."
                self.deviates("licence_revoked", told, at)
            case rows.VotesVoid():
                told = f"Votes that count no more, of the licence {body.licence_id}: {len(body.vote_ids)}."
                self.deviates("votes_void", told, at)
            case rows.SlotsClosed(reason="abandoned"):
                told = f"Slots that never ended and were given up: {body.slots}."
                self.deviates("slots_abandoned", told, at)
            case _:
                return


def read_chronicle(journal: Iterable[Row]) -> Chronicle:
    """What the rows of a whole journal tell.

    Raises:
        StudyError: `row_invalid`: a row is none of a study.
    """
    telling = _Telling()
    for row in journal:
        telling.look_at_clock(row.time)
        body = rows.read_study_row(row)
        if body is not None:
            telling.take(body, row.time)
    if telling.set_back:
        told = f"The clock went back between two rows, so times are only as good as it: {telling.set_back}."
        telling.deviates("clock_went_back", told, None)
    if interrupted := telling.cut_off[EndClass.INTERRUPTED]:
        told = f"Attempts that were cut off before their end, and begun again: {interrupted}."
        telling.deviates("attempts_interrupted", told, None)
    return Chronicle(
        tuple(telling.amendments),
        tuple(telling.deviations),
        telling.planned_at,
        telling.unblinded_at,
        tuple(telling.analysed),
    )
