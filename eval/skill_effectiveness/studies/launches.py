"""What a real agent of each arm would be started with, asked of its adapter; nothing is started.

Source: studies.md section 4 (treatment diff); field-failures.md F33. Each arm's launch is made in a workplace
of its own, laid down as for an attempt, by the code that makes an attempt's.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.execution import SessionFolders
from skill_effectiveness.providers import ProviderError, WorkCall
from skill_effectiveness.studies.confining import confinement_of
from skill_effectiveness.studies.errors import StudyError
from skill_effectiveness.studies.file_trees import HeldTree
from skill_effectiveness.studies.task_folder import ENVIRONMENT
from skill_effectiveness.studies.treatment_diff import Given, differences, launch_digest
from skill_effectiveness.studies.words import Arm
from skill_effectiveness.studies.workplace import SKILLS, lay_workplace, mount_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.providers import LaunchShape, Provider
    from skill_effectiveness.studies.loading import LoadedStudy
    from skill_effectiveness.studies.payloads import Payload

_PROMPT: Final = "What would be started for this?"
_SECONDS: Final = 60.0
_ANYWHERE: Final = Path("/arm")
"""Where an arm lies is no part of what it gives."""


def launch_shapes(loaded: LoadedStudy, provider: Provider, around: Surroundings) -> Mapping[Arm, LaunchShape]:
    """The launch of every arm, on the files of the first task.

    Args:
        loaded: the study; at least one task of it can be used.
        provider: the adapter of its driver, bound.
        around: files and environment.

    Raises:
        ProviderError: the program cannot be started for an arm.
        EvidenceError, StudyError: something cannot be laid down.
    """
    task = loaded.tasks[0]
    folder = loaded.task_path(task.task_id) / ENVIRONMENT
    environment = HeldTree.on_disk(loaded.fs, folder, task.environment)
    held = confinement_of(loaded.study.isolation, task.workdir)
    shapes = {}
    for arm, payload in loaded.payloads.items():
        with SessionFolders(around) as session:
            place = lay_workplace(session, around.fs, environment, payload.held)
            call = WorkCall(
                _PROMPT,
                place.app,
                loaded.study.driver.model,
                _SECONDS,
                mount=place.mount,
                confinement=held,
                environment=task.environment_env,
            )
            shapes[arm] = provider.launch(call, around=around).shape(_PROMPT)
    return shapes


def launch_digests(loaded: LoadedStudy, provider: Provider, around: Surroundings) -> Mapping[Arm, str]:
    """What a plan freezes of the launches; errors as `launch_shapes`."""
    shapes = launch_shapes(loaded, provider, around)
    return {arm: launch_digest(shape) for arm, shape in shapes.items()}


def undeclared_differences(loaded: LoadedStudy, provider: Provider, around: Surroundings) -> Iterator[str]:
    """Sentences for every place in which an arm's launch is not off's with its treatment; none is well."""
    try:
        shapes = launch_shapes(loaded, provider, around)
        for arm, payload in loaded.payloads.items():
            if arm is not Arm.OFF:
                yield from _told(arm, shapes, payload, provider, loaded.study.driver.model)
    except ProviderError as error:
        yield f"/arms: {error.sentence}"
    except (EvidenceError, StudyError) as error:
        yield f"/arms: {error}"


def _told(
    arm: Arm, shapes: Mapping[Arm, LaunchShape], payload: Payload, provider: Provider, model: str
) -> Iterator[str]:
    given = given_by(payload.held)
    treatment = provider.treatment(
        model, skills=bool(given.skills.entries), instructions=given.instructions is not None
    )
    for place in differences(shapes[Arm.OFF], shapes[arm], treatment, given):
        yield (
            f"/arms/{arm}: the agent would be started with another {place} than off, and the treatment does "
            "not say so; this is a fault of the adapter or of the machine, not of the study."
        )


def given_by(payload: HeldTree) -> Given:
    """What an arm gives, as it is frozen.

    Raises:
        StudyError: `driver_unsupported`: it has hooks; or it cannot be read.
    """
    mount = mount_of(payload, _ANYWHERE)
    words = None if mount is None or mount.instructions is None else mount.instructions.encode()
    return Given(payload.tree.below(SKILLS), words)
