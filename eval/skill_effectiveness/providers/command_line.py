"""What every adapter of an agent command line does alike; a subclass declares the rest.

Source: providers.md P2 to P6, P10, P13; field-failures.md F6, F7, F12 to F18, F20, F32, F41.

A subclass declares the class attributes of `Provider` and of `CommandLine`, and one hook for each kind of
call that it holds: `to_judge`, `to_read`, `to_work`. A hook lays what the call needs into the session's
folders and answers with an `Asked`; it starts nothing. Then this shell does, in this order:

1. makes the private folders of one session, removed afterwards whatever happens;
2. demands that the program is the one that was bound, and starts nothing otherwise;
3. links the login files that are there;
4. asks the hook how the program is started for this call;
5. runs the program with exactly the environment of the session, the prompt on its stdin, which is closed
   after it, until no process of its tree is left;
6. asks `told_after` what else is known now: stderr, an export, a session file;
7. classifies.

A small adapter, whole::

    class ExampleProvider(CommandLine):
        name: ClassVar[str] = "example"
        family: ClassVar[str | None] = None
        session_label: ClassVar[str] = "ephemeral"
        tool_label: ClassVar[str] = "observed-none"
        json_fence: ClassVar[bool] = False
        call_kinds: ClassVar[frozenset[CallKind]] = frozenset({CallKind.JUDGE})
        session_variables: ClassVar[Mapping[str, str]] = {
            "HOME": "{home}", "EXAMPLE_HOME": "{config}", "TMPDIR": "{tmp}", "EXAMPLE_TELEMETRY": "0",
        }
        own_keys: ClassVar[tuple[str, ...]] = ("EXAMPLE_API_KEY",)
        vocabulary: ClassVar[ProviderVocabulary] = ProviderVocabulary(error_kind, silent_kind)

        def to_judge(self, call: JudgeCall, session: CallSession) -> Asked:
            schema = session.folders.publish("answer-schema.json", call.schema_bytes())
            argv = [str(self.executable.path), "--schema", str(schema), "--model", call.model]
            return Asked(argv, session.folders.work, StreamReader(read_event), stdin=call.prompt.encode())
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Self, TypeAlias

from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.execution import (
    Ended,
    Sandbox,
    SessionFolders,
    identify,
    never,
    run_process,
    unprepared,
)
from skill_effectiveness.providers.base import Provider
from skill_effectiveness.providers.calls import (
    CallKind,
    CallOutcome,
    CallWarning,
    Ending,
    SandboxKind,
    WarningCode,
)
from skill_effectiveness.providers.classification import CallFacts, outcome_of
from skill_effectiveness.providers.environment import child_environment, environment_names
from skill_effectiveness.providers.login import check_logins, link_logins
from skill_effectiveness.providers.recording import Recording
from skill_effectiveness.providers.stream import BOUNDS, EventLog, StreamReader, call_limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.execution import Executable, ProcessResult
    from skill_effectiveness.providers.calls import Cancelled, JudgeCall, ReadCall, WorkCall
    from skill_effectiveness.providers.classification import ProviderVocabulary
    from skill_effectiveness.providers.events import Event
    from skill_effectiveness.providers.login import Login

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
    """

    argv: Sequence[str] = field(repr=False)
    folder: Path
    reader: StreamReader
    stdin: bytes = field(default=b"", repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    sandbox: SandboxKind = SandboxKind.PERMISSIONS_ONLY
    writable: tuple[Path, ...] | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of a call beside its stream.

    Attributes:
        events: appended to those of the stream, as if they had been told at its end.
        export: for the recording: what the program wrote about its session elsewhere.
    """

    events: tuple[Event, ...] = ()
    export: bytes | None = field(default=None, repr=False)


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
    """

    session: CallSession
    asked: Asked
    process: ProcessResult
    events: tuple[Event, ...] = field(repr=False)
    run: Run


class CommandLine(Provider, abstract=True):
    """An agent command line, bound to one program. See the module for what a subclass declares.

    Attributes:
        executable: the program that was bound.
        session_variables: variables of the session by name. In a value, `{home}`, `{config}`, `{data}`,
            `{tmp}` and `{work}` stand for the session's folders; other values are passed as they are.
        own_keys: names of this provider's own credentials and of other variables of the user's that it needs,
            passed on where they are set.
        vocabulary: what the provider's words mean.
    """

    session_variables: ClassVar[Mapping[str, str]]
    own_keys: ClassVar[tuple[str, ...]]
    vocabulary: ClassVar[ProviderVocabulary]

    def __init_subclass__(cls, *, abstract: bool = False, **kwargs: object) -> None:
        super().__init_subclass__(abstract=abstract, **kwargs)
        missing = [name for name in _DECLARED if not abstract and not hasattr(cls, name)]
        if missing:
            raise TypeError(f"{cls.__name__} does not declare {', '.join(missing)}")

    @classmethod
    def held(cls) -> frozenset[CallKind]:
        """See `Provider`: the kinds whose hook is there."""
        return frozenset(
            kind for kind, hook in _HOOKS.items() if getattr(cls, hook) is not getattr(CommandLine, hook)
        )

    def __init__(self, executable: Executable) -> None:
        self.executable: Final = executable

    @classmethod
    def at(cls, path: Path, *, around: Surroundings) -> Self:
        """See `Provider`."""
        return cls(cls._identified(path, around))

    @classmethod
    def environment_of(cls, environ: Mapping[str, str], folders: SessionFolders) -> dict[str, str]:
        """The whole environment of a session, for a program that is asked in it."""
        shown = {name: str(getattr(folders, name)) for name in ("home", "config", "data", "tmp", "work")}
        session = {name: _shown(value, shown) for name, value in cls.session_variables.items()}
        return child_environment(environ, session=session, own_keys=cls.own_keys)

    def environment_keys(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        """See `Provider`."""
        return environment_names(environ, session=self.session_variables, own_keys=self.own_keys)

    def identify(self, around: Surroundings) -> Executable:
        """See `Provider`."""
        return self._identified(self.executable.path, around)

    @classmethod
    def logins(cls, environ: Mapping[str, str]) -> tuple[Login, ...]:
        """The pieces of the user's login that a session may see; none of them need be there."""
        del environ
        return ()

    def check_login(self, around: Surroundings) -> None:
        """See `Provider`."""
        check_logins(around.fs, self.logins(around.environ))

    def to_judge(self, call: JudgeCall, session: CallSession) -> Asked:
        """How the program is started for a judge call.

        Raises:
            EvidenceError: something of ours could not be laid down.
            CannotAskError: the program cannot be started for this call.
        """
        del call, session
        raise self._unsupported(CallKind.JUDGE)

    def to_read(self, call: ReadCall, session: CallSession) -> Asked:
        """How the program is started for a read call; errors as `to_judge`."""
        del call, session
        raise self._unsupported(CallKind.READ)

    def to_work(self, call: WorkCall, session: CallSession) -> Asked:
        """How the program is started for a work call; errors as `to_judge`."""
        del call, session
        raise self._unsupported(CallKind.WORK)

    def told_after(self, after: Aftermath) -> Told:
        """What is known once the program is gone and its stream is read; nothing more, by default.

        It is asked after every program that was started, however it ended, and reads nothing but what the
        session's own program wrote.
        """
        del after
        return Told()

    def judge(self, call: JudgeCall, *, around: Surroundings, cancelled: Cancelled = never) -> CallOutcome:
        """See `Provider`.

        A tool item ends the program at once, before it can ask the model again where that is possible.
        """
        self.require(CallKind.JUDGE)
        order = _Order(CallKind.JUDGE, call.model, call.timeout_seconds, lambda at: self.to_judge(call, at))
        return self._called(order, around, cancelled)

    def read(self, call: ReadCall, *, around: Surroundings, cancelled: Cancelled = never) -> CallOutcome:
        """See `Provider`."""
        self.require(CallKind.READ)
        order = _Order(CallKind.READ, call.model, call.timeout_seconds, lambda at: self.to_read(call, at))
        return self._called(order, around, cancelled)

    def work(self, call: WorkCall, *, around: Surroundings, cancelled: Cancelled = never) -> CallOutcome:
        """See `Provider`."""
        self.require(CallKind.WORK)
        order = _Order(CallKind.WORK, call.model, call.timeout_seconds, lambda at: self.to_work(call, at))
        return self._called(order, around, cancelled)

    @classmethod
    def _identified(cls, path: Path, around: Surroundings) -> Executable:
        # Even for its version a program gets no look at the user's own configuration (field-failures.md F32).
        try:
            with SessionFolders(around) as folders:
                return identify(path, env=cls.environment_of(around.environ, folders), around=around)
        except EvidenceError as error:
            raise unprepared(path, error) from error

    def _called(self, order: _Order, around: Surroundings, cancelled: Cancelled) -> CallOutcome:
        outcome: CallOutcome | None = None
        try:
            with SessionFolders(around) as folders:
                outcome = self._call_in(folders, order, around, cancelled)
        except CannotAskError as error:
            outcome = unstarted(error.code, error.sentence)
        except EvidenceError as error:
            if outcome is None:
                return unstarted(WarningCode.SESSION_UNAVAILABLE, str(error))
            left = CallWarning(WarningCode.SESSION_LEFT, str(error))
            outcome = replace(outcome, warnings=(*outcome.warnings, left))
        return outcome

    def _call_in(
        self, folders: SessionFolders, order: _Order, around: Surroundings, cancelled: Cancelled
    ) -> CallOutcome:
        environment = self.environment_of(around.environ, folders)
        if not self.executable.unchanged(around, environment):
            return unstarted(WarningCode.EXECUTABLE_CHANGED)
        began = around.monotonic()
        linked = link_logins(folders, self.logins(around.environ))
        session = CallSession(folders, environment, around)
        asked = order.ask(session)
        running = _Running(session, asked, order, _Walls.of(asked, session, linked), began, cancelled)
        process = running.program()
        told = (
            self.told_after(running.aftermath(process)) if process.ended is not Ended.UNSTARTABLE else Told()
        )
        latency_ms = round((around.monotonic() - began) * 1000)
        events = (*running.log.events, *told.events)
        facts = CallFacts(process, events, order.model, latency_ms, order.kind)
        return running.completed(outcome_of(facts, self.vocabulary), process, told)


def unstarted(code: WarningCode, text: str = "") -> CallOutcome:
    """The outcome of a call for which nothing was started."""
    return CallOutcome(Ending.UNSTARTABLE, warnings=(CallWarning(code, text),))


@dataclass(frozen=True, slots=True)
class _Order:
    """A call of any kind, as far as this shell has to know it."""

    kind: CallKind
    model: str
    seconds: float
    ask: Callable[[CallSession], Asked]


@dataclass(frozen=True, slots=True)
class _Walls:
    """The sandbox around the children of a call, if there is one, and the word for what there is."""

    word: SandboxKind
    sandbox: Sandbox | None = None
    writable: tuple[Path, ...] = ()

    @classmethod
    def of(cls, asked: Asked, session: CallSession, linked: Iterable[Path]) -> Self:
        """What is around a call; `linked` are the real files behind the login."""
        sandbox = None if asked.writable is None else Sandbox.found(session.around)
        if sandbox is None or asked.writable is None:
            return cls(asked.sandbox)
        fs = session.around.fs
        with reported("a folder of the call", reading=True):
            named = [Path(fs.resolve(str(place))) for place in asked.writable]
        return cls(SandboxKind.BUBBLEWRAP, sandbox, (*session.folders.folders, *linked, *named))

    def around(self, argv: Sequence[str], folder: Path) -> Sequence[str]:
        """The argument vector that runs a program inside."""
        if self.sandbox is None:
            return argv
        return self.sandbox.reading(argv, folder=folder, writable=self.writable)


class _Running:
    """The children of one call, and what its stream said."""

    def __init__(
        self,
        session: CallSession,
        asked: Asked,
        order: _Order,
        walls: _Walls,
        began: float,
        cancelled: Cancelled,
    ) -> None:
        bounds = BOUNDS[order.kind]
        self._bounds = bounds
        self._session = session
        self._asked = asked
        self._order = order
        self._walls = walls
        self._began = began
        self._cancelled = cancelled
        self._further: list[ProcessResult] = []
        self.log: Final = EventLog(
            asked.reader.read,
            asked.reader.salvage,
            bounds.lines,
            tools_end_it=order.kind is CallKind.JUDGE,
            profile=bounds.line,
        )

    def program(self) -> ProcessResult:
        """Run the program of the call to its end."""
        return self._run(
            self._asked.argv,
            self._asked.stdin,
            on_line=self.log.take,
            cancelled=lambda: self.log.doomed or self._cancelled(),
        )

    def aftermath(self, process: ProcessResult) -> Aftermath:
        """What there is to ask for once the program is gone."""
        return Aftermath(self._session, self._asked, process, self.log.events, self._further_child)

    def completed(self, outcome: CallOutcome, process: ProcessResult, told: Told) -> CallOutcome:
        """An outcome with everything that is known beside its events."""
        if process.ended is Ended.UNSTARTABLE:
            return outcome
        found = sum(child.survivors for child in self._further)
        alive = sum(child.unkilled for child in self._further)
        warnings = [*outcome.warnings]
        warnings += [CallWarning(WarningCode.PROCESSES_LEFT, str(found))] if found else []
        warnings += [CallWarning(WarningCode.PROCESSES_ALIVE, str(alive))] if alive else []
        recording = Recording(self.log.taken + process.unterminated, process.stderr, told.export)
        return replace(
            outcome,
            warnings=tuple(warnings),
            survivors=outcome.survivors + found,
            recording=recording,
            sandbox=self._walls.word,
        )

    def _further_child(self, argv: list[str]) -> Output | None:
        if self._left() <= 0 or self._cancelled():
            return None
        kept: list[bytes] = []

        def keep(line: bytes) -> bool:
            kept.append(line + b"\n")
            return False

        process = self._run(argv, b"", on_line=keep, cancelled=self._cancelled)
        self._further.append(process)
        return Output(process, b"".join(kept) + process.unterminated)

    def _left(self) -> float:
        return self._order.seconds - (self._session.around.monotonic() - self._began)

    def _run(
        self,
        argv: Sequence[str],
        stdin: bytes,
        *,
        on_line: Callable[[bytes], bool],
        cancelled: Cancelled,
    ) -> ProcessResult:
        return run_process(
            self._walls.around(argv, self._asked.folder),
            cwd=self._asked.folder,
            env={**self._session.environment, **self._asked.environment},
            stdin=stdin,
            limits=call_limits(self._left(), self._bounds),
            on_line=on_line,
            cancelled=cancelled,
            around=self._session.around,
        )


def _shown(value: str, folders: Mapping[str, str]) -> str:
    for name, path in folders.items():
        value = value.replace(f"{{{name}}}", path)
    return value


_DECLARED: Final = ("session_variables", "own_keys", "vocabulary")
_HOOKS: Final = {CallKind.JUDGE: "to_judge", CallKind.READ: "to_read", CallKind.WORK: "to_work"}
