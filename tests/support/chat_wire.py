"""The Chat Completions wire (`POST …/chat/completions`), streaming and plain.

Several programs speak it, and their tools have other names: `tool_call` and `skill_call` use the names of
the one that has `bash` and `skill`; `named_call` has whatever a test gives it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.model_wire import Asked, Document, Reply

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE: Document = {
    "prompt_tokens": 1200,
    "completion_tokens": 34,
    "total_tokens": 1234,
    "prompt_tokens_details": {"cached_tokens": 200},
    "completion_tokens_details": {"reasoning_tokens": 5},
}
"""What one request costs here: cached tokens are among the prompt's, reasoning among the completion's."""


class ChatWire:
    """Reads and spells the Chat Completions wire."""

    def read(self, body: Document) -> Asked:
        prompt = ""
        results = 0
        for message in _objects(body.get("messages")):
            words = _words(message.get("content"))
            # What a program says in the user's name is no prompt.
            if message.get("role") == "user" and not words.startswith("<system-reminder>"):
                prompt = words
            results += message.get("role") == "tool"
        return Asked(
            model=str(body.get("model", "")),
            prompt=prompt,
            streaming=bool(body.get("stream", False)),
            tool_results=results,
            tools=tuple(str(tool.get("function", {}).get("name")) for tool in _objects(body.get("tools"))),
        )

    def text(self, model: str, text: str) -> Reply:
        half = len(text) // 2
        deltas = [{"content": text[:half]}, {"content": text[half:]}]
        return _reply(model, {"content": text}, deltas, "stop")

    def tool_call(self, model: str, command: str) -> Reply:
        return self.named_call(model, "bash", {"command": command, "description": "Run a command"})

    def named_call(self, model: str, name: str, arguments: Document) -> Reply:
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": "call_1", "type": "function", "function": function}
        message = {"content": None, "tool_calls": [call]}
        return _reply(model, message, [{"tool_calls": [{"index": 0, **call}]}], "tool_calls")

    def skill_call(self, model: str, skill: str) -> Reply:
        return self.named_call(model, "skill", {"name": skill})

    def error(self, status: int, code: str, message: str) -> Reply:
        return Reply(status, {"error": {"message": message, "type": code, "param": None, "code": code}})

    def quota(self, model: str) -> Reply:
        del model
        return self.error(429, "insufficient_quota", "You exceeded your current quota.")


def _reply(model: str, message: Document, deltas: Sequence[Document], reason: str) -> Reply:
    """A completion, and the same one in pieces: a role, the deltas, the reason, the usage."""
    whole = {
        **_head(model, "chat.completion"),
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}],
        "usage": USAGE,
    }
    pieces = [
        ({"role": "assistant", "content": ""}, None),
        *((delta, None) for delta in deltas),
        ({}, reason),
    ]
    events: list[tuple[str, Document]] = [
        ("", {**_head(model), "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
        for delta, finish in pieces
    ]
    events.append(("", {**_head(model), "choices": [], "usage": USAGE}))
    return Reply(200, whole, events=tuple(events), closing="[DONE]")


def _head(model: str, kind: str = "chat.completion.chunk") -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 0, "model": model}


def _objects(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _words(content: object) -> str:
    """The text of a message, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in _objects(content))
