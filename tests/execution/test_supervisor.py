"""The supervisor itself: its reading of the process table, and what it reports when it cannot do its work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

import psutil
import pytest

from skill_effectiveness.execution import Ended, Limits, leftovers, process, supervision, supervisor
from skill_effectiveness.execution.descriptors import high_sockets
from tests.support.crippled import crippled, replaced
from tests.support.processes import Lines, alive, all_dead, call, family, noted, python, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE = supervisor.__file__


def gone(pid: int) -> bool:
    return not alive(pid)


@pytest.fixture
def stray(tmp_path: Path) -> Iterator[Path]:
    """A folder of noted processes, whatever is left of which is killed at the end."""
    pids = tmp_path / "pids"
    yield pids
    for path in pids.glob("*"):
        pid = int(path.read_text())
        if alive(pid):
            os.kill(pid, signal.SIGKILL)
            assert wait_until(partial(gone, pid))


SESSION = "spawn(lambda: (os.setsid(), note('session'), time.sleep(60))); wait_for('session')"
NO_SIGNALS = "real['KILL_SECONDS'] = 0.2\nos.kill = os.killpg = refuse\nsignal.pidfd_send_signal = refuse\n"


class TestTheProcessTable:
    def test_a_row(self) -> None:
        entry = supervisor.read_entry(os.getpid())
        assert entry is not None
        assert (entry.pid, entry.parent, entry.alive) == (os.getpid(), os.getppid(), True)

    def test_no_row(self) -> None:
        assert supervisor.read_entry(2**22 + 1) is None

    @pytest.mark.parametrize("name", [") Z 0 (", "a) R 1 2", "a b\nc", "))) X 9 9"])
    def test_a_name_that_looks_like_fields(self, tmp_path: Path, name: str) -> None:
        """P10: a program cannot hide in the table by its name."""
        program = tmp_path / name
        program.write_text("#!/bin/sh\nread x\n")
        program.chmod(0o700)
        with subprocess.Popen([program], stdin=subprocess.PIPE) as child:  # noqa: S603 - made above
            assert wait_until(lambda: psutil.Process(child.pid).name().startswith(name[:10]))
            entry = supervisor.read_entry(child.pid)
            assert entry is not None
            assert (entry.parent, entry.alive) == (os.getpid(), True)
            child.communicate(b"\n")

    def test_a_zombie_is_not_alive(self) -> None:
        child = subprocess.Popen(["/bin/true"])
        try:
            assert wait_until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE)
            entry = supervisor.read_entry(child.pid)
            assert entry is not None
            assert not entry.alive
        finally:
            child.wait()

    def test_who_is_below(self) -> None:
        with subprocess.Popen(
            ["/bin/sh", "-c", "/bin/sh -c '/bin/sleep 60; true' & read x"], stdin=subprocess.PIPE
        ) as child:
            try:
                tree = psutil.Process(child.pid)
                assert wait_until(lambda: len(tree.children(recursive=True)) == 2)
                expected = {child.pid, *(below.pid for below in tree.children(recursive=True))}
                assert expected <= {entry.pid for entry in supervisor.descendants()}
                assert os.getppid() not in {entry.pid for entry in supervisor.descendants()}
                assert child.pid in supervisor.children()
            finally:
                for below in tree.children(recursive=True):
                    below.kill()
                child.communicate(b"\n")

    def test_a_circle_of_numbers_used_again_ends(self) -> None:
        table = {
            5: supervisor.Entry(5, 6, 1, alive=True),
            6: supervisor.Entry(6, 5, 1, alive=True),
            7: supervisor.Entry(7, 1, 1, alive=True),
        }
        below = {0: False, 1: True}
        for pid in table:
            supervisor.climb(pid, table, below)
        assert below == {0: False, 1: True, 5: False, 6: False, 7: True}

    @pytest.mark.parametrize("handles", [True, False])
    def test_a_number_used_again_is_not_signalled(
        self, monkeypatch: pytest.MonkeyPatch, *, handles: bool
    ) -> None:
        """P10: nobody else is hit."""
        if not handles:
            monkeypatch.delattr(os, "pidfd_open")
        with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as child:
            entry = supervisor.read_entry(child.pid)
            assert entry is not None
            supervisor.send(entry._replace(started=entry.started - 1), signal.SIGKILL)
            assert child.poll() is None
            supervisor.send(entry, signal.SIGKILL)
            assert child.wait() == -signal.SIGKILL
            supervisor.send(entry, signal.SIGKILL)


class TestWhatItCannotKill:
    def test_is_reported_and_no_success(self, stray: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """P10: an answer does not count while something of its tree is alive."""
        crippled(monkeypatch, NO_SIGNALS)
        lines = Lines()
        result = call(family(SESSION + "\nsay('answer')", stray), on_line=lines)
        assert lines == [b"answer"]
        assert (result.ended, result.unkilled, result.survivors) == (Ended.UNKILLED, 1, 1)
        assert alive(noted(stray, "session"))

    def test_outranks_every_other_ending(self, stray: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        crippled(monkeypatch, NO_SIGNALS)
        result = call(family(SESSION + "\ntime.sleep(60)", stray), limits=Limits(0.4, grace_seconds=0.1))
        assert result.ended is Ended.UNKILLED


class TestWithoutAProcessTable:
    BLIND = "def FileIO(*_): raise FileNotFoundError\nreal['FileIO'] = FileIO\nos.listdir = refuse\n"

    def test_the_process_group_is_still_killed(self, stray: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """R27: and that nothing is left is still proved, by the kernel's answer to a wait."""
        crippled(monkeypatch, self.BLIND)
        source = "spawn(lambda: (note('child'), time.sleep(60))); wait_for('child')"
        result = call(family(source, stray))
        assert (result.ended, result.exit_code, result.unkilled) == (Ended.EXITED, 0, 0)
        assert all_dead(stray)

    def test_what_cannot_be_found_is_known_to_be_there(
        self, stray: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """P10: not seeing a process is not the same as there being none."""
        crippled(monkeypatch, self.BLIND + "real['KILL_SECONDS'] = 0.2\n")
        result = call(family(SESSION, stray))
        assert result.ended is Ended.UNKILLED
        assert result.unkilled >= 1

    @pytest.mark.parametrize("missing", ["pidfd_open", "children"])
    def test_older_kernels_do_without(
        self, stray: Path, monkeypatch: pytest.MonkeyPatch, missing: str
    ) -> None:
        changes = "del os.pidfd_open\n" if missing == "pidfd_open" else "real['children'] = set\n"
        crippled(monkeypatch, changes)
        result = call(family(SESSION, stray))
        assert (result.ended, result.survivors, result.unkilled) == (Ended.EXITED, 1, 0)
        assert all_dead(stray)


class TestAFaultOfTheSupervisor:
    def test_in_the_middle_still_kills_the_tree(self, stray: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """P10: but nobody saw the end, so it is no success."""
        crippled(monkeypatch, "real['watch'] = lambda *_: 1 / 0\n")
        result = call(family("note('main'); time.sleep(60)", stray))
        assert result.ended is Ended.SUPERVISOR_LOST
        assert all(not alive(int(path.read_text())) for path in stray.glob("*"))

    @pytest.mark.parametrize("source", ["", "raise SystemExit(3)", "import os; os.kill(os.getpid(), 9)"])
    def test_before_its_order(self, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
        replaced(monkeypatch, source)
        result = call(["/bin/true"], stdin=b"prompt" * 100_000)
        assert (result.ended, result.exit_code) == (Ended.SUPERVISOR_LOST, None)

    def test_a_supervisor_that_says_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """P10 R26: it is waited for, killed, and what it started is looked for."""
        monkeypatch.setattr(process, "REPORT_SECONDS", 0.4)
        replaced(monkeypatch, "import time; time.sleep(60)")
        result = call(["/bin/true"], limits=Limits(0.2, grace_seconds=0.1))
        assert result.ended is Ended.SUPERVISOR_LOST
        assert result.wall_seconds < 3

    def test_a_supervisor_that_takes_no_order(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """R26: an order larger than the socket holds does not block us beyond the limit."""
        replaced(monkeypatch, "import time; time.sleep(60)")
        words = ["x" * 100_000] * 15
        result = call(["/bin/true", *words], limits=Limits(0.3, grace_seconds=0.1))
        assert result.ended is Ended.SUPERVISOR_LOST
        assert result.wall_seconds < 3

    def test_words_it_does_not_know_say_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        replaced(
            monkeypatch,
            "import os, sys; os.write(int(sys.argv[1]), b'started 1\\nended 0\\nhello world\\n')",
        )
        assert call(["/bin/true"]).ended is Ended.SUPERVISOR_LOST


class TestWithoutAnAsker:
    def test_an_order_that_is_cut_starts_nothing(self, tmp_path: Path) -> None:
        """F10: we died while we were asking."""
        mark = tmp_path / "mark"
        order = supervision.StartOrder(["/usr/bin/touch", str(mark)], "/", {}, "t", "p", 9.0, 1.0).encoded()
        assert order is not None
        for cut in (0, 1, 5, len(order) - 1):
            ours, theirs = high_sockets()
            with ours, theirs:
                child = subprocess.Popen(  # noqa: S603 - our own file
                    [sys.executable, "-I", "-S", "-B", FILE, str(theirs.fileno()), "0", "1", "2"],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                theirs.close()
                ours.sendall(order[:cut])
                ours.close()
                assert child.wait(5) == 0
        assert not mark.exists()

    def test_it_needs_the_standard_library_only(self) -> None:
        """P10: it starts without site packages, and soon."""
        source = (
            "import runpy, sys\n"
            f"runpy.run_path({FILE!r}, run_name='loaded')\n"
            "print(sorted({n.partition('.')[0] for n in sys.modules} - set(sys.stdlib_module_names)))"
        )
        lines = Lines()
        call(python(source), on_line=lines)
        assert lines == [b"['__main__']"]


class TestLeftovers:
    def test_none_of_a_call_that_is_over(self) -> None:
        assert leftovers(call(["/bin/true"]).token) == ()
