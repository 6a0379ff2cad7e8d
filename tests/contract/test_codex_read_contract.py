"""Read calls against the real codex, which talks to a model server on loopback."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.acceptance.closeout.review_prompt import ANSWER_SCHEMA
from skill_effectiveness.providers import CodexProvider, Ending, ReadCall
from tests.support.codex_shim import custom_provider, write_shim
from tests.support.model_server import Answer, ToolCall
from tests.support.provider_calls import left_behind, surroundings

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.providers import CallOutcome
    from tests.support.model_server import ModelServer, Request, Scenario

pytestmark = pytest.mark.realcli

MARKER = "marker-token"
ANSWER = '{"findings":[]}'


def answer(prompt: str) -> str:
    del prompt
    return ANSWER


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository that would like to tell its reader what to do."""
    folder = tmp_path / "checkout"
    (folder / "sub").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)  # noqa: S603, S607 - fixed words
    (folder / "AGENTS.md").write_text(f"{MARKER}\n")
    for place in (".agents", ".codex"):
        skill = folder / place / "skills" / "marker"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(f"---\nname: {MARKER}\ndescription: {MARKER}\n---\n{MARKER}\n")
    (folder / ".codex" / "config.toml").write_text(
        f'developer_instructions = "{MARKER}"\n'
        f'[mcp_servers.x]\ncommand = "/usr/bin/touch"\nargs = ["{tmp_path}/mcp"]\n'
    )
    (folder / "file.txt").write_text("file-canary\n")
    return folder


class Reader:
    """The real program behind a shim."""

    def __init__(self, program: Path, server: ModelServer, tmp_path: Path) -> None:
        self.program = program
        self.server = server
        self.tmp_path = tmp_path
        self.around = surroundings(tmp_path, CODEX_API_KEY="key-canary")

    def read(self, name: str, scenario: Scenario, checkout: Path) -> tuple[CallOutcome, tuple[Request, ...]]:
        options = custom_provider(self.server.play(name, scenario))
        provider = CodexProvider.at(
            write_shim(self.tmp_path / name, self.program, options), around=self.around
        )
        call = ReadCall("Read it.", checkout, "fake-model", 30, ANSWER_SCHEMA)
        outcome = provider.read(call, around=self.around)
        assert left_behind(self.around) == []
        return outcome, self.server.requests(name)


@pytest.fixture
def reader(codex_program: Path, model_server: ModelServer, tmp_path: Path) -> Reader:
    return Reader(codex_program, model_server, tmp_path)


def test_a_reader_reads_and_is_not_led(reader: Reader, checkout: Path, tmp_path: Path) -> None:
    """P13: a command reads the checkout; its AGENTS.md, skills and configuration reach nobody."""
    outcome, requests = reader.read("read-tool", ToolCall("cat file.txt", answer), checkout)

    assert (outcome.ending, outcome.answer) == (Ending.SUCCESS, ANSWER)
    assert len(requests) == 2
    assert "file-canary" in json.dumps(requests[1].body)
    assert not any(MARKER in json.dumps(request.body) for request in requests)
    assert not any("web_search" in json.dumps(request.body["tools"]) for request in requests)
    assert requests[0].body["text"]["format"]["schema"] == ANSWER_SCHEMA
    assert not (tmp_path / "mcp").exists()


def test_a_reader_changes_nothing(reader: Reader, checkout: Path) -> None:
    """P13: the program's own sandbox refuses it."""
    outcome, requests = reader.read("read-write", ToolCall("touch written", answer), checkout)

    assert outcome.ending is Ending.SUCCESS
    assert len(requests) == 2
    assert not (checkout / "written").exists()


def test_a_model_that_was_moved_is_a_warning(reader: Reader, checkout: Path) -> None:
    """P13 F37: told, and no error in a read call."""
    outcome, _ = reader.read("read-moved", Answer(answer, reported="other-model"), checkout)

    assert outcome.ending is Ending.SUCCESS
    assert outcome.observed_model == "other-model"
