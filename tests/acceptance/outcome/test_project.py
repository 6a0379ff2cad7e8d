"""The public form of every result."""

from __future__ import annotations

import json

from skill_effectiveness.acceptance.outcome.claim import read_claim
from skill_effectiveness.acceptance.outcome.evaluate import evaluate
from skill_effectiveness.acceptance.outcome.project import project
from tests.support.outcomes import CLAIM, claim


def shown(**changes: object) -> object:
    return project(evaluate(read_claim(json.dumps(claim(**changes)).encode())))


def test_each_result() -> None:
    """O1 O12 O13: nothing but state, type, typed reasons, criteria and public receipts."""
    assert shown(actor="human") == {"state": "not_applicable", "exemption": "human_only_work"}
    assert shown(agents_enabled=False) == {
        "state": "not_applicable",
        "exemption": "agents_disabled_repository",
    }
    assert shown(evidence=CLAIM["evidence"][:1]) == {
        "state": "not_accepted",
        "type": "incomplete",
        "reasons": ["unevidenced_criterion:private thing"],
    }
    assert shown(attempt__repository="x/y") == {
        "state": "not_accepted",
        "type": "unauthorized",
        "reasons": ["attempt_not_bound_to_issue"],
    }
    assert shown(verification__terminal_result="failed") == {
        "state": "not_accepted",
        "type": "failed",
        "reasons": ["verifier_failed"],
    }
