"""Read calls of codex: the checkout as working folder, tools allowed, nothing in it an instruction."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.providers import CodexProvider, Ending, ReadCall, SandboxKind
from skill_effectiveness.providers.calls import CallKind
from skill_effectiveness.providers.codex import judge_argv, read_argv
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
    """P13: those of a judge call, and what keeps the checkout's own instructions and the web out."""
    judge, reading = (make(tmp_path / "codex", "m", tmp_path / "s") for make in (judge_argv, read_argv))
    assert [word for word in reading if word not in judge] == [
        "project_doc_max_bytes=0",
        "skills.include_instructions=false",
        'web_search="disabled"',
    ]
    assert reading[reading.index("--sandbox") + 1] == "read-only"
    assert reading[-1] == "-"
