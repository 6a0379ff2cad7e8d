"""What an ending means for its slot: the class table of studies.md section 3.

A pure judgement over the journal's state: a run and the one that resumes it get the same next step.

| ending | what follows |
|---|---|
| rule `value` | the slot ends; its tree is graded |
| rule `failure` | the slot ends and counts 0; nothing is graded |
| rule `graded` | the slot ends; the tree is graded as it stands, where there is one |
| rule `missing` | the slot ends without a value |
| rule `rerun` | a new attempt, until all are used; then the slot ends without a value |
| one that blocks | the run stops and the slot stays open: what is wrong is the same for every slot |
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from skill_effectiveness.providers.calls import RETRYABLE, Ending, WarningCode
from skill_effectiveness.studies.state import SlotPhase
from skill_effectiveness.studies.study_file import MOST_ATTEMPTS
from skill_effectiveness.studies.words import EndClass, GradeState, Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.providers.calls import ProviderErrorKind
    from skill_effectiveness.studies.plan import PlanAnalysis
    from skill_effectiveness.studies.state import AttemptState, SlotState

UNSTARTABLE: Final = "unstartable"
LAUNCH_DIFFERS: Final = str(WarningCode.LAUNCH_DIFFERS)
"""Detail of an attempt that was not started, because that would not have been as it was frozen."""

COST_DIFFERS: Final = "cost_differs"
"""Detail of an attempt whose program told another cost than stated prices come to; the told one counts."""

KILLED: Final = "killed"
"""Detail of an attempt whose runner died: nobody saw its end."""

STOPPED: Final = "stopped"
"""Detail of an attempt that we ended because we were told to."""

MOST_GRADINGS: Final = 2
"""A tree that gave no valid grade is graded once more by a later run, then its slot has no value."""

_FIRST_WAIT, _LONGEST_WAIT = 2.0, 120.0

CLASSES: Final[Mapping[Ending, EndClass]] = MappingProxyType(
    {
        Ending.SUCCESS: EndClass.COMPLETED,
        Ending.NO_ANSWER: EndClass.NO_ANSWER,
        Ending.ANSWER_INVALID: EndClass.NO_ANSWER,
        Ending.REFUSED: EndClass.REFUSED,
        Ending.STREAM_INVALID: EndClass.CRASHED,
        Ending.PROVIDER_ERROR: EndClass.PROVIDER_ERROR,
        Ending.MODEL_MISMATCH: EndClass.VOID,
        Ending.LIMIT: EndClass.LIMIT,
        Ending.TIMEOUT: EndClass.TIMEOUT,
        Ending.CANCELLED: EndClass.INTERRUPTED,
        Ending.UNSTARTABLE: EndClass.CRASHED,
    }
)
"""The class of every ending of a call that works on a task (providers.md, "Endings")."""


class Step(StrEnum):
    """What is to be done about a slot next."""

    START = "start"
    RECOVER = "recover"
    END = "end"
    GRADE = "grade"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class SlotStep:
    """The next step of a slot.

    Attributes:
        step: `start` a new attempt; `recover` one that nobody saw the end of; `end` the slot; `grade` what
            it left; `nothing`.
        ended: the class that the slot has, or is to end with.
    """

    step: Step
    ended: EndClass | None = None


def class_of(ending: Ending, error: ProviderErrorKind | None = None) -> tuple[EndClass, str | None]:
    """Class and detail of a call's ending.

    Args:
        ending: of a call that works on a task, so never `tool_activity`.
        error: of a provider's error, its kind.
    """
    detail = UNSTARTABLE if ending is Ending.UNSTARTABLE else None
    return CLASSES[ending], detail if error is None else str(error)


def blocks(ended: EndClass, detail: str | None) -> bool:
    """Whether an attempt's ending stops the whole run, because every other attempt would end so too."""
    if ended is EndClass.PROVIDER_ERROR:
        return detail not in {str(kind) for kind in RETRYABLE}
    return ended is EndClass.CRASHED and detail in {UNSTARTABLE, LAUNCH_DIFFERS}


def rule_of(ended: EndClass, analysis: PlanAnalysis) -> Rule:
    """What a class counts for in a study; fixed ones included."""
    return analysis.rule(ended)


def counts_as(ended: EndClass, state: GradeState | None, analysis: PlanAnalysis) -> str:
    """What an ended slot counts for: `value`, `failure` or `missing`.

    Args:
        ended: its class.
        state: of its last grading; None without one.
        analysis: of the plan.
    """
    match rule_of(ended, analysis):
        case Rule.FAILURE:
            return "failure"
        case Rule.VALUE | Rule.GRADED if state is GradeState.VALID:
            return "value"
        case _:
            return "missing"


def next_step(slot: SlotState, analysis: PlanAnalysis, attempts: int, gradings: int = 0) -> SlotStep:
    """What is to be done about a slot.

    Args:
        slot: as the journal has it.
        analysis: of the plan.
        attempts: how many a slot may have.
        gradings: how often its tree was graded already.
    """
    if slot.ended is not None:
        graded = slot.state is GradeState.VALID or gradings >= MOST_GRADINGS
        wanted = _is_graded(slot, slot.ended, analysis) and not graded
        return SlotStep(Step.GRADE if wanted else Step.NOTHING, slot.ended)
    if slot.phase is SlotPhase.STARTED:
        return SlotStep(Step.RECOVER)
    if not slot.attempts:
        return SlotStep(Step.START)
    ended = _ended(slot.attempts[-1])
    again = blocks(ended, slot.attempts[-1].detail) or rule_of(ended, analysis) is Rule.RERUN
    if again and not _used_up(slot, attempts):
        return SlotStep(Step.START)
    return SlotStep(Step.END, ended)


def is_graded(slot: SlotState, ended: EndClass, analysis: PlanAnalysis) -> bool:
    """Whether the tree of a slot that ends with this class is graded."""
    return _is_graded(slot, ended, analysis)


def _is_graded(slot: SlotState, ended: EndClass, analysis: PlanAnalysis) -> bool:
    has_tree = bool(slot.attempts) and slot.attempts[-1].tree is not None
    return has_tree and rule_of(ended, analysis) in {Rule.VALUE, Rule.GRADED}


def _ended(attempt: AttemptState) -> EndClass:
    if attempt.ended is None:
        raise ValueError("an attempt that runs has no class")
    return attempt.ended


def _used_up(slot: SlotState, attempts: int) -> bool:
    """Whether all attempts are used; one that blocked the run is not the slot's fault and does not count.

    A journal numbers no more than `MOST_ATTEMPTS` attempts of a slot, so that is the end of any patience.
    """
    counted = sum(not blocks(_ended(attempt), attempt.detail) for attempt in slot.attempts)
    return counted >= attempts or len(slot.attempts) >= MOST_ATTEMPTS


def drawn_before(slot: SlotState) -> int:
    """How many attempts of a slot came to an ending of their own, rather than of their runner's.

    An agent made of chance goes on from there, so that what a machine does to a run changes no outcome.
    """
    ours = {KILLED, STOPPED}
    return sum(
        not (attempt.ended is EndClass.INTERRUPTED and attempt.detail in ours) for attempt in slot.attempts
    )


def wait_before(slot: SlotState) -> float:
    """Seconds to wait before the next attempt of a slot: twice as long after each provider error in a row."""
    errors = 0
    for attempt in reversed(slot.attempts):
        if attempt.ended is not EndClass.PROVIDER_ERROR:
            break
        errors += 1
    return min(_FIRST_WAIT * 2 ** (errors - 1), _LONGEST_WAIT) if errors else 0.0
