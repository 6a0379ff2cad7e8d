"""Models that answer examinations: a sound one, which knows the bank, and one that errs."""

from __future__ import annotations

import json
from pathlib import Path

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
MIRRORED = {"A win": "B win", "B win": "A win", "tie": "tie"}


def bank_truth() -> dict[tuple[str, str], str]:
    """Both texts of a case, as shown, to the verdict that is right for that showing."""
    cases = json.loads((FIXTURES / "reviewer-calibration-cases.json").read_text())["cases"]
    answers = json.loads((FIXTURES / "reviewer-calibration-known-answers.json").read_text())["known_answers"]
    truth = {}
    for case, answer in zip(cases, answers, strict=True):
        verdict = answer["expected_verdict"]
        truth[case["candidate_a"], case["candidate_b"]] = verdict
        truth[case["candidate_b"], case["candidate_a"]] = MIRRORED[verdict]
    return truth


TRUTH = bank_truth()


def shown_cases(prompt: str) -> list[dict[str, str]]:
    """The cases as a model finds them in the prompt: the last line that is a JSON object with cases."""
    for line in reversed(prompt.splitlines()):
        if line.startswith("{"):
            found: list[dict[str, str]] = json.loads(line)["cases"]
            return found
    raise AssertionError("the prompt holds no cases")


def sound(prompt: str) -> str:
    """A model that reads: every verdict is right."""
    judged = [{"case": case["case"], "verdict": TRUTH[case["A"], case["B"]]} for case in shown_cases(prompt)]
    return json.dumps({"judgments": judged})


def erring(prompt: str) -> str:
    """A model that takes whatever stands first."""
    return json.dumps({"judgments": [{"case": c["case"], "verdict": "A win"} for c in shown_cases(prompt)]})
