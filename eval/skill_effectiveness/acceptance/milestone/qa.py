"""The QA receipt: what the calls answered, judged.

Source: milestone.md, section 6.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel, Field

from skill_effectiveness.acceptance.milestone.identity import Comparison, Identity, compare
from skill_effectiveness.acceptance.milestone.words import CLOSED, PassName, QaWord, Role, Severity

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

Text = Annotated[str, Field(max_length=20_000)]


class Capture(BaseModel):
    """One artifact of a capture."""

    model_config = CLOSED

    path: Annotated[str, Field(min_length=1, max_length=4096)]
    kind: Text
    shows: Text


class Scenario(BaseModel):
    """One scenario that was driven."""

    model_config = CLOSED

    id: Text
    result: Text


class QaCapture(BaseModel):
    """QA_CAPTURE: what the capture call answers."""

    model_config = CLOSED

    captures: tuple[Capture, ...]
    scenarios: tuple[Scenario, ...]
    teardown: Text


class QaFinding(BaseModel):
    """What a QA verdict rests on."""

    model_config = CLOSED

    severity: Severity
    text: Text


class QaPass(BaseModel):
    """QA_PASS: what one of the two passes answers; named by the pass itself."""

    model_config = CLOSED

    name: PassName = Field(alias="pass")
    verdict: QaWord
    findings: tuple[QaFinding, ...]


class QaSynthesis(BaseModel):
    """QA_RECEIPT: what the receipt turn answers."""

    model_config = CLOSED

    verdict: QaWord
    findings: tuple[QaFinding, ...]


def _strict(**properties: object) -> dict[str, Any]:
    required = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_STRING: Final = {"type": "string"}
_FINDINGS: Final = {
    "type": "array",
    "items": _strict(
        severity={"type": "string", "enum": [severity.value for severity in Severity]}, text=_STRING
    ),
}
_VERDICT: Final = {"type": "string", "enum": [word.value for word in QaWord]}
CAPTURE_SCHEMA: Final = _strict(
    captures={"type": "array", "items": _strict(path=_STRING, kind=_STRING, shows=_STRING)},
    scenarios={"type": "array", "items": _strict(id=_STRING, result=_STRING)},
    teardown=_STRING,
)
PASS_SCHEMA: Final = _strict(
    **{"pass": {"type": "string", "enum": [name.value for name in PassName]}},
    verdict=_VERDICT,
    findings=_FINDINGS,
)
RECEIPT_SCHEMA: Final = _strict(verdict=_VERDICT, findings=_FINDINGS)

CAPTURE_INCOMPLETE: Final = "capture_incomplete"
CAPTURE_EMPTY: Final = "capture_empty"
SOURCE_MODIFIED: Final = "capture_source_modified"
SOURCE_UNKNOWN: Final = "capture_source_unknown"
ROOT_UNKNOWN: Final = "capture_root_unknown"
PATH_OUTSIDE: Final = "capture_path_outside"
PASS_INCOMPLETE: Final = "pass_incomplete"  # noqa: S105 - a word, no password
PASS_FOREIGN: Final = "pass_foreign"  # noqa: S105 - likewise
RECEIPT_INVALID: Final = "receipt_invalid"


@dataclass(frozen=True, slots=True)
class CaptureEvidence:
    """The capture call.

    Attributes:
        call: its id.
        answer: `None` unless it completed with an answer of the form.
        source: the identity that it ended in; `None`: none was recorded.
        root: whether the worktree that it ran in is there.
        missing: artifact paths that lead nowhere there.
        outside: artifact paths that lead out of it.
    """

    call: str
    answer: QaCapture | None
    source: Identity | None
    root: bool = True
    missing: Collection[str] = ()
    outside: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class PassEvidence:
    """One of the two passes: its role, and its answer if it completed with one of the form."""

    call: str
    role: str
    answer: QaPass | None


@dataclass(frozen=True, slots=True)
class ReceiptEvidence:
    """The receipt turn: the call it continues, its forks resolved, and its answer."""

    call: str
    resume_of: str | None
    answer: QaSynthesis | None


@dataclass(frozen=True, slots=True)
class QaEvidence:
    """Everything that a receipt is drawn from.

    Attributes:
        pinned: the clean identity of the head.
        capture: the capture call.
        passes: by what they were asked; `None` where the grade needs none.
        receipt: the receipt turn; `None`: it was not asked for, or not yet.
    """

    pinned: Identity
    capture: CaptureEvidence
    passes: Mapping[PassName, PassEvidence] | None = None
    receipt: ReceiptEvidence | None = None


@dataclass(frozen=True, slots=True)
class QaReceipt:
    """The receipt: its word, and why it is INCONCLUSIVE."""

    word: QaWord
    reason: str = ""


def capture_fault(evidence: QaEvidence) -> str | None:
    """Why a capture concludes nothing."""
    capture = evidence.capture
    if capture.answer is None:
        return CAPTURE_INCOMPLETE
    if not capture.answer.captures:
        return CAPTURE_EMPTY
    if capture.source is None or compare(evidence.pinned, capture.source) is Comparison.UNAVAILABLE:
        return SOURCE_UNKNOWN
    if compare(evidence.pinned, capture.source) is Comparison.DIFFERENT:
        return SOURCE_MODIFIED
    if capture.outside:
        return PATH_OUTSIDE
    return ROOT_UNKNOWN if not capture.root or capture.missing else None


def passes_fault(evidence: QaEvidence) -> str | None:
    """Why the two passes conclude nothing; a synthesis is then not asked for."""
    if evidence.passes is None:
        return None
    for name in PassName:
        each = evidence.passes.get(name)
        if each is None or each.answer is None:
            return PASS_INCOMPLETE
        if each.role != Role.EXPLORER or each.answer.name is not name:
            return PASS_FOREIGN
    return None


def judge_receipt(evidence: QaEvidence) -> QaReceipt:
    """Judge the whole; the worst verdict that contributes sets the word."""
    fault = capture_fault(evidence) or passes_fault(evidence)
    if fault is not None:
        return QaReceipt(QaWord.INCONCLUSIVE, fault)
    receipt = evidence.receipt
    if receipt is None or receipt.answer is None or receipt.resume_of != evidence.capture.call:
        return QaReceipt(QaWord.INCONCLUSIVE, RECEIPT_INVALID)
    contributions = [receipt.answer.verdict]
    findings = list(receipt.answer.findings)
    for each in (evidence.passes or {}).values():
        if each.answer is not None:
            contributions.append(each.answer.verdict)
            findings += each.answer.findings
    word = worst_word(contributions)
    if word is QaWord.PASS and any(_grave(finding) for finding in findings):
        return QaReceipt(QaWord.INCONCLUSIVE, RECEIPT_INVALID)
    return QaReceipt(word)


def worst_word(words: Sequence[QaWord]) -> QaWord:
    """The worst of several verdicts."""
    order = list(QaWord)
    return max(words, key=order.index)


def _grave(finding: QaFinding) -> bool:
    return finding.severity in {Severity.P0, Severity.P1}


def artifact_place(path: str) -> str | None:
    """Where a relative artifact path lies in the capture's worktree; `None` when it leads outside."""
    if path.startswith("/"):
        return None
    plain = posixpath.normpath(path)
    return None if plain == ".." or plain.startswith("../") else plain
