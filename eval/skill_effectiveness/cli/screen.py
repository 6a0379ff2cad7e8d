"""What people and machines see: result lines or one JSON object on stdout, sentences and tables on stderr.

Nothing paints: text that came from elsewhere (names, paths, agent output) passes through `neutral` first, so
no escape sequence, bidirectional override or line break of theirs ever reaches a terminal, on either stream,
in lines and in JSON alike.

Whoever reads stderr may leave: no sentence is worth ending a command that has cost money. Whoever reads
stdout and leaves ends the command, because its results are what it was run for.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, TextIO, cast

from rich.console import Console
from rich.table import Table

from skill_effectiveness.cli.door import surroundings
from skill_effectiveness.evidence.canonical import dump
from skill_effectiveness.evidence.pointer import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from skill_effectiveness.evidence.fsops import FileSystem

PLAIN_WIDTH: Final = 160
_STANDARD_STREAMS: Final = (0, 1, 2)


class StdoutLostError(Exception):
    """Results could not be written, for another reason than that their reader has gone."""


class _Guarded:
    """A stdout whose failures have their name, whoever prints: the framework writes help texts itself."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with _writing():
            return self._stream.write(text)

    def flush(self) -> None:
        with _writing():
            self._stream.flush()

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


class Stderr(io.TextIOBase):
    """The stderr of the moment it is made, as a stream that never fails.

    Not the one of the moment it is written to: a live display puts itself there, and would write to itself.
    """

    def __init__(self) -> None:
        super().__init__()
        self._stream = sys.stderr

    def write(self, text: str) -> int:
        """Write and flush; after a failure everything goes nowhere."""
        _to_stderr(text, self._stream)
        return len(text)

    def isatty(self) -> bool:
        """Whether a terminal shows it."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """See `io.IOBase`."""
        return self._stream.fileno()


class _Page(io.StringIO):
    """What is drawn before it is written; knows for which stream, so that borders fit its encoding."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._encoding = stream.encoding or "utf-8"

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding


def neutral(text: str) -> str:
    """The text on one line, every character that could steer a terminal spelled out as an escape."""
    return printable(text)


def live_console() -> Console:
    """A console on stderr for what changes while somebody waits."""
    stream = Stderr()
    return _console(stream, watched=stream.isatty())


def complain(sentence: str) -> None:
    """One line on stderr."""
    _to_stderr(f"{neutral(sentence)}\n")


def results(values: Mapping[str, object], *, as_json: bool) -> None:
    """Print a command's results: `key=value` lines, or one canonical object with the same keys.

    A missing value (`None`) prints as `unknown` in a line and as null in JSON; booleans print as `true` and
    `false`.

    Raises:
        BrokenPipeError: nobody reads stdout any more.
        StdoutLostError: it cannot be written.
    """
    if as_json:
        _to_stdout(dump(_harmless(dict(values))).decode("utf-8") + "\n")
    else:
        _to_stdout("".join(f"{neutral(key)}={spelled(value)}\n" for key, value in values.items()))


def rounded(amount: float | None) -> float | None:
    """Six digits of a sum: one of many small parts has noise behind them."""
    return None if amount is None else round(amount, 6)


def line(text: str) -> None:
    """One line on stdout.

    Raises:
        BrokenPipeError, StdoutLostError: see `results`.
    """
    _to_stdout(f"{neutral(text)}\n")


def raw(data: bytes) -> None:
    """Bytes on stdout as they are: lines of a contract that forwards what is stored.

    Raises:
        BrokenPipeError, StdoutLostError: see `results`.
    """
    with _writing():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def flush() -> None:
    """Let what others have printed reach stdout too.

    Raises:
        BrokenPipeError, StdoutLostError: see `results`.
    """
    _to_stdout("")


def spelled(value: object) -> str:
    """One value as it stands in a result line."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "true" if value else "false"
    return neutral(str(value))


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, stderr: bool) -> None:
    """A table for people; the first column is text, the others are aligned right.

    Raises:
        BrokenPipeError, StdoutLostError: see `results`; of a table on stdout only.
    """
    drawn = Table(title=neutral(title), title_justify="left")
    for index, column in enumerate(columns):
        drawn.add_column(column, justify="left" if index == 0 else "right", overflow="fold")
    for row in rows:
        drawn.add_row(*(neutral(cell) for cell in row))
    stream = sys.stderr if stderr else sys.stdout
    page = _Page(stream)
    _console(page, watched=stream.isatty()).print(drawn)
    (_to_stderr if stderr else _to_stdout)(page.getvalue())


def open_missing_streams(fs: FileSystem) -> bool:
    """Put something where stdin, stdout or stderr was closed at start; whether stdout was open.

    Otherwise the next file opened would take the number, and what is printed would land in it.

    Raises:
        OSError: there is neither a null device nor a descriptor.
    """
    if sys.stderr is None:
        sys.stderr = io.StringIO()
    for number in _STANDARD_STREAMS:
        try:
            os.fstat(number)
        except OSError:
            _occupy_lowest(fs)
    return sys.stdout is not None


def _occupy_lowest(fs: FileSystem) -> None:
    """Take the lowest free descriptor: with the null device, or with a pipe that is at its end."""
    try:
        fs.open_update(None, os.devnull)
    except OSError:
        _, writing = os.pipe()
        os.close(writing)


@contextmanager
def guarded_stdout() -> Iterator[None]:
    """Within it a stdout that cannot be written is told as that, whoever writes there.

    Raises:
        BrokenPipeError, StdoutLostError: see `results`.
    """
    bare = sys.stdout
    sys.stdout = cast("TextIO", _Guarded(bare))
    try:
        yield
    finally:
        sys.stdout = bare


def speak_plainly() -> None:
    """Whatever the locale: results are UTF-8, and no character is an error on either stream."""
    for stream, encoding in ((sys.stdout, "utf-8"), (sys.stderr, None)):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


def silence(stream: TextIO) -> None:
    """After a stream has failed: let everything more go nowhere, the interpreter's last flush included."""
    # A stream without a descriptor is somebody's object, which nothing flushes at exit.
    with suppress(io.UnsupportedOperation):
        number = stream.fileno()
        try:
            nowhere = surroundings().fs.open_update(None, os.devnull)
        except OSError:
            _end(stream)
            return
        os.dup2(nowhere, number)
        surroundings().fs.close(nowhere)


def _end(stream: TextIO) -> None:
    """Without a null device: what is flushed at exit is gone, and the number of the stream stays taken."""
    # The interpreter opens the standard streams so that closing them leaves their numbers alone.
    with suppress(OSError):
        stream.close()
    if stream is sys.stderr:
        sys.stderr = io.StringIO()


def _console(file: io.TextIOBase, *, watched: bool) -> Console:
    """A console that is plain, and wide enough for our tables, wherever no terminal shows it.

    Whether one does is asked of the stream alone: variables that force colours would paint into files.
    """
    return Console(
        file=cast("TextIO", file),
        force_terminal=watched,
        width=None if watched else PLAIN_WIDTH,
        no_color=not watched or None,
        highlight=False,
        markup=False,
        emoji=False,
    )


def _harmless(value: object) -> object:
    """The value with every text made neutral."""
    match value:
        case str():
            # The canonical form takes exact texts only; an enum member is one by inheritance.
            return neutral(str(value))
        case dict():
            return {neutral(str(key)): _harmless(each) for key, each in value.items()}
        case list() | tuple():
            return [_harmless(each) for each in value]
        case _:
            return value


def _to_stdout(text: str) -> None:
    with _writing():
        sys.stdout.write(text)
        sys.stdout.flush()


@contextmanager
def _writing() -> Iterator[None]:
    """The name of whatever goes wrong on stdout."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StdoutLostError(
            "The results could not be written to stdout; what was made stays. Make room, or redirect them."
        ) from error


def _to_stderr(text: str, stream: TextIO | None = None) -> None:
    stream = sys.stderr if stream is None else stream
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        silence(stream)
    except RuntimeError:
        # A signal was heard in the middle of another sentence, and a buffer takes one at a time.
        with suppress(OSError, ValueError):
            os.write(stream.fileno(), text.encode(errors="backslashreplace"))
    except ValueError:
        return  # closed, because there was no null device to lead it to
