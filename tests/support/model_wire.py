"""What every wire of the loopback model server fulfils: how a request is read and an answer is spelled.

One module per wire (`responses_wire`, `chat_wire`, `messages_wire`); the server itself knows scenarios,
counting and HTTP, and no wire.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a wire reads from a model request.

    Attributes:
        model: the model id asked for.
        prompt: text of the last message the user sent.
        streaming: whether server-sent events are wanted.
        tool_results: how many results of tool calls the request brings along.
        tools: names of the tools that the request offers to the model, where the wire reads them.
        everything: the whole request as text; the server fills it in.
    """

    model: str
    prompt: str
    streaming: bool
    tool_results: int
    tools: tuple[str, ...] = ()
    everything: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes back over HTTP.

    Attributes:
        status: HTTP status.
        document: body of a plain reply; sent when no stream was asked for or there are no events.
        events: name and document of each server-sent event; an event without a name is sent without one.
        headers: further header lines.
        closing: data of one last event that is no JSON, such as `[DONE]`; empty for none.
        cut_after: events sent before the connection breaks in the middle of a chunk; None sends them all.
    """

    status: int
    document: Document
    events: Sequence[tuple[str, Document]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    closing: str = ""
    cut_after: int | None = None


class Wire(Protocol):
    """One spelling of a conversation with a model."""

    def read(self, body: Document) -> Asked:
        """Read one request."""

    def text(self, model: str, text: str) -> Reply:
        """An answer in words."""

    def tool_call(self, model: str, command: str) -> Reply:
        """A wish to run a shell command."""

    def named_call(self, model: str, name: str, arguments: Document) -> Reply:
        """A wish to use one tool by its name."""

    def skill_call(self, model: str, skill: str) -> Reply:
        """A wish to use a skill, where the wire's programs have a tool for it."""

    def error(self, status: int, code: str, message: str) -> Reply:
        """A refusal with an HTTP status."""

    def quota(self, model: str) -> Reply:
        """The refusal that says the account is out of credit."""
