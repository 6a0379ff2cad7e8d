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
_LOADED: Final = frozenset(
    {
        *("BASH_ENV", "BASHOPTS", "CDPATH", "ENV", "IFS", "PROMPT_COMMAND", "PS4", "SHELLOPTS", "ZDOTDIR"),
        *("PYTHONEXECUTABLE", "PYTHONHOME", "PYTHONPATH", "PYTHONPLATLIBDIR", "PYTHONSTARTUP"),
        *("PYTHONUSERBASE", "PYTHONWARNINGS", "GCONV_PATH", "GLIBC_TUNABLES", "LOCPATH", "NLSPATH"),
        *("CURL_HOME", "EDITOR", "PAGER", "RIPGREP_CONFIG_PATH", "VISUAL", "WGETRC"),
    }
)
"""What makes a program run something else, or run otherwise: a shell, an interpreter, an agent's tool."""

_REACHED: Final = frozenset(
    {"CURL_CA_BUNDLE", "HOSTALIASES", "LOCALDOMAIN", "REQUESTS_CA_BUNDLE", "RES_OPTIONS", "SSLKEYLOGFILE"}
)
"""Whom a connection reaches, who is believed, and who can read along."""

_FAMILIES: Final = (
    *("LD_", "DYLD_", "XDG_", "NODE_", "BUN_", "SKILL_EFFECTIVENESS_", "BASH_FUNC_", "GIT_", "SSH_"),
    *("JAVA_TOOL_", "OPENSSL_", "PERL5", "RUBY", "AWS_", "AZURE_", "GCP_", "GOOGLE_"),
)
_WHO_COMMITS: Final = ("GIT_AUTHOR_", "GIT_COMMITTER_")
_CREDENTIALS: Final = ("_API_KEY", "_AUTH_TOKEN", "_ACCESS_TOKEN", "_OAUTH_TOKEN", "_BASE_URL")
_TASKS_OWN: Final = frozenset({"LANG", "LC_ALL", "TERM"})
"""Passed on from the user, and a task's to say all the same."""


def refused_name(name: str, provider: Provider | None = None) -> bool:
    """Whether a task may not set a variable.

    Args:
        name: of the variable.
        provider: whose program would get it.
    """
    if name in _TASKS_OWN or name.startswith(_WHO_COMMITS):
        return False
    if name in {*_PLACES, *_LOADED, *_REACHED, *INHERITED}:
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
