from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.calibration.errors import CalibrationCode, CalibrationError
from skill_effectiveness.calibration.finalization_rules import (
    ClaimFound,
    FileFound,
    FolderFound,
    Found,
    IntentFound,
    Step,
    next_step,
)

if TYPE_CHECKING:
    from tests.support.examinations import Anything

A, E, D, U = FileFound.ABSENT, FileFound.EQUAL, FileFound.DIFFERENT, FileFound.UNSAFE
RECOVERY = CalibrationCode.FINALIZATION_RECOVERY_REQUIRED
STARTED_ALREADY = CalibrationCode.FINALIZE_ALREADY_STARTED

NAMES = ("calibration/reviewer-calibration.json", "calibration/reviewer-calibration-result.json")
PENDING = (
    "calibration/.reviewer-calibration.pending.json",
    "calibration/.reviewer-calibration-result.pending.json",
)
SHEET = "calibration/reviewer-calibration-metrics.json"


def found(
    intent: IntentFound,
    canonical: tuple[FileFound, FileFound] = (A, A),
    staged: tuple[FileFound, FileFound] = (A, A),
    sheet: FileFound = A,
    **others: Anything,
) -> Found:
    fields: dict[str, Any] = {"folder": FolderFound.PRIVATE, "claim": ClaimFound.ABSENT, **others}
    return Found(
        intent=intent,
        canonical=dict(zip(NAMES, canonical, strict=True)),
        staged=dict(zip(PENDING, staged, strict=True)),
        sheet={SHEET: sheet},
        **fields,
    )


def answer(state: Found) -> Step | CalibrationCode:
    try:
        return next_step(state)
    except CalibrationError as error:
        return error.code


def sentence(state: Found) -> str:
    with pytest.raises(CalibrationError) as caught:
        next_step(state)
    return caught.value.sentence


STARTED, CLAIMED = IntentFound.STARTED, IntentFound.CLAIMED
OURS, FOREIGN = ClaimFound.OURS, ClaimFound.FOREIGN

TABLE = {
    "intent is a link": (found(IntentFound.LINK), CalibrationCode.ARTIFACT_ROOT_QUARANTINED),
    "no intent, folder unsafe": (found(IntentFound.ABSENT, folder=FolderFound.UNSAFE), RECOVERY),
    "no intent, no folder": (found(IntentFound.ABSENT, folder=FolderFound.ABSENT), Step.BEGIN),
    "no intent, folder": (found(IntentFound.ABSENT), Step.BEGIN),
    "intent of something else": (found(IntentFound.OTHER, claim=OURS), STARTED_ALREADY),
    "completed": (found(IntentFound.COMPLETED, (E, E), claim=OURS), STARTED_ALREADY),
    "started, evidence present": (found(STARTED, (E, A)), RECOVERY),
    "started, result present": (found(STARTED, (A, E)), RECOVERY),
    "started, staged present": (found(STARTED, staged=(A, E)), RECOVERY),
    "started, sheet present": (found(STARTED, sheet=E), RECOVERY),
    "started, unsafe file present": (found(STARTED, (U, A)), RECOVERY),
    "started, nothing": (found(STARTED), Step.CLAIM),
    "started, our token": (found(STARTED, claim=OURS), Step.CLAIM),
    "started, another token": (found(STARTED, claim=FOREIGN), RECOVERY),
    "started, folder gone": (found(STARTED, folder=FolderFound.ABSENT), Step.CLAIM),
    "started, folder unsafe": (found(STARTED, folder=FolderFound.UNSAFE), RECOVERY),
    "claimed, nothing": (found(CLAIMED, claim=OURS), Step.PUBLISH),
    "claimed, lock missing": (found(CLAIMED), Step.PUBLISH),
    "claimed, folder gone": (found(CLAIMED, folder=FolderFound.ABSENT), Step.PUBLISH),
    "claimed, folder unsafe": (found(CLAIMED, folder=FolderFound.UNSAFE), RECOVERY),
    "claimed, another token": (found(CLAIMED, claim=FOREIGN), RECOVERY),
    "claimed, own partials": (found(CLAIMED, (E, A), (A, E), claim=OURS), Step.PUBLISH),
    "claimed, other partials": (found(CLAIMED, (D, A), (D, D), claim=OURS), Step.PUBLISH),
    "claimed, evidence unsafe": (found(CLAIMED, (U, A), claim=OURS), RECOVERY),
    "claimed, staged unsafe": (found(CLAIMED, staged=(A, U), claim=OURS), RECOVERY),
    "claimed, sheet unsafe": (found(CLAIMED, sheet=U, claim=OURS), RECOVERY),
    "claimed, both different": (found(CLAIMED, (D, D), claim=OURS), STARTED_ALREADY),
    "claimed, one different": (found(CLAIMED, (E, D), claim=OURS), STARTED_ALREADY),
    "claimed, both equal": (found(CLAIMED, (E, E), claim=OURS), Step.CONFIRM),
    "claimed, both equal, lock missing": (found(CLAIMED, (E, E)), Step.CONFIRM),
    "claimed, both equal, leftovers": (found(CLAIMED, (E, E), (E, E), claim=OURS), Step.CONFIRM),
    "claimed, both equal, leftover different": (found(CLAIMED, (E, E), (E, D), claim=OURS), RECOVERY),
    "claimed, both equal, leftover unsafe": (found(CLAIMED, (E, E), (U, A), claim=OURS), RECOVERY),
    "claimed, both equal, stale sheet": (found(CLAIMED, (E, E), sheet=D, claim=OURS), Step.CONFIRM),
    "claimed, both equal, another token": (found(CLAIMED, (E, E), claim=FOREIGN), RECOVERY),
}


@pytest.mark.parametrize(("state", "expected"), TABLE.values(), ids=TABLE.keys())
def test_each_row_of_the_table(state: Found, expected: Step | CalibrationCode) -> None:
    """R16: what was found, and what is done or answered."""
    assert answer(state) == expected


def test_the_path_in_the_way_is_named() -> None:
    """R16 E44: exactly it is to be repaired or removed."""
    assert PENDING[1] in sentence(found(CLAIMED, staged=(A, U)))
    assert f"remove exactly {SHEET}" in sentence(found(CLAIMED, sheet=U))
    assert NAMES[0] in sentence(found(STARTED, (D, A)))


def test_nothing_is_overwritten_or_published_twice() -> None:
    """R16: over every combination of what may lie there."""
    for intent, folder, claim in product(IntentFound, FolderFound, ClaimFound):
        for first, second, third, fourth, sheet in product(FileFound, repeat=5):
            state = replace(
                found(intent, (first, second), (third, fourth), sheet), folder=folder, claim=claim
            )
            files = (first, second, third, fourth, sheet)
            told = answer(state)
            if isinstance(told, Step):
                assert intent in (IntentFound.ABSENT, STARTED, CLAIMED)
                assert folder is not FolderFound.UNSAFE
                assert intent is IntentFound.ABSENT or claim is not FOREIGN
                assert intent is IntentFound.ABSENT or U not in files
            if told is Step.PUBLISH:
                assert A in (first, second)
            if told is Step.CONFIRM:
                assert (first, second) == (E, E)
                assert {third, fourth} <= {A, E}
            if told is Step.CLAIM:
                assert set(files) == {A}
