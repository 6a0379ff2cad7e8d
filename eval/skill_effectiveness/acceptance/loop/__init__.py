"""Closed loop: agent work repeated until files and commands, never an agent's words, say that it is done.

Source: loop.md, section 2.
"""

from __future__ import annotations

from skill_effectiveness.acceptance.loop.blocks import (
    Agent,
    Block,
    BlockResult,
    RunContext,
    agent,
    loop,
    run,
    seq,
)
from skill_effectiveness.acceptance.loop.conditions import (
    Condition,
    Measurement,
    checks_pass,
    file_exists,
    verdict_passed,
)
from skill_effectiveness.acceptance.loop.errors import LoopRefusedError
from skill_effectiveness.acceptance.loop.runner import RunResult, execute
from skill_effectiveness.acceptance.loop.state_view import CommandMeasurement, StateView
from skill_effectiveness.acceptance.loop.words import Outcome

__all__ = [
    "Agent",
    "Block",
    "BlockResult",
    "CommandMeasurement",
    "Condition",
    "LoopRefusedError",
    "Measurement",
    "Outcome",
    "RunContext",
    "RunResult",
    "StateView",
    "agent",
    "checks_pass",
    "execute",
    "file_exists",
    "loop",
    "run",
    "seq",
    "verdict_passed",
]
