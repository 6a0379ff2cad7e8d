"""The adapter against the real claude, which talks to a model server on loopback.

Recordings say what the program once printed; these say that it still does. Every test is over only when no
process of its sessions is left, no file lies outside the private folders, and the user's own home is as it
was.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from skill_effectiveness.providers import (
    UNKNOWN_USAGE,
    Ending,
    JudgeCall,
    Mount,
    ReadCall,
    SandboxKind,
    Usage,
    WorkCall,
)
from skill_effectiveness.providers.claude import ClaudeProvider, skill_identity
from skill_effectiveness.providers.claude_skills import skill_events
from tests.support.messages_wire import Formed, MessagesWire
from tests.support.model_server import (
    Answer,
    Cut,
    Hang,
    NamedCall,
    OneModelOnly,
    Quota,
    Refused,
    SkillCall,
    ToolCall,
)
from tests.support.players import erring, sound
from tests.support.provider_calls import ANSWER, SCHEMA, left_behind, same_answer, surroundings
from tests.support.token_server import TokenServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.execution import Executable
    from skill_effectiveness.providers import CallOutcome
    from tests.support.model_server import ModelServer, Request, Scenario
    from tests.support.model_wire import Asked, Reply, Wire

pytestmark = pytest.mark.realcli

CHECKOUT = Path(__file__).parents[2]
MODEL = "claude-fake-1"
MARKER = "marker-token-93ab"
PATIENCE = 120.0
"""Seconds a call may take on a machine that does much else; no good call needs two."""
NUMBERS = count()
PAIR = ("reviewer-calibration.json", "reviewer-calibration-result.json")
ONE_REQUEST = Usage(1200, 200, 34, 0, 0.00472)


@dataclass(frozen=True)
class Declines:
    """A model whose provider stops every answer."""

    def answer(self, wire: Wire, asked: Asked) -> Reply:
        assert isinstance(wire, MessagesWire)
        return wire.refusal(asked.model)


@dataclass(frozen=True)
class Moved:
    """A server that lets another model answer."""

    scenario: Scenario

    def answer(self, wire: Wire, asked: Asked) -> Reply | None:
        return self.scenario.answer(wire, replace(asked, model="claude-other-2"))


@dataclass(frozen=True)
class LimitReached:
    """A subscription whose hours are used up."""

    def answer(self, wire: Wire, asked: Asked) -> Reply:
        del asked
        head = {
            "anthropic-ratelimit-unified-status": "rejected",
            "anthropic-ratelimit-unified-reset": "4102444800",
            "anthropic-ratelimit-unified-representative-claim": "five_hour",
            "anthropic-ratelimit-unified-overage-status": "rejected",
        }
        return replace(wire.error(429, "rate_limit_error", "This would exceed the limit."), headers=head)


@dataclass(frozen=True)
class Run:
    """One call of the real program and the model requests it made."""

    outcome: CallOutcome
    requests: tuple[Request, ...]

    @property
    def sent(self) -> str:
        """Everything that reached the server."""
        return json.dumps([request.body for request in self.requests])


class Claude:
    """The real program, in surroundings of the test's own."""

    def __init__(self, executable: Executable, server: ModelServer, tmp_path: Path) -> None:
        self.provider = ClaudeProvider(executable)
        self.server = server
        self.tmp_path = tmp_path
        self.environ = {"ANTHROPIC_API_KEY": "key-canary", "HOME": str(tmp_path / "home")}

    def around(self, name: str, scenario: Scenario) -> Surroundings:
        base_url = self.server.play(name, scenario).removesuffix("/v1")
        return surroundings(self.tmp_path, ANTHROPIC_BASE_URL=base_url, **self.environ)

    def judge(
        self,
        scenario: Scenario,
        *,
        prompt: str = "Which is better?",
        model: str = MODEL,
        seconds: float = PATIENCE,
    ) -> Run:
        name = f"claude-{next(NUMBERS)}"
        around = self.around(name, scenario)
        outcome = self.provider.judge(JudgeCall(prompt, SCHEMA, model, seconds), around=around)
        return Run(outcome, self.server.requests(name))

    def read(self, scenario: Scenario, checkout: Path, *, schema: dict[str, Any] | None = None) -> Run:
        name = f"claude-{next(NUMBERS)}"
        around = self.around(name, scenario)
        outcome = self.provider.read(ReadCall("Read it.", checkout, MODEL, PATIENCE, schema), around=around)
        return Run(outcome, self.server.requests(name))

    def work(self, scenario: Scenario, copy: Path, mount: Mount | None = None) -> Run:
        name = f"claude-{next(NUMBERS)}"
        around = self.around(name, scenario)
        outcome = self.provider.work(WorkCall("Work.", copy, MODEL, PATIENCE, mount=mount), around=around)
        return Run(outcome, self.server.requests(name))


@pytest.fixture(scope="module")
def executable(claude_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Executable:
    """The program behind a script: it has 400 MB, which would be hashed for every call."""
    folder = tmp_path_factory.mktemp("bind")
    script = folder / "claude"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(str(claude_program))} "$@"\n')
    script.chmod(0o755)
    return ClaudeProvider.at(script, around=surroundings(folder)).executable


@pytest.fixture
def claude(executable: Executable, model_server: ModelServer, tmp_path: Path) -> Claude:
    plant_home(tmp_path)
    return Claude(executable, model_server, tmp_path)


def plant_skill(folder: Path, name: str = "marker") -> None:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {MARKER}\n---\n{MARKER}\n")


def plant_home(tmp_path: Path) -> None:
    """A home that would like to be heard: instructions, skills, commands, agents, hooks, servers."""
    home = tmp_path / "home"
    own = home / ".claude"
    for folder in ("commands", "agents", "rules", "output-styles"):
        (own / folder).mkdir(parents=True)
        (own / folder / "marker.md").write_text(f"---\nname: marker\ndescription: {MARKER}\n---\n{MARKER}\n")
    for place in (own / "skills", home / ".agents" / "skills", home / ".config" / "claude" / "skills"):
        plant_skill(place / "marker")
    for file in (own / "CLAUDE.md", home / "CLAUDE.md", home / "AGENTS.md", tmp_path / "CLAUDE.md"):
        file.write_text(f"{MARKER}\n")
    hook = {"hooks": [{"type": "command", "command": f"touch {tmp_path}/hook; echo {MARKER}"}]}
    settings = {"hooks": {"SessionStart": [hook], "UserPromptSubmit": [hook]}, "outputStyle": "marker"}
    (own / "settings.json").write_text(json.dumps(settings))
    servers = {"marker": {"command": "/usr/bin/touch", "args": [f"{tmp_path}/mcp"]}}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": servers}))


def log_in(claude: Claude, *, expires: int) -> Path:
    """A login of nobody's in the user's home, instead of a key; the file comes back."""
    del claude.environ["ANTHROPIC_API_KEY"]
    login = {
        "accessToken": "login-canary",
        "refreshToken": "refresh-canary",
        "expiresAt": expires,
        "scopes": ["user:inference", "user:profile"],
        "subscriptionType": "max",
    }
    file = claude.tmp_path / "home" / ".claude" / ".credentials.json"
    file.write_text(json.dumps({"claudeAiOauth": login}))
    return file


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository that would like to tell its reader, or worker, what to do."""
    folder = tmp_path / "outer" / "checkout"
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)  # noqa: S603, S607 - fixed words
    (tmp_path / "outer" / "CLAUDE.md").write_text(f"{MARKER}\n")
    for file in ("CLAUDE.md", "AGENTS.md", "CLAUDE.local.md"):
        (folder / file).write_text(f"{MARKER}\n")
    for place in (".claude", ".agents"):
        plant_skill(folder / place / "skills" / "marker")
    hook = {"hooks": [{"type": "command", "command": f"touch {tmp_path}/hook"}]}
    allowed = {"permissions": {"allow": ["Bash(*)", "Write"]}, "hooks": {"SessionStart": [hook]}}
    (folder / ".claude" / "settings.json").write_text(json.dumps(allowed))
    servers = {"marker": {"command": "/usr/bin/touch", "args": [f"{tmp_path}/mcp"]}}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    (folder / "sub").mkdir()
    (folder / "sub" / "CLAUDE.md").write_text(f"{MARKER}\n")
    (folder / "sub" / "file.txt").write_text("file-canary\n")
    return folder


def tree(folder: Path) -> dict[str, str]:
    """Every file of a folder with its content."""
    files = (path for path in folder.rglob("*") if path.is_file() and ".git/" not in str(path))
    return {str(path.relative_to(folder)): path.read_text() for path in files}


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path) -> Iterator[None]:
    """No process, no session folder, nothing that ran by itself, and a home nobody wrote to."""
    yield
    for process in psutil.process_iter(["environ"]):
        environment = process.info["environ"] or {}
        assert not environment.get("CLAUDE_CONFIG_DIR", "").startswith(str(tmp_path))
    assert not (tmp_path / "hook").exists()
    assert not (tmp_path / "mcp").exists()
    if (tmp_path / "temporary").exists():
        assert left_behind(surroundings(tmp_path)) == []
    if (tmp_path / "home" / ".claude").exists():
        found = tree(tmp_path / "home")
        plant_home(tmp_path / "again")
        planted = {
            name: text.replace("/again", "") for name, text in tree(tmp_path / "again" / "home").items()
        }
        assert found == planted | {name: text for name, text in found.items() if "credentials" in name}


class TestAnswers:
    def test_a_sound_model_that_reads_the_prompt(self, claude: Claude) -> None:
        """P2 P4 P6 P8 P9: the prompt reaches the model as it is, the answer comes back as it was given."""
        prompt = "Compare “A” with “B”.\n" + "é" * 70_000 + "\nLabels: case-01 case-02"

        def play(seen: str) -> str:
            labels = re.findall(r"case-\d\d", seen)
            return json.dumps({"judgments": [{"case": label, "verdict": "tie"} for label in labels]})

        run = claude.judge(Formed(play), prompt=prompt)

        assert run.outcome.ending is Ending.SUCCESS
        assert run.outcome.answer == (
            '{"judgments":[{"case":"case-01","verdict":"tie"},{"case":"case-02","verdict":"tie"}]}'
        )
        (request,) = run.requests
        assert (request.asked.prompt, request.asked.model) == (prompt, MODEL)
        assert run.outcome.usage == ONE_REQUEST
        assert (run.outcome.exit_code, run.outcome.observed_model) == (0, MODEL)
        assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", run.outcome.session_id or "")

    def test_no_tool_but_the_one_for_the_answer_is_offered(self, claude: Claude) -> None:
        """P9 P12: it has the asked form; the program's own placeholder can be called by nobody."""
        (request,) = claude.judge(Formed(same_answer)).requests
        offered = {tool["name"]: tool["input_schema"] for tool in request.body["tools"]}

        assert set(offered) - {"DeferredToolPlaceholder"} == {"StructuredOutput"}
        assert offered["StructuredOutput"] == SCHEMA

    def test_two_calls_are_two_sessions(self, claude: Claude) -> None:
        """R31 P3: nothing of the first is in the second."""
        first = claude.judge(Formed(same_answer), prompt="canary-first")
        second = claude.judge(Formed(same_answer), prompt="second")

        assert first.outcome.session_id != second.outcome.session_id
        assert "canary-first" not in second.sent

    def test_a_model_that_ignores_the_form(self, claude: Claude) -> None:
        """P12: reminded once by the program, and then no answer."""
        run = claude.judge(Answer(same_answer))

        assert (run.outcome.ending, run.outcome.exit_code) == (Ending.NO_ANSWER, 0)
        assert len(run.requests) == 2

    def test_a_model_that_misses_the_form(self, claude: Claude) -> None:
        """P12: text came, and not of the asked form; one attempt."""
        run = claude.judge(Formed(lambda _: '{"judgments":"none"}'))

        assert run.outcome.ending is Ending.ANSWER_INVALID
        assert len(run.requests) == 1
        usage = run.outcome.usage
        # The program gives up as soon as it has read the answer, at times before the stream's last count; it
        # tells a count of its own then.
        assert usage.output_tokens is not None
        assert 0 < usage.output_tokens <= 34
        assert replace(usage, output_tokens=34, cost_units=ONE_REQUEST.cost_units) == ONE_REQUEST

    def test_a_model_that_declines(self, claude: Claude) -> None:
        """P6: the provider's own word, without a second request and without another model."""
        run = claude.judge(Declines())

        assert run.outcome.ending is Ending.REFUSED
        assert len(run.requests) == 1


class TestTrouble:
    @pytest.mark.parametrize(
        ("scenario", "kind", "retryable", "requests"),
        [
            (Refused(401, "authentication_error", "invalid x-api-key"), "auth_unavailable", False, 2),
            (Refused(403, "permission_error", "not allowed"), "permission_denied", False, 1),
            (Refused(429, "rate_limit_error", "Slow down"), "rate_limited", True, 2),
            (Refused(500, "api_error", "It broke"), "server_error", True, 2),
            (Refused(529, "overloaded_error", "Overloaded"), "server_error", True, 2),
            (Quota(), "quota_unavailable", False, 1),
            (Cut(same_answer), "connection_lost", True, 2),
            (OneModelOnly("another-model", same_answer), "model_unavailable", False, 2),
        ],
        ids=["401", "403", "429", "500", "529", "quota", "cut", "wrong model"],
    )
    def test_each_has_its_kind_and_at_most_one_retry(
        self, claude: Claude, scenario: Scenario, kind: str, *, retryable: bool, requests: int
    ) -> None:
        """P7 P11 F13: the subtype is `success` in all of them."""
        run = claude.judge(scenario)

        assert (run.outcome.ending, run.outcome.error_kind) == (Ending.PROVIDER_ERROR, kind)
        assert run.outcome.retryable is retryable
        assert run.outcome.exit_code == 1
        assert len(run.requests) == requests
        # What came before a cut is counted where it arrived in time.
        assert isinstance(scenario, Cut) or run.outcome.usage == UNKNOWN_USAGE

    def test_a_form_that_the_server_refuses(self, claude: Claude) -> None:
        """P7: no answer will ever come of it."""
        sentence = "tools.1.custom.input_schema: JSON schema is invalid"
        run = claude.judge(Refused(400, "invalid_request_error", sentence))

        assert run.outcome.error_kind == "invalid_schema"

    def test_nobody_is_logged_in(self, claude: Claude) -> None:
        """P7: found out without a request."""
        del claude.environ["ANTHROPIC_API_KEY"]
        run = claude.judge(Formed(same_answer))

        assert run.outcome.error_kind == "auth_unavailable"
        assert run.requests == ()

    def test_a_hanging_model_is_ended_by_the_timeout(self, claude: Claude) -> None:
        """P10: within its time, its tree included."""
        run = claude.judge(Hang(), seconds=5)

        assert run.outcome.ending is Ending.TIMEOUT
        assert len(run.requests) <= 1
        assert 5000 <= run.outcome.latency_ms < 8000

    def test_a_program_that_is_killed(self, claude: Claude) -> None:
        """P6 P10: by anybody, in the middle of its work."""
        name = f"claude-{next(NUMBERS)}"
        around = claude.around(name, Hang())

        def kill() -> None:
            while not claude.server.requests(name):
                time.sleep(0.05)
            for process in psutil.process_iter(["environ", "exe"]):
                environment = process.info["environ"] or {}
                ours = environment.get("CLAUDE_CONFIG_DIR", "").startswith(str(claude.tmp_path))
                if ours and (process.info["exe"] or "").endswith("claude"):
                    process.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        outcome = claude.provider.judge(JudgeCall("?", SCHEMA, MODEL, PATIENCE), around=around)
        killer.join()

        assert (outcome.ending, outcome.exit_code) == (Ending.STREAM_INVALID, None)

    def test_our_own_stop(self, claude: Claude) -> None:
        """P6 P10: once the model was asked."""
        name = f"claude-{next(NUMBERS)}"
        around = claude.around(name, Hang())
        outcome = claude.provider.judge(
            JudgeCall("?", SCHEMA, MODEL, PATIENCE),
            around=around,
            cancelled=lambda: bool(claude.server.requests(name)),
        )

        assert outcome.ending is Ending.CANCELLED


class TestModels:
    def test_an_alias_is_refused(self, claude: Claude) -> None:
        """F37 P2 R31: it names another model in the first event."""
        outcome = claude.judge(Formed(same_answer), model="sonnet").outcome

        assert outcome.ending is Ending.MODEL_MISMATCH
        assert (outcome.observed_model or "").startswith("claude-sonnet-")

    def test_a_model_that_the_server_moved(self, claude: Claude, checkout: Path) -> None:
        """F37 P2 P13: an error for judges and workers, told for readers."""
        judged = claude.judge(Moved(Formed(same_answer))).outcome
        worked = claude.work(Moved(Answer(same_answer)), checkout).outcome
        read = claude.read(Moved(Answer(same_answer)), checkout).outcome

        assert (judged.ending, judged.answer) == (Ending.MODEL_MISMATCH, None)
        assert worked.ending is Ending.MODEL_MISMATCH
        assert (read.ending, read.observed_model) == (Ending.SUCCESS, "claude-other-2")


class TestTools:
    @pytest.mark.parametrize(
        "scenario",
        [
            ToolCall("true", same_answer),
            SkillCall("doctor", same_answer),
            NamedCall("WebFetch", {"url": "x"}, same_answer),
        ],
        ids=["command", "skill", "web"],
    )
    def test_a_tool_ends_a_judge_call(self, claude: Claude, scenario: Scenario) -> None:
        """P9 R31: at its first sign; what it asks before it is dead changes nothing, and no answer counts."""
        run = claude.judge(scenario)

        assert (run.outcome.ending, run.outcome.answer) == (Ending.TOOL_ACTIVITY, None)
        # The tool's result, and on a busy machine the reminder after it; never the attempts that follow.
        assert len(run.requests) <= 3


class TestReaders:
    def test_a_reader_reads_and_is_not_led(self, claude: Claude, checkout: Path) -> None:
        """P13 F32: the files of the checkout are read; what they, and the home, would say reaches nobody."""
        run = claude.read(NamedCall("Read", {"file_path": "sub/file.txt"}, same_answer), checkout)

        assert (run.outcome.ending, run.outcome.answer) == (Ending.SUCCESS, ANSWER)
        assert "file-canary" in run.sent
        assert MARKER not in run.sent
        assert set(run.requests[0].asked.tools) - {"DeferredToolPlaceholder"} == {
            "Bash",
            "Glob",
            "Grep",
            "Read",
        }
        told = {warning.code for warning in run.outcome.warnings}
        assert told.isdisjoint({"surface_differs", "unknown_event", "provider_notice"})

    def test_a_form_can_be_asked_for(self, claude: Claude, checkout: Path) -> None:
        """P12 P13: by the same tool."""
        run = claude.read(Formed(same_answer), checkout, schema=SCHEMA)
        assert (run.outcome.ending, run.outcome.answer) == (Ending.SUCCESS, ANSWER)

    @pytest.mark.parametrize("command", ["cat sub/file.txt", "git log --oneline"])
    def test_commands_that_read(self, claude: Claude, checkout: Path, command: str) -> None:
        """P13: without asking anybody."""
        run = claude.read(ToolCall(command, same_answer), checkout)

        assert run.outcome.ending is Ending.SUCCESS
        assert "provider_notice" not in [warning.code for warning in run.outcome.warnings]

    @pytest.mark.parametrize(
        "scenario",
        [
            ToolCall("touch written", same_answer),
            ToolCall("git log --output=written", same_answer),
            NamedCall("Write", {"file_path": "written", "content": "x"}, same_answer),
        ],
        ids=["command", "command that seems to read", "tool"],
    )
    def test_a_reader_changes_nothing(self, claude: Claude, checkout: Path, scenario: Scenario) -> None:
        """P13: whatever the checkout's own settings allow; denied, and nobody is waited for."""
        before = tree(checkout)
        run = claude.read(scenario, checkout)

        assert run.outcome.ending is Ending.SUCCESS
        assert len(run.requests) == 2
        assert tree(checkout) == before


@pytest.fixture
def mount(tmp_path: Path) -> Mount:
    skill = tmp_path / "arm" / "review-work"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: review-work\ndescription: skill-canary\n---\nbody-canary\n")
    return Mount((skill,), "instruction-canary")


class TestWorkers:
    def test_a_worker_changes_its_copy(self, claude: Claude, checkout: Path) -> None:
        """P13: by a command and by a tool, asking nobody; no web, no skill, nobody's instructions."""
        run = claude.work(ToolCall("echo done > by-command", same_answer), checkout)
        written = claude.work(
            NamedCall("Write", {"file_path": "by-tool", "content": "x"}, same_answer), checkout
        )

        assert (run.outcome.ending, written.outcome.ending) == (Ending.SUCCESS, Ending.SUCCESS)
        assert (checkout / "by-command").read_text() == "done\n"
        assert (checkout / "by-tool").read_text() == "x"
        assert MARKER not in run.sent + written.sent
        offered = {"Bash", "Edit", "Glob", "Grep", "Read", "Write"}
        assert set(run.requests[0].asked.tools) - {"DeferredToolPlaceholder"} == offered
        assert "available for use with the Skill tool" not in run.sent

    def test_a_worker_reads_a_folder_that_would_lead_it(self, claude: Claude, checkout: Path) -> None:
        """F32 F31: instructions beside the file that is read stay out."""
        run = claude.work(NamedCall("Read", {"file_path": "sub/file.txt"}, same_answer), checkout)

        assert "file-canary" in run.sent
        assert MARKER not in run.sent

    def test_a_mounted_skill_is_seen_used_and_told(
        self, claude: Claude, checkout: Path, mount: Mount
    ) -> None:
        """P13 F31 A24: it is the only one, its events are those of the contract, its instructions enter."""
        run = claude.work(SkillCall(skill_identity("review-work"), same_answer), checkout, mount)
        before = {name for name in tree(checkout) if "canary" in name}

        assert run.outcome.ending is Ending.SUCCESS
        assert before == set()
        first = json.dumps(run.requests[0].body)
        (offered,) = re.findall(r"following skills are available.*?:((?:\\n)+- .*?)(?:\\n){2}", first)
        assert offered.strip("\\n") == "- local:review-work: skill-canary"
        assert "instruction-canary" in first
        assert "body-canary" not in first
        assert "body-canary" in json.dumps(run.requests[1].body)
        assert MARKER not in run.sent
        assert run.outcome.recording is not None
        row = skill_events(run.outcome.recording)
        assert row.verifiable
        assert row.events is not None
        (invoked,) = row.events.skills_invoked
        assert (invoked.skill, invoked.event_index, invoked.completed) == ("local:review-work", 0, True)

    def test_a_skill_that_is_not_there(self, claude: Claude, checkout: Path, mount: Mount) -> None:
        """A24: an error completes nothing; the user's own is not there either."""
        run = claude.work(SkillCall("marker", same_answer), checkout, mount)

        assert run.outcome.ending is Ending.SUCCESS
        assert run.outcome.recording is not None
        row = skill_events(run.outcome.recording)
        assert row.events is not None
        assert [each.completed for each in row.events.skills_invoked] == [False]

    def test_a_write_beyond_the_copy(self, claude: Claude, checkout: Path, tmp_path: Path) -> None:
        """P13: stopped by the sandbox where there is one; the record says whether there was."""
        run = claude.work(ToolCall(f"touch {tmp_path}/beyond", same_answer), checkout)

        walled = run.outcome.sandbox is SandboxKind.BUBBLEWRAP
        assert (tmp_path / "beyond").exists() is not walled

    def test_nothing_goes_on_in_the_background(self, claude: Claude, checkout: Path) -> None:
        """P10 F6: what a result would cut off is not offered."""
        call = {"command": "sleep 30", "description": "d", "run_in_background": True}
        run = claude.work(NamedCall("Bash", call, same_answer), checkout)

        assert run.outcome.ending is Ending.SUCCESS
        assert run.outcome.latency_ms < 29_000


class TestHomes:
    def test_a_judge_hears_nothing_of_the_users(self, claude: Claude) -> None:
        """F32 P3: instructions, skills, commands, agents, styles, hooks, servers."""
        run = claude.judge(Formed(same_answer))

        assert run.outcome.ending is Ending.SUCCESS
        assert MARKER not in run.sent

    def test_the_users_login_and_nothing_else(self, claude: Claude) -> None:
        """P3 F32: read where it is, and left as it was."""
        file = log_in(claude, expires=4102444800000)
        before = file.read_text()
        run = claude.judge(Formed(same_answer))

        assert run.outcome.ending is Ending.SUCCESS
        assert [request.headers.get("Authorization") for request in run.requests] == ["Bearer login-canary"]
        assert MARKER not in run.sent
        assert file.read_text() == before

    def test_a_token_that_is_renewed_is_not_lost(self, claude: Claude, tmp_path: Path) -> None:
        """P3: the old one is worth nothing after that, so the new one has to outlive the session."""
        file = log_in(claude, expires=1_600_000_000_000)
        fresh: dict[str, object] = {
            "token_type": "Bearer",
            "access_token": "renewed-canary",
            "refresh_token": "renewed-refresh-canary",
            "expires_in": 28_800,
            "scope": "user:inference user:profile",
        }
        with TokenServer(tmp_path, ["platform.claude.com", "api.anthropic.com"], fresh) as tokens:
            claude.environ |= tokens.environ
            run = claude.judge(Formed(same_answer))

        assert "platform.claude.com:443 POST /v1/oauth/token" in tokens.asked
        assert [request.headers.get("Authorization") for request in run.requests] == ["Bearer renewed-canary"]
        kept = json.loads(file.read_text())["claudeAiOauth"]
        assert (kept["accessToken"], kept["refreshToken"]) == ("renewed-canary", "renewed-refresh-canary")

    def test_a_subscription_that_is_used_up(self, claude: Claude) -> None:
        """P7: no matter of waiting a moment, although its status is that of a rate limit."""
        del claude.environ["ANTHROPIC_API_KEY"]
        claude.environ["CLAUDE_CODE_OAUTH_TOKEN"] = "token-canary"
        outcome = claude.judge(LimitReached()).outcome

        assert outcome.error_kind == "quota_unavailable"


def test_eight_sessions_at_once_share_nothing(claude: Claude) -> None:
    """F41 P3: each gets its own answer, from its own session, in its own folders."""

    def play(prompt: str) -> str:
        return json.dumps({"judgments": [{"case": "case-01", "verdict": prompt}]})

    name = f"claude-{next(NUMBERS)}"
    around = claude.around(name, Formed(play))
    schema = {
        "type": "object",
        "properties": {"judgments": {"type": "array"}},
        "required": ["judgments"],
        "additionalProperties": False,
    }

    def ask(number: int) -> CallOutcome:
        return claude.provider.judge(JudgeCall(f"question {number}", schema, MODEL, PATIENCE), around=around)

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(ask, range(8)))

    assert [outcome.answer for outcome in outcomes] == [
        f'{{"judgments":[{{"case":"case-01","verdict":"question {number}"}}]}}' for number in range(8)
    ]
    assert len({outcome.session_id for outcome in outcomes}) == 8
    assert len(claude.server.requests(name)) == 8


class Examination:
    """A whole examination through the command line."""

    def __init__(self, program: Path, server: ModelServer, tmp_path: Path) -> None:
        (tmp_path / "home").mkdir()
        (tmp_path / "temporary").mkdir()
        self.program, self.server, self.tmp_path = program, server, tmp_path
        self.name = f"examination-claude-{next(NUMBERS)}"
        self.out = tmp_path / "out"

    def run(self, scenario: Scenario, *extra: str) -> tuple[int, str, int]:
        base_url = self.server.play(self.name, scenario).removesuffix("/v1")
        environment = {
            "HOME": str(self.tmp_path / "home"),
            "TMPDIR": str(self.tmp_path / "temporary"),
            "PATH": os.environ["PATH"],
            "ANTHROPIC_API_KEY": "key-canary-7f3a",
            "ANTHROPIC_BASE_URL": base_url,
        }
        words = ["reviewer-calibration", "--provider", "claude", "--claude-path", str(self.program)]
        words += ["--model", MODEL, "--reviewer-family", "claude", "--out", str(self.out)]
        done = subprocess.run(  # noqa: S603 - our own door
            [sys.executable, str(CHECKOUT / "run.py"), *words, "--timeout-seconds", "120", *extra],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert "Traceback" not in done.stderr
        assert "key-canary-7f3a" not in done.stdout + done.stderr
        return done.returncode, done.stdout + done.stderr, len(self.server.requests(self.name))

    @property
    def published(self) -> list[str]:
        return [name for name in PAIR if (self.out / name).exists()]


@pytest.fixture
def examination(claude_program: Path, model_server: ModelServer, tmp_path: Path) -> Examination:
    return Examination(claude_program, model_server, tmp_path)


class TestExaminations:
    def test_a_sound_model_passes(self, examination: Examination) -> None:
        """R32 R31: two repeats, two requests, a published pair with the labels of this provider."""
        code, said, requests = examination.run(Formed(sound))

        assert (code, requests) == (0, 2), said
        assert "calibration_status=pass\n" in said
        result = json.loads((examination.out / PAIR[1]).read_text())
        assert result["tool_access"] == "verified-none"
        assert result["requested_session_mode"] == "no-session-persistence"
        assert result["calibration_evaluation"]["reviewer_metrics"]["claude"]["known_answer_accuracy"] == 1

    def test_an_erring_model_fails_and_is_published(self, examination: Examination) -> None:
        """R31: exit 1 with the pair."""
        code, said, requests = examination.run(Formed(erring))

        assert (code, requests) == (1, 2), said
        assert "calibration_status=fail\n" in said
        assert examination.published == list(PAIR)

    def test_a_tool_publishes_nothing_and_is_not_asked_again(self, examination: Examination) -> None:
        """R31 P9: exit 2 and the typed state."""
        code, said, requests = examination.run(ToolCall("true", sound))

        assert code == 2, said
        assert "tool_activity" in said
        assert requests <= 2
        assert examination.published == []
