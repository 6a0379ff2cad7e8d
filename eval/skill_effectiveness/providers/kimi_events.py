"""What Kimi says: its stream, its errors on stderr, and the wire files it keeps of a session.

Source: providers.md section 5, P6 to P8; field-failures.md F6, F13 to F16, F38, F40.

Facts were observed on Kimi Code 2.1.0. Four of them shape what stands here:

- The session names itself in the last line only (`session.resume_hint`), which is the terminal marker as
  well. A text before it may be half of one: a stream that is cut, or a program that is killed, leaves it as
  an ordinary line.
- Trouble is told on stderr alone, after the words `error: failed to run prompt:`, beside what tools of the
  session print there; so only the last such line counts, and only where the program failed.
- What it cost stands in the wire files, one for each agent of the session. Records have no id of their own,
  and a server that told nothing is written down as zeros. What came of a tool stands there as well
  (`isError`); the stream has its words alone.
- Nobody says which model answered. What the wire files say is which alias was asked, which is compared, and
  attributes nothing.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.faults import StrictError
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.providers.calls import ProviderErrorKind
from skill_effectiveness.providers.classification import ProviderVocabulary
from skill_effectiveness.providers.events import (
    Declined,
    Event,
    Message,
    ModelReported,
    Notice,
    NoticeKind,
    Progress,
    SessionStarted,
    ToolActivity,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
    Unknown,
    Unreadable,
)
from skill_effectiveness.providers.loose import loose_members
from skill_effectiveness.providers.usage import UNKNOWN_USAGE, Usage, counter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.execution import ProcessResult
    from skill_effectiveness.providers.recording import Recording
    from skill_effectiveness.providers.stream import Document


# The stream.

SESSION_ID: Final = re.compile(r"session_[A-Za-z0-9-]{1,128}")
_UNNAMED: Final = "unnamed"


def read_event(document: Document, line: bytes) -> list[Event]:
    """The typed events of one line of the stream."""
    role = document.get("role")
    match role:
        case "meta":
            return _meta(document, line)
        case "assistant":
            return _assistant(document, line)
        case "tool":
            return [ToolActivity("tool"), TurnStarted()]
        case str():
            return [Unknown(role)]
    kind = document.get("type")
    return [Unknown(kind) if role is None and isinstance(kind, str) else _unreadable(line)]


def _meta(document: Document, line: bytes) -> list[Event]:
    kind = document.get("type")
    match kind:
        case "system.version":
            return [Progress(kind)]
        case "turn.step.retrying":
            message = document.get("error_message")
            return [Notice(NoticeKind.RETRY, message) if isinstance(message, str) else _unreadable(line)]
        case "session.resume_hint":
            session = document.get("session_id")
            if not isinstance(session, str) or not SESSION_ID.fullmatch(session):
                return [_unreadable(line)]
            return [SessionStarted(session), TurnCompleted(UNKNOWN_USAGE)]
        case str():
            return [Unknown(kind)]
    return [_unreadable(line)]


def _assistant(document: Document, line: bytes) -> list[Event]:
    """A text, wishes for tools, or both; with wishes the model is asked again, so the text is no answer."""
    content, calls = document.get("content"), document.get("tool_calls")
    tools = _tools(calls)
    asked_again: list[Event] = [TurnStarted()] if tools else []
    told = content is not None or tools
    if not told or not isinstance(content, str | None) or _no_name() in tools:
        return [*tools, *asked_again, _unreadable(line)]
    texts: list[Event] = [] if content is None else [Message(content)]
    return [*texts, *tools, *asked_again]


def _tools(calls: JsonValue) -> list[ToolActivity]:
    """A sign for every call; one that cannot be read is no less a call."""
    if calls is None:
        return []
    named = [ToolActivity(_tool_name(call)) for call in calls] if isinstance(calls, list) else []
    return named or [_no_name()]


def _tool_name(call: JsonValue) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) and name else _UNNAMED


def _no_name() -> ToolActivity:
    return ToolActivity(_UNNAMED)


def _unreadable(line: bytes) -> Unreadable:
    return Unreadable(line, "shape")


def salvage(error: StrictError, line: bytes) -> list[Event]:
    """A tool in a line that is not strict JSON, such as one with half a character in a tool's result."""
    document = loose_members(error, line)
    if document is None:
        return []
    used = document.named("tool_calls") or "tool" in document.named("role")
    return [_no_name()] if used else []


# What stderr says, and what its words mean.

_OPENING: Final = "error: failed to run prompt: "
_POINTER: Final = "See log: "
_FILTERED: Final = "Provider safety policy blocked the response."
_BAD_OPTION: Final = re.compile(rb"^error: (?:unknown option|option '[^']*' argument)", re.MULTILINE)

_TOLD: Final = re.compile(r"(?P<code>[a-z_]+\.[a-z_.]+): (?:(?P<status>[0-9]{3}) )?(?P<words>.*)", re.DOTALL)
"""A code of the program's, the server's status where there is one, and words that may be the server's."""

_CODES: Final[Mapping[str, ProviderErrorKind]] = {
    "provider.rate_limit": ProviderErrorKind.RATE_LIMITED,
    "provider.overloaded": ProviderErrorKind.SERVER_ERROR,
    "provider.auth_error": ProviderErrorKind.AUTH_UNAVAILABLE,
    "provider.connection_error": ProviderErrorKind.CONNECTION_LOST,
    "auth.login_required": ProviderErrorKind.AUTH_UNAVAILABLE,
    "auth.token_missing": ProviderErrorKind.AUTH_UNAVAILABLE,
    "auth.token_unauthorized": ProviderErrorKind.AUTH_UNAVAILABLE,
    "auth.model_not_resolved": ProviderErrorKind.MODEL_UNAVAILABLE,
    "model.not_found": ProviderErrorKind.MODEL_UNAVAILABLE,
    "model.not_configured": ProviderErrorKind.MODEL_UNAVAILABLE,
}
_STATUSES: Final[Mapping[int, ProviderErrorKind]] = {
    401: ProviderErrorKind.AUTH_UNAVAILABLE,
    402: ProviderErrorKind.QUOTA_UNAVAILABLE,
    403: ProviderErrorKind.PERMISSION_DENIED,
    # The program keeps its own code for a rate that is too high; any other 429 is a bill.
    429: ProviderErrorKind.QUOTA_UNAVAILABLE,
}
_API_ERROR: Final = "provider.api_error"
_RATE_LIMIT: Final = "provider.rate_limit"
_SERVER_STATUS: Final = range(500, 600)
_NO_SUCH_MODEL: Final = re.compile(r"The model `[^`]*` does not exist or you do not have access to it\.")
_SENTENCES: Final = (
    (re.compile(r'Model "[^"]*" is not configured in config\.toml\.'), ProviderErrorKind.MODEL_UNAVAILABLE),
    (re.compile(r"provider .* has no credential configured"), ProviderErrorKind.AUTH_UNAVAILABLE),
    (re.compile(r'Provider "[^"]*" declares api_key_env = .*'), ProviderErrorKind.AUTH_UNAVAILABLE),
)
"""Sentences of the program's own, whole, for trouble that has no code."""


def read_stderr(process: ProcessResult) -> list[Event]:
    """How the program says that it failed; nothing where it did not fail.

    What the tools of a session print is on stderr too, so words alone prove nothing: the exit code says that
    there was a failure, and the last such line what it was.
    """
    if process.exit_code in {0, None}:
        return []
    message = _last_failure(process.stderr.decode(errors="replace"))
    if message is None:
        return []
    return [Declined()] if message == _FILTERED else [TurnFailed(message)]


def _last_failure(text: str) -> str | None:
    """What stands behind the last opening, without the pointer to a log at its end."""
    start = text.rfind(f"\n{_OPENING}") + 1
    if not text.startswith(_OPENING, start):
        return None
    told = text[start + len(_OPENING) :].rstrip("\n")
    message, parted, last = told.rpartition("\n")
    return message.rstrip("\n") if parted and last.startswith(_POINTER) else told


def error_kind(message: str) -> ProviderErrorKind:
    """The kind of trouble in the program's words."""
    told = _TOLD.fullmatch(message)
    if told is None:
        kinds = (kind for sentence, kind in _SENTENCES if sentence.fullmatch(message))
        return next(kinds, ProviderErrorKind.OTHER)
    status = int(told["status"]) if told["status"] else None
    if told["code"] == _RATE_LIMIT:
        return ProviderErrorKind.RATE_LIMITED
    if status is not None and (by_status := _status_kind(status)) is not None:
        return by_status
    if told["code"] == _API_ERROR and _NO_SUCH_MODEL.fullmatch(told["words"]):
        return ProviderErrorKind.MODEL_UNAVAILABLE
    return _CODES.get(told["code"], ProviderErrorKind.OTHER)


def _status_kind(status: int) -> ProviderErrorKind | None:
    return ProviderErrorKind.SERVER_ERROR if status in _SERVER_STATUS else _STATUSES.get(status)


def silent_kind(process: ProcessResult) -> ProviderErrorKind | None:
    """What it meant by ending without a word on stdout: an option of ours that this version does not take."""
    refused = process.exit_code not in {0, None} and _BAD_OPTION.search(process.stderr)
    return ProviderErrorKind.UNSUPPORTED_FLAG if refused else None


VOCABULARY: Final = ProviderVocabulary(error_kind=error_kind, silent_kind=silent_kind)


# The wire files.

_USAGE_RECORD: Final = "usage.record"
_REQUEST: Final = "llm.request"
_LOOP_EVENT: Final = "context.append_loop_event"
_READ_RECORDS: Final = (_USAGE_RECORD, _REQUEST, _LOOP_EVENT)
_COUNTERS: Final = ("inputOther", "inputCacheRead", "inputCacheCreation", "output")


def wire_records(files: Iterable[bytes]) -> list[Document]:
    """The records of usage, of requests and of what a model did in a session's wire files.

    A line that is no record, as after a crash, is left out. Most lines hold what was said, and are not read.
    """
    return [
        record
        for data in files
        for line in data.split(b"\n")
        if any(kind.encode() in line for kind in _READ_RECORDS) and (record := _record(line)) is not None
    ]


def _record(line: bytes) -> Document | None:
    value = _object(line)
    return value if value is not None and value.get("type") in _READ_RECORDS else None


def wire_usage(records: Iterable[Document]) -> Usage:
    """What the session cost: every record of usage once, of all its agents.

    A record that repeats another one word for word, or the id of one where there are ids, is the same one;
    the last counts, since a first one may be part of it. Unknown when a record lacks a counter, or when all
    of them are zero.
    """
    found: dict[object, list[int] | None] = {}
    for record in records:
        if record.get("type") == _USAGE_RECORD:
            identity = record.get("id")
            key = identity if isinstance(identity, str) else json.dumps(record, sort_keys=True)
            found[key] = _counters(record.get("usage"))
    told = [counters for counters in found.values() if counters is not None]
    if not told or len(told) != len(found) or not any(map(any, told)):
        return UNKNOWN_USAGE
    other, read, created, output = (sum(column) for column in zip(*told, strict=True))
    return Usage(input_tokens=other + read + created, cached_input_tokens=read, output_tokens=output)


_CALL: Final = "tool.call"
_CAME_BACK: Final = "tool.result"


def wire_tools(records: Iterable[Document]) -> list[ToolActivity]:
    """What came of every tool whose result was written down, in every agent of the session.

    The stream tells the result of a tool by its words alone. Of a call that is written down twice the last
    result counts.
    """
    names: dict[str, str] = {}
    ends: dict[str, bool | None] = {}
    for record in records:
        event = record.get("event")
        told = event if record.get("type") == _LOOP_EVENT and isinstance(event, dict) else {}
        if told.get("type") == _CALL and isinstance(call := told.get("uuid"), str):
            names[call] = str(told.get("name") or _UNNAMED)
        if told.get("type") == _CAME_BACK and isinstance(call := told.get("parentUuid"), str):
            ends[call] = _went_well(told.get("result"))
    return [ToolActivity(name, ends[call]) for call, name in names.items() if call in ends]


def _went_well(result: JsonValue) -> bool | None:
    if not isinstance(result, dict):
        return None
    failed = result.get("isError", False)
    return not failed if isinstance(failed, bool) else None


def tool_calls(recording: Recording) -> int | None:
    """How many tools a session used, in all of its agents; `None` where the recording may not have them all.

    The wire files have every agent's calls, the stream those of the first one alone: a call that is in the
    stream and in no wire file shows that these are not whole.
    """
    streamed: set[str] = set()
    ended = False
    for line in recording.lines:
        document = _object(line)
        if document is None:
            return None
        ended = document.get("type") == "session.resume_hint"
        calls = document.get("tool_calls")
        for call in calls if isinstance(calls, list) else []:
            streamed.add(str(call.get("id")) if isinstance(call, dict) else "")
    if not ended or recording.export is None or not recording.stdout.endswith(b"\n"):
        return None
    wired: dict[str, str] = {}
    for record in wire_records([recording.export]):
        event = record.get("event")
        if isinstance(event, dict) and event.get("type") == _CALL:
            wired[str(event.get("uuid"))] = str(event.get("toolCallId"))
    return len(wired) if streamed <= set(wired.values()) else None


def _object(line: bytes) -> Document | None:
    try:
        value = read_json(line, Profile.DOCUMENT)
    except StrictError:
        return None
    return value if isinstance(value, dict) else None


def _counters(usage: JsonValue) -> list[int] | None:
    values = [counter(usage.get(name)) if isinstance(usage, dict) else None for name in _COUNTERS]
    counters = [value for value in values if value is not None]
    return counters if len(counters) == len(_COUNTERS) else None


def other_models(records: Iterable[Document], alias: str) -> list[Event]:
    """Models that were asked in this session beside the one it was started with, each once."""
    members = {_REQUEST: "modelAlias", _USAGE_RECORD: "model"}
    asked = [
        str(record.get(members[kind]))
        for record in records
        if isinstance(kind := record.get("type"), str) and kind in members
    ]
    return [ModelReported(model) for model in dict.fromkeys(asked) if model != alias]
