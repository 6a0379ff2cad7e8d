"""What may still be changed once a study is planned, and what it then amounts to (studies.md section 2).

Study budgets, and a reviewer that has not voted. Everything else decides what the study means: plan anew.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.protocol.gates import Budgets
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.pricing import unpriced
from skill_effectiveness.studies.rows import Amendment
from skill_effectiveness.studies.state import Phase

if TYPE_CHECKING:
    from skill_effectiveness.studies.plan import PlanReviewer, StudyPlan
    from skill_effectiveness.studies.state import StudyState
    from skill_effectiveness.studies.study_file import StudyFile

_BUDGET: Final = re.compile(r"/budgets/study/(tokens|wall_time_seconds|tool_calls|cost_units)")
_COST: Final = "/budgets/study/cost_units"
_REVIEWER: Final = re.compile(r"/reviewers/(0|[1-9][0-9]{0,2})")
_NUMBER: Final = re.compile(r"[0-9]{1,15}(\.[0-9]{1,9})?")
NULL: Final = "null"
_LONGEST_REASON: Final = 10_000


class Setting(NamedTuple):
    """`POINTER=VALUE`."""

    pointer: str
    value: str


def read_setting(text: str) -> Setting:
    """The two halves of a setting.

    Raises:
        StudyError: `amendment_refused`.
    """
    pointer, equals, value = text.partition("=")
    if not equals or not pointer.startswith("/"):
        raise _refused("--set", "write a pointer and a value, such as /budgets/study/tokens=1000000.")
    return Setting(pointer, value)


def demand_known_cost(study: StudyFile, setting: Setting) -> None:
    """Refuse a limit of cost where nobody tells what a session costs: the run would be blocked by it.

    Raises:
        StudyError: `amendment_refused`.
    """
    if setting.pointer != _COST or setting.value == NULL:
        return
    if (sentence := unpriced(study)) is not None:
        raise _refused(setting.pointer, f"{sentence}, and plan anew.")


def effective_budgets(plan: StudyPlan, state: StudyState) -> Budgets:
    """The budgets of the whole study with every amendment so far."""
    held = plan.budgets.study.model_dump()
    for amendment in state.amendments:
        if (match := _BUDGET.fullmatch(amendment.pointer)) is not None:
            held[match[1]] = amendment.value
    return Budgets(**held)


def effective_reviewers(plan: StudyPlan, state: StudyState) -> tuple[PlanReviewer, ...]:
    """The reviewers that are still to be asked: those of the plan that no amendment has taken out."""
    gone = {
        int(match[1])
        for amendment in state.amendments
        if (match := _REVIEWER.fullmatch(amendment.pointer)) is not None
    }
    return tuple(reviewer for index, reviewer in enumerate(plan.reviewers) if index not in gone)


def amendment_of(plan: StudyPlan, state: StudyState, setting: Setting, reason: str) -> Amendment:
    """The row of an amendment, if it is one that may be made now.

    Args:
        plan: of the study.
        state: of its journal.
        setting: a study budget and a number above 0 or `null`, or a reviewer and `null`.
        reason: in the person's words.

    Raises:
        StudyError: `amendment_refused`, `amendment_late`.
    """
    if not reason.strip() or len(reason) > _LONGEST_REASON:
        raise _refused("--reason", f"say why, in at most {_LONGEST_REASON} characters.")
    if (match := _BUDGET.fullmatch(setting.pointer)) is not None:
        return _budget(plan, state, setting, match[1], reason)
    if (match := _REVIEWER.fullmatch(setting.pointer)) is not None:
        return _reviewer(plan, state, setting, int(match[1]), reason)
    shown = printable(setting.pointer[:128])
    told = "only study budgets and a reviewer that has not voted can be amended; plan anew for the rest."
    raise _refused(shown, told)


def _budget(plan: StudyPlan, state: StudyState, setting: Setting, dimension: str, reason: str) -> Amendment:
    if state.phase(plan.allocation.slots) not in {Phase.PLANNED, Phase.RUNNING}:
        raise _late(setting.pointer, "no slot is left to be run")
    former = getattr(effective_budgets(plan, state), dimension)
    return Amendment(pointer=setting.pointer, value=_amount(setting), former=former, reason=reason)


def _amount(setting: Setting) -> float | None:
    if setting.value == NULL:
        return None
    number = float(setting.value) if _NUMBER.fullmatch(setting.value) else math.nan
    if not number > 0:
        raise _refused(setting.pointer, "a budget is a number above 0, or null for none.")
    return number


def _reviewer(plan: StudyPlan, state: StudyState, setting: Setting, index: int, reason: str) -> Amendment:
    if index >= len(plan.reviewers):
        raise _refused(setting.pointer, "the plan has no such reviewer.")
    if setting.value != NULL:
        raise _refused(setting.pointer, "a reviewer can be taken out with null; plan anew for another one.")
    reviewer = plan.reviewers[index]
    if reviewer not in effective_reviewers(plan, state):
        raise _refused(setting.pointer, "this reviewer was taken out before.")
    if state.unblinded is not None:
        raise _late(setting.pointer, "arms are known already")
    if state.voted(reviewer.licence_id):
        raise _late(setting.pointer, "this reviewer has voted")
    return Amendment(pointer=setting.pointer, value=None, former=reviewer.licence_id, reason=reason)


def _refused(where: str, sentence: str) -> StudyError:
    return StudyError(StudyCode.AMENDMENT_REFUSED, where, sentence)


def _late(where: str, told: str) -> StudyError:
    return StudyError(StudyCode.AMENDMENT_LATE, where, f"it is too late for this: {told}.")
