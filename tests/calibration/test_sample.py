from __future__ import annotations

import errno
import json
import os
import signal
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from skill_effectiveness.calibration import sample as sampling
from skill_effectiveness.calibration.errors import CalibrationCode, CalibrationError, CallFailed
from skill_effectiveness.calibration.ledger import Standing
from skill_effectiveness.calibration.models import to_json
from skill_effectiveness.calibration.reviewer import Reviewer
from skill_effectiveness.calibration.sample import SampleRequest, Sampling, inspect, take_sample
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.lock import Lock
from skill_effectiveness.execution import ExecutableCode, ExecutableError, LimitName
from skill_effectiveness.protocol.words import BankName, Verdict
from skill_effectiveness.providers import CallOutcome, Ending, ProviderErrorKind, Usage
from tests.support.examinations import (
    BANK,
    MANIFEST,
    OTHER,
    PERFECT,
    Anything,
    Scripted,
    UnsyncedFs,
    always,
    answer_text,
    labels,
    manifest,
    open_out,
    simulated,
)
from tests.support.frozen import CopiedFs
from tests.support.private import content, temporaries, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.execution import Executable
    from skill_effectiveness.providers import JudgeCall

REQUEST = SampleRequest("s-1", "model-1", "family-1", 220, MANIFEST)
CASES = 24


def request(sample_id: str = "s-1", **changes: Anything) -> SampleRequest:
    return replace(REQUEST, sample_id=sample_id, **changes)


def given(provider: Scripted, **changes: Anything) -> Sampling:
    return replace(Sampling(Reviewer.real(provider), manifest, lock_wait=0.0), **changes)


def refusal(root: PrivateRoot, asked: SampleRequest, taking: Sampling) -> CalibrationCode:
    with pytest.raises(CalibrationError) as caught:
        take_sample(root, asked, taking)
    # E58: a typed error carries no path.
    assert str(root.path) not in str(caught.value)
    return caught.value.code


@pytest.fixture
def root(tmp_path: Path) -> PrivateRoot:
    return open_out(tmp_path)


class TestOneSample:
    def test_leaves_four_records_a_private_log_and_a_key(self, root: PrivateRoot, tmp_path: Path) -> None:
        taken = take_sample(root, REQUEST, given(Scripted(always("tie"))))
        assert set(content(tmp_path / "out")) == {
            ".sample.lock",
            ".orientation.key",
            "sample-ledger/s-1.json",
            "samples/.s-1.intent.json",
            "samples/s-1.json",
            "observations/s-1.json",
            "provider-log/s-1.json",
        }
        assert wrong_modes(tmp_path / "out") == []
        assert json.loads((tmp_path / "out/samples/s-1.json").read_bytes()) == to_json(taken)

    def test_says_who_was_asked_and_how(self, root: PrivateRoot) -> None:
        """R32: the session and tool labels of the provider, and the contract of one sample."""
        taken = take_sample(root, REQUEST, given(Scripted(always("tie"))))
        assert taken.requested_session_mode == "ephemeral"
        assert taken.tool_access == "read-only-observed-none"
        assert taken.runner_contract == "codex-cli-reviewer-calibration-single-sample-v1"
        assert taken.provider_environment_keys == ("HOME", "PATH")
        assert taken.runner_hash == digest_object(
            {
                "runner_contract": "codex-cli-reviewer-calibration-single-sample-v1",
                "runtime_manifest_hash": MANIFEST,
                "provider_executable_hash": "sha256:" + 64 * "e",
            }
        )
        assert taken.synthetic is None

    def test_a_simulated_one_is_synthetic_in_every_record(self, root: PrivateRoot, tmp_path: Path) -> None:
        """R43: intent, sample and observation say so."""
        take_sample(root, request(), Sampling(simulated(), manifest))
        for name in ("samples/.s-1.intent.json", "samples/s-1.json", "observations/s-1.json"):
            assert json.loads((tmp_path / "out" / name).read_bytes())["synthetic"] is True

    def test_judgements_are_turned_back_and_the_observation_keeps_what_was_said(
        self, root: PrivateRoot, tmp_path: Path
    ) -> None:
        """R5: someone who always says `A win` favours the first seat, not the bank's A."""
        taken = take_sample(root, REQUEST, given(Scripted(always("A win"))))
        seen = json.loads((tmp_path / "out/observations/s-1.json").read_bytes())["shown"]
        assert {row["verdict"] for row in seen} == {"A win"}
        bits = {row["case_id"]: row["orientation"] for row in seen}
        assert set(bits.values()) == {0, 1}
        assert [(each.case_id, each.verdict) for each in taken.judgments] == [
            (case_id, Verdict.B_WIN if bits[case_id] else Verdict.A_WIN) for case_id in BANK.case_ids
        ]
        assert tuple(bits) != BANK.case_ids

    def test_usage_is_kept_and_what_is_unknown_stays_unknown(self, root: PrivateRoot, tmp_path: Path) -> None:
        """R25: no figure is invented."""

        def answers(_number: int, call: JudgeCall) -> CallOutcome:
            usage = Usage(input_tokens=900, output_tokens=30, cost_units=None)
            return CallOutcome(Ending.SUCCESS, answer=answer_text(call, "tie"), usage=usage, latency_ms=41)

        take_sample(root, REQUEST, given(Scripted(answers)))
        assert json.loads((tmp_path / "out/observations/s-1.json").read_bytes())["usage"] == {
            "input_tokens": 900,
            "output_tokens": 30,
            "cost_units": None,
            "latency_ms": 41,
        }

    def test_the_call_holds_no_answer_key_bit_or_case_id(self, root: PrivateRoot, tmp_path: Path) -> None:
        """R3: a reviewer receives the shown texts and labels, and nothing about where they come from."""
        provider = Scripted(always("tie"))
        take_sample(root, REQUEST, given(provider))
        (call,) = provider.calls
        sent = call.prompt + json.dumps(dict(call.answer_schema))
        key = (tmp_path / "out/.orientation.key").read_bytes()
        for secret in (*BANK.case_ids, key.hex(), "candidate_a", "orientation", "expected", "s-1"):
            assert secret not in sent
        assert (call.model, call.timeout_seconds) == ("model-1", 220)
        assert len(labels(call)) == CASES

    def test_the_key_stays_in_its_file(self, root: PrivateRoot, tmp_path: Path) -> None:
        """E51: neither its bytes nor their hex form stand in any other file."""
        take_sample(root, REQUEST, given(Scripted(always("tie"))))
        files = content(tmp_path / "out")
        key = files.pop(".orientation.key")
        assert len(key) == 32
        for data in files.values():
            assert key not in data
            assert key.hex().encode() not in data

    def test_five_samples_fit_and_show_different_things(self, root: PrivateRoot, tmp_path: Path) -> None:
        """R4 R12: one root, one key, five presentations; a sixth is refused before any call."""
        provider = Scripted(always("tie"))
        for number in range(1, 6):
            take_sample(root, request(f"s-{number}"), given(provider))
        assert len({call.prompt for call in provider.calls}) == 5
        assert refusal(root, request("s-6"), given(provider)) is CalibrationCode.SAMPLE_SET_MISMATCH
        assert refusal(root, request("s-2"), given(provider)) is CalibrationCode.SAMPLE_ALREADY_EXISTS
        assert len(provider.calls) == 5
        assert len(inspect(root).complete) == 5
        assert not list((tmp_path / "out").rglob("*s-6*"))

    def test_a_probe_bank_is_examined_alike(self, root: PrivateRoot) -> None:
        taken = take_sample(
            root,
            request(bank=BankName.BIAS_PROBE),
            Sampling(simulated(PERFECT, bank=BankName.BIAS_PROBE), manifest),
        )
        assert {each.verdict for each in taken.judgments} <= set(Verdict)


class TestRefusals:
    """Nothing is reserved and nobody is asked."""

    @pytest.fixture
    def provider(self) -> Scripted:
        return Scripted(always("tie"))

    @pytest.fixture(autouse=True)
    def _nobody_was_asked(self, provider: Scripted, tmp_path: Path) -> Iterator[None]:
        yield
        assert provider.calls == []
        assert not list((tmp_path / "out").rglob("*.json"))

    def test_another_runtime(self, root: PrivateRoot, provider: Scripted) -> None:
        """R2: code or bank changed since the caller looked."""
        asked = request(runtime_manifest_hash=OTHER)
        assert refusal(root, asked, given(provider)) is CalibrationCode.RUNTIME_DRIFT

    def test_a_changed_case(self, tmp_path: Path, provider: Scripted) -> None:
        """R2: one byte of a case is enough."""
        fs = CopiedFs(tmp_path)
        path = fs.path("fixtures/reviewer-calibration-cases.json")
        path.write_bytes(path.read_bytes().replace(b"e", b"E", 1))
        root = open_out(tmp_path, fs)
        assert refusal(root, REQUEST, given(provider)) is CalibrationCode.FIXTURE_INVALID

    def test_a_changed_answer(self, tmp_path: Path, provider: Scripted) -> None:
        """R2: another valid bank is not the frozen one."""

        def turn(document: dict[str, Any]) -> None:
            first = document["known_answers"][0]
            first["expected_verdict"] = "A win" if first["expected_verdict"] == "tie" else "tie"

        fs = CopiedFs(tmp_path)
        fs.edit("fixtures/reviewer-calibration-known-answers.json", turn)
        root = open_out(tmp_path, fs)
        assert refusal(root, REQUEST, given(provider)) is CalibrationCode.FIXTURE_INVALID

    def test_a_bank_too_large_to_ask_about(
        self, root: PrivateRoot, provider: Scripted, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("skill_effectiveness.calibration.prompt.RENDERED_BYTES_MAX", 100)
        assert refusal(root, REQUEST, given(provider)) is CalibrationCode.FIXTURE_INVALID

    @pytest.mark.parametrize("sample_id", ["", ".", "..", "-a", "a/b", "a" * 65, "a\n", "é"])
    def test_an_id_of_another_form(self, root: PrivateRoot, provider: Scripted, sample_id: str) -> None:
        assert refusal(root, request(sample_id), given(provider)) is CalibrationCode.INVALID_FIELD

    @pytest.mark.parametrize("change", [{"model": "a b"}, {"timeout_seconds": 601}, {"reviewer_family": ""}])
    def test_what_the_door_should_have_refused(
        self, root: PrivateRoot, provider: Scripted, change: dict[str, Any]
    ) -> None:
        with pytest.raises(ValidationError):
            take_sample(root, request(**change), given(provider))

    def test_a_root_that_was_closed(self, root: PrivateRoot, provider: Scripted, tmp_path: Path) -> None:
        """R14: a finalization ends the taking of samples, even an unreadable one."""
        (tmp_path / "out" / ".finalization.intent.json").symlink_to(tmp_path / "nowhere")
        assert refusal(root, REQUEST, given(provider)) is CalibrationCode.FINALIZE_ALREADY_STARTED
        (tmp_path / "out" / ".finalization.intent.json").unlink()

    def test_an_executable_that_cannot_be_named(self, root: PrivateRoot) -> None:
        class Nameless(Scripted):
            def identify(self, around: Surroundings) -> Executable:
                del around
                raise ExecutableError(ExecutableCode.NO_VERSION, "/opt/tool states no version.")

        with pytest.raises(CalibrationError, match=r"\(no_version\)") as caught:
            take_sample(root, REQUEST, given(Nameless(always("tie"))))
        assert caught.value.code is CalibrationCode.PROVIDER_IDENTITY_UNAVAILABLE
        assert "/opt" not in caught.value.sentence

    @pytest.mark.parametrize("mode", [0o644, 0o400])
    def test_a_key_that_others_may_have_seen(
        self, root: PrivateRoot, provider: Scripted, tmp_path: Path, mode: int
    ) -> None:
        root.publish(".orientation.key", bytes(32))
        (tmp_path / "out" / ".orientation.key").chmod(mode)
        assert refusal(root, REQUEST, given(provider)) is CalibrationCode.ARTIFACT_ROOT_QUARANTINED

    def test_a_key_that_is_too_short(self, root: PrivateRoot, provider: Scripted) -> None:
        root.publish(".orientation.key", bytes(31))
        assert refusal(root, REQUEST, given(provider)) is CalibrationCode.ARTIFACT_ROOT_QUARANTINED

    def test_a_key_that_cannot_be_written_is_a_passing_trouble(
        self, tmp_path: Path, provider: Scripted
    ) -> None:
        full = Injection("write", errno.ENOSPC, nth=0, about=lambda path: ".orientation.key" in path)
        root = open_out(tmp_path, FaultFs(UnsyncedFs(), full))
        with pytest.raises(EvidenceError, match="no space"):
            take_sample(root, REQUEST, given(provider))

    def test_a_lock_that_is_held(self, tmp_path: Path, provider: Scripted) -> None:
        """R14: samples of one root never overlap."""
        with Lock(open_out(tmp_path), ".sample.lock").hold(0, "another sample"):
            pid = os.fork()
            if pid == 0:  # a lock is held per process, so the second taker is one
                code = 1
                try:
                    take_sample(open_out(tmp_path), REQUEST, given(provider))
                except CalibrationError as error:
                    code = 0 if error.code is CalibrationCode.SAMPLE_LOCK_UNAVAILABLE else 2
                finally:
                    os._exit(code)
            assert os.waitpid(pid, 0)[1] == 0

    def test_a_lock_that_is_a_folder(self, root: PrivateRoot, provider: Scripted, tmp_path: Path) -> None:
        """R15: nothing of ours puts a folder there."""
        (tmp_path / "out" / ".sample.lock").mkdir()
        assert refusal(root, REQUEST, given(provider)) is CalibrationCode.ARTIFACT_ROOT_QUARANTINED

    def test_a_lock_that_cannot_be_opened(self, tmp_path: Path, provider: Scripted) -> None:
        """R15: too many open files is a passing trouble."""
        failing = Injection("open_update", errno.EMFILE, about=lambda path: path.endswith(".sample.lock"))
        root = open_out(tmp_path, FaultFs(UnsyncedFs(), failing))
        assert refusal(root, REQUEST, given(provider)) is CalibrationCode.SAMPLE_LOCK_UNAVAILABLE


def outcome(ending: Ending, **details: Anything) -> Callable[[int, JudgeCall], CallOutcome]:
    return lambda _number, _call: CallOutcome(ending, latency_ms=9, **details)


SECRET = "a sentence that only the model said"


def answered(change: Callable[[dict[str, Any]], object]) -> Callable[[int, JudgeCall], CallOutcome]:
    def answers(_number: int, call: JudgeCall) -> CallOutcome:
        document = json.loads(answer_text(call, "tie"))
        change(document)
        return CallOutcome(Ending.SUCCESS, answer=json.dumps(document))

    return answers


class TestFailedCalls:
    @pytest.mark.parametrize(
        ("script", "ending", "detail"),
        [
            (outcome(Ending.NO_ANSWER), "no_answer", None),
            (outcome(Ending.REFUSED), "refused", None),
            (outcome(Ending.TIMEOUT), "timeout", None),
            (outcome(Ending.CANCELLED), "cancelled", None),
            (outcome(Ending.TOOL_ACTIVITY), "tool_activity", None),
            (outcome(Ending.MODEL_MISMATCH), "model_mismatch", None),
            (outcome(Ending.STREAM_INVALID), "stream_invalid", None),
            (outcome(Ending.LIMIT, limit=LimitName.STDOUT_BYTES), "limit", "stdout_bytes"),
            (
                outcome(Ending.PROVIDER_ERROR, error_kind=ProviderErrorKind.RATE_LIMITED),
                "provider_error",
                "rate_limited",
            ),
            (outcome(Ending.SUCCESS, answer=SECRET), "answer_invalid", "not_json"),
            (answered(lambda answer: answer.update(note=SECRET)), "answer_invalid", "wrong_shape"),
            (answered(lambda answer: answer["judgments"].pop()), "answer_invalid", "case_missing"),
            (
                answered(lambda answer: answer["judgments"].append(answer["judgments"][0])),
                "answer_invalid",
                "case_twice",
            ),
            (
                answered(lambda answer: answer["judgments"][0].update(verdict=SECRET)),
                "answer_invalid",
                "verdict_unknown",
            ),
        ],
    )
    def test_spend_the_id_and_store_nothing_of_the_answer(
        self,
        root: PrivateRoot,
        tmp_path: Path,
        script: Callable[[int, JudgeCall], CallOutcome],
        ending: str,
        detail: str | None,
    ) -> None:
        """F23 F24 R9: a typed ending, no default verdict, and no second call for any id."""
        provider = Scripted(script)
        with pytest.raises(CallFailed) as caught:
            take_sample(root, REQUEST, given(provider))
        assert caught.value.code is CalibrationCode.MODEL_CALL_UNRESOLVED
        assert (caught.value.ending, caught.value.detail) == (ending, detail)
        assert SECRET not in f"{caught.value}{caught.value.sentence}"
        stored = content(tmp_path / "out")
        assert not any(SECRET.encode() in data for data in stored.values())
        assert {name for name in stored if "s-1" in name} == {
            "sample-ledger/s-1.json",
            "samples/.s-1.intent.json",
            "provider-log/s-1.json",
        }
        for again in ("s-1", "s-2"):
            assert refusal(root, request(again), given(provider)) is CalibrationCode.ARTIFACT_ROOT_QUARANTINED
        assert len(provider.calls) == 1

    def test_what_a_failed_call_cost_is_told(self, root: PrivateRoot) -> None:
        script = outcome(Ending.NO_ANSWER, usage=Usage(input_tokens=70))
        with pytest.raises(CallFailed) as caught:
            take_sample(root, REQUEST, given(Scripted(script)))
        assert (caught.value.usage.input_tokens, caught.value.usage.latency_ms) == (70, 9)
        assert caught.value.usage.output_tokens is None

    def test_a_call_that_raises_leaves_the_id_spent(self, root: PrivateRoot) -> None:
        def broken(_number: int, _call: JudgeCall) -> CallOutcome:
            raise KeyboardInterrupt

        provider = Scripted(broken)
        with pytest.raises(KeyboardInterrupt):
            take_sample(root, REQUEST, given(provider))
        assert refusal(root, REQUEST, given(provider)) is CalibrationCode.ARTIFACT_ROOT_QUARANTINED

    @pytest.mark.parametrize(
        ("during", "changed"),
        [
            (lambda provider: setattr(provider, "sha256", OTHER), "provider_executable"),
            (lambda provider: setattr(provider, "version", "tool 1.2.4"), "provider_cli_version"),
        ],
    )
    def test_a_program_exchanged_under_the_call_spoils_it(
        self, root: PrivateRoot, during: Callable[[Scripted], object], changed: str
    ) -> None:
        provider = Scripted(always("tie"), during=during)
        with pytest.raises(CallFailed) as caught:
            take_sample(root, REQUEST, given(provider))
        assert (caught.value.ending, caught.value.detail) == ("binding_changed", changed)

    def test_a_program_gone_after_the_call_spoils_it(self, root: PrivateRoot) -> None:
        class Vanishing(Scripted):
            def identify(self, around: Surroundings) -> Executable:
                if self.calls:
                    raise ExecutableError(ExecutableCode.MISSING, "It is gone.")
                return super().identify(around)

        with pytest.raises(CallFailed) as caught:
            take_sample(root, REQUEST, given(Vanishing(always("tie"))))
        assert (caught.value.ending, caught.value.detail) == ("binding_changed", "provider_executable")

    @pytest.mark.parametrize("code", [ExecutableCode.NO_RESOURCES, ExecutableCode.NO_SESSION_FOLDERS])
    def test_a_machine_that_cannot_look_again_accuses_no_program(
        self, root: PrivateRoot, code: ExecutableCode
    ) -> None:
        """R9: without that look an answer does not count either."""

        class Unseen(Scripted):
            def identify(self, around: Surroundings) -> Executable:
                if self.calls:
                    raise ExecutableError(code, "/opt/tool could not be looked at.")
                return super().identify(around)

        with pytest.raises(CallFailed, match="nobody could look") as caught:
            take_sample(root, REQUEST, given(Unseen(always("tie"))))
        assert (caught.value.ending, caught.value.detail) == ("unconfirmed", code.value)
        assert "/opt/tool" not in caught.value.sentence

    @pytest.mark.parametrize("unreadable", [False, True])
    def test_code_changed_under_the_call_spoils_it(self, root: PrivateRoot, *, unreadable: bool) -> None:
        provider = Scripted(always("tie"))

        def changing() -> str:
            if provider.calls and unreadable:
                raise CalibrationError(CalibrationCode.RUNTIME_MANIFEST_UNAVAILABLE, "An entry is gone.")
            return OTHER if provider.calls else MANIFEST

        with pytest.raises(CallFailed) as caught:
            take_sample(root, REQUEST, given(provider, manifest=changing))
        assert (caught.value.ending, caught.value.detail) == ("binding_changed", "runtime_manifest")


class TestStorage:
    @pytest.mark.parametrize("name", ["observations/", "samples/.s-1.json", ".s-1.intent.json"])
    def test_a_good_answer_that_cannot_be_stored(self, tmp_path: Path, name: str) -> None:
        """The id is spent, and the root is evidence of it."""
        provider = Scripted(always("tie"))

        def after_the_call(path: str) -> bool:
            return bool(provider.calls) and name in path

        full = Injection("write", errno.ENOSPC, nth=0, about=after_the_call)
        root = open_out(tmp_path, FaultFs(UnsyncedFs(), full))
        assert refusal(root, REQUEST, given(provider)) is CalibrationCode.SAMPLE_PUBLICATION_FAILED
        again = open_out(tmp_path)
        assert refusal(again, REQUEST, given(provider)) is CalibrationCode.ARTIFACT_ROOT_QUARANTINED
        assert len(provider.calls) == 1
        assert temporaries(tmp_path) == []

    def test_a_reservation_that_cannot_be_written_costs_nothing(self, tmp_path: Path) -> None:
        provider = Scripted(always("tie"))
        full = Injection("write", errno.ENOSPC, about=lambda path: "sample-ledger" in path)
        root = open_out(tmp_path, FaultFs(UnsyncedFs(), full))
        with pytest.raises(EvidenceError):
            take_sample(root, REQUEST, given(provider))
        take_sample(root, REQUEST, given(provider))
        assert len(provider.calls) == 1

    @pytest.mark.parametrize(
        ("operation", "about"),
        [
            ("rename", "sample-ledger/"),
            ("write", "sample-ledger/.s-1"),
            ("fsync_dir", "sample-ledger"),
            ("read", "sample-ledger/s-1.json"),
            ("fsync_dir", "samples"),
        ],
    )
    def test_a_record_that_stops_short_before_the_call_spends_the_id(
        self, tmp_path: Path, operation: str, about: str
    ) -> None:
        """R9: the intent stands, so nobody may ask again; it is said, and that nothing was asked."""
        provider = Scripted(always("tie"))

        def concerned(path: str) -> bool:
            intent = (tmp_path / "out/samples/.s-1.intent.json").exists()
            return intent and about in path

        failing = Injection(operation, errno.ENOSPC, about=concerned)
        root = open_out(tmp_path, FaultFs(UnsyncedFs(), failing))
        with pytest.raises(CallFailed, match="No call was made") as caught:
            take_sample(root, REQUEST, given(provider))
        assert (caught.value.ending, caught.value.detail) == ("never_called", "no_space")
        assert "repeat the command" not in caught.value.sentence
        assert caught.value.usage.latency_ms is None
        again = open_out(tmp_path)
        assert refusal(again, REQUEST, given(provider)) is CalibrationCode.ARTIFACT_ROOT_QUARANTINED
        assert provider.calls == []

    def test_an_intent_that_was_not_written_spends_nothing(self, tmp_path: Path) -> None:
        """R9 R10: the reservation alone is taken up again."""
        provider = Scripted(always("tie"))
        full = Injection("write", errno.ENOSPC, about=lambda path: ".s-1.intent.json" in path)
        root = open_out(tmp_path, FaultFs(UnsyncedFs(), full))
        with pytest.raises(EvidenceError):
            take_sample(root, REQUEST, given(provider))
        take_sample(root, REQUEST, given(provider))
        assert len(provider.calls) == 1

    def test_a_call_that_was_cancelled_before_it_was_made(self, root: PrivateRoot) -> None:
        provider = Scripted(always("tie"))
        with pytest.raises(CallFailed) as caught:
            take_sample(root, REQUEST, given(provider, cancelled=lambda: True))
        assert (caught.value.ending, caught.value.detail) == ("never_called", "cancelled")
        assert provider.calls == []

    def test_what_a_stored_in_vain_answer_cost_is_told(self, tmp_path: Path) -> None:
        full = Injection("write", errno.ENOSPC, nth=0, about=lambda path: "observations/" in path)
        root = open_out(tmp_path, FaultFs(UnsyncedFs(), full))
        provider = Scripted(
            lambda _number, call: CallOutcome(
                Ending.SUCCESS, answer=answer_text(call, "tie"), usage=Usage(input_tokens=7), latency_ms=5
            )
        )
        with pytest.raises(CallFailed) as caught:
            take_sample(root, REQUEST, given(provider))
        assert (caught.value.ending, caught.value.detail) == ("not_stored", "no_space")
        assert (caught.value.usage.input_tokens, caught.value.usage.latency_ms) == (7, 5)

    @pytest.mark.parametrize(
        ("script", "code", "ending"),
        [
            (always("tie"), CalibrationCode.SAMPLE_PUBLICATION_FAILED, "not_stored"),
            (
                lambda _number, _call: CallOutcome(Ending.TIMEOUT),
                CalibrationCode.MODEL_CALL_UNRESOLVED,
                "timeout",
            ),
        ],
    )
    def test_a_private_log_that_cannot_be_written(
        self,
        tmp_path: Path,
        script: Callable[[int, JudgeCall], CallOutcome],
        code: CalibrationCode,
        ending: str,
    ) -> None:
        """P7: without it a good answer does not count, and a bad ending stays what it is."""
        full = Injection("write", errno.ENOSPC, nth=0, about=lambda path: "provider-log/" in path)
        root = open_out(tmp_path, FaultFs(UnsyncedFs(), full))
        with pytest.raises(CallFailed, match=r"no_space|no space") as caught:
            take_sample(root, REQUEST, given(Scripted(script)))
        assert (caught.value.code, caught.value.ending) == (code, ending)

    @pytest.mark.parametrize(
        ("place", "code"),
        [
            ("sample-ledger/s-1.json", CalibrationCode.ARTIFACT_ROOT_QUARANTINED),
            # It is read before the answer is stored, and is no longer what was written then.
            ("samples/.s-1.intent.json", CalibrationCode.MODEL_CALL_UNRESOLVED),
            ("samples/s-1.json", CalibrationCode.ARTIFACT_ROOT_QUARANTINED),
        ],
    )
    def test_a_record_that_reads_back_differently_is_not_acknowledged(
        self, tmp_path: Path, place: str, code: CalibrationCode
    ) -> None:
        def spoil(data: bytes) -> bytes:
            return data.replace(b"s-1", b"s-2")

        flipped = Injection("read", nth=0, about=lambda path: path.endswith(place), change=spoil)
        root = open_out(tmp_path, FaultFs(UnsyncedFs(), flipped))
        assert refusal(root, REQUEST, given(Scripted(always("tie")))) is code


def take_and_die(folder: Path, fs: FileSystem, asked: Path) -> int:
    """Take the sample in a forked child; the wait status of its end. Each call leaves one line in `asked`."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            provider = Scripted(always("tie"), during=lambda _self: note(asked))
            take_sample(open_out(folder, fs), REQUEST, given(provider))
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1]


def note(asked: Path) -> None:
    with asked.open("a") as file:
        file.write("called\n")


def calls(asked: Path) -> int:
    return len(asked.read_text().splitlines()) if asked.exists() else 0


def stopped(folder: Path) -> str:
    """The row of section 5 that a root shows, by its files alone."""
    names = {
        what: (folder / place).exists()
        for what, place in {
            "ledger": "out/sample-ledger/s-1.json",
            "intent": "out/samples/.s-1.intent.json",
            "sample": "out/samples/s-1.json",
        }.items()
    }
    if not names["ledger"]:
        return "before 1"
    state = json.loads((folder / "out/sample-ledger/s-1.json").read_bytes())["state"]
    if not names["intent"]:
        return "after 1"
    if state == "reserved":
        return "after 2"
    if not names["sample"]:
        return "3 to 7"
    intent = json.loads((folder / "out/samples/.s-1.intent.json").read_bytes())
    return "after 9" if intent["state"] == "completed" else "after 8"


ROWS = {
    # stopped: (same id, other id, calls ever made for s-1 afterwards)
    "before 1": ("allowed", "allowed"),
    "after 1": ("allowed", "artifact_root_quarantined"),
    "after 2": ("artifact_root_quarantined", "artifact_root_quarantined"),
    "3 to 7": ("artifact_root_quarantined", "artifact_root_quarantined"),
    "after 8": ("artifact_root_quarantined", "artifact_root_quarantined"),
    "after 9": ("sample_already_exists", "allowed"),
}


def answer(folder: Path, sample_id: str, asked: Path) -> str:
    provider = Scripted(always("tie"), during=lambda _self: note(asked))
    try:
        take_sample(open_out(folder), request(sample_id), given(provider))
    except CalibrationError as error:
        return error.code.value
    return "allowed"


class TestKilled:
    def test_at_every_step_the_next_request_gets_the_answer_of_the_table(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """R9 R10 E54: and no id that was started is ever called again."""
        rows: dict[str, int] = {}
        step = 0
        while True:
            step += 1
            folder = tmp_path / str(step)
            folder.mkdir()
            asked = folder / "asked"
            kill = Injection("*", nth=step, before=lambda: os.kill(os.getpid(), signal.SIGKILL))
            if take_and_die(folder, FaultFs(UnsyncedFs(), kill), asked) == 0:
                break
            row = stopped(folder)
            rows[row] = rows.get(row, 0) + 1
            before = calls(asked)
            # The other id first: it is refused without a trace, or it is none of the first one's business.
            other = answer(folder, "s-2", folder / "asked-2")
            assert (answer(folder, "s-1", asked), other) == ROWS[row]
            assert calls(asked) == before + (ROWS[row][0] == "allowed") <= 1
            assert temporaries(folder / "out" / "samples") == []
        with capsys.disabled():
            sys.stdout.write(f"\nsample: killed at {step - 1} steps, by row {rows}\n")
        assert rows.keys() == ROWS.keys()
        assert step > 40

    def test_a_reservation_resumes_once(self, tmp_path: Path) -> None:
        """R10: the call is made, and then the id is used up."""
        kill = Injection(
            "create_exclusive",
            about=lambda path: ".s-1.intent.json" in path,
            before=lambda: os.kill(os.getpid(), signal.SIGKILL),
        )
        take_and_die(tmp_path, FaultFs(UnsyncedFs(), kill), tmp_path / "asked")
        assert stopped(tmp_path) == "after 1"
        assert inspect(open_out(tmp_path)).standing is Standing.RESERVED
        assert answer(tmp_path, "s-1", tmp_path / "asked") == "allowed"
        assert answer(tmp_path, "s-1", tmp_path / "asked") == "sample_already_exists"
        assert calls(tmp_path / "asked") == 1

    def test_during_the_call_the_id_is_spent(self, tmp_path: Path) -> None:
        """R9: whether the call counted or not, nobody can know."""
        pid = os.fork()
        if pid == 0:
            provider = Scripted(always("tie"), during=lambda _self: os.kill(os.getpid(), signal.SIGKILL))
            take_sample(open_out(tmp_path), REQUEST, given(provider))
            os._exit(1)
        os.waitpid(pid, 0)
        assert stopped(tmp_path) == "3 to 7"
        assert answer(tmp_path, "s-1", tmp_path / "asked") == "artifact_root_quarantined"
        assert calls(tmp_path / "asked") == 0


def test_the_wait_for_a_root_is_an_hour() -> None:
    """R14: a sample may take that long (calibration.md, section 4)."""
    assert sampling.LOCK_WAIT_SECONDS == 3600
