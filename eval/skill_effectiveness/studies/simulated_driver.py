"""A tested agent made of chance (studies.md section 5): no program, no network, and known truth.

A sample passes when u < clip(b + effect, 0, 1), the effect in the arm `full` alone, with
b = clip(base_rate + task_sd * z, 0, 1) of its task.

| draw | use |
|---|---|
| u | `simulated/<task_id>/<arm>/<sample>`, first word |
| z | `base/<task_id>`, first word |
| how the k-th attempt ends | `simulated-ending/<task_id>/<arm>/<sample>`, word k |

So an outcome follows from seed, task, arm and sample, whatever the order of the run and whoever is killed
meanwhile. The agent is a pure function of its order; that nothing outlives it or leaks into it needs no proof
by observation, and a study with it has no tier all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.protocol.document import FrozenModel, Rate
from skill_effectiveness.protocol.event_rows import HostResidualRow, ResidualStatus, SkillEventsRow
from skill_effectiveness.protocol.registries import RegistrySchema
from skill_effectiveness.studies.agent import AttemptResult, Observed
from skill_effectiveness.studies.endings import STOPPED, drawn_before
from skill_effectiveness.studies.file_trees import HeldTree
from skill_effectiveness.studies.rewards import FAILED, read_reward
from skill_effectiveness.studies.rows import Usage
from skill_effectiveness.studies.study_file import SimulatedSettings
from skill_effectiveness.studies.words import Arm, EndClass
from skill_effectiveness.trials.models import AccessMode, AuditRow, IsolationEvidence, Operation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.studies.agent import AgentPlan, AssayResult, Cancelled
    from skill_effectiveness.studies.attempt_records import AttemptOrder
    from skill_effectiveness.studies.chance import Chance
    from skill_effectiveness.studies.plan import PlanTask
    from skill_effectiveness.studies.rewards import Reward
    from skill_effectiveness.studies.state import SlotState
    from skill_effectiveness.trials.allocation import Slot

ANSWER: Final = "answer.json"
"""The one file that a simulated attempt leaves."""

OTHER_MODEL: Final = "simulated-other-model"
SKILL: Final = "simulated:skill"
_SLICE: Final = 0.05
_LEAVE_A_TREE: Final = frozenset({EndClass.COMPLETED, EndClass.TIMEOUT, EndClass.LIMIT})
_DETAILS: Final[Mapping[EndClass, str]] = {
    EndClass.PROVIDER_ERROR: "server_error",
    EndClass.LIMIT: "tokens",
    EndClass.CONTAMINATED: "canary",
    EndClass.VOID: "model_differs",
    EndClass.INTERRUPTED: "simulated",
}
_NOTHING: Final = Usage(
    input_tokens=0, cached_tokens=0, output_tokens=0, reasoning_tokens=0, tool_calls=0, cost_units=0.0
)
_SAFE: Final = IsolationEvidence(
    fresh_session=True,
    forked_from_existing=False,
    auto_memory_enabled=False,
    vector_retrieval_enabled=False,
    session_recall_enabled=False,
    cross_session_cache_enabled=False,
    canary_leak_detected=False,
    provider_persistence="disabled",
)


class Draws(NamedTuple):
    """What chance says of one attempt, each number from 0 to 1.

    Attributes:
        base: b of the task.
        chance: u of the sample.
        ending: of this attempt.
    """

    base: float
    chance: float
    ending: float


class _Told(FrozenModel):
    """What an order says of a simulated driver."""

    provider: Literal["simulated"]
    model: str
    settings: SimulatedSettings
    base: Rate
    chance: Rate
    ending: Rate


class Simulated(NamedTuple):
    """What a simulated attempt comes to, and whether what it left would pass."""

    ended: EndClass
    passed: bool


def drawn(settings: SimulatedSettings, chance: Chance, slot: Slot, attempt: int) -> Draws:
    """The draws of one attempt.

    Args:
        settings: of the driver.
        chance: of the plan.
        slot: task, arm and sample; its number does not matter.
        attempt: how many endings were drawn before it.
    """
    base = settings.base_rate + settings.task_sd * chance.normal(f"base/{slot.task_id}")
    name = f"{slot.task_id}/{slot.arm}/{slot.sample}"
    return Draws(
        _clip(base),
        chance.uniform(f"simulated/{name}"),
        chance.uniform(f"simulated-ending/{name}", attempt),
    )


def simulated_attempt(settings: SimulatedSettings, draws: Draws, arm: Arm) -> Simulated:
    """How an attempt ends, and whether what it left passes."""
    effect = settings.effect if arm is Arm.FULL else 0.0
    return Simulated(_ending(settings, draws.ending), draws.chance < _clip(draws.base + effect))


def _ending(settings: SimulatedSettings, drawn_: float) -> EndClass:
    """The class whose share of the line from 0 to 1 the draw falls into; what is left over completes."""
    reached = 0.0
    for ended in EndClass:
        reached += settings.endings.get(ended, 0.0)
        if drawn_ < reached:
            return ended
    return EndClass.COMPLETED


def _clip(value: float) -> float:
    return min(1.0, max(0.0, value))


class SimulatedAgent:
    """The simulated driver of a study.

    Args:
        plan: of the study.
        settings: of the driver.
        chance: of the plan; the coordinator's alone, orders hold numbers that were drawn.
        around: the clock that attempts wait by.
    """

    def __init__(
        self, plan: AgentPlan, settings: SimulatedSettings, chance: Chance, around: Surroundings
    ) -> None:
        self._plan = plan
        self._settings = settings
        self._chance = chance
        self._around = around

    def told(self, slot: Slot, before: SlotState) -> Mapping[str, JsonValue]:
        """Settings and draws."""
        draws = drawn(self._settings, self._chance, slot, drawn_before(before))
        return {
            "provider": self._plan.driver.provider,
            "model": self._plan.driver.model,
            "settings": self._settings.model_dump(mode="json"),
            **draws._asdict(),
        }

    def wait_before(self, slot: SlotState) -> float:
        """Never: a provider made of chance needs no rest."""
        del slot
        return 0.0

    def attempt(self, order: AttemptOrder, place: str, cancelled: Cancelled) -> AttemptResult:
        """One attempt; see the module's text."""
        told = validate(_Told, order.driver)
        draws = Draws(told.base, told.chance, told.ending)
        began = self._around.monotonic()
        detail: str | None = STOPPED
        if self._interrupted(told.settings.sleep_seconds, cancelled):
            found = Simulated(EndClass.INTERRUPTED, passed=False)
            usage = _NOTHING.model_copy(update={"wall_seconds": round(self._around.monotonic() - began, 3)})
        else:
            found = simulated_attempt(told.settings, draws, order.arm)
            detail, usage = _DETAILS.get(found.ended), _usage(draws, told.settings)
        return AttemptResult(
            ended=found.ended,
            detail=detail,
            model_reported=OTHER_MODEL if found.ended is EndClass.VOID else told.model,
            usage=usage,
            files=HeldTree.of_files(_left(found) if found.ended in _LEAVE_A_TREE else {}),
            residual=HostResidualRow(
                schema_version=1,
                event_contract="host-residual-v1",
                status=ResidualStatus.CLEAN,
                layers=(),
            ),
            events=skill_events(order.arm),
            observed=self._observed(place),
        )

    def _interrupted(self, seconds: float, cancelled: Cancelled) -> bool:
        until = self._around.monotonic() + seconds
        while not cancelled():
            left = until - self._around.monotonic()
            if left <= 0:
                return False
            self._around.sleep(min(left, _SLICE))
        return True

    def _observed(self, place: str) -> Observed:
        """What is true of a pure function; where the tier can do without proof, none is claimed."""
        if self._plan.registry is RegistrySchema.PAIRED_PROFILE:
            return Observed()
        row = AuditRow(
            actor="tested-agent",
            operation=Operation.OPEN,
            access_mode=AccessMode.WRITE,
            path=f"{place}/collected/{ANSWER}",
        )
        return Observed(_SAFE, (row,), audit_complete=True, roots_enforced=True)

    def assay(self, batch: int, phase: str, arm: Arm) -> AssayResult:
        """Nothing to find: it reads no file that a skill could lie in."""
        del batch, phase, arm
        return "not_applicable"

    def grade(self, task: PlanTask, files: HeldTree) -> tuple[Reward, Reward]:
        """What the answer says of itself, read twice; the task's own tests would see no work."""
        del task
        return _graded(files), _graded(files)


def _left(found: Simulated) -> dict[str, bytes]:
    passed = b"true" if found.passed else b"false"
    return {ANSWER: b'{"reward":' + (b"1" if found.passed else b"0") + b',"solved":' + passed + b"}\n"}


def _graded(files: HeldTree) -> Reward:
    answer = files.tree.find(ANSWER)
    try:
        data = b"" if answer is None else files.blob(answer)
        value = read_json(data, Profile.DOCUMENT, want_object=True)
    except EvidenceError:
        return FAILED
    reward = value.get("reward") if isinstance(value, dict) else None
    return read_reward(None, b"1" if reward == 1 else b"0") if reward in (0, 1) else FAILED


def _usage(draws: Draws, settings: SimulatedSettings) -> Usage:
    """Amounts that look like work and follow from the draws."""
    sent, received = 2_000 + int(6_000 * draws.chance), 300 + int(900 * draws.base)
    return Usage(
        input_tokens=sent,
        cached_tokens=sent // 2,
        output_tokens=received,
        reasoning_tokens=received // 3,
        tool_calls=1 + int(8 * draws.ending),
        cost_units=(sent + 4 * received) / 1_000_000,
        wall_seconds=settings.sleep_seconds,
    )


def skill_events(arm: Arm) -> SkillEventsRow:
    """What a recording of an attempt would have shown: in the arm `full` the skill is used, first of all."""
    invoked = [
        {
            "skill": SKILL,
            "event_index": 0,
            "tool_use_id": "call-1",
            "matching_tool_result": True,
            "completed": True,
        }
    ]
    return validate(
        SkillEventsRow,
        {
            "schema_version": 1,
            "event_contract": "skill-events-v2",
            "driver": "simulated",
            "unverifiable": None,
            "events": {
                "schema_version": 1,
                "event_contract_version": "skill-events-v2",
                "event_contract_status": "stable",
                "skill_events_available": True,
                "task_tool_events_available": True,
                "first_task_tool_event_index": 1,
                "event_index_source": "fixture-modeled-single-monotonic-stream",
                "skills_invoked": invoked if arm is Arm.FULL else [],
            },
        },
    )
