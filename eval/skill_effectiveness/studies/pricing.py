"""Whether what a study costs becomes known at all (studies.md section 1; field-failures.md F39)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skill_effectiveness.providers.driving import tells_cost
from skill_effectiveness.studies.words import SIMULATED

if TYPE_CHECKING:
    from skill_effectiveness.studies.study_file import StudyFile


def unpriced(study: StudyFile) -> str | None:
    """Why a limit of cost cannot be kept, without a full stop: no program tells it and no price is stated.

    None where it can.
    """
    provider = study.driver.provider
    if provider == SIMULATED or tells_cost(provider) or study.price() is not None:
        return None
    return (
        f"{provider} does not tell what a session cost; state the prices of {study.driver.model} in "
        "/driver/settings/prices"
    )
