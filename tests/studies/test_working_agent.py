"""A real agent as a driver, here a program in the place of codex."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from skill_effectiveness.protocol.event_rows import Unverifiable
from skill_effectiveness.providers import CallOutcome, CodexProvider
from skill_effectiveness.studies.endings import blocks
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.file_trees import EntryKind, HeldTree
from skill_effectiveness.studies.frozen import read_frozen_study
from skill_effectiveness.studies.state import AttemptState, SlotState
from skill_effectiveness.studies.words import Arm, EndClass, GradeState
from tests.support.working_studies import SKILL, working

pytestmark = pytest.mark.slow

WORKS = """
open("answer.sh", "w").write("#!/bin/sh\\n")
os.chmod("answer.sh", 0o755)
os.makedirs("deep/er")
open("deep/er/file", "w").write("x")
os.symlink("answer.sh", "link")
seen = {"prompt": prompt, "skills": skills, "cwd": os.listdir("."), "environ": dict(os.environ)}
rules = os.path.join(os.environ["CODEX_HOME"], "AGENTS.md")
seen["rules"] = open(rules).read() if os.path.exists(rules) else None
open("seen.json", "w").write(json.dumps(seen))
answer()
"""


def seen(held: HeldTree | None) -> dict[str, object]:
    """What the program saw, by its own account."""
    assert held is not None
    entry = held.tree.find("seen.json")
    assert entry is not None
    found: dict[str, object] = json.loads(held.blob(entry))
    return found


def test_what_an_attempt_sees_and_leaves() -> None:
    """S4 S13 F31: prompt byte for byte, the task's environment, the arm's own treatment and nobody else's."""
    with working(WORKS) as held:
        full, off = held.attempt("full"), held.attempt("off")
        assert held.left == []
    assert (full.ended, off.ended) == (EndClass.COMPLETED, EndClass.COMPLETED)
    shown, bare = seen(full.files), seen(off.files)
    assert shown["prompt"] == bare["prompt"] == "Write the word of task 1.\n"
    assert (shown["skills"], bare["skills"]) == ([SKILL], [])
    assert (shown["rules"], bare["rules"]) == ("House rules.\n", None)
    assert set(bare["cwd"]) == {"start.txt", "answer.sh", "deep", "link"}  # type: ignore[call-overload]
    assert full.files is not None
    kinds = {entry.path: (entry.kind, entry.executable) for entry in full.files.tree.entries}
    assert kinds["answer.sh"] == (EntryKind.FILE, True)
    assert kinds["link"] == (EntryKind.LINK, False)
    assert kinds["deep/er/file"] == (EntryKind.FILE, False)
    assert full.stream is not None
    assert b'"thread.started"' in full.stream
    assert full.usage.input_tokens == 1200
    assert full.usage.wall_seconds is not None
    assert full.events.unverifiable is Unverifiable.DRIVER_SHAPE_UNREGISTERED


def test_the_environments_of_two_arms_have_the_same_names() -> None:
    """S35 F33: and the same values, but for the folders of their own sessions."""
    with working(WORKS) as held:
        one, two = (seen(held.attempt(arm).files)["environ"] for arm in ("full", "off"))
    assert isinstance(one, dict)
    assert isinstance(two, dict)
    call = "SKILL_EFFECTIVENESS_CALL"
    own = {"HOME", "CODEX_HOME", "TMPDIR", call}
    assert one.keys() == two.keys()
    assert {name: one[name] for name in one.keys() - own} == {name: two[name] for name in two.keys() - own}


@pytest.mark.parametrize(
    ("body", "ended", "detail", "tree"),
    [
        ("say(thread, turn, done)", "no_answer", None, True),
        ("open('x', 'w').close(); say(thread, turn); sys.exit(3)", "crashed", None, True),
        (
            "say(thread, turn, {'type': 'turn.failed', 'error': {'message': 'unexpected status 401 x'}})",
            "provider_error", "auth_unavailable", False,
        ),
        (
            "say(thread, turn, {'type': 'turn.failed', 'error': {'message': 'Quota exceeded. x'}})",
            "provider_error", "quota_unavailable", False,
        ),
        ("time.sleep(60)", "timeout", None, True),
    ],
)  # fmt: skip
def test_other_endings(body: str, ended: str, detail: str | None, tree: bool) -> None:  # noqa: FBT001 - a case
    """S21: the class of providers.md, and whether what lies there is kept."""
    edits = {"wall_time_seconds: null": "wall_time_seconds: 1.5"}
    with working(body, edits=edits) as held:
        found = held.attempt("off")
        assert held.left == []
    assert (str(found.ended), found.detail, found.files is not None) == (ended, detail, tree)


def test_a_program_that_changed_is_not_started() -> None:
    """P2: the run stops there, and nothing is paid."""
    with working("answer()") as held:
        program = held.folder / "codex"
        program.write_text(program.read_text() + "\n")
        found = held.attempt("off")
    assert (found.ended, found.detail, found.files) == (EndClass.CRASHED, "unstartable", None)


def test_what_cannot_be_kept_is_named() -> None:
    """F48: pipes, links that lead out; nothing is followed or waited for."""
    body = "os.mkfifo('pipe'); os.symlink('/etc/passwd', 'out'); open('kept', 'w').close(); answer()"
    with working(body) as held:
        found = held.attempt("off")
    assert found.files is not None
    assert {entry.path for entry in found.files.tree.entries} == {"start.txt", "kept"}
    assert sorted((odd.path, str(odd.kind)) for odd in found.oddities) == [
        ("out", "link_leaves"),
        ("pipe", "not_regular"),
    ]


def test_hidden_folders_of_the_program_are_not_the_agents_work() -> None:
    """F30: they would tell a reviewer the arm."""
    body = (
        "os.makedirs('.agent/skills/x'); open('.agent/skills/x/y', 'w').close(); open('.kept', 'w'); answer()"
    )
    with working(body) as held:
        found = held.attempt("full")
    assert found.files is not None
    assert {entry.path for entry in found.files.tree.entries} == {"start.txt", ".kept"}


def test_it_is_graded_by_the_tasks_own_tests() -> None:
    """S14 S24: twice alike; whether a file can be executed is part of the work."""
    with working(WORKS) as held:
        files = held.attempt("full").files
        assert files is not None
        good = held.agent.grade(held.task, files)
        bad = held.agent.grade(held.task, HeldTree.of_files({"answer.sh": b"#!/bin/sh\n"}))
    assert [(grade.state, grade.reward) for grade in good] == [(GradeState.VALID, 1.0)] * 2
    assert [(grade.state, grade.reward) for grade in bad] == [(GradeState.VALID, 0.0)] * 2


def test_it_waits_longer_after_each_provider_error() -> None:
    """S21: two seconds, then four."""

    def failed(number: int) -> AttemptState:
        return AttemptState(number, "d", "t", EndClass.PROVIDER_ERROR, "server_error")

    with working("answer()") as held:
        waits = [held.agent.wait_before(SlotState(1, tuple(map(failed, range(1, n + 1))))) for n in (0, 1, 2)]
    assert waits == [0.0, 2.0, 4.0]


def test_what_is_started_is_held_against_what_was_frozen() -> None:
    """S35 F33: a typed stop of the run; nothing was asked, nothing is graded, and no value comes of it."""
    with working(WORKS) as held:
        orders = {arm: held.order(arm) for arm in ("full", "off")}
        launches = {arm: str(order.driver["launch"]) for arm, order in orders.items()}
        assert launches == {str(arm): digest for arm, digest in held.study.frozen().launches.items()}
        assert launches["full"] != launches["off"]
        driver = dict(orders["full"].driver) | {"launch": launches["off"]}
        found = held.attempt("full", driver=driver)
        assert held.left == []
    assert (found.ended, found.detail, found.files) == (EndClass.CRASHED, "launch_differs", None)
    assert blocks(found.ended, found.detail)
    assert found.stream is None


def test_a_frozen_launch_that_was_edited_is_found() -> None:
    """S16 S35: the manifests know of it, and the plan of them."""
    with working("answer()") as held:
        plan, data = held.study.plan, held.study.root.read("frozen.json")
        frozen = read_frozen_study(data, plan)
        assert set(frozen.launches) == {Arm.OFF, Arm.FULL}
        one, other = frozen.launches[Arm.OFF], frozen.launches[Arm.FULL]
        for launches in ({Arm.OFF: other, Arm.FULL: other}, {Arm.OFF: one}, {}):
            edited = replace(frozen, launches=launches).line()
            with pytest.raises(StudyError) as refused:
                read_frozen_study(edited, plan)
            assert (refused.value.code, refused.value.where) == (
                StudyCode.PLAN_CHANGED,
                "frozen.json/launches",
            )
        with pytest.raises(StudyError):
            read_frozen_study(data.replace(one.encode(), b"sha256:none"), plan)


PRICED = {"settings: {}": 'settings: {prices: {fake-model: {input: 2, cached_input: "0.5", output: 10}}}'}


def test_what_an_attempt_cost_by_stated_prices() -> None:
    """F39 F40: a thousand tokens at 2, 200 at 0.5 and 34 at 10, for a million; unknown without prices."""
    with working("answer()", edits=PRICED) as held:
        order = held.order("off")
        found = held.attempt("off")
    assert order.driver["price"] == {"input": "2", "cached_input": "0.5", "output": "10", "reasoning": None}
    assert found.usage.cost_units == pytest.approx((1000 * 2 + 200 * 0.5 + 34 * 10) / 1_000_000, rel=1e-12)
    assert (found.usage.tool_calls, found.detail) == (None, None)
    with working("answer()") as held:
        assert held.attempt("off").usage.cost_units is None


def test_an_attempt_whose_tokens_nobody_told_has_no_cost() -> None:
    """F40: unknown is not nothing."""
    with working("say(thread, turn, said, {'type': 'turn.completed', 'usage': {}})", edits=PRICED) as held:
        assert held.attempt("off").usage.cost_units is None


@pytest.mark.parametrize(("told", "detail"), [(0.00244, None), (0.5, "cost_differs")])
def test_a_told_cost_goes_before_a_stated_price(
    monkeypatch: pytest.MonkeyPatch, told: float, detail: str | None
) -> None:
    """F39: and that the two are not the same is recorded."""

    def priced(outcome: CallOutcome) -> CallOutcome:
        return replace(outcome, usage=replace(outcome.usage, cost_units=told))

    work = CodexProvider.work
    monkeypatch.setattr(CodexProvider, "work", lambda *given, **named: priced(work(*given, **named)))
    with working("answer()", edits=PRICED) as held:
        found = held.attempt("off")
    assert (found.ended, found.detail) == (EndClass.COMPLETED, detail)
    assert found.usage.cost_units == told
