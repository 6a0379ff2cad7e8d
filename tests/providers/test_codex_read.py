"""Read calls of codex: the checkout as working folder, tools allowed, nothing in it an instruction."""

from __future__ import annotations

import json
import os
import tomllib
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.providers import CodexProvider, Ending, ReadCall, SandboxKind, WarningCode
from skill_effectiveness.providers.asking import CannotAskError
from skill_effectiveness.providers.calls import CallKind
from skill_effectiveness.providers.codex import judge_argv, read_argv
from skill_effectiveness.providers.codex_project import without_skills
from tests.support.fake_program import READ_PROMPT, write_codex
from tests.support.provider_calls import ANSWER, SCHEMA, left_behind, surroundings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skill_effectiveness.providers import CallOutcome

TOOL = {
    "type": "item.completed",
    "item": {
        "id": "item_0",
        "type": "command_execution",
        "command": "ls",
        "aggregated_output": "",
        "exit_code": 0,
        "status": "completed",
    },
}
REROUTED = {
    "type": "item.completed",
    "item": {"id": "i", "type": "error", "message": "model rerouted: fake-model -> other-model (Reason)"},
}


def read(
    tmp_path: Path,
    body: str,
    *,
    schema: Mapping[str, object] | None = SCHEMA,
    seconds: float = 20,
    **constants: object,
) -> CallOutcome:
    checkout = tmp_path / "checkout"
    checkout.mkdir(exist_ok=True)
    (checkout / "file").write_text("content")
    around = surroundings(tmp_path)
    provider = CodexProvider.at(write_codex(tmp_path, READ_PROMPT + body, **constants), around=around)
    outcome = provider.read(ReadCall("Read it.", checkout, "fake-model", seconds, schema), around=around)
    assert left_behind(around) == []
    return outcome


def test_it_holds_read_calls() -> None:
    """P13: one of the three kinds."""
    assert CallKind.READ in CodexProvider.call_kinds


def test_an_answer_comes_back(tmp_path: Path) -> None:
    """P13 P4: the working folder is the checkout, the prompt is on stdin, the schema a file."""
    body = (
        "seen = {'cwd': os.getcwd(), 'files': os.listdir('.'), 'prompt': prompt.decode()}\n"
        "seen |= {'argv': sys.argv[1:], 'env': sorted(os.environ)}\n"
        "seen['schema'] = json.load(open(sys.argv[sys.argv.index('--output-schema') + 1]))\n"
        "json.dump(seen, open(folder + '/seen', 'w'))\n"
        "say(*good)"
    )
    outcome = read(tmp_path, body)
    seen = json.loads((tmp_path / "seen").read_text())

    assert (outcome.ending, outcome.answer) == (Ending.SUCCESS, ANSWER)
    assert outcome.sandbox is SandboxKind.PROGRAM
    assert seen["cwd"] == str(tmp_path / "checkout")
    assert seen["files"] == ["file"]
    assert seen["prompt"] == "Read it."
    assert "Read it." not in seen["argv"]
    assert seen["schema"] == SCHEMA
    assert "CODEX_HOME" in seen["env"]


def test_commands_are_no_violation(tmp_path: Path) -> None:
    """P13: a reader may run them, and the program is not stopped at the first."""
    outcome = read(tmp_path, "say(*good[:2], tool); time.sleep(0.3); say(*good[2:])", tool=TOOL)

    assert outcome.ending is Ending.SUCCESS


def test_another_model_is_recorded_and_no_error(tmp_path: Path) -> None:
    """P13 F37: the model observed is told."""
    outcome = read(tmp_path, "say(*good[:2], moved, *good[2:])", moved=REROUTED)

    assert outcome.ending is Ending.SUCCESS
    assert outcome.observed_model == "other-model"


@pytest.mark.parametrize(
    ("body", "ending"),
    [
        ("", Ending.NO_ANSWER),
        ("say(*good[:3])", Ending.STREAM_INVALID),
        ("say(*good[:2], tool, good[3])", Ending.NO_ANSWER),
        ("say(*good); sys.exit(3)", Ending.STREAM_INVALID),
        ("time.sleep(30)", Ending.TIMEOUT),
    ],
)
def test_success_needs_the_same_as_ever(tmp_path: Path, body: str, ending: Ending) -> None:
    """P6: exit, terminal marker and answer; a tool is no answer."""
    assert read(tmp_path, body, seconds=2, tool=TOOL).ending is ending


def test_free_text_has_no_schema(tmp_path: Path) -> None:
    """P13: the option is left out."""
    body = "assert '--output-schema' not in sys.argv\nsay(*good)"
    assert read(tmp_path, body, schema=None).ending is Ending.SUCCESS


def test_the_arguments(tmp_path: Path) -> None:
    """P13: those of a judge call, in which nobody is led either, and no web."""
    judge, reading = (make(tmp_path / "codex", "m", tmp_path / "s") for make in (judge_argv, read_argv))
    assert [word for word in reading if word not in judge] == ['web_search="disabled"']
    assert not set(judge) - set(reading)
    assert reading[reading.index("--sandbox") + 1] == "read-only"
    assert reading[-1] == "-"


class TestSkillsOfTheCheckout:
    """A `$name` in what a reader is asked would put a skill of the checkout beside it."""

    def test_every_one_is_switched_off_by_its_file(self, tmp_path: Path) -> None:
        """P13 F32: at any depth, and behind links; files of other names are none."""
        checkout = tmp_path / "checkout"
        for place in (".agents/skills/one", ".codex/skills/a/b/two", ".agents/skills/other"):
            (checkout / place).mkdir(parents=True)
        for place in (".agents/skills/one", ".codex/skills/a/b/two"):
            (checkout / place / "SKILL.md").touch()
        (checkout / ".agents/skills/other/README.md").touch()
        away = tmp_path / 'away "quoted"'
        away.mkdir()
        (away / "SKILL.md").touch()
        (checkout / ".agents/skills/link").symlink_to(away)
        (checkout / ".agents/skills/nowhere").symlink_to(tmp_path / "nothing")
        (checkout / ".agents/skills/circle").symlink_to(checkout / ".agents")
        option, setting = without_skills(RealFs(), checkout)

        assert option == "-c"
        told = tomllib.loads(setting)["skills"]["config"]
        assert [entry["enabled"] for entry in told] == [False] * 3
        assert {entry["path"] for entry in told} == {
            str(checkout / ".agents/skills/one/SKILL.md"),
            str(checkout / ".codex/skills/a/b/two/SKILL.md"),
            str(away / "SKILL.md"),
        }

    def test_without_any_nothing_is_said(self, tmp_path: Path) -> None:
        assert without_skills(RealFs(), tmp_path) == ()
        (tmp_path / ".agents").mkdir()
        (tmp_path / ".agents" / "skills").touch()
        assert without_skills(RealFs(), tmp_path) == ()

    @pytest.mark.parametrize("kind", ["bytes", "many"])
    def test_more_than_can_be_switched_off(self, tmp_path: Path, kind: str) -> None:
        """P13: nothing is started, since what is left on could lead the reader."""
        names = [b"\xff"] if kind == "bytes" else [b"%03d" % number + b"x" * 200 for number in range(500)]
        for name in names:
            folder = tmp_path / ".agents" / "skills" / os.fsdecode(name)
            folder.mkdir(parents=True)
            (folder / "SKILL.md").touch()
        with pytest.raises(CannotAskError) as caught:
            without_skills(RealFs(), tmp_path)
        assert caught.value.code is WarningCode.SESSION_UNAVAILABLE
        assert str(tmp_path) not in caught.value.sentence

    def test_a_reader_is_started_with_them_off(self, tmp_path: Path) -> None:
        """P13: what is found stands among the arguments."""
        folder = tmp_path / "checkout"
        (folder / ".agents/skills/one").mkdir(parents=True)
        (folder / ".agents/skills/one/SKILL.md").touch()
        body = "assert any(word.startswith('skills.config=[{path=') for word in sys.argv)\nsay(*good)"
        around = surroundings(tmp_path)
        provider = CodexProvider.at(write_codex(tmp_path, READ_PROMPT + body), around=around)
        call = ReadCall("Look at $one.", folder, "fake-model", 20)
        assert provider.read(call, around=around).ending is Ending.SUCCESS
