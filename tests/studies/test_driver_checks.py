"""Drivers before a study is planned, with programs in the place of codex."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.providers import CodexProvider
from skill_effectiveness.studies import drivers
from skill_effectiveness.studies.checks import CheckName, CheckReport, CheckStatus, check_study
from skill_effectiveness.studies.driver_checks import PROBE
from tests.support.fake_program import write_fake
from tests.support.private import surroundings
from tests.support.provider_calls import DONE, THREAD, TURN, message
from tests.support.studies import loaded, write
from tests.support.working_studies import HEAD, files

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.providers import WorkCall
    from skill_effectiveness.providers.command_line import Asked, CallSession

ANSWERING = "open(home + '/asked', 'a').write(prompt + '\\n')\nanswer()"
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
    assert findings(report, CheckName.MODEL) == (
        "/driver/model: asked one thing, codex ended with quota_unavailable: wait for the quota, or buy more."
    )
    assert not report.passed


@pytest.mark.parametrize(
    ("edits", "more", "told"),
    [
        ({}, {"tasks__task-1__environment__.git__HEAD": b"ref"}, "holds a .git"),
        ({}, {"tasks__task-1__environment__deep__.git__HEAD": b"ref"}, "holds a .git"),
        (
            {},
            {"tasks__task-1__task.toml": b'version = "1.0"\n[environment]\nenv = {HOME = "b"}\n'},
            "environment.env: HOME",
        ),
        ({"instructions: [house.md]": "hooks: [house.md]"}, {}, "hooks cannot be given"),
        (
            {
                "registry: paired-profile": "registry: skill-content",
                "tier: advisory-paired": "tier: causal",
                "tasks: tasks": "  oracle: {skills: [skills/right-words]}\ntasks: tasks",
            },
            {},
            "the provider of a real agent keeps nothing",
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


class Uneven(CodexProvider):
    """An adapter that gives an arm with a treatment more than that."""

    def to_work(self, call: WorkCall, session: CallSession) -> Asked:
        asked = super().to_work(call, session)
        if call.mount is None:
            return asked
        (session.folders.home / "extra").write_text("secret-canary")
        return replace(
            asked,
            argv=[*asked.argv[:-1], "--fast", asked.argv[-1]],
            environment={"TMPDIR": "/secret-canary"},
        )


class Forgetful(CodexProvider):
    """One that lays no skill."""

    def to_work(self, call: WorkCall, session: CallSession) -> Asked:
        return super().to_work(replace(call, mount=None), session)


@pytest.mark.parametrize(
    ("adapter", "places"),
    [
        (Uneven, ["another argv[", "another env TMPDIR ", "another tree {session}/home/extra "]),
        (Forgetful, ["another nothing "]),
    ],
)
def test_a_launch_that_differs_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adapter: type[CodexProvider], places: list[str]
) -> None:
    """S15 S35 F33: each place is named, no value is, and no model is asked."""
    monkeypatch.setitem(drivers.__dict__, "ADAPTERS", {"codex": adapter})
    report = check(tmp_path)
    told = findings(report, CheckName.TREATMENT_DIFF)
    assert not report.passed
    assert [place for place in places if place not in told] == []
    assert told.count("another ") == len(places)
    assert "canary" not in told
    assert not (tmp_path / "asked").exists()


def test_an_arm_that_nobody_can_be_given(tmp_path: Path) -> None:
    """S15 S35 P14: a program without an adapter of its own."""
    edits = {"provider: codex": "provider: command"}
    report = check(tmp_path, edits=edits)
    assert "could be given skills" in findings(report, CheckName.TREATMENT_DIFF)
    assert not report.passed


LIMITED = {
    "study: {tokens: null, wall_time_seconds: null, tool_calls: null, cost_units: null}": (
        "study: {tokens: null, wall_time_seconds: null, tool_calls: null, cost_units: 3}"
    )
}


@pytest.mark.parametrize(
    ("settings", "passed"),
    [
        ("{prices: {fake-model: {input: 1.25, output: 10}}}", True),
        ('{prices: {fake-model: {input: "1.25", cached_input: 0, output: 10, reasoning: "12.5"}}}', True),
        ("{prices: {other-model: {input: 1, output: 10}}}", False),
        ("{prices: {}}", False),
    ],
)
def test_a_limit_of_cost_by_stated_prices(tmp_path: Path, settings: str, passed: bool) -> None:  # noqa: FBT001 - a case
    """S10 F39: of this very model, and of no other one."""
    report = check(tmp_path, edits=LIMITED | {"settings: {}": f"settings: {settings}"})
    told = findings(report, CheckName.PRICE)
    assert report.passed is passed
    assert ("/driver/settings/prices" in told) is not passed


def test_a_limit_of_tool_calls_that_nobody_counts(tmp_path: Path) -> None:
    """S15 P9: codex shows not every one; refused by name, for a trial and for the study."""
    report = check(tmp_path, edits={"tool_calls: null": "tool_calls: 5"})
    told = findings(report, CheckName.DRIVER)
    assert "/budgets/trial/tool_calls: codex" in told
    assert "/budgets/study/tool_calls: codex" in told
    assert not (tmp_path / "asked").exists()


def test_a_kimi_alias_that_nobody_configured(tmp_path: Path) -> None:
    """S15: the model's place and the word for it, and no program is asked."""
    program = write_fake(tmp_path / "kimi", "open(home + '/asked', 'w')", home=str(tmp_path))
    edits = {"provider: codex": "provider: kimi", "model: fake-model": "model: nobodys"}
    folder = write(tmp_path / "study", files(program, edits))
    (tmp_path / "kimi-home").mkdir()
    (tmp_path / "kimi-home" / "config.toml").write_text('[models.mine]\nprovider = "p"\nmodel = "m"\n')
    around = surroundings()
    around = replace(around, environ={**around.environ, "KIMI_CODE_HOME": str(tmp_path / "kimi-home")})
    report = check_study(loaded(folder), trusted=[], around=around, scripts_last=True)
    told = findings(report, CheckName.DRIVER)
    assert told.startswith("/driver/model: model_unavailable: Kimi's config.toml cannot be used: ")
    assert "'nobodys'" in told
    assert not (tmp_path / "asked").exists()
