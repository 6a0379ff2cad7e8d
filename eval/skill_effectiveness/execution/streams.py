"""Our ends of a program's stdin, stdout and stderr: never blocking, never growing beyond their limits.

Source: providers.md P4 and P5; field-failures.md F7, F17, F20.
"""

from __future__ import annotations

import os
import selectors
from typing import TYPE_CHECKING, Final

from skill_effectiveness.execution.descriptors import FIRST_FREE, high_pipe
from skill_effectiveness.execution.framing import LineFramer
from skill_effectiveness.execution.limits import LimitName, Limits

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK: Final = 256 * 1024
NULL_DEVICE: Final = 0
"""The supervisor's own stdin, which is the null device."""


def unheard(_line: bytes) -> bool:
    """A listener for lines that nobody wants any more."""
    return False


class Streams:
    """Three pipes to one program, two when there is nothing to write: then its stdin is the null device.

    Attributes:
        theirs: the program's ends, in the order of the standard streams, until `let_go`.
        on_line: whoever listens to lines of stdout; answers whether the terminal marker stands after it.
        marked: the line, counted from 1, since which the marker stands; `None` while it does not.
        crossed: the limit that was crossed first.
        received: bytes that arrived so far on both output streams.
        drained: the limits beyond which bytes were read and dropped.
    """

    def __init__(
        self,
        stdin: bytes,
        limits: Limits,
        selector: selectors.BaseSelector,
        on_line: Callable[[bytes], bool],
    ) -> None:
        """Lay the pipes and register our ends; OSError when there is no descriptor left."""
        self.theirs: list[int] = []
        self.on_line = on_line
        self.marked: int | None = None
        self.crossed: LimitName | None = None
        self.received = 0
        self.drained: frozenset[LimitName] = frozenset()
        self._limits = limits
        self._selector = selector
        self._framer = LineFramer(limits.line_bytes)
        self._stdout_bytes = 0
        self._lines = 0
        self._stderr = bytearray()
        self._unsent = memoryview(stdin)
        self._stdin: int | None = None
        self._outputs: dict[int, Callable[[bytes], None]] = {}
        try:
            self._lay()
        except BaseException:
            self.let_go()
            self.close()
            raise

    def _lay(self) -> None:
        if self._unsent:
            reading, self._stdin = high_pipe()
            self.theirs.append(reading)
            self._watch(self._stdin, selectors.EVENT_WRITE)
        else:
            self.theirs.append(NULL_DEVICE)
        for take in (self._take_stdout, self._take_stderr):
            reading, writing = high_pipe()
            self.theirs.append(writing)
            self._outputs[reading] = take
            self._watch(reading, selectors.EVENT_READ)

    def _watch(self, number: int, event: int) -> None:
        os.set_blocking(number, False)
        self._selector.register(number, event)

    @property
    def stderr(self) -> bytes:
        """What arrived on stderr, up to its limit."""
        return bytes(self._stderr)

    @property
    def unterminated(self) -> bytes:
        """What arrived on stdout after the last LF."""
        return self._framer.rest

    @property
    def stdin_complete(self) -> bool:
        """Whether every byte was handed over."""
        return not self._unsent

    def move(self, number: int) -> None:
        """Write to or read from the stream with this number once, if it is one of ours."""
        if number == self._stdin:
            self._write(number)
        elif number in self._outputs:
            self._read(number)

    def drain(self) -> None:
        """Every writer is dead: take what the pipes still hold.

        A stranger who was handed an end of one cannot keep us: an empty pipe ends this, and so does a limit,
        also one beyond which everything is dropped.
        """
        for number, take in tuple(self._outputs.items()):
            limit = LimitName.STDOUT_BYTES if take == self._take_stdout else LimitName.STDERR_BYTES
            while self.crossed is None and limit not in self.drained and self._read(number):
                pass

    def _write(self, number: int) -> None:
        try:
            written = os.write(number, self._unsent[:CHUNK])
        except BlockingIOError:
            return
        except OSError:
            self._close_stdin()  # the program closed its end; what it answers is judged without that
            return
        self._unsent = self._unsent[written:]
        if not self._unsent:
            self._close_stdin()

    def _read(self, number: int) -> int:
        """Take in one chunk; how many bytes it had."""
        try:
            data = os.read(number, CHUNK)
        except BlockingIOError:
            return 0
        self.received += len(data)
        take = self._outputs[number]
        if not data:
            self._selector.unregister(number)
            del self._outputs[number]
            os.close(number)
        take(data)
        return len(data)

    def _take_stdout(self, data: bytes) -> None:
        if self.crossed is not None:
            return
        room = max(0, self._limits.stdout_bytes - self._stdout_bytes)
        self._stdout_bytes += len(data)
        for line in self._framer.feed(data[:room]):
            self._lines += 1
            stands = self.on_line(line)
            self.marked = (self.marked or self._lines) if stands else None
        if self._framer.overflowed:
            self.crossed = LimitName.LINE_BYTES
        elif len(data) > room:
            self._surplus(LimitName.STDOUT_BYTES)

    def _take_stderr(self, data: bytes) -> None:
        room = self._limits.stderr_bytes - len(self._stderr)
        self._stderr += data[:room]
        if len(data) > room and self.crossed is None:
            self._surplus(LimitName.STDERR_BYTES)

    def _surplus(self, limit: LimitName) -> None:
        """More came than a stream may hold; what is too much was dropped already."""
        if self._limits.drain:
            self.drained |= {limit}
        else:
            self.crossed = limit

    def let_go(self) -> None:
        """Close the program's ends here, once it has them."""
        for number in self.theirs:
            if number >= FIRST_FREE:
                os.close(number)
        self.theirs.clear()

    def close(self) -> None:
        """Close our ends; closing again does nothing."""
        self._close_stdin()
        while self._outputs:
            os.close(self._outputs.popitem()[0])

    def _close_stdin(self) -> None:
        if self._stdin is not None:
            number, self._stdin = self._stdin, None
            if number in self._selector.get_map():
                self._selector.unregister(number)
            os.close(number)
