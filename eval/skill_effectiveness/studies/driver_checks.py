"""What can be known of a driver before a study is planned: its program, what it can be given, its model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.laying import lay_folder
from skill_effectiveness.execution import ExecutableError, SessionFolders
from skill_effectiveness.protocol.registries import RegistrySchema
from skill_effectiveness.providers import Ending, ProviderError, WorkCall
from skill_effectiveness.providers.calls import ProviderErrorKind
from skill_effectiveness.providers.driving import tells_tool_calls
from skill_effectiveness.studies.cures import cure_of
from skill_effectiveness.studies.drivers import bound_provider, frozen_driver
from skill_effectiveness.studies.errors import StudyError
from skill_effectiveness.studies.isolation_checks import isolation_faults
from skill_effectiveness.studies.workplace import holds_a_repository

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.providers import Provider
    from skill_effectiveness.providers.confinement import Confinement
    from skill_effectiveness.studies.loading import LoadedStudy
    from skill_effectiveness.studies.plan import PlanDriver

PROBE: Final = "Answer with the one word ready, and do nothing else."
PROBE_SECONDS: Final = 300.0


class DriverFacts(NamedTuple):
    """A driver as it was looked at.

    Attributes:
        frozen: what a plan would freeze; None where the program cannot be bound.
        provider: the adapter of a real one.
        faults: sentences, each with its place.
    """

    frozen: PlanDriver | None
    provider: Provider | None
    faults: tuple[str, ...]


def look_at_driver(loaded: LoadedStudy, around: Surroundings) -> DriverFacts:
    """Bind the driver of a study, and find what it cannot be given."""
    study = loaded.study
    faults = [] if study.driver.simulated else list(_undrivable(loaded))
    try:
        provider = None if study.driver.simulated else bound_provider(study, around)
    except ProviderError as error:
        told = f"/driver/model: {ProviderErrorKind.MODEL_UNAVAILABLE}: {error}"
        return DriverFacts(None, None, (*faults, told))
    except StudyError as error:
        return DriverFacts(None, None, (*faults, f"{error.where}: {error.sentence}"))
    except (ExecutableError, EvidenceError) as error:
        return DriverFacts(None, None, (*faults, f"/driver/executable: {error}"))
    try:
        frozen = frozen_driver(study, around)
        if provider is not None:
            faults += isolation_faults(loaded, provider, around)
            provider.check_login(around)
    except StudyError as error:
        return DriverFacts(None, None, (*faults, f"{error.where}: {error.sentence}"))
    except (ExecutableError, EvidenceError, ProviderError) as error:
        return DriverFacts(None, None, (*faults, f"/driver/executable: {error}"))
    return DriverFacts(frozen, provider, tuple(faults))


def _undrivable(loaded: LoadedStudy) -> Iterator[str]:
    """What a real agent cannot be given, or what cannot be proved of it here."""
    if loaded.study.registry is RegistrySchema.SKILL_CONTENT:
        yield (
            "/registry: that the provider of a real agent keeps nothing is never proved, as the causal tier "
            "demands; use paired-profile."
        )
    if not tells_tool_calls(loaded.study.driver.provider):
        for name in ("trial", "study"):
            if getattr(loaded.study.budgets, name).tool_calls is not None:
                yield (
                    f"/budgets/{name}/tool_calls: {loaded.study.driver.provider} does not show every tool "
                    "call, so their number cannot be limited; write null."
                )
    for arm, payload in loaded.payloads.items():
        if payload.hooks:
            yield f"/arms/{arm}/hooks: hooks cannot be given to a real agent; take them out."
    for task in loaded.tasks:
        if holds_a_repository(task.environment):
            yield f"task {task.task_id}: environment/ holds a .git, whose history may tell; take it out."


def ask_model(
    provider: Provider, model: str, around: Surroundings, confinement: Confinement | None = None
) -> str | None:
    """Ask the model one thing through the driver; what is wrong, or None.

    One call, so that a login, a quota or a misspelt model is found before a study is begun.

    Raises:
        EvidenceError: the folders of the call cannot be made.
    """
    with SessionFolders(around) as session:
        folder = session.work / "app"
        lay_folder(around.fs, folder)
        outcome = provider.work(
            WorkCall(PROBE, folder, model, PROBE_SECONDS, confinement=confinement), around=around
        )
    if outcome.ending is Ending.SUCCESS:
        return None
    told = str(outcome.ending) if outcome.error_kind is None else str(outcome.error_kind)
    hint = (
        ""
        if confinement is None
        else " In the sandbox it is shown the system and its own program; name what else it needs in "
        "isolation.read_only."
    )
    return f"/driver/model: asked one thing, {provider.name} ended with {told}: {cure_of(told)}.{hint}"
