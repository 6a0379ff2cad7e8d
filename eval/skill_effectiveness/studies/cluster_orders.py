"""What is shipped to another machine and what it says of itself, as records (studies.md section 3).

| record | for | names by digest |
|---|---|---|
| `AttemptOrder` | one attempt | the arm's files; environment, instruction and brief of the task |
| `GradeOrder` | grading one tree | the tree and the task's hidden tests, which no other order names |
| `AssayOrder` | looking at what an agent is shown | the arm's files |

An order is the canonical form of its record and named by that form's digest. None of them holds a credential,
a key, the seed, a path of a machine, or another slot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import Field, JsonValue, model_validator

from skill_effectiveness.evidence.canonical import digest_bytes, dump
from skill_effectiveness.evidence.documents import Canonical, RuleBroken, parse
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.protocol.document import DigestText, FrozenModel, Rate, to_json
from skill_effectiveness.studies.attempt_records import AttemptOrder, RootId, Salt
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.plan import PlanTask
from skill_effectiveness.studies.rewards import Reward
from skill_effectiveness.studies.rows import BatchNumber, HostName
from skill_effectiveness.studies.study_file import Isolation
from skill_effectiveness.studies.words import Arm, GradeState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.studies.plan import StudyPlan

ShortText = Annotated[str, Field(min_length=1, max_length=256)]


class GradeOrder(FrozenModel):
    """Grading one tree twice; it tells neither arm nor slot, and may be carried out again at no cost.

    Attributes:
        task: with the digest of its tests.
        work: digest of the tree that is graded.
        workdir: where the tree lies in a sandbox.
        env: variables of task and tests.
        inputs: `work` and the tests, sorted.
    """

    kind: Literal["grade"]
    root_id: RootId
    plan_digest: DigestText
    task: PlanTask
    work: DigestText
    workdir: str
    env: dict[str, str]
    driver: dict[str, JsonValue]
    isolation: Isolation
    inputs: tuple[DigestText, ...]
    runtime_manifest_hash: DigestText


class AssayOrder(FrozenModel):
    """One exposure assay of an arm where its agents run.

    Attributes:
        salt: what nonce and mark of this one assay are made from; it opens nothing else.
        inputs: the arm's tree alone.
    """

    kind: Literal["assay"]
    root_id: RootId
    plan_digest: DigestText
    batch: BatchNumber
    phase: Literal["open", "close"]
    arm: Arm
    salt: Salt
    driver: dict[str, JsonValue]
    isolation: Isolation
    inputs: tuple[DigestText, ...]
    runtime_manifest_hash: DigestText


Order = AttemptOrder | GradeOrder | AssayOrder

_KINDS: Final[dict[str, type[AttemptOrder | GradeOrder | AssayOrder]]] = {
    "attempt": AttemptOrder,
    "grade": GradeOrder,
    "assay": AssayOrder,
}


def order_bytes(order: Order) -> bytes:
    """An order as it is shipped; the digest of these bytes names it."""
    return dump(to_json(order))


def read_order(data: bytes) -> tuple[Order, str]:
    """An order as it arrives, and the digest that names it.

    Raises:
        StudyError: `order_invalid`: it is of no kind that this version knows, or not of its form.
    """
    try:
        value = read_json(data, Profile.WIRE, want_object=True)
        kind = value.get("kind") if isinstance(value, dict) else None
        model = _KINDS.get(kind) if isinstance(kind, str) else None
        if model is None:
            raise _no_order()
        return parse(model, data, Profile.WIRE, canonical=Canonical.BARE), digest_bytes(data)
    except EvidenceError as error:
        raise _no_order() from error


def _no_order() -> StudyError:
    sentence = "an order is not of its form; let coordinator and workers run the same version."
    return StudyError(StudyCode.ORDER_INVALID, "order", sentence)


class WorkerFacts(FrozenModel):
    """What a worker says of itself.

    Attributes:
        host: its name.
        pid: of the worker's process.
        versions: of interpreter and libraries that decide what an attempt comes to.
        runtime_manifest_hash: of the program it runs.
        executable_hash, cli_version: of the agent it would start; null where none can be bound.
    """

    host: HostName
    pid: Annotated[int, Field(ge=1)]
    versions: dict[str, ShortText]
    runtime_manifest_hash: DigestText
    executable_hash: DigestText | None
    cli_version: ShortText | None


class Likeness(FrozenModel):
    """What a worker has to be like to be given orders."""

    executable_hash: DigestText
    cli_version: ShortText
    runtime_manifest_hash: DigestText


def likeness_of(plan: StudyPlan) -> Likeness:
    """What a plan demands of every worker."""
    return Likeness(
        executable_hash=plan.driver.executable_hash,
        cli_version=plan.driver.cli_version,
        runtime_manifest_hash=plan.runtime_manifest_hash,
    )


def unlike(facts: WorkerFacts, wanted: Likeness) -> str | None:
    """In which field a worker differs from what the plan froze; None for a like one."""
    for field in ("runtime_manifest_hash", "executable_hash", "cli_version"):
        if getattr(facts, field) != getattr(wanted, field):
            return field
    return None


class _Reward(FrozenModel):
    state: GradeState
    reward: Rate | None
    secondary: dict[str, float]

    @model_validator(mode="after")
    def _valid_alone_has_a_reward(self) -> Self:
        if (self.state is GradeState.VALID) is (self.reward is None):
            raise RuleBroken("A valid grade has a reward, and no other has.")
        return self


class _Rewards(FrozenModel):
    rewards: tuple[_Reward, _Reward]


def rewards_bytes(rewards: Sequence[Reward]) -> bytes:
    """What a grade order comes to, as it is shipped back."""
    told = [
        {"state": str(each.state), "reward": each.reward, "secondary": dict(each.secondary)}
        for each in rewards
    ]
    return dump({"rewards": told})


def read_rewards(data: bytes) -> tuple[Reward, Reward]:
    """Two rewards as they came back.

    Raises:
        EvidenceError: they are none; a reward outside 0 to 1, or one beside a failed grade, is none.
    """
    held = parse(_Rewards, data, Profile.WIRE)
    first, second = (Reward(each.state, each.reward, each.secondary) for each in held.rewards)
    return first, second
