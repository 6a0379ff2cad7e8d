"""Which files of this process open the cluster to whoever can read them (studies.md section 3).

Whoever holds a key of the cluster has workers run code. So an agent that is to be held in a sandbox is not
started where its sandbox would show one.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.evidence.resolution import holds
from skill_effectiveness.execution.sandbox import SHOWN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skill_effectiveness.evidence.fsops import FileSystem

_ROLES: Final = ("client", "scheduler", "worker")
_IN_MEMORY: Final = "\n"


def key_files() -> tuple[str, ...]:
    """The files with keys that this worker was started with or would use; none where it is no worker."""
    from distributed import get_worker  # noqa: PLC0415 - an extra
    from distributed.security import Security  # noqa: PLC0415 - likewise

    known: list[Any] = [Security()]  # type: ignore[no-untyped-call]
    with suppress(ValueError):
        # Of nobody's worker only what is configured for its user counts.
        known.append(get_worker().security)
    named = (getattr(each, f"tls_{role}_key", None) for each in known for role in _ROLES)
    return tuple(sorted({key for key in named if isinstance(key, str) and key and _IN_MEMORY not in key}))


def shows_a_key(keys: Iterable[str], read_only: Iterable[str], fs: FileSystem) -> bool:
    """Whether a sandbox would show one of these files.

    Args:
        keys: paths.
        read_only: what is shown beside the system.
        fs: file operations.
    """
    shown = [_resolved(fs, place) for place in (*SHOWN, *read_only)]
    return any(holds(place, _resolved(fs, key)) for place in shown for key in keys)


def _resolved(fs: FileSystem, path: str) -> str:
    try:
        return fs.resolve(path)
    except (OSError, ValueError):
        return path
