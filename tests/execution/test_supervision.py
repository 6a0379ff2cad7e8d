"""Our side of the supervisor: the order on the wire, and what is heard."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.execution import supervision
from skill_effectiveness.execution.supervision import StartOrder, Supervision
from tests.support.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def order(argv: tuple[str, ...] = ("/bin/true",), **environment: str) -> StartOrder:
    return StartOrder(argv, "/", environment, "token", 1.5)


class TestAnOrder:
    def test_on_the_wire(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """P10: length, LF, then the fields that supervisor.py names, NUL between them."""
        monkeypatch.setattr(supervision, "REAPER", True)
        body = b"1.5\0001\0/\0003\0/bin/echo\0a b\0\0A=1=2\0SKILL_EFFECTIVENESS_CALL=token"
        assert order(("/bin/echo", "a b", ""), A="1=2").encoded() == b"%d\n" % len(body) + body

    def test_where_the_platform_has_no_subreapers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(supervision, "REAPER", False)
        body = b"1.5\0000\0/\0001\0/bin/true\0SKILL_EFFECTIVENESS_CALL=token"
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
        assert StartOrder(("/bin/true",), "/", {name: value}, "token", 1.0).encoded() is None

    def test_nor_this_folder(self) -> None:
        assert StartOrder(("/bin/true",), "/a\0b", {}, "token", 1.0).encoded() is None


# A supervisor that reports what it is told to, and nothing else.
SAYING = "import os, sys, time\nos.write(int(sys.argv[1]), {!r})\n{}\n"


@pytest.fixture
def null() -> Iterator[list[int]]:
    number = os.open(os.devnull, os.O_RDWR)
    yield [0, number, number]
    os.close(number)


def heard(supervised: Supervision) -> bool:
    supervised.listen()
    return supervised.over


class TestReports:
    def supervised(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        null: list[int],
        said: bytes,
        then: str = "",
    ) -> Supervision:
        file = tmp_path / "supervisor.py"
        file.write_text(SAYING.format(said, then))
        monkeypatch.setattr(supervision, "SUPERVISOR", file)
        found = Supervision("token", null)
        os.set_blocking(found.fileno(), False)
        return found

    @pytest.mark.parametrize(("reaper", "sure"), [(b"1", True), (b"0", False)])
    def test_of_a_program_that_ran(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        null: list[int],
        reaper: bytes,
        sure: bool,  # noqa: FBT001 - a table
    ) -> None:
        """P10: only a subreaper's report speaks for every descendant."""
        said = b"started 41 " + reaper + b"\nended 768 2 1\n"
        found = self.supervised(tmp_path, monkeypatch, null, said)
        assert wait_until(lambda: heard(found))
        assert (found.started, found.ended, found.unstartable) == (41, (768, 2, 1), None)
        assert found.sure is sure
        found.close(5)

    def test_of_a_program_that_did_not_start(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, null: list[int]
    ) -> None:
        found = self.supervised(tmp_path, monkeypatch, null, b"unstartable exec 2\n")
        assert wait_until(lambda: heard(found))
        assert (found.unstartable, found.started, found.ended) == (("exec", 2), None, None)
        found.close(5)

    def test_that_are_cut_off_say_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, null: list[int]
    ) -> None:
        """P10: half a report proves nothing, and the end of the socket is the end."""
        found = self.supervised(tmp_path, monkeypatch, null, b"started 41 1\nended 0 0 0")
        assert wait_until(lambda: heard(found))
        assert (found.started, found.ended, found.sure) == (41, None, False)
        found.close(5)

    def test_one_that_has_not_reported_is_killed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, null: list[int]
    ) -> None:
        """P10: nobody is left behind, and closing again does nothing."""
        found = self.supervised(tmp_path, monkeypatch, null, b"started 41 1\n", "time.sleep(60)")
        assert not found.over
        found.close(5)
        found.close(5)
        assert found._process.returncode == -9

    def test_letters_to_one_that_is_gone_are_lost(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, null: list[int]
    ) -> None:
        found = self.supervised(tmp_path, monkeypatch, null, b"")
        found._process.wait(10)
        found.ask()
        found.kill()
        assert wait_until(lambda: heard(found))
        found.close(5)
