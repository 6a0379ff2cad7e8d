"""What a grader's reward files say, every form of them (studies.md section 1, "Reward").

A reward is a number from 0 to 1. A number outside that is `grader_invalid`; whatever is no number, or not one
number, is `grader_failed`; neither is 0. Exit status and output of the grader never count.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.studies.words import GradeState
from skill_effectiveness.trials.grades import (
    GRADE_CONTRACT,
    CheckKind,
    GradeCheck,
    GradeDocument,
    grade_hash,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.evidence.strict import JsonValue

COUNTS: Final = "reward"
"""The member of an object that counts."""

TESTS_CHECK: Final = "tests"
MOST_MEASURES: Final = 1_000
_MEASURE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_OUTRANKING: Final = MappingProxyType(
    {str(kind): kind for kind in CheckKind if kind is not CheckKind.ACCEPTANCE}
)


@dataclass(frozen=True, slots=True)
class Reward:
    """What one run of a grader came to.

    Attributes:
        state: `valid`, `grader_invalid` or `grader_failed`.
        reward: 0 to 1 when valid, else None.
        secondary: further measures by name; empty unless valid.
    """

    state: GradeState
    reward: float | None = None
    secondary: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))


FAILED: Final = Reward(GradeState.GRADER_FAILED)
INVALID: Final = Reward(GradeState.GRADER_INVALID)


def read_reward(json: bytes | None, text: bytes | None) -> Reward:
    """The reward of the two files that a grader may write.

    Args:
        json: bytes of `reward.json`; None where there is none.
        text: bytes of `reward.txt`; likewise.
    """
    said = _of_json(json) if json is not None else None
    plain = _of_text(text) if text is not None else None
    if said is None or plain is None:
        return said or plain or FAILED
    return said if (said.state, said.reward) == (plain.state, plain.reward) else FAILED


def _of_json(data: bytes) -> Reward:
    value = _read(data)
    if not isinstance(value, dict):
        return _of_number(value)
    numbers = {name: _number(member) for name, member in value.items()}
    counts = COUNTS if COUNTS in numbers or len(numbers) != 1 else next(iter(numbers))
    secondary = {name: number for name, number in numbers.items() if name != counts}
    if counts not in numbers or len(numbers) > MOST_MEASURES:
        return FAILED
    if any(number is None or _MEASURE.fullmatch(name) is None for name, number in secondary.items()):
        return FAILED
    found = _of_number(value[counts])
    if found.state is not GradeState.VALID:
        return found
    held = {name: number for name, number in sorted(secondary.items()) if number is not None}
    return Reward(GradeState.VALID, found.reward, MappingProxyType(held))


def _of_text(data: bytes) -> Reward:
    return _of_number(_read(data))


def _read(data: bytes) -> JsonValue:
    """The value, None for whatever is no strict JSON; a null counts for nothing either."""
    try:
        return read_json(data, Profile.DOCUMENT)
    except EvidenceError:
        return None


def _of_number(value: JsonValue) -> Reward:
    number = _number(value)
    if number is None:
        return FAILED
    # Adding 0 turns a negative zero into zero.
    return Reward(GradeState.VALID, number + 0.0) if 0 <= number <= 1 else INVALID


def _number(value: JsonValue) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


# Two runs.


@dataclass(frozen=True, slots=True)
class Grading:
    """What grading one tree twice came to.

    Attributes:
        state: `valid` only where both runs gave the same valid reward.
        reward: then.
        grade, replay: of a run that gave a valid reward, its document.
    """

    state: GradeState
    reward: Reward | None
    grade: GradeDocument | None
    replay: GradeDocument | None

    @property
    def passed(self) -> bool:
        """Whether the tree passed; False where nothing valid is known."""
        return self.state is GradeState.VALID and self.grade is not None and self.grade.passed

    @property
    def grade_hash(self) -> str | None:
        """`H` of the valid grade."""
        return grade_hash(self.grade) if self.state is GradeState.VALID and self.grade else None


def grading_of(
    first: Reward, second: Reward, *, trial_fingerprint: str, grader_hash: str, pass_at: float
) -> Grading:
    """The grading of two runs on copies of one tree.

    Args:
        first: what one run came to.
        second: what the other came to.
        trial_fingerprint: of the trial that left the tree.
        grader_hash: of `tests/`.
        pass_at: the least reward that passes.
    """
    documents = [
        grade_document(each, trial_fingerprint=trial_fingerprint, grader_hash=grader_hash, pass_at=pass_at)
        for each in (first, second)
    ]
    state = _joint(first, second)
    return Grading(state, first if state is GradeState.VALID else None, documents[0], documents[1])


def _joint(first: Reward, second: Reward) -> GradeState:
    states = {first.state, second.state}
    for state in (GradeState.GRADER_FAILED, GradeState.GRADER_INVALID):
        if state in states:
            return state
    same = (first.reward, dict(first.secondary)) == (second.reward, dict(second.secondary))
    return GradeState.VALID if same else GradeState.REPLAY_DIFFERS


def grade_document(
    reward: Reward, *, trial_fingerprint: str, grader_hash: str, pass_at: float
) -> GradeDocument | None:
    """The document of one run; None where it gave no valid reward.

    A further measure that is called `safety`, `permission` or `data_loss` is a check of that kind as well,
    which fails below 1.
    """
    if reward.state is not GradeState.VALID or reward.reward is None:
        return None
    checks = [GradeCheck(check_id=TESTS_CHECK, kind=CheckKind.ACCEPTANCE, passed=reward.reward >= pass_at)]
    checks += [
        GradeCheck(check_id=name, kind=_OUTRANKING[name], passed=value >= 1)
        for name, value in reward.secondary.items()
        if name in _OUTRANKING
    ]
    return GradeDocument(
        schema_version=1,
        artifact_contract=GRADE_CONTRACT,
        trial_fingerprint=trial_fingerprint,
        grader_hash=grader_hash,
        checks=tuple(checks),
        passed=all(check.passed for check in checks),
        reward=reward.reward,
        secondary=dict(reward.secondary),
    )


def grade_json(grade: GradeDocument) -> dict[str, JsonValue]:
    """A grade as it is stored."""
    return to_json(grade)
