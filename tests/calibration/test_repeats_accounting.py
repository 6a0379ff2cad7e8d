"""What attempts cost and count, what sessions they had, and what killed runs left."""

from __future__ import annotations

import errno
import json
import os
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.calibration.errors import (
    ExaminationRefused,
    RefusalCode,
)
from skill_effectiveness.calibration.observer import Silent
from skill_effectiveness.calibration.reviewer import Reviewer
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.execution import (
    Leftover,
    SessionFolders,
    SessionSweep,
)
from skill_effectiveness.providers import CallOutcome, Ending
from tests.support.examinations import (
    Anything,
    Scripted,
    UnsyncedFs,
    always,
    answer_text,
    open_out,
)
from tests.support.private import content, surroundings
from tests.support.repeats import REAL, ask, failing_at, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.providers import JudgeCall


@pytest.fixture
def out(tmp_path: Path) -> PrivateRoot:
    return open_out(tmp_path)


def _after_an_intent(attempts: Path) -> Callable[[str], bool]:
    """Whether a path is the ledger entry of an attempt whose intent stands and whose call has no end yet."""

    def concerned(path: str) -> bool:
        name = path.rpartition("/")[2].removesuffix(".json")
        ended = attempts.parent / "endings" / f"{name}.json"
        intent = attempts / name / "samples" / f".{name}.intent.json"
        return "sample-ledger/r" in path and intent.exists() and not ended.exists()

    return concerned


class TestAccounting:
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
