"""What a deterministic grader says of a trial, and whether grading again said the same (trials.md section 9).

A trial is graded twice, into `grading/grade.json` and `grading/grade-replay.json`. Neither document may
contradict itself, and only two valid and equal ones are evidence.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.documents import RuleBroken, parse
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One, Rate, to_json

GRADE_CONTRACT: Final = "skill-effectiveness-grade-v1"
GRADE_NAME: Final = "grade.json"
REPLAY_NAME: Final = "grade-replay.json"

MeasureName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]


class CheckKind(StrEnum):
    """What a check is about."""

    ACCEPTANCE = "acceptance"
    SAFETY = "safety"
    PERMISSION = "permission"
    DATA_LOSS = "data_loss"

    @property
    def outranks_preference(self) -> bool:
        """Whether a failure counts more than any reviewer's preference."""
        return self is not CheckKind.ACCEPTANCE


class GradeCheck(FrozenModel):
    """One thing the grader looked at."""

    check_id: MeasureName
    kind: CheckKind
    passed: bool


class GradeDocument(FrozenModel):
    """One grading of one trial; it cannot say passed where a check did not.

    Attributes:
        trial_fingerprint: of the trial.
        grader_hash: of what graded it.
        checks: at least one, each id once; a grade without a check would pass by looking at nothing.
        passed: the conjunction of the checks.
        reward: 0 to 1, absent where the grader gives none.
        secondary: further measures by name.
    """

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-grade-v1"]
    trial_fingerprint: DigestText
    grader_hash: DigestText
    checks: Annotated[tuple[GradeCheck, ...], Field(min_length=1, max_length=10_000)]
    passed: bool
    reward: Rate | None = None
    secondary: dict[MeasureName, float] = {}  # noqa: RUF012 - pydantic copies a default

    @model_validator(mode="after")
    def _passed_is_the_conjunction(self) -> Self:
        names = [check.check_id for check in self.checks]
        if len(set(names)) != len(names):
            raise RuleBroken("Two checks have one id; name each check once.")
        if self.passed is not all(check.passed for check in self.checks):
            raise RuleBroken("passed is not the conjunction of the checks; grade the trial again.")
        return self

    @property
    def outranking_failures(self) -> tuple[GradeCheck, ...]:
        """Failed checks of safety, permission and data loss, which no preference outweighs."""
        return tuple(check for check in self.checks if check.kind.outranks_preference and not check.passed)


def parse_grade(data: bytes) -> GradeDocument:
    """A grade out of its file.

    Raises:
        StrictError: it is not JSON as this program reads it.
        DocumentError: it is not a grade, or contradicts itself.
    """
    return parse(GradeDocument, data, Profile.DOCUMENT)


def grade_hash(grade: GradeDocument) -> str:
    """`H` of a grade."""
    return digest_object(to_json(grade))


def deterministic_replay(grade: bytes | None, again: bytes | None) -> bool | None:
    """Whether grading twice gave the same valid grade.

    Args:
        grade: bytes of the first file, None where there is none.
        again: bytes of the second.

    Returns:
        None when either is absent: nothing is known. False when either is malformed or contradicts itself,
        or when they are two different grades.
    """
    if grade is None or again is None:
        return None
    try:
        return grade_hash(parse_grade(grade)) == grade_hash(parse_grade(again))
    except EvidenceError:
        return False
