"""How a program is started for one call, and what is known once it is gone: between shell and adapter.

Source: providers.md P4, P13 and sections 2 to 5.

`command_line` takes an adapter's `Asked` and its `Told`; adapters import all of this from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from skill_effectiveness.providers.calls import CallWarning, SandboxKind, WarningCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.execution import Ended, ProcessResult, SessionFolders
    from skill_effectiveness.providers.events import Event
    from skill_effectiveness.providers.stream import StreamReader

ARGUMENT_BYTES: Final = 120 * 1024
"""Longest prompt that travels as an argument (providers.md P4); the kernel takes 128 KiB for one."""


class CannotAskError(Exception):
    """A hook finds that the program cannot be started for this call; the outcome is then `unstartable`.

    Attributes:
        code: what the record says.
        sentence: the reason, for the private log.
    """

    def __init__(self, code: WarningCode, sentence: str) -> None:
        self.code: Final = code
        self.sentence: Final = sentence
        super().__init__(sentence)


def prompt_argument(prompt: str) -> str:
    """A prompt as one argument, for a program that reads none from stdin.

    Raises:
        CannotAskError: `prompt_too_long`: it has 120 KiB or more as UTF-8, or holds a NUL.
    """
    if len(prompt.encode()) >= ARGUMENT_BYTES or "\0" in prompt:
        sentence = f"The prompt has {ARGUMENT_BYTES} bytes or more, or a NUL, and cannot be an argument."
        raise CannotAskError(WarningCode.PROMPT_TOO_LONG, sentence)
    return prompt


@dataclass(frozen=True, slots=True)
class CallSession:
    """One session as a hook finds it, once the folders are made and the login is linked.

    Attributes:
        folders: the private folders; a hook may lay files in any of them.
        environment: the whole environment as it would be passed.
        around: the surroundings, for file operations.
    """

    folders: SessionFolders
    environment: Mapping[str, str] = field(repr=False)
    around: Surroundings = field(repr=False)


@dataclass(frozen=True, slots=True)
class Asked:
    """One call as the program is started for it.

    Attributes:
        argv: the program by absolute path, and its arguments.
        folder: its working folder.
        reader: what its lines mean; made for this call, so it may keep what it has seen.
        stdin: what it can read before its stdin is closed; empty: its stdin is the null device.
        environment: variables that this call sets beside those of the session, or in place of them. Only
            names that `session_variables` has, so that the recorded names are the real ones.
        sandbox: what keeps the program from changing more than it may, where it is run as it is.
        writable: `None`: the program is run as it is, because it has a sandbox of its own or needs none.
            Otherwise it is run in the sandbox of `execution` where there is one, in which the file system can
            be read and only the session's folders, the login files and these folders can be written: none
            for a read call, the working copy for a work call.
        withheld: files that were laid with a credential of the user's in them, and what a record of the call
            says in place of their digest.
    """

    argv: Sequence[str] = field(repr=False)
    folder: Path
    reader: StreamReader
    stdin: bytes = field(default=b"", repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    sandbox: SandboxKind = SandboxKind.PERMISSIONS_ONLY
    writable: tuple[Path, ...] | None = None
    withheld: Mapping[Path, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of a call beside its stream.

    Attributes:
        events: appended to those of the stream, as if they had been told at its end.
        export: for the recording: what the program wrote about its session elsewhere.
        warnings: what else the record should say.
        stopped: what `Aftermath.stopped` says, where something that a success needs is not known for no
            other reason; that is then how the call ended.
    """

    events: tuple[Event, ...] = ()
    export: bytes | None = field(default=None, repr=False)
    warnings: tuple[CallWarning, ...] = ()
    stopped: Ended | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """A further child of a call: how it ended, and its stdout as it came."""

    process: ProcessResult
    stdout: bytes = field(repr=False)


Run: TypeAlias = Callable[[list[str]], Output | None]


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What `told_after` is handed, once the program of a call and its tree are gone.

    Attributes:
        session: still there, with whatever the program left in its folders.
        asked: how the program was started.
        process: how it ended.
        events: what its stream said.
        run: starts one further child of the same call: same environment, working folder and sandbox, nothing
            on its stdin, as long as the call's time lasts. `None` when the time is over or the call was
            stopped by us; nothing was started then.
        stopped: `wall_timeout` or `cancelled`, if that ended a further child or kept it from being started.
    """

    session: CallSession
    asked: Asked
    process: ProcessResult
    events: tuple[Event, ...] = field(repr=False)
    run: Run
    stopped: Callable[[], Ended | None]
