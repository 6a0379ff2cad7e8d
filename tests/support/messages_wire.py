"""The Messages wire, as claude speaks it (`POST …/messages`, server-sent events)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from tests.support.model_wire import Asked, Document, Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.model_wire import Wire

USAGE: Document = {
    "input_tokens": 1000,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 200,
    "output_tokens": 34,
}
"""What one request costs here; cached tokens are counted apart from the others on this wire."""

ANSWER_TOOL = "StructuredOutput"
"""The tool by which an answer of a demanded form is given."""

NUMBERS = count(1)


@dataclass(frozen=True, slots=True)
class Formed:
    """The model answers in the demanded form where one is demanded, in words elsewhere."""

    player: Callable[[str], str]

    def answer(self, wire: Wire, asked: Asked) -> Reply:
        text = self.player(asked.prompt)
        if ANSWER_TOOL in asked.tools:
            return wire.named_call(asked.model, ANSWER_TOOL, json.loads(text))
        return wire.text(asked.model, text)


class MessagesWire:
    """Reads and spells the Messages wire."""

    def read(self, body: Document) -> Asked:
        messages = body.get("messages", [])
        blocks = [block for message in messages for block in _blocks(message)]
        said = [block for message in messages if message.get("role") == "user" for block in _blocks(message)]
        return Asked(
            model=str(body.get("model", "")),
            prompt=next((str(block["text"]) for block in reversed(said) if block.get("type") == "text"), ""),
            streaming=bool(body.get("stream", False)),
            tool_results=sum(block.get("type") == "tool_result" for block in blocks),
            tools=tuple(str(tool.get("name")) for tool in body.get("tools", [])),
        )

    def text(self, model: str, text: str) -> Reply:
        return self._message(model, {"type": "text", "text": text}, "end_turn")

    def tool_call(self, model: str, command: str) -> Reply:
        return self.named_call(model, "Bash", {"command": command, "description": "Run a command"})

    def skill_call(self, model: str, skill: str) -> Reply:
        return self.named_call(model, "Skill", {"skill": skill})

    def named_call(self, model: str, name: str, arguments: Document) -> Reply:
        block = {"type": "tool_use", "id": f"toolu_{next(NUMBERS)}", "name": name, "input": arguments}
        return self._message(model, block, "tool_use")

    def refusal(self, model: str) -> Reply:
        """The model declines, in the wire's own word for it."""
        return self._message(model, {"type": "text", "text": ""}, "refusal")

    def error(self, status: int, code: str, message: str) -> Reply:
        return Reply(
            status, {"type": "error", "error": {"type": code, "message": message}, "request_id": "req_1"}
        )

    def quota(self, model: str) -> Reply:
        del model
        sentence = (
            "Your credit balance is too low to access the Anthropic API. "
            "Please go to Plans & Billing to upgrade or purchase credits."
        )
        return self.error(400, "invalid_request_error", sentence)

    def _message(self, model: str, block: dict[str, Any], stop_reason: str) -> Reply:
        whole = {
            "id": f"msg_{next(NUMBERS)}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [block],
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": USAGE,
        }
        return Reply(200, whole, events=tuple(_events(whole, block, stop_reason)))


def _blocks(message: Document) -> list[dict[str, Any]]:
    content = message.get("content", [])
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _events(whole: Document, block: Document, stop_reason: str) -> Iterator[tuple[str, Document]]:
    # As on the real wire: the beginning tells the input, the end the output, and a block grows.
    begun = {**whole, "content": [], "stop_reason": None, "usage": {**USAGE, "output_tokens": 1}}
    empty: Document
    if block["type"] == "text":
        empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        written = json.dumps(block["input"])
        empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": written}
    yield "message_start", {"type": "message_start", "message": begun}
    yield (
        "content_block_start",
        {"type": "content_block_start", "index": 0, "content_block": empty},
    )
    yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    yield (
        "message_delta",
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason, "stop_sequence": None},
            "usage": {"output_tokens": USAGE["output_tokens"]},
        },
    )
    yield "message_stop", {"type": "message_stop"}
