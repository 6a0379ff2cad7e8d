"""One child: what it gets, what it may say, how its end is told. Trees stand in test_trees."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.execution import Ended, LimitName, Limits, StartFault, run_process, supervision
from tests.support.processes import IMPORTS, PATH, Lines, call, python

if TYPE_CHECKING:
    import socket

WRITE = "import sys; sys.stdout.buffer.write({}); sys.stdout.flush()"


class TestWhatTheChildGets:
    def test_its_environment_is_what_is_passed_and_the_token(self) -> None:
        """P3: nothing of ours leaks into the child's environment."""
        lines = Lines()
        result = call(["/usr/bin/env"], env={"A": "1", "EMPTY": "", "ODD": "a=b c"}, on_line=lines)
        assert sorted(lines) == [
            b"A=1",
            b"EMPTY=",
            b"ODD=a=b c",
            b"SKILL_EFFECTIVENESS_CALL=" + result.token.encode(),
        ]

    def test_the_token_is_drawn_per_call(self) -> None:
        around = replace(Surroundings.real(), entropy=lambda count: b"\xab" * count)
        result = run_process(
            ["/bin/true"],
            cwd=Path("/"),
            env={},
            stdin=b"",
            limits=Limits(5),
            on_line=Lines(),
            around=around,
        )
        assert result.token == "ab" * 16

    def test_arguments_and_folder_reach_it_unchanged(self, tmp_path: Path) -> None:
        lines = Lines()
        words = ["", "a b", "*", "$HOME", "ü", "\udcff", "line\nbreak"]
        source = "import os, sys; print(os.getcwd()); print(*(os.fsencode(a).hex() for a in sys.argv[1:]))"
        call(python(source, *words), cwd=tmp_path, on_line=lines)
        assert lines[0] == os.fsencode(tmp_path)
        assert lines[1].decode().split(" ") == [os.fsencode(word).hex() for word in words]

    def test_no_descriptor_but_the_standard_streams(self, tmp_path: Path) -> None:
        """E28: not even an inheritable one, so that a surviving grandchild holds no lock of ours."""
        held = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.set_inheritable(held, True)  # noqa: FBT003 - its own signature
            fcntl.flock(held, fcntl.LOCK_EX)
            lines = Lines()
            source = "import os; print(sorted(os.listdir('/proc/self/fd'), key=int)[:-1])"
            call(python(source), on_line=lines)
            assert lines == [b"['0', '1', '2']"]
        finally:
            os.close(held)

    def test_default_signals_and_an_empty_mask(self) -> None:
        before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
        try:
            lines = Lines()
            call(["/bin/grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"], on_line=lines)
        finally:
            signal.signal(signal.SIGUSR1, before)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        # The C library keeps 32 and 33 for itself: no program can change what it inherited for them.
        reserved = 1 << 31 | 1 << 32
        assert [int(line.split()[1], 16) & ~reserved for line in lines] == [0, 0]

    def test_it_is_reaped_where_we_ignore_the_end_of_children(self) -> None:
        """P10: whatever our process does with SIGCHLD."""
        before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            result = call(["/bin/sh", "-c", "setsid /bin/sleep 60 & exit 5"])
        finally:
            signal.signal(signal.SIGCHLD, before)
        assert (result.ended, result.exit_code) == (Ended.EXITED, 5)

    def test_no_core_file_and_a_session_of_its_own(self) -> None:
        lines = Lines()
        source = (
            "import os, resource; print(resource.getrlimit(resource.RLIMIT_CORE)); "
            "print(os.getsid(0) == os.getpid() == os.getpgid(0))"
        )
        call(python(source), on_line=lines)
        assert lines == [b"(0, 0)", b"True"]

    def test_our_own_process_is_left_as_it_was(self, capfd: pytest.CaptureFixture[str]) -> None:
        """P10: no subreaper, no handler, no descriptor and no line of output stays with us."""
        before = (
            resource.getrlimit(resource.RLIMIT_CORE),
            signal.getsignal(signal.SIGCHLD),
            set(os.listdir("/proc/self/fd")),  # noqa: PTH208 - numbers, not paths
            os.umask(0o022),
        )
        call(["/bin/sh", "-c", "echo out; echo err >&2"])
        after = (
            resource.getrlimit(resource.RLIMIT_CORE),
            signal.getsignal(signal.SIGCHLD),
            set(os.listdir("/proc/self/fd")),  # noqa: PTH208 - numbers, not paths
            os.umask(before[3]),
        )
        assert before[:3] == after[:3]
        assert capfd.readouterr() == ("", "")


class TestStdin:
    def test_the_prompt_arrives_whole_and_is_followed_by_the_end(self) -> None:
        """P4 F7: stdin is closed after the prompt, so a reader of all of it goes on."""
        prompt = b"line\n" * 200_000 + b"no line end"
        lines = Lines()
        result = call(["/usr/bin/wc", "-c"], stdin=prompt, on_line=lines)
        assert lines == [b"1000011"]
        assert (result.ended, result.exit_code, result.stdin_complete) == (Ended.EXITED, 0, True)

    def test_nothing_to_say_is_the_null_device(self) -> None:
        """F7: an empty prompt gives a stdin at its end, not a pipe that never closes."""
        lines = Lines()
        result = call(["/bin/sh", "-c", "readlink /proc/$$/fd/0; cat"], on_line=lines)
        assert lines == [b"/dev/null"]
        assert result.stdin_complete

    def test_a_child_that_never_reads_is_ended_by_the_wall_limit(self) -> None:
        """R26: with a prompt that fills the pipe; over within two seconds after the limit."""
        began = time.monotonic()
        result = call(["/bin/sleep", "60"], stdin=b"x" * 4_000_000, limits=Limits(0.4))
        assert time.monotonic() - began < 2.4
        assert (result.ended, result.stdin_complete) == (Ended.WALL_TIMEOUT, False)

    def test_so_is_one_that_also_ignores_the_request_to_end(self) -> None:
        """R26 F9: the default grace leaves room below the two seconds."""
        began = time.monotonic()
        result = call(
            ["/bin/sh", "-c", "trap '' TERM; while :; do /bin/sleep 1; done"],
            stdin=b"x" * 4_000_000,
            limits=Limits(0.3),
        )
        assert time.monotonic() - began < 2.3
        assert (result.ended, result.signal) == (Ended.WALL_TIMEOUT, signal.SIGKILL)

    def test_a_child_may_close_its_stdin_and_go_on(self) -> None:
        lines = Lines()
        result = call(
            ["/bin/sh", "-c", "exec 0<&-; /bin/sleep 0.1; echo done"], stdin=b"x" * 4_000_000, on_line=lines
        )
        assert lines == [b"done"]
        assert (result.ended, result.exit_code, result.stdin_complete) == (Ended.EXITED, 0, False)

    def test_reading_and_writing_go_on_together(self) -> None:
        """P5: a child that answers while it is still being told neither blocks nor is blocked."""
        prompt = b"".join(b"%d\n" % number for number in range(300_000))
        lines = Lines()
        result = call(["/bin/cat"], stdin=prompt, on_line=lines)
        assert result.exit_code == 0
        assert b"\n".join(lines) + b"\n" == prompt


class TestLines:
    def test_only_lf_ends_a_line(self) -> None:
        """P5 F20: CR, VT, U+0085 and U+2028 are content, and a character split over writes arrives whole."""
        lines = Lines()
        source = (
            "import os, time\n"
            "os.write(1, 'a\\r\\vb\\u0085\\u2028'.encode() + b'\\xf0\\x9f'); time.sleep(0.1)\n"
            "os.write(1, b'\\x98\\x80\\n\\n')"
        )
        call(python(source), on_line=lines)
        assert lines == ["a\r\vb\u0085\u2028\U0001f600".encode(), b""]

    def test_a_last_line_without_its_end_is_told_apart(self) -> None:
        """P5: half a line is never delivered as a line."""
        lines = Lines()
        result = call(python(WRITE.format("b'one\\nhalf'")), on_line=lines)
        assert lines == [b"one"]
        assert result.unterminated == b"half"

    @pytest.mark.parametrize("size", [70_000, 1_000_000])
    def test_a_long_line_is_delivered(self, size: int) -> None:
        """F17: 70,000 bytes are one line."""
        lines = Lines()
        result = call(python(WRITE.format(f"b'x' * {size} + b'\\n'")), on_line=lines)
        assert lines == [b"x" * size]
        assert result.exit_code == 0

    def test_a_line_of_32_mebibytes_is_refused_by_name(self) -> None:
        """F17: the child is not blocked by it and the reader does not die."""
        lines = Lines()
        result = call(python(WRITE.format("b'first\\n' + b'x' * 33_554_432 + b'\\n'")), on_line=lines)
        assert lines == [b"first"]
        assert (result.ended, result.limit) == (Ended.LIMIT, LimitName.LINE_BYTES)

    def test_or_delivered_where_the_limit_is_wider(self) -> None:
        """F17: the same line under a limit that has room for it."""
        lines = Lines()
        result = call(
            python(WRITE.format("b'x' * 33_554_432 + b'\\n'")),
            on_line=lines,
            limits=Limits(10, line_bytes=33_554_432),
        )
        assert [len(line) for line in lines] == [33_554_432]
        assert result.exit_code == 0

    def test_what_is_still_in_the_pipe_at_the_end_is_delivered(self) -> None:
        """P5: a program may widen the pipe, fill it and be gone before anything of that is read."""
        lines: list[int] = []

        def slow(line: bytes) -> bool:
            lines.append(len(line))
            if len(lines) == 1:
                time.sleep(0.4)
            return False

        source = (
            "import fcntl, os; fcntl.fcntl(1, 1031, 1 << 20)\n"  # F_SETPIPE_SZ
            "os.write(1, b'go\\n'); os.write(1, (b'x' * 99 + b'\\n') * 9000 + b'half')"
        )
        result = call(python(source), on_line=slow)
        assert lines == [2] + [99] * 9000
        assert (result.exit_code, result.unterminated) == (0, b"half")

    def test_stdout_may_be_closed_early(self) -> None:
        """P5: the end of stdout is not the end of the program."""
        lines = Lines()
        result = call(["/bin/sh", "-c", "echo one; exec 1>&-; /bin/sleep 0.2; exit 3"], on_line=lines)
        assert lines == [b"one"]
        assert (result.ended, result.exit_code) == (Ended.EXITED, 3)

    def test_an_exception_of_the_listener_reaches_the_caller(self) -> None:
        def refuse(line: bytes) -> bool:
            raise LookupError(line)

        began = time.monotonic()
        with pytest.raises(LookupError):
            call(["/bin/sh", "-c", "echo x; exec /bin/sleep 60"], on_line=refuse)
        assert time.monotonic() - began < 5


class TestLimits:
    def test_all_of_stdout(self) -> None:
        """P5: what fits is delivered, one byte more ends the call under its name."""
        lines = Lines()
        result = call(python(WRITE.format("b'abc\\n' * 3")), on_line=lines, limits=Limits(10, stdout_bytes=8))
        assert lines == [b"abc", b"abc"]
        assert (result.ended, result.limit) == (Ended.LIMIT, LimitName.STDOUT_BYTES)

    def test_a_flood_is_ended_at_once(self) -> None:
        """P5: a child that never stops writing."""
        began = time.monotonic()
        result = call(["/bin/sh", "-c", "exec yes"], limits=Limits(10, stdout_bytes=1_000_000))
        assert time.monotonic() - began < 5
        assert (result.ended, result.limit, result.signal) == (
            Ended.LIMIT,
            LimitName.STDOUT_BYTES,
            signal.SIGKILL,
        )

    def test_all_of_stderr(self) -> None:
        """P5: stderr is kept up to its limit."""
        result = call(["/bin/sh", "-c", "yes >&2"], limits=Limits(10, stderr_bytes=5))
        assert result.stderr == b"y\ny\ny"
        assert (result.ended, result.limit) == (Ended.LIMIT, LimitName.STDERR_BYTES)

    def test_exactly_at_every_limit_nothing_happens(self) -> None:
        result = call(
            ["/bin/sh", "-c", "echo abc; printf 12345 >&2"],
            limits=Limits(10, line_bytes=3, stdout_bytes=4, stderr_bytes=5),
        )
        assert (result.ended, result.exit_code, result.stderr) == (Ended.EXITED, 0, b"12345")

    def test_wall_time_counts_however_busy_it_is(self) -> None:
        result = call(
            ["/bin/sh", "-c", "while :; do echo x; /bin/sleep 0.02; done"],
            limits=Limits(0.4, idle_seconds=5),
        )
        assert result.ended is Ended.WALL_TIMEOUT
        assert 0.4 <= result.wall_seconds < 2.4

    def test_silence_is_no_fault_by_itself(self) -> None:
        """F11: a program that prints only at its end."""
        lines = Lines()
        result = call(["/bin/sh", "-c", "/bin/sleep 0.5; echo done"], on_line=lines)
        assert (result.ended, lines) == (Ended.EXITED, [b"done"])

    def test_silence_may_be_limited(self) -> None:
        """F11: under a name of its own, apart from the wall limit."""
        result = call(["/bin/sh", "-c", "echo x; exec /bin/sleep 60"], limits=Limits(10, idle_seconds=0.3))
        assert result.ended is Ended.IDLE_TIMEOUT
        assert result.wall_seconds < 5

    @pytest.mark.parametrize("stream", ["1", "2"])
    def test_either_stream_breaks_the_silence(self, stream: str) -> None:
        """F11: a live stream is not idle."""
        script = f"for i in 1 2 3 4 5 6; do /bin/sleep 0.15; echo x >&{stream}; done"
        result = call(["/bin/sh", "-c", script], limits=Limits(10, idle_seconds=0.6))
        assert (result.ended, result.exit_code) == (Ended.EXITED, 0)


class TestEnds:
    @pytest.mark.parametrize("code", [0, 1, 7, 255])
    def test_an_exit_code(self, code: int) -> None:
        result = call(["/bin/sh", "-c", f"exit {code}"])
        assert (result.ended, result.exit_code, result.signal) == (Ended.EXITED, code, None)

    def test_a_signal_that_is_not_ours(self) -> None:
        result = call(["/bin/sh", "-c", "kill -SEGV $$"])
        assert (result.ended, result.exit_code, result.signal) == (Ended.EXITED, None, signal.SIGSEGV)

    def test_a_program_that_shows_its_marker_and_stays(self) -> None:
        """F6: its answer counts, after the grace it is ended."""
        lines = Lines(marker=b"end")
        result = call(
            ["/bin/sh", "-c", "echo answer; echo end; echo more; exec /bin/sleep 60"],
            on_line=lines,
            limits=Limits(10, grace_seconds=0.3),
        )
        assert lines == [b"answer", b"end", b"more"]
        assert (result.ended, result.signal) == (Ended.LINGERED, signal.SIGTERM)
        assert 0.3 <= result.wall_seconds < 3

    def test_a_program_that_goes_soon_after_its_marker(self) -> None:
        lines = Lines(marker=b"end")
        result = call(
            ["/bin/sh", "-c", "echo end; /bin/sleep 0.2; exit 4"],
            on_line=lines,
            limits=Limits(10, grace_seconds=2),
        )
        assert (result.ended, result.exit_code) == (Ended.EXITED, 4)

    def test_a_second_turn_takes_the_marker_back(self) -> None:
        """F6: a program that goes on after its marker is not ended, however long that takes."""
        lines = Lines(marker=b"end")
        result = call(
            ["/bin/sh", "-c", "echo end; echo again; /bin/sleep 0.9; echo end; exit 3"],
            on_line=lines,
            limits=Limits(10, grace_seconds=0.3),
        )
        assert (result.ended, result.exit_code) == (Ended.EXITED, 3)
        assert lines == [b"end", b"again", b"end"]

    def test_the_grace_begins_anew_with_every_marker(self) -> None:
        """F6: also when the old marker, its end and the new one arrive together."""
        lines = Lines(marker=b"end")
        result = call(
            ["/bin/sh", "-c", r"echo end; /bin/sleep 0.4; printf 'again\nend\n'; /bin/sleep 0.4; exit 3"],
            on_line=lines,
            limits=Limits(10, grace_seconds=0.6),
        )
        assert (result.ended, result.exit_code) == (Ended.EXITED, 3)
        assert lines == [b"end", b"again", b"end"]

    def test_silence_without_a_marker_is_no_end(self) -> None:
        """F6: a stream that stops in the middle runs into the wall limit."""
        lines = Lines(marker=b"end")
        result = call(["/bin/sh", "-c", "echo tool; exec /bin/sleep 60"], on_line=lines, limits=Limits(0.4))
        assert result.ended is Ended.WALL_TIMEOUT

    def test_time_to_end_is_given_before_the_kill(self) -> None:
        """F9: TERM first, and a program that tidies up in the grace is not killed."""
        script = "trap 'echo tidy >&2; exit 5' TERM; while :; do /bin/sleep 0.05; done"
        result = call(["/bin/sh", "-c", script], limits=Limits(0.3))
        assert (result.ended, result.exit_code) == (Ended.WALL_TIMEOUT, 5)
        assert result.stderr.endswith(b"tidy\n")

    def test_a_kill_follows_where_it_is_not_taken(self) -> None:
        """F9: after the grace."""
        script = "trap '' TERM; while :; do /bin/sleep 0.05; done"
        result = call(["/bin/sh", "-c", script], limits=Limits(0.2, grace_seconds=0.3))
        assert (result.ended, result.signal) == (Ended.WALL_TIMEOUT, signal.SIGKILL)
        assert 0.5 <= result.wall_seconds < 2.5

    def test_nothing_is_delivered_after_the_decision(self) -> None:
        lines = Lines()
        script = "trap 'echo late; exit 0' TERM; echo early; while :; do /bin/sleep 0.05; done"
        result = call(["/bin/sh", "-c", script], on_line=lines, limits=Limits(0.4))
        assert lines == [b"early"]
        assert result.ended is Ended.WALL_TIMEOUT

    def test_our_own_stop(self) -> None:
        stop = threading.Event()

        def stop_at_once(_line: bytes) -> bool:
            stop.set()
            return False

        result = call(
            ["/bin/sh", "-c", "echo x; exec /bin/sleep 60"], on_line=stop_at_once, cancelled=stop.is_set
        )
        assert result.ended is Ended.CANCELLED
        assert result.wall_seconds < 3

    def test_calls_do_not_disturb_each_other(self) -> None:
        def one(number: int) -> tuple[int | None, Lines]:
            lines = Lines()
            result = call(["/bin/sh", "-c", f"/bin/sleep 0.1; echo {number}; exit {number}"], on_line=lines)
            return result.exit_code, lines

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(one, range(8))) == [(number, [b"%d" % number]) for number in range(8)]


class TestPrograms:
    def test_missing(self, tmp_path: Path) -> None:
        result = call([str(tmp_path / "none")])
        assert (result.ended, result.start_fault) == (Ended.UNSTARTABLE, StartFault.MISSING)
        assert (result.exit_code, result.signal, result.stdin_complete) == (None, None, False)

    @pytest.mark.parametrize(
        ("content", "mode", "fault"),
        [
            (b"#!/bin/sh\n", 0o600, StartFault.NOT_EXECUTABLE),
            (b"no program", 0o700, StartFault.NOT_A_PROGRAM),
            (b"", 0o700, StartFault.NOT_A_PROGRAM),
            (b"#!/nowhere/interpreter\n", 0o700, StartFault.MISSING),
            (b"#!/\n", 0o700, StartFault.NOT_EXECUTABLE),
            (b"#!\n", 0o700, StartFault.NOT_A_PROGRAM),
        ],
    )
    def test_unfit(self, tmp_path: Path, content: bytes, mode: int, fault: StartFault) -> None:
        program = tmp_path / "program"
        program.write_bytes(content)
        program.chmod(mode)
        result = call([str(program)], stdin=b"prompt")
        assert (result.ended, result.start_fault) == (Ended.UNSTARTABLE, fault)

    def test_a_folder(self, tmp_path: Path) -> None:
        assert call([str(tmp_path)]).start_fault is StartFault.NOT_EXECUTABLE

    @pytest.mark.parametrize("folder", ["none", "file"])
    def test_a_working_folder_that_is_none(self, tmp_path: Path, folder: str) -> None:
        (tmp_path / "file").touch()
        result = call(["/bin/true"], cwd=tmp_path / folder)
        assert (result.ended, result.start_fault) == (Ended.UNSTARTABLE, StartFault.FOLDER_UNUSABLE)

    @pytest.mark.parametrize(
        ("argv", "env"),
        [
            ([], {}),
            (["true"], {}),
            (["./true"], {}),
            (["/bin/true", "a\0b"], {}),
            (["/bin/true", "\ud800"], {}),
            (["/bin/true"], {"": "x"}),
            (["/bin/true"], {"A=B": "x"}),
            (["/bin/true"], {"A": "x\0y"}),
        ],
    )
    def test_words_that_no_kernel_takes(self, argv: list[str], env: dict[str, str]) -> None:
        result = call(argv, env=env)
        assert (result.ended, result.start_fault) == (Ended.UNSTARTABLE, StartFault.ARGUMENT_FORM)

    def test_too_many_words(self) -> None:
        result = call(["/bin/true", "x" * 200_000])
        assert (result.ended, result.start_fault) == (Ended.UNSTARTABLE, StartFault.TOO_LONG)

    def test_no_process_to_be_had(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208 - numbers, not paths
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
        result = call(["/bin/true"], stdin=b"prompt")
        assert (result.ended, result.start_fault) == (Ended.UNSTARTABLE, StartFault.NO_RESOURCES)
        assert set(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - numbers, not paths

    def test_no_watch_to_be_had(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """P10: a supervisor that runs already is not left behind."""

        def fail(_self: supervision.Supervision) -> int:
            raise OSError(28, "No space left on device")

        before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208 - numbers, not paths
        monkeypatch.setattr(supervision.Supervision, "fileno", fail)
        assert call(["/bin/true"]).start_fault is StartFault.NO_RESOURCES
        assert set(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - numbers, not paths

    def test_no_descriptor_to_be_had(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail() -> tuple[socket.socket, socket.socket]:
            raise OSError(24, "Too many open files")

        before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208 - numbers, not paths
        monkeypatch.setattr(supervision, "high_sockets", fail)
        assert call(["/bin/true"]).start_fault is StartFault.NO_RESOURCES
        assert set(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - numbers, not paths


class TestClosedStandardStreams:
    def test_a_call_from_a_process_without_standard_streams(self, tmp_path: Path) -> None:
        """P4: pipes never land on the numbers that the child gets replaced."""
        source = (
            "import sys; from pathlib import Path; from tests.support.processes import *\n"
            "lines = Lines(); result = call(['/bin/cat'], stdin=b'hello\\n', on_line=lines)\n"
            "Path(sys.argv[1]).write_text(f'{lines} {result.ended} {result.exit_code}')\n"
        )
        target = tmp_path / "result"
        argv = ["/bin/sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', sys.executable, "-c", source, str(target)]
        result = call(argv, env={**PATH, "PYTHONPATH": IMPORTS})
        assert result.exit_code == 0
        assert target.read_text() == "[b'hello'] exited 0"


class TestWhatStaysBehind:
    def test_no_file_is_written(self, tmp_path: Path) -> None:
        call(["/bin/sh", "-c", "exit 0"], cwd=tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_no_source_of_ours_is_read_while_it_runs(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """P2: whatever lies in the package's folder by then."""
        monkeypatch.setattr(supervision, "__file__", str(tmp_path / "supervision.py"))
        (tmp_path / "supervisor.py").write_text("raise SystemExit(1)")
        assert call(["/bin/true"]).exit_code == 0
