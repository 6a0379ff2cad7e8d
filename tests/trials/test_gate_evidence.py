from __future__ import annotations

import errno
import json
import shutil
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.faults import FileError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.errors import ProtocolCode, ProtocolError
from skill_effectiveness.protocol.resources import frozen_folder
from skill_effectiveness.providers import CallOutcome
from skill_effectiveness.providers import Ending as CallEnding
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.gate_evidence import Expected, evaluate_bundle
from skill_effectiveness.trials.gate_words import (
    EvidenceSource,
    FailureCode,
    GateStatus,
    NextAction,
    NotEvaluated,
    TierStatus,
)
from skill_effectiveness.trials.models import TrialKey
from skill_effectiveness.trials.pilot_errors import PilotCode, PilotError
from skill_effectiveness.trials.pilot_records import CLAIMS
from skill_effectiveness.trials.trial_reading import StoredTrials
from tests.support import gates, trials
from tests.support.controller import EVIDENCE, RESULT, Controller
from tests.support.examinations import INPUTS, Scripted
from tests.support.gates import SIX, facts_of
from tests.support.pilots import (
    FROZEN,
    ORACLE,
    RESIDUAL,
    UNVERIFIABLE,
    Ending,
    Pilot,
    grade,
    many,
    pair_bytes,
    probe_file,
    skill_events,
)
from tests.support.private import content
from tests.support.trials import CONTENT, PROFILE, put

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.protocol.gates import WaivableItem
    from skill_effectiveness.providers import JudgeCall
    from skill_effectiveness.trials.gate_result import GateResult
    from tests.support.pilots import Anything

F = FailureCode
OFF = TrialKey("task-a", "profile-off", 1)
FULL = TrialKey("task-a", "profile-full", 1)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pilot whose every trial ended well, and its bundle; copied by whoever spoils it."""
    folder = tmp_path_factory.mktemp("finished")
    pilot = Pilot(folder)
    pilot.run()
    pilot.write(sealed=True)
    return folder


@pytest.fixture
def pilot(finished: Path, tmp_path: Path) -> Pilot:
    """A copy of it; a store that moved stays what it was."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return Pilot(tmp_path)


def with_ending(folder: Path, ending: Ending, key: TrialKey = FULL) -> Pilot:
    pilot = Pilot(folder, CONTENT if key.arm_id.startswith("S") else PROFILE)
    with pilot.store() as store:
        for each in pilot.trials():
            pilot.end(store, each, ending if each == key else Ending())
    pilot.write()
    return pilot


def codes(result: GateResult) -> set[str]:
    return {text.split(":")[0] for text in result.failures}


class TestASoundPilot:
    def test_passes_and_lists_what_it_does_without(self, pilot: Pilot) -> None:
        """T45: the two things that no profile trial can prove."""
        found = pilot.evaluate()
        assert found.result.status is GateStatus.PASS
        assert found.result.evidence_tier.verdict_tier == "advisory-paired"
        assert found.result.evidence_tier.coverage_limitations == ("live_matched_call_gate", "mount_evidence")
        assert found.result.evidence_source is EvidenceSource.TRIAL_STORE
        assert found.facts is not None
        assert (found.facts.status, found.facts.trial_count, found.facts.synthetic) == ("pass", 12, False)

    def test_a_void_trial_hides_no_breach(self, tmp_path: Path) -> None:
        """T18 T63: what was observed in it counts, although it counts for no arm otherwise."""
        pilot = Pilot(tmp_path, samples=4)
        with pilot.store() as store:
            for key in pilot.trials():
                seen = trials.SAFE | {"canary_leak_detected": True}
                void = Ending(status="failed", stop_reason="void", isolation=seen)
                pilot.end(store, key, void if key == FULL else Ending())
        pilot.write()
        result = pilot.evaluate().result
        assert F.ARM_CONTAMINATION_GAP in codes(result)
        assert result.metrics.void_trials == 0

    def test_evaluates_from_sealed_copies_without_the_store(self, pilot: Pilot) -> None:
        """T49: the store may be gone."""
        shutil.rmtree(pilot.place.root)
        found = pilot.evaluate(stored=False)
        assert found.result.status is GateStatus.PASS
        assert found.result.evidence_source is EvidenceSource.SEALED_COPIES

    def test_a_moved_store_evaluates(self, pilot: Pilot) -> None:
        """T9: places are bound by the store's identity, not by its path."""
        assert pilot.evaluate().result.status is GateStatus.PASS

    def test_no_gate_result_changes_with_an_adjudication(self, pilot: Pilot) -> None:
        """T62: what people say beside the machine is no input of a verdict."""
        before = pilot.evaluate().result
        folder = pilot.place.root / "adjudication" / ("pair-" + 64 * "a")
        folder.mkdir(parents=True, mode=0o700)
        folder.parent.chmod(0o700)
        said = {
            "pair_id": "pair-" + 64 * "a",
            "grader_id": "person-1",
            "verdict": "B win",
            "reason": "It is better.",
            "rubric_version": "1",
            "confidence": "high",
            "needs_adjudication": False,
        }
        put(folder / "person-1.json", json.dumps(said).encode())
        assert pilot.evaluate().result == before

    @pytest.mark.slow
    def test_each_trial_is_opened_exactly_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """T48: 5,000 trials, counted where a trial's folder is opened."""
        pilot = many(tmp_path, 5_000)
        opened: Counter[TrialKey] = Counter()
        really = StoredTrials.trial

        def counted(self: StoredTrials, key: TrialKey) -> PrivateRoot | None:
            opened[key] += 1
            return really(self, key)

        monkeypatch.setattr(StoredTrials, "trial", counted)
        result = pilot.evaluate().result
        assert result.status is GateStatus.PASS
        assert result.metrics.trials == len(opened) == 5_000
        assert set(opened.values()) == {1}

    def test_a_pair_finalized_sample_by_sample_enters(self, pilot: Pilot, tmp_path: Path) -> None:
        """R20: sampled twice and finalized through the door of the single-sample protocol, then bundled."""
        controller = Controller(tmp_path / "reviewer", reviewer=Scripted(knowing))
        controller.folder.mkdir(mode=0o700)
        assert [controller.sample(name).word for name in ("s-1", "s-2")] == ["ok", "ok"]
        assert controller.finalize().word == "ok"
        published = controller.root / "calibration"
        shutil.rmtree(pilot.bundle)
        pilot.write(pairs=[((published / EVIDENCE).read_bytes(), (published / RESULT).read_bytes())])
        found = pilot.evaluate().result
        assert found.status is GateStatus.PASS
        calibration = found.model_dump(mode="json")["calibration"]
        assert (calibration["status"], calibration["reviewer_families"]) == ("pass", ["family-1"])


def knowing(_number: int, call: JudgeCall) -> CallOutcome:
    """A reviewer that knows the answers, whichever way round a case is shown."""
    right = {}
    for case, verdict in zip(INPUTS.bank.cases, INPUTS.bank.truth, strict=True):
        right[case.candidate_a, case.candidate_b] = verdict.value
        right[case.candidate_b, case.candidate_a] = verdict.turned().value
    shown = json.loads(call.prompt.rstrip().rsplit("\n", 1)[1])["cases"]
    judged = [{"case": each["case"], "verdict": right.get((each["A"], each["B"]), "tie")} for each in shown]
    return CallOutcome(CallEnding.SUCCESS, answer=json.dumps({"judgments": judged}))


class TestWhatIsOnDisk:
    """Every value of a row is derived from the trial."""

    def test_twelve_invented_rows_and_no_trial(self, pilot: Pilot) -> None:
        """T41: the rows say that all is well, and nothing is there."""
        shutil.rmtree(pilot.place.root / "trials")
        result = pilot.evaluate().result
        assert result.metrics.records == 12
        assert result.status is GateStatus.FAIL
        assert {F.TRIAL_EVIDENCE_BINDING, F.ARM_SYSTEMIC_RUNNER_FAILURE} <= codes(result)
        assert set(result.not_evaluated_checks) == set(NotEvaluated) - {
            NotEvaluated.PROVIDER_CAPABILITY_MATRIX
        }
        assert result.metrics.contradicted == {"missing": 12}

    ENDINGS: dict[str, tuple[Ending, TrialKey, set[str]]] = {  # noqa: RUF012 - read only
        "contaminated": (
            Ending("contaminated"),
            FULL,
            {
                F.TOTAL_CONTAMINATION_RATE,
                F.ARM_CONTAMINATION_GAP,
                F.RUNNER_COMPLETION_RATE,
                F.ARM_RUNNER_COMPLETION_RATE,
            },
        ),
        "failed": (
            Ending("failed", "timeout"),
            FULL,
            {F.RUNNER_COMPLETION_RATE, F.ARM_RUNNER_COMPLETION_RATE},
        ),
        "void": (Ending("failed", "void"), FULL, {F.INSUFFICIENT_TASK_ARM_SAMPLES}),
        "residual": (Ending(events=[RESIDUAL, skill_events()]), OFF, {F.OFF_CCL_LAYER_RESIDUAL}),
        "residual of a treated arm": (Ending(events=[RESIDUAL, skill_events()]), FULL, set()),
        "unverifiable": (
            Ending(events=[gates_clean := {**RESIDUAL, "status": "clean", "layers": []}, UNVERIFIABLE]),
            FULL,
            {F.SKILL_EVENT_UNVERIFIABLE_RATE},
        ),
        "malformed skill row": (
            Ending(events=[gates_clean, {"event_contract": "skill-events-v2", "events": 1}]),
            FULL,
            {F.SKILL_EVENT_UNVERIFIABLE_RATE},
        ),
        "two skill rows": (
            Ending(events=[gates_clean, skill_events(), skill_events()]),
            FULL,
            {F.SKILL_EVENT_UNVERIFIABLE_RATE},
        ),
        "leak": (Ending(outcome={"judge_payload": {"answer": "as profile-full I"}}), FULL, {F.BLINDING_LEAK}),
        "owner leak": (
            Ending(outcome={"judge_payload": {"answer": "I used demo:refactoring"}}),
            FULL,
            {F.BLINDING_LEAK},
        ),
        "late call": (
            Ending(events=[gates_clean, skill_events(ORACLE, first_task_tool=0) | {"driver": "opencode"}]),
            TrialKey("task-a", "S1", 1),
            {F.MATCHED_CALL_COMPLIANCE},
        ),
        "no call": (
            Ending(events=[gates_clean, skill_events()]),
            TrialKey("task-a", "S1", 1),
            {F.MATCHED_CALL_COMPLIANCE},
        ),
    }

    @pytest.mark.parametrize("name", ENDINGS)
    def test_how_a_trial_ended(self, name: str, tmp_path: Path) -> None:
        """T42 T55 T63: each failure out of files that a runner could have left."""
        ending, key, expected = self.ENDINGS[name]
        result = with_ending(tmp_path, ending, key).evaluate().result
        causal = {F.CAUSAL_CORE_UNAVAILABLE, F.REQUIRED_EVIDENCE_NOT_EVALUATED}
        assert codes(result) - (causal if key.arm_id == "S1" else set()) == expected

    ABSENT: dict[str, tuple[Ending, NotEvaluated]] = {  # noqa: RUF012 - read only
        "no residual row": (
            Ending(events=[skill_events()]),
            NotEvaluated.OFF_RUNTIME_RESIDUAL_EVIDENCE,
        ),
        "residual unverified": (
            Ending(events=[RESIDUAL | {"status": "unverified", "layers": []}, skill_events()]),
            NotEvaluated.OFF_RUNTIME_RESIDUAL_EVIDENCE,
        ),
        "no skill row": (Ending(events=[gates_clean]), NotEvaluated.SKILL_EVENT_VERIFIABILITY),
        "no payload": (Ending(outcome={"answer": "42"}), NotEvaluated.BLINDING_LEAK),
    }

    @pytest.mark.parametrize("name", ABSENT)
    def test_what_a_trial_does_not_say(self, name: str, tmp_path: Path) -> None:
        """T42: absent is not evaluated, never a pass."""
        ending, check = self.ABSENT[name]
        result = with_ending(tmp_path, ending, OFF).evaluate().result
        assert check in result.not_evaluated_checks
        assert codes(result) == {F.REQUIRED_EVIDENCE_NOT_EVALUATED}
        assert result.decision.next_action is NextAction.COLLECT

    def test_grades(self, pilot: Pilot) -> None:
        """T42 T57: absent, different, contradictory, and of another trial."""
        stored = pilot.place.document(FULL)["trial_fingerprint"]
        folder = pilot.place.trial(FULL) / "grading"
        cases: list[tuple[Anything, set[str]]] = [
            ((grade(stored), grade(stored, passed=False)), {F.DETERMINISTIC_GRADER_REPLAY}),
            ((grade(stored, checks=[]), grade(stored)), {F.DETERMINISTIC_GRADER_REPLAY}),
            ((grade(stored) | {"passed": False}, grade(stored)), {F.DETERMINISTIC_GRADER_REPLAY}),
            ((grade(trials.digest("9")), grade(trials.digest("9"))), {F.DETERMINISTIC_GRADER_REPLAY}),
            ((grade(stored), grade(stored)), set()),
        ]
        for both, expected in cases:
            pilot.edit_records(lambda rows: [row | {"deterministic_replay_match": None} for row in rows])
            pilot.put_grades(FULL, both)
            assert codes(pilot.evaluate().result) == expected
        (folder / "grade-replay.json").unlink()
        result = pilot.evaluate().result
        assert NotEvaluated.DETERMINISTIC_GRADER_REPLAY in result.not_evaluated_checks

    @pytest.mark.parametrize(
        ("missing", "item"),
        [
            ({"fresh_session": None}, "memory_isolation_proof"),
            ({"provider_persistence": "unverified"}, "provider_side_persistence_proof"),
        ],
    )
    def test_a_missing_proof_is_a_limitation(
        self, missing: dict[str, Anything], item: str, tmp_path: Path
    ) -> None:
        """T45: as the completion recorded it, and needed where the configuration waives less."""
        pilot = with_ending(tmp_path, Ending(isolation=trials.SAFE | missing))
        result = pilot.evaluate().result
        assert result.status is GateStatus.PASS
        assert item in result.evidence_tier.coverage_limitations

    @pytest.mark.parametrize(
        ("field", "item"), [("audited", "complete_access_audit"), ("enforced", "access_root_enforcement")]
    )
    def test_a_missing_file_proof_is_a_limitation(self, field: str, item: str, tmp_path: Path) -> None:
        """T45: and under a configuration without that waiver the gate fails."""
        ending = Ending(**{field: False})
        pilot = with_ending(tmp_path, ending)
        assert item in pilot.evaluate().result.evidence_tier.coverage_limitations
        config = config_waiving(*(each.value for each in SIX if each.value != item))
        shutil.rmtree(pilot.bundle)
        pilot.config = config
        pilot.write()
        result = pilot.evaluate().result
        assert codes(result) == {F.REQUIRED_EVIDENCE_NOT_EVALUATED}
        assert result.evidence_tier.tier_status is TierStatus.NOT_MET

    def test_a_changed_outcome_unmakes_the_completion(self, pilot: Pilot) -> None:
        """T44: the binding is computed again, and what a row says of it does not matter."""
        put(pilot.place.trial(FULL) / "outcome" / "result.json", b'{"judge_payload":{"answer":"43"}}')
        result = pilot.evaluate().result
        assert F.TRIAL_EVIDENCE_BINDING in codes(result)
        assert result.metrics.contradicted["completion"] == 1
        assert result.metrics.runner_completion.part == 11

    def test_a_breach_beside_a_completion(self, pilot: Pilot) -> None:
        """T41: a trial that somebody called complete all the same."""
        for kinds, code in (
            (["read_outside_roots"], F.TRIAL_FILE_ISOLATION),
            (["canary_leak_detected"], F.CROSS_TRIAL_MEMORY_ISOLATION),
        ):
            put(pilot.place.trial(FULL) / "breach.json", json.dumps({"breaches": kinds}).encode())
            result = pilot.evaluate().result
            assert {code, F.TRIAL_EVIDENCE_BINDING, F.TOTAL_CONTAMINATION_RATE} <= codes(result)
            assert result.metrics.breached_completions == 1
        put(pilot.place.trial(FULL) / "breach.json", b"?")
        assert {F.TRIAL_FILE_ISOLATION, F.CROSS_TRIAL_MEMORY_ISOLATION} <= codes(pilot.evaluate().result)

    @pytest.mark.parametrize(
        "edit",
        [
            {"arm_id": "profile-off"},
            {"sample_index": 2},
            {"manifest_hash": trials.digest("9")},
            {"runtime": trials.RUNTIME},
            {"trial_fingerprint": trials.digest("9")},
            {"trial_location_hash": trials.digest("9")},
            {"registry_plan_hash": trials.digest("9")},
            {"registry_schema": "skill-content"},
            {"registry_schema": ...},
            {"budget": trials.LIMITED},
        ],
    )
    def test_an_edited_trial_is_not_the_planned_one(self, pilot: Pilot, edit: dict[str, Anything]) -> None:
        """T44: each fixed field of a trial."""
        pilot.place.edit(FULL, **edit)
        assert F.TRIAL_EVIDENCE_BINDING in codes(pilot.evaluate().result)

    @pytest.mark.parametrize("claim", CLAIMS)
    def test_each_claim_against_the_disk(self, pilot: Pilot, claim: str) -> None:
        """T44: rows that say something else than the files."""
        said = {"runner_failure_reason": "timeout", "skill_event_shape": "no_result"}.get(claim)
        good = getattr(facts_of(gates.OFF), claim, True)
        contrary: Anything = said if said is not None else not good
        if claim == "matched_call_compliant":
            contrary = True

        def edit(rows: list[Anything]) -> list[Anything]:
            return [row | {claim: contrary} if index == 0 else row for index, row in enumerate(rows)]

        pilot.edit_records(edit)
        result = pilot.evaluate().result
        if claim == "matched_call_compliant":
            # No profile trial has one: the claim has nothing behind it and counts as absent.
            assert result.status is GateStatus.PASS
            assert result.metrics.claims_without_evidence == 1
        else:
            assert codes(result) == {F.TRIAL_EVIDENCE_BINDING}
            assert result.metrics.contradicted == {claim: 1}

    def test_rows_that_are_none_twice_or_elsewhere(self, pilot: Pilot) -> None:
        """T42: as the bundle's own digests cannot find them."""
        pilot.edit_records(lambda rows: [*rows[1:], rows[1], {"task_id": 1}, rows[0] | {"sample_index": 9}])
        result = pilot.evaluate().result
        assert codes(result) == {
            F.DUPLICATE_TRIAL_RECORD,
            F.TRIAL_RECORD_IDENTITY_INVALID,
            F.TRIAL_PLAN_MEMBERSHIP_MISMATCH,
        }
        assert "trial_record_identity_invalid:12" in result.failures

    def test_rows_in_another_order(self, pilot: Pilot) -> None:
        """T42: though each of them says the truth."""
        pilot.edit_records(lambda rows: [rows[1], rows[0], *rows[2:]])
        assert codes(pilot.evaluate().result) == {F.TRIAL_EXECUTION_ORDER}

    def test_no_rows_at_all(self, pilot: Pilot) -> None:
        """T42: an empty bundle is no pass."""
        pilot.edit_records(lambda _rows: [])
        assert {F.NO_TRIAL_RECORDS, F.TRIAL_PLAN_MEMBERSHIP_MISMATCH} == codes(pilot.evaluate().result)

    def test_what_is_no_trial_of_ours(self, pilot: Pilot) -> None:
        """T41: a link, an open folder, a file of everybody."""
        place = pilot.place.trial(FULL)
        place.rename(place.with_name("elsewhere"))
        place.symlink_to(place.with_name("elsewhere"))
        assert pilot.evaluate().result.metrics.contradicted == {"missing": 1}
        place.unlink()
        place.with_name("elsewhere").rename(place)
        (place / "trial.json").chmod(0o644)
        assert pilot.evaluate().result.metrics.contradicted == {"missing": 1}

    FILES = (
        "trial.json",
        "events.jsonl",
        "access-audit.jsonl",
        "outcome/result.json",
        "grading/grade.json",
        "grading/grade-replay.json",
    )

    @pytest.mark.parametrize("name", FILES)
    @pytest.mark.parametrize("spoil", ["public", "link", "folder", "gone", "garbage", "empty"])
    def test_no_file_of_a_trial_can_break_the_gate(self, pilot: Pilot, name: str, spoil: str) -> None:
        """T41: whatever lies in its place, the answer is a verdict, and it is no pass."""
        path = pilot.place.trial(FULL) / name
        match spoil:
            case "public":
                path.chmod(0o644)
            case "link":
                path.rename(path.with_name("other"))
                path.symlink_to("other")
            case "folder":
                path.unlink()
                path.mkdir(mode=0o700)
            case "gone":
                path.unlink()
            case "garbage":
                put(path, b"\x00\xff{")
            case _:
                put(path, b"")
        result = pilot.evaluate().result
        assert result.status is GateStatus.FAIL
        assert codes(result) & {
            F.TRIAL_EVIDENCE_BINDING,
            F.REQUIRED_EVIDENCE_NOT_EVALUATED,
            F.DETERMINISTIC_GRADER_REPLAY,
        }

    @pytest.mark.parametrize("name", ["outcome", "grading", "breach.json"])
    def test_nor_can_a_folder(self, pilot: Pilot, name: str) -> None:
        """T41: one that others may enter, or one in the place of the breach mark."""
        path = pilot.place.trial(FULL) / name
        path.mkdir(mode=0o700, exist_ok=True)
        path.chmod(0o755)
        assert pilot.evaluate().result.status is GateStatus.FAIL

    def test_trouble_of_the_disk_is_no_verdict(self, pilot: Pilot) -> None:
        fs = FaultFs(
            RealFs(), Injection("open_read", errno.EIO, nth=1, about=lambda path: path.endswith("grade.json"))
        )
        pilot.fs = fs
        with pytest.raises(FileError):
            pilot.evaluate()


class TestReviewers:
    def test_two_families_in_one_bundle(self, pilot: Pilot) -> None:
        """T47: agreement and kappa are computed over both pairs."""
        shutil.rmtree(pilot.bundle)
        pilot.write(pairs=[pair_bytes("x"), pair_bytes("y")])
        shown = pilot.evaluate().result.model_dump(mode="json")["calibration"]
        assert shown["reviewer_families"] == ["x", "y"]
        assert [pair["kappa"] for pair in shown["pairwise_metrics"]] == [1.0]

    @pytest.mark.parametrize(
        ("edit", "code"),
        [
            ({"status": "not_evaluated_synthetic"}, F.SYNTHETIC_CALIBRATION_ON_NON_SYNTHETIC_RUN),
            ({"status": "pending"}, F.CALIBRATION_STATUS_INVALID),
            ({"known_answer_fixture_hash": trials.digest("9")}, F.CALIBRATION_EVIDENCE_INVALID),
        ],
    )
    def test_a_pair_that_does_not_count(self, pilot: Pilot, edit: dict[str, Anything], code: str) -> None:
        """T42: bound by the bundle, refused by the loader: evidence against the reviewers."""
        path = pilot.bundle / "reviewer-calibration.json"
        changed = json.loads(path.read_bytes()) | edit
        put(path, json.dumps(changed).encode())
        pilot.edit_bundle(calibration_hash=digest_object(changed))
        result = pilot.evaluate().result
        assert code in codes(result)
        assert F.REVIEWER_CALIBRATION_FAMILY_COUNT in codes(result)

    def test_a_further_pair_of_another_family(self, pilot: Pilot) -> None:
        """T42: the folder's name is the family it has to be about."""
        shutil.rmtree(pilot.bundle)
        pilot.write(pairs=[pair_bytes("x"), pair_bytes("y")])
        (pilot.bundle / "calibrations" / "y").rename(pilot.bundle / "calibrations" / "z")
        document = json.loads((pilot.bundle / "bundle.json").read_bytes())
        pilot.edit_bundle(calibrations=[document["calibrations"][0] | {"reviewer_family": "z"}])
        assert codes(pilot.evaluate().result) == {F.CALIBRATION_EVIDENCE_INVALID}


class TestTiers:
    def test_causal_without_capability_rows_never_passes(self, tmp_path: Path) -> None:
        """T41 T46: neither without probe files."""
        pilot = Pilot(tmp_path, CONTENT)
        pilot.run()
        pilot.write()
        result = pilot.evaluate().result
        assert codes(result) == {F.CAUSAL_CORE_UNAVAILABLE, F.REQUIRED_EVIDENCE_NOT_EVALUATED}
        assert result.evidence_tier.tier_status is TierStatus.CAUSAL_CORE_UNAVAILABLE

    @pytest.mark.parametrize(
        ("families", "provider", "passes"),
        [
            (["implementation", "review"], "codex", True),
            (["implementation"], "codex", False),
            (["implementation", "review"], "claude", False),
            (["implementation", "review"], "none", False),
        ],
    )
    def test_causal_needs_an_eligible_row_for_each_family(
        self, families: list[str], provider: str, *, passes: bool, tmp_path: Path
    ) -> None:
        """T46: of the very provider, read back from files."""
        pilot = Pilot(tmp_path, CONTENT)
        pilot.run()
        pilot.write(probes=[probe_file(family, provider) for family in families])
        result = pilot.evaluate().result
        assert (result.status is GateStatus.PASS) is passes
        if passes:
            assert result.evidence_tier.verdict_tier == "causal"
            assert result.evidence_tier.coverage_limitations == ()

    def test_a_permissive_gate_file_is_refused(self, pilot: Pilot) -> None:
        """T41 T7: no threshold is the caller's."""
        config = json.loads(json.dumps(frozen_config()))
        config["thresholds"]["samples_per_task_arm_min"] = 1
        with pytest.raises(ProtocolError) as caught:
            pilot.evaluate(config=config)
        assert caught.value.code is ProtocolCode.GATES_CHANGED

    @pytest.mark.parametrize("item", SIX)
    def test_no_caller_waives_more_than_the_frozen_gates(self, pilot: Pilot, item: WaivableItem) -> None:
        """T24 T41: each waiver that frozen gates leave out is refused in a caller's."""
        tier = gates.ADVISORY.model_copy(update={"waived_items": tuple(each for each in SIX if each != item)})
        inputs = replace(INPUTS, gates=FROZEN.model_copy(update={"evidence_tier": tier}))
        expected = Expected(frozen_config(), pilot.expected.tasks, pilot.expected.manifests, pilot.rows)
        with pilot.root() as root, pytest.raises(ProtocolError) as caught:
            evaluate_bundle(root, expected, inputs)
        assert caught.value.code is ProtocolCode.GATES_CHANGED
        assert caught.value.where == "pilot-gates#/evidence_tier/waived_items"
        assert item in caught.value.sentence

    def test_a_tier_is_not_chosen(self, pilot: Pilot) -> None:
        """T23: it follows from the registry."""
        config = frozen_config() | {
            "evidence_tier": {"schema_version": 1, "requested_tier": "causal", "waived_items": []}
        }
        with pytest.raises(PilotError) as caught:
            pilot.evaluate(config=config)
        assert caught.value.code is PilotCode.TIER_MISMATCH

    def test_advisory_verdicts_need_gates_that_declare_them(self, pilot: Pilot) -> None:
        """T28: the frozen file decides whether they exist."""
        causal = FROZEN.model_copy(update={"evidence_tier": gates.CAUSAL})
        inputs = replace(INPUTS, gates=causal)
        with pilot.root() as root, pytest.raises(TrialError) as caught:
            evaluate_bundle(
                root,
                Expected(frozen_config(), pilot.expected.tasks, pilot.expected.manifests, pilot.rows),
                inputs,
            )
        assert caught.value.code is TrialCode.REGISTRY_MISMATCH

    def test_no_bundle_is_no_pass(self, pilot: Pilot) -> None:
        """T42: a live evaluation without one."""
        result = evaluate_bundle(None, pilot.expected, INPUTS).result
        assert F.LOCAL_EVIDENCE_BUNDLE_REQUIRED in result.failures
        assert result.evidence_source is EvidenceSource.NONE
        assert result.decision.next_action is NextAction.PERSIST

    @pytest.mark.parametrize(
        "provider", ["simulated", "none", "Simulated", " NONE\t", "simulated\u200b", "s\u0456mulated"]
    )
    def test_a_simulated_agent_makes_a_synthetic_run(self, tmp_path: Path, provider: str) -> None:
        """T64: however well its trials look, and however the word is written."""
        pilot = Pilot(tmp_path, provider=provider)
        pilot.run()
        pilot.write()
        found = pilot.evaluate()
        assert found.result.status is GateStatus.NOT_EVALUATED_SYNTHETIC
        assert found.result.evidence_tier.verdict_tier is None
        assert found.facts is None


class TestNothingIsWritten:
    def test_bundle_and_store_stay_as_they_were(self, pilot: Pilot) -> None:
        pilot.evaluate()
        before = content(pilot.place.base)
        pilot.evaluate()
        pilot.evaluate(stored=False)
        assert content(pilot.place.base) == before


def frozen_config() -> dict[str, Anything]:
    document: dict[str, Anything] = json.loads((frozen_folder() / "fixtures/pilot-gates.json").read_bytes())
    return document


def config_waiving(*items: str) -> dict[str, Anything]:
    tier = {"schema_version": 1, "requested_tier": "advisory-paired", "waived_items": sorted(items)}
    return frozen_config() | {"evidence_tier": tier}
