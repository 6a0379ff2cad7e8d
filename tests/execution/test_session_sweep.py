"""What a killed process left in the temporary folder."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.execution import SessionFolders, SessionSweep, sweep_sessions
from skill_effectiveness.execution.session_owner import SessionOwner
from tests.support.processes import IMPORTS, wait_until

if TYPE_CHECKING:
    from pathlib import Path

REAL = Surroundings.real()
NOTHING = SessionSweep(removed=0, left=0)
MARK = "session-owner.json"

KILLED = """
import sys, time
from dataclasses import replace
from pathlib import Path
from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.execution import SessionFolders
base = Path(sys.argv[1])
session = SessionFolders(replace(Surroundings.real(), environ={"TMPDIR": str(base / "base")})).__enter__()
session.link_login("auth.json", base / "auth.json")
(base / "ready").touch()
time.sleep(60)
"""


def around(base: Path) -> Surroundings:
    return replace(REAL, environ={"TMPDIR": str(base)})


def abandoned(base: Path, name: str = "00112233445566ff") -> Path:
    """A session of a process that is gone: number 1 began at another time."""
    owner = SessionOwner.here(around(base)).model_copy(update={"pid": 1, "process_start": "x"})
    parent = base / f"skill-effectiveness-{name}"
    (parent / "config").mkdir(parents=True, mode=0o700)
    parent.chmod(0o700)
    (parent / MARK).write_bytes(owner.line())
    (parent / MARK).chmod(0o600)
    return parent


class TestASweep:
    def test_removes_what_a_killed_process_left(self, tmp_path: Path) -> None:
        """F10 P3: with the link to the login file, and not the file."""
        base = tmp_path / "base"
        base.mkdir(mode=0o700)
        (tmp_path / "auth.json").write_text("secret")
        arguments = [sys.executable, "-c", KILLED, str(tmp_path)]
        with subprocess.Popen(arguments, env={"PYTHONPATH": IMPORTS}) as child:  # noqa: S603 - this interpreter
            try:
                assert wait_until((tmp_path / "ready").exists)
                assert sweep_sessions(around(base)) == NOTHING
                assert len(list(base.iterdir())) == 1
            finally:
                child.send_signal(signal.SIGKILL)
        assert len(list(base.glob("*/config/auth.json"))) == 1
        assert sweep_sessions(around(base)) == SessionSweep(removed=1, left=0)
        assert list(base.iterdir()) == []
        assert (tmp_path / "auth.json").read_text() == "secret"

    def test_leaves_sessions_of_this_process(self, tmp_path: Path) -> None:
        with SessionFolders(around(tmp_path)) as session:
            assert sweep_sessions(around(tmp_path)) == NOTHING
            assert session.work.is_dir()

    def test_leaves_what_has_another_name(self, tmp_path: Path) -> None:
        for name in ("demo.Ab12", "00112233445566f", "00112233445566ff0", "00112233445566FF"):
            abandoned(tmp_path, name)
        assert sweep_sessions(around(tmp_path)) == NOTHING
        assert len(list(tmp_path.iterdir())) == 4

    def test_leaves_what_has_no_mark_yet(self, tmp_path: Path) -> None:
        """F10: a session that is being made at this moment."""
        (abandoned(tmp_path) / MARK).unlink()
        assert sweep_sessions(around(tmp_path)) == NOTHING
        assert len(list(tmp_path.iterdir())) == 1

    def test_believes_no_mark_that_others_can_write(self, tmp_path: Path) -> None:
        (abandoned(tmp_path) / MARK).chmod(0o666)
        assert sweep_sessions(around(tmp_path)) == NOTHING

    def test_follows_no_link(self, tmp_path: Path) -> None:
        base = tmp_path / "base"
        base.mkdir(mode=0o700)
        target = abandoned(tmp_path)
        (base / target.name).symlink_to(target)
        assert sweep_sessions(around(base)) == NOTHING
        assert (target / MARK).exists()

    def test_where_it_is_asked_to(self, tmp_path: Path) -> None:
        base = tmp_path / "base"
        base.mkdir(mode=0o700)
        abandoned(base)
        assert sweep_sessions(around(tmp_path)) == NOTHING
        assert sweep_sessions(around(tmp_path), base) == SessionSweep(removed=1, left=0)

    def test_says_what_stays(self, tmp_path: Path) -> None:
        abandoned(tmp_path)
        abandoned(tmp_path, "00112233445566aa")
        stuck = Injection("rmdir", errno.EBUSY, nth=0, about=lambda path: path.endswith("66ff"))
        swept = sweep_sessions(replace(around(tmp_path), fs=FaultFs(REAL.fs, stuck)))
        assert swept == SessionSweep(removed=1, left=1)

    def test_needs_the_folder(self, tmp_path: Path) -> None:
        with pytest.raises(FileError) as caught:
            sweep_sessions(around(tmp_path / "none"))
        assert caught.value.code is FileCode.MISSING

    def test_leaves_no_descriptor_open(self, tmp_path: Path) -> None:
        abandoned(tmp_path)
        fs = FaultFs(REAL.fs)
        sweep_sessions(replace(around(tmp_path), fs=fs))
        assert fs.open_paths == []


@pytest.mark.parametrize("step", range(1, 6))
def test_whoever_dies_while_removing_leaves_the_mark(tmp_path: Path, step: int) -> None:
    """F10: so that the next sweep finds the rest."""

    class KilledError(BaseException):
        pass

    def die() -> None:
        raise KilledError

    parent = abandoned(tmp_path)
    for name in ("home", "data", "tmp", "work"):
        (parent / name).mkdir(mode=0o700)
    (parent / "config" / "auth.json").symlink_to(os.devnull)
    dying = FaultFs(REAL.fs, Injection("rmdir", nth=step, before=die))
    with pytest.raises(KilledError):
        sweep_sessions(replace(around(tmp_path), fs=dying))
    assert (parent / MARK).exists()
    assert sweep_sessions(around(tmp_path)) == SessionSweep(removed=1, left=0)
    assert list(tmp_path.iterdir()) == []
