"""Sets of trials for gate tests: everything in order unless a test changes one thing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from skill_effectiveness.calibration.documents import Declared, evidence_document, result_document
from skill_effectiveness.calibration.loader import LoadedCalibration
from skill_effectiveness.calibration.models import Judgment, ResultDocument
from skill_effectiveness.evidence.canonical import digest_text
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.capability import MatrixStatus
from skill_effectiveness.protocol.gates import EvidenceTier, EvidenceTierName, WaivableItem, load_gates
from skill_effectiveness.protocol.registries import RegistrySchema
from skill_effectiveness.protocol.words import BankName, TaskFamily, Verdict
from skill_effectiveness.trials.capability_matrix import CapabilityMatrix
from skill_effectiveness.trials.gate import GateInputs, evaluate_gate
from skill_effectiveness.trials.gate_facts import ArmFacts, PlannedTrial, TrialEntry, TrialFacts, TrialName
from skill_effectiveness.trials.gate_reviewers import (
    JudgedReviewers,
    PairStanding,
    ReviewerPair,
    judge_reviewers,
)
from skill_effectiveness.trials.gate_words import EvidenceSource
from skill_effectiveness.trials.pilot_records import record_of
from tests.support.examinations import BANK, INPUTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from skill_effectiveness.trials.gate_result import GateResult
    from skill_effectiveness.trials.pilot_records import TrialRecord

Change: TypeAlias = Any
"""A changed field of a frozen record, by name."""

GATES = load_gates(RealFs())
SIX = tuple(WaivableItem)
ADVISORY = EvidenceTier(schema_version=1, requested_tier=EvidenceTierName.ADVISORY_PAIRED, waived_items=SIX)
CAUSAL = EvidenceTier(schema_version=1, requested_tier=EvidenceTierName.CAUSAL, waived_items=())

OFF = ArmFacts("profile-off", is_off=True, calls_are_matched=False)
FULL = ArmFacts("profile-full", is_off=False, calls_are_matched=False)
PROFILE_ARMS = (OFF, FULL)
SKILL_ARMS = (
    ArmFacts("S0", is_off=True, calls_are_matched=False),
    ArmFacts("S1", is_off=False, calls_are_matched=True),
    ArmFacts("S2", is_off=False, calls_are_matched=False),
)
TASKS = {"task-a": TaskFamily.REVIEW, "task-b": TaskFamily.PLAN}

GOOD = TrialFacts(
    skill_events_verifiable=True,
    blinding_leak=False,
    deterministic_replay_match=True,
    contaminated=False,
    budget_complete=True,
    access_audit_ok=True,
    memory_isolation_ok=True,
)
FAILED = TrialFacts(runner_completed=False, runner_failure_reason="timeout", contaminated=False)
VOID = TrialFacts(runner_completed=False, runner_failure_reason="void", void=True, contaminated=False)
CONTAMINATED = TrialFacts(runner_completed=False, contaminated=True)

READY = CapabilityMatrix(MatrixStatus.READY, tuple(TASKS.values()), (), ())
UNAVAILABLE = CapabilityMatrix(MatrixStatus.CAUSAL_CORE_UNAVAILABLE, (), tuple(TASKS.values()), ())


def planned(task: str, arm: str, sample: int, order: int, family: TaskFamily | None = None) -> PlannedTrial:
    """A plan row whose hashes are made of its own name."""
    word = f"{task}/{arm}/{sample}"
    hashes = [digest_text(f"{kind}:{word}") for kind in ("t", "m", "r", "u", "e", "f")]
    return PlannedTrial(
        TrialName(task, arm, sample),
        order,
        family or TASKS[task],
        (hashes[0], hashes[1], hashes[2], hashes[3], hashes[4], hashes[5]),
        digest_text(f"session:{word}"),
    )


def facts_of(arm: ArmFacts, facts: TrialFacts = GOOD) -> TrialFacts:
    """Facts with what only this kind of arm has."""
    if not facts.runner_completed:
        return facts
    return replace(
        facts,
        off_ccl_residual=False if arm.is_off else None,
        matched_call_compliant=True if arm.calls_are_matched else None,
    )


def entries(
    arms: Sequence[ArmFacts] = PROFILE_ARMS,
    *,
    tasks: Iterable[str] = TASKS,
    samples: int = 3,
    facts: Callable[[TrialName], TrialFacts | None] = lambda _name: None,
) -> list[TrialEntry]:
    """One entry per trial of the design, each with the row that says exactly what is on disk.

    `facts` gives other facts for some trials.
    """
    found: list[TrialEntry] = []
    for sample in range(1, samples + 1):
        for task in tasks:
            for arm in arms:
                plan = planned(task, arm.arm_id, sample, len(found) + 1)
                there = facts(plan.name) or facts_of(arm)
                found.append(TrialEntry(len(found), record_of(plan, there, arm), plan, there))
    return found


def changed(entry: TrialEntry, arms: Sequence[ArmFacts], **changes: Change) -> TrialEntry:
    """The entry with other facts, and the row that says so."""
    assert entry.facts is not None
    assert entry.planned is not None
    there = replace(entry.facts, **changes)
    arm = next(arm for arm in arms if arm.arm_id == entry.planned.name.arm_id)
    return replace(entry, facts=there, record=record_of(entry.planned, there, arm))


def claiming(entry: TrialEntry, **claims: Change) -> TrialEntry:
    """The entry with a row that says something else than its trial."""
    assert entry.record is not None
    record: TrialRecord = entry.record.model_copy(update=claims)
    return replace(entry, record=record)


def pair(family: str = "family-1", *runs: Sequence[Verdict], simulated: bool = False) -> ReviewerPair:
    """A loaded pair of a reviewer; two runs without an error by default."""
    given = runs or (BANK.truth, BANK.truth)
    judged = [
        tuple(Judgment(case_id=case, verdict=word) for case, word in zip(BANK.case_ids, run, strict=True))
        for run in given
    ]
    evidence = evidence_document(INPUTS, family, judged)
    declared = Declared(
        provider="codex",
        provider_cli_version="tool 1.2.3",
        provider_executable_hash=digest_text("program"),
        provider_environment_keys=("HOME",),
        model="model-1",
        reviewer_family=family,
        runner_contract="codex-cli-reviewer-calibration-v1",
        runtime_manifest_hash=digest_text("manifest"),
        requested_session_mode="ephemeral",
        tool_access="read-only-observed-none",
    )
    result = result_document(declared, evidence, INPUTS)
    if simulated:
        result = result.model_copy(update={"synthetic": True})
    assert isinstance(result, ResultDocument)
    return ReviewerPair(PairStanding.LOADED, LoadedCalibration(BankName.JUDGED, evidence, result))


def reviewers(*pairs: ReviewerPair) -> JudgedReviewers:
    """What these pairs come to under the frozen thresholds."""
    return judge_reviewers(pairs, BANK, GATES.thresholds)


RIGHT = reviewers(pair())


def advisory(found: Iterable[TrialEntry] | None = None, **changes: Change) -> GateResult:
    """The gate over paired profiles, everything in order unless changed."""
    return evaluate_gate(
        replace(
            GateInputs(
                thresholds=GATES.thresholds,
                tier=ADVISORY,
                registry_schema=RegistrySchema.PAIRED_PROFILE,
                arms=PROFILE_ARMS,
                task_ids=tuple(TASKS),
                entries=entries() if found is None else found,
                reviewers=RIGHT,
                capability=UNAVAILABLE,
                source=EvidenceSource.TRIAL_STORE,
            ),
            **changes,
        )
    )


def causal(found: Iterable[TrialEntry] | None = None, **changes: Change) -> GateResult:
    """The gate over skill contents, everything in order unless changed."""
    given = {
        "tier": CAUSAL,
        "registry_schema": RegistrySchema.SKILL_CONTENT,
        "arms": SKILL_ARMS,
        "capability": READY,
    }
    return advisory(entries(SKILL_ARMS) if found is None else found, **(given | changes))
