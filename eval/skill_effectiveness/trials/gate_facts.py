"""What the gate judges: one arm, one planned trial, what its folder says, and the row that claims it.

Nothing here is a claim of a caller: `TrialFacts` is derived from one trial on disk (`trial_facts`),
`ArmFacts` from manifests, `PlannedTrial` from a plan row whose every hash was computed again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from skill_effectiveness.protocol.gates import WaivableItem
    from skill_effectiveness.protocol.words import TaskFamily
    from skill_effectiveness.trials.pilot_records import TrialRecord


class TrialName(NamedTuple):
    """Which trial is meant."""

    task_id: str
    arm_id: str
    sample_index: int


class PlannedTrial(NamedTuple):
    """One plan row, cut down to what the gate compares.

    Attributes:
        name: which trial.
        run_order: its place in the run, from 1.
        family: of its task.
        hashes: task, manifest, runtime, runner, experiment plan and trial fingerprint, in this order.
        session: digest of the session id its runtime names.
    """

    name: TrialName
    run_order: int
    family: TaskFamily
    hashes: tuple[str, str, str, str, str, str]
    session: str


@dataclass(frozen=True, slots=True)
class ArmFacts:
    """One arm of the plan.

    Attributes:
        arm_id: its id.
        is_off: whether it is the arm without the treatment.
        calls_are_matched: whether its trials have to make a matching skill call (oracle, active control).
        diff_faults: in which components it differs from its off arm against the allowlist.
    """

    arm_id: str
    is_off: bool
    calls_are_matched: bool
    diff_faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrialFacts:
    """Every value of one trial that the gate uses, derived from its folder; None is "nothing there says so".

    Attributes:
        drift: what on disk is not what the plan, or the trial's own binding, says; `missing` when there is no
            trial.
        ended: whether it reached a terminal state.
        void: another model answered, or the exposure check failed: it counts for no arm.
        runner_completed: completed, and its binding replays.
        runner_failure_reason: the stop reason of a trial that did not complete.
        off_ccl_residual: whether an off arm saw something of the treatment.
        skill_events_verifiable: whether its skill events could be read.
        skill_event_shape: the shape that was missing when they could not.
        matched_call_compliant: whether the matching call came in time.
        blinding_leak: whether the outcome tells a judge its arm.
        deterministic_replay_match: whether grading again gave the same valid grade.
        contaminated: its state or a breach mark says so.
        budget_complete: whether what it used up is accounted for and within its limits.
        access_audit_ok: whether audit and roots are proven; False is an observed breach.
        memory_isolation_ok: whether memory isolation is proven; False is observed memory.
        missing_proofs: the proofs its completion lacks.
    """

    drift: tuple[str, ...] = ()
    ended: bool = True
    void: bool = False
    runner_completed: bool = True
    runner_failure_reason: str | None = None
    off_ccl_residual: bool | None = None
    skill_events_verifiable: bool | None = None
    skill_event_shape: str | None = None
    matched_call_compliant: bool | None = None
    blinding_leak: bool | None = None
    deterministic_replay_match: bool | None = None
    contaminated: bool | None = None
    budget_complete: bool | None = None
    access_audit_ok: bool | None = None
    memory_isolation_ok: bool | None = None
    missing_proofs: frozenset[WaivableItem] = frozenset()


MISSING_TRIAL: Final = TrialFacts(drift=("missing",), ended=False, runner_completed=False)
"""Of a planned trial that is not on disk, or cannot be read as one."""


@dataclass(frozen=True, slots=True)
class TrialEntry:
    """One thing the gate is told, in the order of the rows.

    Attributes:
        index: of the row, from 0; None for a planned trial without one.
        record: the row; None when it is malformed or there is none.
        planned: the trial in the plan; None for a row of another.
        facts: of its folder; None when it was not opened, because it is not planned or was opened before.
    """

    index: int | None
    record: TrialRecord | None
    planned: PlannedTrial | None
    facts: TrialFacts | None
