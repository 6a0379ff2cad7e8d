"""Finding processes by the token of their call."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.execution import Leftover, carriers, leftovers
from skill_effectiveness.execution.carriers import kill_carriers
from tests.support.processes import EXIT_CALL, PATH, alive, call, python, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

AROUND = Surroundings.real()
# Nobody else's token begins like this.
TOKEN = f"c0ffee{os.getpid():010x}"


@contextmanager
def carrier(token: str, variable: str = "SKILL_EFFECTIVENESS_CALL") -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["/bin/sleep", "60"], env={**PATH, variable: token}) as child:
        try:
            # A program has its new name a moment before its new environment.
            given, environment = f"{variable}={token}".encode(), Path(f"/proc/{child.pid}/environ")
            assert wait_until(lambda: given in environment.read_bytes())
            yield child
        finally:
            child.kill()


@contextmanager
def claiming(mark: str) -> Iterator[None]:
    """A process with a last argument, as supervisors have one."""
    argv = ["/bin/sh", "-c", "read x", "sh", mark]
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as child:  # noqa: S603 - made above
        try:
            assert wait_until(lambda: psutil.Process(child.pid).cmdline()[-1:] == [mark])
            yield
        finally:
            child.kill()


class TestLeftovers:
    def test_by_token(self) -> None:
        """F10: found with their token, and left alone."""
        with carrier(TOKEN + "a") as first, carrier(TOKEN + "b") as second:
            found = {Leftover(first.pid, TOKEN + "a", False), Leftover(second.pid, TOKEN + "b", False)}  # noqa: FBT003 - a record
            assert set(leftovers(TOKEN)) == found
            assert set(leftovers(TOKEN + "b")) == {one for one in found if one.pid == second.pid}
            assert found <= set(leftovers())
            assert first.poll() is None

    def test_of_a_call_that_still_runs(self) -> None:
        """F10: its supervisor is there, so it is nobody's leftover."""
        seen: list[bool] = []
        token = TOKEN + "c"

        def look(line: bytes) -> bool:
            seen.extend(left.supervised for left in leftovers(line.decode()))
            return False

        result = call(["/bin/sh", "-c", 'echo "$SKILL_EFFECTIVENESS_CALL"; /bin/sleep 0.1'], on_line=look)
        assert result.exit_code == 0
        assert seen
        assert all(seen)
        with claiming(f"SKILL_EFFECTIVENESS_SUPERVISOR={token}"), carrier(token):
            assert [left.supervised for left in leftovers(token)] == [True]

    @pytest.mark.parametrize("other", ["SKILL_EFFECTIVENESS_SUPERVISOR={}0", "X={}", "{}"])
    def test_whose_supervisor_is_another_s(self, other: str) -> None:
        token = TOKEN + "d"
        with claiming(other.format(token)), carrier(token):
            assert [left.supervised for left in leftovers(token)] == [False]

    def test_nobody(self) -> None:
        assert leftovers(TOKEN) == ()

    def test_processes_that_cannot_be_asked_are_passed_over(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(process: psutil.Process) -> dict[str, str]:
            raise psutil.AccessDenied(process.pid)

        monkeypatch.setattr(psutil.Process, "environ", refuse)
        with carrier(TOKEN):
            assert leftovers(TOKEN) == ()


class TestKilling:
    def test_carriers_and_all_below_them(self) -> None:
        """P10: also what dropped the token, as long as its parent carries it."""
        with subprocess.Popen(
            ["/bin/sh", "-c", "env -i /bin/sleep 60 & wait"],
            env={**PATH, "SKILL_EFFECTIVENESS_CALL": TOKEN},
        ) as child:
            tree = psutil.Process(child.pid)
            assert wait_until(lambda: [one.name() for one in tree.children()] == ["sleep"])
            below = tree.children()[0].pid
            assert kill_carriers(TOKEN, None, AROUND) == (2, 0)
            assert not alive(child.pid)
            assert not alive(below)

    def test_others_are_left_alone(self) -> None:
        with carrier(TOKEN + "a") as other:
            assert kill_carriers(TOKEN, None, AROUND) == (0, 0)
            assert other.poll() is None

    def test_one_whose_environment_cannot_be_read_by_its_session(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """P10: a program may close itself to us (prctl(2), PR_SET_DUMPABLE)."""

        def refuse(process: psutil.Process) -> dict[str, str]:
            raise psutil.AccessDenied(process.pid)

        monkeypatch.setattr(psutil.Process, "environ", refuse)
        with subprocess.Popen(["/bin/sleep", "60"], start_new_session=True) as child:
            assert kill_carriers(TOKEN, child.pid, AROUND) == (1, 0)
            assert child.wait() == -9

    @pytest.mark.skipif(EXIT_CALL is None, reason="the number of exit(2) is not known on this machine")
    def test_one_whose_leader_is_gone_by_its_session(self) -> None:
        """P10: it looks like a zombie and runs."""
        source = (
            "import ctypes, threading, time\n"
            "threading.Thread(target=time.sleep, args=(60,)).start()\n"
            f"ctypes.CDLL(None).syscall({EXIT_CALL}, 0)"
        )
        with subprocess.Popen(python(source), start_new_session=True) as child:  # noqa: S603 - made above
            looked_at = psutil.Process(child.pid)
            assert wait_until(lambda: looked_at.status() == psutil.STATUS_ZOMBIE)
            assert looked_at.num_threads() == 2
            assert kill_carriers(TOKEN, child.pid, AROUND) == (1, 0)
            assert child.wait() == -9

    def test_what_will_not_die_is_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """P10: the number that is alive still."""

        def refuse(process: psutil.Process) -> None:
            raise psutil.AccessDenied(process.pid)

        monkeypatch.setattr(psutil.Process, "kill", refuse)
        monkeypatch.setattr(carriers, "KILL_SECONDS", 0.1)
        with carrier(TOKEN) as child:
            assert kill_carriers(TOKEN, None, AROUND) == (1, 1)
            monkeypatch.undo()
            assert child.poll() is None
