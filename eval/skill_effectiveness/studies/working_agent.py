"""A real agent program as the driver of a study: one work call an attempt (studies.md sections 3 and 4).

Each attempt has a working copy, a configuration home and a temporary folder of its own, made for it from
frozen inputs and removed once it is over. The arm's treatment is laid by the adapter, and nothing else is:
what an agent of another arm, or the user's own one, has never comes near it.

What is observed of isolation follows from what was around the call (`confining`): accesses are recorded and
roots kept where the study demands it and the machine can; a session is known to be new by its name and its
empty folders. Whether a provider remembers is unknown, always. So a real agent serves the tier that waives
this proof, and the other is refused when the study is checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.root import state_path
from skill_effectiveness.execution import SessionFolders
from skill_effectiveness.protocol.event_rows import HOST_RESIDUAL_CONTRACT, HostResidualRow, ResidualStatus
from skill_effectiveness.providers import CallOutcome, Ending, WarningCode, WorkCall
from skill_effectiveness.providers.driving import skill_events_of, tool_calls_of
from skill_effectiveness.providers.prices import ModelPrice, cost_of, disagree
from skill_effectiveness.providers.usage import MOST_COST, counter
from skill_effectiveness.studies.agent import AttemptResult
from skill_effectiveness.studies.confining import confinement_of, is_breach, observed_of, session_evidence
from skill_effectiveness.studies.endings import COST_DIFFERS, LAUNCH_DIFFERS, class_of, wait_before
from skill_effectiveness.studies.exposure import Exposure
from skill_effectiveness.studies.grader import ScriptOrder, grade_tree
from skill_effectiveness.studies.rows import Usage
from skill_effectiveness.studies.task_folder import ENVIRONMENT
from skill_effectiveness.studies.treatment_diff import is_as_frozen
from skill_effectiveness.studies.words import Arm, EndClass
from skill_effectiveness.studies.workplace import Collected, collect, lay_workplace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.providers import Launch, Provider
    from skill_effectiveness.studies.agent import AgentStudy, AssayResult, Cancelled
    from skill_effectiveness.studies.attempt_records import AttemptOrder
    from skill_effectiveness.studies.file_trees import FileTree, HeldTree
    from skill_effectiveness.studies.plan import PlanTask
    from skill_effectiveness.studies.rewards import Reward
    from skill_effectiveness.studies.root import StudyRoot
    from skill_effectiveness.studies.state import SlotState
    from skill_effectiveness.trials.allocation import Slot

_TREE_LEFT: Final = frozenset(
    {
        EndClass.COMPLETED,
        EndClass.NO_ANSWER,
        EndClass.CRASHED,
        EndClass.REFUSED,
        EndClass.TIMEOUT,
        EndClass.LIMIT,
    }
)
"""Classes after which what lies in the working copy is kept: the agent had it to itself until then."""

_ONE: Final = 1


class WorkingAgent:
    """The agent program of a study at its work, wherever that program is.

    Args:
        study: stays the caller's, and open as long.
        provider: the adapter, bound to its program.
        hidden: what no agent may be shown, beside the state root: the folder of the study.
        sessions: ids that were seen, kept by whoever makes one agent after the other; None for none.
    """

    def __init__(
        self,
        study: AgentStudy,
        provider: Provider,
        hidden: Iterable[Path] = (),
        sessions: set[str] | None = None,
    ) -> None:
        self._study = study
        self._plan = study.plan
        self._provider = provider
        self._around = study.around
        self._hidden = (*hidden, state_path(study.around))
        self._exposure = Exposure(study, provider, self._hidden)
        self._sessions: set[str] = set() if sessions is None else sessions

    def attempt(self, order: AttemptOrder, place: str, cancelled: Cancelled) -> AttemptResult:
        """One attempt; see the module's text."""
        del place
        task = self._study.task(order.task_id)
        environment = self._study.task_files(order.task_id, ENVIRONMENT)
        began = self._around.monotonic()
        with SessionFolders(self._around) as session:
            workplace = lay_workplace(
                session, self._around.fs, environment, self._study.payload_files(str(order.arm))
            )
            call = WorkCall(
                prompt=task.instruction.decode("utf-8"),
                working_copy=workplace.app,
                model=self._plan.driver.model,
                timeout_seconds=_seconds(order, task.limits.agent_seconds),
                mount=workplace.mount,
                confinement=confinement_of(order.isolation, task.workdir, self._hidden),
                environment=task.environment_env,
                approve=_as_frozen(order, task.instruction.decode("utf-8"), environment.tree),
            )
            outcome = self._provider.work(call, around=self._around, cancelled=cancelled)
            ended, detail = class_of(outcome.ending, outcome.error_kind)
            if any(warning.code is WarningCode.LAUNCH_DIFFERS for warning in outcome.warnings):
                detail = LAUNCH_DIFFERS
            if is_breach(outcome.observation, self._around.fs) and ended is not EndClass.COMPLETED:
                # Of an attempt that completed, its trial finds that itself, and marks it.
                ended, detail = EndClass.CONTAMINATED, None
            collected: Collected | None = None
            if ended in _TREE_LEFT and outcome.ending is not Ending.UNSTARTABLE:
                collected = collect(self._around.fs, workplace, environment)
        usage = _usage(self._provider.name, outcome, _price(order), self._around.monotonic() - began)
        if detail is None and _contradicts(outcome, _price(order)):
            detail = COST_DIFFERS
        return self._result(outcome, ended, detail, collected, usage)

    def _result(
        self,
        outcome: CallOutcome,
        ended: EndClass,
        detail: str | None,
        collected: Collected | None,
        usage: Usage,
    ) -> AttemptResult:
        recording = outcome.recording
        return AttemptResult(
            ended=ended,
            detail=detail if outcome.limit is None else str(outcome.limit),
            model_reported=outcome.observed_model,
            usage=usage,
            files=None if collected is None else collected.files,
            oddities=() if collected is None else collected.oddities,
            residual=_residual(self._exposure),
            events=skill_events_of(self._provider.name, recording),
            observed=observed_of(
                outcome.observation,
                session_evidence(outcome.session_id, began_empty=outcome.began_empty, known=self._sessions),
            ),
            stream=None if recording is None else recording.stdout,
            stderr=None if recording is None else recording.stderr,
        )

    def assay(self, batch: int, phase: str, arm: Arm) -> AssayResult:
        """See `exposure`."""
        return self._exposure.assay(batch, phase, arm)

    def grade(self, task: PlanTask, files: HeldTree) -> tuple[Reward, Reward]:
        """Run the task's own tests on the tree, twice."""
        held = self._study.task(task.task_id)
        order = ScriptOrder(
            work=files,
            scripts=self._study.inputs.held(task.grader_hash),
            workdir=held.workdir,
            seconds=task.limits.verifier_seconds,
            sandbox=self._plan.isolation.sandbox,
            env={**held.environment_env, **held.verifier_env},
        )
        return grade_tree(order, around=self._around)


class PlannedAgent(WorkingAgent):
    """The agent program of a planned study, as its run knows it: it says what orders say of it.

    Args:
        study: open and planned; stays the caller's, and open as long.
        provider: the adapter, bound to its program.
        hidden: see `WorkingAgent`.
    """

    def __init__(self, study: StudyRoot, provider: Provider, hidden: Iterable[Path] = ()) -> None:
        super().__init__(study, provider, hidden)
        self._frozen = study.plan.driver
        self._price = study.study().price()
        self._launches = study.frozen().launches

    def told(self, slot: Slot, before: SlotState) -> Mapping[str, JsonValue]:
        """Which program and model, what it costs and what it is to be started with: one for all of an arm."""
        del before
        return {
            **({} if self._price is None else {"price": self._price.model_dump(mode="json")}),
            "launch": self._launches[Arm(slot.arm)],
            "provider": self._frozen.provider,
            "executable_hash": self._frozen.executable_hash,
            "cli_version": self._frozen.cli_version,
            "model": self._frozen.model,
        }

    def wait_before(self, slot: SlotState) -> float:
        """Longer after each provider error in a row."""
        return wait_before(slot)


def _as_frozen(order: AttemptOrder, prompt: str, environment: FileTree) -> Callable[[Launch], bool]:
    """Whether what is about to be started is what was frozen for the arm (field-failures.md F33)."""
    frozen = str(order.driver["launch"])
    return lambda launch: is_as_frozen(launch.shape(prompt), frozen, environment)


def _seconds(order: AttemptOrder, limit: float) -> float:
    """How long an attempt may take: the task's own limit, and what is left of the trial's budget."""
    left = order.budget.wall_time_seconds
    return limit if left is None else min(limit, left)


def _price(order: AttemptOrder) -> ModelPrice | None:
    """What the model costs, as the order states it."""
    stated = order.driver.get("price")
    return None if stated is None else validate(ModelPrice, stated)


def _usage(provider: str, outcome: CallOutcome, price: ModelPrice | None, seconds: float) -> Usage:
    """What a call used; a cost that its program tells goes before one by stated prices."""
    told = outcome.usage
    cost = told.cost_units
    if cost is None and price is not None:
        cost = cost_of(told, price)
    # Sums that an adapter made of what a program told are bounded as what it told: beyond that, unknown.
    return Usage(
        input_tokens=counter(told.input_tokens),
        cached_tokens=counter(told.cached_input_tokens),
        output_tokens=counter(told.output_tokens),
        reasoning_tokens=counter(told.reasoning_output_tokens),
        tool_calls=tool_calls_of(provider, outcome.recording),
        cost_units=cost if cost is None or cost <= MOST_COST else None,
        wall_seconds=round(seconds, 3),
    )


def _contradicts(outcome: CallOutcome, price: ModelPrice | None) -> bool:
    """Whether a program tells another cost than the stated prices come to."""
    told = outcome.usage.cost_units
    priced = None if price is None else cost_of(outcome.usage, price)
    return told is not None and priced is not None and disagree(told, priced)


def _residual(exposure: Exposure) -> HostResidualRow:
    """Whether anything of the treatment lay about, as the opening assay of the batch showed it."""
    return HostResidualRow(
        schema_version=_ONE,
        event_contract=HOST_RESIDUAL_CONTRACT,
        status=ResidualStatus.CLEAN if exposure.shown else ResidualStatus.UNVERIFIED,
        layers=(),
    )
