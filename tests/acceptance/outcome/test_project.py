"""The public form of every result."""

from __future__ import annotations

import json

import pytest

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


@pytest.mark.parametrize(
    ("named", "told"),
    [
        (["false_green_mokced_seam"], "false_green_mokced_seam"),
        (["the log: key 123", "false_green_round_up"], "unnamed,false_green_round_up"),
        ([{"prompt": "x"}, "a,b", "false_green_A:b"], "unnamed"),
        ("/home/somebody", "unnamed"),
    ],
)
def test_a_class_that_is_no_name(named: object, told: str) -> None:
    """O29 O64: fails the claim, and what stands in its place may be anything, so nobody is shown it."""
    assert shown(verification__false_green_classes=named) == {
        "state": "not_accepted",
        "type": "failed",
        "reasons": [f"false_green:{told}"],
    }
