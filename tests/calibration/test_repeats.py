from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.calibration.errors import (
    CalibrationCode,
    CalibrationError,
    ExaminationRefused,
    RefusalCode,
)
from skill_effectiveness.calibration.repeats import examine
from skill_effectiveness.calibration.reviewer import Reviewer
from skill_effectiveness.evidence.lock import Lock
from skill_effectiveness.execution import (
    ExecutableCode,
    ExecutableError,
)
from skill_effectiveness.protocol.words import BankName
from skill_effectiveness.providers import SimulatedSettings
from tests.support.examinations import (
    MANIFEST,
    OTHER,
    PERFECT,
    PLAN,
    Anything,
    Scripted,
    always,
    open_out,
    run_examination,
    simulated,
)
from tests.support.frozen import CopiedFs
from tests.support.private import content, wrong_modes
from tests.support.repeats import REAL, ask, failing_at, refused

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.execution import Executable


@pytest.fixture
def out(tmp_path: Path) -> PrivateRoot:
    return open_out(tmp_path)


class TestAnExamination:
    def test_leaves_the_folder_of_section_7(self, out: PrivateRoot, tmp_path: Path) -> None:
        done = run_examination(out)
        assert (done.execution_status, done.calibration_status, done.calls) == ("evaluated", "pass", 2)
        assert done.result == "reviewer-calibration-result.json"
        assert {name for name in content(tmp_path / "out") if "/" not in name} == {
            ".examination.lock",
            ".reviewer-calibration.lock",
            "reviewer-calibration-binding.json",
            "reviewer-calibration.json",
            "reviewer-calibration-result.json",
            "reviewer-calibration-metrics.json",
        }
        assert {path.name for path in (tmp_path / "out/attempts").iterdir()} == {"r01-a1", "r02-a1"}
        assert wrong_modes(tmp_path / "out") == []

    def test_a_failed_gate_is_published_and_said(self, out: PrivateRoot) -> None:
        """R41: a failed reviewer is an outcome, not an error."""
        done = run_examination(out, simulated(SimulatedSettings(accuracy=0.5, seed=7)))
        assert done.calibration_status == "fail"
        assert out.exists("reviewer-calibration-result.json")
        assert done.calibration.result.calibration_evaluation.failures  # type: ignore[union-attr]

    def test_the_labels_of_a_real_reviewer(self, out: PrivateRoot) -> None:
        """R32: and no sign of a simulation."""
        result = ask(out, Scripted(always("tie"))).calibration.result
        assert (result.requested_session_mode, result.tool_access) == ("ephemeral", "read-only-observed-none")
        assert result.runner_contract == "codex-cli-reviewer-calibration-v1"
        assert (result.synthetic, result.simulation) == (None, None)

    def test_the_labels_of_a_simulated_reviewer(self, out: PrivateRoot) -> None:
        """R32 R43: synthetic, with its five settings."""
        result = run_examination(out).calibration.result
        assert (result.requested_session_mode, result.tool_access) == ("simulated", "none")
        assert result.runner_contract == "simulated-cli-reviewer-calibration-v1"
        assert result.synthetic is True
        assert result.simulation is not None
        assert result.simulation.model_dump() == {
            "accuracy": 1.0,
            "position_bias": 0.0,
            "flakiness": 0.0,
            "refusal_rate": 0.0,
            "seed": 7,
        }

    def test_equal_settings_and_seed_give_equal_answers(self, tmp_path: Path) -> None:
        """R44: whatever keys the samples were shown under."""
        settings = SimulatedSettings(accuracy=0.6, flakiness=0.3, seed=11)
        first, second = (
            run_examination(open_out(tmp_path, name=name), simulated(settings)).calibration.evidence
            for name in ("one", "two")
        )
        assert first == second

    def test_position_bias_shows_in_the_sheet(self, out: PrivateRoot, tmp_path: Path) -> None:
        """R44 R5: a reviewer that always takes the first seat is found out, and scores as chance does."""
        done = run_examination(out, simulated(SimulatedSettings(accuracy=1.0, position_bias=1.0, seed=1)))
        sheet = json.loads((tmp_path / "out/reviewer-calibration-metrics.json").read_bytes())
        position = sheet["reviewers"][0]["position"]
        assert position["first_seat"] == {"part": 48, "whole": 48, "value": 1}
        assert position["flips"]["part"] == position["flips"]["whole"]
        assert done.calibration_status == "fail"

    def test_the_keys_stay_in_their_files(self, out: PrivateRoot, tmp_path: Path) -> None:
        """E51: no orientation key occurs anywhere else, raw or in hex."""
        run_examination(out)
        files = content(tmp_path / "out")
        keys = [files.pop(name) for name in list(files) if name.endswith(".orientation.key")]
        assert len(set(keys)) == 2
        for data in files.values():
            assert not any(key in data or key.hex().encode() in data for key in keys)

    def test_the_probes_are_published_under_their_own_names(self, out: PrivateRoot, tmp_path: Path) -> None:
        """No gate decides the probes: their table is for the licence."""
        reviewer = simulated(PERFECT, bank=BankName.BIAS_PROBE)
        done = run_examination(out, reviewer, replace(PLAN, bank=BankName.BIAS_PROBE, repeats=3))
        assert (done.execution_status, done.calibration_status) == ("evaluated", "not_applicable")
        assert done.result == "bias-probe-result.json"
        result = json.loads((tmp_path / "out/bias-probe-result.json").read_bytes())
        assert result["calibration_evaluation"]["passed"] is True
        assert result["calibration_evidence"] == "bias-probe.json"
        assert not out.exists("reviewer-calibration.json")
        assert (
            run_examination(
                out, reviewer, replace(PLAN, bank=BankName.BIAS_PROBE, repeats=3), resume=True
            ).calls
            == 0
        )

    def test_whoever_waits_is_told_in_order(self, out: PrivateRoot) -> None:
        told: list[Any] = []

        class Notes:
            def __getattr__(self, name: str) -> Callable[..., None]:
                return lambda *arguments: told.append((name, *arguments))

        provider = Scripted(failing_at(2))
        with pytest.raises(ExaminationRefused):
            ask(out, provider, observer=Notes())
        ask(out, provider, resume=True, observer=Notes())
        assert [step for step in told if step[0] != "leftovers_found"] == [
            ("repeat_started", 1, 2, 1),
            ("call_started", 220),
            ("call_ended", "success"),
            ("repeat_started", 2, 2, 1),
            ("call_started", 220),
            ("call_ended", "timeout"),
            ("repeat_kept", 1, 2),
            ("repeat_started", 2, 2, 2),
            ("call_started", 220),
            ("call_ended", "success"),
            ("published", "fail"),
        ]


class TestPlans:
    """Nothing is written for a plan that cannot be held."""

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            ({"repeats": 1}, RefusalCode.INVALID_REPEATS),
            ({"repeats": 6}, RefusalCode.INVALID_REPEATS),
            ({"timeout_seconds": 0}, RefusalCode.INVALID_TIMEOUT),
            ({"timeout_seconds": 601}, RefusalCode.INVALID_TIMEOUT),
            ({"model": "a b"}, RefusalCode.INVALID_MODEL),
            ({"model": "m\n"}, RefusalCode.INVALID_MODEL),
            ({"reviewer_family": "a/b"}, RefusalCode.INVALID_REVIEWER_FAMILY),
            ({"reviewer_family": "other"}, RefusalCode.INVALID_REVIEWER_FAMILY),
        ],
    )
    def test_out_of_form(self, out: PrivateRoot, change: dict[str, Any], code: RefusalCode) -> None:
        assert refused(out, None, replace(PLAN, **change)).code is code
        assert out.names() == ()

    def test_settings_of_a_simulation_for_a_real_reviewer(self, out: PrivateRoot) -> None:
        """R43: what is not simulated cannot be called so, nor the other way round."""
        settings = simulated().simulation
        real = replace(Reviewer.real(Scripted(always("tie"))), simulation=settings)
        unset = replace(simulated(), simulation=None)
        assert refused(out, real, REAL).code is RefusalCode.INVALID_SIMULATION
        assert refused(out, unset).code is RefusalCode.INVALID_SIMULATION

    def test_an_adapter_that_no_loader_knows(self, out: PrivateRoot) -> None:
        class Unknown(Scripted):
            name = "unknown"

        with pytest.raises(ValueError, match="unknown"):
            run_examination(out, Reviewer.real(Unknown(always("tie"))), REAL)

    def test_a_changed_bank(self, tmp_path: Path) -> None:
        """R2: refused before anything is claimed."""
        fs = CopiedFs(tmp_path)
        path = fs.path("fixtures/reviewer-calibration-cases.json")
        path.write_bytes(path.read_bytes().replace(b"a", b"b", 1))
        out = open_out(tmp_path, fs)
        assert refused(out).code is RefusalCode.FIXTURE_INVALID
        assert not out.exists(".reviewer-calibration.lock")

    def test_a_manifest_that_cannot_be_computed(self, out: PrivateRoot) -> None:
        def broken() -> str:
            raise CalibrationError(CalibrationCode.RUNTIME_MANIFEST_UNAVAILABLE, "An entry is gone.")

        assert refused(out, manifest=broken).code is RefusalCode.RUNTIME_MANIFEST_UNAVAILABLE

    def test_a_program_that_cannot_be_named(self, out: PrivateRoot) -> None:
        class Nameless(Scripted):
            def identify(self, around: Surroundings) -> Executable:
                del around
                raise ExecutableError(ExecutableCode.MISSING, "There is no program at /opt/tool.")

        found = refused(out, Reviewer.real(Nameless(always("tie"))), REAL)
        assert found.code is RefusalCode.PROVIDER_IDENTITY_UNAVAILABLE
        assert "/opt" not in found.sentence
        assert not out.exists(".reviewer-calibration.lock")

    def test_the_manifest_is_computed_when_none_is_given(
        self, out: PrivateRoot, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            "skill_effectiveness.calibration.manifest.calibration_manifest", lambda: {"manifest_hash": OTHER}
        )
        done = examine(PLAN, simulated(), out=out)
        assert done.calibration.result.runtime_manifest_hash == OTHER


class TestOneShot:
    def test_a_second_run_is_refused(self, out: PrivateRoot) -> None:
        """R30: whatever became of the first."""
        run_examination(out)
        before = {name: out.read(name) for name in out.names() if name.endswith(".json")}
        assert refused(out).code is RefusalCode.ALREADY_CLAIMED
        assert {name: out.read(name) for name in before} == before

    @pytest.mark.parametrize("name", [".reviewer-calibration.lock", "reviewer-calibration-binding.json"])
    def test_a_claim_or_a_binding_alone_is_enough(self, out: PrivateRoot, name: str) -> None:
        """R30: also one that nobody can read."""
        out.publish(name, b"?")
        assert refused(out).code is RefusalCode.ALREADY_CLAIMED

    def test_two_at_once(self, tmp_path: Path) -> None:
        """R30: the one that comes later spends nothing."""
        reached, go_on, ends = threading.Event(), threading.Event(), []

        def wait(_sample_id: str) -> None:
            reached.set()
            assert go_on.wait(20)

        def first() -> None:
            ends.append(run_examination(open_out(tmp_path), simulated(before=wait)).calibration_status)

        thread = threading.Thread(target=first)
        thread.start()
        assert reached.wait(20)
        found = [refused(open_out(tmp_path), resume=resume).code for resume in (False, True)]
        go_on.set()
        thread.join()
        assert (found, ends) == (2 * [RefusalCode.FOLDER_BUSY], ["pass"])

    def test_a_lock_that_cannot_be_trusted(self, out: PrivateRoot, tmp_path: Path) -> None:
        (tmp_path / "out/.examination.lock").symlink_to(tmp_path)
        assert refused(out).code is RefusalCode.FOLDER_UNUSABLE

    def test_attempts_that_are_a_link(self, out: PrivateRoot, tmp_path: Path) -> None:
        provider = Scripted(failing_at(1))
        with pytest.raises(ExaminationRefused):
            ask(out, provider)
        (tmp_path / "out/attempts").rename(tmp_path / "elsewhere")
        (tmp_path / "out/attempts").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(ExaminationRefused) as caught:
            ask(out, provider, resume=True)
        assert caught.value.code is RefusalCode.FOLDER_UNUSABLE
        assert len(provider.calls) == 1


class TestResume:
    def test_of_nothing_begins(self, out: PrivateRoot) -> None:
        """One command line does for the first time and for every later one."""
        assert run_examination(out, resume=True).calls == 2

    def test_of_a_complete_examination_changes_nothing(self, out: PrivateRoot, tmp_path: Path) -> None:
        """F4: no call, the same status, the same bytes."""
        first = run_examination(out)
        before = content(tmp_path / "out")
        again = run_examination(out, resume=True)
        assert (again.calls, again.calibration_status) == (0, first.calibration_status)
        assert content(tmp_path / "out") == before

    def test_makes_exactly_the_missing_calls(self, out: PrivateRoot) -> None:
        """R28: repeat 3 of 5 failed, so three calls remain."""
        provider = Scripted(failing_at(3))
        with pytest.raises(ExaminationRefused, match="Repeat 3 of 5 failed in its attempt 1 with timeout"):
            ask(out, provider, repeats=5)
        assert len(provider.calls) == 3
        done = ask(out, provider, repeats=5, resume=True)
        assert (done.calls, len(provider.calls)) == (3, 6)
        assert done.calibration.result.repeat_count == 5

    def test_of_a_last_repeat_repeats_only_it(self, out: PrivateRoot, tmp_path: Path) -> None:
        """R28: repeats 1 to 4 are kept, byte for byte."""
        provider = Scripted(failing_at(5))
        with pytest.raises(ExaminationRefused):
            ask(out, provider, repeats=5)
        before = content(tmp_path / "out/attempts")
        assert ask(out, provider, repeats=5, resume=True).calls == 1
        after = content(tmp_path / "out/attempts")
        assert {name: after[name] for name in before} == before

    def test_leaves_a_spent_attempt_and_gives_a_new_folder(self, out: PrivateRoot, tmp_path: Path) -> None:
        """R28: the evidence of the failure stays."""
        provider = Scripted(failing_at(1))
        with pytest.raises(ExaminationRefused):
            ask(out, provider)
        ask(out, provider, resume=True)
        assert sorted(path.name for path in (tmp_path / "out/attempts").iterdir()) == [
            "r01-a1",
            "r01-a2",
            "r02-a1",
        ]
        assert not list((tmp_path / "out/attempts/r01-a1/samples").glob("r01-*"))

    def test_three_attempts_are_all(self, out: PrivateRoot) -> None:
        """A reviewer that never answers is not asked for ever."""
        provider = Scripted(failing_at(2, 3, 4, 5))
        states = []
        for resume in (False, True, True):
            with pytest.raises(ExaminationRefused) as caught:
                ask(out, provider, resume=resume)
            states.append((caught.value.code, caught.value.field))
        assert states == 3 * [(RefusalCode.REPEAT_FAILED, "timeout")]
        with pytest.raises(ExaminationRefused) as caught:
            ask(out, provider, resume=True)
        assert caught.value.code is RefusalCode.ATTEMPTS_EXHAUSTED
        assert len(provider.calls) == 4

    def test_a_repeat_refused_before_its_call_is_tried_in_place(
        self, out: PrivateRoot, tmp_path: Path
    ) -> None:
        """Nothing was spent, so no attempt is used up."""
        drifting = iter([MANIFEST, OTHER])
        provider = Scripted(always("tie"))
        with pytest.raises(ExaminationRefused) as caught:
            ask(out, provider, manifest=lambda: next(drifting))
        assert (caught.value.code, caught.value.field) == (RefusalCode.REPEAT_FAILED, "runtime_drift")
        ask(out, provider, resume=True)
        assert sorted(path.name for path in (tmp_path / "out/attempts").iterdir()) == ["r01-a1", "r02-a1"]

    def test_stops_before_a_call_when_told_to(self, out: PrivateRoot) -> None:
        provider = Scripted(always("tie"))
        with pytest.raises(ExaminationRefused) as caught:
            ask(out, provider, cancelled=lambda: bool(provider.calls))
        assert caught.value.code is RefusalCode.CANCELLED
        assert ask(out, provider, resume=True).calls == 1

    def test_is_refused_while_somebody_uses_an_attempt(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("skill_effectiveness.calibration.attempts.LOCK_WAIT_SECONDS", 0.0)
        out = open_out(tmp_path)
        run_examination(out)
        with out.child("attempts", "r01-a1") as root, Lock(root, ".sample.lock").hold(0, "other"):
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    found = refused(open_out(tmp_path), resume=True).code
                    code = 0 if found is RefusalCode.FOLDER_BUSY else 2
                finally:
                    os._exit(code)
            assert os.waitpid(pid, 0)[1] == 0


class TestBinding:
    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"model": "model-2"}, "model"),
            ({"reviewer_family": "family-2"}, "reviewer_family"),
            ({"repeats": 3}, "repeat_count"),
            ({"timeout_seconds": 30}, "timeout_seconds"),
            ({"bank": BankName.BIAS_PROBE}, "bank"),
        ],
    )
    def test_another_plan_is_refused_by_field(
        self, out: PrivateRoot, change: dict[str, Any], field: str
    ) -> None:
        """R29: and nobody is asked."""
        provider = Scripted(failing_at(2))
        with pytest.raises(ExaminationRefused):
            ask(out, provider)
        with pytest.raises(ExaminationRefused) as caught:
            run_examination(out, Reviewer.real(provider), replace(REAL, **change), resume=True)
        assert (caught.value.code, caught.value.field) == (RefusalCode.BINDING_DIFFERS, field)
        assert len(provider.calls) == 2

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"sha256": OTHER}, "provider_executable_hash"),
            ({"version": "tool 9"}, "provider_cli_version"),
        ],
    )
    def test_another_program_is_refused_by_field(
        self, out: PrivateRoot, change: dict[str, Any], field: str
    ) -> None:
        """R29: bytes and version are bound, not only the path."""
        with pytest.raises(ExaminationRefused):
            ask(out, Scripted(failing_at(2)))
        with pytest.raises(ExaminationRefused) as caught:
            ask(out, Scripted(always("tie"), **change), resume=True)
        assert (caught.value.code, caught.value.field) == (RefusalCode.BINDING_DIFFERS, field)

    @pytest.mark.parametrize("bank", list(BankName))
    @pytest.mark.parametrize(
        ("file", "change", "field"),
        [
            (
                "licence-policy",
                lambda policy: policy["probe_rules"][-1]["favoured"].update({"win_share_max": 0.9}),
                "licence_policy_hash",
            ),
            ("licence-policy", lambda policy: policy.update({"flip_rate_max": 0.9}), "licence_policy_hash"),
            (
                "pilot-gates",
                lambda gates: gates["thresholds"].update({"reviewer_known_answer_accuracy_min": 0.1}),
                "pilot_gates_hash",
            ),
        ],
        ids=["probe rule", "policy", "gates"],
    )
    def test_other_rules_are_refused_by_field(
        self, tmp_path: Path, bank: BankName, file: str, change: Anything, field: str
    ) -> None:
        """R29: nobody loosens the rules between two repeats."""
        (tmp_path / "frozen").mkdir()
        fs = CopiedFs(tmp_path / "frozen")
        out, provider = open_out(tmp_path, fs), Scripted(failing_at(2))
        plan = replace(REAL, bank=bank)
        with pytest.raises(ExaminationRefused):
            run_examination(out, Reviewer.real(provider), plan)
        fs.edit(f"fixtures/{file}.json", change)
        found = refused(out, Reviewer.real(provider), plan, resume=True)
        assert (found.code, found.field) == (RefusalCode.BINDING_DIFFERS, field)
        assert len(provider.calls) == 2

    def test_another_manifest_is_refused_by_field(self, out: PrivateRoot) -> None:
        """R29: the code that asks is bound as well."""
        run_examination(out)
        found = refused(out, resume=True, manifest=lambda: OTHER)
        assert (found.code, found.field) == (RefusalCode.BINDING_DIFFERS, "runtime_manifest_hash")

    @pytest.mark.parametrize(
        ("settings", "field"),
        [
            ({"seed": 8}, "simulation.seed"),
            ({"accuracy": 0.9}, "simulation.accuracy"),
            ({"position_bias": 0.1}, "simulation.position_bias"),
            ({"flakiness": 0.1}, "simulation.flakiness"),
            ({"refusal_rate": 0.1}, "simulation.refusal_rate"),
        ],
    )
    def test_another_simulation_is_refused_by_setting(
        self, out: PrivateRoot, settings: dict[str, Any], field: str
    ) -> None:
        """R29 R43: a simulated reviewer is its settings."""
        run_examination(out)
        changed = simulated(PERFECT.model_copy(update=settings))
        assert refused(out, changed, resume=True).field == field

    def test_another_provider_is_refused_by_field(self, out: PrivateRoot) -> None:
        """R29: the first difference is named."""
        run_examination(out)
        with pytest.raises(ExaminationRefused) as caught:
            ask(out, Scripted(always("tie")), resume=True)
        assert caught.value.field == "provider"


class TestSimulatedRefusals:
    def test_a_refusing_reviewer_is_asked_anew_in_a_new_attempt(
        self, out: PrivateRoot, tmp_path: Path
    ) -> None:
        """A refusal is drawn per attempt, so a resume is worth its call."""
        reviewer = simulated(SimulatedSettings(accuracy=1.0, refusal_rate=0.5, seed=2))
        states: list[str | None] = []
        for turn in range(7):
            try:
                done = run_examination(out, reviewer, resume=turn > 0)
            except ExaminationRefused as refusal:
                states.append(refusal.field)
            else:
                break
        assert states
        assert set(states) == {"refused"}
        assert done.calibration_status == "pass"
        endings = sorted(path.stem for path in (tmp_path / "out/endings").iterdir())
        assert len(endings) == len(states)

    def test_always_refusing_ends_after_three_attempts(self, out: PrivateRoot) -> None:
        reviewer = simulated(SimulatedSettings(accuracy=1.0, refusal_rate=1.0))
        codes = [refused(out, reviewer, resume=turn > 0).code for turn in range(4)]
        assert codes == [*3 * [RefusalCode.REPEAT_FAILED], RefusalCode.ATTEMPTS_EXHAUSTED]
