"""prepare and checkpoint over the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skill_effectiveness.trials.models import TrialKey
from tests.support.bridge import Bridge
from tests.support.trials import cursor

if TYPE_CHECKING:
    from pathlib import Path

KEY = TrialKey("task-a", "profile-full", 1)


def test_a_trial_from_preparation_to_completion(tmp_path: Path) -> None:
    bridge = Bridge(tmp_path)
    made = bridge.ask(bridge.prepare("p-1"))
    assert made.exit_code == 0
    assert made.result == {
        "trial_path": "task-a/profile-full/sample-001",
        "mode": "created",
        "state_version": 0,
        "remaining_budget": {
            "tokens": None,
            "wall_time_seconds": None,
            "tool_calls": None,
            "cost_units": None,
        },
        "replayed_receipt": False,
    }
    assert bridge.ask(bridge.prepare("p-1")).replayed
    assert bridge.ask(bridge.prepare("p-2")).result["mode"] == "resume"
    running = bridge.ask(bridge.checkpoint(KEY, "running", "c-1", resume_cursor=cursor()))
    assert running.result == {
        "state_version": 1,
        "evidence_tier": "advisory-paired",
        "coverage_limitations": None,
        "replayed_receipt": False,
    }
    bridge.place.fill(KEY)
    done = bridge.ask(bridge.completion(KEY, "c-2"))
    assert done.result["coverage_limitations"] == []
