"""What people and machines see: result lines or one JSON object on stdout, sentences and tables on stderr, nothing that paints.

Text that came from elsewhere (names, agent output) passes through `neutral` first, so no escape sequence, bidirectional override or line
break of theirs ever reaches a terminal.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from skill_effectiveness.evidence.canonical import dump

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

PLAIN_WIDTH = 160
UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def neutral(text: str) -> str:
    """The text on one line, every character that could steer a terminal spelled out as an escape."""
    return "".join(
        f"\\u{ord(letter):04x}" if unicodedata.category(letter) in UNSAFE_CATEGORIES else letter
        for letter in text
    )


def console(*, stderr: bool) -> Console:
    """A console that is plain, and wide enough for our tables, wherever nobody watches."""
    stream = sys.stderr if stderr else sys.stdout
    watched = stream.isatty()
    return Console(
        file=stream,
        width=None if watched else PLAIN_WIDTH,
        no_color=not watched or None,
        highlight=False,
        markup=False,
    )


def complain(sentence: str) -> None:
    """One line on stderr."""
    sys.stderr.write(neutral(sentence) + "\n")
    sys.stderr.flush()


def results(values: Mapping[str, object], *, as_json: bool) -> None:
    """Print a command's results: `key=value` lines, or one canonical object with the same keys.

    A missing value (`None`) prints as `unknown`; booleans print as `true` and `false`.
    """
    if as_json:
        sys.stdout.write(dump(dict(values)).decode("utf-8") + "\n")
        return
    for key, value in values.items():
        sys.stdout.write(f"{key}={spelled(value)}\n")


def spelled(value: object) -> str:
    """One value as it stands in a result line."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "true" if value else "false"
    return neutral(str(value))


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, stderr: bool) -> None:
    """A table for people; the first column is text, the others are aligned right."""
    drawn = Table(title=neutral(title), title_justify="left")
    for index, column in enumerate(columns):
        drawn.add_column(column, justify="left" if index == 0 else "right", overflow="fold")
    for row in rows:
        drawn.add_row(*(neutral(cell) for cell in row))
    console(stderr=stderr).print(drawn)


def silence_stdout() -> None:
    """After the reader of stdout has gone: let the interpreter's last flush go nowhere instead of raising."""
    _reader, writer = os.pipe()
    os.dup2(writer, sys.stdout.fileno())
