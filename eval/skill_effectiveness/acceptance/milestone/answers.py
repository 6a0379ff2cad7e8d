"""What a pass may answer, and when an answer is valid.

Source: milestone.md, section 7, Answer; providers.md P12.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel, Field

from skill_effectiveness.acceptance.milestone.findings import Finding
from skill_effectiveness.acceptance.milestone.words import (
    CLOSED,
    FindingKind,
    Impact,
    PassName,
    Severity,
    Word,
)
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.providers import ReplyError, one_json_object

if TYPE_CHECKING:
    from collections.abc import Collection


class Coverage(BaseModel):
    """What pass A says about one criterion or decision."""

    model_config = CLOSED

    ref: str
    met: bool
    evidence: Annotated[str, Field(max_length=20_000)]


class Answer(BaseModel):
    """The one object that a pass answers."""

    model_config = CLOSED

    verdict: Word
    coverage: tuple[Coverage, ...] = ()
    findings: tuple[Finding, ...]


def _object(**properties: object) -> dict[str, Any]:
    """A JSON Schema object in the strict form that some engines demand: all members, no others."""
    required = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_TEXT: Final = {"type": "string"}
ANSWER_SCHEMA: Final[dict[str, Any]] = _object(
    verdict={"type": "string", "enum": [word.value for word in Word]},
    coverage={"type": "array", "items": _object(ref=_TEXT, met={"type": "boolean"}, evidence=_TEXT)},
    findings={
        "type": "array",
        "items": _object(
            id=_TEXT,
            kind={"type": "string", "enum": [kind.value for kind in FindingKind]},
            severity={"type": "string", "enum": [severity.value for severity in Severity]},
            impact={"anyOf": [{"type": "string", "enum": [each.value for each in Impact]}, {"type": "null"}]},
            file=_TEXT,
            line={"type": "integer"},
            text=_TEXT,
        ),
    },
)
"""The strict schema of an answer, as engines are given it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What an answer is held against.

    Attributes:
        name: the pass.
        refs: the criteria and decisions that pass A has to cover.
        prior_ids: ids of findings that were there before.
        json_fence: whether the engine's answers may stand in one fence.
    """

    name: PassName
    refs: tuple[str, ...]
    prior_ids: Collection[str] = ()
    json_fence: bool = False


ANSWER_BYTES: Final = 65_536
"""Largest answer that is read: rows hold what it says, some of it twice, and a row has a limit of its own."""


def answer_bytes(text: str) -> bytes:
    """The bytes of an answer, whatever half characters a model put into it."""
    return text.encode(errors="surrogatepass")


class AnswerInvalidError(Exception):
    """An answer is not one; the text is the reason, in our words only."""


def read_answer(text: str, asked: Asked) -> Answer:
    """Read the answer of a pass.

    Raises:
        AnswerInvalidError: it is not the asked object, or contradicts itself or what was asked.
    """
    if len(answer_bytes(text)) > ANSWER_BYTES:
        raise AnswerInvalidError("the answer is larger than 64 KiB")
    try:
        answer = validate(Answer, one_json_object(text, allow_json_fence=asked.json_fence))
    except (ReplyError, EvidenceError) as error:
        where = error.faults[0].where if isinstance(error, EvidenceError) else ""
        raise AnswerInvalidError(f"the answer is not the asked JSON object {where}".rstrip()) from None
    _demand(_coverage_fault(answer, asked))
    _demand(_finding_fault(answer, asked))
    if answer.verdict is Word.VERIFIED and any(finding.blocks for finding in answer.findings):
        raise AnswerInvalidError("the answer says verified over a finding that blocks")
    return answer


def _demand(fault: str | None) -> None:
    if fault is not None:
        raise AnswerInvalidError(fault)


def _coverage_fault(answer: Answer, asked: Asked) -> str | None:
    covered = [each.ref for each in answer.coverage]
    if asked.name is PassName.B:
        return "coverage belongs to pass A" if covered else None
    if sorted(covered) != sorted(asked.refs):
        return "the coverage does not hold every criterion and decision exactly once"
    unmet = [each.ref for each in answer.coverage if not each.met]
    bare = [ref for ref in unmet if not any(_names(finding.text, ref) for finding in answer.findings)]
    return f"{bare[0]} is unmet, and no finding names it" if bare else None


def _names(text: str, ref: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9._-]){re.escape(ref)}(?![A-Za-z0-9_-])", text) is not None


def _finding_fault(answer: Answer, asked: Asked) -> str | None:
    ids = [finding.id for finding in answer.findings]
    if len(set(ids)) != len(ids):
        return "two findings have one id"
    strange = [each for each in ids if each not in asked.prior_ids and not each.startswith(f"{asked.name}-")]
    return "a new finding's id does not begin with its pass" if strange else None
