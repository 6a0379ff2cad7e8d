"""The Responses wire, as codex speaks it (`POST …/responses`, server-sent events)."""

from __future__ import annotations

import json
from typing import Any

from tests.support.model_wire import Asked, Document, Reply

USAGE: Document = {
    "input_tokens": 1200,
    "input_tokens_details": {"cached_tokens": 200},
    "output_tokens": 34,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 1234,
}
"""What one request costs here; codex prints the sum over the requests of a turn."""


class ResponsesWire:
    """Reads and spells the Responses wire."""

    def read(self, body: Document) -> Asked:
        items = body.get("input", [])
        prompt = ""
        results = 0
        for item in items if isinstance(items, list) else []:
            if str(item.get("type", "")).endswith("_call_output"):
                results += 1
            if item.get("role") == "user":
                parts = item.get("content", [])
                prompt = "".join(part.get("text", "") for part in parts)
        return Asked(
            model=str(body.get("model", "")),
            prompt=prompt,
            streaming=bool(body.get("stream", False)),
            tool_results=results,
        )

    def text(self, model: str, text: str) -> Reply:
        message = {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }
        return self._completed(model, message)

    def tool_call(self, model: str, command: str) -> Reply:
        return self.named_call(model, "exec_command", {"cmd": command})

    def named_call(self, model: str, name: str, arguments: Document) -> Reply:
        call = {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": name,
            "arguments": json.dumps(arguments),
            "status": "completed",
        }
        return self._completed(model, call)

    def skill_call(self, model: str, skill: str) -> Reply:
        # There is no tool for it here: a model that uses a skill reads its file.
        return self.tool_call(model, f"cat {skill}/SKILL.md")

    def error(self, status: int, code: str, message: str) -> Reply:
        return Reply(status, {"error": {"message": message, "type": code, "param": None, "code": code}})

    def quota(self, model: str) -> Reply:
        error = {"code": "insufficient_quota", "message": "You exceeded your current quota."}
        failed = {**self._response(model, "failed", []), "error": error}
        return Reply(
            200,
            failed,
            events=(
                ("response.created", self._created(model)),
                ("response.failed", {"type": "response.failed", "sequence_number": 1, "response": failed}),
            ),
        )

    def _completed(self, model: str, item: dict[str, Any]) -> Reply:
        whole = {**self._response(model, "completed", [item]), "usage": USAGE}
        added = {**item, "status": "in_progress"}
        if item["type"] == "message":
            added["content"] = []
        events: list[tuple[str, Document]] = [
            ("response.created", self._created(model)),
            (
                "response.output_item.added",
                {
                    "type": "response.output_item.added",
                    "sequence_number": 1,
                    "output_index": 0,
                    "item": added,
                },
            ),
            (
                "response.output_item.done",
                {"type": "response.output_item.done", "sequence_number": 2, "output_index": 0, "item": item},
            ),
            ("response.completed", {"type": "response.completed", "sequence_number": 3, "response": whole}),
        ]
        return Reply(200, whole, events=tuple(events))

    def _created(self, model: str) -> Document:
        return {
            "type": "response.created",
            "sequence_number": 0,
            "response": self._response(model, "in_progress", []),
        }

    def _response(self, model: str, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 0,
            "model": model,
            "status": status,
            "output": output,
        }
