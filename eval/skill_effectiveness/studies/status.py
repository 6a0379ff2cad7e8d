"""Counts of a study that tell nothing of its arms, and the snapshot they are kept in (studies.md section 3).

Every count follows from the rows one after the other, so the snapshot at row n and the rows after it give the
same as all rows from the first; a status of 100,000 trials is one small file and a few rows.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.evidence.documents import Canonical, parse
from skill_effectiveness.evidence.strict import Profile
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One
from skill_effectiveness.studies import rows
from skill_effectiveness.studies.state import Phase
from skill_effectiveness.studies.words import EndClass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.studies.plan import StudyPlan
    from skill_effectiveness.studies.rows import StudyRow, Usage


Counter = Annotated[int, Field(ge=0)]


class StudyStatus(FrozenModel):
    """`status.json`.

    Attributes:
        seq: number of the last row that was counted; -1 before the first.
        segment, offset: where the journal's next row begins, as its pin says it.
        state: how far the study has come.
        slots: of the plan.
        ended: slots that have ended.
        classes: how they ended.
        batch_classes: of the last batch, the same.
        tokens, cost_units: what is known to have been used by all attempts.
        tokens_unknown, cost_unknown: attempts of which it is not known.
        decided: whether evidence has ended the run early.
    """

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-study-status-v1"]
    plan_digest: DigestText
    seq: Annotated[int, Field(ge=-1)]
    segment: Counter
    offset: Counter
    state: Phase
    slots: Counter
    started: Counter
    ended: Counter
    attempts: Counter
    graded: Counter
    classes: dict[EndClass, Counter]
    batch_classes: dict[EndClass, Counter]
    tokens: Counter
    tokens_unknown: Counter
    cost_units: Annotated[float, Field(ge=0)]
    cost_unknown: Counter
    votes: Counter
    decided: bool
    first_started_at: str | None
    last_ended_at: str | None

    @property
    def known_tokens(self) -> int | None:
        """Tokens of all attempts; None where one of them is unknown."""
        return None if self.tokens_unknown else self.tokens

    @property
    def known_cost(self) -> float | None:
        """Cost of all attempts; None where one of them is unknown."""
        return None if self.cost_unknown else self.cost_units

    @property
    def eta_seconds(self) -> float | None:
        """How long the open slots will take at the pace so far; None before the first has ended."""
        if self.first_started_at is None or self.last_ended_at is None or not self.ended:
            return None
        passed = _moment(self.last_ended_at) - _moment(self.first_started_at)
        open_slots = 0 if self.state is not Phase.RUNNING else self.slots - self.ended
        return max(0.0, passed / timedelta(seconds=1)) / self.ended * open_slots


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def first_status(plan: StudyPlan) -> StudyStatus:
    """The status before any row."""
    return StudyStatus(
        schema_version=1,
        artifact_contract="skill-effectiveness-study-status-v1",
        plan_digest=plan.plan_digest,
        seq=-1,
        segment=1,
        offset=0,
        state=Phase.PLANNED,
        slots=plan.allocation.slots,
        started=0,
        ended=0,
        attempts=0,
        graded=0,
        classes={},
        batch_classes={},
        tokens=0,
        tokens_unknown=0,
        cost_units=0.0,
        cost_unknown=0,
        votes=0,
        decided=False,
        first_started_at=None,
        last_ended_at=None,
    )


def status_line(status: StudyStatus) -> bytes:
    """The bytes of `status.json`."""
    return dump_line(status.model_dump(mode="json"))


def read_status(data: bytes) -> StudyStatus:
    """A snapshot out of its file.

    Raises:
        StrictError, DocumentError: it is none.
    """
    return parse(StudyStatus, data, Profile.DOCUMENT, canonical=Canonical.LINE)


class Counting:
    """Counts that go on from a snapshot."""

    def __init__(self, status: StudyStatus) -> None:
        self._held = status.model_dump()
        self._classes: dict[EndClass, int] = dict(status.classes)
        self._batch: dict[EndClass, int] = dict(status.batch_classes)

    def take(self, seq: int, body: StudyRow | None, time: str) -> None:
        """Count the next row; `body` is None for one of the journal's own."""
        self._held["seq"] = seq
        match body:
            case rows.SlotStarted():
                self._started(body, time)
            case rows.AttemptEnded():
                self._used(body.usage)
            case rows.SlotEnded():
                self._ended(body.ended, time)
            case rows.Graded():
                self._held["graded"] += body.grade_hash is not None
            case rows.BatchOpened():
                self._batch = {}
            case rows.BatchVoid():
                self._void()
            case rows.VoteEnded():
                self._held["votes"] += 1
            case _:
                self._reach(body)

    def _started(self, body: rows.SlotStarted, time: str) -> None:
        self._held["attempts"] += 1
        self._held["started"] += body.attempt == 1
        self._held["first_started_at"] = self._held["first_started_at"] or time
        if self._held["state"] is Phase.PLANNED:
            self._held["state"] = Phase.RUNNING

    def _used(self, usage: Usage) -> None:
        if usage.tokens is None:
            self._held["tokens_unknown"] += 1
        else:
            self._held["tokens"] += usage.tokens
        if usage.cost_units is None:
            self._held["cost_unknown"] += 1
        else:
            self._held["cost_units"] += usage.cost_units

    def _ended(self, ended: EndClass, time: str) -> None:
        self._held["ended"] += 1
        self._held["last_ended_at"] = time
        for counted in (self._classes, self._batch):
            counted[ended] = counted.get(ended, 0) + 1
        if self._held["ended"] == self._held["slots"]:
            self._held["state"] = Phase.COMPLETE

    def _void(self) -> None:
        for ended, number in self._batch.items():
            self._classes[ended] -= number
            if not self._classes[ended]:
                del self._classes[ended]
        number = sum(self._batch.values())
        self._batch = {EndClass.VOID: number} if number else {}
        for ended, held in self._batch.items():
            self._classes[ended] = self._classes.get(ended, 0) + held

    def _reach(self, body: StudyRow | None) -> None:
        reached: Mapping[type[StudyRow], Phase] = {
            rows.SlotsClosed: Phase.COMPLETE,
            rows.Unblinded: Phase.UNBLINDED,
            rows.Analysed: Phase.ANALYSED,
            rows.Sealed: Phase.SEALED,
        }
        if body is None or type(body) not in reached:
            return
        self._held["state"] = reached[type(body)]
        if isinstance(body, rows.SlotsClosed):
            self._held["decided"] = body.reason == "decided"

    def at(self, segment: int, offset: int) -> StudyStatus:
        """The status now, with where the next row begins."""
        return StudyStatus(
            **self._held
            | {
                "segment": segment,
                "offset": offset,
                "classes": dict(sorted(self._classes.items())),
                "batch_classes": dict(sorted(self._batch.items())),
            }
        )
