"""OpenCode: what the lines of its stream mean.

Source: providers.md section 4; field-failures.md F13 to F18, F34, F38, F40. Facts were observed on opencode
1.18.33.

There is no final event. A step that ends with the reason `stop` and used no tool is the terminal marker; one
that ends with `tool-calls` is followed by another, unless a permission was refused, and then the program ends
with exit code 0 and without an answer. Whatever reason the last step had if not `stop`, there is no answer.

Each part of a message has an id. Text is printed once its part is whole, a tool once it has a result; the
texts of the last step together are the answer. Counters are those of one step each and are added up, a step
that is told twice once. The program prices models by a list of its own and says zero for one that it has no
price for, so a cost of zero is not told. Steps of a subagent are in another session, which the stream does
not show: a session that has one cost more than what is counted, so what it cost is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.faults import StrictError
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.providers.calls import ProviderErrorKind
from skill_effectiveness.providers.classification import ProviderVocabulary
from skill_effectiveness.providers.events import (
    Event,
    Message,
    Progress,
    Reasoning,
    SessionStarted,
    ToolActivity,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
    Unknown,
    Unreadable,
)
from skill_effectiveness.providers.loose import loose_members
from skill_effectiveness.providers.usage import UNKNOWN_USAGE, Usage, counter, price

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.execution import ProcessResult
    from skill_effectiveness.providers.stream import Document

STOP: Final = "stop"
"""The reason of a step that is the end of an answer."""

SUBAGENT_TOOL: Final = "task"
_LONGEST_ID: Final = 256
_SHAPE: Final = "shape"


def name_of(value: JsonValue) -> str | None:
    """An id or a name of the program's; `None` when it is none."""
    return value if isinstance(value, str) and 0 < len(value) <= _LONGEST_ID else None


_TEXTS_MOST: Final = 64
"""Texts of one step that make its message: a model says a few, and each joins them all anew."""


class Stream:
    """The lines of one call, and what has to be remembered of them.

    Attributes:
        parts: every part that was printed, by id; the last form counts.
        reason: why the last step ended; `None` before that, and once something failed.
    """

    def __init__(self) -> None:
        self.parts: dict[str, Document] = {}
        self.reason: str | None = None
        self._session: str | None = None
        self._texts: dict[str, str] = {}
        self._steps: dict[str, _Step] = {}
        self._tool_in_step = False
        self._delegated = False

    def read(self, document: Document, line: bytes) -> list[Event]:
        """The typed events of one line."""
        kind, session = document.get("type"), name_of(document.get("sessionID"))
        if not isinstance(kind, str) or session is None:
            return [Unreadable(line, _SHAPE)]
        event = self._failure(document) if kind == "error" else self._part(kind, session, document)
        events = [Unreadable(line, _SHAPE) if event is None else event]
        if session != self._session:
            self._session = session
            events.insert(0, SessionStarted(session))
        return events

    @property
    def usage(self) -> Usage:
        """What the steps so far cost; unknown when none of them was counted, or some elsewhere."""
        return UNKNOWN_USAGE if self._delegated else _sum(self._steps.values())

    @property
    def unanswered(self) -> bool:
        """Whether the last step is over and is not the end of an answer."""
        return self.reason is not None and (self.reason != STOP or self._tool_in_step)

    def _failure(self, document: Document) -> Event:
        self.reason = None
        return failure(document.get("error"))

    def _part(self, kind: str, session: str, document: Document) -> Event | None:
        """The event of a line about a part; `None` when it lacks what its type promises."""
        read = self._READERS.get(kind)
        if read is None:
            return Unknown(kind)
        part = document.get("part")
        if not isinstance(part, dict) or part.get("sessionID") != session:
            return None
        name = name_of(part.get("id"))
        if name is None:
            return None
        self.parts[name] = part
        return read(self, name, part)

    def _step_start(self, name: str, part: Document) -> Event | None:
        del name, part
        self.reason = None
        self._texts.clear()
        self._tool_in_step = False
        return TurnStarted()

    def _text(self, name: str, part: Document) -> Event | None:
        text = part.get("text")
        if not isinstance(text, str):
            return None
        self._texts[name] = text
        if len(self._texts) > _TEXTS_MOST:
            return None
        return Message("\n".join(self._texts.values()))

    def _reasoning(self, name: str, part: Document) -> Event | None:
        del name
        text = part.get("text")
        return Reasoning(text) if isinstance(text, str) else None

    def _tool_use(self, name: str, part: Document) -> Event | None:
        del name
        # A tool without a name is one all the same.
        tool = name_of(part.get("tool")) or ""
        self._tool_in_step = True
        self._delegated = self._delegated or tool == SUBAGENT_TOOL
        return ToolActivity(tool, _went_well(part.get("state")))

    def _step_finish(self, name: str, part: Document) -> Event | None:
        reason = part.get("reason")
        if not isinstance(reason, str):
            return None
        self._steps[name] = _step(part)
        self.reason = reason
        # Some servers say `stop` where the model wants a tool; the program goes on all the same.
        over = reason == STOP and not self._tool_in_step
        return TurnCompleted(self.usage) if over else Progress("step_finish")

    _READERS: Final[Mapping[str, Callable[[Stream, str, Document], Event | None]]] = {
        "step_start": _step_start,
        "text": _text,
        "reasoning": _reasoning,
        "tool_use": _tool_use,
        "step_finish": _step_finish,
    }


def _went_well(state: JsonValue) -> bool | None:
    """Whether a tool ran and ended well; a command that ran and failed is completed all the same."""
    told = state if isinstance(state, dict) else {}
    status, metadata = told.get("status"), told.get("metadata")
    if status not in ("completed", "error"):
        return None
    code = metadata.get("exit") if isinstance(metadata, dict) else None
    if code is None:
        return status == "completed"
    return status == "completed" and code == 0 and not isinstance(code, bool)


# What it cost.


@dataclass(frozen=True, slots=True)
class _Step:
    """The counters of one step, each `None` when it was not told."""

    sent: int | None
    read_from_cache: int | None
    written_to_cache: int | None
    said: int | None
    reasoned: int | None
    cost: float | None


def _step(part: Document) -> _Step:
    tokens = part.get("tokens")
    told = tokens if isinstance(tokens, dict) else {}
    cache = told.get("cache")
    cached = cache if isinstance(cache, dict) else {}
    return _Step(
        sent=counter(told.get("input")),
        read_from_cache=counter(cached.get("read")),
        written_to_cache=counter(cached.get("write")),
        said=counter(told.get("output")),
        reasoned=counter(told.get("reasoning")),
        cost=price(part.get("cost")),
    )


def _sum(steps: Iterable[_Step]) -> Usage:
    """The usage of several steps.

    Its `input` leaves out what came from a cache or went into one, its `output` leaves out reasoning.
    """
    counted = list(steps)
    cached = _total(step.read_from_cache for step in counted)
    reasoned = _total(step.reasoned for step in counted)
    usage = Usage(
        input_tokens=_total(
            value for step in counted for value in (step.sent, step.read_from_cache, step.written_to_cache)
        ),
        cached_input_tokens=cached,
        output_tokens=_total(value for step in counted for value in (step.said, step.reasoned)),
        reasoning_output_tokens=reasoned,
        cost_units=_price(step.cost for step in counted),
    )
    # A server that tells nothing leaves zeros, and no model call costs no tokens at all.
    return usage if usage.input_tokens or usage.output_tokens else UNKNOWN_USAGE


def _total(values: Iterable[int | None]) -> int | None:
    """The sum; `None` when one of them was not told."""
    told = list(values)
    known = [value for value in told if value is not None]
    return sum(known) if len(known) == len(told) else None


def _price(costs: Iterable[float | None]) -> float | None:
    """The sum of prices; `None` when one step has none."""
    told = list(costs)
    known = [cost for cost in told if cost is not None]
    return sum(known) if known and len(known) == len(told) else None


# What its words for trouble mean.

_STATUS_KINDS: Final[Mapping[int, ProviderErrorKind]] = {
    401: ProviderErrorKind.AUTH_UNAVAILABLE,
    402: ProviderErrorKind.QUOTA_UNAVAILABLE,
    403: ProviderErrorKind.PERMISSION_DENIED,
    429: ProviderErrorKind.RATE_LIMITED,
}
_SERVER_STATUS: Final = range(500, 600)
_CODE_KINDS: Final[Mapping[str, ProviderErrorKind]] = {
    "insufficient_quota": ProviderErrorKind.QUOTA_UNAVAILABLE,
    "invalid_json_schema": ProviderErrorKind.INVALID_SCHEMA,
    "model_not_found": ProviderErrorKind.MODEL_UNAVAILABLE,
}
_NAME_KINDS: Final[Mapping[str, ProviderErrorKind]] = {
    "ProviderAuthError": ProviderErrorKind.AUTH_UNAVAILABLE,
    "ProviderModelNotFoundError": ProviderErrorKind.MODEL_UNAVAILABLE,
}
_REQUEST_ERROR: Final = "APIError"


def failure(error: JsonValue) -> TurnFailed:
    """What an `error` event tells; a failure without a reason is a failure all the same."""
    told = error if isinstance(error, dict) else {}
    data = told.get("data")
    details = data if isinstance(data, dict) else {}
    name, message = told.get("name"), details.get("message")
    words = message if isinstance(message, str) else name
    return TurnFailed(words if isinstance(words, str) else "", _kind(name, details))


def _kind(name: JsonValue, details: Document) -> ProviderErrorKind:
    if name != _REQUEST_ERROR:
        return _NAME_KINDS.get(name, _OTHER) if isinstance(name, str) else _OTHER
    code = _server_code(details.get("responseBody"))
    if code in _CODE_KINDS:
        return _CODE_KINDS[code]
    status = details.get("statusCode")
    if not isinstance(status, int) or isinstance(status, bool):
        # Without an answer there is no status; what may be tried again then is a broken connection.
        return ProviderErrorKind.CONNECTION_LOST if details.get("isRetryable") is True else _OTHER
    return ProviderErrorKind.SERVER_ERROR if status in _SERVER_STATUS else _STATUS_KINDS.get(status, _OTHER)


_OTHER: Final = ProviderErrorKind.OTHER


def _server_code(body: JsonValue) -> str:
    """The code in a server's error document, which the program passes on as it came; empty for none."""
    if not isinstance(body, str):
        return ""
    try:
        document = read_json(body.encode(errors="replace"), Profile.WIRE)
    except StrictError:
        return ""
    error = document.get("error") if isinstance(document, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) else ""


def _words_kind(message: str) -> ProviderErrorKind:
    """Every failure has its kind from its own fields; a message alone tells nothing."""
    del message
    return ProviderErrorKind.OTHER


def silent_kind(process: ProcessResult) -> ProviderErrorKind | None:
    """What it meant by ending without a word on stdout: it prints its own help for an option it lacks."""
    refused = process.exit_code == 1 and process.stderr.startswith(_HELP)
    return ProviderErrorKind.UNSUPPORTED_FLAG if refused else None


_HELP: Final = b"opencode run [message..]\n"
VOCABULARY: Final = ProviderVocabulary(error_kind=_words_kind, silent_kind=silent_kind)


# Lines that are not strict JSON.


def salvage(error: StrictError, line: bytes) -> list[Event]:
    """A tool in a line that is not strict JSON: half a character in what a tool was given is enough."""
    document = loose_members(error, line)
    if document is None or "tool_use" not in document.named("type"):
        return []
    tools = [tool for part in document.objects("part") for tool in part.named("tool")]
    return [ToolActivity(str(tool)) for tool in tools] or [ToolActivity("")]
