"""Running a study: every class from a fake, resumption, halting, budgets, batches."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.faults import LockError
from skill_effectiveness.execution.supervision import CALL_VARIABLE
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.halting import Halt
from skill_effectiveness.studies.rewards import FAILED, INVALID
from skill_effectiveness.studies.root import StudyJournal
from skill_effectiveness.studies.rows import Amendment, AttemptEnded, Usage
from skill_effectiveness.studies.runner import RunStatus
from skill_effectiveness.studies.slot_trials import SlotTrials
from skill_effectiveness.studies.words import EndClass
from skill_effectiveness.trials.replay import replay
from tests.support.crash_images import fast_folder
from tests.support.killing_fs import Died
from tests.support.private import content
from tests.support.studies import bench, example
from tests.support.study_runs import (
    USED,
    VALID,
    FakeAgent,
    Watching,
    document_of,
    outcomes,
    result,
    rows_of,
    run,
    state_of,
    trial_of,
    types_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from skill_effectiveness.evidence.journal import Acknowledged
    from skill_effectiveness.studies.agent import AttemptResult, Cancelled
    from skill_effectiveness.studies.attempt_records import AttemptOrder
    from skill_effectiveness.studies.file_trees import HeldTree
    from skill_effectiveness.studies.plan import PlanTask
    from skill_effectiveness.studies.rewards import Reward
    from skill_effectiveness.studies.rows import StudyRow
    from tests.support.studies import Bench

ONE = {"samples: 3": "samples: 1"}
"""Two tasks, two arms, one sample: four slots."""


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder where durability costs nothing: what is tested here is not the disk."""
    with fast_folder() as folder:
        yield folder


@pytest.fixture
def four(tmp_path: Path) -> Iterator[Bench]:
    """A planned study of four slots."""
    with bench(tmp_path) as held:
        held.plan(example(tmp_path, edits=ONE))
        yield held


def planned(held: Bench, **edits: str) -> None:
    """Plan another study of four slots, in R."""
    texts = {key.replace("__", ": "): value for key, value in edits.items()}
    held.plan(example(held.folder, name="other", edits=ONE | texts))


# Every class.


@pytest.mark.parametrize(
    ("told", "ended", "status", "reason", "counts"),
    [
        (result(), "completed", "completed", None, 1.0),
        (result("no_answer"), "no_answer", "failed", "no_answer", None),
        (result("crashed"), "crashed", "failed", "crashed", None),
        (result("refused"), "refused", "failed", "refused", None),
        (result("timeout"), "timeout", "failed", "timeout", None),
        (result("limit", detail="stdout_bytes"), "limit", "failed", "limit", None),
        (result("contaminated", detail="canary"), "contaminated", "contaminated", "contaminated", None),
        (result("void"), "void", "failed", "void", None),
        (result(model_reported="another"), "void", "failed", "void", None),
        (result("provider_error", detail="server_error"), "provider_error", "failed", "provider_error", None),
        (result("interrupted", detail="stopped"), "interrupted", "failed", "interrupted", None),
    ],
)
def test_each_class_ends_its_slot(  # noqa: PLR0917 - a row of the table
    four: Bench, told: AttemptResult, ended: str, status: str, reason: str | None, counts: float | None
) -> None:
    """S21: class, trial and grade of every ending, and a resume that changes nothing."""
    agent = FakeAgent(endings={2: [told]})
    assert run(four, agent).status is RunStatus.COMPLETE
    assert outcomes(four)[2] == (ended, counts)
    with four.open() as study:
        document = document_of(study, 2)
        graded = (trial_of(study, 2) / "grading" / "grade.json").exists()
    assert (document["status"], document["stop_reason"]) == (status, reason)
    assert graded is (counts is not None)
    before, asked = content(four.folder / "R"), len(agent.asked)
    assert run(four, agent).status is RunStatus.COMPLETE
    assert len(agent.asked) == asked
    assert content(four.folder / "R") == before


def test_reruns_end_with_the_attempts_and_usage_is_summed(four: Bench) -> None:
    """S26 S19: three attempts, each started durably, their use in the trial's cursor."""
    agent = FakeAgent(endings={1: [result("provider_error", detail="rate_limited")]})
    run(four, agent)
    assert [order.attempt for order in agent.asked if order.slot == 1] == [1, 2, 3]
    with four.open() as study:
        used = document_of(study, 1)["resume_cursor"]["consumed_budget"]
    assert used == {"tokens": 300, "wall_time_seconds": 6, "tool_calls": 9, "cost_units": 1.5}
    with state_of(four) as state:
        assert len({attempt.order_digest for attempt in state.slots[1].attempts}) == 3
        assert state.slots[1].ended is EndClass.PROVIDER_ERROR


def test_a_rerun_that_succeeds_counts(four: Bench) -> None:
    """S26: between attempts the trial stays running."""
    seen: list[str] = []

    def look(order: AttemptOrder, _cancelled: Cancelled) -> None:
        if order.slot == 1:
            with four.open() as study:
                seen.append(document_of(study, 1)["status"])

    told = [result("interrupted"), result("provider_error", detail="connection_lost"), result()]
    run(four, FakeAgent(endings={1: told}, during=look))
    assert seen == ["running"] * 3
    assert outcomes(four)[1] == ("completed", 1.0)


def test_a_provider_in_trouble_is_left_alone(four: Bench) -> None:
    """S21: back-off before the next attempt; other slots go on meanwhile."""
    watching = Watching()
    agent = FakeAgent(endings={1: [result("provider_error", detail="rate_limited"), result()]}, waits=0.2)
    run(four, agent, watching=watching)
    assert [order.slot for order in agent.asked] == [1, 2, 3, 4, 1]
    assert all(0 < seconds <= 0.2 for seconds in watching.rests)


@pytest.mark.parametrize(
    "told",
    [result("provider_error", detail="auth_unavailable"), result("crashed", detail="unstartable")],
)
def test_what_is_wrong_for_all_blocks_the_run(four: Bench, told: AttemptResult) -> None:
    """S21: the slot stays open, nothing else is started, and a resume makes a new attempt."""
    agent = FakeAgent(endings={2: [told, result()]})
    stopped = run(four, agent)
    assert (stopped.status, stopped.reason) == (RunStatus.BLOCKED, told.detail)
    assert [order.slot for order in agent.asked] == [1, 2]
    assert run(four, agent).status is RunStatus.COMPLETE
    assert outcomes(four)[2] == ("completed", 1.0)


def test_a_rule_of_the_plan_holds_for_all_arms(tmp_path: Path) -> None:
    """S21: graded trees of a timeout; failures that are to be missing."""
    with bench(tmp_path) as held:
        planned(held, stopping__fixed="stopping: fixed\n  estimand: {timeout: graded}")
        run(held, FakeAgent(endings={1: [result("timeout")], 2: [result("timeout", files=None)]}))
        assert outcomes(held)[1] == ("timeout", 1.0)
        assert outcomes(held)[2] == ("timeout", None)


# Budgets.


def test_a_trial_over_its_budget_is_a_limit(tmp_path: Path) -> None:
    """S26: what all attempts of a trial used counts against its one budget."""
    with bench(tmp_path) as held:
        held.plan(
            example(tmp_path, edits=ONE | {"trial: {tokens: null": "trial: {tokens: 150"}),
        )
        told = {
            1: [result("interrupted"), result()],
            2: [result(usage=Usage(input_tokens=200, output_tokens=0))],
        }
        run(held, FakeAgent(endings=told))
        assert outcomes(held)[1] == ("limit", None)
        assert outcomes(held)[2] == ("limit", None)
        with state_of(held) as state:
            assert state.slots[1].attempts[1].detail == "tokens"


def test_a_trial_without_anything_left_is_not_started_again(tmp_path: Path) -> None:
    """S26: a budget that is used up ends the slot."""
    with bench(tmp_path) as held:
        held.plan(example(tmp_path, edits=ONE | {"trial: {tokens: null": "trial: {tokens: 100"}))
        agent = FakeAgent(endings={1: [result("interrupted")]})
        run(held, agent)
        assert [order.slot for order in agent.asked].count(1) == 1
        assert outcomes(held)[1] == ("limit", None)


def test_a_spent_study_budget_blocks_and_an_amendment_frees(tmp_path: Path) -> None:
    """S21 F39: blocked by name; nothing is lost."""
    with bench(tmp_path) as held:
        held.plan(example(tmp_path, edits=ONE | {"study: {tokens: null": "study: {tokens: 150"}))
        agent = FakeAgent()
        stopped = run(held, agent)
        assert (stopped.status, stopped.reason) == (RunStatus.BLOCKED, "study_budget.tokens")
        assert len(agent.asked) == 2
        assert run(held, agent).status is RunStatus.BLOCKED
        assert len(agent.asked) == 2
        with held.open() as study, study.journal(held.state) as journal:
            journal.append(
                Amendment(pointer="/budgets/study/tokens", value=1000.0, former=150.0, reason="more")
            )
        assert run(held, agent).status is RunStatus.COMPLETE


def test_use_that_is_not_told_counts_as_the_trials_whole_budget(tmp_path: Path) -> None:
    """F39: a cap trips although nobody says what a call used."""
    with bench(tmp_path) as held:
        edits = {"trial: {tokens: null": "trial: {tokens: 500", "study: {tokens: null": "study: {tokens: 900"}
        held.plan(example(tmp_path, edits=ONE | edits))
        agent = FakeAgent(endings={number: [result(usage=Usage())] for number in range(1, 5)})
        assert run(held, agent).reason == "study_budget.tokens"
        assert len(agent.asked) == 2


# Resuming.


def test_a_lost_grade_is_graded_and_nobody_is_asked_again(four: Bench) -> None:
    """S24 F3: grading crashed after the agent had finished."""
    agent = FakeAgent()

    class Broken(FakeAgent):
        def grade(self, task: PlanTask, files: HeldTree) -> tuple[Reward, Reward]:
            raise OSError(f"the grader of {task.task_id} and its {len(files.tree.files)} files is gone")

    with pytest.raises(OSError, match="gone"):
        run(four, Broken(asked=agent.asked))
    assert len(agent.asked) == 1
    run(four, agent)
    assert [order.slot for order in agent.asked] == [1, 2, 3, 4]
    assert outcomes(four) == dict.fromkeys((1, 2, 3, 4), ("completed", 1.0))


@pytest.mark.parametrize("bad", [FAILED, INVALID])
def test_a_tree_that_gives_no_grade_is_graded_again_by_the_next_run(four: Bench, bad: Reward) -> None:
    """S14 S24: again on resume, then missing; never 0, and never a second call."""
    with four.open() as study:
        task = study.slots()[0].task_id
    agent = FakeAgent(grades={task: [(bad, bad)]})
    assert run(four, agent).status is RunStatus.COMPLETE
    assert agent.graded.count(task) == 2
    agent = FakeAgent(grades={task: [(VALID, VALID), (bad, bad)]})
    run(four, agent)
    assert agent.graded == [task, task]
    assert agent.asked == []
    before = content(four.folder / "R")
    again = FakeAgent()
    run(four, again)
    assert (again.graded, again.asked) == ([], [])
    assert content(four.folder / "R") == before
    assert sorted(str(grade) for _, grade in outcomes(four).values()) == ["1", "1", "1", "None"]


def test_an_attempt_that_finished_unseen_is_taken_as_it_is(
    four: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S23 S27: its exit is there, its row is not: nobody is paid twice."""
    append = StudyJournal.append

    def dies(journal: StudyJournal, *bodies: StudyRow) -> Acknowledged:
        if any(isinstance(body, AttemptEnded) and body.slot == 2 for body in bodies):
            raise Died
        return append(journal, *bodies)

    agent, watching = FakeAgent(), Watching()
    with monkeypatch.context() as patched:
        patched.setattr(StudyJournal, "append", dies)
        with pytest.raises(Died):
            run(four, agent)
    run(four, agent, watching=watching)
    assert [order.slot for order in agent.asked] == [1, 2, 3, 4]
    assert watching.resumptions == [(0, 1, 0)]
    assert outcomes(four) == dict.fromkeys((1, 2, 3, 4), ("completed", 1.0))


def test_an_exit_of_another_attempt_is_refused(four: Bench) -> None:
    """S23: what lies there has to be of the order that the journal started."""
    run_until_lost(four, slot=2)
    (four.folder / "R/attempts/2/a1").mkdir(mode=0o700, parents=True)
    (four.folder / "R/attempts/2").chmod(0o700)
    shutil.copy(four.folder / "R/attempts/1/a1/exit.json", four.folder / "R/attempts/2/a1/exit.json")
    with pytest.raises(StudyError) as caught:
        run(four, FakeAgent())
    assert (caught.value.code, caught.value.where) == (StudyCode.PLAN_CHANGED, "attempts/2")


def test_a_tree_that_was_changed_is_refused(four: Bench) -> None:
    """What is graded is what was collected."""
    run(four, FakeAgent(grades={task_id: [(FAILED, FAILED)] for task_id in task_ids(four)}))
    (four.folder / "R/attempts/3/a1/collected/note.txt").write_bytes(b"better\n")
    with pytest.raises(StudyError) as caught:
        run(four, FakeAgent())
    assert (caught.value.code, caught.value.where) == (StudyCode.PLAN_CHANGED, "attempts/3")


def test_an_attempt_without_an_end_was_interrupted(four: Bench) -> None:
    """S23 S27: recorded, kept, and made anew."""
    run_until_lost(four, slot=2)
    agent, watching = FakeAgent(), Watching()
    run(four, agent, watching=watching)
    assert [(order.slot, order.attempt) for order in agent.asked] == [(2, 2), (3, 1), (4, 1)]
    assert watching.resumptions == [(1, 0, 0)]
    with state_of(four) as state:
        first, second = state.slots[2].attempts
    assert (first.ended, first.detail, second.ended) == ("interrupted", "killed", "completed")


def test_a_slot_that_no_runner_survives_ends(four: Bench) -> None:
    """S26: interruptions use attempts up like everything else."""
    for _ in range(3):
        run_until_lost(four, slot=2)
    assert run(four, FakeAgent()).status is RunStatus.COMPLETE
    assert outcomes(four)[2] == ("interrupted", None)


def test_survivors_of_a_killed_run_are_ended_and_counted(four: Bench) -> None:
    """S27 F10: processes that nobody watches any more, found before anything is started."""
    run_until_lost(four, slot=1)
    token = "5" * 32
    survivor = subprocess.Popen(
        [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"],
        env={CALL_VARIABLE: token},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert survivor.stdout is not None
    survivor.stdout.readline()
    watching = Watching()
    run(four, FakeAgent(), watching=watching)
    assert survivor.wait(5) < 0
    survivor.stdout.close()
    assert watching.resumptions == [(1, 0, 1)]
    assert [row["body"] for row in rows_of(four) if row["type"] == "leftovers_ended"] == [{"processes": 1}]


def run_until_lost(held: Bench, slot: int) -> None:
    """Run until an attempt of a slot is lost with its runner."""

    def dies(order: AttemptOrder, _cancelled: Cancelled) -> None:
        if order.slot == slot:
            raise Died

    with pytest.raises(Died):
        run(held, FakeAgent(during=dies))


def task_ids(held: Bench) -> list[str]:
    with held.open() as study:
        return [task.task_id for task in study.plan.tasks]


def test_a_moved_study_goes_on(tmp_path: Path) -> None:
    """S66: the folder is renamed half way, the rest runs there, and everything replays."""
    with bench(tmp_path) as held:
        held.plan(example(tmp_path, edits=ONE))
        halt = Halt()

        def drain(order: AttemptOrder, _cancelled: Cancelled) -> None:
            if order.slot == 2:
                halt.request()

        assert run(held, FakeAgent(during=drain), halt=halt).status is RunStatus.DRAINED
        (tmp_path / "R").rename(tmp_path / "elsewhere")
        agent = FakeAgent()
        assert run(held, agent, "elsewhere").status is RunStatus.COMPLETE
        assert [order.slot for order in agent.asked] == [3, 4]
        assert outcomes(held, "elsewhere") == dict.fromkeys((1, 2, 3, 4), ("completed", 1.0))
        with held.open("elsewhere") as study, study.store() as store:
            assert [replay(store, key).evidence_tier for key in store.keys()] == ["advisory-paired"] * 4  # noqa: SIM118 - no mapping


# Halting.


@pytest.mark.parametrize("jobs", [1, 2])
def test_draining_lets_what_runs_finish(four: Bench, jobs: int) -> None:
    """S25 F5: asked once, the run starts nothing more; the same line ends it later."""
    halt = Halt()

    def drain(order: AttemptOrder, _cancelled: Cancelled) -> None:
        if order.slot == 1:
            halt.request()

    agent = FakeAgent(during=drain)
    assert run(four, agent, jobs=jobs, halt=halt).status is RunStatus.DRAINED
    assert len(agent.asked) == jobs
    assert types_of(four)[-1] == "drained"
    assert set(outcomes(four).values()) == {("completed", 1.0)}
    assert run(four, FakeAgent(), jobs=jobs).status is RunStatus.COMPLETE
    assert len(outcomes(four)) == 4


def test_stopping_ends_what_runs(four: Bench) -> None:
    """S25 F5: asked twice, attempts are interrupted, recorded, and made anew by the next run."""
    halt = Halt()
    running = threading.Event()

    def hang(_order: AttemptOrder, cancelled: Cancelled) -> AttemptResult:
        running.set()
        while not cancelled():
            threading.Event().wait(0.01)
        return result("interrupted", detail="stopped", files=None)

    def ask() -> None:
        running.wait()
        halt.request()
        halt.request()

    asking = threading.Thread(target=ask)
    asking.start()
    assert run(four, FakeAgent(during=hang), halt=halt).status is RunStatus.DRAINED
    asking.join()
    with state_of(four) as state:
        assert [attempt.ended for attempt in state.slots[1].attempts] == ["interrupted"]
        assert state.slots[1].ended is None
    assert run(four, FakeAgent()).status is RunStatus.COMPLETE


def test_one_run_at_a_time(four: Bench) -> None:
    """A second run of the same folder is refused while the first goes on."""

    def again(order: AttemptOrder, _cancelled: Cancelled) -> None:
        if order.slot == 1:
            with pytest.raises(LockError):
                run(four, FakeAgent())

    assert run(four, FakeAgent(during=again)).status is RunStatus.COMPLETE


# Order, blinding, counts.


def test_a_start_is_durable_before_the_call(four: Bench) -> None:
    """S19: while an attempt runs, the journal on disk has its start and its order's digest."""
    seen: list[bool] = []

    def look(order: AttemptOrder, _cancelled: Cancelled) -> None:
        last = [row for row in rows_of(four) if row["type"] == "slot_started"][-1]["body"]
        seen.append(last == {"slot": order.slot, "attempt": 1, "order_digest": order.digest})

    run(four, FakeAgent(during=look))
    assert seen == [True] * 4


def test_an_unstarted_slot_tells_no_arm(four: Bench) -> None:
    """S18: outside private/ nothing exists of a slot that has not started."""
    seen: list[int] = []

    def look(order: AttemptOrder, _cancelled: Cancelled) -> None:
        trials = list((four.folder / "R" / "trials").glob("*/*/sample-*"))
        attempts = list((four.folder / "R" / "attempts").iterdir())
        seen.append(len(trials))
        assert len(trials) == order.slot
        assert {path.name for path in attempts} <= {str(number) for number in range(1, order.slot + 1)}

    run(four, FakeAgent(during=look))
    assert seen == [1, 2, 3, 4]


def test_an_order_holds_no_path_test_or_other_slot(four: Bench) -> None:
    """S30: no hidden test, key or place of this machine."""
    agent = FakeAgent()
    run(four, agent)
    with four.open() as study:
        hidden = {task.grader_hash for task in study.plan.tasks} | {task.tree for task in study.plan.tasks}
        seed = study.seed().hex()
        for task in study.plan.tasks:
            hidden |= {str(entry.sha256) for entry in study.inputs.tree(task.grader_hash).files}
    for order in agent.asked:
        text = order.model_dump_json()
        assert not hidden & set(order.inputs)
        assert str(four.folder) not in text
        assert seed not in text


def test_counts_are_told_as_they_grow_and_never_by_arm(four: Bench) -> None:
    """S29: what an observer hears is the study's own count."""
    watching = Watching()
    outcome = run(four, FakeAgent(), watching=watching)
    assert [status.ended for status in watching.counts][-1] == 4
    assert outcome.counts.known_tokens == 400
    assert outcome.counts.known_cost == 2.0
    assert not {"arm", "arms", "off", "full"} & set(outcome.counts.model_dump())
    with four.open() as study:
        assert study.status() == outcome.counts


def test_identical_tasks_are_two_slots(tmp_path: Path) -> None:
    """F5: two tasks with the same content are two tasks."""
    with bench(tmp_path) as held:
        study = example(tmp_path, edits=ONE)
        names = sorted(path.name for path in (study / "tasks").iterdir())
        shutil.copytree(study / "tasks" / names[0], study / "tasks" / "twin")
        held.plan(study)
        run(held, FakeAgent(), jobs=3)
        assert len(outcomes(held)) == 6


# Batches.


def test_every_batch_is_assayed_at_both_ends(tmp_path: Path) -> None:
    """S36: rows and files of two batches, slots in between."""
    with bench(tmp_path) as held:
        held.plan(example(tmp_path, tasks=9))
        run(held, FakeAgent(), jobs=4)
        rows = [(row["type"], row["body"]) for row in rows_of(held)]
        marks = [
            (kind, body.get("batch"), body.get("phase"))
            for kind, body in rows
            if kind in {"batch_opened", "assay"}
        ]
        assert marks == [
            (kind, batch, phase)
            for batch in (1, 2)
            for kind, phase in [("batch_opened", None), *[("assay", "open")] * 2, *[("assay", "close")] * 2]
        ]
        names = {path.name for path in (tmp_path / "R" / "assays").iterdir()}
        assert names == {"1-open.json", "1-close.json", "2-open.json", "2-close.json"}


def test_a_failed_opening_blocks(four: Bench) -> None:
    """S36: nothing is started, whoever asks again."""
    agent = FakeAgent(assays={(1, "open"): "failed"})
    for _ in range(2):
        stopped = run(four, agent)
        assert (stopped.status, stopped.reason) == (RunStatus.BLOCKED, "exposure_assay")
    assert agent.asked == []


def test_a_failed_close_voids_the_batch(four: Bench) -> None:
    """S36: every slot of it is void, for good."""
    agent = FakeAgent(assays={(1, "close"): "failed"})
    assert run(four, agent).status is RunStatus.COMPLETE
    with state_of(four) as state:
        assert {slot.ended for slot in state.slots.values()} == {EndClass.VOID}
    before = content(four.folder / "R")
    assert run(four, FakeAgent()).status is RunStatus.COMPLETE
    assert content(four.folder / "R") == before


# What else goes wrong.


def test_a_changed_input_is_named(four: Bench) -> None:
    """A frozen file that was edited stops the run before anything is started."""
    with four.open() as study:
        digest = study.plan.tasks[0].grader_hash.removeprefix("sha256:")
    (four.folder / "R" / "inputs" / digest).write_bytes(b"[]")
    with pytest.raises(StudyError) as caught:
        run(four, FakeAgent())
    assert (caught.value.code, caught.value.where) == (StudyCode.PLAN_CHANGED, "/tasks/0/grader_hash")


def test_the_same_outcomes_whatever_the_jobs(tmp_path: Path) -> None:
    """Outcomes follow from seed, task, arm and sample; the journal's order does not matter."""
    endings = "sleep_seconds: 0\n    endings: {crashed: 0.2, provider_error: 0.3}\n    effect: 0.4"
    with bench(tmp_path) as held:
        for out in ("one", "four"):
            held.plan(example(tmp_path, tasks=4, name=f"study-{out}", edits={"effect: 0.4": endings}), out)
        run(held, None, "one", jobs=1)
        run(held, None, "four", jobs=4)
        assert outcomes(held, "one") == outcomes(held, "four")
        assert {ended for ended, _ in outcomes(held, "one").values()} >= {"crashed", "completed"}


def causal(held: Bench) -> None:
    """Plan a study under the causal tier: three arms, six slots."""
    edits = ONE | {
        "registry: paired-profile": "registry: skill-content",
        "tier: advisory-paired": "tier: causal",
        "    skills: [skills/file-notes]": (
            "    skills: [skills/file-notes]\n    instructions: [guide.md]\n    hooks: [hooks.json]\n"
            "  oracle:\n    skills: [skills/file-notes]\n    hooks: [hooks.json]"
        ),
    }
    study = example(held.folder, edits=edits)
    (study / "guide.md").write_text("Use the skill.\n", encoding="utf-8")
    (study / "hooks.json").write_text("{}\n", encoding="utf-8")
    held.plan(study)


def test_a_simulation_under_the_causal_tier_completes(tmp_path: Path) -> None:
    """A pure function proves what that tier asks for: an audit of its one file, and no memory at all."""
    with bench(tmp_path) as held:
        causal(held)
        assert run(held).status is RunStatus.COMPLETE
        assert len(outcomes(held)) == 6
        with held.open() as opened, opened.store() as store:
            for key in store.keys():  # noqa: SIM118 - no mapping
                assert replay(store, key).coverage_limitations == ()


def test_an_audit_from_before_a_move_is_no_breach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S66: killed after an attempt and before its completion, then moved; its audit names the old place."""
    with bench(tmp_path) as held:
        causal(held)
        with monkeypatch.context() as patched:
            patched.setattr(SlotTrials, "settle", dies)
            with pytest.raises(Died):
                run(held)
        (tmp_path / "R").rename(tmp_path / "elsewhere")
        assert run(held, out="elsewhere").status is RunStatus.COMPLETE
        found = outcomes(held, "elsewhere")
        assert {ended for ended, _ in found.values()} == {"completed"}


def dies(*_: object) -> None:
    """What a killed process does."""
    raise Died


def test_an_error_of_the_machine_keeps_what_was_acknowledged(four: Bench) -> None:
    """A disk that fails in the middle ends the run; the same call goes on."""
    agent = FakeAgent()

    class Faulty(FakeAgent):
        def attempt(self, order: AttemptOrder, place: str, cancelled: Cancelled) -> AttemptResult:
            if order.slot == 3:
                raise OSError("no more")
            return super().attempt(order, place, cancelled)

    with pytest.raises(OSError, match="no more"):
        run(four, Faulty(asked=agent.asked))
    assert len(outcomes(four)) == 2
    assert run(four, agent).status is RunStatus.COMPLETE
    assert [order.slot for order in agent.asked] == [1, 2, 3, 4]


def test_what_is_used_is_what_was_told() -> None:
    """The fake's use, by hand, so that the sums above can be read."""
    assert (USED.tokens, USED.cost_units, USED.tool_calls) == (100, 0.5, 3)
