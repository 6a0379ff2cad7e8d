from __future__ import annotations

import errno
import json
import os
import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.calibration.errors import (
    CalibrationCode,
    CalibrationError,
    ExaminationRefused,
    RefusalCode,
)
from skill_effectiveness.calibration.observer import Silent
from skill_effectiveness.calibration.repeats import ExaminationPlan, examine
from skill_effectiveness.calibration.reviewer import Reviewer
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.lock import Lock
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.execution import (
    ExecutableCode,
    ExecutableError,
    Leftover,
    SessionFolders,
    SessionSweep,
)
from skill_effectiveness.protocol.words import BankName
from skill_effectiveness.providers import CallOutcome, Ending, SimulatedSettings
from tests.support.examinations import (
    MANIFEST,
    OTHER,
    PERFECT,
    PLAN,
    Anything,
    Scripted,
    UnsyncedFs,
    always,
    answer_text,
    open_out,
    run_examination,
    simulated,
)
from tests.support.frozen import CopiedFs
from tests.support.private import content, surroundings, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.execution import Executable
    from skill_effectiveness.providers import JudgeCall

REAL = ExaminationPlan(model="model-1", reviewer_family="family-1")


@pytest.fixture
def out(tmp_path: Path) -> PrivateRoot:
    return open_out(tmp_path)


def refused(out: PrivateRoot, *arguments: Anything, **others: Anything) -> ExaminationRefused:
    with pytest.raises(ExaminationRefused) as caught:
        run_examination(out, *arguments, **others)
    # E58: a typed error carries no path.
    assert str(out.path) not in str(caught.value)
    return caught.value


def ask(
    out: PrivateRoot, provider: Scripted, *, resume: bool = False, repeats: int = 2, **others: Anything
) -> Anything:
    return run_examination(
        out, Reviewer.real(provider), replace(REAL, repeats=repeats), resume=resume, **others
    )


def failing_at(*numbers: int, ending: Ending = Ending.TIMEOUT) -> Callable[[int, JudgeCall], CallOutcome]:
    """Every call answers `tie` but those of these numbers."""

    def script(number: int, call: JudgeCall) -> CallOutcome:
        if number in numbers:
            return CallOutcome(ending)
        return CallOutcome(Ending.SUCCESS, answer=answer_text(call, "tie"))

    return script


def _after_an_intent(attempts: Path) -> Callable[[str], bool]:
    """Whether a path is the ledger entry of an attempt whose intent stands and whose call has no end yet."""

    def concerned(path: str) -> bool:
        name = path.rpartition("/")[2].removesuffix(".json")
        ended = attempts.parent / "endings" / f"{name}.json"
        intent = attempts / name / "samples" / f".{name}.intent.json"
        return "sample-ledger/r" in path and intent.exists() and not ended.exists()

    return concerned


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
        assert told == [
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

    def test_counts_failed_attempts_and_their_cost(self, out: PrivateRoot, tmp_path: Path) -> None:
        """The sheet holds every attempt, and endings hold nothing of an answer."""
        said = "words of the model"

        def script(number: int, call: JudgeCall) -> CallOutcome:
            text = said if number == 2 else answer_text(call, "tie")
            return CallOutcome(Ending.SUCCESS, answer=text, latency_ms=number)

        provider = Scripted(script)
        with pytest.raises(ExaminationRefused) as caught:
            ask(out, provider)
        assert caught.value.field == "answer_invalid:not_json"
        ask(out, provider, resume=True)
        ending = json.loads((tmp_path / "out/endings/r02-a1.json").read_bytes())
        assert (ending["ending"], ending["detail"], ending["usage"]["latency_ms"]) == (
            "answer_invalid",
            "not_json",
            2,
        )
        assert not any(said.encode() in data for data in content(tmp_path / "out").values())
        sheet = json.loads((tmp_path / "out/reviewer-calibration-metrics.json").read_bytes())["reviewers"][0]
        assert sheet["attempts"] == {"attempts": 3, "unusable_answers": 1, "flagged": True}
        assert sheet["cost"]["call_count"] == 3
        assert sheet["cost"]["latency_ms"] == {"sum": 6, "median": 2}
        assert sheet["cost"]["input_tokens"] == "unknown"

    def test_a_call_nobody_lived_to_record_has_an_unknown_cost(
        self, out: PrivateRoot, tmp_path: Path
    ) -> None:
        def dying(number: int, call: JudgeCall) -> CallOutcome:
            if number == 1:
                raise KeyboardInterrupt
            return CallOutcome(Ending.SUCCESS, answer=answer_text(call, "tie"), latency_ms=5)

        provider = Scripted(dying)
        with pytest.raises(KeyboardInterrupt):
            ask(out, provider)
        ask(out, provider, resume=True)
        sheet = json.loads((tmp_path / "out/reviewer-calibration-metrics.json").read_bytes())["reviewers"][0]
        assert sheet["attempts"] == {"attempts": 3, "unusable_answers": 1, "flagged": True}
        assert sheet["cost"]["call_count"] == 3
        assert sheet["cost"]["latency_ms"] == "unknown"

    @pytest.mark.parametrize(
        ("operation", "about", "ending"),
        [
            ("create_exclusive", "sample-ledger/.r02-a1", "never_called"),
            # The entry says that the call was started, so only the ending knows that it was not.
            ("read", "sample-ledger/r02-a1.json", "never_called"),
        ],
    )
    def test_an_attempt_whose_call_was_not_made_is_none_of_the_three(
        self, tmp_path: Path, operation: str, about: str, ending: str
    ) -> None:
        """R28 F24: it is spent and in vain, and it costs nothing and uses up none of the three calls."""

        def concerned(path: str) -> bool:
            return about in path and (tmp_path / "out/attempts/r02-a1/samples/.r02-a1.intent.json").exists()

        failing = Injection(operation, errno.ENOSPC, about=concerned)
        provider = Scripted(failing_at(2, 3))
        with pytest.raises(ExaminationRefused, match="No call was made") as caught:
            ask(open_out(tmp_path, FaultFs(UnsyncedFs(), failing)), provider)
        assert caught.value.field == f"{ending}:no_space"
        out = open_out(tmp_path)
        for _ in range(2):
            assert refused(out, Reviewer.real(provider), REAL, resume=True).field == "timeout"
        assert ask(out, provider, resume=True).calls == 1
        assert len(provider.calls) == 4
        sheet = json.loads((tmp_path / "out/reviewer-calibration-metrics.json").read_bytes())["reviewers"][0]
        assert sheet["attempts"] == {"attempts": 5, "unusable_answers": 3, "flagged": True}
        assert sheet["cost"]["call_count"] == 4

    def test_an_attempt_without_ending_whose_ledger_is_reserved_was_not_called(self, tmp_path: Path) -> None:
        """R28: a disk that takes not even the ending."""

        def concerned(path: str) -> bool:
            intent = (tmp_path / "out/attempts/r01-a1/samples/.r01-a1.intent.json").exists()
            return intent and ("sample-ledger" in path or "endings" in path)

        full = Injection("create_exclusive", errno.ENOSPC, nth=0, about=concerned)
        provider = Scripted(always("tie"))
        with pytest.raises(ExaminationRefused, match="could not be recorded"):
            ask(open_out(tmp_path, FaultFs(UnsyncedFs(), full)), provider)
        ask(open_out(tmp_path), provider, resume=True)
        sheet = json.loads((tmp_path / "out/reviewer-calibration-metrics.json").read_bytes())["reviewers"][0]
        assert (sheet["attempts"]["attempts"], sheet["cost"]["call_count"]) == (3, 2)
        assert sheet["cost"]["latency_ms"] == {"sum": 0, "median": 0}

    def test_a_disk_that_always_fails_does_not_make_attempts_for_ever(self, tmp_path: Path) -> None:
        provider = Scripted(always("tie"))
        codes = []
        for turn in range(10):
            failing = Injection("read", errno.EIO, about=_after_an_intent(tmp_path / "out/attempts"))
            out = open_out(tmp_path, FaultFs(UnsyncedFs(), failing))
            codes.append(refused(out, Reviewer.real(provider), REAL, resume=turn > 0).code)
        assert codes == [*9 * [RefusalCode.REPEAT_FAILED], RefusalCode.ATTEMPTS_EXHAUSTED]
        assert provider.calls == []

    def test_a_good_answer_that_could_not_be_stored_has_an_ending_and_its_cost(self, tmp_path: Path) -> None:
        """F24 R25: the call was paid for."""
        full = Injection("write", errno.ENOSPC, about=lambda path: "observations" in path)
        provider = Scripted(
            lambda number, call: CallOutcome(
                Ending.SUCCESS, answer=answer_text(call, "tie"), latency_ms=10 * number
            )
        )
        with pytest.raises(ExaminationRefused) as caught:
            ask(open_out(tmp_path, FaultFs(UnsyncedFs(), full)), provider)
        assert caught.value.field == "not_stored:no_space"
        ask(open_out(tmp_path), provider, resume=True)
        ending = json.loads((tmp_path / "out/endings/r01-a1.json").read_bytes())
        assert (ending["ending"], ending["detail"], ending["usage"]["latency_ms"]) == (
            "not_stored",
            "no_space",
            10,
        )
        sheet = json.loads((tmp_path / "out/reviewer-calibration-metrics.json").read_bytes())["reviewers"][0]
        assert sheet["attempts"] == {"attempts": 3, "unusable_answers": 1, "flagged": True}
        assert sheet["cost"]["latency_ms"] == {"sum": 60, "median": 20}

    def test_a_sample_whose_last_confirmation_was_missing_counts_when_it_is_whole(
        self, tmp_path: Path
    ) -> None:
        """R42: all was written, and what failed was to make the last of it durable."""

        def last(path: str) -> bool:
            attempt = tmp_path / "out/attempts/r01-a1"
            intent = attempt / "samples/.r01-a1.intent.json"
            return path.endswith("r01-a1/samples") and intent.exists() and b"completed" in intent.read_bytes()

        provider = Scripted(always("tie"))
        failing = Injection("fsync_dir", errno.EIO, about=last)
        with pytest.raises(ExaminationRefused) as caught:
            ask(open_out(tmp_path, FaultFs(UnsyncedFs(), failing)), provider)
        assert caught.value.field == "not_stored:io_error"
        assert ask(open_out(tmp_path), provider, resume=True).calls == 1
        sheet = json.loads((tmp_path / "out/reviewer-calibration-metrics.json").read_bytes())["reviewers"][0]
        assert sheet["attempts"] == {"attempts": 2, "unusable_answers": 0, "flagged": False}

    def test_an_ending_that_cannot_be_written_is_said(self, tmp_path: Path) -> None:
        full = Injection("write", errno.ENOSPC, nth=0, about=lambda path: "endings" in path)
        out = open_out(tmp_path, FaultFs(UnsyncedFs(), full))
        with pytest.raises(ExaminationRefused, match=r"timeout.*could not be recorded \(no_space\)"):
            ask(out, Scripted(failing_at(1)))

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


class TestSessions:
    """R31: calls of one examination are independent of each other."""

    @staticmethod
    def script(*sessions: str | None) -> Callable[[int, JudgeCall], CallOutcome]:
        """Calls in sessions of these ids; call 2 gives no answer."""

        def answers(number: int, call: JudgeCall) -> CallOutcome:
            session = sessions[number - 1]
            if number == 2:
                return CallOutcome(Ending.NO_ANSWER, session_id=session)
            return CallOutcome(Ending.SUCCESS, answer=answer_text(call, "tie"), session_id=session)

        return answers

    @pytest.mark.parametrize("sessions", [("one", "two", "one"), ("one", "two", "two")])
    def test_one_session_for_two_calls_is_never_published(
        self, out: PrivateRoot, sessions: tuple[str, ...]
    ) -> None:
        """R31: not even when only a failed call shared it."""
        provider = Scripted(self.script(*sessions))
        with pytest.raises(ExaminationRefused):
            ask(out, provider)
        for _ in range(2):
            found = refused(out, Reviewer.real(provider), REAL, resume=True)
            assert (found.code, found.field) == (RefusalCode.SESSION_REUSED, "r02-a2")
        assert len(provider.calls) == 3
        assert not out.exists("reviewer-calibration-result.json")

    def test_no_further_call_is_made_in_a_reused_session(self, out: PrivateRoot) -> None:
        """R31: what is known is refused before more is spent."""
        provider = Scripted(self.script("one", "one"))
        with pytest.raises(ExaminationRefused):
            ask(out, provider)
        assert refused(out, Reviewer.real(provider), REAL, resume=True).code is RefusalCode.SESSION_REUSED
        assert len(provider.calls) == 2

    @pytest.mark.parametrize("sessions", [("one", "two", "three"), (None, None, None)])
    def test_sessions_of_their_own_or_unknown_ones_are_published(
        self, out: PrivateRoot, sessions: tuple[str | None, ...]
    ) -> None:
        provider = Scripted(self.script(*sessions))
        with pytest.raises(ExaminationRefused):
            ask(out, provider)
        assert ask(out, provider, resume=True).calls == 1

    @pytest.mark.parametrize("spoil", ["missing", "another", "no log"])
    def test_a_private_log_that_cannot_be_believed_stops_everything(
        self, out: PrivateRoot, tmp_path: Path, spoil: str
    ) -> None:
        """R31: nobody gets rid of a reused session by removing the log."""
        provider = Scripted(self.script("one", "two", "three"))
        with pytest.raises(ExaminationRefused):
            ask(out, provider)
        log = tmp_path / "out/attempts/r01-a1/provider-log/r01-a1.json"
        match spoil:
            case "missing":
                log.unlink()
            case "another":
                log.write_bytes(log.read_bytes().replace(b"r01-a1", b"r09-a1"))
            case _:
                log.write_bytes(b"{}\n")
        found = refused(out, Reviewer.real(provider), REAL, resume=True)
        assert (found.code, found.field) == (RefusalCode.SAMPLES_INVALID, "r01-a1")
        assert len(provider.calls) == 2


class TestLeftovers:
    @pytest.fixture
    def told(self) -> list[tuple[int, int | None, int | None]]:
        return []

    def watch(self, told: list[tuple[int, int | None, int | None]]) -> Silent:
        class Told(Silent):
            def leftovers_found(self, processes: int, removed: int | None, left: int | None) -> None:
                told.append((processes, removed, left))

        return Told()

    def test_of_killed_runs_are_told_before_the_first_call(
        self, out: PrivateRoot, told: list[Anything], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """F10: processes are told and left alone; a supervised one belongs to a run that is alive."""
        found = (Leftover(11, "t", supervised=False), Leftover(12, "u", supervised=True))
        monkeypatch.setattr("skill_effectiveness.calibration.repeats.leftovers", lambda: found)
        provider = Scripted(always("tie"), during=lambda _self: told.append("call"))
        with sessions_of_the_dead(out, monkeypatch, removed=2, left=1):
            ask(out, provider, observer=self.watch(told))
        assert told == [(1, 2, 1), "call", "call"]

    def test_session_folders_of_the_dead_are_gone(self, tmp_path: Path, told: list[Anything]) -> None:
        """F10: they may show a login."""
        base = tmp_path / "sessions"
        base.mkdir(mode=0o700)
        around = replace(surroundings(UnsyncedFs()), environ={"TMPDIR": str(base)})
        pid = os.fork()
        if pid == 0:
            SessionFolders(replace(around, pid=os.getpid())).__enter__()
            os._exit(0)
        os.waitpid(pid, 0)
        assert len(list(base.iterdir())) == 1
        with PrivateRoot.create(tmp_path / "out", RootKind.OUT, around=around, checkout=None) as out:
            ask(out, Scripted(always("tie")), observer=self.watch(told))
        assert list(base.iterdir()) == []
        assert [found[1:] for found in told] == [(1, 0)]

    def test_a_base_that_is_gone_is_told(self, tmp_path: Path, told: list[Anything]) -> None:
        around = replace(surroundings(UnsyncedFs()), environ={"TMPDIR": str(tmp_path / "none")})
        with PrivateRoot.create(tmp_path / "out", RootKind.OUT, around=around, checkout=None) as out:
            ask(out, Scripted(always("tie")), observer=self.watch(told))
        assert [found[1:] for found in told] == [(None, None)]

    def test_nothing_left_is_nothing_told(
        self, out: PrivateRoot, told: list[Anything], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("skill_effectiveness.calibration.repeats.leftovers", tuple)
        with sessions_of_the_dead(out, monkeypatch, removed=0, left=0):
            ask(out, Scripted(always("tie")), observer=self.watch(told))
        assert told == []


@contextmanager
def sessions_of_the_dead(
    out: PrivateRoot, monkeypatch: pytest.MonkeyPatch, *, removed: int, left: int
) -> Iterator[None]:
    """A sweep with this result, made while the folder of the examination is locked."""

    def sweep(around: Surroundings) -> SessionSweep:
        assert around is out.around
        assert out.exists(".examination.lock")
        return SessionSweep(removed, left)

    monkeypatch.setattr("skill_effectiveness.calibration.repeats.sweep_sessions", sweep)
    yield


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
