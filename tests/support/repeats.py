"""Asking scripted reviewers several times, for the tests of the repeat command."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.calibration.errors import (
    ExaminationRefused,
)
from skill_effectiveness.calibration.repeats import ExaminationPlan
from skill_effectiveness.calibration.reviewer import Reviewer
from skill_effectiveness.providers import CallOutcome, Ending
from tests.support.examinations import (
    Anything,
    Scripted,
    answer_text,
    run_examination,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.providers import JudgeCall

REAL = ExaminationPlan(model="model-1", reviewer_family="family-1")


def refused(out: PrivateRoot, *arguments: Anything, **others: Anything) -> ExaminationRefused:
    """The refusal that `run_examination` of these arguments ends with."""
    with pytest.raises(ExaminationRefused) as caught:
        run_examination(out, *arguments, **others)
    # E58: a typed error carries no path.
    assert str(out.path) not in str(caught.value)
    return caught.value


def ask(
    out: PrivateRoot, provider: Scripted, *, resume: bool = False, repeats: int = 2, **others: Anything
) -> Anything:
    """Examine a scripted reviewer under the plan `REAL`."""
    return run_examination(
        out, Reviewer.real(provider), replace(REAL, repeats=repeats), resume=resume, **others
    )


def failing_at(*numbers: int, ending: Ending = Ending.TIMEOUT) -> Callable[[int, JudgeCall], CallOutcome]:
    """Every call answers `tie` but those of these numbers."""

    def script(number: int, call: JudgeCall) -> CallOutcome:
        if number in numbers:
            return CallOutcome(ending)
        return CallOutcome(Ending.SUCCESS, answer=answer_text(call, "tie"))

    return script
