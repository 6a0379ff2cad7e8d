from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import DocumentError
from skill_effectiveness.protocol.gates import WaivableItem
from skill_effectiveness.protocol.words import TaskFamily
from skill_effectiveness.trials import gate_words
from skill_effectiveness.trials.gate import NO_REVIEWERS, failed_stages, verdict_of
from skill_effectiveness.trials.gate_facts import MISSING_TRIAL, ArmFacts, TrialEntry
from skill_effectiveness.trials.gate_result import GateResult
from skill_effectiveness.trials.gate_reviewers import PairStanding, ReviewerPair
from skill_effectiveness.trials.gate_words import (
    EvidenceSource,
    FailureCode,
    GateStatus,
    NextAction,
    NotEvaluated,
    Stage,
    TierStatus,
    WarningCode,
)
from skill_effectiveness.trials.pilot_records import CLAIMS
from skill_effectiveness.trials.tiers import AdvisoryVerdict, CausalVerdict
from tests.support import gates
from tests.support.gates import (
    ADVISORY,
    CONTAMINATED,
    FAILED,
    FULL,
    OFF,
    PROFILE_ARMS,
    SIX,
    SKILL_ARMS,
    UNAVAILABLE,
    VOID,
    advisory,
    causal,
    changed,
    claiming,
    entries,
    facts_of,
    pair,
    planned,
    reviewers,
)
from tests.support.private import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skill_effectiveness.trials.gate_facts import TrialFacts, TrialName
    from tests.support.gates import Change

DISAGREEING = gates.BANK.truth[:16] + tuple(word.turned() for word in gates.BANK.truth[16:])


def with_first(
    arms: Sequence[ArmFacts], change: Callable[[TrialEntry], TrialEntry], where: int = 0
) -> list[TrialEntry]:
    """The design with one entry changed."""
    found = entries(arms)
    found[where] = change(found[where])
    return found


def first(where: int = 0, arms: Sequence[ArmFacts] = PROFILE_ARMS, **facts: Change) -> list[TrialEntry]:
    """The design with other facts in one trial."""
    return with_first(arms, lambda entry: changed(entry, arms, **facts), where)


def saying(where: int = 0, **claims: Change) -> list[TrialEntry]:
    """The design with one row that says something else."""
    return with_first(PROFILE_ARMS, lambda entry: claiming(entry, **claims), where)


def only(chosen: Callable[[TrialName], bool], facts: TrialFacts) -> Callable[[TrialName], TrialFacts | None]:
    return lambda name: facts if chosen(name) else None


def both_families(**facts: Change) -> list[TrialEntry]:
    """The design with the same facts in the first trial of each task."""
    found = entries()
    for index in (0, 2):
        found[index] = changed(found[index], PROFILE_ARMS, **facts)
    return found


def failed(entry: TrialEntry) -> TrialEntry:
    return changed(replace(entry, facts=FAILED), PROFILE_ARMS)


def malformed(entry: TrialEntry) -> TrialEntry:
    return replace(entry, record=None, planned=None, facts=None)


F = FailureCode
RAISED: dict[FailureCode, Callable[[], GateResult]] = {
    F.CALIBRATION_STATUS_INVALID: lambda: advisory(
        reviewers=reviewers(ReviewerPair(PairStanding.STATUS_UNKNOWN))
    ),
    F.SYNTHETIC_CALIBRATION_ON_NON_SYNTHETIC_RUN: lambda: advisory(
        reviewers=reviewers(ReviewerPair(PairStanding.NOT_EVALUATED_SYNTHETIC))
    ),
    F.REVIEWER_CALIBRATION_FAMILY_COUNT: lambda: advisory(reviewers=reviewers()),
    F.CALIBRATION_EVIDENCE_INVALID: lambda: advisory(
        reviewers=reviewers(pair(), ReviewerPair(PairStanding.REFUSED))
    ),
    F.REVIEWER_SELF_CALIBRATION: lambda: advisory(
        reviewers=reviewers(pair("family-1", DISAGREEING, DISAGREEING))
    ),
    F.REVIEWER_MUTUAL_CALIBRATION: lambda: advisory(
        reviewers=reviewers(pair(), pair("family-2", DISAGREEING, DISAGREEING))
    ),
    F.CAUSAL_CORE_UNAVAILABLE: lambda: causal(capability=UNAVAILABLE),
    F.REQUIRED_EVIDENCE_NOT_EVALUATED: lambda: advisory(first(blinding_leak=None)),
    F.SKILL_EVENT_UNVERIFIABLE_RATE: lambda: advisory(first(skill_events_verifiable=False)),
    F.SKILL_EVENT_SHAPE_CROSS_FAMILY: lambda: advisory(
        both_families(skill_events_verifiable=False, skill_event_shape="no_result")
    ),
    F.TOTAL_CONTAMINATION_RATE: lambda: advisory(first(contaminated=True)),
    F.ARM_CONTAMINATION_GAP: lambda: advisory(first(contaminated=True)),
    F.TRIAL_FILE_ISOLATION: lambda: advisory(first(access_audit_ok=False)),
    F.CROSS_TRIAL_MEMORY_ISOLATION: lambda: advisory(first(memory_isolation_ok=False)),
    F.TRIAL_RECORD_IDENTITY_INVALID: lambda: advisory(with_first(PROFILE_ARMS, malformed)),
    F.TRIAL_TASK_FAMILY_MISMATCH: lambda: advisory(saying(task_family=TaskFamily.DIAGNOSIS)),
    F.TRIAL_EVIDENCE_BINDING: lambda: advisory(saying(task_hash=gates.digest_text("another"))),
    F.DUPLICATE_TRIAL_RECORD: lambda: advisory([*entries(), replace(entries()[0], index=12, facts=None)]),
    F.TRIAL_PLAN_MEMBERSHIP_MISMATCH: lambda: advisory(
        [*entries(), replace(entries(samples=4)[-1], index=12, planned=None, facts=None)]
    ),
    F.TRIAL_EXECUTION_ORDER: lambda: advisory(saying(run_order=7)),
    F.NO_TRIAL_RECORDS: lambda: advisory([]),
    F.RUNNER_COMPLETION_RATE: lambda: advisory(with_first(PROFILE_ARMS, failed)),
    F.ARM_RUNNER_COMPLETION_RATE: lambda: advisory(with_first(PROFILE_ARMS, failed)),
    F.ARM_SYSTEMIC_RUNNER_FAILURE: lambda: advisory(
        entries(facts=only(lambda name: name.arm_id == FULL.arm_id, FAILED))
    ),
    F.RUNNER_FAILURE_REASON_CROSS_FAMILY: lambda: advisory(
        entries(samples=100, facts=only(lambda name: name[1:] == (FULL.arm_id, 1), FAILED))
    ),
    F.INSUFFICIENT_TASK_ARM_SAMPLES: lambda: advisory(entries(samples=2)),
    F.INSUFFICIENT_SMOKE_TASKS_PER_ARM: lambda: advisory(entries(tasks=["task-a"]), task_ids=("task-a",)),
    F.MANIFEST_ALLOWLISTED_DIFF: lambda: advisory(entries((OFF, WIDE)), arms=(OFF, WIDE)),
    F.OFF_CCL_LAYER_RESIDUAL: lambda: advisory(first(off_ccl_residual=True)),
    F.MATCHED_CALL_COMPLIANCE: lambda: causal(first(1, SKILL_ARMS, matched_call_compliant=False)),
    F.BLINDING_LEAK: lambda: advisory(first(blinding_leak=True)),
    F.DETERMINISTIC_GRADER_REPLAY: lambda: advisory(first(deterministic_replay_match=False)),
    F.BUDGET_MISSING: lambda: advisory(first(budget_complete=False)),
    F.ADVISORY_FRESH_SESSION_PER_SAMPLE: lambda: advisory(with_first(PROFILE_ARMS, same_session)),
    F.LOCAL_EVIDENCE_BUNDLE_REQUIRED: lambda: advisory(source=EvidenceSource.NONE),
}
WIDE = ArmFacts(
    "profile-full", is_off=False, calls_are_matched=False, diff_faults=("unallowlisted_diff:driver",)
)


def same_session(entry: TrialEntry) -> TrialEntry:
    assert entry.planned is not None
    other = entries()[1].planned
    assert other is not None
    return replace(entry, planned=entry.planned._replace(session=other.session))


def codes(result: GateResult) -> set[str]:
    return {text.split(":")[0] for text in result.failures}


class TestEveryWord:
    @pytest.mark.parametrize("code", FailureCode)
    def test_each_failure_is_raised(self, code: FailureCode) -> None:
        """T42: every failure code comes out of one changed thing, and the gate then fails."""
        result = RAISED[code]()
        assert code.value in codes(result)
        assert result.status is GateStatus.FAIL
        assert result.evidence_tier.verdict_tier is None
        assert failed_stages(result)

    ABSENT: ClassVar = {
        NotEvaluated.OFF_RUNTIME_RESIDUAL_EVIDENCE: "off_ccl_residual",
        NotEvaluated.SKILL_EVENT_VERIFIABILITY: "skill_events_verifiable",
        NotEvaluated.BLINDING_LEAK: "blinding_leak",
        NotEvaluated.DETERMINISTIC_GRADER_REPLAY: "deterministic_replay_match",
        NotEvaluated.CONTAMINATION: "contaminated",
        NotEvaluated.BUDGET_COMPLETE: "budget_complete",
        NotEvaluated.TRIAL_FILE_ISOLATION: "access_audit_ok",
        NotEvaluated.CROSS_TRIAL_MEMORY_ISOLATION: "memory_isolation_ok",
    }

    @pytest.mark.parametrize(("check", "field"), ABSENT.items())
    def test_each_absent_value_is_named_at_both_tiers(self, check: NotEvaluated, field: str) -> None:
        """T42: one absent value in one trial is enough, and no waiver covers it without naming its proof."""
        for result in (advisory(first(**{field: None})), causal(first(0, SKILL_ARMS, **{field: None}))):
            assert check in result.not_evaluated_checks
            assert F.REQUIRED_EVIDENCE_NOT_EVALUATED in result.failures
            assert result.status is GateStatus.FAIL

    def test_an_absent_matched_call_is_named(self) -> None:
        """T42: in an oracle arm of a causal gate nothing covers it."""
        result = causal(first(1, SKILL_ARMS, matched_call_compliant=None))
        assert result.not_evaluated_checks == (NotEvaluated.MATCHED_CALL_COMPLIANCE,)
        assert set(result.failures) == {F.CAUSAL_CORE_UNAVAILABLE, F.REQUIRED_EVIDENCE_NOT_EVALUATED}

    def test_an_absent_capability_is_named(self) -> None:
        """T42 T46: a causal gate without an eligible row for each family never passes."""
        result = causal(capability=UNAVAILABLE)
        assert result.not_evaluated_checks == (NotEvaluated.PROVIDER_CAPABILITY_MATRIX,)
        assert result.evidence_tier.tier_status is TierStatus.CAUSAL_CORE_UNAVAILABLE
        assert set(result.failures) == {F.CAUSAL_CORE_UNAVAILABLE, F.REQUIRED_EVIDENCE_NOT_EVALUATED}
        assert result.decision.next_action is NextAction.COLLECT

    def test_nothing_else_is_raised_by_a_sound_set(self) -> None:
        assert causal().failures == advisory().failures == ()
        assert causal().evidence_tier.verdict_tier == "causal"
        assert advisory().evidence_tier.verdict_tier == "advisory-paired"
        assert causal().decision.next_action is NextAction.CONTINUE

    def test_the_page_for_people_explains_every_word(self) -> None:
        """T42: docs/pilot-gate.md has a row for each."""
        page = (REPOSITORY / "docs" / "pilot-gate.md").read_text(encoding="utf-8")
        rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
        told = {word.removesuffix(":<i>") for row in rows for word in re.findall(r"`([^`]+)`", row)}
        assert {*FailureCode, *NotEvaluated} <= told

    def test_the_tables_of_the_page_hold_every_word(self) -> None:

        rows = [line for line in (gate_words.__doc__ or "").splitlines() if line.startswith("| `")]
        named = [line.split("`")[1].removesuffix(":<i>") for line in rows]
        assert named[: len(FailureCode)] == sorted(named[: len(FailureCode)], key=named.index)
        assert set(named[: len(FailureCode)]) == set(FailureCode)
        assert named[len(FailureCode) :] == list(NotEvaluated)

    def test_stages_say_what_comes_first(self) -> None:
        """Bridge.md, section 4: reviewers, capability, proofs, skill events, isolation, gate."""
        late = causal(first(1, SKILL_ARMS, matched_call_compliant=None), capability=UNAVAILABLE)
        assert failed_stages(late) == (Stage.CAPABILITY, Stage.PROOFS, Stage.GATE)
        assert failed_stages(causal(capability=UNAVAILABLE))[0] is Stage.CAPABILITY
        assert failed_stages(causal(first(0, SKILL_ARMS, blinding_leak=None)))[0] is Stage.PROOFS
        assert failed_stages(advisory(first(blinding_leak=None))) == (Stage.GATE,)
        unverifiable = {"skill_events_verifiable": False}
        assert failed_stages(causal(first(0, SKILL_ARMS, **unverifiable)))[0] is Stage.SKILL_EVENTS
        assert failed_stages(advisory(first(**unverifiable))) == (Stage.GATE,)
        assert failed_stages(advisory(first(access_audit_ok=False)))[0] is Stage.ISOLATION
        assert failed_stages(advisory(first(contaminated=True))) == (Stage.GATE,)
        assert failed_stages(advisory()) == ()

    def test_stages_come_in_the_order_of_the_wire(self) -> None:
        assert list(Stage) == ["reviewers", "capability", "proofs", "skill_events", "isolation", "gate"]
        assert failed_stages(advisory(reviewers=reviewers(), source=EvidenceSource.NONE)) == (
            Stage.REVIEWERS,
            Stage.GATE,
        )


class TestThresholds:
    """Each at, below and above the frozen figure."""

    @pytest.mark.parametrize(("samples", "failing", "passes"), [(5, 1, True), (4, 1, False), (10, 1, True)])
    def test_completion_of_all(self, samples: int, failing: int, passes: bool) -> None:  # noqa: FBT001
        """T43: 19 of 20 is 0.95 and passes; 15 of 16 does not."""
        found = entries(samples=samples, facts=only(lambda name: name == ("task-a", FULL.arm_id, 1), FAILED))
        assert failing == 1
        assert (F.RUNNER_COMPLETION_RATE not in codes(advisory(found))) is passes

    @pytest.mark.parametrize(("samples", "passes"), [(10, True), (9, False), (11, True)])
    def test_completion_of_an_arm(self, samples: int, passes: bool) -> None:  # noqa: FBT001
        """T43: 19 of 20 in one arm."""
        found = entries(samples=samples, facts=only(lambda name: name == ("task-a", FULL.arm_id, 1), FAILED))
        assert (F.ARM_RUNNER_COMPLETION_RATE not in codes(advisory(found))) is passes

    @pytest.mark.parametrize(("samples", "passes"), [(3, True), (2, False), (4, True)])
    def test_samples_of_a_cell(self, samples: int, passes: bool) -> None:  # noqa: FBT001
        """T43: three samples of each task and arm."""
        assert (advisory(entries(samples=samples)).status is GateStatus.PASS) is passes

    @pytest.mark.parametrize(("tasks", "passes"), [(2, True), (1, False), (3, True)])
    def test_tasks_of_an_arm(self, tasks: int, passes: bool) -> None:  # noqa: FBT001
        """T43: two tasks in each arm."""
        names = [f"task-{number}" for number in range(tasks)]
        arms = dict.fromkeys(names, TaskFamily.REVIEW)
        found = [
            TrialEntry(index, gates.record_of(plan, facts_of(arm), arm), plan, facts_of(arm))
            for index, (name, arm, sample) in enumerate(
                (name, arm, sample) for sample in (1, 2, 3) for name in names for arm in PROFILE_ARMS
            )
            for plan in [planned(name, arm.arm_id, sample, index + 1, arms[name])]
        ]
        result = advisory(found, task_ids=tuple(names))
        assert (result.status is GateStatus.PASS) is passes
        assert (F.INSUFFICIENT_SMOKE_TASKS_PER_ARM in result.failures) is not passes

    @pytest.mark.parametrize(("samples", "passes"), [(10, True), (9, False), (11, True)])
    def test_unverifiable_skill_events(self, samples: int, passes: bool) -> None:  # noqa: FBT001
        """T43: one of 20 in an arm is 0.05 and passes."""
        found = entries(samples=samples)
        found[0] = changed(found[0], PROFILE_ARMS, skill_events_verifiable=False)
        assert (F.SKILL_EVENT_UNVERIFIABLE_RATE not in codes(advisory(found))) is passes

    def test_unverifiable_skill_events_of_one_arm(self) -> None:
        """T43: 2 of 40 pass in all, 2 of 20 in one arm do not."""
        found = entries(samples=10)
        for index in (0, 4):
            found[index] = changed(found[index], PROFILE_ARMS, skill_events_verifiable=False)
        result = advisory(found)
        assert result.metrics.unverifiable_skill_events.value == 0.05
        assert codes(result) == {F.SKILL_EVENT_UNVERIFIABLE_RATE}

    def test_a_shape_in_one_family_stops_nothing(self) -> None:
        """T43: two families stop, one does not."""
        shape = {"skill_events_verifiable": False, "skill_event_shape": "no_result"}
        found = entries(samples=20)
        found[0] = changed(found[0], PROFILE_ARMS, **shape)
        assert advisory(found).status is GateStatus.PASS
        found[2] = changed(found[2], PROFILE_ARMS, **shape)
        assert codes(advisory(found)) == {F.SKILL_EVENT_SHAPE_CROSS_FAMILY}

    def test_every_matched_call_has_to_comply(self) -> None:
        """T43: the frozen rate is 1."""
        assert causal().metrics.matched_calls.value == 1
        assert F.MATCHED_CALL_COMPLIANCE in RAISED[F.MATCHED_CALL_COMPLIANCE]().failures

    @pytest.mark.parametrize(("samples", "passes"), [(5, True), (4, False), (6, True)])
    def test_contamination_of_all(self, samples: int, passes: bool) -> None:  # noqa: FBT001
        """T43: one of 20 is 0.05 and passes."""
        found = entries(
            samples=samples, facts=only(lambda name: name == ("task-a", FULL.arm_id, 1), CONTAMINATED)
        )
        assert (F.TOTAL_CONTAMINATION_RATE not in codes(advisory(found))) is passes

    @pytest.mark.parametrize(("samples", "passes"), [(10, False), (9, False), (11, True)])
    def test_the_gap_fails_when_it_is_reached(self, samples: int, passes: bool) -> None:  # noqa: FBT001
        """T43: one of 20 in one arm and none in the other is a gap of 0.05 exactly."""
        found = entries(
            samples=samples, facts=only(lambda name: name == ("task-a", FULL.arm_id, 1), CONTAMINATED)
        )
        result = advisory(found)
        assert (F.ARM_CONTAMINATION_GAP not in codes(result)) is passes
        if samples == 10:
            assert result.metrics.arm_contamination_gap == 0.05

    def test_reviewer_families(self) -> None:
        """T43: one family is enough, and none is not."""
        assert advisory().status is GateStatus.PASS
        assert codes(RAISED[F.REVIEWER_CALIBRATION_FAMILY_COUNT]()) == {F.REVIEWER_CALIBRATION_FAMILY_COUNT}


class TestClaims:
    SAID: ClassVar[dict[str, Change]] = {
        "runner_completed": False,
        "runner_failure_reason": "timeout",
        "manifest_diff_valid": False,
        "off_ccl_residual": True,
        "skill_events_verifiable": False,
        "skill_event_shape": "no_result",
        "matched_call_compliant": False,
        "blinding_leak": True,
        "deterministic_replay_match": False,
        "contaminated": True,
        "budget_complete": False,
        "access_audit_ok": False,
        "memory_isolation_ok": False,
    }

    @pytest.mark.parametrize("claim", CLAIMS)
    def test_each_claim_against_the_disk(self, claim: str) -> None:
        """T44: a claim that differs from disk fails, and the disk's value stays the one that counts."""
        found = entries(SKILL_ARMS)
        where = 1 if claim == "matched_call_compliant" else 0
        found[where] = claiming(found[where], **{claim: self.SAID[claim]})
        result = causal(found)
        assert codes(result) == {F.TRIAL_EVIDENCE_BINDING}
        assert result.metrics.contradicted == {claim: 1}

    @pytest.mark.parametrize("hash_name", ["task", "manifest", "runtime", "runner", "experiment_plan"])
    def test_each_hash_against_the_plan(self, hash_name: str) -> None:
        """T44: a row with another hash than the plan."""
        result = advisory(saying(**{f"{hash_name}_hash": gates.digest_text("another")}))
        assert codes(result) == {F.TRIAL_EVIDENCE_BINDING}

    @pytest.mark.parametrize(
        "claim",
        sorted(
            set(CLAIMS)
            - {"runner_completed", "runner_failure_reason", "manifest_diff_valid", "skill_event_shape"}
        ),
    )
    def test_a_claim_with_nothing_behind_it_is_absent(self, claim: str) -> None:
        """T44: the row says that all is well, the folder says nothing: not evaluated."""
        found = entries(SKILL_ARMS)
        where = 1 if claim == "matched_call_compliant" else 0
        good = getattr(facts_of(SKILL_ARMS[where]), claim)
        found[where] = claiming(changed(found[where], SKILL_ARMS, **{claim: None}), **{claim: good})
        result = causal(found)
        assert len(result.not_evaluated_checks) == 1
        assert F.REQUIRED_EVIDENCE_NOT_EVALUATED in result.failures
        assert WarningCode.CLAIMS_WITHOUT_EVIDENCE in result.warnings

    def test_twelve_invented_rows_without_a_trial_fail(self) -> None:
        """T41: rows that claim everything, and not one trial on disk."""
        found = [replace(entry, facts=MISSING_TRIAL) for entry in entries()]
        assert len(found) == 12
        for tier in (advisory(found), causal([replace(e, facts=MISSING_TRIAL) for e in entries(SKILL_ARMS)])):
            assert tier.status is GateStatus.FAIL
            assert {
                F.TRIAL_EVIDENCE_BINDING,
                F.REQUIRED_EVIDENCE_NOT_EVALUATED,
                F.ARM_SYSTEMIC_RUNNER_FAILURE,
                F.INSUFFICIENT_TASK_ARM_SAMPLES,
            } <= codes(tier)

    def test_contaminated_trials_never_pass(self) -> None:
        """T41: not even when every row says that they are clean."""
        found = [
            claiming(changed(replace(entry, facts=CONTAMINATED), PROFILE_ARMS), contaminated=False)
            for entry in entries()
        ]
        assert {F.TRIAL_EVIDENCE_BINDING, F.TOTAL_CONTAMINATION_RATE} <= codes(advisory(found))

    def test_a_missing_arm_never_passes(self) -> None:
        """T41: an arm of the plan without a trial."""
        result = advisory(entries((OFF,)))
        assert {F.ARM_SYSTEMIC_RUNNER_FAILURE, F.INSUFFICIENT_TASK_ARM_SAMPLES} <= codes(result)

    def test_a_planned_trial_without_a_row_is_still_opened_and_counted(self) -> None:
        """T41: leaving a row out hides nothing."""
        found = first(blinding_leak=True)
        found[0] = replace(found[0], index=None, record=None)
        assert codes(advisory(found)) == {F.TRIAL_PLAN_MEMBERSHIP_MISMATCH, F.BLINDING_LEAK}

    def test_malformed_rows_are_named_a_hundred_times(self) -> None:
        """T42: then they are counted."""
        rows = [TrialEntry(index, None, None, None) for index in range(12, 117)]
        result = advisory([*entries(), *rows])
        named = [text for text in result.failures if text.startswith("trial_record_identity_invalid")]
        assert named[0] == "trial_record_identity_invalid:12"
        assert named[99] == "trial_record_identity_invalid:111"
        assert named[100:] == ["trial_record_identity_invalid:+5"]


class TestWaivers:
    PROOFS: ClassVar = {
        WaivableItem.COMPLETE_ACCESS_AUDIT: "access_audit_ok",
        WaivableItem.ACCESS_ROOT_ENFORCEMENT: "access_audit_ok",
        WaivableItem.MEMORY_ISOLATION_PROOF: "memory_isolation_ok",
        WaivableItem.PROVIDER_SIDE_PERSISTENCE_PROOF: "memory_isolation_ok",
    }

    @pytest.mark.parametrize(("item", "field"), PROOFS.items())
    def test_each_missing_proof_needs_its_own_waiver(self, item: WaivableItem, field: str) -> None:
        """T45: with it the gate passes and lists it; without it, or with all others, it does not."""
        found = first(**{field: None, "missing_proofs": frozenset({item})})
        result = advisory(found)
        assert result.status is GateStatus.PASS
        assert item in result.evidence_tier.coverage_limitations
        others = ADVISORY.model_copy(update={"waived_items": tuple(each for each in SIX if each != item)})
        refused = advisory(found, tier=others)
        assert codes(refused) == {F.REQUIRED_EVIDENCE_NOT_EVALUATED}
        assert item not in refused.evidence_tier.coverage_limitations
        assert refused.evidence_tier.tier_status is TierStatus.NOT_MET

    @pytest.mark.parametrize(
        ("item", "check"),
        [
            (WaivableItem.LIVE_MATCHED_CALL_GATE, NotEvaluated.MATCHED_CALL_COMPLIANCE),
            (WaivableItem.MOUNT_EVIDENCE, NotEvaluated.PROVIDER_CAPABILITY_MATRIX),
        ],
    )
    def test_what_no_profile_trial_can_prove(self, item: WaivableItem, check: NotEvaluated) -> None:
        """T45: waived by the frozen file, listed, and needed where a caller waives less."""
        assert item in advisory().evidence_tier.coverage_limitations
        others = ADVISORY.model_copy(update={"waived_items": tuple(each for each in SIX if each != item)})
        refused = advisory(tier=others)
        assert check in refused.not_evaluated_checks
        assert codes(refused) == {F.REQUIRED_EVIDENCE_NOT_EVALUATED}

    @pytest.mark.parametrize("absent", [set(few) for few in combinations(PROOFS, 2)])
    def test_a_pass_lists_every_waived_absent_item(self, absent: set[WaivableItem]) -> None:
        """T45: all of them, sorted, and no other."""
        lacking = {self.PROOFS[item]: None for item in absent}
        result = advisory(first(**lacking, missing_proofs=frozenset(absent)))
        always = {WaivableItem.LIVE_MATCHED_CALL_GATE, WaivableItem.MOUNT_EVIDENCE}
        assert result.status is GateStatus.PASS
        assert list(result.evidence_tier.coverage_limitations) == sorted(absent | always)
        assert result.evidence_tier.declared_waivers == SIX

    @pytest.mark.parametrize(
        "pair_of",
        [
            ("access_root_enforcement", "complete_access_audit"),
            ("memory_isolation_proof", "provider_side_persistence_proof"),
        ],
    )
    def test_one_of_two_waivers_is_not_enough(self, pair_of: tuple[str, str]) -> None:
        """T45: a check with two absent proofs needs both waived."""
        absent = frozenset(WaivableItem(item) for item in pair_of)
        found = first(**{self.PROOFS[WaivableItem(pair_of[0])]: None}, missing_proofs=absent)
        assert advisory(found).status is GateStatus.PASS
        for item in pair_of:
            fewer = ADVISORY.model_copy(update={"waived_items": tuple(each for each in SIX if each != item)})
            assert codes(advisory(found, tier=fewer)) == {F.REQUIRED_EVIDENCE_NOT_EVALUATED}

    def test_nothing_completed_is_no_missing_proof(self) -> None:
        """T45: waivers name proofs that a completion lacks; without one they excuse nothing."""
        result = advisory(entries(facts=lambda _name: FAILED))
        assert {NotEvaluated.TRIAL_FILE_ISOLATION, NotEvaluated.CROSS_TRIAL_MEMORY_ISOLATION} <= set(
            result.not_evaluated_checks
        )
        assert F.REQUIRED_EVIDENCE_NOT_EVALUATED in result.failures
        assert result.evidence_tier.tier_status is TierStatus.NOT_MET

    def test_no_waiver_covers_what_was_observed(self) -> None:
        """T45: breach, memory, leak and contamination fail under all six."""
        for facts in (
            {"access_audit_ok": False},
            {"memory_isolation_ok": False},
            {"blinding_leak": True},
            {"contaminated": True},
        ):
            assert advisory(first(**facts)).status is GateStatus.FAIL

    def test_a_capable_provider_is_no_limitation(self) -> None:
        """T45: what was proven is not listed."""
        result = advisory(capability=gates.READY)
        assert WaivableItem.MOUNT_EVIDENCE not in result.evidence_tier.coverage_limitations


class TestVoidTrials:
    def test_a_void_trial_counts_for_no_arm(self) -> None:
        """T63: neither in a share nor among the samples of its cell."""
        name = ("task-a", FULL.arm_id, 1)
        four = advisory(entries(samples=4, facts=only(lambda found: found == name, VOID)))
        assert four.status is GateStatus.PASS
        assert four.metrics.arms[FULL.arm_id].void_trials == 1
        assert four.metrics.arms[FULL.arm_id].runner_completion.whole == 7
        assert four.metrics.failed_trials == 0
        assert four.warnings == (WarningCode.VOID_TRIALS_EXCLUDED,)
        three = advisory(entries(samples=3, facts=only(lambda found: found == name, VOID)))
        assert codes(three) == {F.INSUFFICIENT_TASK_ARM_SAMPLES}

    def test_an_arm_of_void_trials_has_nothing(self) -> None:
        """T63: excluding every failure leaves no arm to speak of."""
        result = advisory(entries(facts=only(lambda found: found.arm_id == FULL.arm_id, VOID)))
        assert {F.ARM_SYSTEMIC_RUNNER_FAILURE, F.ARM_RUNNER_COMPLETION_RATE} <= codes(result)

    def test_a_row_cannot_make_a_trial_void(self) -> None:
        """T63: what its folder says decides."""
        found = first(runner_completed=False, runner_failure_reason="timeout")
        found[0] = claiming(found[0], runner_failure_reason="void")
        assert F.TRIAL_EVIDENCE_BINDING in codes(advisory(found))
        assert advisory(found).metrics.void_trials == 0


class TestResidual:
    def test_a_residual_fails_off_arms_only(self) -> None:
        """T55: what a treated arm sees is its treatment."""
        assert codes(advisory(first(0, off_ccl_residual=True))) == {F.OFF_CCL_LAYER_RESIDUAL}
        assert advisory(first(1, off_ccl_residual=True)).status is GateStatus.PASS

    def test_only_off_arms_need_the_row(self) -> None:
        """T55: a treated arm without it lacks nothing."""
        found = first(1, off_ccl_residual=None)
        assert advisory(found).status is GateStatus.PASS


class TestSynthetic:
    def test_nothing_is_evaluated_and_nothing_passes(self) -> None:
        """T64: ten names, no tier, and the next step is live evidence."""
        result = advisory(tier=None, source=EvidenceSource.SYNTHETIC, reviewers=NO_REVIEWERS)
        assert result.status is GateStatus.NOT_EVALUATED_SYNTHETIC
        assert result.not_evaluated_checks == tuple(NotEvaluated)
        assert result.evidence_tier.tier_status is TierStatus.SYNTHETIC_NOT_A_TIER
        assert result.evidence_tier.verdict_tier is None
        assert result.decision.next_action is NextAction.COLLECT
        assert result.calibration is not None
        assert result.model_dump(mode="json")["calibration"] == {"status": "not_evaluated_synthetic"}

    def test_a_failure_is_still_one(self) -> None:
        found = first(contaminated=True)
        result = advisory(found, tier=None, source=EvidenceSource.SYNTHETIC, reviewers=NO_REVIEWERS)
        assert result.status is GateStatus.FAIL

    def test_a_tier_and_a_synthetic_run_exclude_each_other(self) -> None:
        with pytest.raises(ValueError, match="tier"):
            advisory(tier=None)
        with pytest.raises(ValueError, match="tier"):
            advisory(source=EvidenceSource.SYNTHETIC)


class TestVerdicts:
    def test_each_tier_has_its_kind(self) -> None:
        """T26: limitations go with the advisory one, verbatim."""
        assert verdict_of(causal()) == CausalVerdict(passed=True)
        assert verdict_of(causal(capability=UNAVAILABLE)) == CausalVerdict(passed=False)
        both = (WaivableItem.LIVE_MATCHED_CALL_GATE, WaivableItem.MOUNT_EVIDENCE)
        assert verdict_of(advisory()) == AdvisoryVerdict(passed=True, coverage_limitations=both)

    def test_a_synthetic_run_has_none(self) -> None:
        """T26: no tier, so no verdict."""
        result = advisory(tier=None, source=EvidenceSource.SYNTHETIC, reviewers=NO_REVIEWERS)
        assert verdict_of(result) is None


class TestResultDocument:
    def test_exact_fields(self) -> None:
        plain = gates.advisory().model_dump(mode="json")
        assert list(plain) == [
            "schema_version",
            "status",
            "meaning",
            "failures",
            "warnings",
            "not_evaluated_checks",
            "evidence_tier",
            "metrics",
            "calibration",
            "decision",
            "evidence_source",
        ]
        assert list(plain["evidence_tier"]) == [
            "schema_version",
            "requested_tier",
            "declared_waivers",
            "coverage_limitations",
            "registry_schema",
            "tier_status",
            "verdict_tier",
            "boundary",
        ]
        assert plain["decision"] == {
            "mode": "automated",
            "human_required": False,
            "next_action": "continue_automated_trial",
        }
        assert (plain["status"], plain["meaning"]) == ("pass", "runner_eval_validity_only")

    @pytest.mark.parametrize(
        "edit",
        [
            {"status": "pass"},
            {"evidence_tier": {"verdict_tier": "advisory-paired"}},
            {"evidence_tier": {"verdict_tier": "causal"}},
            {"evidence_tier": {"requested_tier": "causal"}},
            {"evidence_tier": {"coverage_limitations": ["mount_evidence", "access_root_enforcement"]}},
            {"evidence_tier": {"declared_waivers": []}},
        ],
    )
    def test_a_verdict_that_contradicts_itself_does_not_load(self, edit: dict[str, Change]) -> None:
        plain = advisory(first(blinding_leak=True)).model_dump(mode="json")
        validate(GateResult, plain)
        for name, value in edit.items():
            plain[name] = plain[name] | value if isinstance(value, dict) else value
        with pytest.raises(DocumentError):
            validate(GateResult, plain)

    def test_limitations_cannot_be_left_out(self) -> None:
        plain = advisory().model_dump(mode="json")
        del plain["evidence_tier"]["coverage_limitations"]
        with pytest.raises(DocumentError):
            validate(GateResult, plain)


class TestReviewers:
    def test_two_families_run_agreement_and_kappa(self) -> None:
        """T47: in one bundle, over all cases."""
        result = advisory(reviewers=reviewers(pair("x"), pair("y")))
        assert result.status is GateStatus.PASS
        assert result.calibration is not None
        shown = result.model_dump(mode="json")["calibration"]
        assert shown["mutual_status"] == "pass"
        assert [(p["families"], p["agreement"], p["kappa"]) for p in shown["pairwise_metrics"]] == [
            (["x", "y"], 1.0, 1.0)
        ]

    def test_two_families_that_disagree_fail(self) -> None:
        """T47: a second reviewer is not a formality."""
        result = RAISED[F.REVIEWER_MUTUAL_CALIBRATION]()
        assert codes(result) == {F.REVIEWER_MUTUAL_CALIBRATION, F.REVIEWER_SELF_CALIBRATION}

    def test_a_family_twice_cannot_be_told_apart(self) -> None:
        result = advisory(reviewers=reviewers(pair("x"), pair("x")))
        assert codes(result) == {F.CALIBRATION_STATUS_INVALID}

    def test_a_simulated_reviewer_satisfies_no_gate(self) -> None:
        result = advisory(reviewers=reviewers(pair(simulated=True)))
        assert codes(result) == {
            F.SYNTHETIC_CALIBRATION_ON_NON_SYNTHETIC_RUN,
            F.REVIEWER_CALIBRATION_FAMILY_COUNT,
        }


KINDS = {"good": None, "failed": FAILED, "void": VOID, "contaminated": CONTAMINATED, "missing": MISSING_TRIAL}


class TestAnyMixture:
    @given(st.lists(st.sampled_from(sorted(KINDS)), min_size=12, max_size=12))
    def test_few_trials_leave_no_room(self, kinds: list[str]) -> None:
        """T43: with three samples of two tasks in two arms, one trial that is not good is too many."""
        drawn = dict(zip((entry.planned.name for entry in entries() if entry.planned), kinds, strict=True))
        result = advisory(entries(facts=lambda name: KINDS[drawn[name]]))
        assert (result.status is GateStatus.PASS) is (set(kinds) == {"good"})
        assert (result.evidence_tier.verdict_tier is None) is (result.status is not GateStatus.PASS)

    @given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2))
    def test_shares_are_those_of_a_hand_count(self, failed: int, void: int, contaminated: int) -> None:
        """T43 T63: forty trials of one arm, of which some ended otherwise."""
        arm = [("task-a", FULL.arm_id, sample) for sample in range(1, 21)]
        facts = dict.fromkeys(arm[:failed], FAILED)
        facts |= dict.fromkeys(arm[failed : failed + void], VOID)
        facts |= dict.fromkeys(arm[failed + void : failed + void + contaminated], CONTAMINATED)
        result = advisory(entries(samples=20, facts=lambda name: facts.get(tuple(name))))
        found = result.metrics.arms[FULL.arm_id]
        assert (found.void_trials, found.trials) == (void, 40 - void)
        assert found.runner_completion.part == 40 - void - failed - contaminated
        assert found.contamination.part == contaminated
        below = (failed + contaminated) * 20 > 40 - void
        assert (F.ARM_RUNNER_COMPLETION_RATE in result.failures) is below
        assert (F.ARM_CONTAMINATION_GAP in result.failures) is (contaminated * 20 >= 40 - void)
