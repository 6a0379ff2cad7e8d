from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.protocol.event_rows import read_event_row
from skill_effectiveness.protocol.gates import WaivableItem
from skill_effectiveness.trials.leaks import LeakRules
from skill_effectiveness.trials.models import TrialDocument, read_record
from skill_effectiveness.trials.pilot_plan import read_design, read_plan
from skill_effectiveness.trials.trial_facts import EventRows, StoredTrial, TrialContext, facts
from tests.support import trials
from tests.support.pilots import CLEAN, FROZEN_HASH, ORACLE, RESIDUAL, UNVERIFIABLE, Pilot, skill_events
from tests.support.trials import CONTENT

if TYPE_CHECKING:
    from skill_effectiveness.trials.gate_facts import TrialFacts
    from tests.support.pilots import Anything


class Bench:
    """One completed trial of an oracle arm, and what it is held against."""

    def __init__(self, pilot: Pilot) -> None:
        self.key = next(key for key in pilot.trials() if key.arm_id == "S1")
        self.document = pilot.place.document(self.key)
        design = read_design(pilot.expected.tasks, pilot.expected.manifests)
        plan = read_plan(design, pilot.rows, config_hash=FROZEN_HASH, samples_min=1)
        task = design.tasks[self.key.task_id]
        self.context = TrialContext(
            planned=next(trial for name, trial in plan.trials.items() if name.arm_id == "S1"),
            task=task.task,
            reference=task.reference,
            registry_schema=CONTENT,
            plan_hash=trials.plan(CONTENT).plan_hash,
            bundle_id=ORACLE,
            calls_are_matched=True,
            leaks=LeakRules(arm_ids=["S1"]),
        )

    def stored(self, edit: dict[str, Anything] | None = None, **parts: Anything) -> StoredTrial:
        document = read_record(TrialDocument, self.document | (edit or {}))
        return replace(
            StoredTrial(document, isolation=document.completion_isolation, outcome={"judge_payload": {}}),
            **parts,
        )

    def facts(self, edit: dict[str, Anything] | None = None, **parts: Anything) -> TrialFacts:
        return facts(self.stored(edit, **parts), self.context)

    def ended(self, status: str, stop_reason: str | None = None, **parts: Anything) -> TrialFacts:
        """Facts of a trial that ended otherwise."""
        edit = {
            "status": status,
            "stop_reason": stop_reason,
            "completion_claim": False,
            "completion_isolation": None,
            "completion_binding_hash": None,
        }
        return self.facts(edit, **parts)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    pilot = Pilot(tmp_path_factory.mktemp("facts"), CONTENT, samples=1)
    pilot.run()
    return Bench(pilot)


def rows(*values: Anything) -> EventRows:
    found = [read_event_row(value) for value in values]
    residuals = [row for row in found if row is not None and row.event_contract == "host-residual-v1"]
    events = [row for row in found if row is not None and row.event_contract == "skill-events-v2"]
    return EventRows(residuals, events)  # type: ignore[arg-type]


def test_a_completed_trial(bench: Bench) -> None:
    found = bench.facts()
    assert found.drift == ()
    assert (found.ended, found.runner_completed, found.void, found.contaminated) == (True, True, False, False)
    assert (found.access_audit_ok, found.memory_isolation_ok, found.budget_complete) == (True, True, True)
    assert (found.off_ccl_residual, found.skill_events_verifiable, found.deterministic_replay_match) == (
        None,
        None,
        None,
    )


class TestEndings:
    def test_a_failure_and_its_reason(self, bench: Bench) -> None:
        found = bench.ended("failed", "timeout")
        assert (found.runner_completed, found.runner_failure_reason, found.void) == (False, "timeout", False)
        assert (found.access_audit_ok, found.memory_isolation_ok) == (None, None)

    def test_void(self, bench: Bench) -> None:
        """T63: and a breach beside it takes the excuse away."""
        assert bench.ended("failed", "void").void
        breached = bench.ended("failed", "void", breaches=frozenset({"canary_leak_detected"}))
        assert (breached.void, breached.contaminated) == (False, True)
        assert not bench.ended("contaminated", "void").void

    @pytest.mark.parametrize("status", ["prepared", "running", "interim-budget-stop"])
    def test_one_that_has_not_ended(self, bench: Bench, status: str) -> None:
        edit = {
            "status": status,
            "state_version": 0 if status == "prepared" else 1,
            "completion_claim": False,
            "completion_isolation": None,
            "completion_binding_hash": None,
        }
        found = bench.facts(edit, isolation=None)
        assert (found.ended, found.runner_completed, found.runner_failure_reason) == (False, False, None)

    def test_a_completion_that_does_not_replay(self, bench: Bench) -> None:
        found = bench.facts(isolation=None)
        assert (found.runner_completed, found.drift, found.access_audit_ok) == (False, ("completion",), None)


class TestEvents:
    def test_residuals(self, bench: Bench) -> None:
        """T55: one that saw something outweighs any that did not."""
        unverified = RESIDUAL | {"status": "unverified", "layers": []}
        for given, expected in (
            ([CLEAN], False),
            ([RESIDUAL], True),
            ([CLEAN, RESIDUAL], True),
            ([unverified], None),
            ([CLEAN, unverified], None),
            ([], None),
        ):
            assert bench.facts(events=rows(*given)).off_ccl_residual is expected
        assert bench.facts(events=EventRows([None])).off_ccl_residual is None

    def test_skill_events(self, bench: Bench) -> None:
        found = bench.facts(events=rows(skill_events(ORACLE)))
        assert (found.skill_events_verifiable, found.skill_event_shape) == (True, None)
        found = bench.facts(events=rows(UNVERIFIABLE))
        assert (found.skill_events_verifiable, found.skill_event_shape) == (
            False,
            "claude-code:driver_shape_unregistered",
        )
        found = bench.facts(events=EventRows((), [None]))
        assert (found.skill_events_verifiable, found.skill_event_shape) == (False, "malformed_row")

    def test_matched_calls(self, bench: Bench) -> None:
        for given, expected in (
            ([skill_events(ORACLE)], True),
            ([skill_events("another-bundle")], False),
            ([skill_events()], False),
            ([skill_events(ORACLE, first_task_tool=0)], False),
            ([UNVERIFIABLE], False),
            ([], None),
        ):
            assert bench.facts(events=rows(*given)).matched_call_compliant is expected

    def test_arms_in_which_no_call_is_judged(self, bench: Bench) -> None:
        stored = bench.stored(events=rows(skill_events(ORACLE)))
        for context in (
            replace(bench.context, calls_are_matched=False),
            replace(bench.context, bundle_id=None),
        ):
            assert facts(stored, context).matched_call_compliant is None


class TestAccounts:
    @pytest.mark.parametrize(
        ("budget", "used", "expected"),
        [
            (trials.UNLIMITED, trials.NOTHING, True),
            (trials.LIMITED, trials.NOTHING | {"tokens": 1000}, True),
            (trials.LIMITED, trials.NOTHING | {"tokens": 1001}, False),
            (trials.LIMITED, None, False),
            (trials.UNLIMITED, None, None),
        ],
    )
    def test_what_was_used(
        self, bench: Bench, budget: Anything, used: Anything, *, expected: bool | None
    ) -> None:
        """T42: within its limits, over one, unaccounted for under a limit, and without either."""
        cursor = None if used is None else {"next_run_order": 1, "consumed_budget": used}
        found = bench.facts({"budget": budget, "resume_cursor": cursor})
        assert found.budget_complete is expected

    def test_an_outcome_without_a_payload_says_nothing(self, bench: Bench) -> None:
        for outcome, expected in (
            (None, None),
            ({"answer": "S1"}, None),
            ({"judge_payload": "fine"}, False),
            ({"judge_payload": None}, False),
            ({"judge_payload": {"note": "arm S1 did it"}}, True),
        ):
            assert bench.facts(outcome=outcome).blinding_leak is expected

    def test_proofs(self, bench: Bench) -> None:
        isolation = bench.stored().isolation
        assert isolation is not None
        for item, files, memory in (
            (WaivableItem.COMPLETE_ACCESS_AUDIT, None, True),
            (WaivableItem.ACCESS_ROOT_ENFORCEMENT, None, True),
            (WaivableItem.MEMORY_ISOLATION_PROOF, True, None),
            (WaivableItem.PROVIDER_SIDE_PERSISTENCE_PROOF, True, None),
        ):
            lacking = isolation.model_copy(update={"coverage_limitations": (item,)})
            found = bench.facts(isolation=lacking)
            assert (found.access_audit_ok, found.memory_isolation_ok) == (files, memory)
            assert found.missing_proofs == {item}
