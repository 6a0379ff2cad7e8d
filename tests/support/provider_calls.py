"""What tests of providers share: surroundings of their own, one question, and the stream of a good answer."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import psutil

from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.providers import JudgeCall

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.providers import CallOutcome

SCHEMA = {
    "type": "object",
    "properties": {
        "judgments": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "case": {"type": "string", "enum": ["case-01", "case-02"]},
                    "verdict": {"type": "string", "enum": ["A win", "B win", "tie"]},
                },
                "required": ["case", "verdict"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["judgments"],
    "additionalProperties": False,
}

ANSWER = '{"judgments":[{"case":"case-01","verdict":"tie"},{"case":"case-02","verdict":"B win"}]}'


def same_answer(prompt: str) -> str:
    """A model that says the same whatever it is asked."""
    del prompt
    return ANSWER


THREAD: dict[str, object] = {"type": "thread.started", "thread_id": "01a22c67-4f17-7e10-9157-503a84adda3b"}
TURN: dict[str, object] = {"type": "turn.started"}
DONE: dict[str, object] = {
    "type": "turn.completed",
    "usage": {
        "input_tokens": 1200,
        "cached_input_tokens": 200,
        "cache_write_input_tokens": 0,
        "output_tokens": 34,
        "reasoning_output_tokens": 5,
    },
}


def message(text: str = ANSWER) -> dict[str, object]:
    """A finished message of codex."""
    return {"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": text}}


GOOD_STREAM: list[dict[str, object]] = [THREAD, TURN, message(), DONE]


def lines(*documents: object) -> list[bytes]:
    """Documents as the lines of a stream."""
    return [json.dumps(document).encode() for document in documents]


def surroundings(tmp_path: Path, **environ: str) -> Surroundings:
    """The real ones, except that the environment is small and TMPDIR lies below `tmp_path`."""
    temporary = tmp_path / "temporary"
    temporary.mkdir(mode=0o700, exist_ok=True)
    base = {"PATH": "/usr/bin:/bin", "TMPDIR": str(temporary), "HOME": str(tmp_path / "nobody")}
    return replace(Surroundings.real(), environ=base | environ)


def question(
    prompt: str = "Which is better?", *, model: str = "fake-model", seconds: float = 20
) -> JudgeCall:
    """A judge call."""
    return JudgeCall(prompt, SCHEMA, model, seconds)


def left_behind(around: Surroundings) -> list[str]:
    """What lies in the temporary folder of these surroundings."""
    return os.listdir(around.environ["TMPDIR"])  # noqa: PTH208 - names are all that is asked for


def codes(outcome: CallOutcome) -> list[str]:
    """The codes of its warnings."""
    return [warning.code.value for warning in outcome.warnings]


def gone(pid: int) -> bool:
    """Whether a process has ended."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
