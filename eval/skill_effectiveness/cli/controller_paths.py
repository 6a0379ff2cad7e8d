"""What the two matched-call commands say when they fail: never a green gate, never a controller's path.

Source: controls.md, section 2. Whatever ends one of them without its result, a usage error or a signal
included, prints `matched_call_gate=NOT_SATISFIED` on stdout, and its sentence shows
`<controller-private-path>` in the place of every path that a word named, and of every folder above one.
"""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import dirname, normpath
from typing import TYPE_CHECKING, Final

import typer

from skill_effectiveness.cli import crash, screen
from skill_effectiveness.cli.door import absolute, surroundings
from skill_effectiveness.cli.refusals import CommandCode, Refusal, Withheld, refusals, usage_of
from skill_effectiveness.evidence.signals import Terminated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from skill_effectiveness.evidence.surroundings import Surroundings

MATCHED_CALL: Final = "active-control-matched-call"
MATCHED_CALL_VERIFY: Final = "active-control-matched-call-verify"
GATED: Final = frozenset({MATCHED_CALL, MATCHED_CALL_VERIFY})
GATE: Final = {"matched_call_gate": "NOT_SATISFIED"}
HIDDEN: Final = "<controller-private-path>"
_PATHS: Final = ("--out", "--selection", "--measurement", "--owner-reference", "--evidence")


def carry_out(
    command: Callable[[Sequence[str]], object], words: Sequence[str], around: Surroundings
) -> object:
    """Carry out one of the two commands; the answer of the command.

    Raises:
        Withheld: it was refused.
        RecordedError: something unforeseen happened; the crash file is written.
        BrokenPipeError, StdoutLostError: see `screen.results`.
        KeyboardInterrupt, Terminated: a signal came; the gate is told.
    """
    try:
        return command(words)
    except (BrokenPipeError, screen.StdoutLostError):
        raise
    except (KeyboardInterrupt, Terminated):
        screen.results(GATE, as_json=False)
        raise
    except refusals() as refused:
        told: Exception = Withheld(refused, hidden(str(refused), words))
    except typer.TyperException as wrong:
        usage = f"{usage_of(wrong)} See --help."
        told = Refusal(CommandCode.USAGE, hidden(usage, words))
    except Exception as unforeseen:  # noqa: BLE001 - whatever it is, the gate is told and no path is
        told = crash.RecordedError(hidden(crash.record(unforeseen, around), words))
    screen.results(GATE, as_json=False)
    raise told from None


def hidden(text: str, words: Sequence[str]) -> str:
    """The text without any path that these words of a command line name.

    Longer forms first, so that no part of a path is left beside its parent's sign.
    """
    forms, above = set[str](), set[str]()
    for path in _named(words):
        for form in _forms(path):
            forms |= _spelled(form) | _spelled(dirname(form))
            above |= {spelled for folder in Path(form).parents for spelled in _spelled(str(folder))}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, HIDDEN)
    for folder in sorted(above - forms, key=len, reverse=True):
        # A short one may be a part of something else.
        text = re.sub(rf"(?<![\w.-]){re.escape(folder)}(?![\w.-])", HIDDEN, text)
    return text


def _named(words: Sequence[str]) -> Iterator[str]:
    """Every value given to an option that takes a path, whether the command line was understood or not.

    And every absolute path: an option may be missing before it, or be another one.
    """
    for word, following in zip(words, (*words[1:], ""), strict=True):
        option, sign, value = word.partition("=")
        if option in _PATHS and (value if sign else following):
            yield value if sign else following
        yield from (part for part in (word, value) if part.startswith("/"))


def _spelled(path: str) -> set[str]:
    """An absolute path as texts spell it; nothing for a relative one, and for `/`."""
    if not path.startswith("/") or not path.strip("/"):
        return set()
    plain = path.rstrip("/")
    return {path, plain, screen.neutral(plain), repr(plain)[1:-1], ascii(plain)[1:-1]}


def _forms(path: str) -> set[str]:
    """As given, whole, and resolved."""
    try:
        whole = normpath(absolute(path))
    except Refusal:
        # Without a working folder a relative path means nothing.
        return {path}
    return {path, whole, str(resolved(Path(whole)))}


def resolved(path: Path) -> Path:
    """Where an absolute path leads, as far as it exists; the rest as it is written."""
    fs = surroundings().fs
    for folder in (path, *path.parents):
        try:
            real = fs.resolve(str(folder))
        except (OSError, ValueError):
            # It is not there, or no name at all; what is above may be.
            continue
        return Path(normpath(Path(real) / path.relative_to(folder)))
    return path
