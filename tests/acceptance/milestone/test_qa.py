"""The QA receipt, judged."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from skill_effectiveness.acceptance.milestone.identity import UNAVAILABLE, Identity
from skill_effectiveness.acceptance.milestone.qa import (
    CaptureEvidence,
    PassEvidence,
    QaCapture,
    QaEvidence,
    QaPass,
    QaSynthesis,
    ReceiptEvidence,
    artifact_place,
    judge_receipt,
    passes_fault,
)
from skill_effectiveness.acceptance.milestone.words import PassName, QaWord

PINNED = Identity.at("a" * 40, "b" * 40, dirty=False)
CAPTURE = QaCapture.model_validate(
    {"captures": ({"path": "x", "kind": "k", "shows": "s"},), "scenarios": (), "teardown": "t"}
)


def finding(severity: str) -> dict[str, str]:
    return {"severity": severity, "text": "x"}


def qa_pass(name: str, verdict: str = "PASS", *severities: str, **members: Any) -> PassEvidence:  # noqa: ANN401 - members
    value = {"pass": name, "verdict": verdict, "findings": [finding(each) for each in severities]}
    answer = QaPass.model_validate_json(json.dumps(value))
    usual: dict[str, Any] = {"call": f"p-{name}", "role": "explorer", "answer": answer}
    return PassEvidence(**(usual | members))


def receipt(verdict: str = "PASS", *severities: str, resume_of: str = "c") -> ReceiptEvidence:
    value = {"verdict": verdict, "findings": [finding(each) for each in severities]}
    answer = QaSynthesis.model_validate_json(json.dumps(value))
    return ReceiptEvidence("r", resume_of, answer)


def evidence(**members: Any) -> QaEvidence:  # noqa: ANN401 - members of the evidence
    usual: dict[str, Any] = {
        "pinned": PINNED,
        "capture": CaptureEvidence("c", CAPTURE, PINNED),
        "passes": {PassName.A: qa_pass("A"), PassName.B: qa_pass("B")},
        "receipt": receipt(),
    }
    return QaEvidence(**(usual | members))


def judged(**members: Any) -> tuple[str, str]:  # noqa: ANN401 - members of the evidence
    found = judge_receipt(evidence(**members))
    return found.word.value, found.reason


def with_capture(**members: Any) -> tuple[str, str]:  # noqa: ANN401 - members of the capture
    return judged(capture=replace(CaptureEvidence("c", CAPTURE, PINNED), **members))


def test_a_receipt_that_passes() -> None:
    assert judged() == ("PASS", "")


def test_the_capture_did_not_complete() -> None:
    """M17: nothing is concluded."""
    assert with_capture(answer=None) == ("INCONCLUSIVE", "capture_incomplete")


def test_no_capture() -> None:
    """M18: nothing was shown."""
    empty = CAPTURE.model_copy(update={"captures": ()})
    assert with_capture(answer=empty) == ("INCONCLUSIVE", "capture_empty")


@pytest.mark.parametrize(
    "source", [Identity.at("a" * 40, "b" * 40, dirty=True), Identity.at("c" * 40, "b" * 40, dirty=False)]
)
def test_the_source_was_modified(source: Identity) -> None:
    """M19: the tree it ended in is not the clean head."""
    assert with_capture(source=source) == ("INCONCLUSIVE", "capture_source_modified")


@pytest.mark.parametrize("source", [None, UNAVAILABLE])
def test_the_source_is_unknown(source: Identity | None) -> None:
    """M20: none was recorded."""
    assert with_capture(source=source) == ("INCONCLUSIVE", "capture_source_unknown")


def test_a_path_that_leads_nowhere() -> None:
    """M21: also where the worktree itself is gone."""
    assert with_capture(missing=("x",)) == ("INCONCLUSIVE", "capture_root_unknown")
    assert with_capture(root=False) == ("INCONCLUSIVE", "capture_root_unknown")


def test_a_path_that_leads_outside() -> None:
    """M22: whatever else is wrong with it."""
    assert with_capture(outside=("../x",), missing=("y",)) == ("INCONCLUSIVE", "capture_path_outside")


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("a/b", "a/b"),
        ("a/../b", "b"),
        ("../b", None),
        ("a/../../b", None),
        ("/etc/passwd", None),
        ("..", None),
    ],
)
def test_where_a_path_leads(path: str, place: str | None) -> None:
    """M22: by its text alone."""
    assert artifact_place(path) == place


@pytest.mark.parametrize(
    "passes", [{PassName.A: qa_pass("A")}, {PassName.A: qa_pass("A"), PassName.B: qa_pass("B", answer=None)}]
)
def test_a_pass_is_unfinished(passes: dict[PassName, PassEvidence]) -> None:
    """M23: the fault is there before any synthesis."""
    assert passes_fault(evidence(passes=passes, receipt=None)) == "pass_incomplete"
    assert judged(passes=passes) == ("INCONCLUSIVE", "pass_incomplete")


@pytest.mark.parametrize("other", [qa_pass("B", role="executor"), qa_pass("A")])
def test_a_pass_of_another_kind(other: PassEvidence) -> None:
    """M24: it was no explorer call, or answers for the other pass."""
    assert judged(passes={PassName.A: qa_pass("A"), PassName.B: other}) == ("INCONCLUSIVE", "pass_foreign")


@pytest.mark.parametrize(
    "turn",
    [None, ReceiptEvidence("r", "c", None), receipt(resume_of="another"), ReceiptEvidence("r", None, None)],
)
def test_a_receipt_turn_that_does_not_count(turn: ReceiptEvidence | None) -> None:
    """M25: unfinished, of another form, or of another call."""
    assert judged(receipt=turn) == ("INCONCLUSIVE", "receipt_invalid")


@pytest.mark.parametrize("severity", ["P0", "P1"])
def test_pass_over_a_grave_finding(severity: str) -> None:
    """M26: is not PASS, wherever the finding is."""
    assert judged(receipt=receipt("PASS", severity)) == ("INCONCLUSIVE", "receipt_invalid")
    passes = {PassName.A: qa_pass("A", "PASS", severity), PassName.B: qa_pass("B")}
    assert judged(passes=passes) == ("INCONCLUSIVE", "receipt_invalid")
    assert judged(receipt=receipt("PASS", "P2")) == ("PASS", "")


def test_the_worst_word_wins() -> None:
    """M27: of the receipt and both passes."""
    passes = {PassName.A: qa_pass("A", "REVISE"), PassName.B: qa_pass("B")}
    assert judged(passes=passes) == ("REVISE", "")
    assert judged(passes=passes, receipt=receipt("FAIL", "P0")) == ("FAIL", "")
    passes[PassName.B] = qa_pass("B", "INCONCLUSIVE")
    assert judged(passes=passes)[0] == QaWord.INCONCLUSIVE


def test_without_passes() -> None:
    """M27: the receipt's own word stands."""
    assert judged(passes=None) == ("PASS", "")
    assert judged(passes=None, receipt=receipt("REVISE")) == ("REVISE", "")
