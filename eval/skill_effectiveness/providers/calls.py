"""What a provider is asked and what comes back.

Source: providers.md P2, P6, P7, P13.

The three records of what is asked differ in what the session may do, never in how it is bound: an exact
model, a prompt, a time. None of them can carry the truth about a case.

`Ending` is the one classification of every call, whoever answers. An outcome that contradicts itself cannot
be made: there is an answer exactly when the call succeeded, an error kind exactly when the provider failed,
the name of a limit exactly when one was crossed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from skill_effectiveness.evidence.canonical import dump
from skill_effectiveness.evidence.faults import CanonicalError
from skill_effectiveness.providers.errors import ProviderCode, ProviderError
from skill_effectiveness.providers.usage import UNKNOWN_USAGE, Usage

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.execution import LimitName
    from skill_effectiveness.providers.confinement import Confinement, Observation
    from skill_effectiveness.providers.events import Event
    from skill_effectiveness.providers.launch import Launch
    from skill_effectiveness.providers.mount import Mount
    from skill_effectiveness.providers.recording import Recording

Cancelled: TypeAlias = Callable[[], bool]
"""Asked again and again during a call; True stops it."""

Approve: TypeAlias = "Callable[[Launch], bool]"
"""Shown what a call is about to start; False keeps it from being started."""

MODEL_ID: Final = r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}"
"""Pattern of an exact model id, without anchors; every room that reads one uses it."""


class CallKind(StrEnum):
    """What a call may do: judge without tools, read a checkout, or change its own working copy."""

    JUDGE = "judge"
    READ = "read"
    WORK = "work"


class Ending(StrEnum):
    """How a call ended; only `success` carries an answer."""

    SUCCESS = "success"
    NO_ANSWER = "no_answer"
    ANSWER_INVALID = "answer_invalid"
    PROVIDER_ERROR = "provider_error"
    REFUSED = "refused"
    TOOL_ACTIVITY = "tool_activity"
    MODEL_MISMATCH = "model_mismatch"
    STREAM_INVALID = "stream_invalid"
    LIMIT = "limit"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    UNSTARTABLE = "unstartable"


class ProviderErrorKind(StrEnum):
    """What a provider said was wrong."""

    AUTH_UNAVAILABLE = "auth_unavailable"
    QUOTA_UNAVAILABLE = "quota_unavailable"
    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    CONNECTION_LOST = "connection_lost"
    MODEL_UNAVAILABLE = "model_unavailable"
    UNSUPPORTED_FLAG = "unsupported_flag"
    INVALID_SCHEMA = "invalid_schema"
    PERMISSION_DENIED = "permission_denied"
    OTHER = "other"


RETRYABLE: Final = frozenset(
    {ProviderErrorKind.RATE_LIMITED, ProviderErrorKind.SERVER_ERROR, ProviderErrorKind.CONNECTION_LOST}
)
"""Kinds that may pass by themselves; whether to try again is the caller's decision, never the adapter's."""


class SandboxKind(StrEnum):
    """What kept a program of a call from changing more than it may.

    `program`: the program's own sandbox was asked for. `bubblewrap`: that of `execution`, around the program.
    `permissions_only`: nothing but the permissions the program was told to hold itself to. `unconfined`: the
    program has no permissions that are known, and ran as the user.
    """

    PROGRAM = "program"
    BUBBLEWRAP = "bubblewrap"
    PERMISSIONS_ONLY = "permissions_only"
    UNCONFINED = "unconfined"


class StreamLimit(StrEnum):
    """A limit of what a program says, beside those of `execution` on its bytes."""

    LINES = "lines"


class WarningCode(StrEnum):
    """What a record should say beside the ending.

    `provider_notice`: trouble the provider told of and went on. `unknown_event`: an event of a type that
    the adapter does not know. `surface_differs`: the session had other tools, skills, servers or permissions
    than were asked for. `stderr_output`: the program wrote to stderr; the text is its end.
    `lingered`: the program showed its terminal marker, did not exit and was killed. `processes_left`:
    descendants outlived the program and were killed. `processes_alive`: some are alive still.
    `prompt_unread`: the program did not take the whole prompt. `executable_changed`: the program is not the
    one that was bound. `session_unavailable`: the private folders, or what belongs into them, could not be
    made. `session_left`: the folders could not be removed. `start_failed`: the program could not be
    started; the text is the reason. `watch_lost`: nobody watched over the program to its end.
    `prompt_too_long`: the program takes prompts as arguments only, and this cannot be one.
    `requisite_missing`: another program that this one needs is not there; the text names it.
    `mount_unsupported`: nobody knows how the program could be given skills or instructions. `real_home`: the
    program ran in the user's own home, because its login lives there. `launch_differs`: whoever asked was
    shown what would be started, and would not have it.
    """

    PROVIDER_NOTICE = "provider_notice"
    UNKNOWN_EVENT = "unknown_event"
    SURFACE_DIFFERS = "surface_differs"
    STDERR_OUTPUT = "stderr_output"
    LINGERED = "lingered"
    PROCESSES_LEFT = "processes_left"
    PROCESSES_ALIVE = "processes_alive"
    PROMPT_UNREAD = "prompt_unread"
    EXECUTABLE_CHANGED = "executable_changed"
    SESSION_UNAVAILABLE = "session_unavailable"
    SESSION_LEFT = "session_left"
    START_FAILED = "start_failed"
    WATCH_LOST = "watch_lost"
    PROMPT_TOO_LONG = "prompt_too_long"
    REQUISITE_MISSING = "requisite_missing"
    MOUNT_UNSUPPORTED = "mount_unsupported"
    REAL_HOME = "real_home"
    LAUNCH_DIFFERS = "launch_differs"


@dataclass(frozen=True, slots=True)
class CallWarning:
    """A closed code, and words for the private log that may hold anything a provider printed (P7)."""

    code: WarningCode
    text: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class JudgeCall:
    """What a reviewer is asked. It holds no truth, and there is no parameter for any.

    Attributes:
        prompt: the text, never empty.
        answer_schema: JSON Schema of the one object that is the answer; plain JSON values.
        model: exact model id.
        timeout_seconds: from the start of the call until it has to be over.

    Raises:
        ProviderError: `invalid_call`.
    """

    prompt: str = field(repr=False)
    answer_schema: Mapping[str, object] = field(repr=False)
    model: str
    timeout_seconds: float

    def __post_init__(self) -> None:
        _demand_askable(self.prompt, self.model, self.timeout_seconds)
        _demand_schema(self.answer_schema)

    def schema_bytes(self) -> bytes:
        """The answer schema as canonical JSON."""
        return dump(dict(self.answer_schema))


@dataclass(frozen=True, slots=True)
class ReadCall:
    """What a session is asked that may read a checkout and change nothing.

    It may run commands in a read-only sandbox; whoever asks compares the tree afterwards. Another observed
    model than the one asked for is a warning in the record, not an error.

    Attributes:
        prompt: the text, never empty.
        checkout: the folder to read, absolute.
        model: exact model id.
        timeout_seconds: from the start of the call until it has to be over.
        answer_schema: JSON Schema of the one object that is the answer; `None` for free text.

    Raises:
        ProviderError: `invalid_call`.
    """

    prompt: str = field(repr=False)
    checkout: Path
    model: str
    timeout_seconds: float
    answer_schema: Mapping[str, object] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _demand_askable(self.prompt, self.model, self.timeout_seconds)
        _demand_absolute(self.checkout, "checkout")
        if self.answer_schema is not None:
            _demand_schema(self.answer_schema)

    def schema_bytes(self) -> bytes | None:
        """The answer schema as canonical JSON; `None` for free text."""
        return None if self.answer_schema is None else dump(dict(self.answer_schema))


@dataclass(frozen=True, slots=True)
class WorkCall:
    """What a session is asked that may change its own working copy, and nothing else.

    Attributes:
        prompt: the text, never empty.
        working_copy: the folder to work in, absolute; it belongs to this session alone. The adapter writes
            into it only what the mount demands.
        model: exact model id.
        timeout_seconds: from the start of the call until it has to be over.
        answer_schema: JSON Schema of the one object that is the answer; `None` for free text.
        mount: what an arm gives the agent; with `None` it sees no skill and no instructions of the user's.
        read_roots: where the program is run in the sandbox of `execution`, all it can read beside the system,
            itself, its session and the working copy, absolute; `None` for the whole file system. A program
            with a sandbox of its own, or without any, is not limited by it: the outcome's `sandbox` says so.
        approve: shown the launch, with everything that was laid for it, right before it is started; where it
            says no, nothing is started, and the outcome is `unstartable` with the warning `launch_differs`.
        confinement: what has to be around the program; with `None` there is what the adapter asks for.
        environment: variables of the task, which the program gets beside its own; names that
            `task_environment.refused_name` refuses are none for a task.

    Raises:
        ProviderError: `invalid_call`.
    """

    prompt: str = field(repr=False)
    working_copy: Path
    model: str
    timeout_seconds: float
    answer_schema: Mapping[str, object] | None = field(default=None, repr=False)
    mount: Mount | None = None
    read_roots: tuple[Path, ...] | None = None
    approve: Approve | None = None
    confinement: Confinement | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        _demand_askable(self.prompt, self.model, self.timeout_seconds)
        _demand_absolute(self.working_copy, "working copy")
        for root in self.read_roots or ():
            _demand_absolute(root, "read root")
        if self.answer_schema is not None:
            _demand_schema(self.answer_schema)

    def schema_bytes(self) -> bytes | None:
        """The answer schema as canonical JSON; `None` for free text."""
        return None if self.answer_schema is None else dump(dict(self.answer_schema))


def _demand_askable(prompt: str, model: str, seconds: float) -> None:
    """Demand what every kind of call has: something to ask, an exact model, a time."""
    if not prompt.strip():
        raise _invalid("the prompt is empty; ask something.")
    if not _encodable(prompt):
        raise _invalid("the prompt has no UTF-8 form; remove the unpaired surrogates.")
    if not re.fullmatch(MODEL_ID, model):
        raise _invalid(f"the model id is not of the form {MODEL_ID}; name an exact one.")
    if isinstance(seconds, bool) or not (math.isfinite(seconds) and seconds > 0):
        raise _invalid("the timeout is not a positive number of seconds.")


def _demand_schema(schema: Mapping[str, object]) -> None:
    try:
        dump(dict(schema))
    except CanonicalError as error:
        raise _invalid(f"the answer schema has no JSON form ({error.code}).") from None


def _demand_absolute(folder: Path, what: str) -> None:
    if not folder.is_absolute():
        raise _invalid(f"the {what} is not an absolute path; name the folder by one.")


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What came back from one call.

    Attributes:
        ending: the one word for how it ended.
        error_kind: what the provider said was wrong, exactly when `ending` is `provider_error`.
        limit: which limit was crossed, exactly when `ending` is `limit`.
        answer: the answer's text, exactly when `ending` is `success`; its form is the caller's to judge.
        usage: what the call cost as far as it was told.
        session_id: the provider's id of the session; `None` when it told none or several.
        observed_model: the model that the provider says it used; `None` when it does not say.
        exit_code: of the program; `None` when a signal ended it or there was none.
        warnings: what else a record should say.
        events: the whole stream as typed events.
        latency_ms: from the start of the call to its end, in whole milliseconds.
        survivors: descendants that outlived the program; they were killed.
        recording: what it said, byte for byte; `None` when no program was started.
        sandbox: what kept the program from changing more than it may; `None` when none was started.
        observation: what it could reach and did reach, where a confinement was demanded.
        began_empty: whether nothing at all lay in the session's folders when the call began; `None` when
            nobody looked.
    """

    ending: Ending
    error_kind: ProviderErrorKind | None = None
    limit: LimitName | StreamLimit | None = None
    answer: str | None = field(default=None, repr=False)
    usage: Usage = UNKNOWN_USAGE
    session_id: str | None = None
    observed_model: str | None = None
    exit_code: int | None = None
    warnings: tuple[CallWarning, ...] = ()
    events: tuple[Event, ...] = field(default=(), repr=False)
    latency_ms: int = 0
    survivors: int = 0
    recording: Recording | None = field(default=None, repr=False)
    sandbox: SandboxKind | None = None
    observation: Observation | None = field(default=None, repr=False)
    began_empty: bool | None = None

    def __post_init__(self) -> None:
        belongs = (
            ("answer", self.answer, Ending.SUCCESS),
            ("error_kind", self.error_kind, Ending.PROVIDER_ERROR),
            ("limit", self.limit, Ending.LIMIT),
        )
        for name, value, ending in belongs:
            if (value is not None) is not (self.ending is ending):
                raise ValueError(
                    f"{name} goes with the ending {ending} and with no other, not with {self.ending}"
                )

    @property
    def retryable(self) -> bool:
        """Whether the trouble may pass by itself."""
        return self.error_kind in RETRYABLE


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _invalid(sentence: str) -> ProviderError:
    return ProviderError(ProviderCode.INVALID_CALL, f"This call cannot be made: {sentence}")
