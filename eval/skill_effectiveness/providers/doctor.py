"""What can be told of an agent command line on this machine without asking any model.

Source: providers.md section 8.

The program is asked for its version, in an empty home as always; nothing else is started. Of a login only
that it is there is looked at, never what it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import FileError
from skill_effectiveness.execution import ExecutableError
from skill_effectiveness.providers.command import CommandProvider
from skill_effectiveness.providers.command_line import CommandLine
from skill_effectiveness.providers.registry import ADAPTERS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.execution import Executable
    from skill_effectiveness.providers.base import Provider
    from skill_effectiveness.providers.calls import CallKind
    from skill_effectiveness.providers.login import Login

_CREDENTIALS: Final = ("_KEY", "_TOKEN")
"""How the names of variables end that hold a credential; others of a provider's own are settings."""


class LoginState(StrEnum):
    """What a session could show the provider.

    `file`: a login file or folder is there. `variable`: a credential is set in the environment. `unusable`:
    something is in the login's place that can be none. `not_seen`: neither; a keychain is not looked into.
    """

    FILE = "file"
    VARIABLE = "variable"
    UNUSABLE = "unusable"
    NOT_SEEN = "not_seen"


class ProgramState(StrEnum):
    """Whether a provider could be asked: its program can be bound, it cannot, or there is none."""

    READY = "ready"
    UNUSABLE = "unusable"
    NOT_FOUND = "not_found"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found of one provider.

    Attributes:
        provider: its name.
        state: whether its program can be bound.
        path: of the program, absolute; `None` where there is none.
        program: as bound; `None` unless `ready`.
        fault: why it cannot be bound, a closed word; `None` unless `unusable`.
        login: `None` unless `ready`.
        kinds: of calls that its adapter holds, sorted.
        session_label: what is known of its sessions.
        tool_label: what is known of its tools when it judges.
    """

    provider: str
    state: ProgramState
    path: Path | None
    program: Executable | None
    fault: str | None
    login: LoginState | None
    kinds: tuple[CallKind, ...]
    session_label: str
    tool_label: str


def programs() -> Mapping[str, type[CommandLine]]:
    """Every adapter of a program that is found by the provider's name, by that name."""
    return {
        name: kind
        for name, kind in ADAPTERS.items()
        if issubclass(kind, CommandLine) and kind is not CommandProvider
    }


def diagnose(adapter: type[Provider], path: Path | None, around: Surroundings) -> Diagnosis:
    """Look at the program of one provider; never raises for what it finds.

    Args:
        adapter: of the provider.
        path: of its program, absolute; `None` where there is none.
        around: the surroundings.
    """
    state, fault, bound = ProgramState.NOT_FOUND, None, None
    if path is not None:
        try:
            bound, state = adapter.at(path, around=around), ProgramState.READY
        except ExecutableError as error:
            state, fault = ProgramState.UNUSABLE, str(error.code)
    return Diagnosis(
        provider=adapter.name,
        state=state,
        path=path,
        program=bound.executable if isinstance(bound, CommandLine) else None,
        fault=fault,
        login=None if bound is None else login_of(bound, around),
        kinds=tuple(sorted(adapter.call_kinds)),
        session_label=adapter.session_label,
        tool_label=adapter.tool_label,
    )


def login_of(provider: Provider, around: Surroundings) -> LoginState:
    """What a session of a provider could show it of the user's login."""
    try:
        provider.check_login(around)
    except FileError:
        return LoginState.UNUSABLE
    if not isinstance(provider, CommandLine):
        return LoginState.NOT_SEEN
    logins = (*provider.logins(around.environ), *provider.logins_in_place(around.environ))
    if any(_is_there(around.fs, login) for login in logins):
        return LoginState.FILE
    keys = (name for name in provider.own_keys if name.endswith(_CREDENTIALS))
    return LoginState.VARIABLE if any(around.environ.get(name) for name in keys) else LoginState.NOT_SEEN


def _is_there(fs: FileSystem, login: Login) -> bool:
    try:
        with reported(login.where, reading=True):
            fs.lstat(None, fs.resolve(str(login.source)))
    except FileError:
        # Whatever keeps it from being seen was judged before.
        return False
    return True
