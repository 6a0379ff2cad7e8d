"""Streams of claude as its events are spelled: a session in order, and the ways in which it differs."""

from __future__ import annotations

from typing import Any

from skill_effectiveness.providers.claude_surface import Surface
from tests.support.provider_calls import ANSWER, lines

SESSION = "ac07c37d-56f4-4dad-ab7e-5b73e64bb374"
MODEL = "claude-fake-1"
CONFIG = "/workspace/config"

JUDGING = Surface(MODEL, frozenset({"StructuredOutput"}), "default", CONFIG)
"""What a judge call asks for."""

TOTALS: dict[str, Any] = {
    "inputTokens": 1000,
    "outputTokens": 34,
    "cacheReadInputTokens": 200,
    "cacheCreationInputTokens": 50,
    "thinkingTokens": 5,
    "costUSD": 0.00472,
}


def init(**changed: object) -> dict[str, Any]:
    """The first event of a judge session."""
    return {
        "type": "system",
        "subtype": "init",
        "cwd": "/workspace/wd",
        "session_id": SESSION,
        "tools": ["StructuredOutput"],
        "mcp_servers": [],
        "model": MODEL,
        "permissionMode": "default",
        "slash_commands": [],
        "apiKeySource": "ANTHROPIC_API_KEY",
        "claude_code_version": "2.1.332",
        "output_style": "default",
        "agents": ["claude", "Explore", "general-purpose", "Plan", "statusline-setup"],
        "skills": [],
        "plugins": [{"name": "cc-plugin-privacy", "path": "builtin", "source": "cc-plugin-privacy@builtin"}],
        "capabilities": ["interrupt_receipt_v1"],
        "sandbox_enabled": False,
        "additional_directories": [],
    } | changed


def said(*blocks: dict[str, Any], model: str = MODEL, message: str = "msg_1") -> dict[str, Any]:
    """A message of the model, with counters as they stand before its end."""
    return {
        "type": "assistant",
        "message": {
            "id": message,
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": list(blocks),
            "usage": {"input_tokens": 1000, "cache_read_input_tokens": 200, "output_tokens": 1},
        },
        "parent_tool_use_id": None,
        "session_id": SESSION,
    }


def text(words: str) -> dict[str, Any]:
    """A block of words."""
    return {"type": "text", "text": words}


def used(name: str, **given: object) -> dict[str, Any]:
    """A block in which a tool is used."""
    return {"type": "tool_use", "id": "toolu_1", "name": name, "input": given}


def result(**changed: object) -> dict[str, Any]:
    """The terminal marker of a good judge call."""
    return {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": ANSWER,
        "structured_output": {
            "judgments": [
                {"case": "case-01", "verdict": "tie"},
                {"case": "case-02", "verdict": "B win"},
            ]
        },
        "stop_reason": "tool_use",
        "terminal_reason": "completed",
        "api_error_status": None,
        "permission_denials": [],
        "usage": {"input_tokens": 7, "output_tokens": 7, "server_tool_use": {"web_search_requests": 0}},
        "modelUsage": {MODEL: TOTALS},
        "total_cost_usd": 0.00472,
        "num_turns": 2,
        "session_id": SESSION,
    } | changed


def failed(
    message: str = "API Error: 500 It broke.", status: int | None = 500, **changed: object
) -> dict[str, Any]:
    """The terminal marker of a call that the provider could not serve; its subtype is `success` too."""
    told = {
        "is_error": True,
        "result": message,
        "stop_reason": "stop_sequence",
        "terminal_reason": "api_error",
        "api_error_status": status,
        "modelUsage": {},
        "total_cost_usd": 0,
    }
    whole = result(**(told | changed))
    del whole["structured_output"]
    return whole


GOOD: list[dict[str, Any]] = [init(), said(used("StructuredOutput")), result()]

__all__ = [
    "CONFIG",
    "GOOD",
    "JUDGING",
    "MODEL",
    "SESSION",
    "failed",
    "init",
    "lines",
    "result",
    "said",
    "text",
    "used",
]
