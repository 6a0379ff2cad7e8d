"""The tested agent as a plan freezes it.

A simulated one is a name and its settings. Any other is a program, by the digest of its bytes and the version
it states, whose adapter holds calls that work on tasks.
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
    from skill_effectiveness.providers import Provider
    from skill_effectiveness.studies.study_file import StudyFile

SIMULATED_VERSION: Final = "simulated-1"
SIMULATED_HASH: Final = digest_text(SIMULATED)
"""What stands for the digest of a simulated agent's program."""


def drivable(provider: str) -> bool:
    """Whether this version can let an agent of the provider work on tasks."""
    adapter = ADAPTERS.get(provider)
    return provider == SIMULATED or (adapter is not None and CallKind.WORK in adapter.call_kinds)


def confinable(provider: str) -> bool:
    """Whether an agent of the provider can be put into a sandbox that shows nothing of the user's."""
    adapter = ADAPTERS.get(provider)
    return adapter is not None and adapter.confinable


def demand_drivable(provider: str, where: str) -> None:
    """Refuse an agent that this version cannot drive.

    Args:
        provider: of the agent.
        where: how the person named it, a JSON pointer or an option.

    Raises:
        StudyError: `driver_unsupported`.
    """
    if not drivable(provider):
        real = ", ".join(name for name in ADAPTERS if drivable(name) and confinable(name))
        sentence = f"this version cannot let {provider} work on tasks; use {real} or {SIMULATED}."
        raise StudyError(StudyCode.DRIVER_UNSUPPORTED, where, sentence)


def bound_provider(study: StudyFile, around: Surroundings) -> Provider:
    """The adapter of a study's driver, bound to its program and to what the user has configured of its model.

    Raises:
        StudyError: `driver_unsupported`.
        ProviderError: it does not follow which model is meant.
        ExecutableError, EvidenceError: the program cannot be bound.
    """
    driver = study.driver
    demand_drivable(driver.provider, "/driver/provider")
    if driver.executable is None:
        sentence = "a driver that is not simulated is a program; name it by its absolute path."
        raise StudyError(StudyCode.DRIVER_UNSUPPORTED, "/driver/executable", sentence)
    provider = ADAPTERS[driver.provider].at(Path(driver.executable), around=around)
    return provider.for_model(driver.model, around)


def frozen_driver(study: StudyFile, around: Surroundings) -> PlanDriver:
    """The driver of a study as it is now.

    Raises:
        StudyError, ProviderError, ExecutableError, EvidenceError: as `bound_provider`.
    """
    driver = study.driver
    settings = digest_object(dict(driver.settings))
    if driver.simulated:
        return PlanDriver(
            provider=driver.provider,
            executable_hash=SIMULATED_HASH,
            cli_version=SIMULATED_VERSION,
            model=driver.model,
            settings_hash=settings,
        )
    program = bound_provider(study, around).identify(around)
    return PlanDriver(
        provider=driver.provider,
        executable_hash=program.sha256,
        cli_version=program.version,
        model=driver.model,
        settings_hash=settings,
    )
