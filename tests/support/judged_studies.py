"""Studies of a simulated agent with simulated reviewers, run to their end and ready to be judged."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from skill_effectiveness.calibration.licensing import seal_licence
from skill_effectiveness.evidence.canonical import digest_text
from skill_effectiveness.providers import SimulatedReviewer, SimulatedSettings
from skill_effectiveness.studies.chance import Chance
from skill_effectiveness.studies.evidence_reading import RootReader
from skill_effectiveness.studies.executors import thread_executor
from skill_effectiveness.studies.halting import Halt
from skill_effectiveness.studies.judging import judge_study
from skill_effectiveness.studies.runner import RunParts, RunStatus, run_study
from skill_effectiveness.studies.simulated_driver import SimulatedAgent
from skill_effectiveness.studies.table_building import build_tables
from skill_effectiveness.studies.trial_rows import StudyEvidence
from tests.support.licences import licence_of
from tests.support.private import surroundings
from tests.support.published import SIMULATED
from tests.support.studies import bench, example

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from skill_effectiveness.calibration.licence import LicencePredicate
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.studies.judging import Judged
    from skill_effectiveness.studies.root import StudyJournal, StudyRoot
    from skill_effectiveness.studies.status import StudyStatus
    from skill_effectiveness.studies.tables import Tables
    from tests.support.studies import Bench


@cache
def simulated_licence(model: str = "sim-1") -> LicencePredicate:
    """The licence of a simulated reviewer that never errs, live at the tests' time."""
    program = SimulatedReviewer(SimulatedSettings(accuracy=1.0)).identify(surroundings())
    declared = replace(SIMULATED, provider_executable_hash=program.sha256, model=model)
    return licence_of(declared)


class Unwatched:
    """Nobody looks at the run."""

    def resumed(self, interrupted: int, kept: int, leftovers: int) -> None:
        """Say nothing."""

    def progressed(self, status: StudyStatus) -> None:
        """Say nothing."""

    def resting(self, seconds: float) -> None:
        """Say nothing."""


@dataclass(frozen=True)
class JudgedStudy:
    """A planned study in its place."""

    place: Bench
    out: str = "R"

    @contextmanager
    def opened(self, around: Surroundings | None = None) -> Iterator[tuple[StudyRoot, StudyJournal]]:
        """The study and its journal, under its lock."""
        place = self.place if around is None else replace(self.place, around=around)
        with (
            place.open(self.out) as study,
            study.lock().hold(action="test"),
            study.journal(self.place.state) as journal,
        ):
            yield study, journal

    def run(self) -> None:
        """Run it to its end."""
        with self.place.open(self.out) as study, thread_executor(1) as executor:
            settings = study.study().simulated_settings()
            agent = SimulatedAgent(study.plan, settings, Chance(study.seed()), study.around)
            parts = RunParts(study, self.place.state, agent, executor, 1, Halt(), Unwatched())
            assert run_study(parts).status is RunStatus.COMPLETE

    def judge(self, around: Surroundings | None = None, **given: Callable[..., object]) -> Judged:
        """Let it be judged."""
        with self.opened(around) as (study, journal):
            return judge_study(study, journal, **given)  # type: ignore[arg-type]

    def tables(self) -> Tables:
        """Its tables."""
        with self.opened() as (study, journal):
            return build_tables(
                StudyEvidence(
                    study.plan, study.frozen().tasks, study.slots(), journal.state, RootReader(study.root)
                )
            )


@contextmanager
def planned(
    folder: Path, *, models: tuple[str, ...] = ("sim-1",), tasks: int = 2, samples: int = 1, **edits: str
) -> Iterator[JudgedStudy]:
    """A study with one simulated reviewer for each model.

    Args:
        folder: for everything.
        models: of the reviewers.
        tasks: how many.
        samples: of each task and arm.
        edits: further settings of the driver by name, such as `effect`.
    """
    with bench(folder) as place:
        reviewers = ", ".join(f"{{licence: {model}.json, executable: null}}" for model in models)
        changed = {"reviewers: []": f"reviewers: [{reviewers}]", "samples: 3": f"samples: {samples}"}
        changed |= {"    effect: 0.4": f"    effect: {edits['effect']}"} if "effect" in edits else {}
        study = example(folder, tasks=tasks, edits=changed)
        for model in models:
            (study / f"{model}.json").write_bytes(seal_licence(simulated_licence(model), place.key))
        place.plan(study)
        yield JudgedStudy(place)


@contextmanager
def ready(folder: Path, **given: object) -> Iterator[JudgedStudy]:
    """One that was run to its end."""
    with planned(folder, **given) as study:  # type: ignore[arg-type]
        study.run()
        yield study


@contextmanager
def taken(shelf: Path, folder: Path, *, judged: bool = False, **given: object) -> Iterator[JudgedStudy]:
    """A copy of such a study that was run, perhaps judged, once for all tests with this shelf."""
    source = shelf / digest_text(repr((judged, sorted(given.items())))).removeprefix("sha256:")[:8]
    if not source.exists():
        source.mkdir()
        with ready(source, **given) as made:
            if judged:
                made.judge()
    shutil.copytree(source, folder / "taken")
    with bench(folder / "taken") as place:
        yield JudgedStudy(place)
