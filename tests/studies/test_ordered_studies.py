"""What an order tells of its study: the one task or arm it is about, and nothing besides."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.canonical import digest_bytes, dump
from skill_effectiveness.protocol.registries import RegistrySchema
from skill_effectiveness.studies.attempt_records import AttemptOrder
from skill_effectiveness.studies.cluster_orders import AssayOrder, GradeOrder, read_order
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.file_trees import HeldTree
from skill_effectiveness.studies.ordered_studies import (
    OrderedPlan,
    OrderedStudy,
    assay_study,
    attempt_study,
    files_of,
    grade_study,
)
from tests.support.private import surroundings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skill_effectiveness.studies.agent import AgentStudy

AROUND = surroundings()
D = "sha256:" + "d" * 64
SALT = "5a" * 32
COMMON: dict[str, Any] = {
    "root_id": "root-" + "0" * 32,
    "plan_digest": D,
    "driver": {
        "provider": "codex",
        "model": "some-model",
        "executable_hash": D,
        "cli_version": "1",
        "launch": D,
    },
    "isolation": {"sandbox": "bubblewrap", "audit": "strace", "network": "provider"},
    "runtime_manifest_hash": D,
}


class Blobs:
    """Inputs by digest, as a worker holds them."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}

    def keep(self, data: bytes) -> str:
        digest = digest_bytes(data)
        self.held[digest] = data
        return digest

    def tree(self, files: dict[str, bytes]) -> str:
        for data in files.values():
            self.keep(data)
        return self.keep(HeldTree.of_files(files).tree.listing)

    def read(self, digest: str) -> bytes:
        return self.held[digest]


@pytest.fixture
def blobs() -> Blobs:
    return Blobs()


def brief(blobs: Blobs, **changes: object) -> dict[str, Any]:
    told: dict[str, Any] = {
        "task_id": "task-1",
        "registry": "paired-profile",
        "payload": blobs.tree({"skills/one/SKILL.md": b"words"}),
        "environment": blobs.tree({"start.txt": b"start", "lib/a.txt": b"a"}),
        "instruction": blobs.keep(b"Write the word.\n"),
        "workdir": "/work-here",
        "agent_seconds": 12.5,
        "env": {"COLOUR": "red"},
    }
    return told | changes


def attempt(blobs: Blobs, told: dict[str, Any], inputs: Iterable[str] | None = None) -> AttemptOrder:
    named = (told["payload"], told["environment"], told["instruction"], blobs.keep(dump(told)))
    order = {
        **COMMON,
        "kind": "attempt",
        "slot": 3,
        "attempt": 1,
        "task_id": "task-1",
        "arm": "full",
        "sample": 2,
        "salt": SALT,
        "budget": dict.fromkeys(("tokens", "wall_time_seconds", "tool_calls", "cost_units")),
        "inputs": sorted(set(named if inputs is None else inputs)),
    }
    found, _ = read_order(dump(order))
    assert isinstance(found, AttemptOrder)
    return found


def refused(code: StudyCode = StudyCode.ORDER_INVALID) -> Any:  # noqa: ANN401 - a context of pytest's
    return pytest.raises(StudyError, check=lambda error: error.code is code)


# Attempts.


def test_an_attempt_is_told_of_its_task_and_arm(blobs: Blobs) -> None:
    """S30: prompt, environment, arm, isolation and driver, each as the order's inputs have it."""
    study = attempt_study(attempt(blobs, brief(blobs)), blobs.read, AROUND)
    task, files = study.task("task-1"), study.task_files("task-1", "environment")
    assert (task.instruction, task.workdir) == (b"Write the word.\n", "/work-here")
    assert (task.limits.agent_seconds, task.environment_env) == (12.5, {"COLOUR": "red"})
    assert {entry.path: files.blob(entry) for entry in files.tree.files} == {
        "lib/a.txt": b"a",
        "start.txt": b"start",
    }
    payload = study.payload_files("full")
    assert [(entry.path, payload.blob(entry)) for entry in payload.tree.files] == [
        ("skills/one/SKILL.md", b"words")
    ]
    assert (study.plan.driver.provider, study.plan.driver.model) == ("codex", "some-model")
    assert (study.plan.plan_digest, study.plan.registry) == (D, RegistrySchema.PAIRED_PROFILE)
    assert (study.plan.isolation.sandbox, study.plan.isolation.audit) == ("bubblewrap", "strace")
    assert study.around is AROUND


def test_what_an_agent_gets_for_the_seed_is_the_orders_own(blobs: Blobs) -> None:
    """S18 S30: 32 bytes that open the one slot, and no other."""
    study = attempt_study(attempt(blobs, brief(blobs)), blobs.read, AROUND)
    assert study.seed() == b"\x5a" * 32


def test_nothing_else_of_the_study_is_there(blobs: Blobs) -> None:
    """S13 S30: no other task, no tests, no solution, and no way to ask for more than an agent does."""
    study = attempt_study(attempt(blobs, brief(blobs)), blobs.read, AROUND)
    task = study.task("task-1")
    assert (task.tests.entries, task.solution.entries, task.tree.entries) == ((), (), ())
    assert (task.verifier_env, task.solution_env, task.metadata) == ({}, {}, {})
    for part in ("tests", "solution"):
        with pytest.raises(KeyError):
            study.task_files("task-1", part)
    with pytest.raises(KeyError):
        study.task("task-2")
    assert {field.name for field in fields(OrderedPlan)} == {
        "plan_digest",
        "registry",
        "driver",
        "isolation",
    }
    public = {name for name in dir(OrderedStudy) if not name.startswith("_")}
    assert public == {"seed", "task", "task_files", "payload_files", "folder", "files", "payload"} | {
        "plan",
        "inputs",
        "around",
        "secret",
    }


def test_an_agent_takes_it_for_its_study(blobs: Blobs) -> None:
    """S30: what an agent asks is answered without a study's folder; the types say so."""
    study: AgentStudy = attempt_study(attempt(blobs, brief(blobs)), blobs.read, AROUND)
    digest = brief(blobs)["payload"]
    assert [entry.path for entry in study.inputs.held(digest).tree.files] == ["skills/one/SKILL.md"]


def test_a_brief_of_another_task(blobs: Blobs) -> None:
    """S30: an order for one task with the inputs of another is refused."""
    with refused():
        attempt_study(attempt(blobs, brief(blobs, task_id="task-2")), blobs.read, AROUND)


def test_an_order_without_its_brief(blobs: Blobs) -> None:
    """S30: the trees alone do not say which of them is what."""
    told = brief(blobs)
    with refused():
        attempt_study(attempt(blobs, told, [told["payload"], told["environment"]]), blobs.read, AROUND)


@pytest.mark.parametrize("change", ["one more", "one less"])
def test_inputs_that_a_brief_does_not_name(blobs: Blobs, change: str) -> None:
    """S30: exactly those of the brief, so that nothing rides along and nothing lacks."""
    told = brief(blobs)
    named = {told["payload"], told["environment"], told["instruction"], blobs.keep(dump(told))}
    more = {blobs.keep(b"something else")}
    wanted = named | more if change == "one more" else named - {told["instruction"]}
    with refused():
        attempt_study(attempt(blobs, told, wanted), blobs.read, AROUND)


def test_a_prompt_in_the_form_of_a_brief_is_a_prompt(blobs: Blobs) -> None:
    """S30: an instruction cannot speak for its order, since it cannot hold a digest of what holds its own."""
    posing = dump(brief(blobs, workdir="/somewhere-else"))
    told = brief(blobs, instruction=blobs.keep(posing))
    task = attempt_study(attempt(blobs, told), blobs.read, AROUND).task("task-1")
    assert (task.instruction, task.workdir) == (posing, "/work-here")


@pytest.mark.parametrize(
    "driver",
    [
        {},
        {"provider": "codex"},
        {"model": "m"},
        {"provider": 1, "model": "m"},
        {"provider": "codex", "model": None},
    ],
)
def test_a_driver_that_is_none(blobs: Blobs, driver: dict[str, object]) -> None:
    """S30: parsed, or refused with a sentence."""
    order = attempt(blobs, brief(blobs)).model_copy(update={"driver": driver})
    with refused():
        attempt_study(order, blobs.read, AROUND)


# Assays.


def assay(inputs: list[str]) -> AssayOrder:
    told = {
        **COMMON,
        "kind": "assay",
        "batch": 1,
        "phase": "open",
        "arm": "full",
        "salt": SALT,
        "inputs": inputs,
    }
    found, _ = read_order(dump(told))
    assert isinstance(found, AssayOrder)
    return found


def test_an_assay_is_told_of_one_arm(blobs: Blobs) -> None:
    """S30 S34: what the arm gives, and what its nonces are made from; no task at all."""
    tree = blobs.tree({"house.md": b"rules"})
    study = assay_study(assay([tree]), blobs.read, AROUND)
    assert [entry.path for entry in study.payload_files("full").tree.files] == ["house.md"]
    assert study.seed() == b"\x5a" * 32
    with pytest.raises(KeyError):
        study.task("task-1")


@pytest.mark.parametrize("count", [0, 2])
def test_an_assay_with_other_inputs(blobs: Blobs, count: int) -> None:
    """S30: the arm's tree alone."""
    trees = [blobs.tree({f"{number}.md": b"rules"}) for number in range(count)]
    with refused():
        assay_study(assay(sorted(trees)), blobs.read, AROUND)


# Grading.


def grade(work: str, tests: str, inputs: list[str]) -> GradeOrder:
    task = {
        "task_id": "task-1",
        "task_hash": D,
        "tree": D,
        "grader_hash": tests,
        "family": "implementation",
        "limits": {"agent_seconds": 1.0, "verifier_seconds": 7.0},
    }
    told = {
        **COMMON,
        "kind": "grade",
        "task": task,
        "work": work,
        "workdir": "/work-here",
        "env": {"COLOUR": "red"},
        "inputs": inputs,
    }
    found, _ = read_order(dump(told))
    assert isinstance(found, GradeOrder)
    return found


def test_a_grading_is_told_of_the_tests_and_the_tree(blobs: Blobs) -> None:
    """S30: neither arm nor instruction; what is graded and by what are inputs."""
    work, tests = blobs.tree({"answer.sh": b"echo"}), blobs.tree({"test.sh": b"exit 0"})
    study = grade_study(grade(work, tests, sorted([work, tests])), blobs.read, AROUND)
    task = study.task("task-1")
    assert (task.workdir, task.limits.verifier_seconds) == ("/work-here", 7.0)
    assert (task.verifier_env, task.instruction) == ({"COLOUR": "red"}, b"")
    assert [entry.path for entry in study.inputs.held(tests).tree.files] == ["test.sh"]
    assert study.seed() == bytes(32)
    with pytest.raises(KeyError):
        study.payload_files("full")


def test_a_tree_that_equals_the_tests(blobs: Blobs) -> None:
    """S30: one input is both."""
    tree = blobs.tree({"test.sh": b"exit 0"})
    assert grade_study(grade(tree, tree, [tree]), blobs.read, AROUND).task("task-1").task_id == "task-1"


@pytest.mark.parametrize("lacking", ["work", "tests", "none"])
def test_a_grading_with_other_inputs(blobs: Blobs, lacking: str) -> None:
    """S30: exactly the tree and the tests."""
    named = {"work": blobs.tree({"answer.sh": b"echo"}), "tests": blobs.tree({"test.sh": b"exit 0"})}
    inputs = {digest for name, digest in named.items() if name != lacking}
    inputs |= {blobs.keep(b"more")} if lacking == "none" else set()
    with refused():
        grade_study(grade(named["work"], named["tests"], sorted(inputs)), blobs.read, AROUND)


# Which inputs are lists.


def test_the_files_of_a_list(blobs: Blobs) -> None:
    """S30: what a tree names has to be sent with it."""
    blobs.tree({"a.txt": b"a", "b/c.txt": b"c"})
    listing = HeldTree.of_files({"a.txt": b"a", "b/c.txt": b"c"}).tree.listing
    assert sorted(files_of(listing)) == sorted([digest_bytes(b"a"), digest_bytes(b"c")])
    assert files_of(HeldTree.of_files({}).tree.listing) == []


@pytest.mark.parametrize("data", [b"", b"words", b"[", b"[1]", b'[{"path":"a"}]', b"{}", b"[]x", b"\xff"])
def test_what_is_no_list_has_no_files(data: bytes) -> None:
    """S30: a task's own file may begin as a list does; it names nothing."""
    assert files_of(data) == []
