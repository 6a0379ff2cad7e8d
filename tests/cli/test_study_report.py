"""What a report command prints of results, and how it ends."""

from __future__ import annotations

import json

import pytest

from skill_effectiveness.cli.study_report import ReportExit, exit_of, tell_report
from skill_effectiveness.studies.analysis.conclusions import Word
from skill_effectiveness.studies.tables import Tables
from tests.support.study_results import ADVISORY, full_study, results_of, study, study_plan
from tests.support.study_tables import from_thirds, trials

EIGHT = from_thirds((1, 0, 2, 1, -1, 3, 1, 1))
FAILED = ADVISORY.model_copy(
    update={"gate_status": "fail", "verdict_tier": None, "failures": ("blinding_leak",)}
)


def test_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """S1 S42 A16: the eight tasks of the known answer, and that no content effect is among them."""
    code = tell_report(study(EIGHT).results, "report/results.json", required=None, as_json=False)
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        "gate_status=not_evaluated", "verdict_tier=unknown", "conclusion=inconclusive", "effect=0.3333",
        "interval=0.0000..0.6667", "p=0.0938", "tasks=8", "to_decide_tasks=17", "result=report/results.json",
    ]  # fmt: skip
    said = captured.err.splitlines()
    assert said[0] == (
        "With the treatment the mean reward differs by +0.33 over 8 tasks, 95 % interval 0.00 to +0.67, "
        "p = 0.094: inconclusive."
    )
    assert said[1] == (
        "It took 48 trial attempts, 57,600 tokens and 12.00 cost units; exposure checks and the model check "
        "are not counted."
    )
    assert said[2] == (
        "About 17 tasks (102 trials, 122,400 tokens, 25.50 cost units) would decide it, if effect and spread "
        "stay as seen."
    )
    assert said[3].startswith("ccl_specific_content_unanswerable: whether the content of the skills matters")
    assert len(said) == 4
    assert code is ReportExit.NOT_EVALUATED


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    """S1: one object with the same keys, null for what is unknown."""
    tell_report(study({"t1": {"off": [1.0], "full": [None]}}).results, "r", required=None, as_json=True)
    assert json.loads(capsys.readouterr().out) == {
        "gate_status": "not_evaluated", "verdict_tier": None, "conclusion": "underpowered", "effect": None,
        "interval": None, "p": None, "tasks": 0, "to_decide_tasks": None, "result": "r",
    }  # fmt: skip


def test_a_small_p_is_never_printed_as_zero(capsys: pytest.CaptureFixture[str]) -> None:
    """F51: 40 tasks all won: one of 100,000 draws."""
    tell_report(study(from_thirds([3, 2] * 20)).results, "r", required=None, as_json=False)
    assert "\np=1e-05\n" in capsys.readouterr().out


def test_a_synthetic_study_is_said_to_be_one(capsys: pytest.CaptureFixture[str]) -> None:
    """S2 S40: exit 3, and the estimate is printed all the same."""
    code = tell_report(full_study(synthetic=True).results, "r", required=None, as_json=False)
    captured = capsys.readouterr()
    assert "verdict_tier=synthetic_not_a_tier" in captured.out
    assert "effect=0.4444" in captured.out
    assert "evidence for nothing" in captured.err
    assert code is ReportExit.NOT_EVALUATED


@pytest.mark.parametrize(
    ("verdict", "required", "code"),
    [
        (ADVISORY, None, ReportExit.DONE),
        (ADVISORY, Word.INCONCLUSIVE, ReportExit.DONE),
        (ADVISORY, Word.IMPROVES, ReportExit.NOT_PASSED),
        (FAILED, None, ReportExit.NOT_PASSED),
        (FAILED, Word.INCONCLUSIVE, ReportExit.NOT_PASSED),
    ],
)
def test_exits(verdict: object, required: Word | None, code: ReportExit) -> None:
    """S2 S3: a word that was required and did not come; a conclusion alone sets no exit."""
    results = results_of(study_plan(EIGHT), Tables(trials(EIGHT)), verdict)  # type: ignore[arg-type]
    assert exit_of(results, required) is code


def test_a_required_word_comes_before_not_evaluated() -> None:
    """S3: a study without a reviewer can be required to come to a word."""
    results = study(EIGHT).results
    assert exit_of(results, Word.HARMS) is ReportExit.NOT_PASSED
    assert exit_of(results, Word.INCONCLUSIVE) is ReportExit.NOT_EVALUATED
