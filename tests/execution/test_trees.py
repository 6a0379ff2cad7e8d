"""The whole tree is dead when a call returns, and when we die: whatever the program did to escape."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.execution import Ended, Limits, leftovers, supervision
from skill_effectiveness.execution.carriers import kill_carriers
from tests.support.processes import (
    EXIT_CALL,
    IMPORTS,
    PATH,
    Lines,
    alive,
    all_dead,
    all_noted,
    call,
    family,
    noted,
    wait_until,
)

SLEEPER = """
def sleeper(name):
    note(name); time.sleep(60)
"""
SESSION = """
def session():
    os.setsid(); note("session"); time.sleep(60)
spawn(session); wait_for("session")
"""
DAEMON = """
def first():
    os.setsid()
    spawn(second)
def second():
    os.setsid(); os.chdir("/"); note("daemon"); time.sleep(60)
spawn(first); os.wait(); wait_for("daemon")
"""
STUBBORN = """
def stubborn():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    os.setsid(); note("stubborn"); time.sleep(60)
spawn(stubborn); wait_for("stubborn")
"""
STOPPED = """
def stopped():
    os.setsid(); note("stopped"); os.kill(os.getpid(), signal.SIGSTOP)
spawn(stopped); wait_for("stopped")
"""
GROUPS = """
def grouped():
    os.setpgid(0, 0); note("grouped"); time.sleep(60)
spawn(grouped); wait_for("grouped")
"""
DEEP = """
def level(depth):
    note(f"level{depth}")
    if depth:
        os.setsid()
        spawn(lambda: level(depth - 1))
    time.sleep(60)
spawn(lambda: level(8)); wait_for("level0")
"""
# Each line of descent forks and ends at once, for ever, in a session of its own: a number seen is gone soon.
HOPPING = """
for _ in range(4):
    def hop():
        while True:
            if os.getsid(0) != os.getpid():
                os.setsid()
            if os.fork():
                os._exit(0)
    spawn(hop)
note("up")
"""
# Two watchers that start each other again as soon as one of them is gone.
WATCHERS = """
def watcher(name):
    os.setsid()
    while True:
        note(name)
        pid = os.fork()
        if pid == 0:
            continue
        os.waitpid(pid, 0)
spawn(lambda: watcher("one")); spawn(lambda: watcher("two")); wait_for("one", "two")
"""
# The leader ends before its thread, so the process table calls a running process a zombie.
LEADERLESS = """
import ctypes, threading
def leaderless():
    os.setsid()
    threading.Thread(target=lambda: (time.sleep(0.1), note("leaderless"), time.sleep(60))).start()
    ctypes.CDLL(None).syscall(%d, 0)
spawn(leaderless); wait_for("leaderless")
"""

ESCAPES = {
    "a session of its own": SESSION,
    "a double fork": DAEMON,
    "deaf to every polite signal": STUBBORN,
    "stopped": STOPPED,
    "a group of its own": GROUPS,
    "nine sessions deep": DEEP,
}


class TestAfterANormalExit:
    @pytest.mark.parametrize("source", ESCAPES.values(), ids=ESCAPES.keys())
    def test_nothing_is_left(self, tmp_path: Path, source: str) -> None:
        """R27 P10 F8: dead before the result is there, and counted."""
        lines = Lines()
        result = call(family(source + 'say("answer")', tmp_path / "pids"), on_line=lines)
        assert all_dead(tmp_path / "pids")
        assert (result.ended, result.exit_code, lines) == (Ended.EXITED, 0, [b"answer"])
        assert result.survivors >= 1
        assert result.unkilled == 0

    def test_nothing_is_counted_where_nothing_was_left(self) -> None:
        assert call(["/bin/sh", "-c", "/bin/true & wait"]).survivors == 0

    def test_the_count_is_exact(self, tmp_path: Path) -> None:
        """F8: survivors are reported."""
        source = 'for i in range(5): spawn(lambda: (note(f"child{i}"), time.sleep(60)))\n'
        source += 'wait_for(*(f"child{i}" for i in range(5)))'
        assert call(family(source, tmp_path / "pids")).survivors == 5

    def test_those_that_fork_and_end_for_ever(self, tmp_path: Path) -> None:
        """P10: no number in the process table lives long enough to be signalled at leisure."""
        result = call(family(HOPPING, tmp_path / "pids"))
        assert (result.ended, result.unkilled) == (Ended.EXITED, 0)
        assert leftovers(result.token) == ()

    def test_those_that_start_each_other_again(self, tmp_path: Path) -> None:
        """P10: killed together, not one after the other."""
        result = call(family(WATCHERS, tmp_path / "pids"))
        assert (result.ended, result.unkilled) == (Ended.EXITED, 0)
        assert leftovers(result.token) == ()

    @pytest.mark.skipif(EXIT_CALL is None, reason="the number of exit(2) is not known on this machine")
    def test_a_process_whose_leader_is_gone(self, tmp_path: Path) -> None:
        """P10: it looks like a zombie and runs."""
        result = call(family(LEADERLESS % EXIT_CALL, tmp_path / "pids"))
        assert (result.survivors, result.unkilled) == (1, 0)
        assert leftovers(result.token) == ()

    def test_those_with_an_empty_environment(self, tmp_path: Path) -> None:
        """P10: the tree is found by descent, not by what it carries."""
        source = (
            "def bare():\n"
            "    os.setsid(); note('bare')\n"
            "    os.execve('/bin/sleep', ['sleep', '60'], {})\n"
            "spawn(bare); wait_for('bare'); time.sleep(0.1)"
        )
        call(family(source, tmp_path / "pids"))
        assert all_dead(tmp_path / "pids")


class TestAfterALimit:
    @pytest.mark.parametrize("source", ESCAPES.values(), ids=ESCAPES.keys())
    def test_nothing_is_left(self, tmp_path: Path, source: str) -> None:
        """P10 F8 F9: the same for a call that is ended by us."""
        main = "\nsignal.signal(signal.SIGTERM, signal.SIG_IGN); note('main'); time.sleep(60)"
        limits = Limits(0.6, grace_seconds=0.1)
        result = call(family(source + main, tmp_path / "pids"), limits=limits)
        assert result.ended is Ended.WALL_TIMEOUT
        assert all_dead(tmp_path / "pids")

    def test_a_stopped_program_hears_the_request(self, tmp_path: Path) -> None:
        """F9: a stopped process takes no TERM until it is continued."""
        source = "note('main'); os.kill(os.getpid(), signal.SIGSTOP); time.sleep(60)"
        result = call(family(source, tmp_path / "pids"), limits=Limits(0.4))
        assert (result.ended, result.signal) == (Ended.WALL_TIMEOUT, signal.SIGTERM)
        assert all_dead(tmp_path / "pids")

    def test_a_flood_from_a_grandchild(self, tmp_path: Path) -> None:
        """P10: the program has ended, a descendant goes on writing into its stdout."""
        source = (
            "def flood():\n    os.setsid(); note('flood')\n    while True: say('x' * 1000)\n"
            "spawn(flood); wait_for('flood'); say('end')"
        )
        result = call(family(source, tmp_path / "pids"))
        assert all_dead(tmp_path / "pids")
        assert (result.exit_code, result.survivors) == (0, 1)


class TestTheSupervisor:
    @pytest.mark.parametrize("escape", ["", SESSION])
    def test_killed_by_its_own_program(self, tmp_path: Path, escape: str) -> None:
        """P10: noticed, cleaned up after, and never a success although the answer was complete."""
        lines = Lines(marker=b"answer")
        source = escape + "note('main'); say('answer')\nos.kill(os.getppid(), signal.SIGKILL); time.sleep(60)"
        result = call(family(source, tmp_path / "pids"), on_line=lines)
        assert result.ended is Ended.SUPERVISOR_LOST
        assert (result.exit_code, result.signal) == (None, None)
        assert all_dead(tmp_path / "pids")

    def test_what_escaped_from_it_is_found_by_its_token(self, tmp_path: Path) -> None:
        """P10 F10: the kernel kills the program with its supervisor; its daemon carries the token."""
        source = DAEMON + "os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)"
        result = call(family(source, tmp_path / "pids"))
        assert (result.ended, result.unkilled) == (Ended.SUPERVISOR_LOST, 0)
        assert result.survivors >= 1
        assert all_dead(tmp_path / "pids")

    def test_what_emptied_its_environment_is_found_by_its_session(self, tmp_path: Path) -> None:
        """P10: as long as it stays in the program's session."""
        source = (
            "def bare():\n    note('bare'); os.execve('/bin/sleep', ['sleep', '60'], {})\n"
            "spawn(bare); wait_for('bare'); time.sleep(0.1); os.kill(os.getppid(), signal.SIGKILL)\n"
            "time.sleep(60)"
        )
        result = call(family(source, tmp_path / "pids"))
        assert result.ended is Ended.SUPERVISOR_LOST
        assert all_dead(tmp_path / "pids")

    def test_stopped_by_its_own_program(self, tmp_path: Path) -> None:
        """P10 R26: a supervisor that cannot act is continued, and the limit holds."""
        source = "note('main'); os.kill(os.getppid(), signal.SIGSTOP); time.sleep(60)"
        result = call(family(source, tmp_path / "pids"), limits=Limits(0.5))
        assert result.ended is Ended.WALL_TIMEOUT
        assert result.wall_seconds < 2.5
        assert all_dead(tmp_path / "pids")

    def test_asked_to_end_by_anybody(self, tmp_path: Path) -> None:
        """P10: it takes the tree along."""
        source = SESSION + "os.kill(os.getppid(), signal.SIGTERM); time.sleep(60)"
        result = call(family(source, tmp_path / "pids"))
        assert (result.ended, result.signal) == (Ended.EXITED, signal.SIGKILL)
        assert all_dead(tmp_path / "pids")

    def test_without_subreapers_token_and_group_have_to_do(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """R27: where the platform has none."""
        monkeypatch.setattr(supervision, "REAPER", False)
        result = call(family(SESSION + DAEMON + GROUPS, tmp_path / "pids"))
        assert (result.ended, result.exit_code) == (Ended.EXITED, 0)
        assert result.survivors >= 3
        assert all_dead(tmp_path / "pids")


RUNNER = """
import os, signal, sys, threading, time
from pathlib import Path
from tests.support.processes import *
pids = Path(sys.argv[1])
signal.signal(signal.SIGINT, signal.default_int_handler)
def run(source, **more):
    return call(family(source, pids), **more)
"""


def runner(source: str, pids: Path) -> subprocess.Popen[bytes]:
    """A process of its own that runs a call."""
    pids.mkdir(exist_ok=True)
    return subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", RUNNER + source, str(pids)],
        env={**PATH, "PYTHONPATH": IMPORTS},
        stdout=subprocess.PIPE,
    )


EVERYTHING = SLEEPER + SESSION + DAEMON + STUBBORN + STOPPED + GROUPS
WAITING = EVERYTHING + "signal.signal(signal.SIGTERM, signal.SIG_IGN); sleeper('main')"
SPEAKING = "say('x')\n" + WAITING
QUIET = SESSION + SLEEPER + "sleeper('main')"


class TestWhenWeDie:
    def test_by_kill(self, tmp_path: Path) -> None:
        """F10 P10: nothing of ours gets to run, and nothing of the tree outlives us."""
        pids = tmp_path / "pids"
        with runner(f"run({WAITING!r}, limits=Limits(60))", pids) as process:
            noted(pids, "main")
            assert not all_dead(pids)
            process.kill()
        assert wait_until(lambda: all_dead(pids), 5)

    def test_by_kill_while_another_process_holds_our_descriptors(self, tmp_path: Path) -> None:
        """F10: a fork of ours keeps the socket to the supervisor open; the kernel tells it all the same."""
        pids = tmp_path / "pids"
        fork = (
            "def fork(line):\n"
            "    if os.fork() == 0:\n"
            "        (pids / 'fork').write_text(str(os.getpid())); time.sleep(60)\n"
            "    return False\n"
        )
        source = f"run({SPEAKING!r}, limits=Limits(60), on_line=fork)"
        with runner(fork + source, pids) as process:
            noted(pids, "main")
            holder = noted(pids, "fork")
            process.kill()
            process.wait()
            try:
                assert wait_until(lambda: not any(alive(p) for p in all_noted(pids) if p != holder), 5)
                assert alive(holder)
            finally:
                os.kill(holder, signal.SIGKILL)

    def test_by_kill_together_with_the_supervisor(self, tmp_path: Path) -> None:
        """F10: the program dies with its supervisor; the next start finds what escaped, and its token."""
        pids = tmp_path / "pids"
        with runner(f"run({QUIET!r}, limits=Limits(60))", pids) as process:
            main, session = noted(pids, "main"), noted(pids, "session")
            running = [left for left in leftovers() if left.pid == session]
            assert [left.supervised for left in running] == [True]
            supervisor = int(Path(f"/proc/{main}/stat").read_text().rpartition(")")[2].split()[1])
            process.send_signal(signal.SIGSTOP)
            os.kill(supervisor, signal.SIGKILL)
            process.kill()
        assert wait_until(lambda: not alive(main), 5)
        found = [left for left in leftovers() if left.pid == session]
        assert [(left.token, left.supervised) for left in found] == [(running[0].token, False)]
        assert kill_carriers(running[0].token, None, Surroundings.real()) == (1, 0)
        assert not alive(session)

    def test_by_a_signal_that_nobody_handles(self, tmp_path: Path) -> None:
        """F10 P10: TERM with its default action."""
        pids = tmp_path / "pids"
        with runner(f"run({WAITING!r}, limits=Limits(60))", pids) as process:
            noted(pids, "main")
            process.terminate()
        assert wait_until(lambda: all_dead(pids), 5)


class TestWhenWeAreStopped:
    TOLD = "result = run({source!r}, limits=Limits({limits})); print(result.ended, result.signal)"

    def test_the_limit_holds_all_the_same(self, tmp_path: Path) -> None:
        """P10 R26: by the supervisor's own clock, and it is told as what it is."""
        pids = tmp_path / "pids"
        with runner(self.TOLD.format(source=WAITING, limits="1, grace_seconds=0.2"), pids) as process:
            noted(pids, "main")
            process.send_signal(signal.SIGSTOP)
            began = time.monotonic()
            try:
                assert wait_until(lambda: all_dead(pids), 8)
                assert time.monotonic() - began < 5
            finally:
                process.send_signal(signal.SIGCONT)
            out, _ = process.communicate(timeout=10)
        assert out == b"wall_timeout 9\n"

    def test_a_program_that_ends_too_late_meanwhile_is_no_success(self, tmp_path: Path) -> None:
        """R26: nor is what it wrote."""
        pids = tmp_path / "pids"
        source = self.TOLD.format(source="note('main'); time.sleep(2)", limits="1, grace_seconds=9")
        with runner(source, pids) as process:
            noted(pids, "main")
            process.send_signal(signal.SIGSTOP)
            try:
                assert wait_until(lambda: all_dead(pids), 8)
                time.sleep(0.3)
            finally:
                process.send_signal(signal.SIGCONT)
            out, _ = process.communicate(timeout=10)
        assert out == b"wall_timeout None\n"

    def test_one_that_ends_in_time_meanwhile_is_one(self, tmp_path: Path) -> None:
        """Whenever we come to hear of it."""
        pids = tmp_path / "pids"
        source = self.TOLD.format(source="note('main'); time.sleep(0.2)", limits="3")
        with runner(source, pids) as process:
            noted(pids, "main")
            process.send_signal(signal.SIGSTOP)
            try:
                assert wait_until(lambda: all_dead(pids), 8)
                time.sleep(3.2)
            finally:
                process.send_signal(signal.SIGCONT)
            out, _ = process.communicate(timeout=10)
        assert out == b"exited None\n"


class TestWhenWeAreInterrupted:
    TOLD = """
try:
    {call}
except BaseException as fault:
    print(type(fault).__name__, all_dead(pids), flush=True)
"""

    @pytest.mark.parametrize("times", [1, 3])
    def test_by_the_keyboard(self, tmp_path: Path, times: int) -> None:
        """P10: KeyboardInterrupt arrives when the tree is dead, also when it is pressed again meanwhile."""
        pids = tmp_path / "pids"
        source = self.TOLD.format(call=f"run({WAITING!r}, limits=Limits(60, grace_seconds=5))")
        with runner(source, pids) as process:
            noted(pids, "main")
            for _ in range(times):
                process.send_signal(signal.SIGINT)
                time.sleep(0.002)
            out, _ = process.communicate(timeout=10)
        assert out == b"KeyboardInterrupt True\n"

    def test_by_a_handler_that_exits(self, tmp_path: Path) -> None:
        """P10: SystemExit from a handler likewise."""
        pids = tmp_path / "pids"
        handler = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
        source = self.TOLD.format(call=f"run({WAITING!r}, limits=Limits(60))")
        with runner(handler + source, pids) as process:
            noted(pids, "main")
            process.terminate()
            out, _ = process.communicate(timeout=10)
        assert out == b"SystemExit True\n"

    def test_by_a_handler_that_raises_again_and_again(self, tmp_path: Path) -> None:
        """P10: whatever a handler raises, and however often, the tree is dead first."""
        pids = tmp_path / "pids"
        handler = "def raising(*_): raise RuntimeError\nsignal.signal(signal.SIGTERM, raising)\n"
        with runner(handler + self.TOLD.format(call=f"run({WAITING!r}, limits=Limits(60))"), pids) as process:
            noted(pids, "main")
            for _ in range(3):
                process.terminate()
                time.sleep(0.002)
            out, _ = process.communicate(timeout=10)
        assert out == b"RuntimeError True\n"

    def test_during_the_grace(self, tmp_path: Path) -> None:
        """P10 F9: an interruption does not wait for a grace that is already running."""
        pids = tmp_path / "pids"
        limits = "Limits(1, grace_seconds=30)"
        waiting = EVERYTHING + "signal.signal(signal.SIGTERM, lambda *_: note('asked')); sleeper('main')"
        waiting += "\ntime.sleep(60)"
        with runner(self.TOLD.format(call=f"run({waiting!r}, limits={limits})"), pids) as process:
            noted(pids, "asked")
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=10)
        assert out == b"KeyboardInterrupt True\n"
