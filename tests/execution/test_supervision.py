"""Our side of the supervisor: the order on the wire, and what is heard."""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.execution import supervision, supervisor
from skill_effectiveness.execution.descriptors import high_sockets
from skill_effectiveness.execution.supervision import StartOrder, Supervision
from tests.support.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def order(argv: tuple[str, ...] = ("/bin/true",), **environment: str) -> StartOrder:
    return StartOrder(argv, "/", environment, "token", "proof", 220, 1.5)


class TestAnOrder:
    def test_on_the_wire(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """P10: length, LF, then the fields that supervisor.py names, NUL between them."""
        monkeypatch.setattr(supervision, "REAPER", True)
        body = b"1.5\000220.0\0001\0proof\0/\0003\0/bin/echo\0a b\0\0A=1=2\0SKILL_EFFECTIVENESS_CALL=token"
        assert order(("/bin/echo", "a b", ""), A="1=2").encoded() == b"%d\n" % len(body) + body

    def test_where_the_platform_has_no_subreapers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(supervision, "REAPER", False)
        body = b"1.5\000220.0\0000\0proof\0/\0001\0/bin/true\0SKILL_EFFECTIVENESS_CALL=token"
        assert order().encoded() == b"%d\n" % len(body) + body

    def test_the_token_of_the_call_is_ours(self) -> None:
        """F10: whatever the environment says."""
        encoded = order(SKILL_EFFECTIVENESS_CALL="other").encoded()
        assert encoded is not None
        assert encoded.endswith(b"\0SKILL_EFFECTIVENESS_CALL=token")
        assert b"other" not in encoded

    def test_bytes_that_are_no_text_go_through(self) -> None:
        encoded = order(("/bin/echo", os.fsdecode(b"\xff"))).encoded()
        assert encoded is not None
        assert b"\0\xff\0" in encoded

    @pytest.mark.parametrize("argv", [(), ("true",), ("",), ("/bin/echo", "a\0b"), ("/bin/echo", "\ud83d")])
    def test_no_kernel_could_take_these_arguments(self, argv: tuple[str, ...]) -> None:
        assert order(argv).encoded() is None

    @pytest.mark.parametrize(("name", "value"), [("", "1"), ("A=B", "1"), ("A\0", "1"), ("A", "\0")])
    def test_nor_this_environment(self, name: str, value: str) -> None:
        assert StartOrder(("/bin/true",), "/", {name: value}, "token", "proof", 9, 1).encoded() is None

    def test_nor_this_folder(self) -> None:
        assert StartOrder(("/bin/true",), "/a\0b", {}, "token", "proof", 9, 1).encoded() is None


# A supervisor that reports what it is told to, and nothing else.
SAYING = "import os, sys, time\nos.write(int(sys.argv[1]), {!r})\n{}\n"


@pytest.fixture
def null() -> Iterator[list[int]]:
    number = os.open(os.devnull, os.O_RDWR)
    yield [0, number, number]
    os.close(number)


@pytest.fixture
def saying(monkeypatch: pytest.MonkeyPatch, null: list[int]) -> Callable[..., Supervision]:
    """Starts a supervisor that says something, then does something else."""

    def start(said: bytes, then: str = "") -> Supervision:
        monkeypatch.setattr(supervision, "SOURCE", SAYING.format(said, then).encode())
        found = Supervision(sys.executable, "token", "proof", null)
        found.give(b"", 5)
        return found

    return start


def heard(supervised: Supervision) -> bool:
    supervised.listen()
    return supervised.over


class TestReports:
    @pytest.mark.parametrize(("reaper", "sure"), [(b"1", True), (b"0", False)])
    def test_of_a_program_that_ran(
        self,
        saying: Callable[..., Supervision],
        reaper: bytes,
        sure: bool,  # noqa: FBT001 - a table
    ) -> None:
        """P10: only a subreaper's report speaks for every descendant."""
        found = saying(b"proof started 41 " + reaper + b"\nproof ended 768 2 1 0\n")
        assert wait_until(lambda: heard(found))
        assert (found.started, found.ended, found.unstartable) == (41, (768, 2, 1), None)
        assert found.late is False
        found.close(5)
        assert found.sure is sure

    def test_of_one_that_took_longer_than_it_may(self, saying: Callable[..., Supervision]) -> None:
        found = saying(b"proof started 41 1\nproof ended 9 0 0 1\n")
        assert wait_until(lambda: heard(found))
        assert found.late is True
        found.close(5)

    def test_of_a_program_that_did_not_start(self, saying: Callable[..., Supervision]) -> None:
        found = saying(b"proof unstartable exec 2\n")
        assert wait_until(lambda: heard(found))
        assert (found.unstartable, found.started, found.ended) == (("exec", 2), None, None)
        found.close(5)

    def test_that_are_cut_off_say_nothing(self, saying: Callable[..., Supervision]) -> None:
        """P10: half a report proves nothing, and the end of the socket is the end."""
        found = saying(b"proof started 41 1\nproof ended 0 0 0 0")
        assert wait_until(lambda: heard(found))
        assert (found.started, found.ended, found.sure) == (41, None, False)
        found.close(5)

    @pytest.mark.parametrize(
        "said",
        [
            b"started 41 1\nended 0 0 0 0\n",
            b"guess started 41 1\nguess ended 0 0 0 0\n",
            b"prooF ended 0 0 0 0\n ended 0 0 0 0 proof\n",
            b"unstartable exec 2\n\xff\xfe ended 0 0 0 0\n",
        ],
    )
    def test_without_the_proof_of_the_call_are_somebody_else_s(
        self, saying: Callable[..., Supervision], said: bytes
    ) -> None:
        """P10: whoever got hold of the socket alone cannot speak for the tree."""
        found = saying(said)
        assert wait_until(lambda: heard(found))
        assert (found.started, found.ended, found.unstartable) == (None, None, None)
        found.close(5)

    @pytest.mark.parametrize("then", ["os._exit(1)", "os.kill(os.getpid(), 9)", "os.kill(os.getpid(), 19)"])
    @pytest.mark.parametrize(
        "said", [b"proof started 41 1\nproof ended 0 0 0 0\n", b"proof unstartable exec 2\n"]
    )
    def test_of_a_supervisor_that_does_not_end_well_prove_nothing(
        self, saying: Callable[..., Supervision], said: bytes, then: str
    ) -> None:
        """P10: somebody may have killed or stopped it after speaking in its name."""
        found = saying(said, then)
        assert wait_until(lambda: heard(found))
        found.close(0.2)
        assert (found.ended, found.unstartable, found.sure) == (None, None, False)

    def test_one_that_has_not_reported_is_killed(self, saying: Callable[..., Supervision]) -> None:
        """P10: nobody is left behind, and closing again does nothing."""
        found = saying(b"proof started 41 1\n", "time.sleep(60)")
        assert not found.over
        found.close(5)
        found.close(5)
        assert found._process.returncode == -9

    def test_letters_to_one_that_is_gone_are_lost(self, saying: Callable[..., Supervision]) -> None:
        found = saying(b"")
        found._process.wait(10)
        found.ask()
        found.kill()
        assert wait_until(lambda: heard(found))
        found.close(5)


class TestItsSource:
    def test_is_the_one_that_was_loaded_with_the_package(self) -> None:
        """P2: not what lies there when it is started."""
        assert Path(supervisor.__file__).read_bytes() == supervision.SOURCE

    def test_that_is_not_there_is_told_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pkgutil, "get_data", lambda *_: None)
        with pytest.raises(ImportError, match="install the package again"):
            supervision._own_source("supervisor.py")

    @pytest.mark.parametrize("part", [0, 1, 0.5])
    def test_that_comes_in_part_does_not_run(self, tmp_path: Path, null: list[int], part: float) -> None:
        """F10: we died while we were handing it over."""
        source = f"open({str(tmp_path / 'ran')!r}, 'w')\n" * 20
        ours, theirs = high_sockets()
        with ours, theirs:
            words = [str(theirs.fileno()), *map(str, null), str(len(source))]
            child = subprocess.Popen(  # noqa: S603 - our own words
                [sys.executable, "-I", "-S", "-c", supervision.BOOT, *words], pass_fds=[theirs.fileno()]
            )
            theirs.close()
            ours.sendall(source[: int(len(source) * part) - (part == 1)].encode() if part else b"")
            ours.close()
            assert child.wait(10) == 0
        assert not (tmp_path / "ran").exists()
