"""The workflow behind a configured job: the same blocks that the library has. Pure.

Source: loop.md, section 4; L30, L31.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.loop.blocks import Agent, Block, Gate, Loop, Run, Seq
from skill_effectiveness.acceptance.loop.conditions import ChecksPass, VerdictPassed
from skill_effectiveness.acceptance.loop.words import Role

if TYPE_CHECKING:
    from skill_effectiveness.acceptance.loop.blocks import RunContext
    from skill_effectiveness.acceptance.loop.config import AgentKeys, Job

VERDICT_FILE: Final = "verdict.json"


def workflow_of(job: Job) -> Block:
    """Worker, checks, reviewer, repeated until the last of them that there is has decided."""
    worker = Run(_agent(Role.WORKER, job.keys.worker))
    checks = ChecksPass(job.checks)
    if job.reviewer is None:
        return Loop(worker, checks, job.keys.max_attempts)
    reviewer = Run(_agent(Role.REVIEWER, job.reviewer), prompt=_review)
    steps: tuple[Block, ...] = (worker, Gate(checks), reviewer) if job.checks else (worker, reviewer)
    until = VerdictPassed(VERDICT_FILE, job.keys.bind_verdict)
    return Loop(Seq(steps), until, job.keys.max_attempts)


def _agent(role: Role, keys: AgentKeys) -> Agent:
    return Agent(role.value, keys.command, keys.args, pass_env=keys.pass_env)


def _review(ctx: RunContext) -> str:
    return f"Review whether this task is done, completely and correctly:\n\n{ctx.task}"
