"""Codex as an agent of a loop: its sandbox has to reach the folder that a step writes into.

Source: loop.md, section 5 and L39. Facts were observed on codex 0.171.0.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_PROGRAM: Final = "codex"
_EXEC: Final = frozenset({"exec", "e"})
_WITH_VALUE: Final = frozenset(
    {
        "--add-dir",
        "--ask-for-approval",
        "--cd",
        "--config",
        "--disable",
        "--enable",
        "--image",
        "--local-provider",
        "--model",
        "--profile",
        "--sandbox",
        "-C",
        "-a",
        "-c",
        "-i",
        "-m",
        "-p",
        "-s",
    }
)
_SANDBOX: Final = frozenset(
    {
        "--approve-for-me",
        "--dangerously-bypass-approvals-and-sandbox",
        "--full-auto",
        "--sandbox",
        "--yolo",
        "-s",
    }
)
_SETTING: Final = "sandbox_mode"


def loop_arguments(command: str, args: Sequence[str], outputs: Path) -> tuple[str, ...]:
    """The arguments of a step, with what `codex exec` needs to write its artifacts.

    Args:
        command: the program as configured.
        args: its arguments as configured.
        outputs: the folder that the step writes into, absolute.

    Returns:
        The arguments unchanged for every other program. An explicit choice of sandbox is kept; without one
        `workspace-write` is chosen.
    """
    at = _exec_at(args) if PurePath(command).name == _PROGRAM else None
    if at is None:
        return tuple(args)
    added = ["--add-dir", str(outputs)]
    if not _chooses_sandbox(args):
        added += ["--sandbox", "workspace-write"]
    return (*args[: at + 1], *added, *args[at + 1 :])


def _exec_at(args: Sequence[str]) -> int | None:
    """Where the subcommand stands, if it is `exec`."""
    position = 0
    while position < len(args):
        word = args[position]
        if not word.startswith("-"):
            return position if word in _EXEC else None
        position += 2 if word in _WITH_VALUE else 1
    return None


def _chooses_sandbox(args: Sequence[str]) -> bool:
    for word, after in zip(args, [*args[1:], ""], strict=True):
        if word in _SANDBOX or word.startswith(("--sandbox=", "-s")):
            return True
        attached = word.removeprefix("--config=").removeprefix("-c")
        setting = after if word in {"-c", "--config"} else attached
        if word.startswith(("-c", "--config")) and setting.partition("=")[0].strip() == _SETTING:
            return True
    return False
