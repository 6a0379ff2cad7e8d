"""A finalization that is cut off at any step: no half that counts, and the same request finishes it."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.calibration import finalization
from skill_effectiveness.calibration.errors import CalibrationError
from skill_effectiveness.calibration.finalization_rules import Step
from skill_effectiveness.evidence.faults import EvidenceError, PairCode
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection, RecordingFs
from skill_effectiveness.evidence.pair import load_pair
from skill_effectiveness.evidence.signals import TERMINATIONS, Cutoff
from tests.support.controller import EVIDENCE, INTENT, RESULT, STAGED, Controller
from tests.support.examinations import MANIFEST, UnsyncedFs, open_out, read_inputs_once

if TYPE_CHECKING:
    from pathlib import Path

PAIR = (EVIDENCE, RESULT)


@pytest.fixture
def controller(tmp_path: Path) -> Controller:
    return Controller(tmp_path).sampled()


@pytest.fixture(autouse=True)
def _inputs_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read_inputs_once(monkeypatch)


def begin_again(controller: Controller) -> None:
    """A root with the same samples and nothing of a finalization."""
    shutil.rmtree(controller.root / "calibration", ignore_errors=True)
    (controller.root / INTENT).unlink(missing_ok=True)


def spoil(controller: Controller) -> None:
    path = controller.root / INTENT
    if path.exists():
        path.write_bytes(b"{}\n")


def json_state(controller: Controller) -> str:
    path = controller.root / INTENT
    return str(json.loads(path.read_bytes())["state"]) if path.exists() else ""


def present(controller: Controller) -> set[str]:
    return {name for name in PAIR if controller.file(name).exists()}


def steps(controller: Controller) -> int:
    """How many operations of a finalization change anything."""
    recording = RecordingFs(UnsyncedFs())
    controller.fs = recording
    assert controller.finalize().word == "ok"
    begin_again(controller)
    return len(recording.steps)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_failure_at_each_step_leaves_no_half(controller: Controller, number: int) -> None:
    """R17 E40: no canonical file or both, and the same request finishes."""
    count = steps(controller)
    assert count > 40
    for step in range(1, count + 1):
        failing = Injection("*", errno=number, nth=step)
        controller.fs = FaultFs(UnsyncedFs(), failing)
        word = controller.finalize().word
        assert failing.hits == 1
        assert word in {
            "ok",  # what failed was only tidying up
            "sample_lock_unavailable",
            "internal_error",
            "finalization_recovery_required",
        }
        assert present(controller) in (set(), set(PAIR))
        controller.fs = UnsyncedFs()
        if word == "ok" or json_state(controller) == "completed":
            assert controller.finalize().word == "finalize_already_started"
        else:
            assert controller.finalize().word == "ok"
        assert present(controller) == set(PAIR)
        begin_again(controller)


@pytest.mark.parametrize("number", TERMINATIONS)
def test_a_signal_between_the_renames_leaves_neither(controller: Controller, number: int) -> None:
    """R18 E41 E63: the answer says what to do, and a retry publishes."""
    second = Injection(
        "rename",
        about=lambda path: path.endswith("/" + STAGED[1]),
        before=lambda: signal.raise_signal(number),
    )
    controller.fs = FaultFs(UnsyncedFs(), second)
    cutoff = Cutoff()
    controller.settings = {"cutoff": cutoff}
    with cutoff.heard():
        reply = controller.finalize()
    assert (reply.word, reply.exit_code) == ("finalization_recovery_required", 3)
    assert second.hits == 1
    assert present(controller) == set()
    controller.fs, controller.settings = UnsyncedFs(), {}
    assert controller.finalize().word == "ok"


def test_a_signal_at_each_step_can_be_made_good(controller: Controller) -> None:
    """R18 E42: before, between and after the renames; never half a pair, and a retry finishes."""
    count = steps(controller)
    words = set()
    for step in range(1, count + 1):
        controller.fs = FaultFs(
            UnsyncedFs(), Injection("*", nth=step, before=lambda: signal.raise_signal(signal.SIGTERM))
        )
        cutoff = Cutoff()
        controller.settings = {"cutoff": cutoff}
        with cutoff.heard():
            word = controller.finalize().word
        words.add(word)
        assert present(controller) in (set(), set(PAIR))
        controller.fs, controller.settings = UnsyncedFs(), {}
        done = json_state(controller) == "completed"
        # What was done is told: "send the same request again" would lead to a refusal.
        assert done == (word == "ok")
        assert controller.finalize().word == ("finalize_already_started" if done else "ok")
        begin_again(controller)
    # A signal that comes when the pair lies there is too late.
    assert words - {"ok"} == {"internal_error", "finalization_recovery_required"}


def test_a_kill_between_the_renames_leaves_what_no_reader_accepts(
    controller: Controller, tmp_path: Path
) -> None:
    """R19 E43: half a pair does not load, and a retry completes it."""
    second = Injection(
        "rename",
        about=lambda path: path.endswith("/" + STAGED[1]),
        before=lambda: os.kill(os.getpid(), signal.SIGKILL),
    )
    pid = os.fork()
    if pid == 0:
        controller.fs = FaultFs(UnsyncedFs(), second)
        controller.finalize()
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
    assert present(controller) == {EVIDENCE}
    with (
        open_out(tmp_path, name="root") as root,
        root.child("calibration") as place,
        pytest.raises(EvidenceError) as caught,
    ):
        load_pair(place, *PAIR, lambda *_: None)
    assert caught.value.code is PairCode.PAIR_INCOMPLETE
    assert controller.finalize().word == "ok"


def test_somebody_who_keeps_changing_the_root_does_not_keep_us(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The walk has four steps and then ends."""
    asked = iter([Step.BEGIN, *5 * [Step.CLAIM]])
    monkeypatch.setattr(finalization, "next_step", lambda _found: next(asked))
    with open_out(controller.folder, name="root") as root, pytest.raises(CalibrationError) as caught:
        finalization.finalize(root, ("s-1", "s-2"), MANIFEST, lock_wait=0)
    assert caught.value.code.value == "finalization_recovery_required"


def test_an_intent_that_reads_back_differently(controller: Controller) -> None:
    """What is acknowledged is what lies there."""
    swapped = Injection(
        "open_read", nth=0, about=lambda path: path.endswith(INTENT), before=lambda: spoil(controller)
    )
    controller.fs = FaultFs(UnsyncedFs(), swapped)
    assert controller.finalize().word == "finalization_recovery_required"
