"""New descriptors never are standard streams."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from skill_effectiveness.execution.descriptors import FIRST_FREE, high_pipe, high_sockets, lifted
from tests.support.processes import IMPORTS, PATH, Lines, call

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def closing(*numbers: int) -> Iterator[None]:
    try:
        yield
    finally:
        for number in numbers:
            os.close(number)


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


class TestNewDescriptors:
    def test_a_pipe_leads_from_its_writing_to_its_reading_end(self) -> None:
        reading, writing = high_pipe()
        with closing(reading, writing):
            os.write(writing, b"x")
            assert os.read(reading, 2) == b"x"
            assert min(reading, writing) >= FIRST_FREE == 3

    def test_sockets_lead_to_each_other(self) -> None:
        ours, theirs = high_sockets()
        with ours, theirs:
            ours.sendall(b"a")
            theirs.sendall(b"b")
            assert (theirs.recv(2), ours.recv(2)) == (b"a", b"b")
            assert min(ours.fileno(), theirs.fileno()) >= FIRST_FREE

    def test_no_child_inherits_them(self) -> None:
        """P10: only what is handed over on purpose reaches a program."""
        reading, writing = high_pipe()
        ours, theirs = high_sockets()
        with closing(reading, writing), ours, theirs:
            numbers = (reading, writing, ours.fileno(), theirs.fileno())
            assert [os.get_inheritable(number) for number in numbers] == [False] * 4

    def test_one_above_the_standard_streams_stays_what_it_is(self) -> None:
        reading, writing = high_pipe()
        with closing(reading, writing):
            assert lifted(reading) == reading
            assert is_open(reading)


def test_with_every_standard_stream_closed() -> None:
    """P4: then new descriptors would be numbered 0, 1 and 2; they are moved up and the low numbers freed."""
    source = (
        "import os, sys\n"
        "from skill_effectiveness.execution.descriptors import high_pipe, high_sockets\n"
        "keep = os.dup(1)\n"
        "for number in (0, 1, 2): os.close(number)\n"
        "found = [*high_pipe(), *(one.detach() for one in high_sockets())]\n"
        "free = []\n"
        "for number in (0, 1, 2):\n"
        "    try: os.fstat(number)\n"
        "    except OSError: free.append(number)\n"
        "passed = [os.get_inheritable(number) for number in found]\n"
        "os.write(keep, f'{min(found) > 2} {len(set(found))} {free} {any(passed)}\\n'.encode())\n"
    )
    lines = Lines()
    result = call([sys.executable, "-c", source], env={**PATH, "PYTHONPATH": IMPORTS}, on_line=lines)
    assert (result.exit_code, lines) == (0, [b"True 4 [0, 1, 2] False"])
