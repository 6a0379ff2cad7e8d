"""What to type next, told on stderr after a step that went well, or that has to be mended (studies.md)."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from skill_effectiveness.cli import screen

if TYPE_CHECKING:
    from pathlib import Path


def tell_next(*words: str | Path) -> None:
    """Say which command comes next.

    Args:
        words: of the command after the program's name, paths as the person typed them.
    """
    screen.complain(f"Now: {spelt(words)}")


def tell_again(*words: str | Path) -> None:
    """Say that what was named has to be put right before the same command."""
    screen.complain(f"Now: put right what is named above, then {spelt(words)}")


def tell_checker(key: str, *words: str | Path) -> None:
    """Say which command checks what was signed.

    Args:
        key: that signed, by name or path. The public part of a key in a folder of its own lies beside it;
            that of a key of the state folder has to be exported first.
        words: of the command, up to the option that names the public part.
    """
    public = f"{key.removesuffix('.key')}.pub"
    first = "" if "/" in key else f"{spelt(('keys', 'export', key, '--out', public))}, then "
    screen.complain(f"Now: {first}{spelt((*words, '--pub', public))}")


def spelt(words: tuple[str | Path, ...]) -> str:
    """Words as a shell reads them back."""
    return shlex.join(str(word) for word in words)
