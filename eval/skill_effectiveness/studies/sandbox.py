"""How a script is put into bubblewrap, where the platform has it; a judgement, nothing is started here.

Inside there is the system's own software, read only, and besides exactly the folders that were named, at the
places that were named; no network, no home, no other process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix")
"""What of the system is visible inside, as far as it is there."""

PROGRAM: Final = "bwrap"


@dataclass(frozen=True, slots=True)
class Bind:
    """A folder outside and where it appears inside."""

    outside: Path
    inside: str
    writable: bool


def sandboxed(program: Path, binds: Sequence[Bind], workdir: str, argv: Sequence[str]) -> list[str]:
    """The argument vector that runs a program inside.

    Args:
        program: bubblewrap's absolute path.
        binds: folders, outer before inner.
        workdir: working folder inside.
        argv: what to run inside.
    """
    words = [str(program), "--unshare-all", "--die-with-parent", "--new-session", "--tmpfs", "/"]
    for place in SYSTEM:
        words += ["--ro-bind-try", place, place]
    words += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]  # noqa: S108 - a new one, inside
    for bind in binds:
        words += ["--bind" if bind.writable else "--ro-bind", str(bind.outside), bind.inside]
    return [*words, "--chdir", workdir, "--", *argv]
