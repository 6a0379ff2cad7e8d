"""Which variables a task may give to an agent's program.

Source: providers.md P3; studies.md section 1 (`[environment] env`). A task sets what its work needs. What
says who the user is, where things lie, which provider answers or what is loaded into the program is not the
task's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skill_effectiveness.providers.command_line import CommandLine
from skill_effectiveness.providers.environment import INHERITED
from skill_effectiveness.providers.registry import ADAPTERS

if TYPE_CHECKING:
    from skill_effectiveness.providers.base import Provider

_PLACES: Final = frozenset({"HOME", "PATH", "TMPDIR", "TMP", "TEMP", "USER", "LOGNAME", "SHELL", "PWD"})
_LOADED: Final = frozenset({"BASH_ENV", "ENV", "IFS", "PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP"})
_FAMILIES: Final = ("LD_", "DYLD_", "XDG_", "NODE_", "BUN_", "SKILL_EFFECTIVENESS_")
_CREDENTIALS: Final = ("_API_KEY", "_AUTH_TOKEN", "_ACCESS_TOKEN", "_OAUTH_TOKEN", "_BASE_URL")
_TASKS_OWN: Final = frozenset({"LANG", "LC_ALL", "TERM"})
"""Passed on from the user, and a task's to say all the same."""


def refused_name(name: str, provider: Provider | None = None) -> bool:
    """Whether a task may not set a variable.

    Args:
        name: of the variable.
        provider: whose program would get it.
    """
    if name in _TASKS_OWN:
        return False
    if name in _PLACES or name in _LOADED or name in INHERITED:
        return True
    if name.startswith((*_FAMILIES, *_vendors())) or name.endswith(_CREDENTIALS):
        return True
    # What it would get of the user's, or of its session, if both had it.
    return provider is not None and name in provider.environment_keys({name: "/"})


def _vendors() -> tuple[str, ...]:
    """How the names of a provider's own variables begin."""
    adapters = {name: adapter for name, adapter in ADAPTERS.items() if issubclass(adapter, CommandLine)}
    keys = {key for adapter in adapters.values() for key in getattr(adapter, "own_keys", ()) if "_" in key}
    return tuple(
        sorted({f"{name.upper()}_" for name in adapters} | {f"{key.split('_')[0]}_" for key in keys})
    )
