"""The page for authors of controllers says what the door does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skill_effectiveness.calibration.errors import CalibrationCode, Status
from skill_effectiveness.calibration.messages import Request, Response
from skill_effectiveness.evidence.documents import parse
from skill_effectiveness.evidence.strict import Profile
from tests.support.examinations import MANIFEST

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "calibration-door.md").read_text(encoding="utf-8")
EXAMPLES = [
    block.replace("sha256:…", MANIFEST).encode()
    for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
]


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_its_examples_are_requests_and_responses(example: bytes) -> None:
    """R6: one of each action, and what comes back."""
    model = Request if b".request.v1" in example else Response
    assert parse(model, example, Profile.WIRE) is not None


def test_there_is_an_example_of_each_action() -> None:
    requests = [example for example in EXAMPLES if b".request.v1" in example]
    assert [re.findall(rb'"action":"(\w+)"', example) for example in requests] == [
        [b"probe"],
        [b"sample"],
        [b"finalize"],
    ]


def test_its_codes_are_all_there_are_with_their_exits() -> None:
    """R6: each of the 34 once."""
    told = {}
    for words, exit_code in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (\d) \| .+ \|$", PAGE, re.MULTILINE):
        for word in re.findall(r"`(\w+)`", words):
            assert word not in told
            told[word] = int(exit_code)
    statuses = {status.value for status in Status}
    assert {word: code for word, code in told.items() if word not in statuses} == {
        code.value: code.status.exit_code for code in CalibrationCode
    }
