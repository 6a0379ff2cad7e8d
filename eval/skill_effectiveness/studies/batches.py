"""Batches of slots, each between two exposure assays (studies.md sections 2 and 4).

A batch opens once, its slots run, and it closes once all of them have ended. An assay's result is written to
`assays/<batch>-<phase>.json` before its rows, so that a row never lacks its evidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, cast

from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.studies.rows import Assay

if TYPE_CHECKING:
    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.studies.agent import AssayResult, TestedAgent
    from skill_effectiveness.studies.plan import StudyPlan
    from skill_effectiveness.studies.state import BatchState

Phase = Literal["open", "close"]

ASSAYS: Final = "assays"
ASSAY_CONTRACT: Final = "skill-effectiveness-study-assay-v1"
FAILED: Final = "failed"


class Batch(NamedTuple):
    """Which slots a batch has."""

    batch: int
    first: int
    last: int


class AssayParts(NamedTuple):
    """What every assay of a study works with."""

    root: PrivateRoot
    plan: StudyPlan
    agent: TestedAgent


def batches(plan: StudyPlan) -> tuple[Batch, ...]:
    """Every batch of a plan, in order."""
    size, slots = plan.batch_slots, plan.allocation.slots
    starts = range(1, slots + 1, size)
    return tuple(
        Batch(number, first, min(first + size - 1, slots)) for number, first in enumerate(starts, start=1)
    )


def assayed(held: BatchState | None, phase: Phase) -> dict[str, AssayResult]:
    """The results of a phase that the journal has, by arm."""
    assays = () if held is None else held.assays
    return {arm: cast("AssayResult", result) for at, arm, result in assays if at == phase}


def is_closed(held: BatchState | None, plan: StudyPlan) -> bool:
    """Whether nothing is left to be done about a batch."""
    if held is None:
        return False
    found = assayed(held, "close")
    done = len(found) == len(plan.arms)
    return done and (held.void or FAILED not in found.values())


def assay(parts: AssayParts, held: BatchState | None, number: int, phase: Phase) -> tuple[Assay, ...]:
    """Assay every arm and write down what came out; the rows that the journal lacks.

    An arm whose opening failed is assayed again: what was wrong may have been put right, and the journal
    keeps both results. A failed close is final.

    Args:
        parts: root, plan and agent.
        held: the batch as the journal has it; None before it opened.
        number: of the batch.
        phase: opening or close.

    Raises:
        RootError, FileError: the result cannot be written.
    """
    known = assayed(held, phase)
    if phase == "open":
        # Nothing of the batch has been started, so what was found failing is looked at anew.
        known = {arm: result for arm, result in known.items() if result != FAILED}
    arms = [arm.arm for arm in parts.plan.arms]
    found = {arm: known.get(str(arm)) or parts.agent.assay(number, phase, arm) for arm in arms}
    document = {
        "schema_version": 1,
        "artifact_contract": ASSAY_CONTRACT,
        "batch": number,
        "phase": phase,
        "results": {str(arm): result for arm, result in found.items()},
    }
    with parts.root.child(ASSAYS, create=True) as folder:
        # An assay whose rows never came is made again, so what was found then may be found otherwise now.
        folder.replace(f"{number}-{phase}.json", dump_line(document))
    return tuple(
        Assay(batch=number, phase=phase, arm=arm, result=result)
        for arm, result in found.items()
        if str(arm) not in known
    )
