"""An examination killed at every step: what was paid for is kept, and nothing is paid for twice."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.calibration.loader import load_calibration
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.pair import load_pair
from tests.support.examinations import (
    INPUTS,
    UnsyncedFs,
    open_out,
    read_inputs_once,
    run_examination,
    simulated,
)
from tests.support.private import temporaries, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem

pytestmark = pytest.mark.slow

EVIDENCE, RESULT = "reviewer-calibration.json", "reviewer-calibration-result.json"


def kill(step: int) -> Injection:
    """Kills the process before its mutating file operation number `step`."""
    return Injection("*", nth=step, before=lambda: os.kill(os.getpid(), signal.SIGKILL))


def examine(folder: Path, fs: FileSystem, *, die_in: str = "") -> None:
    """Examine, or resume; each call leaves its sample id in `asked`, that of `die_in` kills the process."""

    def before(sample_id: str) -> None:
        with (folder / "asked").open("a") as asked:
            asked.write(f"{sample_id}\n")
        if sample_id == die_in:
            os.kill(os.getpid(), signal.SIGKILL)

    with open_out(folder, fs) as out:
        run_examination(out, simulated(before=before), resume=True)


def survives(folder: Path, fs: FileSystem, *, die_in: str = "") -> bool:
    """Whether the same in a forked child comes to its end."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            examine(folder, fs, die_in=die_in)
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(pid, 0)[1]
    assert status in (0, signal.SIGKILL)
    return status == 0


def asked(folder: Path) -> Counter[str]:
    """How often each sample was called for."""
    file = folder / "asked"
    return Counter(file.read_text().split()) if file.exists() else Counter()


def check_recovered(folder: Path, reference: bytes, extra: int) -> None:
    """Resume to the end, then look at everything that was promised."""
    examine(folder, UnsyncedFs())
    calls = asked(folder)
    assert set(calls.values()) == {1}
    assert 2 <= calls.total() <= 2 + extra
    attempts = {path.name for path in (folder / "out/attempts").iterdir()}
    assert attempts <= {f"r{repeat:02d}-a{attempt}" for repeat in (1, 2) for attempt in (1, 2, 3)}
    # An attempt exists without a call only if it was killed between its intent and the call.
    assert set(calls) <= attempts
    out = open_out(folder)
    loaded = load_pair(
        out, EVIDENCE, RESULT, lambda evidence, result: load_calibration(evidence, result, inputs=INPUTS)
    )
    assert loaded.result.calibration_status == "pass"
    assert out.read(EVIDENCE) == reference
    assert out.exists("reviewer-calibration-metrics.json")
    assert temporaries(folder / "out") == []
    assert wrong_modes(folder / "out") == []


def folders(tmp_path: Path) -> Iterable[tuple[int, Path]]:
    """A new folder per step, without end."""
    step = 0
    while True:
        step += 1
        folder = tmp_path / str(step)
        folder.mkdir()
        yield step, folder


@pytest.fixture(autouse=True)
def _inputs_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read_inputs_once(monkeypatch)


@pytest.fixture
def reference(tmp_path: Path) -> bytes:
    """The evidence of an examination that nobody disturbed; a perfect reviewer always gives the same."""
    out = open_out(tmp_path, name="reference")
    run_examination(out)
    return out.read(EVIDENCE)


def test_killed_at_every_step(tmp_path: Path, reference: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """E54 R42 R28: one resume completes it, with at most one call more than without the kill."""
    steps = 0
    for step, folder in folders(tmp_path):
        if survives(folder, FaultFs(UnsyncedFs(), kill(step))):
            break
        check_recovered(folder, reference, extra=1)
        steps = step
    with capsys.disabled():
        sys.stdout.write(f"\nexamination: killed at {steps} steps\n")
    assert steps > 120


def test_a_resume_killed_at_every_step(
    tmp_path: Path, reference: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    """E54 R42 R28: after a first kill in the call of the second repeat, at most two calls are lost."""
    steps = 0
    for step, folder in folders(tmp_path):
        assert not survives(folder, UnsyncedFs(), die_in="r02-a1")
        if survives(folder, FaultFs(UnsyncedFs(), kill(step))):
            break
        check_recovered(folder, reference, extra=2)
        steps = step
    with capsys.disabled():
        sys.stdout.write(f"\nresume: killed at {steps} steps\n")
    assert steps > 60


@pytest.mark.parametrize("times", [1, 2])
def test_killed_in_a_call(tmp_path: Path, reference: bytes, times: int) -> None:
    """R9 R28: whether the answer was lost or never given, the attempt is spent and the next one asked."""
    for attempt in range(1, times + 1):
        assert not survives(tmp_path, UnsyncedFs(), die_in=f"r01-a{attempt}")
    check_recovered(tmp_path, reference, extra=times)
    assert set(asked(tmp_path)) == {*(f"r01-a{attempt}" for attempt in range(1, times + 2)), "r02-a1"}
