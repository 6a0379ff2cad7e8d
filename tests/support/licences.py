"""Examinations and licences that were never asked for, made of answers written down by a test."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.calibration.grant import Examined, grant
from skill_effectiveness.calibration.licence import LicenceRefused
from skill_effectiveness.calibration.loader import load_calibration
from skill_effectiveness.calibration.models import UNKNOWN_COST, Judgment, ShownAnswer
from skill_effectiveness.calibration.prompt import prompt_hash
from skill_effectiveness.calibration.sheet import ReviewerRecords, build_sheet
from tests.support.examinations import INPUTS, PROBES
from tests.support.published import REAL, pair, truthful

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skill_effectiveness.calibration.documents import Declared
    from skill_effectiveness.calibration.inputs import FrozenInputs
    from skill_effectiveness.calibration.licence import LicenceCode, LicencePredicate
    from skill_effectiveness.protocol.policy import LicencePolicy
    from skill_effectiveness.protocol.words import Verdict

NOW = datetime(2026, 3, 4, 5, 6, 7, 890_000, tzinfo=UTC)
Run = tuple[Judgment, ...]


def run(inputs: FrozenInputs, wrong: Mapping[str, Verdict] | None = None) -> Run:
    """A run that is right but for these cases."""
    given = wrong or {}
    return tuple(
        each if each.case_id not in given else Judgment(case_id=each.case_id, verdict=given[each.case_id])
        for each in truthful(inputs)
    )


def every_second(number: int, place: int) -> bool:
    """Whether a sample shows a case the other way round: all cases are seen both ways round."""
    return (number + place) % 2 == 1


def examined(
    inputs: FrozenInputs = INPUTS,
    *runs: Run,
    declared: Declared = REAL,
    attempts: int | None = None,
    swapped: Callable[[int, int], bool] = every_second,
    asked: str | None = "",
) -> Examined:
    """An examination: three truthful runs unless others are given."""
    given: Sequence[Run] = runs or 3 * (truthful(inputs),)
    made = pair(declared, inputs, *given)
    loaded = load_calibration(made.evidence, made.result, inputs=inputs)
    seen = [
        [
            ShownAnswer(
                case_id=each.case_id,
                orientation=int(swapped(number, place)),
                verdict=each.verdict.turned() if swapped(number, place) else each.verdict,
            )
            for place, each in enumerate(answers)
        ]
        for number, answers in enumerate(given)
    ]
    records = ReviewerRecords(
        family=declared.reviewer_family,
        runs=[[each.verdict for each in answers] for answers in given],
        seen=seen,
        calls=[UNKNOWN_COST] * len(given),
        attempts=attempts or len(given),
        orientation_key_hashes=(),
    )
    sheet = build_sheet(
        inputs.bank,
        [records],
        evidence_hash=loaded.result.calibration_evidence_hash,
        synthetic=loaded.synthetic,
        policy=inputs.policy,
    )
    return Examined(loaded, sheet, prompt_hash() if asked == "" else asked)


def granted(
    judged: Examined | None = None,
    probes: Examined | None = None,
    *,
    policy: LicencePolicy = INPUTS.policy,
    days: int = 30,
    prompt: str | None = None,
) -> LicencePredicate:
    """The licence of two examinations, good ones unless others are given."""
    return grant(
        judged or examined(),
        probes or examined(PROBES),
        policy,
        policy_hash=INPUTS.policy_hash,
        prompt_hash=prompt or prompt_hash(),
        days=days,
        now=NOW,
    )


def licence_of(declared: Declared) -> LicencePredicate:
    """The licence of a good reviewer who says this of itself."""
    return granted(examined(declared=declared), examined(PROBES, declared=declared))


def other(declared: Declared, **changes: object) -> Declared:
    """Another reviewer."""
    return replace(declared, **changes)  # type: ignore[arg-type]


def refused(act: Callable[[], object]) -> list[tuple[LicenceCode, str | None]]:
    """Every reason."""
    with pytest.raises(LicenceRefused) as caught:
        act()
    first = caught.value.faults[0]
    assert (caught.value.code, caught.value.field, str(caught.value)) == (
        first.code,
        first.field,
        first.sentence,
    )
    return [(fault.code, fault.field) for fault in caught.value.faults]
