"""What every adapter of an agent command line does alike; a subclass declares the rest.

Source: providers.md P2 to P6, P10, P13; field-failures.md F6, F7, F12 to F18, F20, F32, F41.

A subclass declares the class attributes of `Provider` and of `CommandLine`, and one hook for each kind of
call that it holds: `to_judge`, `to_read`, `to_work`. A hook lays what the call needs into the session's
folders and answers with an `Asked`; it starts nothing. Then this shell does, in this order:

1. makes the private folders of one session, removed afterwards whatever happens;
2. demands that the program is the one that was bound, and starts nothing otherwise;
3. links the login files that are there;
4. asks the hook how the program is started for this call, and looks whether the program is still the same;
5. runs the program with exactly the environment of the session, the prompt on its stdin, which is closed
   after it, until no process of its tree is left;
6. asks `told_after` what else is known now: stderr, an export, a session file;
7. classifies.

What is started is a `Launch`, made in step 4; whoever makes a work call may be shown it before (`approve`),
and `launch` makes one and starts nothing.

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

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Self

from skill_effectiveness.evidence.canonical import digest_file
from skill_effectiveness.evidence.faults import EvidenceError, FileError
from skill_effectiveness.evidence.tree import walk_tree
from skill_effectiveness.execution import Ended, SessionFolders, identify, never, unprepared
from skill_effectiveness.execution.installation import installation
from skill_effectiveness.providers.asking import (
    ARGUMENT_BYTES,
    Aftermath,
    Asked,
    CallSession,
    CannotAskError,
    Output,
    Told,
    prompt_argument,
)
from skill_effectiveness.providers.base import Provider
from skill_effectiveness.providers.calls import (
    CallKind,
    CallOutcome,
    CallWarning,
    Ending,
    WarningCode,
)
from skill_effectiveness.providers.classification import CallFacts, outcome_of
from skill_effectiveness.providers.environment import child_environment, environment_names
from skill_effectiveness.providers.errors import ProviderCode, ProviderError
from skill_effectiveness.providers.events import SurfaceDiffers
from skill_effectiveness.providers.launch import SESSION, Launch, Treatment, look, names_of
from skill_effectiveness.providers.login import Login, check_logins, link_logins
from skill_effectiveness.providers.running import Order, Running
from skill_effectiveness.providers.stream import StreamReader
from skill_effectiveness.providers.walls import Shown, Walls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.execution import Executable
    from skill_effectiveness.providers.calls import Cancelled, JudgeCall, ReadCall, WorkCall
    from skill_effectiveness.providers.classification import ProviderVocabulary

__all__ = [
    "ARGUMENT_BYTES",
    "Aftermath",
    "Asked",
    "CallSession",
    "CannotAskError",
    "CommandLine",
    "Login",
    "Output",
    "StreamReader",
    "Told",
    "prompt_argument",
    "unstarted",
]


class CommandLine(Provider, abstract=True):
    """An agent command line, bound to one program. See the module for what a subclass declares.

    Attributes:
        executable: the program that was bound.
        session_variables: variables of the session by name. In a value, `{home}`, `{config}`, `{data}`,
            `{tmp}` and `{work}` stand for the session's folders; other values are passed as they are.
        own_keys: names of this provider's own credentials and of other variables of the user's that it needs,
            passed on where they are set.
        vocabulary: what the provider's words mean.
        tools: names of other programs that it needs on PATH.
        login_variables: those of the session's variables that say where a login is.
    """

    confinable: ClassVar[bool] = True
    tools: ClassVar[tuple[str, ...]] = ()
    session_variables: ClassVar[Mapping[str, str]]
    own_keys: ClassVar[tuple[str, ...]]
    vocabulary: ClassVar[ProviderVocabulary]
    login_variables: ClassVar[frozenset[str]] = frozenset()

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

    @classmethod
    def logins_in_place(cls, environ: Mapping[str, str]) -> tuple[Login, ...]:
        """The pieces that the program finds where they are, so that no session has a link to them."""
        del environ
        return ()

    def check_login(self, around: Surroundings) -> None:
        """See `Provider`."""
        check_logins(around.fs, (*self.logins(around.environ), *self.logins_in_place(around.environ)))

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
        session's own program wrote. An EvidenceError from it ends the call as `stream_invalid`.
        """
        del after
        return Told()

    def judge(self, call: JudgeCall, *, around: Surroundings, cancelled: Cancelled = never) -> CallOutcome:
        """See `Provider`.

        A tool item ends the program at once, before it can ask the model again where that is possible.
        """
        self.require(CallKind.JUDGE)
        order = Order(
            CallKind.JUDGE, call.model, call.timeout_seconds, lambda at: self.to_judge(call, at), cancelled
        )
        return self._called(order, around)

    def read(self, call: ReadCall, *, around: Surroundings, cancelled: Cancelled = never) -> CallOutcome:
        """See `Provider`."""
        self.require(CallKind.READ)
        order = Order(
            CallKind.READ, call.model, call.timeout_seconds, lambda at: self.to_read(call, at), cancelled
        )
        return self._called(order, around)

    def work(self, call: WorkCall, *, around: Surroundings, cancelled: Cancelled = never) -> CallOutcome:
        """See `Provider`.

        Raises:
            ProviderError: `call_kind_unsupported`; `invalid_call`: it cannot be confined as it is demanded.
        """
        self.require(CallKind.WORK)
        if call.confinement is not None and call.confinement.place is not None and not self.confinable:
            raise ProviderError(ProviderCode.INVALID_CALL, f"{self.name} {NOT_CONFINABLE}")
        return self._called(self._to_work(call, cancelled), around)

    def launch(self, call: WorkCall, *, around: Surroundings) -> Launch:
        """See `Provider`: made as for the call itself, then thrown away."""
        self.require(CallKind.WORK)
        order = replace(self._to_work(call, never), copy=call.working_copy)
        try:
            with SessionFolders(around) as folders:
                return self._prepared(folders, order, around).launch
        except CannotAskError as error:
            raise ProviderError(ProviderCode.INVALID_CALL, error.sentence) from error

    def treatment(self, model: str, *, skills: bool, instructions: bool) -> Treatment:
        """What a mount changes of a work call's launch, declared beside the code that lays it.

        Args:
            model: that is asked for.
            skills: whether there are any.
            instructions: likewise.

        Raises:
            ProviderError: `call_kind_unsupported`: nobody knows how the program could be given something.
        """
        del model, skills, instructions
        sentence = f"{self.name} can be given no skills and no instructions; choose a provider that can."
        raise ProviderError(ProviderCode.CALL_KIND_UNSUPPORTED, sentence)

    def _to_work(self, call: WorkCall, cancelled: Cancelled) -> Order:
        order = Order(
            CallKind.WORK, call.model, call.timeout_seconds, lambda at: self.to_work(call, at), cancelled
        )
        if call.approve is not None:
            order = replace(order, copy=call.working_copy, approve=call.approve)
        order = replace(order, confinement=call.confinement, environment=call.environment)
        if call.read_roots is None:
            return order
        own = (self.executable.path, self.executable.resolved)
        return replace(order, readable=(*call.read_roots, *own))

    @classmethod
    def _identified(cls, path: Path, around: Surroundings) -> Executable:
        # Even for its version a program gets no look at the user's own configuration (field-failures.md F32).
        try:
            with SessionFolders(around) as folders:
                return identify(path, env=cls.environment_of(around.environ, folders), around=around)
        except EvidenceError as error:
            raise unprepared(path, error) from error

    def _called(self, order: Order, around: Surroundings) -> CallOutcome:
        outcome: CallOutcome | None = None
        try:
            with SessionFolders(around) as folders:
                outcome = self._call_in(folders, order, around)
        except CannotAskError as error:
            outcome = unstarted(error.code, error.sentence)
        except EvidenceError as error:
            if outcome is None:
                return unstarted(WarningCode.SESSION_UNAVAILABLE, str(error))
            left = CallWarning(WarningCode.SESSION_LEFT, str(error))
            outcome = replace(outcome, warnings=(*outcome.warnings, left))
        return outcome

    def _call_in(self, folders: SessionFolders, order: Order, around: Surroundings) -> CallOutcome:
        empty = not any(True for folder in folders.folders for _ in walk_tree(around.fs, folder))
        environment = self.environment_of(around.environ, folders)
        seen = _stamp(self.executable, around)
        if not self.executable.unchanged(around, environment):
            return unstarted(WarningCode.EXECUTABLE_CHANGED)
        began = around.monotonic()
        ready = self._prepared(folders, order, around)
        if order.approve is not None and not order.approve(ready.launch):
            return unstarted(WarningCode.LAUNCH_DIFFERS)
        if not _still_bound(self.executable, seen, around):
            return unstarted(WarningCode.EXECUTABLE_CHANGED)
        session, asked = ready.session, ready.asked
        running = Running(session, asked, ready.launch, order, self._walls(ready, order), began=began)
        process = running.program()
        told = Told() if process.ended is Ended.UNSTARTABLE else self._told(running.aftermath(process))
        latency_ms = round((around.monotonic() - began) * 1000)
        events = (*running.log.events, *told.events)
        ended = process if told.stopped is None else replace(process, ended=told.stopped)
        facts = CallFacts(ended, events, order.model, latency_ms, order.kind)
        outcome = running.completed(outcome_of(facts, self.vocabulary), process, told)
        return replace(outcome, began_empty=empty)

    def _prepared(self, folders: SessionFolders, order: Order, around: Surroundings) -> _Prepared:
        """Everything of a call but its start."""
        environment = self.environment_of(around.environ, folders)
        before = None if order.copy is None else look(around.fs, folders)
        logins = self.logins(around.environ)
        linked = link_logins(folders, logins)
        session = CallSession(folders, environment, around)
        asked = order.ask(session)
        laid = None
        if before is not None:
            laid = look(around.fs, folders, order.copy, asked.withheld).since(before)
        given = {*self.session_variables, *asked.environment} - self.login_variables
        launch = Launch(
            argv=tuple(asked.argv),
            folder=asked.folder,
            stdin=asked.stdin,
            # What the task says is the same for every arm, and comes before nothing of the session's own.
            environment={**order.environment, **environment, **asked.environment},
            writable=asked.writable,
            names=names_of(folders, order.copy),
            laid=laid,
            users=frozenset({*order.environment, *environment, *asked.environment} - given),
            logins=frozenset("/".join((SESSION, *login.below, login.name)) for login in logins),
        )
        return _Prepared(session, asked, linked, launch)

    def _walls(self, ready: _Prepared, order: Order) -> Walls:
        around = ready.session.around
        if order.confinement is None:
            return Walls(ready.asked, ready.session, Shown(ready.linked, readable=order.readable))
        in_place = [login.source for login in self.logins_in_place(around.environ)]
        shown = Shown(
            ready.linked,
            tuple(path for path in in_place if _is_there(path, around)),
            installation(self.executable.path, self.tools, around),
            order.readable,
        )
        return Walls(ready.asked, ready.session, shown, order.confinement)

    def _told(self, after: Aftermath) -> Told:
        # The call was made and paid for, so what its program left must not turn it into one that never was.
        try:
            return self.told_after(after)
        except EvidenceError as error:
            return Told((SurfaceDiffers(str(error)),))


class _Prepared(NamedTuple):
    """A call that could be started now; `linked` are the real files behind the login."""

    session: CallSession
    asked: Asked
    linked: tuple[Path, ...]
    launch: Launch


def unstarted(code: WarningCode, text: str = "") -> CallOutcome:
    """The outcome of a call for which nothing was started."""
    return CallOutcome(Ending.UNSTARTABLE, warnings=(CallWarning(code, text),))


def _stamp(program: Executable, around: Surroundings) -> tuple[str, tuple[int, ...]] | None:
    """The file behind a program's path, and what changes with its bytes; `None` when it is not there."""
    fs = around.fs
    try:
        resolved = fs.resolve(str(program.path))
        status = fs.lstat(None, resolved)
    except (OSError, ValueError):
        return None
    at = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return resolved, at


def _still_bound(program: Executable, seen: tuple[str, tuple[int, ...]] | None, around: Surroundings) -> bool:
    """Whether a program whose bytes were looked at is still the same file with the same bytes.

    Being asked for its version, a program may put another one in its place.
    """
    now = _stamp(program, around)
    if now is None or now == seen:
        return now is not None
    try:
        return digest_file(around.fs, Path(now[0])) == program.sha256
    except FileError:
        return False


def _is_there(path: Path, around: Surroundings) -> bool:
    try:
        around.fs.resolve(str(path))
    except (OSError, ValueError):
        return False
    return True


def _shown(value: str, folders: Mapping[str, str]) -> str:
    for name, path in folders.items():
        value = value.replace(f"{{{name}}}", path)
    return value


NOT_CONFINABLE: Final = (
    "runs in the user's own home, which a sandbox would hide; choose a provider whose session is private."
)
_DECLARED: Final = ("session_variables", "own_keys", "vocabulary")
_HOOKS: Final = {CallKind.JUDGE: "to_judge", CallKind.READ: "to_read", CallKind.WORK: "to_work"}
