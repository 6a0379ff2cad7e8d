"""The study file of `study quick`: a skill, tasks and an agent, everything else as usual (studies.md, head).

What is written is an ordinary study file, so the long way with it comes to the same tables.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from skill_effectiveness.studies.words import SIMULATED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

QUICK_NAME: Final = "quick"
TRIAL_SECONDS: Final = 3_600.0
SIMULATED_SETTINGS: Final = {"base_rate": 0.4, "task_sd": 0.1, "effect": 0.4}
"""What a simulated agent is like where nobody says so; those of the example."""


@dataclass(frozen=True, slots=True)
class QuickOrder:
    """What a person asks for in one line; every path absolute.

    Attributes:
        skill: folder of the skill.
        tasks: folder of the tasks.
        provider: of the tested agent.
        executable: its program; None for a simulated one.
        model: exact.
        placebo: whether a generated placebo is compared as well.
        reviewers: licence file and program of each; None for a simulated one's program.
        samples: of each task and arm.
        tokens, cost_units: what the study may use in all; None is unlimited.
        price: of the model, by kind of token, as a study file states it; empty for none.
        sandbox: whether trials and graders run in bubblewrap.
        audit: whether every access of the agent to a file is recorded.
        read_only: what an agent in a sandbox is shown besides, absolute.
    """

    skill: str
    tasks: str
    provider: str
    executable: str | None
    model: str
    placebo: bool = False
    reviewers: Sequence[tuple[str, str | None]] = ()
    samples: int = 3
    tokens: int | None = None
    cost_units: float | None = None
    price: Mapping[str, str] = field(default_factory=dict)
    sandbox: bool = False
    audit: bool = False
    read_only: Sequence[str] = ()

    @property
    def simulated(self) -> bool:
        """Whether the agent is made of chance."""
        return self.provider == SIMULATED


def quick_study(order: QuickOrder) -> bytes:
    """The study file of an order; the same order gives the same bytes."""
    skill = order.skill.rstrip("/").rpartition("/")[2]
    arms: dict[str, object] = {"off": {}, "full": {"skills": [order.skill]}}
    if order.placebo:
        arms["reference"] = {"placebo": True}
    unlimited = {"wall_time_seconds": None, "tool_calls": None}
    file: dict[str, object] = {
        "schema": "skill-effectiveness.study.v1",
        "name": QUICK_NAME,
        "question": f"Does the skill {skill} change what the agent achieves on these tasks?",
        "registry": "paired-profile",
        "tier": "advisory-paired",
        "scope": "main",
        "driver": {
            "provider": order.provider,
            "executable": order.executable,
            "model": order.model,
            "settings": _settings(order),
        },
        "arms": arms,
        "tasks": order.tasks,
        "samples": order.samples,
        "budgets": {
            "trial": {
                "tokens": None,
                "wall_time_seconds": TRIAL_SECONDS,
                "tool_calls": None,
                "cost_units": None,
            },
            "study": {"tokens": order.tokens, "cost_units": order.cost_units, **unlimited},
        },
        "isolation": {
            "sandbox": "bubblewrap" if order.sandbox else "none",
            "audit": "strace" if order.audit else "none",
            "network": "none" if order.simulated else "provider",
            **({"read_only": list(order.read_only)} if order.read_only else {}),
        },
        "reviewers": [{"licence": licence, "executable": program} for licence, program in order.reviewers],
        "outcome": {"primary": "reward", "secondary": ["preference"] if order.reviewers else []},
        "analysis": {"alpha": 0.05, "sides": "two", "stopping": "fixed"},
    }
    lines = (f"{key}: {_spelt(value)}" for key, value in file.items())
    return ("\n".join(lines) + "\n").encode()


def _settings(order: QuickOrder) -> dict[str, object]:
    if order.simulated:
        return dict(SIMULATED_SETTINGS)
    return {"prices": {order.model: dict(order.price)}} if order.price else {}


def _spelt(value: object) -> str:
    """A value in the flow form of YAML, which JSON is."""
    return json.dumps(value, ensure_ascii=False)
