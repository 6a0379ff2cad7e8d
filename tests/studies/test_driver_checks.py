"""Drivers before a study is planned, with programs in the place of codex."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.studies.checks import CheckName, CheckReport, CheckStatus, check_study
from skill_effectiveness.studies.driver_checks import PROBE
from tests.support.fake_program import write_fake
from tests.support.private import surroundings
from tests.support.provider_calls import DONE, THREAD, TURN, message
from tests.support.studies import loaded, write
from tests.support.working_studies import HEAD, files

if TYPE_CHECKING:
    from pathlib import Path

ANSWERING = "open(home + '/asked', 'a').write(prompt + '\\n')\nanswer()"
VARIABLES = b'version = "1.0"\n[environment]\nenv = {A = "b"}\n'
QUOTA = "say(thread, turn, {'type': 'turn.failed', 'error': {'message': 'Quota exceeded. x'}})"


def check(
    tmp_path: Path, body: str = ANSWERING, edits: dict[str, str] | None = None, **more: bytes
) -> CheckReport:
    """The report of the study of `working_studies`, with further files and edits of its study file."""
    program = write_fake(
        tmp_path / "codex", HEAD + body,
        thread=THREAD, turn=TURN, done=DONE, said=message("ready"), home=str(tmp_path),
    )  # fmt: skip
    held = files(program, edits) | {name.replace("__", "/"): data for name, data in more.items()}
    folder = write(tmp_path / "study", held)
    return check_study(loaded(folder), trusted=[], around=surroundings(), scripts_last=True)


def findings(report: CheckReport, name: CheckName) -> str:
    return " ".join(next(result.findings for result in report.results if result.name is name))


def test_a_driver_that_works(tmp_path: Path) -> None:
    """S15: everything passes, and the model was asked once."""
    report = check(tmp_path)
    assert report.passed
    assert {result.status for result in report.results} == {CheckStatus.PASS, CheckStatus.ABSENT}
    assert [result.name for result in report.results if result.status is CheckStatus.ABSENT] == [
        CheckName.LICENCES
    ]
    assert (tmp_path / "asked").read_text() == f"{PROBE}\n"


def test_a_model_that_does_not_answer(tmp_path: Path) -> None:
    """S15: the kind of trouble, before anything is begun."""
    report = check(tmp_path, QUOTA)
    assert "quota_unavailable" in findings(report, CheckName.MODEL)
    assert not report.passed


@pytest.mark.parametrize(
    ("edits", "more", "told"),
    [
        ({}, {"tasks__task-1__environment__.git__HEAD": b"ref"}, "holds a .git"),
        ({}, {"tasks__task-1__environment__deep__.git__HEAD": b"ref"}, "holds a .git"),
        (
            {},
            {"tasks__task-1__task.toml": b'version = "1.0"\n[environment]\nenv = {A = "b"}\n'},
            "environment.env",
        ),
        ({"instructions: [house.md]": "hooks: [house.md]"}, {}, "hooks cannot be given"),
        (
            {
                "registry: paired-profile": "registry: skill-content",
                "tier: advisory-paired": "tier: causal",
                "tasks: tasks": "  oracle: {skills: [skills/right-words]}\ntasks: tasks",
            },
            {},
            "isolation of a real agent",
        ),
    ],
    ids=["history", "history below", "variables", "hooks", "causal"],
)
def test_what_a_real_agent_cannot_be_given(
    tmp_path: Path, edits: dict[str, str], more: dict[str, bytes], told: str
) -> None:
    """S15 F35: told before anything is begun, and no model is asked."""
    report = check(tmp_path, edits=edits, **more)
    assert told in findings(report, CheckName.DRIVER)
    assert not (tmp_path / "asked").exists()


def test_a_limit_of_cost(tmp_path: Path) -> None:
    """S10 F39: where the program tells no cost."""
    old = "study: {tokens: null, wall_time_seconds: null, tool_calls: null, cost_units: null}"
    report = check(tmp_path, edits={old: old.replace("cost_units: null", "cost_units: 3")})
    assert "/budgets/study/cost_units" in findings(report, CheckName.PRICE)
    assert not (tmp_path / "asked").exists()
