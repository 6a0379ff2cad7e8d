"""The wire after SIGKILL at every durable step, and after a power loss at every one.

Every row of the tables of calibration.md, sections 5 and 6: what the same request, another one and a
finalization are answered, and that no sample id is ever called for twice.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.fsdoubles import RecordingFs
from tests.support.controller import CLAIM, EVIDENCE, INTENT, METRICS, RESULT, Controller
from tests.support.crash_images import Recording, fast_folder
from tests.support.examinations import Scripted, UnsyncedFs, always, read_inputs_once
from tests.support.killing_fs import MortalFs, by_signal
from tests.support.private import content, temporaries, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

PUBLISHED = {EVIDENCE, RESULT, METRICS, CLAIM}


@pytest.fixture(autouse=True)
def _inputs_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read_inputs_once(monkeypatch)


@pytest.fixture
def fast() -> Iterator[Path]:
    with fast_folder() as folder:
        yield folder


def counting(folder: Path) -> Controller:
    """A controller whose reviewer leaves a line for each call, so that dead processes count too."""

    def note(reviewer: Scripted) -> None:
        del reviewer
        with (folder / "calls").open("a") as calls:
            calls.write("s-1\n" if not (folder / "second").exists() else "other\n")

    return Controller(folder, Scripted(always("tie"), during=note))


def calls(folder: Path) -> Counter[str]:
    file = folder / "calls"
    return Counter(file.read_text().split()) if file.exists() else Counter()


def killed(ask: Callable[[], object], controller: Controller, nth: int) -> bool:
    """Whether a child that asks is killed at its mutating step number `nth`."""
    pid = os.fork()
    if pid == 0:
        controller.fs = MortalFs(UnsyncedFs(), nth, by_signal)
        code = 1
        try:
            ask()
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(pid, 0)[1]
    assert status in (0, signal.SIGKILL)
    return status == signal.SIGKILL


def stopped_after(root: Path) -> str:
    """The row of section 5, read off the disk by hand."""

    def state(path: Path) -> str:
        return str(json.loads(path.read_bytes()).get("state", "there")) if path.exists() else "absent"

    return {
        ("absent", "absent", "absent"): "before 1",
        ("reserved", "absent", "absent"): "after 1",
        ("reserved", "model_call_started", "absent"): "after 2",
        ("model_call_started", "model_call_started", "absent"): "3 to 7",
        ("model_call_started", "model_call_started", "there"): "after 8",
        ("model_call_started", "completed", "there"): "after 9",
    }[
        state(root / "sample-ledger/s-1.json"),
        state(root / "samples/.s-1.intent.json"),
        state(root / "samples/s-1.json"),
    ]


QUARANTINED = "artifact_root_quarantined"
ANSWERS = {
    # Row: what a finalization with the sample that was there before, the other id and the same id are told.
    "before 1": ("sample_set_mismatch", "ok", "ok"),
    "after 1": (QUARANTINED, QUARANTINED, "ok"),
    "after 2": (QUARANTINED, QUARANTINED, QUARANTINED),
    "3 to 7": (QUARANTINED, QUARANTINED, QUARANTINED),
    "after 8": ("sample_finality_unknown", QUARANTINED, QUARANTINED),
    "after 9": ("ok", "finalize_already_started", "finalize_already_started"),
}


def check_row(controller: Controller, row: str) -> None:
    finalization, other, same = ANSWERS[row]
    assert controller.finalize("s-0", "s-1").word == finalization
    (controller.folder / "second").touch()
    assert controller.sample("s-2").word == other
    (controller.folder / "second").unlink()
    assert controller.sample("s-1").word == same
    assert calls(controller.folder)["s-1"] <= 1
    if same == "ok":
        assert controller.sample("s-1").word == "sample_already_exists"


def test_a_sample_killed_at_every_step(fast: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """R9 R10 R11 E54: each row of the table, and at most one call for the id."""
    rows: Counter[str] = Counter()
    for step in range(1, 1000):
        folder = fast / str(step)
        folder.mkdir()
        controller = counting(folder).sampled("s-0")
        (folder / "calls").unlink()
        if not killed(controller.sample, controller, step):
            break
        row = stopped_after(controller.root)
        rows[row] += 1
        check_row(controller, row)
        assert temporaries(controller.root) == []
        assert wrong_modes(controller.root) == []
        shutil.rmtree(folder)
    with capsys.disabled():
        sys.stdout.write(f"\nsample on the wire: killed at {rows.total()} steps {dict(rows)}\n")
    assert rows.keys() == ANSWERS.keys()
    assert rows.total() > 40


def test_a_sample_killed_in_its_call(fast: Path) -> None:
    """R9: whatever its age, a started call authorises no second one."""
    controller = counting(fast).sampled("s-0")
    note = controller.reviewer.during

    def die(reviewer: Scripted) -> None:
        note(reviewer)
        os.kill(os.getpid(), signal.SIGKILL)

    (fast / "calls").unlink()
    pid = os.fork()
    if pid == 0:
        controller.reviewer.during = die
        controller.sample()
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
    assert stopped_after(controller.root) == "3 to 7"
    check_row(controller, "3 to 7")
    assert calls(fast) == {"s-1": 1}


def test_a_resumed_sample_killed_at_every_step(fast: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """R10 R42: taken up from its reservation and killed again, the id is still called for once at most."""
    steps, reserved = 0, reserving_step(fast / "first")
    for step in range(1, 1000):
        folder = fast / str(step)
        folder.mkdir()
        controller = counting(folder)
        assert killed(controller.sample, controller, reserved)
        assert stopped_after(controller.root) == "after 1"
        if not killed(controller.sample, controller, step):
            break
        again = controller.sample().word
        assert again in {"ok", "sample_already_exists", QUARANTINED}
        assert calls(folder)["s-1"] <= 1
        assert (calls(folder)["s-1"] == 1) or again == QUARANTINED
        steps = step
        shutil.rmtree(folder)
    with capsys.disabled():
        sys.stdout.write(f"\nresumed sample on the wire: killed at {steps} steps\n")
    assert steps > 30


def reserving_step(folder: Path) -> int:
    """The first step at which a kill leaves a reservation and nothing else."""
    folder.mkdir()
    controller = counting(folder)
    for step in range(1, 1000):
        assert killed(controller.sample, controller, step)
        if stopped_after(controller.root) == "after 1":
            return step
        shutil.rmtree(controller.root, ignore_errors=True)
    raise AssertionError


def published(controller: Controller) -> dict[str, bytes]:
    """The publication without its token, which every root draws anew."""
    files = content(controller.root / "calibration")
    assert files.keys() == PUBLISHED
    token = json.loads(files.pop(CLAIM))["claim_token"]
    intent = json.loads((controller.root / INTENT).read_bytes())
    assert (intent["state"], intent["claim_token"]) == ("completed", token)
    return files


def check_finished(controller: Controller, reference: dict[str, bytes]) -> str:
    """The same request finishes what was begun, or is told that it is finished."""
    word = controller.finalize().word
    assert word in {"ok", "finalize_already_started"}
    assert published(controller) == reference
    assert controller.finalize().word == "finalize_already_started"
    assert controller.sample("s-3").word == "finalize_already_started"
    assert controller.calls == 0
    assert temporaries(controller.root / "calibration") == []
    assert wrong_modes(controller.root) == []
    return word


def begin_again(controller: Controller) -> None:
    shutil.rmtree(controller.root / "calibration", ignore_errors=True)
    (controller.root / INTENT).unlink(missing_ok=True)


def test_a_finalization_killed_at_every_step(fast: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """R16 E43 E54: the same request finishes it with the same bytes, and without a call."""
    Controller(fast).sampled()
    controller = Controller(fast)
    assert controller.finalize().word == "ok"
    reference = published(controller)
    words: Counter[str] = Counter()
    for step in range(1, 1000):
        begin_again(controller)
        if not killed(controller.finalize, controller, step):
            break
        words[check_finished(controller, reference)] += 1
    with capsys.disabled():
        sys.stdout.write(f"\nfinalize on the wire: killed at {words.total()} steps {dict(words)}\n")
    assert words.total() > 45
    assert words["finalize_already_started"] >= 1


def images(recording: Recording, base: Path) -> Iterator[Counter[str]]:
    """Lay each image in its place; what had been started by then."""
    assert recording.wrong_modes == []
    for image, started in recording.images():
        shutil.rmtree(base)
        image.materialise(base)
        yield Counter(started)


def test_a_sample_after_a_power_loss_at_every_step(fast: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """R42 R9 E53: each legal image of the disk; no started id is called for again."""
    root = fast / "root"
    root.mkdir(mode=0o700)
    recording = Recording(root)
    asked = Scripted(always("tie"), during=lambda _self: recording.acknowledge("s-1"))
    assert Controller(fast, asked, fs=recording.fs).sample().word == "ok"
    words: Counter[str] = Counter()
    for started in images(recording, root):
        controller = Controller(fast)
        word = controller.sample().word
        assert started["s-1"] + controller.calls <= 1
        assert (controller.calls == 1) is (word == "ok")
        if word != QUARANTINED:
            assert controller.sample().word == "sample_already_exists"
            assert controller.sample("s-2").word == "ok"
            assert controller.finalize().word == "ok"
        words[word] += 1
    with capsys.disabled():
        sys.stdout.write(f"\nsample on the wire: {words.total()} images after a power loss {dict(words)}\n")
    assert words.keys() == {"ok", "sample_already_exists", QUARANTINED}
    assert words.total() > 60


def test_a_finalization_after_a_power_loss_at_every_step(
    fast: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R42 R16 E53: from each legal image the same request ends with the same pair."""
    Controller(fast).sampled()
    root = fast / "root"
    recording = Recording(root)
    controller = Controller(fast, fs=recording.fs)
    assert controller.finalize().word == "ok"
    recording.acknowledge("finalized")
    reference = published(controller)
    words: Counter[str] = Counter()
    for promised in images(recording, root):
        word = check_finished(Controller(fast), reference)
        assert word == "finalize_already_started" or not promised
        words[word] += 1
    with capsys.disabled():
        sys.stdout.write(f"\nfinalize on the wire: {words.total()} images after a power loss {dict(words)}\n")
    assert words.total() > 60
    assert words.keys() == {"ok", "finalize_already_started"}


def test_a_resumed_finalization_after_a_second_power_loss(
    fast: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R42 E53: lost between the renames, and then once more at any step of the retry."""
    controller = Controller(fast).sampled()
    recorded = RecordingFs(UnsyncedFs())
    controller.fs = recorded
    assert controller.finalize().word == "ok"
    reference = published(controller)
    steps = enumerate(recorded.steps, start=1)
    second = [at for at, step in steps if step.target.endswith(f"/{RESULT}")]
    begin_again(controller)
    assert killed(controller.finalize, controller, second[-1])
    assert (fast / "root/calibration" / EVIDENCE).exists()
    recording = Recording(fast / "root")
    controller = Controller(fast, fs=recording.fs)
    assert controller.finalize().word == "ok"
    count = 0
    for _ in images(recording, fast / "root"):
        check_finished(Controller(fast), reference)
        count += 1
    with capsys.disabled():
        sys.stdout.write(f"\nresumed finalize on the wire: {count} images after a power loss\n")
    assert count > 40
