"""The simulated agent: its draws, its endings, what it leaves and what it claims."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.canonical import draws as words
from skill_effectiveness.studies.attempt_records import AttemptOrder
from skill_effectiveness.studies.chance import Chance
from skill_effectiveness.studies.file_trees import HeldTree
from skill_effectiveness.studies.plan import Isolation
from skill_effectiveness.studies.simulated_driver import (
    ANSWER,
    Draws,
    SimulatedAgent,
    drawn,
    simulated_attempt,
)
from skill_effectiveness.studies.state import AttemptState, SlotState
from skill_effectiveness.studies.study_file import SimulatedSettings
from skill_effectiveness.studies.words import Arm, Audit, EndClass, Network, Sandbox
from skill_effectiveness.trials.allocation import Slot
from tests.support.crash_images import fast_folder
from tests.support.private import surroundings
from tests.support.studies import bench, example

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.studies.plan import StudyPlan

SEED = bytes(range(32))
DIGEST = "sha256:" + "0" * 64
SETTINGS = SimulatedSettings(base_rate=0.5, task_sd=0.0, effect=0.25)
UNLIMITED = {"tokens": None, "wall_time_seconds": None, "tool_calls": None, "cost_units": None}


@pytest.fixture(scope="module")
def plan() -> Iterator[StudyPlan]:
    """The plan of the example."""
    with fast_folder() as folder, bench(folder) as held:
        yield held.plan(example(folder))


def slot(number: int = 1, arm: str = "off", sample: int = 1) -> Slot:
    return Slot(number, "t1", arm, sample)


def test_u_is_the_first_word_of_its_use() -> None:
    """S54: drawn again with nothing but the seed's stream."""
    word = next(words(SEED, "simulated/t1/full/2"))
    found = drawn(SETTINGS, Chance(SEED), slot(arm="full", sample=2), 0)
    assert found.chance == (word + 0.5) / 2**32
    assert found.base == 0.5


def test_the_base_rate_is_the_tasks_and_stays_between_0_and_1() -> None:
    """S54: b = clip(base_rate + task_sd z), the same for both arms and all samples."""
    spread = SimulatedSettings(base_rate=0.5, task_sd=1.0, effect=0.0)
    chance = Chance(SEED)
    bases = {
        drawn(spread, chance, slot(arm=arm, sample=sample), 0).base
        for arm in ("off", "full")
        for sample in (1, 2)
    }
    assert len(bases) == 1
    many = [drawn(spread, chance, Slot(1, f"t{number}", "off", 1), 0).base for number in range(200)]
    assert min(many) == 0.0
    assert max(many) == 1.0
    assert 0.4 < sum(many) / len(many) < 0.6


def test_the_number_of_a_slot_does_not_matter() -> None:
    """Outcomes follow from seed, task, arm and sample."""
    assert drawn(SETTINGS, Chance(SEED), slot(1), 0) == drawn(SETTINGS, Chance(SEED), slot(99), 0)
    assert drawn(SETTINGS, Chance(SEED), slot(), 0).ending != drawn(SETTINGS, Chance(SEED), slot(), 1).ending
    assert drawn(SETTINGS, Chance(SEED), slot(), 0).chance == drawn(SETTINGS, Chance(SEED), slot(), 1).chance


@pytest.mark.parametrize(
    ("arm", "u", "passed"),
    [
        (Arm.OFF, 0.49, True),
        (Arm.OFF, 0.5, False),
        (Arm.FULL, 0.74, True),
        (Arm.FULL, 0.75, False),
        (Arm.REFERENCE, 0.49, True),
        (Arm.REFERENCE, 0.6, False),
    ],
)
def test_the_effect_is_the_full_arms_alone(arm: Arm, u: float, *, passed: bool) -> None:
    """A sample passes below b, and in the arm full below b + effect."""
    assert simulated_attempt(SETTINGS, Draws(0.5, u, 0.9), arm) == (EndClass.COMPLETED, passed)


@pytest.mark.parametrize(("effect", "u", "passed"), [(1.0, 0.999, True), (-1.0, 0.0, False)])
def test_rates_are_clipped(effect: float, u: float, *, passed: bool) -> None:
    """No effect leads beyond certainty."""
    settings = SimulatedSettings(base_rate=0.5, task_sd=0.0, effect=effect)
    assert simulated_attempt(settings, Draws(0.5, u, 0.9), Arm.FULL).passed is passed


@pytest.mark.parametrize(
    ("ending", "ended"),
    [
        (0.0, "crashed"),
        (0.09, "crashed"),
        (0.1, "timeout"),
        (0.29, "timeout"),
        (0.31, "completed"),
        (0.99, "completed"),
    ],
)
def test_endings_have_their_shares(ending: float, ended: str) -> None:
    """Classes follow each other on the line in the order of section 3."""
    settings = SimulatedSettings(
        base_rate=0.5, task_sd=0, effect=0, endings={EndClass.TIMEOUT: 0.2, EndClass.CRASHED: 0.1}
    )
    assert simulated_attempt(settings, Draws(0.5, 0.1, ending), Arm.OFF).ended == ended


def agent_of(plan: StudyPlan, settings: SimulatedSettings = SETTINGS) -> SimulatedAgent:
    return SimulatedAgent(plan, settings, Chance(SEED), surroundings())


def order_of(agent: SimulatedAgent, plan: StudyPlan, arm: Arm = Arm.OFF) -> AttemptOrder:
    held = slot(arm=str(arm))
    return AttemptOrder(
        kind="attempt",
        root_id="root-1",
        plan_digest=plan.plan_digest,
        slot=1,
        attempt=1,
        task_id="t1",
        arm=arm,
        sample=1,
        salt="0" * 64,
        driver=dict(agent.told(held, SlotState(1))),
        budget=plan.budgets.study,
        isolation=Isolation(sandbox=Sandbox.NONE, audit=Audit.NONE, network=Network.NONE),
        inputs=(DIGEST,),
        runtime_manifest_hash=DIGEST,
    )


def certain(**endings: float) -> SimulatedSettings:
    """Settings in which one class is certain."""
    held = {EndClass(name): rate for name, rate in endings.items()}
    return SimulatedSettings(base_rate=1.0, task_sd=0, effect=0, endings=held)


@pytest.mark.parametrize("ended", [str(ended) for ended in EndClass if ended is not EndClass.COMPLETED])
def test_every_class_can_be_had(plan: StudyPlan, ended: str) -> None:
    """S21: one attempt of each class, with what belongs to it."""
    agent = agent_of(plan, certain(**{ended: 1.0}))
    found = agent.attempt(order_of(agent, plan), "/place", lambda: False)
    assert found.ended == ended
    assert (found.model_reported == plan.driver.model) is (ended != "void")
    assert found.files is not None
    assert bool(found.files.tree.files) is (ended in {"timeout", "limit"})


def test_what_it_leaves_is_graded_by_what_it_says(plan: StudyPlan) -> None:
    """Reward 1 or 0, twice alike; a tree without the answer gives no grade."""
    for base, reward in ((1.0, 1.0), (0.0, 0.0)):
        agent = agent_of(plan, SimulatedSettings(base_rate=base, task_sd=0, effect=0))
        files = agent.attempt(order_of(agent, plan), "/place", lambda: False).files
        assert files is not None
        assert files is not None
        grades = agent.grade(plan.tasks[0], files)
        assert [grade.reward for grade in grades] == [reward, reward]
    for broken in ({}, {ANSWER: b"nonsense"}, {ANSWER: b'{"reward":2}'}, {ANSWER: b"[1]"}):
        assert [str(grade.state) for grade in agent.grade(plan.tasks[0], HeldTree.of_files(broken))] == [
            "grader_failed"
        ] * 2


def test_it_can_be_stopped(plan: StudyPlan) -> None:
    """S25: an attempt that takes an hour ends when it is told to."""
    agent = agent_of(plan, SimulatedSettings(base_rate=1, task_sd=0, effect=0, sleep_seconds=3_600))
    found = agent.attempt(order_of(agent, plan), "/place", lambda: True)
    assert (found.ended, found.detail) == (EndClass.INTERRUPTED, "stopped")
    assert found.files is not None
    assert found.files.tree.entries == ()


def test_an_attempt_of_its_runner_takes_no_draw(plan: StudyPlan) -> None:
    """A kill changes no outcome: the next attempt is drawn as the first would have been."""
    agent = agent_of(plan)
    killed = AttemptState(1, DIGEST, "t", EndClass.INTERRUPTED, "killed")
    assert agent.told(slot(), SlotState(1, (killed,))) == agent.told(slot(), SlotState(1))
    own = replace(killed, detail="simulated")
    assert agent.told(slot(), SlotState(1, (own,)))["ending"] != agent.told(slot(), SlotState(1))["ending"]


def test_its_order_holds_draws_and_no_seed(plan: StudyPlan) -> None:
    """S30: what travels is numbers; whoever has them cannot draw another slot's."""
    agent = agent_of(plan)
    order = order_of(agent, plan)
    assert SEED.hex() not in order.model_dump_json()
    assert set(order.driver) == {"provider", "model", "settings", "base", "chance", "ending"}


def test_where_the_tier_waives_nothing_is_claimed(plan: StudyPlan) -> None:
    """An advisory study of a simulation declares what it does without."""
    agent = agent_of(plan)
    observed = agent.attempt(order_of(agent, plan), "/place", lambda: False).observed
    assert (observed.evidence, observed.audit, observed.audit_complete) == (None, (), False)


def test_the_full_arm_uses_its_skill(plan: StudyPlan) -> None:
    """Skill events of a recording that never was: stable in both arms, an invocation in one."""
    agent = agent_of(plan)
    used = {}
    for arm in (Arm.OFF, Arm.FULL):
        events = agent.attempt(order_of(agent, plan, arm), "/place", lambda: False).events.events
        assert events is not None
        used[arm] = len(events.skills_invoked)
    assert used == {Arm.OFF: 0, Arm.FULL: 1}
