"""strace around real programs, inside and outside a sandbox; a machine without it is told so."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.execution import (
    Access,
    Ended,
    Limits,
    Place,
    Sandbox,
    Trace,
    Tracer,
    read_trace,
    run_process,
)

REAL = Surroundings.real()
TRACER = Tracer.found(REAL)
SANDBOX = Sandbox.found(REAL)
needed = pytest.mark.skipif(TRACER is None, reason="strace is not installed, or may not watch here")
both = pytest.mark.skipif(TRACER is None or SANDBOX is None, reason="strace and bubblewrap are needed")


def program(folder: Path, text: str) -> Path:
    folder.mkdir()
    path = folder / "strace"
    path.write_text(text)
    path.chmod(0o755)
    return folder


class TestFinding:
    def test_none_on_the_path_is_none(self, tmp_path: Path) -> None:
        """P13: detected, never brought along."""
        assert Tracer.found(replace(REAL, environ={"PATH": str(tmp_path)})) is None

    @pytest.mark.parametrize("text", ["#!/bin/sh\nexit 1\n", "#!/bin/sh\nkill -9 $$\n", "no program"])
    def test_one_that_may_not_watch_here_is_none(self, tmp_path: Path, text: str) -> None:
        """One that is too old for our words says so by its exit code."""
        folder = program(tmp_path / "bin", text)
        assert Tracer.found(replace(REAL, environ={"PATH": str(folder)})) is None

    def test_the_words_of_the_program_are_never_words_for_strace(self) -> None:
        words = Tracer(Path("/usr/bin/strace")).watching(["/bin/echo", "-o", "/x"], Path("/log"))
        assert words[-5:] == ["--output=/log", "--", "/bin/echo", "-o", "/x"]


class Watching:
    """A shell script that is watched."""

    def __init__(self, tmp_path: Path) -> None:
        self.log = tmp_path / "log"
        self.own = tmp_path / "own"
        self.outside = tmp_path / "outside"
        for folder in (self.own, self.outside):
            folder.mkdir()
        (self.outside / "secret").write_text("secret")

    def run(self, script: str, *, sandboxed: bool = False, seconds: float = 20) -> Trace:
        assert TRACER is not None
        argv = ["/bin/sh", "-c", script]
        if sandboxed:
            assert SANDBOX is not None
            argv = SANDBOX.holding(argv, folder="/app", places=[Place(self.own, "/app", writable=True)])
        self.result = run_process(
            TRACER.watching(argv, self.log),
            cwd=self.own,
            env={"PATH": "/usr/bin:/bin", "OUT": str(self.outside), "LOG": str(self.log)},
            stdin=b"asked\n",
            limits=Limits(seconds),
            on_line=lambda _: False,
            around=REAL,
        )
        return read_trace(REAL.fs, self.log, prelude=int(sandboxed), folder=self.own)


@pytest.fixture
def watching(tmp_path: Path) -> Watching:
    return Watching(tmp_path)


@needed
class TestWatching:
    def test_what_is_done_to_files(self, watching: Watching) -> None:
        trace = watching.run("cat >in; cat $OUT/secret >/dev/null; mkdir d; mv in d/out; rm d/out; ls d")
        assert trace.faults == ()
        own, outside = os.fsencode(watching.own), os.fsencode(watching.outside)
        assert {
            Access("open", "write", own + b"/in"),
            Access("open", "read", outside + b"/secret"),
            Access("write", None, own + b"/d"),
            Access("write", None, own + b"/d/out"),
            Access("enumerate", None, own + b"/d"),
            Access("read", None, b"/bin/sh"),
        } <= set(trace.accesses)

    def test_the_exit_code_and_the_streams_are_the_programs(self, watching: Watching) -> None:
        watching.run("cat; exit 7")
        assert (watching.result.ended, watching.result.exit_code) == (Ended.EXITED, 7)
        assert watching.result.stdin_complete

    def test_what_is_left_running_is_seen_to_its_end(self, watching: Watching) -> None:
        trace = watching.run("(sleep 0.1; echo x > late) & wait; setsid sh -c 'echo y > apart'")
        assert trace.faults == ()
        written = {one.path.rpartition(b"/")[2] for one in trace.accesses if one.mode == "write"}
        assert {b"late", b"apart"} <= written

    @pytest.mark.slow
    def test_an_end_by_force_leaves_a_record_that_is_known_to_be_none(self, watching: Watching) -> None:
        """Of a watcher that was killed nobody says that its record is whole."""
        trace = watching.run("kill -9 $PPID; sleep 60")
        assert not trace.whole

    def test_a_program_that_spoils_the_log_spoils_the_record(self, watching: Watching) -> None:
        """Nobody can put a line into it and have it taken for one of a whole record."""
        trace = watching.run("echo '1 open(\"/x\", O_RDONLY) = 3' > $LOG; cat $OUT/secret > /dev/null")
        assert not trace.whole

    def test_names_that_are_no_text(self, watching: Watching) -> None:
        script = "import os; open(b'\\xff\\n) = 3<etc>\\x01', 'w'); os.unlink(b'\\xff\\n) = 3<etc>\\x01')"
        trace = watching.run(f'{sys.executable} -c "{script}"')
        assert trace.faults == ()
        path = os.fsencode(watching.own) + b"/\xff\n) = 3<etc>\x01"
        assert {Access("open", "write", path), Access("write", None, path)} <= set(trace.accesses)


@both
class TestOutsideASandbox:
    def test_paths_are_those_inside_and_what_is_not_there_is_refused(self, watching: Watching) -> None:
        """S13: the watcher stands outside, and what it watches finds neither it nor its log."""
        trace = watching.run("echo x > out; cat $OUT/secret; echo x > $LOG; true", sandboxed=True)
        assert trace.faults == ()
        assert Access("open", "write", b"/app/out") in trace.accesses
        assert Access("open", "read", os.fsencode(watching.outside) + b"/secret") in trace.refused
        assert not any(one.path.startswith(b"/oldroot") for one in trace.accesses)
        assert (watching.own / "out").exists()

    def test_what_is_left_running_ends_with_the_sandbox_and_is_seen_to(self, watching: Watching) -> None:
        trace = watching.run("sleep 60 & sleep 60 & echo x > out", sandboxed=True)
        assert trace.faults == ()


class TestReading:
    def test_a_log_that_is_not_there(self, tmp_path: Path) -> None:
        trace = read_trace(REAL.fs, tmp_path / "none")
        assert "the log cannot be read" in trace.faults

    def test_a_log_that_ends_in_the_middle(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        log.write_bytes(b'7 execve("\\x2f\\x61", [...], 0x7 /* 1 var */) = 0\n7 +++ exited with 0 +++\n7 op')
        assert read_trace(REAL.fs, log).faults == ("the log ends in the middle of a line",)

    def test_a_line_beyond_all_reason(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        log.write_bytes(b"7 " + b"x" * 2_000_000)
        assert "the log is longer than is read" in read_trace(REAL.fs, log).faults
