"""OpenCode: what an export of its session says, compared with what the session's stream said.

Source: providers.md section 4, P2, P6. Facts were observed on opencode 1.18.33.

The program falls back on another agent without a word in its stream, so the export alone tells which agent
and which model answered: on the session, and on every message of it. Every part of the stream has to be in
the export as it was printed, and a tool that only the export has was used all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from skill_effectiveness.evidence.faults import StrictError
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.providers.events import Event, ModelReported, SurfaceDiffers, ToolActivity
from skill_effectiveness.providers.opencode_events import STOP, SUBAGENT_TOOL, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.providers.opencode_events import Stream
    from skill_effectiveness.providers.recording import Recording
    from skill_effectiveness.providers.stream import Document

_HARMLESS_PARTS: Final = frozenset(
    {"text", "reasoning", "step-start", "step-finish", "snapshot", "patch", "compaction", "retry"}
)
"""Types of parts that are no tool; every other one is, also one that was never heard of."""

_SUMMARIZER: Final = "compaction"
"""The agent that shortens a long session; it has no tools, and its messages are marked as summaries."""


@dataclass(frozen=True, slots=True)
class Export:
    """One session as the program keeps it."""

    session: Document
    messages: tuple[Message, ...]

    @property
    def asked_model(self) -> bool:
        """Whether the model was ever turned to."""
        return any(message.role == "assistant" for message in self.messages)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a session: what is said about it, and its parts."""

    info: Document
    parts: tuple[Document, ...]

    @property
    def role(self) -> JsonValue:
        """Who speaks."""
        return self.info.get("role")

    @property
    def summary(self) -> bool:
        """Whether the program wrote it to shorten the session."""
        return self.info.get("summary") is True and self.info.get("agent") == _SUMMARIZER


def read_export(data: bytes) -> Export | None:
    """The session in an export; `None` for anything else."""
    try:
        document = cast("Document", read_json(data, Profile.DOCUMENT, want_object=True))
    except StrictError:
        return None
    session, listed = document.get("info"), document.get("messages")
    if not isinstance(session, dict) or not isinstance(listed, list):
        return None
    messages = [_message(message) for message in listed]
    whole = [message for message in messages if message is not None]
    return Export(session, tuple(whole)) if len(whole) == len(messages) else None


def _message(value: JsonValue) -> Message | None:
    if not isinstance(value, dict):
        return None
    info, parts = value.get("info"), value.get("parts")
    if not isinstance(info, dict) or not isinstance(parts, list):
        return None
    whole = [part for part in parts if isinstance(part, dict)]
    return Message(info, tuple(whole)) if len(whole) == len(parts) else None


def compare(export: Export, *, session: str, agent: str, model: str, stream: Stream) -> list[Event]:
    """What an export tells beside the stream, and whatever contradicts what was asked or printed.

    Args:
        export: of the session.
        session: its id in the stream.
        agent: the agent that was asked for.
        model: the model that was asked for, as `PROVIDER/MODEL`.
        stream: what was printed.
    """
    models = dict.fromkeys(_models(export))
    # The last one stands for the call, so that another model is never hidden by the right one.
    told = sorted(models, key=lambda found: found != model)
    differences = [*_strangers(export, session, agent), *_unequal(export, stream)]
    return [
        *(ModelReported(found) for found in told),
        *(SurfaceDiffers(difference) for difference in dict.fromkeys(differences)),
        *(ToolActivity(tool) for tool in _hidden_tools(export, stream)),
    ]


def _models(export: Export) -> Iterator[str]:
    """The models of the session and of each message of the model's, in order."""
    yield _model(export.session.get("model"), "id")
    for message in export.messages:
        asked = message.info.get("model") if message.role == "user" else message.info
        yield _model(asked, "modelID")


def _model(value: JsonValue, member: str) -> str:
    told = value if isinstance(value, dict) else {}
    return f"{name_of(told.get('providerID')) or '?'}/{name_of(told.get(member)) or '?'}"


def _strangers(export: Export, session: str, agent: str) -> Iterator[str]:
    """What is of another session or another agent."""
    if export.session.get("id") != session:
        yield "the export is of another session"
    if export.session.get("agent") != agent:
        yield f"the agent of the session is {export.session.get('agent')!r}, not {agent!r}"
    for message in export.messages:
        if message.info.get("sessionID") != session:
            yield "a message of the export is of another session"
        if message.info.get("agent") != agent and not message.summary:
            yield f"the agent of a message is {message.info.get('agent')!r}, not {agent!r}"


def _unequal(export: Export, stream: Stream) -> Iterator[str]:
    """Parts that were printed and are not in the export, and a last text that was never printed."""
    kept = {name: part for message in export.messages for name, part in _named(message)}
    for name, printed in stream.parts.items():
        if _core(printed) != _core(kept.get(name, {})):
            yield f"the export has another part than the stream printed ({printed.get('type')!r})"
    last = export.messages[-1] if export.messages else None
    if last is None or last.role != "assistant" or stream.reason != STOP:
        return
    for name, part in _named(last):
        if part.get("type") == "text" and part.get("text") and name not in stream.parts:
            yield "the export has a text that the stream did not print"


def _named(message: Message) -> Iterator[tuple[str, Document]]:
    for part in message.parts:
        yield name_of(part.get("id")) or "", part


def _core(part: Document) -> tuple[JsonValue, ...]:
    """What of a part stays as it is once it was printed."""
    state = part.get("state")
    tool = state if isinstance(state, dict) else {}
    named = tuple(
        part.get(name) for name in ("type", "sessionID", "messageID", "text", "reason", "tool", "callID")
    )
    return (*named, tool.get("status"), tool.get("input"))


def _hidden_tools(export: Export, stream: Stream) -> Iterator[str]:
    """Tools that the export has and the stream did not print."""
    for name, part in _tools(export):
        if name not in stream.parts:
            yield name_of(part.get("tool")) or name_of(part.get("type")) or ""


def _tools(export: Export) -> Iterator[tuple[str, Document]]:
    """Every part that is a tool, or nothing that is known."""
    for message in export.messages:
        if message.role == "user":
            continue
        for name, part in _named(message):
            kind = part.get("type")
            if not isinstance(kind, str) or kind not in _HARMLESS_PARTS:
                yield name, part


def tool_calls(recording: Recording) -> int | None:
    """How many tools a session used; `None` without a whole export, or where a subagent used others.

    An export is asked for once a session came to its end, and its stream was held against it.
    """
    export = None if recording.export is None else read_export(recording.export)
    if export is None:
        return None
    tools = list(_tools(export))
    known = all(name and part.get("type") == "tool" for name, part in tools)
    if not known or any(part.get("tool") == SUBAGENT_TOOL for _, part in tools):
        return None
    return len({name for name, _ in tools})
