"""A sample that is cut off, or cannot be written, at any step: the same request makes one call at most."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
import threading
from typing import TYPE_CHECKING, NoReturn

import pytest

from skill_effectiveness.calibration.door import respond
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection, RecordingFs
from skill_effectiveness.evidence.lock import Lock
from skill_effectiveness.evidence.signals import TERMINATIONS, Cutoff
from skill_effectiveness.providers import CallOutcome, Ending
from tests.support.controller import UNREAD, Controller, Reply
from tests.support.examinations import Scripted, UnsyncedFs, always, open_out, read_inputs_once

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.providers import JudgeCall


@pytest.fixture
def controller(tmp_path: Path) -> Controller:
    return Controller(tmp_path)


class Obedient(Scripted):
    """Is told to end during its call, and ends."""

    number: int = signal.SIGTERM

    def judge(
        self, call: JudgeCall, *, around: Surroundings, cancelled: Callable[[], bool] = lambda: False
    ) -> CallOutcome:
        del around
        self.calls.append(call)
        assert not cancelled()
        signal.raise_signal(self.number)
        assert cancelled()
        return CallOutcome(Ending.CANCELLED)


class TestSignals:
    @pytest.fixture(autouse=True)
    def _inputs_are_read_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        read_inputs_once(monkeypatch)

    def heard(self, controller: Controller, ask: Callable[[], Reply]) -> Reply:
        cutoff = Cutoff()
        controller.settings["cutoff"] = cutoff
        with cutoff.heard():
            reply = ask()
        # The next request is another process.
        del controller.settings["cutoff"]
        return reply

    @pytest.mark.parametrize("number", TERMINATIONS)
    def test_during_the_call_it_is_unresolved(self, controller: Controller, number: int) -> None:
        """R9 E63: the call is told to end; its id is spent."""
        reviewer = Obedient(always("tie"))
        reviewer.number = number
        controller.reviewer = reviewer
        assert self.heard(controller, controller.sample).word == "model_call_unresolved"
        assert controller.calls == 1
        assert controller.sample().word == "artifact_root_quarantined"

    def test_while_the_request_is_read(self, controller: Controller) -> None:
        """R6: before anything begins; the crash file goes into the state folder."""

        def cut() -> NoReturn:
            signal.raise_signal(signal.SIGTERM)
            raise AssertionError

        cutoff = Cutoff()
        with cutoff.heard():
            answer = respond(cut, (), controller.way(cutoff=cutoff))
        reply = Reply.of(answer.line, answer.exit_code)
        assert (reply.word, reply.exit_code) == ("internal_error", 4)
        assert reply.document["request_id"] == UNREAD

    def test_while_it_waits_for_the_lock(self, controller: Controller) -> None:
        """R14 R6: nothing was begun; the same request goes on once the other is done."""
        ready, tell_ready = os.pipe()
        wait, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(tell)
            with Lock(open_out(controller.folder, name="root"), ".sample.lock").hold(0, "a sample"):
                os.write(tell_ready, b".")
                os.read(wait, 1)
            os._exit(0)
        os.close(wait)
        os.read(ready, 1)
        controller.lock_wait = 60.0
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
        reply = self.heard(controller, controller.sample)
        assert (reply.word, reply.exit_code) == ("internal_error", 4)
        assert len(list((controller.root / "crash").iterdir())) == 1
        os.close(tell)
        os.waitpid(pid, 0)
        controller.settings = {}
        assert controller.sample().word == "ok"
        assert controller.calls == 1

    def test_at_each_step_of_a_sample(
        self, controller: Controller, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """R9: before the call is spent the same request goes on; after it, never a second call; an answer
        that came is kept.
        """
        recording = RecordingFs(UnsyncedFs())
        controller.fs = recording
        assert controller.sample().word == "ok"
        words: dict[str, int] = {}
        for step in range(1, len(recording.steps) + 1):
            shutil.rmtree(controller.root)
            controller.reviewer = Scripted(always("tie"))
            controller.fs = FaultFs(
                UnsyncedFs(), Injection("*", nth=step, before=lambda: signal.raise_signal(signal.SIGTERM))
            )
            word = self.heard(controller, controller.sample).word
            words[word] = words.get(word, 0) + 1
            controller.fs, controller.settings = UnsyncedFs(), {}
            again = controller.sample().word
            assert (word, again) in {
                ("internal_error", "ok"),
                ("model_call_unresolved", "artifact_root_quarantined"),
                ("ok", "sample_already_exists"),
            }
            assert controller.calls == (0 if word == "model_call_unresolved" else 1)
        with capsys.disabled():
            sys.stdout.write(f"\nsample: a signal at each of {len(recording.steps)} steps {words}\n")
        assert words.keys() == {"internal_error", "model_call_unresolved", "ok"}

    def test_a_failure_at_each_step_of_a_sample(self, controller: Controller) -> None:
        """R9: a disk that fails once; the same request makes at most one call in all."""
        recording = RecordingFs(UnsyncedFs())
        controller.fs = recording
        assert controller.sample().word == "ok"
        seen = set()
        for step in range(1, len(recording.steps) + 1):
            shutil.rmtree(controller.root, ignore_errors=True)
            controller.reviewer = Scripted(always("tie"))
            controller.fs = FaultFs(UnsyncedFs(), Injection("*", errno=errno.EIO, nth=step))
            word = controller.sample().word
            controller.fs = UnsyncedFs()
            again = controller.sample().word
            seen.add((word, again, controller.calls))
        assert seen == {
            ("internal_error", "ok", 1),
            ("sample_lock_unavailable", "ok", 1),
            ("model_call_unresolved", "artifact_root_quarantined", 0),
            ("sample_publication_failed", "artifact_root_quarantined", 1),
            # All was written, and what failed was to make the last of it durable.
            ("sample_publication_failed", "sample_already_exists", 1),
            ("ok", "sample_already_exists", 1),
        }
