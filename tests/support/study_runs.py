"""Runs of studies for tests: an agent that does as it is told, and what a run left on disk."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from skill_effectiveness.protocol.event_rows import HostResidualRow, ResidualStatus
from skill_effectiveness.studies.agent import AttemptResult, Observed
from skill_effectiveness.studies.chance import Chance
from skill_effectiveness.studies.executors import thread_executor
from skill_effectiveness.studies.file_trees import HeldTree
from skill_effectiveness.studies.halting import Halt
from skill_effectiveness.studies.rewards import Reward
from skill_effectiveness.studies.rows import Usage
from skill_effectiveness.studies.runner import RunOutcome, RunParts, run_study
from skill_effectiveness.studies.simulated_driver import SimulatedAgent, skill_events
from skill_effectiveness.studies.words import Arm, EndClass, GradeState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.studies.agent import AssayResult, Cancelled
    from skill_effectiveness.studies.attempt_records import AttemptOrder
    from skill_effectiveness.studies.plan import PlanTask
    from skill_effectiveness.studies.root import StudyRoot
    from skill_effectiveness.studies.state import SlotState, StudyState
    from skill_effectiveness.studies.status import StudyStatus
    from skill_effectiveness.trials.allocation import Slot
    from tests.support.studies import Bench

MODEL = "simulated-agent"
USED = Usage(
    input_tokens=80,
    cached_tokens=8,
    output_tokens=20,
    reasoning_tokens=2,
    tool_calls=3,
    cost_units=0.5,
    wall_seconds=2.0,
)
"""What every attempt of the fake uses unless told otherwise: 100 tokens."""

VALID = Reward(GradeState.VALID, 1.0)


def result(ended: EndClass | str = EndClass.COMPLETED, **others: object) -> AttemptResult:
    """What an attempt came to, a whole one unless told otherwise."""
    held = AttemptResult(
        ended=EndClass(ended),
        residual=HostResidualRow(
            schema_version=1, event_contract="host-residual-v1", status=ResidualStatus.CLEAN, layers=()
        ),
        events=skill_events(Arm.OFF),
        model_reported=MODEL,
        usage=USED,
        files=HeldTree.of_files({"note.txt": b"done\n", "deep/er.txt": b"x"}),
        observed=Observed(),
    )
    return replace(held, **others)  # type: ignore[arg-type]


@dataclass
class FakeAgent:
    """An agent that ends as it is told, and counts how often it was asked.

    Attributes:
        endings: by slot, what its attempts come to one after the other; the last one goes on for ever.
        grades: by slot, what gradings come to one after the other; valid and 1 by default.
        assays: by batch and phase.
        during: called in every attempt, in the executor's thread.
        waits: seconds of rest after a provider's error.
    """

    endings: Mapping[int, list[AttemptResult]] = field(default_factory=dict)
    grades: Mapping[str, list[tuple[Reward, Reward]]] = field(default_factory=dict)
    assays: Mapping[tuple[int, str], AssayResult] = field(default_factory=dict)
    during: Callable[[AttemptOrder, Cancelled], AttemptResult | None] | None = None
    waits: float = 0.0
    asked: list[AttemptOrder] = field(default_factory=list)
    graded: list[str] = field(default_factory=list)

    def told(self, slot: Slot, before: SlotState) -> Mapping[str, JsonValue]:
        del slot, before
        return {"provider": "simulated", "model": MODEL}

    def wait_before(self, slot: SlotState) -> float:
        return self.waits if slot.attempts[-1].ended is EndClass.PROVIDER_ERROR else 0.0

    def attempt(self, order: AttemptOrder, place: str, cancelled: Cancelled) -> AttemptResult:
        del place
        self.asked.append(order)
        if self.during is not None and (found := self.during(order, cancelled)) is not None:
            return found
        told = self.endings.get(order.slot, [result()])
        return told[min(order.attempt, len(told)) - 1]

    def assay(self, batch: int, phase: str, arm: Arm) -> AssayResult:
        del arm
        return self.assays.get((batch, phase), "passed")

    def grade(self, task: PlanTask, files: HeldTree) -> tuple[Reward, Reward]:
        del files
        earlier = self.graded.count(task.task_id)
        self.graded.append(task.task_id)
        told = self.grades.get(task.task_id, [(VALID, VALID)])
        return told[min(earlier, len(told) - 1)]


@dataclass
class Watching:
    """An observer that keeps what it was told."""

    resumptions: list[tuple[int, int, int]] = field(default_factory=list)
    counts: list[StudyStatus] = field(default_factory=list)
    rests: list[float] = field(default_factory=list)

    def resumed(self, interrupted: int, kept: int, leftovers: int) -> None:
        self.resumptions.append((interrupted, kept, leftovers))

    def progressed(self, status: StudyStatus) -> None:
        self.counts.append(status)

    def resting(self, seconds: float) -> None:
        self.rests.append(seconds)


def run(
    bench: Bench,
    agent: FakeAgent | None = None,
    out: str = "R",
    *,
    jobs: int = 1,
    halt: Halt | None = None,
    watching: Watching | None = None,
) -> RunOutcome:
    """Run a planned study, with its own simulated agent unless another is given."""
    with bench.open(out) as study, thread_executor(jobs) as executor:
        return run_study(
            RunParts(
                study,
                bench.state,
                agent or simulated(study),
                executor,
                jobs,
                halt or Halt(),
                watching or Watching(),
            )
        )


def simulated(study: StudyRoot) -> SimulatedAgent:
    """The simulated agent of a study, whatever version of this program made the plan."""
    settings = study.study().simulated_settings()
    return SimulatedAgent(study.plan, settings, Chance(study.seed()), study.around)


@contextmanager
def state_of(bench: Bench, out: str = "R") -> Iterator[StudyState]:
    """What the journal of a study amounts to."""
    with bench.open(out) as study, study.journal(bench.state) as journal:
        yield journal.state


def rows_of(bench: Bench, out: str = "R") -> list[dict[str, Any]]:
    """Every row of a journal, as it lies there."""
    lines = (bench.folder / out / "journal" / "000001.jsonl").read_bytes().splitlines()
    return [json.loads(line) for line in lines]


def types_of(bench: Bench, out: str = "R") -> list[str]:
    """The types of all rows."""
    return [row["type"] for row in rows_of(bench, out)]


def trial_of(study: StudyRoot, slot: int) -> Path:
    """The folder of a slot's trial."""
    held = study.slots()[slot - 1]
    arms = {str(arm.arm): arm.arm_id for arm in study.plan.arms}
    return study.root.path / "trials" / held.task_id / arms[held.arm] / f"sample-{held.sample:03d}"


def document_of(study: StudyRoot, slot: int) -> dict[str, Any]:
    """The `trial.json` of a slot."""
    found: dict[str, Any] = json.loads((trial_of(study, slot) / "trial.json").read_bytes())
    return found


def outcomes(bench: Bench, out: str = "R") -> dict[int, tuple[str, object]]:
    """Class and reward of every slot that has ended."""
    found: dict[int, tuple[str, object]] = {}
    with bench.open(out) as study, study.journal(bench.state) as journal:
        for number, slot in sorted(journal.state.slots.items()):
            if slot.ended is None:
                continue
            reward = None
            if slot.grade_hash is not None:
                reward = json.loads((trial_of(study, number) / "grading/grade.json").read_bytes())["reward"]
            found[number] = (str(slot.ended), reward)
    return found
