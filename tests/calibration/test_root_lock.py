from __future__ import annotations

import errno
import json
import os
import signal
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.calibration.errors import CalibrationCode, CalibrationError
from skill_effectiveness.calibration.root_lock import LOCK_WAIT_SECONDS, SAMPLE_LOCK, lives, locked
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.lock import Holder, Lock
from tests.support.examinations import Anything, UnsyncedFs, open_out
from tests.support.private import surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def held_by_child(folder: Path, then: Callable[[], object]) -> tuple[int, int]:
    """A child that holds the lock until it is told to go; its pid and the pipe that tells it."""
    ready, tell_ready = os.pipe()
    wait, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(tell)
            with Lock(open_out(folder), SAMPLE_LOCK).hold(0, "a sample"):
                then()
                os.write(tell_ready, b".")
                os.read(wait, 1)
            code = 0
        finally:
            os._exit(code)
    os.close(wait)
    os.close(tell_ready)
    assert os.read(ready, 1) == b"."
    os.close(ready)
    return pid, tell


@pytest.fixture
def children() -> Iterator[list[int]]:
    pids: list[int] = []
    yield pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def refused(folder: Path, wait: float, look: float) -> tuple[CalibrationCode, float]:
    began = time.monotonic()
    with pytest.raises(CalibrationError) as caught, locked(open_out(folder), wait, "test", look=look):
        pass
    return caught.value.code, time.monotonic() - began


def nothing() -> None:
    """Hold it as it is."""


class TestWaiting:
    def test_while_the_holder_lives(self, tmp_path: Path, children: list[int]) -> None:
        """R14: up to the limit, however often one looks."""
        children.append(held_by_child(tmp_path, nothing)[0])
        code, seconds = refused(tmp_path, wait=0.6, look=0.1)
        assert code is CalibrationCode.SAMPLE_LOCK_UNAVAILABLE
        assert 0.6 <= seconds < 3

    def test_ends_when_the_holder_lets_go(self, tmp_path: Path) -> None:
        """R14: the next one goes on at once."""
        pid, tell = held_by_child(tmp_path, nothing)
        threading.Timer(0.3, os.write, (tell, b".")).start()
        with locked(open_out(tmp_path), 20, "test", look=0.1):
            pass
        assert os.waitpid(pid, 0)[1] == 0
        os.close(tell)

    def test_ends_when_the_holder_is_killed(self, tmp_path: Path) -> None:
        """R14 E27: the kernel frees its lock."""
        pid, tell = held_by_child(tmp_path, nothing)
        threading.Timer(0.3, os.kill, (pid, signal.SIGKILL)).start()
        with locked(open_out(tmp_path), 20, "test", look=0.1):
            pass
        assert os.waitpid(pid, 0)[1] == signal.SIGKILL
        os.close(tell)

    @pytest.mark.parametrize(
        "record",
        [
            {"process_start": "1"},
            {"pid": 2**22 + 1},
            {"boot_id": "another"},
            None,
        ],
        ids=["reused pid", "no such pid", "before a restart", "no record"],
    )
    def test_does_not_go_on_for_a_holder_that_is_gone(
        self, tmp_path: Path, children: list[int], record: dict[str, Any] | None
    ) -> None:
        """R14: whoever has the lock then is not one of ours that is about to be done."""
        file = tmp_path / "out" / f"{SAMPLE_LOCK}.holder"

        def misrecord() -> None:
            if record is None:
                file.unlink()
            else:
                file.write_bytes(json.dumps(json.loads(file.read_bytes()) | record).encode())

        children.append(held_by_child(tmp_path, misrecord)[0])
        code, seconds = refused(tmp_path, wait=60, look=0.1)
        assert code is CalibrationCode.SAMPLE_LOCK_UNAVAILABLE
        assert 0.2 <= seconds < 10

    def test_takes_an_hour_at_most(self) -> None:
        assert LOCK_WAIT_SECONDS == 3600


@pytest.mark.parametrize(
    ("operation", "number", "code"),
    [
        ("open_update", errno.EMFILE, CalibrationCode.SAMPLE_LOCK_UNAVAILABLE),
        ("open_update", errno.EACCES, CalibrationCode.SAMPLE_LOCK_UNAVAILABLE),
        ("write", errno.ENOSPC, CalibrationCode.SAMPLE_LOCK_UNAVAILABLE),
        ("open_update", errno.ENOSYS, CalibrationCode.INVALID_ARTIFACT_ROOT),
        ("open_update", errno.EOPNOTSUPP, CalibrationCode.INVALID_ARTIFACT_ROOT),
        ("open_update", errno.ELOOP, CalibrationCode.ARTIFACT_ROOT_QUARANTINED),
    ],
)
def test_a_lock_that_cannot_be_had(
    tmp_path: Path, operation: str, number: int, code: CalibrationCode
) -> None:
    """R15 E26: passing troubles, a file system without locks, and something that is no lock."""
    failing = Injection(operation, errno=number, nth=0, about=lambda path: SAMPLE_LOCK in path)
    out = open_out(tmp_path, FaultFs(UnsyncedFs(), failing))
    with pytest.raises(CalibrationError) as caught, locked(out, 0, "test"):
        pass
    assert caught.value.code is code


class TestHolding:
    def test_drops_what_interrupted_writes_left(self, tmp_path: Path) -> None:
        out = open_out(tmp_path)
        for folder in ("sample-ledger", "samples", "observations"):
            with out.child(folder, create=True):
                left = tmp_path / "out" / folder / ".s-1.json.0123456789abcdef.tmp"
                left.touch(mode=0o600)
        with locked(out, 0, "test"):
            assert not list((tmp_path / "out").rglob("*.tmp"))

    def test_a_signal_that_is_raised_frees_it(self, tmp_path: Path) -> None:
        with pytest.raises(KeyboardInterrupt), locked(open_out(tmp_path), 0, "test"):
            raise KeyboardInterrupt
        with locked(open_out(tmp_path), 0, "test"):
            pass


class TestLives:
    def holder(self, **changes: Anything) -> Holder:
        around = surroundings()
        start = around.fs.process_start(os.getpid())
        holder = Holder(os.getpid(), start, around.boot_id, around.host, "x", "now")
        return replace(holder, **changes)

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({}, True),
            ({"process_start": "1"}, False),
            ({"pid": 2**22 + 1}, False),
            ({"boot_id": "another"}, False),
            ({"host": "another", "pid": 2**22 + 1}, True),
            ({"process_start": ""}, True),
        ],
        ids=str,
    )
    def test_by_record(self, changes: dict[str, Any], *, expected: bool) -> None:
        assert lives(self.holder(**changes), surroundings()) is expected
