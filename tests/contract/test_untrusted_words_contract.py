"""Words of anybody's in what real programs are asked, and folders of anybody's around their sessions.

What is judged or reviewed stands in the prompt, so whoever wrote it may write what a program takes for more
than text: a file to send along, a skill to load, a command. And the temporary folder may lie in somebody's
repository, which has instructions and skills of its own.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.providers import Ending, JudgeCall, Mount, ReadCall, WarningCode, WorkCall
from skill_effectiveness.providers.claude import ClaudeProvider
from skill_effectiveness.providers.codex import CodexProvider
from skill_effectiveness.providers.kimi import KimiProvider
from tests.support.codex_shim import custom_provider, write_shim
from tests.support.kimi import write_configuration
from tests.support.leavings import nothing_left
from tests.support.messages_wire import Formed
from tests.support.model_server import Answer
from tests.support.provider_calls import ANSWER, SCHEMA, same_answer, surroundings

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.providers import CallOutcome, Provider
    from tests.support.model_server import ModelServer

pytestmark = pytest.mark.realcli

NUMBERS = count()
MODEL = "fake-model"
MARKER = "marker-token"
SECRET = "secret-canary"
FOLDERS = (".agents/skills", ".codex/skills", ".claude/skills", ".kimi-code/skills", ".kimi/skills")


@dataclass(frozen=True)
class Bench:
    """One real program in surroundings of the test's own, and what its model server sees."""

    provider: Provider
    around: Surroundings
    server: ModelServer
    name: str
    tmp_path: Path

    def sent(self) -> str:
        """All requests so far."""
        return json.dumps([request.body for request in self.server.requests(self.name)])

    def judge(self, prompt: str) -> CallOutcome:
        outcome = self.provider.judge(JudgeCall(prompt, SCHEMA, MODEL, 60), around=self.around)
        nothing_left(self.around)
        return outcome

    def read(self, prompt: str, checkout: Path) -> CallOutcome:
        outcome = self.provider.read(ReadCall(prompt, checkout, MODEL, 60, SCHEMA), around=self.around)
        nothing_left(self.around)
        return outcome

    def work(self, prompt: str, copy: Path, mount: Mount | None = None) -> CallOutcome:
        outcome = self.provider.work(WorkCall(prompt, copy, MODEL, 60, mount=mount), around=self.around)
        nothing_left(self.around)
        return outcome


def codex_bench(request: pytest.FixtureRequest, tmp_path: Path, server: ModelServer) -> Bench:
    name = f"words-{next(NUMBERS)}"
    around = surroundings(tmp_path, CODEX_API_KEY="key-canary")
    options = custom_provider(server.play(name, Answer(same_answer)))
    shim = write_shim(tmp_path / "codex", request.getfixturevalue("codex_program"), options)
    return Bench(CodexProvider.at(shim, around=around), around, server, name, tmp_path)


def claude_bench(request: pytest.FixtureRequest, tmp_path: Path, server: ModelServer) -> Bench:
    name = f"words-{next(NUMBERS)}"
    base_url = server.play(name, Formed(same_answer)).removesuffix("/v1")
    around = surroundings(tmp_path, ANTHROPIC_API_KEY="key-canary", ANTHROPIC_BASE_URL=base_url)
    # The program has 400 MB, which would be hashed for every call.
    script = tmp_path / "claude"
    program = shlex.quote(str(request.getfixturevalue("claude_program")))
    script.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
    script.chmod(0o755)
    return Bench(ClaudeProvider.at(script, around=around), around, server, name, tmp_path)


def kimi_bench(request: pytest.FixtureRequest, tmp_path: Path, server: ModelServer) -> Bench:
    name = f"words-{next(NUMBERS)}"
    place = tmp_path / "installed"
    place.mkdir()
    (place / "kimi").symlink_to(request.getfixturevalue("kimi_script"))
    (place / "node").symlink_to(request.getfixturevalue("node_program"))
    write_configuration(tmp_path / "home", server.play(name, Answer(same_answer)), MODEL)
    around = surroundings(tmp_path, HOME=str(tmp_path / "home"), PATH=f"{place}:/usr/bin:/bin")
    return Bench(KimiProvider.at(place / "kimi", around=around), around, server, name, tmp_path)


BENCHES = {"codex": codex_bench, "claude": claude_bench, "kimi": kimi_bench}


@pytest.fixture(params=BENCHES)
def bench(request: pytest.FixtureRequest, tmp_path: Path, model_server: ModelServer) -> Bench:
    return BENCHES[request.param](request, tmp_path, model_server)


@pytest.fixture
def codex(request: pytest.FixtureRequest, tmp_path: Path, model_server: ModelServer) -> Bench:
    return codex_bench(request, tmp_path, model_server)


@pytest.fixture
def kimi(request: pytest.FixtureRequest, tmp_path: Path, model_server: ModelServer) -> Bench:
    return kimi_bench(request, tmp_path, model_server)


def plant(folder: Path, *, repository: bool = True) -> None:
    """Instructions, skills, agents and servers of somebody's in a folder."""
    for place in (".git/objects", ".git/refs") if repository else ():
        (folder / place).mkdir(parents=True)
    if repository:
        (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    for place in FOLDERS:
        (folder / place / "planted").mkdir(parents=True)
        skill = f"---\nname: planted\ndescription: {MARKER}\n---\n{MARKER}\n"
        (folder / place / "planted" / "SKILL.md").write_text(skill)
    for name in ("AGENTS.md", "CLAUDE.md", ".kimi-code/AGENTS.md"):
        (folder / name).write_text(f"{MARKER}\n")
    (folder / ".kimi-code" / "agents").mkdir()
    for name in ("agent", "reviewer", "reader"):
        agent = f"---\nname: {name}\ndescription: {MARKER}\noverride: true\n---\n{MARKER}\n"
        (folder / ".kimi-code" / "agents" / f"{name}.md").write_text(agent)
    server = {"mcpServers": {"x": {"command": "/usr/bin/touch", "args": [str(folder / "touched")]}}}
    for name in (".mcp.json", ".kimi-code/mcp.json"):
        (folder / name).write_text(json.dumps(server))


def words(tmp_path: Path) -> str:
    """Everything in a text that could be taken for more than text."""
    secret = tmp_path / "secret.txt"
    secret.write_text(f"{SECRET}\n")
    folder = tmp_path / "private"
    folder.mkdir()
    (folder / f"{SECRET}.txt").touch()
    return (
        f'Compare @{secret} and @"{secret}" and @{folder} and @secret.txt and $planted and ${{secret}} '
        f"and !`cat {secret}` and [$planted]({secret}) and file://{secret} and <file>{secret}</file>."
    )


class TestTheTextOfAJudgedCase:
    def test_sends_no_file_and_loads_no_skill(self, bench: Bench) -> None:
        """P4 P9 F32: what stands in a prompt is text, and arrives as it is."""
        plant(bench.tmp_path)
        prompt = words(bench.tmp_path)
        outcome = bench.judge(prompt)

        assert (outcome.ending, outcome.answer) == (Ending.SUCCESS, ANSWER)
        assert json.dumps(prompt)[1:-1] in bench.sent()
        assert SECRET not in bench.sent()

    def test_hears_nobody_in_whose_repository_the_session_lies(self, bench: Bench) -> None:
        """F31 F32: TMPDIR below a repository full of instructions."""
        plant(bench.tmp_path)
        outcome = bench.judge("Which is better?")

        assert outcome.ending is Ending.SUCCESS
        assert MARKER not in bench.sent()
        assert not (bench.tmp_path / "touched").exists()


class TestTheTextOfAChange:
    def test_leads_no_reader(self, bench: Bench) -> None:
        """P13 F32: a change under review that names a skill of its checkout, or a file of the user's."""
        checkout = bench.tmp_path / "checkout"
        plant(checkout)
        (checkout / "secret.txt").write_text(f"{SECRET}\n")
        outcome = bench.read(f"Review it: {words(bench.tmp_path)}", checkout)

        assert outcome.ending is Ending.SUCCESS
        assert MARKER not in bench.sent()
        assert SECRET not in bench.sent()
        assert not (checkout / "touched").exists()

    def test_a_skill_behind_a_link_leads_none_either(self, codex: Bench) -> None:
        """F32: nor one that is deep below."""
        checkout, away = codex.tmp_path / "checkout", codex.tmp_path / "away"
        plant(away)
        (checkout / ".agents").mkdir(parents=True)
        (checkout / ".agents" / "skills").symlink_to(away / ".agents" / "skills")
        (checkout / ".codex" / "skills").mkdir(parents=True)
        (checkout / ".codex" / "skills" / "deep").symlink_to(away / ".claude")

        assert codex.read("Look at $planted.", checkout).ending is Ending.SUCCESS
        assert MARKER not in codex.sent()


class TestTheTextOfATask:
    def test_sends_no_file(self, bench: Bench) -> None:
        """P4: the worker may read what it may read, and the program does not do it unasked."""
        copy = bench.tmp_path / "copy"
        copy.mkdir()

        assert bench.work(words(bench.tmp_path), copy).ending is Ending.SUCCESS
        assert SECRET not in bench.sent()

    def test_a_worker_hears_no_repository_around_it(self, bench: Bench) -> None:
        """F31 F32: a copy that lies in one; kimi would listen there, so it is not started."""
        outer = bench.tmp_path / "outer"
        plant(outer)
        (outer / "copy").mkdir()
        outcome = bench.work("Mend it.", outer / "copy")

        assert MARKER not in bench.sent()
        if bench.provider.name == "kimi":
            assert outcome.ending is Ending.UNSTARTABLE
            assert [warning.code for warning in outcome.warnings] == [WarningCode.SESSION_UNAVAILABLE]
            assert not bench.server.requests(bench.name)
        else:
            assert outcome.ending is Ending.SUCCESS

    def test_a_copy_that_is_a_repository_hears_none_above_it(self, kimi: Bench) -> None:
        """F32: it is its own top, and so is not refused."""
        outer = kimi.tmp_path / "outer"
        plant(outer)
        (outer / "copy" / ".git").mkdir(parents=True)

        assert kimi.work("Mend it.", outer / "copy").ending is Ending.SUCCESS
        assert MARKER not in kimi.sent()
