"""Claude: what the lines of its stream mean, in a session that was asked for in one exact form.

Source: providers.md section 3; field-failures.md F13 to F16, F18, F37, F38, F40. Facts were observed on
claude 2.1.332.

The terminal marker is the `result` event, and it alone says how a turn ended, what the answer is and what
all of it cost. Its `subtype` stays `success` when the provider failed, so `is_error`, `terminal_reason` and
`api_error_status` are read. Texts of `assistant` events are never an answer: a model that ignores the
demanded form leaves a result without `structured_output`. Such events repeat a message's id, with counters
that are not final; no counter of theirs is read. Nor is `usage` of the result, which tells of its last turn
only and of nothing at all after some failures: `modelUsage` and `total_cost_usd` are the totals of the whole
session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import dump
from skill_effectiveness.evidence.faults import CanonicalError, StrictError
from skill_effectiveness.evidence.strict import read_json
from skill_effectiveness.providers.calls import CallKind, ProviderErrorKind
from skill_effectiveness.providers.claude_surface import ANSWER_TOOL, differences
from skill_effectiveness.providers.events import (
    AnswerInvalid,
    Declined,
    Event,
    Message,
    ModelReported,
    Notice,
    NoticeKind,
    Progress,
    Reasoning,
    SessionStarted,
    SurfaceDiffers,
    ToolActivity,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
    Unknown,
    Unreadable,
)
from skill_effectiveness.providers.loose import Members, loose_members
from skill_effectiveness.providers.stream import BOUNDS
from skill_effectiveness.providers.usage import UNKNOWN_USAGE, Usage, counter, price

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.providers.claude_surface import Surface
    from skill_effectiveness.providers.recording import Recording
    from skill_effectiveness.providers.stream import Document

_SYNTHETIC: Final = "<synthetic>"
"""What the program calls the model of a message that it wrote itself."""

_LONGEST_ID: Final = 256
_NO_ANSWER_IN_FORM: Final = "error_max_structured_output_retries"
_DONE: Final = "completed"

_STATUS_KINDS: Final[Mapping[int, ProviderErrorKind]] = {
    401: ProviderErrorKind.AUTH_UNAVAILABLE,
    402: ProviderErrorKind.QUOTA_UNAVAILABLE,
    403: ProviderErrorKind.PERMISSION_DENIED,
    404: ProviderErrorKind.MODEL_UNAVAILABLE,
    429: ProviderErrorKind.RATE_LIMITED,
}
_SERVER_STATUS: Final = range(500, 600)

_TROUBLES: Final[Mapping[str, ProviderErrorKind]] = {
    "connection_failed": ProviderErrorKind.CONNECTION_LOST,
    "usage_limit_reached": ProviderErrorKind.QUOTA_UNAVAILABLE,
}
"""Values of a result's `api_error`, which say more than its status does."""

_SENTENCES: Final = (
    ("Credit balance is too low", ProviderErrorKind.QUOTA_UNAVAILABLE),
    ("You've hit your", ProviderErrorKind.QUOTA_UNAVAILABLE),
    ("Not logged in", ProviderErrorKind.AUTH_UNAVAILABLE),
    ("Invalid API key", ProviderErrorKind.AUTH_UNAVAILABLE),
    ("Failed to authenticate", ProviderErrorKind.AUTH_UNAVAILABLE),
    ("OAuth token", ProviderErrorKind.AUTH_UNAVAILABLE),
    ("There's an issue with the selected model", ProviderErrorKind.MODEL_UNAVAILABLE),
    ("API Error: Connection", ProviderErrorKind.CONNECTION_LOST),
)
"""How the program's own sentences begin; what follows may be a server's text."""

_BAD_SCHEMA: Final = (ANSWER_TOOL, "input_schema", "output_config")
"""What a server names that refuses the form of an answer."""

_BAD_REQUEST: Final = 400


def error_kind(message: str) -> ProviderErrorKind:
    """The kind of trouble in the program's words, where it gave no word or number for it."""
    sentence = message.replace("\u2019", "'")
    kinds = (kind for opening, kind in _SENTENCES if sentence.startswith(opening))
    return next(kinds, ProviderErrorKind.OTHER)


def _told_kind(result: Document, message: str) -> ProviderErrorKind | None:
    """The kind of trouble by what the result tells beside its text."""
    trouble, status = result.get("api_error"), result.get("api_error_status")
    if isinstance(trouble, str) and trouble in _TROUBLES:
        return _TROUBLES[trouble]
    if not isinstance(status, int) or isinstance(status, bool):
        return None
    if status in _SERVER_STATUS:
        return ProviderErrorKind.SERVER_ERROR
    if status == _BAD_REQUEST and any(word in message for word in _BAD_SCHEMA):
        return ProviderErrorKind.INVALID_SCHEMA
    return _STATUS_KINDS.get(status)


class ClaudeEvents:
    """The meaning of one session's lines.

    Args:
        surface: what the session was asked to be.
        formed: whether an answer of a demanded form was asked for; otherwise it is free text.
    """

    def __init__(self, surface: Surface, *, formed: bool) -> None:
        self._surface = surface
        self._formed = formed
        self._begun = False
        self._session: str | None = None
        self._model_spoke_last = True
        self._running: dict[str, str] = {}
        self._read: Mapping[str, Callable[[Document], list[Event] | None]] = {
            "system": self._system,
            "assistant": self._assistant,
            "user": self._user,
            "result": self._result,
            "rate_limit_event": _rate_limit,
        }

    def read(self, document: Document, line: bytes) -> list[Event]:
        """The typed events of one line."""
        kind = document.get("type")
        if not isinstance(kind, str):
            return [Unreadable(line, "shape")]
        read = self._read.get(kind)
        events = [Unknown(kind)] if read is None else read(document)
        if events is None:
            return [Unreadable(line, "shape")]
        return [*self._unannounced(kind), *self._named(document), *events]

    def _named(self, document: Document) -> list[Event]:
        """Every event names its session; it is told once, and again where it changes."""
        session = _session_id(document)
        if session is None or session == self._session:
            return []
        self._session = session
        return [SessionStarted(session)]

    def _unannounced(self, kind: str) -> list[Event]:
        """What comes before the surface was told comes from a session that nothing is known of."""
        if self._begun or kind not in ("assistant", "result"):
            return []
        return [SurfaceDiffers("the session did not say what it is before it spoke")]

    def salvage(self, error: StrictError, line: bytes) -> list[Event]:
        """What can be told against the call from a line that is not strict JSON: a tool, or another model.

        The program escapes what a model wrote, so such a line holds a lone surrogate at most; yet nothing
        that a model can write may hide a tool.
        """
        document = loose_members(error, line)
        if document is None or "assistant" not in document.named("type"):
            return []
        messages = document.objects("message")
        models = [str(model) for message in messages for model in message.named("model")]
        reported: list[Event] = [ModelReported(model) for model in models if model != _SYNTHETIC]
        blocks = [block for message in messages for block in message.items("content")]
        return [*reported, *(tool for block in blocks for tool in self._loose_tools(block))]

    def _loose_tools(self, block: object) -> list[Event]:
        """The tools in one block of a line that is not strict JSON."""
        kinds = block.named("type") if isinstance(block, Members) else []
        if not isinstance(block, Members) or not kinds:
            return [ToolActivity(_UNREADABLE)]
        wanted = [kind for kind in map(str, kinds) if kind not in _NO_TOOLS]
        names = [str(name) for name in block.named("name")]
        if not wanted or (self._formed and set(names) == {ANSWER_TOOL}):
            return []
        return [ToolActivity(name) for name in names or wanted]

    def _system(self, document: Document) -> list[Event] | None:
        subtype = document.get("subtype")
        if not isinstance(subtype, str):
            return None
        if subtype == "init":
            return self._init(document)
        read = _SYSTEM.get(subtype)
        return [Unknown(f"system/{subtype}")] if read is None else read(document)

    def _init(self, document: Document) -> list[Event] | None:
        if _session_id(document) is None:
            return None
        self._begun = True
        model = document.get("model")
        reported: list[Event] = [ModelReported(model)] if isinstance(model, str) and model else []
        differs = [SurfaceDiffers(what) for what in differences(document, self._surface)]
        return [TurnStarted(), *reported, *differs]

    def _assistant(self, document: Document) -> list[Event] | None:
        message = document.get("message")
        if not isinstance(message, dict) or not isinstance(model := message.get("model"), str):
            return None
        blocks = message.get("content")
        if not isinstance(blocks, list):
            return None
        self._model_spoke_last = model != _SYNTHETIC
        if not self._model_spoke_last and _only_text(blocks):
            return [Notice(NoticeKind.REMARK, _words(blocks))]
        return [TurnStarted(), ModelReported(model), *(self._block(block) for block in blocks)]

    def _block(self, block: JsonValue) -> Event:
        kind = block.get("type") if isinstance(block, dict) else None
        if not isinstance(block, dict) or not isinstance(kind, str):
            # What cannot be read could be a tool.
            return ToolActivity(_UNREADABLE)
        if kind == _THOUGHT:
            return Reasoning(str(block.get("thinking", "")))
        if kind in _SILENT_BLOCKS:
            return Progress(kind)
        name = block.get("name") if kind == "tool_use" else None
        if name == ANSWER_TOOL and self._formed:
            return Progress(ANSWER_TOOL)
        tool = name if isinstance(name, str) else kind
        if isinstance(call := block.get("id"), str):
            self._running[call] = tool
        return ToolActivity(tool)

    def _user(self, document: Document) -> list[Event] | None:
        message = document.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, str):
            return [Progress("text")]
        if not isinstance(content, list):
            return None
        return [self._come_back(block) for block in content]

    def _come_back(self, block: JsonValue) -> Event:
        """What a block that the program sends to the model tells: the result of a tool, once for each."""
        kind = block.get("type") if isinstance(block, dict) else None
        call = block.get("tool_use_id") if isinstance(block, dict) and kind == _RESULT_BLOCK else None
        tool = self._running.pop(call, None) if isinstance(call, str) else None
        if tool is None or not isinstance(block, dict):
            return Progress(kind if isinstance(kind, str) else _UNREADABLE)
        failed = block.get("is_error", False)
        return ToolActivity(tool, not failed if isinstance(failed, bool) else None)

    def _result(self, document: Document) -> list[Event] | None:
        if not isinstance(document.get("is_error"), bool) or not isinstance(document.get("subtype"), str):
            return None
        ended = self._ended(document)
        if ended is None:
            return None
        return [*_denials(document), *_served(document), *ended, TurnCompleted(session_usage(document))]

    def _ended(self, document: Document) -> list[Event] | None:
        """How a turn ended; None when its answer has no form that can be kept."""
        text = document.get("result")
        message = text if isinstance(text, str) else _errors(document)
        if document.get("stop_reason") == "refusal":
            return [Notice(NoticeKind.REMARK, message), Declined()]
        if document["subtype"] == _NO_ANSWER_IN_FORM:
            return [AnswerInvalid(message)]
        if not _went_well(document):
            return [TurnFailed(message, _told_kind(document, message))]
        if self._formed:
            return _formed_answer(document)
        if not isinstance(text, str):
            return None
        return [Message(text)] if self._model_spoke_last else []


_SILENT_BLOCKS: Final = frozenset({"text", "redacted_thinking"})
"""Types of content that are no tool; every other one is, also one that was never heard of."""

_THOUGHT: Final = "thinking"
_NO_TOOLS: Final = _SILENT_BLOCKS | {_THOUGHT}
_RESULT_BLOCK: Final = "tool_result"
_UNREADABLE: Final = "unreadable"


def _session_id(document: Document) -> str | None:
    session = document.get("session_id")
    return session if isinstance(session, str) and 0 < len(session) <= _LONGEST_ID else None


def _formed_answer(result: Document) -> list[Event] | None:
    if "structured_output" not in result:
        return []
    try:
        return [Message(dump(result["structured_output"]).decode())]
    except CanonicalError:
        return None


def _went_well(result: Document) -> bool:
    """Whether everything a result says of its turn is good; the subtype alone is not to be believed."""
    return (
        result.get("is_error") is False
        and result.get("subtype") == "success"
        and result.get("terminal_reason") == _DONE
        and result.get("api_error_status") is None
        and result.get("api_error") is None
    )


def _only_text(blocks: list[JsonValue]) -> bool:
    return all(isinstance(block, dict) and block.get("type") == "text" for block in blocks)


def _words(blocks: list[JsonValue]) -> str:
    texts = (block.get("text") for block in blocks if isinstance(block, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def _errors(result: Document) -> str:
    errors = result.get("errors")
    return "\n".join(map(str, errors)) if isinstance(errors, list) else ""


def _retry(document: Document) -> list[Event]:
    told = f"{document.get('error')} (status {document.get('error_status')})"
    return [Notice(NoticeKind.RETRY, told)]


def _denied(document: Document) -> list[Event]:
    tool, message = document.get("tool_name"), document.get("message")
    return [
        ToolActivity(tool if isinstance(tool, str) else _UNREADABLE),
        Notice(NoticeKind.REMARK, message if isinstance(message, str) else "a tool was denied"),
    ]


def _remark(document: Document) -> list[Event]:
    content = document.get("content")
    return [Notice(NoticeKind.REMARK, content if isinstance(content, str) else "")]


def _rate_limit(document: Document) -> list[Event]:
    info = document.get("rate_limit_info")
    status = info.get("status") if isinstance(info, dict) else None
    if status == "allowed":
        return [Progress("rate_limit_event")]
    return [Notice(NoticeKind.REMARK, f"rate limit: {status}")]


_SYSTEM: Final[Mapping[str, Callable[[Document], list[Event]]]] = {
    "api_retry": _retry,
    "permission_denied": _denied,
    "informational": _remark,
    "model_refusal_no_fallback": _remark,
    **dict.fromkeys(
        ("status", "background_tasks_changed", "task_started", "task_updated", "task_notification"),
        lambda document: [Progress(f"system/{document['subtype']}")],
    ),
}
"""Events of the program's own, by their subtype."""


def _denials(result: Document) -> Iterator[Event]:
    """Every tool that a session wanted and did not get, once more at its end."""
    denials = result.get("permission_denials")
    for denial in denials if isinstance(denials, list) else []:
        name = denial.get("tool_name") if isinstance(denial, dict) else None
        yield ToolActivity(name if isinstance(name, str) else _UNREADABLE)


def _served(result: Document) -> Iterator[Event]:
    """Tools that the server used by itself, which the stream need not show."""
    usage = result.get("usage")
    served = usage.get("server_tool_use") if isinstance(usage, dict) else None
    for name, count in served.items() if isinstance(served, dict) else []:
        if count:
            yield ToolActivity(name)


def session_usage(result: Document) -> Usage:
    """What a session cost until this result, from the totals by model.

    Input that was read from a cache, or written into one, is told apart from the rest and counted here with
    it. A result without any model's totals tells nothing, and a model whose totals cannot be read spoils
    the sum. No session costs nothing: a price of zero is that of a model without one (field-failures.md F39).
    """
    models = result.get("modelUsage")
    if not isinstance(models, dict) or not models:
        return UNKNOWN_USAGE
    fresh, read, written, output, thought = (_sum(models, name) for name in _COUNTERS)
    return Usage(
        input_tokens=None if fresh is None or read is None or written is None else fresh + read + written,
        cached_input_tokens=read,
        output_tokens=output,
        reasoning_output_tokens=thought,
        cost_units=price(result.get("total_cost_usd")),
    )


_COUNTERS: Final = (
    "inputTokens",
    "cacheReadInputTokens",
    "cacheCreationInputTokens",
    "outputTokens",
    "thinkingTokens",
)


def _sum(models: Mapping[str, JsonValue], name: str) -> int | None:
    total = 0
    for totals in models.values():
        value = counter(totals.get(name)) if isinstance(totals, dict) else None
        if value is None:
            return None
        total += value
    return total


# How many tools were used.

_SUBAGENTS: Final = frozenset({"Agent", "Task"})
"""Tools behind which others are used that need not show."""


def tool_calls(recording: Recording) -> int | None:
    """How many tools a session used, each call once; `None` where the stream may not have all of them.

    A message is printed before its tools are run, and a session that came to its end printed every message.
    """
    calls: set[tuple[str, str]] = set()
    last: JsonValue = None
    for line in recording.lines:
        try:
            document = read_json(line, BOUNDS[CallKind.WORK].line, want_object=True)
        except StrictError:
            return None
        told = document if isinstance(document, dict) else {}
        last = told.get("type")
        if last != "assistant":
            continue
        for name, call in _calls_of(told.get("message")):
            if call is None or name in _SUBAGENTS:
                return None
            calls.add(call)
    return len(calls) if last == "result" and recording.stdout.endswith(b"\n") else None


def _calls_of(message: JsonValue) -> Iterator[tuple[str, tuple[str, str] | None]]:
    """The tools in a message: the name, and what tells the call from others."""
    told = message if isinstance(message, dict) else {}
    identity, blocks = told.get("id"), told.get("content")
    for block in blocks if isinstance(blocks, list) else [None]:
        known = block if isinstance(block, dict) else {}
        kind, name, call = known.get("type"), known.get("name"), known.get("id")
        if str(kind) in _NO_TOOLS or (kind == "tool_use" and name == ANSWER_TOOL):
            continue
        whole = isinstance(identity, str) and isinstance(call, str)
        yield str(name), (str(identity), str(call)) if whole else None
