"""Words of commands: a check given as text, and the place of the prompt in an agent's arguments. Pure.

Source: loop.md, L14 to L16. No shell ever reads a command, so a text that needs one is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.loop.errors import LoopRefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROMPT: Final = "{{prompt}}"
_OPERATORS: Final = frozenset("|&;<>()`\n")
_BLANKS: Final = frozenset(" \t")
# What a backslash takes its meaning from between double quotes (POSIX.1, Shell Command Language, 2.2.3).
_ESCAPED_IN_QUOTES: Final = frozenset('$`"\\\n')


def split_words(text: str) -> tuple[str, ...]:
    """The words of a command by the quoting rules of POSIX; nothing is expanded.

    Raises:
        LoopRefusedError: it holds an unquoted operator of a shell, an open quote or no word.
    """
    words: list[str] = []
    word: str | None = None
    characters = iter(text)
    for character in characters:
        if character in _BLANKS:
            words += [] if word is None else [word]
            word = None
        elif character in _OPERATORS:
            shown = "a line feed" if character == "\n" else character
            raise LoopRefusedError(
                f"a check is not read by a shell, so {shown} has no meaning there; use a script"
            )
        else:
            word = (word or "") + _piece(character, characters)
    words += [] if word is None else [word]
    if not words:
        raise LoopRefusedError("a check needs at least one word")
    return tuple(words)


def _piece(character: str, rest: Iterator[str]) -> str:
    """What a character outside of quotes, and what belongs to it, adds to a word."""
    if character == "'":
        return _until(rest, "'")
    if character == '"':
        return _double_quoted(rest)
    if character == "\\":
        return _next(rest, "a check ends in a backslash")
    return character


def _double_quoted(rest: Iterator[str]) -> str:
    piece = ""
    while (character := _next(rest, "a check has an open quote")) != '"':
        if character == "\\":
            after = _next(rest, "a check has an open quote")
            piece += after if after in _ESCAPED_IN_QUOTES else f"\\{after}"
        elif character == "`":
            raise LoopRefusedError("a check is not read by a shell, so ` has no meaning there; use a script")
        else:
            piece += character
    return piece


def _until(rest: Iterator[str], end: str) -> str:
    piece = ""
    while (character := _next(rest, "a check has an open quote")) != end:
        piece += character
    return piece


def _next(rest: Iterator[str], otherwise: str) -> str:
    character = next(rest, None)
    if character is None:
        raise LoopRefusedError(otherwise)
    return character


def demand_prompt_word(command: str, args: Sequence[str]) -> None:
    """Demand that the prompt has exactly one place, and a word of its own.

    Raises:
        LoopRefusedError: it has none, two, or a part of a word; or the command is blank.
    """
    if not command.strip() or "\0" in command or any("\0" in word for word in args):
        raise LoopRefusedError("a command is blank or holds a NUL character")
    whole = sum(word == PROMPT for word in args)
    parts = sum(PROMPT in word for word in (command, *args)) - whole
    if whole != 1 or parts:
        raise LoopRefusedError(f"exactly one argument has to be {PROMPT}, and none may hold it besides")


def with_prompt(args: Sequence[str], prompt: str) -> tuple[str, ...]:
    """The arguments with the prompt, or what is to be seen of it, in its place."""
    return tuple(prompt if word == PROMPT else word for word in args)
