"""The class table: what an ending counts for, and what is done about its slot next."""

from __future__ import annotations

import pytest

from skill_effectiveness.providers.calls import Ending, ProviderErrorKind
from skill_effectiveness.studies.endings import (
    SlotStep,
    Step,
    blocks,
    class_of,
    counts_as,
    drawn_before,
    next_step,
    rule_of,
    wait_before,
)
from skill_effectiveness.studies.plan import PlanAnalysis
from skill_effectiveness.studies.state import AttemptState, SlotState
from skill_effectiveness.studies.words import DEFAULT_RULES, EndClass, GradeState, Rule, Sides, Stopping

DIGEST = "sha256:" + "0" * 64


def analysis(**rules: str) -> PlanAnalysis:
    """The analysis of a plan, with these rules in place of the usual ones."""
    estimand = dict(DEFAULT_RULES) | {EndClass(name): Rule(rule) for name, rule in rules.items()}
    return PlanAnalysis(
        alpha=0.05,
        sides=Sides.TWO,
        stopping=Stopping.FIXED,
        estimand=estimand,
        base_rate=0.5,
        task_sd=0.15,
    )


def attempt(ended: str | None, detail: str | None = None, number: int = 1) -> AttemptState:
    tree = DIGEST if ended in {"completed", "timeout", "limit"} else None
    return AttemptState(number, DIGEST, "t", None if ended is None else EndClass(ended), detail, tree)


def slot(*attempts: AttemptState, ended: str | None = None, state: GradeState | None = None) -> SlotState:
    return SlotState(1, attempts, None if ended is None else EndClass(ended), state=state)


@pytest.mark.parametrize(
    ("ending", "error", "found"),
    [
        (Ending.SUCCESS, None, ("completed", None)),
        (Ending.NO_ANSWER, None, ("no_answer", None)),
        (Ending.ANSWER_INVALID, None, ("no_answer", None)),
        (Ending.REFUSED, None, ("refused", None)),
        (Ending.STREAM_INVALID, None, ("crashed", None)),
        (Ending.PROVIDER_ERROR, ProviderErrorKind.RATE_LIMITED, ("provider_error", "rate_limited")),
        (Ending.MODEL_MISMATCH, None, ("void", None)),
        (Ending.LIMIT, None, ("limit", None)),
        (Ending.TIMEOUT, None, ("timeout", None)),
        (Ending.CANCELLED, None, ("interrupted", None)),
        (Ending.UNSTARTABLE, None, ("crashed", "unstartable")),
    ],
)
def test_every_ending_of_a_call_has_a_class(
    ending: Ending, error: ProviderErrorKind | None, found: tuple[str, str | None]
) -> None:
    """S21: the studies column of providers.md, Endings."""
    ended, detail = class_of(ending, error)
    assert (str(ended), detail) == found


def test_a_judges_ending_has_no_class() -> None:
    """A call that works on a task never ends with it."""
    with pytest.raises(KeyError):
        class_of(Ending.TOOL_ACTIVITY)


@pytest.mark.parametrize(
    ("ended", "rule"),
    [
        ("completed", "value"),
        ("no_answer", "failure"),
        ("crashed", "failure"),
        ("refused", "failure"),
        ("timeout", "failure"),
        ("limit", "failure"),
        ("provider_error", "rerun"),
        ("interrupted", "rerun"),
        ("contaminated", "missing"),
        ("void", "missing"),
    ],
)
def test_the_default_rules(ended: str, rule: str) -> None:
    """S21: the rule of every class."""
    assert rule_of(EndClass(ended), analysis()) == rule


def test_fixed_rules_stay_whatever_a_plan_says() -> None:
    """S22: completed, contaminated and void have one rule each."""
    bent = analysis(completed="failure", contaminated="failure", void="rerun")
    assert [rule_of(EndClass(name), bent) for name in ("completed", "contaminated", "void")] == [
        "value",
        "missing",
        "missing",
    ]


@pytest.mark.parametrize(
    ("ended", "detail", "blocked"),
    [
        ("provider_error", "rate_limited", False),
        ("provider_error", "server_error", False),
        ("provider_error", "connection_lost", False),
        ("provider_error", "auth_unavailable", True),
        ("provider_error", "quota_unavailable", True),
        ("provider_error", "model_unavailable", True),
        ("provider_error", None, True),
        ("crashed", "unstartable", True),
        ("crashed", None, False),
        ("timeout", None, False),
    ],
)
def test_what_blocks_a_run(ended: str, detail: str | None, *, blocked: bool) -> None:
    """S21: what is wrong with every slot alike stops the run."""
    assert blocks(EndClass(ended), detail) is blocked


@pytest.mark.parametrize(
    ("held", "step"),
    [
        (slot(), SlotStep(Step.START)),
        (slot(attempt(None)), SlotStep(Step.RECOVER)),
        (slot(attempt("completed")), SlotStep(Step.END, EndClass.COMPLETED)),
        (slot(attempt("crashed")), SlotStep(Step.END, EndClass.CRASHED)),
        (slot(attempt("void")), SlotStep(Step.END, EndClass.VOID)),
        (slot(attempt("provider_error", "server_error")), SlotStep(Step.START)),
        (slot(attempt("provider_error", "auth_unavailable")), SlotStep(Step.START)),
        (slot(attempt("interrupted", "killed"), attempt("interrupted")), SlotStep(Step.START)),
        (slot(*[attempt("interrupted")] * 3), SlotStep(Step.END, EndClass.INTERRUPTED)),
        (slot(*[attempt("provider_error", "auth_unavailable")] * 4), SlotStep(Step.START)),
        (
            slot(*[attempt("provider_error", "auth_unavailable")] * 5),
            SlotStep(Step.END, EndClass.PROVIDER_ERROR),
        ),
        (slot(attempt("completed"), ended="completed"), SlotStep(Step.GRADE, EndClass.COMPLETED)),
        (slot(attempt("timeout"), ended="timeout"), SlotStep(Step.NOTHING, EndClass.TIMEOUT)),
        (
            slot(attempt("completed"), ended="completed", state=GradeState.VALID),
            SlotStep(Step.NOTHING, EndClass.COMPLETED),
        ),
        (slot(attempt("completed"), ended="void"), SlotStep(Step.NOTHING, EndClass.VOID)),
    ],
)
def test_the_next_step(held: SlotState, step: SlotStep) -> None:
    """S21 S26: attempts are used up, then the slot ends; nothing that ended is started again."""
    assert next_step(held, analysis(), attempts=3) == step


def test_a_tree_that_gave_no_grade_is_graded_once_more() -> None:
    """S14: grader_failed is graded again on resume, then missing."""
    held = slot(attempt("completed"), ended="completed", state=GradeState.GRADER_FAILED)
    assert next_step(held, analysis(), 3, gradings=1).step is Step.GRADE
    assert next_step(held, analysis(), 3, gradings=2).step is Step.NOTHING


def test_a_tree_is_graded_as_it_stands_where_the_plan_says_so() -> None:
    """S21: the rule graded."""
    held = slot(attempt("timeout"), ended="timeout")
    assert next_step(held, analysis(timeout="graded"), 3).step is Step.GRADE
    assert counts_as(EndClass.TIMEOUT, GradeState.VALID, analysis(timeout="graded")) == "value"
    assert counts_as(EndClass.TIMEOUT, None, analysis(timeout="graded")) == "missing"


@pytest.mark.parametrize(
    ("ended", "state", "counted"),
    [
        ("completed", GradeState.VALID, "value"),
        ("completed", GradeState.GRADER_INVALID, "missing"),
        ("completed", None, "missing"),
        ("crashed", None, "failure"),
        ("interrupted", None, "missing"),
        ("void", GradeState.VALID, "missing"),
        ("contaminated", GradeState.VALID, "missing"),
    ],
)
def test_what_a_slot_counts_for(ended: str, state: GradeState | None, counted: str) -> None:
    """S21 S22: value, failure or missing."""
    assert counts_as(EndClass(ended), state, analysis()) == counted


def test_only_endings_of_their_own_are_drawn() -> None:
    """What a machine does to a run takes no draw from an agent made of chance."""
    held = slot(attempt("interrupted", "killed"), attempt("interrupted", "simulated"), attempt("crashed"))
    assert drawn_before(held) == 2
    assert drawn_before(slot(attempt("interrupted", "stopped"))) == 0


def test_rests_double_and_end() -> None:
    """A provider in trouble is left alone longer each time, and not for ever."""
    errors = [attempt("provider_error", "server_error")] * 9
    waits = [wait_before(slot(*errors[:number])) for number in (0, 1, 2, 3, 9)]
    assert waits == [0.0, 2.0, 4.0, 8.0, 120.0]
    assert wait_before(slot(*errors[:3], attempt("interrupted"))) == 0.0
