"""Where the trials of a study went and what they used, counted from the tables (studies.md section 7).

The flow follows CONSORT: planned, started, exposed, completed, graded, analysed, with the reasons why slots
were lost on the way. An amount that one call does not tell is unknown as a whole, and no sum without it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from skill_effectiveness.protocol.document import FrozenModel

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skill_effectiveness.studies.analysis.comparisons import Comparison
    from skill_effectiveness.studies.tables import JudgementRow, Tables, TrialRow

Number = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0)]


class ArmFlow(FrozenModel):
    """The slots of one arm on their way.

    Attributes:
        planned: tasks times samples.
        closed: never started, because the evidence sufficed before.
        started: with at least one attempt.
        exposed: known to have been shown the treatment of the arm.
        completed: ended as `completed`.
        graded: with a valid grade.
        counted_failure: without a value of their own, counted as 0 by the estimand.
        analysed: with a value in a task of the primary comparison; of other arms, with a value.
        lost: slots without a value, by how they ended.
    """

    planned: Number
    closed: Number
    started: Number
    exposed: Number
    completed: Number
    graded: Number
    counted_failure: Number
    analysed: Number
    lost: dict[str, Number]


class Spent(FrozenModel):
    """What calls used; null is unknown, because at least one of them does not tell.

    Attributes:
        calls: attempts of trials, or votes.
        tokens: in and out.
        cost_units: in the provider's unit.
        wall_seconds: summed over the calls, not elapsed.
    """

    calls: Number
    tokens: Number | None
    cost_units: Amount | None
    wall_seconds: Amount | None


class Usage(FrozenModel):
    """What the study used, by arm, for votes, and of trials and votes together."""

    arms: dict[str, Spent]
    votes: Spent
    total: Spent


def flow_of(tables: Tables, arms: Iterable[str], planned: int, primary: Comparison) -> dict[str, ArmFlow]:
    """The flow of every arm.

    Args:
        tables: the three tables.
        arms: their names.
        planned: slots of one arm, tasks times samples.
        primary: the primary comparison, whose slots of tasks with a difference are analysed.
    """
    analysed = {
        held.slot
        for task in primary.tasks
        if primary.difference(task) is not None
        for held in (*task.treatment, *task.comparator)
        if held.value is not None
    }
    if primary.paired_values:
        # A preference belongs to both trials of its pair, and a task has one slot per sample in each arm.
        by_id = {row.trial_id: row.slot for row in tables.trials}
        analysed |= {by_id[pair.comparator] for pair in tables.pairs if by_id[pair.treatment] in analysed}
    return {arm: _arm_flow(arm, tables.trials, planned, analysed) for arm in arms}


def _arm_flow(arm: str, trials: Iterable[TrialRow], planned: int, analysed: set[int]) -> ArmFlow:
    rows = [row for row in trials if row.arm == arm]
    lost = Counter(row.end_class for row in rows if row.counted == "missing")
    compared = arm in {"off", "full"}
    return ArmFlow(
        planned=planned,
        closed=planned - len(rows),
        started=sum(row.attempts > 0 for row in rows),
        exposed=sum(row.exposed == "yes" for row in rows),
        completed=sum(row.end_class == "completed" for row in rows),
        graded=sum(row.grade_hash is not None for row in rows),
        counted_failure=sum(row.counted == "failure" for row in rows),
        analysed=sum(row.slot in analysed if compared else row.counted != "missing" for row in rows),
        lost=dict(sorted(lost.items())),
    )


def usage_of(tables: Tables, arms: Iterable[str]) -> Usage:
    """What was used, from the rows of trials and votes."""
    spent = {arm: _of_trials([row for row in tables.trials if row.arm == arm]) for arm in arms}
    votes = _of_votes(tables.judgements)
    return Usage(arms=spent, votes=votes, total=_together([*spent.values(), votes]))


def _of_trials(rows: Iterable[TrialRow]) -> Spent:
    started = [row for row in rows if row.attempts > 0]
    return Spent(
        calls=sum(row.attempts for row in started),
        tokens=_whole([_both(row.input_tokens, row.output_tokens) for row in started]),
        cost_units=_sum([row.cost_units for row in started]),
        wall_seconds=_sum([row.wall_seconds for row in started]),
    )


def _of_votes(rows: Iterable[JudgementRow]) -> Spent:
    votes = list(rows)
    seconds = [None if row.latency_ms is None else row.latency_ms / 1000 for row in votes]
    return Spent(
        calls=len(votes),
        tokens=_whole([row.tokens for row in votes]),
        cost_units=_sum([row.cost_units for row in votes]),
        wall_seconds=_sum(seconds),
    )


def _together(parts: list[Spent]) -> Spent:
    return Spent(
        calls=sum(part.calls for part in parts),
        tokens=_whole([part.tokens for part in parts]),
        cost_units=_sum([part.cost_units for part in parts]),
        wall_seconds=_sum([part.wall_seconds for part in parts]),
    )


def _both(sent: int | None, received: int | None) -> int | None:
    return None if sent is None or received is None else sent + received


def _whole(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _sum(values: list[float | None]) -> float | None:
    """Sorted first, so that the order of the rows changes no digit."""
    known = sorted(value for value in values if value is not None)
    return sum(known) if len(known) == len(values) else None


def share_of(spent: Spent, tasks: int, wanted: int) -> tuple[int | None, float | None]:
    """Tokens and cost units that `wanted` tasks would use if they were like the `tasks` that used this."""
    tokens = None if spent.tokens is None else -(-spent.tokens * wanted // tasks)
    cost = None if spent.cost_units is None else spent.cost_units * wanted / tasks
    return tokens, cost


def tasks_run(trials: Iterable[TrialRow]) -> int:
    """How many tasks had a trial."""
    return len({row.task_id for row in trials if row.attempts > 0})
