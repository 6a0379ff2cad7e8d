"""The tested agent as a plan freezes it.

This version drives the simulated agent alone. Another is frozen here once its adapter holds calls that work
on tasks: by the digest of its program and the version it states.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_object, digest_text
from skill_effectiveness.providers import ADAPTERS, CallKind
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.plan import PlanDriver
from skill_effectiveness.studies.words import SIMULATED

if TYPE_CHECKING:
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.studies.study_file import StudyFile

SIMULATED_VERSION: Final = "simulated-1"


def drivable(provider: str) -> bool:
    """Whether this version can let an agent of the provider work on tasks."""
    adapter = ADAPTERS.get(provider)
    return provider == SIMULATED or (adapter is not None and CallKind.WORK in adapter.call_kinds)


def demand_drivable(provider: str, where: str) -> None:
    """Refuse an agent that this version cannot drive.

    Args:
        provider: of the agent.
        where: how the person named it, a JSON pointer or an option.

    Raises:
        StudyError: `driver_unsupported`.
    """
    if not drivable(provider):
        sentence = f"this version cannot let {provider} work on tasks; use {SIMULATED}."
        raise StudyError(StudyCode.DRIVER_UNSUPPORTED, where, sentence)


def frozen_driver(study: StudyFile, around: Surroundings) -> PlanDriver:
    """The driver of a study as it is now.

    Raises:
        StudyError: `driver_unsupported`.
        ExecutableError, EvidenceError: its program cannot be bound.
    """
    driver = study.driver
    settings = digest_object(dict(driver.settings))
    if driver.simulated:
        return PlanDriver(
            provider=driver.provider,
            executable_hash=digest_text(SIMULATED),
            cli_version=SIMULATED_VERSION,
            model=driver.model,
            settings_hash=settings,
        )
    adapter = ADAPTERS.get(driver.provider)
    if adapter is None or CallKind.WORK not in adapter.call_kinds or driver.executable is None:
        sentence = f"this version cannot let {driver.provider} work on tasks; use {SIMULATED}."
        raise StudyError(StudyCode.DRIVER_UNSUPPORTED, "/driver/provider", sentence)
    program = adapter.at(Path(driver.executable), around=around).identify(around)
    return PlanDriver(
        provider=driver.provider,
        executable_hash=program.sha256,
        cli_version=program.version,
        model=driver.model,
        settings_hash=settings,
    )
