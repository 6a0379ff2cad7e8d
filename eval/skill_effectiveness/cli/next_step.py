"""What to type next, told on stderr after a step that went well, or that has to be mended (studies.md)."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Final

from skill_effectiveness.cli import screen

_CHECKOUT: Final = "run.py"
_INSTALLED: Final = "skill-effectiveness"


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
    """A whole command as a shell reads it back, the program's name before its words."""
    return shlex.join([program(), *map(str, words)])


def program() -> str:
    """What the person typed to start this program: the installed name, else `run.py` with its path.

    A shell finds an installed command on PATH and passes its whole path on, which nobody typed.
    """
    typed = Path(sys.argv[0])
    if typed.name == _INSTALLED:
        return _INSTALLED
    return str(typed) if typed.name == _CHECKOUT else _CHECKOUT
