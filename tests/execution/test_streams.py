"""Our ends of a program's standard streams, without a program."""

from __future__ import annotations

import os
import selectors
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.execution import LimitName, Limits, streams
from skill_effectiveness.execution.descriptors import high_pipe
from skill_effectiveness.execution.streams import Streams, unheard
from tests.support.processes import Lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WIDE = Limits(10)


class Ends:
    """A program's ends, which a test writes to and reads from itself."""

    def __init__(self, stdin: bytes, limits: Limits, on_line: Callable[[bytes], bool]) -> None:
        self.selector = selectors.DefaultSelector()
        self.streams = Streams(stdin, limits, self.selector, on_line)
        self.stdin, self.stdout, self.stderr = (os.dup(number) for number in self.streams.theirs)
        self.streams.let_go()

    def move(self) -> None:
        """Everything that can move does so once."""
        for key, _ in self.selector.select(0):
            self.streams.move(key.fd)

    def close(self) -> None:
        for number in (self.stdin, self.stdout, self.stderr):
            if number >= 0:
                os.close(number)
        self.streams.close()
        self.selector.close()


@contextmanager
def laid(
    stdin: bytes = b"", limits: Limits = WIDE, on_line: Callable[[bytes], bool] = unheard
) -> Iterator[Ends]:
    ends = Ends(stdin, limits, on_line)
    try:
        yield ends
    finally:
        ends.close()


class TestStandardInput:
    def test_is_handed_over_and_closed(self) -> None:
        """P4: the program sees the end of its input."""
        with laid(b"prompt") as ends:
            assert not ends.streams.stdin_complete
            ends.move()
            assert ends.streams.stdin_complete
            assert (os.read(ends.stdin, 99), os.read(ends.stdin, 99)) == (b"prompt", b"")

    def test_goes_on_when_the_pipe_was_full(self) -> None:
        """P4: more than a pipe holds, in as many steps as it takes."""
        prompt = bytes(range(256)) * 4096
        with laid(prompt) as ends:
            ends.move()
            ends.move()
            assert not ends.streams.stdin_complete
            seen = bytearray()
            while len(seen) < len(prompt):
                seen += os.read(ends.stdin, 65_536)
                ends.move()
            assert bytes(seen) == prompt
            assert ends.streams.stdin_complete

    def test_that_nobody_reads_is_not_complete(self) -> None:
        """P4: a program that closes its end is judged by what it answers."""
        with laid(b"prompt") as ends:
            os.close(ends.stdin)
            ends.stdin = -1
            ends.move()
            ends.move()
            assert not ends.streams.stdin_complete

    def test_that_is_empty_is_the_null_device_of_the_supervisor(self) -> None:
        with laid() as ends:
            assert ends.streams.stdin_complete
            assert len(ends.selector.get_map()) == 2


class TestStandardOutput:
    def test_lines_arrive_as_they_are_completed(self) -> None:
        """P5: framed by LF, whatever the chunks."""
        lines = Lines()
        with laid(on_line=lines) as ends:
            for part in (b"o", b"ne\ntw", b"o\r\n\nrest"):
                os.write(ends.stdout, part)
                ends.move()
            assert lines == [b"one", b"two\r", b""]
            assert ends.streams.unterminated == b"rest"
            assert ends.streams.received == 14

    def test_what_is_left_in_the_pipes_is_taken_at_the_end(self) -> None:
        """P5: also when the program is dead already."""
        lines = Lines()
        with laid(on_line=lines) as ends:
            os.write(ends.stdout, b"one\n")
            os.write(ends.stderr, b"trouble")
            ends.streams.drain()
            assert (lines, ends.streams.stderr) == ([b"one"], b"trouble")

    def test_a_stranger_who_goes_on_writing_does_not_keep_us_where_the_rest_is_dropped(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """P5: the surplus of one stream ends the look at it, and costs the other nothing."""
        lines = Lines()
        limits = Limits(10, line_bytes=8, stdout_bytes=8, stderr_bytes=8, drain=True)
        with laid(limits=limits, on_line=lines) as ends:
            os.write(ends.stdout, b"abc\nabc\nabc\n")
            os.write(ends.stderr, b"trouble")
            monkeypatch.setattr(streams, "CHUNK", 12)
            read = os.read

            def flooded(number: int, size: int) -> bytes:
                data = read(number, size)
                if data.startswith(b"abc"):
                    os.write(ends.stdout, data)
                return data

            monkeypatch.setattr(os, "read", flooded)
            ends.streams.drain()
            assert (lines, ends.streams.stderr) == ([b"abc", b"abc"], b"trouble")
            assert ends.streams.drained == {LimitName.STDOUT_BYTES}
            assert ends.streams.crossed is None

    @pytest.mark.parametrize(
        ("limits", "written", "delivered", "crossed"),
        [
            (Limits(10, line_bytes=3), b"abc\nabcd\nx\n", [b"abc"], LimitName.LINE_BYTES),
            (Limits(10, stdout_bytes=8), b"abc\nabc\nabc\n", [b"abc", b"abc"], LimitName.STDOUT_BYTES),
            (Limits(10, stdout_bytes=8), b"abc\nabc\n", [b"abc", b"abc"], None),
        ],
    )
    def test_a_limit_is_named_and_nothing_follows(
        self, limits: Limits, written: bytes, delivered: list[bytes], crossed: LimitName | None
    ) -> None:
        """P5: what fitted was delivered."""
        lines = Lines()
        with laid(limits=limits, on_line=lines) as ends:
            os.write(ends.stdout, written)
            ends.move()
            assert (lines, ends.streams.crossed) == (delivered, crossed)
            if crossed is not None:
                os.write(ends.stdout, b"\n\n")
                ends.move()
                assert (lines, ends.streams.crossed) == (delivered, crossed)

    def test_standard_error_is_kept_up_to_its_limit(self) -> None:
        """P5: by its own name; the first limit crossed is the one that is named."""
        with laid(limits=Limits(10, stderr_bytes=4, line_bytes=1)) as ends:
            os.write(ends.stderr, b"trouble")
            ends.move()
            os.write(ends.stdout, b"long\n")
            ends.move()
            assert (ends.streams.stderr, ends.streams.crossed) == (b"trou", LimitName.STDERR_BYTES)


class TestTheMarker:
    def test_stands_since_the_line_that_set_it(self) -> None:
        """F6: later lines that change nothing do not move it."""
        with laid(on_line=Lines(marker=b"end")) as ends:
            os.write(ends.stdout, b"one\nend\nmore\n")
            ends.move()
            assert ends.streams.marked == 2

    def test_is_taken_back(self) -> None:
        """F6: by any later line that says so."""
        with laid(on_line=Lines(marker=b"end")) as ends:
            os.write(ends.stdout, b"end\nagain\n")
            ends.move()
            assert ends.streams.marked is None

    def test_is_another_one_when_it_comes_again(self) -> None:
        """F6: also within one chunk."""
        with laid(on_line=Lines(marker=b"end")) as ends:
            os.write(ends.stdout, b"end\n")
            ends.move()
            assert ends.streams.marked == 1
            os.write(ends.stdout, b"again\nend\n")
            ends.move()
            assert ends.streams.marked == 3


class TestDescriptors:
    def test_ours_do_not_block(self) -> None:
        """P5: no program can keep us waiting."""
        with laid(b"prompt") as ends:
            numbers = [int(key.fd) for key in ends.selector.get_map().values()]
            assert len(numbers) == 3
            assert [os.get_blocking(number) for number in numbers] == [False] * 3

    def test_none_stays_open_when_there_are_too_few(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """P5: a fault half-way closes what was made."""
        made: list[int] = []
        real = high_pipe

        def scarce() -> tuple[int, int]:
            if len(made) == 4:
                raise OSError(24, "Too many open files")
            made.extend(pair := real())
            return pair

        monkeypatch.setattr(streams, "high_pipe", scarce)
        with selectors.DefaultSelector() as selector, pytest.raises(OSError, match="Too many"):
            Streams(b"prompt", WIDE, selector, unheard)
        for number in made:
            with pytest.raises(OSError, match="Bad file descriptor"):
                os.fstat(number)

    def test_closing_again_does_nothing(self) -> None:
        with laid(b"prompt") as ends:
            ends.streams.close()
            ends.streams.close()
