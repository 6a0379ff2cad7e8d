"""The adapter against the real codex, which talks to a model server on loopback.

Recordings say what the program once printed; these say that it still does. Each test is one call, so the
number of model requests is part of what is asserted.
"""

from __future__ import annotations

import json
import re
import struct
import time
import zlib
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.providers import UNKNOWN_USAGE, CodexProvider, Ending, Usage
from tests.support.codex_shim import built_in_provider, custom_provider, write_shim
from tests.support.leavings import nothing_left
from tests.support.model_server import (
    Answer,
    Cut,
    Hang,
    OneModelOnly,
    Quota,
    Refused,
    ToolCall,
)
from tests.support.provider_calls import ANSWER, SCHEMA, question, same_answer, surroundings

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.providers import CallOutcome
    from tests.support.model_server import ModelServer, Request, Scenario
    from tests.support.model_wire import Asked, Document, Reply, Wire

pytestmark = pytest.mark.realcli

MODEL = "fake-model"
NUMBERS = count()


ANSWERING = Answer(same_answer)


@dataclass(frozen=True)
class Run:
    """One judge call of the real program and the model requests it made."""

    outcome: CallOutcome
    requests: tuple[Request, ...]
    seconds: float

    @property
    def notices(self) -> list[str]:
        return [warning.text for warning in self.outcome.warnings]


class Codex:
    """The real program behind a shim, in surroundings of the test's own."""

    def __init__(self, program: Path, server: ModelServer, tmp_path: Path, **environ: str) -> None:
        self.program = program
        self.server = server
        self.tmp_path = tmp_path
        self.around = surroundings(tmp_path, **({"CODEX_API_KEY": "key-canary"} | environ))

    def ask(
        self,
        scenario: Scenario,
        *,
        prompt: str = "Which is better?",
        model: str = MODEL,
        seconds: float = 30,
        retries: int = 0,
        built_in: bool = False,
    ) -> Run:
        name = f"codex-{next(NUMBERS)}"
        base_url = self.server.play(name, scenario)
        options = built_in_provider(base_url) if built_in else custom_provider(base_url, retries=retries)
        shim = write_shim(self.tmp_path / name, self.program, options)
        provider = CodexProvider.at(shim, around=self.around)
        began = time.monotonic()
        outcome = provider.judge(question(prompt, model=model, seconds=seconds), around=self.around)
        seconds = time.monotonic() - began
        nothing_left(self.around)
        return Run(outcome, self.server.requests(name), seconds)


@pytest.fixture
def codex(codex_program: Path, model_server: ModelServer, tmp_path: Path) -> Codex:
    return Codex(codex_program, model_server, tmp_path)


@dataclass(frozen=True)
class Wants:
    """A model that first wants one tool of the surface, then answers."""

    item: dict[str, Any]

    def answer(self, wire: Wire, asked: Asked) -> Reply:
        reply = wire.text(asked.model, ANSWER)
        if asked.tool_results:
            return reply
        call = wire.tool_call(asked.model, "true")
        return replace(call, events=[(name, self.changed(document)) for name, document in call.events])

    def changed(self, event: Document) -> Document:
        if "item" in event:
            return {**event, "item": self.item}
        response = {**event["response"], "output": [self.item] if event["response"]["output"] else []}
        return {**event, "response": response}


def function(name: str, **arguments: object) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": name,
        "arguments": json.dumps(arguments),
        "status": "completed",
    }


class TestAnswers:
    def test_a_sound_model_that_reads_the_prompt(self, codex: Codex) -> None:
        """P2 P4 P6 P8: the prompt reaches the model as it is, the answer comes back as it was given."""
        prompt = "Compare “A” with “B”.\n" + "é" * 70_000 + "\nLabels: case-01 case-02"

        def play(seen: str) -> str:
            labels = re.findall(r"case-\d\d", seen)
            return json.dumps({"judgments": [{"case": label, "verdict": "tie"} for label in labels]})

        run = codex.ask(Answer(play), prompt=prompt)

        assert run.outcome.ending is Ending.SUCCESS
        assert run.outcome.answer == (
            '{"judgments": [{"case": "case-01", "verdict": "tie"}, {"case": "case-02", "verdict": "tie"}]}'
        )
        (request,) = run.requests
        assert request.asked.prompt == prompt
        assert request.asked.model == MODEL
        assert run.outcome.usage == Usage(1200, 200, 34, 5, None)
        assert run.outcome.exit_code == 0
        assert run.outcome.observed_model is None
        assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", run.outcome.session_id or "")

    def test_the_schema_is_enforced_by_the_request(self, codex: Codex) -> None:
        """P12: the answer's form reaches the model server as a strict schema."""
        (request,) = codex.ask(ANSWERING).requests

        asked_form = request.body["text"]["format"]
        assert asked_form["type"] == "json_schema"
        assert asked_form["strict"] is True
        assert asked_form["schema"] == SCHEMA

    def test_two_calls_are_two_sessions(self, codex: Codex) -> None:
        """R31 P3: nothing of the first is in the second."""
        first = codex.ask(ANSWERING, prompt="canary-first")
        second = codex.ask(ANSWERING, prompt="second")

        assert first.outcome.session_id != second.outcome.session_id
        assert "canary-first" not in json.dumps(second.requests[0].body)

    def test_the_last_of_several_messages_is_the_answer(self, codex: Codex) -> None:
        """P6: a preamble before it is not."""

        class Talkative:
            def answer(self, wire: Wire, asked: Asked) -> Reply:
                first, last = wire.text(asked.model, "Let me see."), wire.text(asked.model, ANSWER)
                return replace(last, events=[*first.events[:-1], *last.events[1:]])

        assert codex.ask(Talkative()).outcome.answer == ANSWER

    @pytest.mark.parametrize("text", ["", " "])
    def test_an_empty_message_is_no_answer(self, codex: Codex, text: str) -> None:
        """F16: exit code 0 and nothing said."""
        run = codex.ask(Answer(lambda _: text))

        assert run.outcome.ending is Ending.NO_ANSWER
        assert run.outcome.exit_code == 0

    def test_without_usage_the_cost_is_unknown(self, codex: Codex) -> None:
        """F40: the program prints zeros then."""

        class Uncounted:
            def answer(self, wire: Wire, asked: Asked) -> Reply:
                reply = wire.text(asked.model, ANSWER)
                name, last = reply.events[-1]
                response = {key: value for key, value in last["response"].items() if key != "usage"}
                return replace(reply, events=[*reply.events[:-1], (name, {**last, "response": response})])

        run = codex.ask(Uncounted())

        assert run.outcome.ending is Ending.SUCCESS
        assert run.outcome.usage == UNKNOWN_USAGE


class TestTools:
    def test_a_command_ends_the_call(self, codex: Codex) -> None:
        """P9 R31: stopped at its first sign, before or at the second model request."""
        run = codex.ask(ToolCall("sleep 20", same_answer))

        assert run.outcome.ending is Ending.TOOL_ACTIVITY
        assert len(run.requests) == 1
        assert run.seconds < 15

    def test_a_command_that_is_done_at_once(self, codex: Codex) -> None:
        """P9: at most one request more, and no answer all the same."""
        run = codex.ask(ToolCall("true", same_answer))

        assert run.outcome.ending is Ending.TOOL_ACTIVITY
        assert run.outcome.answer is None
        assert len(run.requests) <= 2

    def test_a_web_search_shows_although_its_line_is_not_strict_json(self, codex: Codex) -> None:
        """P9: the program writes its item with two members `id`."""
        search = {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "x"},
        }
        run = codex.ask(Wants(search))

        assert run.outcome.ending is Ending.TOOL_ACTIVITY
        assert len(run.requests) == 1

    @pytest.mark.parametrize("name", ["no_such_tool", "get_goal", "write_stdin"])
    def test_a_refused_call_shows_on_stderr(self, codex: Codex, name: str) -> None:
        """P9: no item in the stream."""
        run = codex.ask(Wants(function(name, session_id=1, chars="")))

        assert run.outcome.ending is Ending.TOOL_ACTIVITY
        assert len(run.requests) == 2

    def test_a_command_that_the_sandbox_refuses_may_leave_no_sign(self, codex: Codex) -> None:
        """P9: a limit of the label, pinned so that a change of the program is noticed.

        One that is refused slowly, on a busy machine, does leave one; so it is tried several times.
        """
        runs = (codex.ask(Wants(function("exec_command", cmd="touch /nowhere"))) for _ in range(5))
        run = next(run for run in runs if run.outcome.ending is not Ending.TOOL_ACTIVITY)

        assert run.outcome.ending is Ending.SUCCESS
        assert len(run.requests) == 2
        assert run.requests[1].asked.tool_results == 1

    def test_an_image_that_is_looked_at_leaves_no_sign(self, codex: Codex) -> None:
        """P9: the other limit of the label."""
        picture = codex.tmp_path / "picture.png"
        picture.write_bytes(one_pixel())
        run = codex.ask(Wants(function("view_image", path=str(picture))))

        assert run.outcome.ending is Ending.SUCCESS
        assert len(run.requests) == 2


class TestProviderErrors:
    @pytest.mark.parametrize(
        ("scenario", "kind", "retryable"),
        [
            (Refused(401, "invalid_api_key", "Incorrect API key provided"), "auth_unavailable", False),
            (Refused(403, "forbidden", "Country not supported"), "permission_denied", False),
            (Refused(429, "rate_limit_exceeded", "Slow down"), "rate_limited", True),
            (Refused(500, "server_error", "It broke"), "server_error", True),
            (Refused(503, "server_is_overloaded", "Busy"), "server_error", True),
            (
                Refused(400, "invalid_json_schema", "Invalid schema for response_format"),
                "invalid_schema",
                False,
            ),
            (Refused(429, "insufficient_quota", "Out of credit"), "quota_unavailable", False),
            (Quota(), "quota_unavailable", False),
            (Cut(same_answer), "connection_lost", True),
        ],
        ids=["401", "403", "429", "500", "503", "schema", "quota status", "quota event", "cut"],
    )
    def test_each_trouble_has_its_kind_and_one_request(
        self, codex: Codex, scenario: Scenario, kind: str, *, retryable: bool
    ) -> None:
        """P7 P11 F13: with the program's own retries turned down, one call is one request."""
        run = codex.ask(scenario)

        assert run.outcome.ending is Ending.PROVIDER_ERROR
        assert run.outcome.error_kind == kind
        assert run.outcome.retryable is retryable
        assert run.outcome.exit_code == 1
        assert run.outcome.usage == UNKNOWN_USAGE
        assert len(run.requests) == 1

    def test_a_model_that_is_not_there(self, codex: Codex) -> None:
        """P2 P7 R31: the wrong model is refused, not replaced."""
        run = codex.ask(
            OneModelOnly(MODEL, same_answer),
            model="wrong-model",
        )

        assert run.outcome.ending is Ending.PROVIDER_ERROR
        assert run.outcome.error_kind == "model_unavailable"
        assert len(run.requests) == 1

    def test_a_model_that_was_moved_is_told(self, codex: Codex) -> None:
        """F37 P2: the server says that another model answered, and the program passes it on."""
        run = codex.ask(Answer(same_answer, reported="other-model"))

        assert run.outcome.ending is Ending.MODEL_MISMATCH
        assert run.outcome.observed_model == "other-model"
        assert len(run.requests) == 1

    def test_retries_of_the_program_are_recorded(self, codex: Codex) -> None:
        """P11: a retry is a warning; what is final is the turn that failed."""
        run = codex.ask(Cut(same_answer), retries=1)

        assert run.outcome.error_kind == "connection_lost"
        assert len(run.requests) == 2
        assert sum(notice.startswith("Reconnecting... 1/1") for notice in run.notices) == 1

    def test_a_server_that_never_answers(self, codex: Codex) -> None:
        """P6 P10 R26: over within its timeout plus two seconds, nothing left."""
        run = codex.ask(Hang(), seconds=2)

        assert run.outcome.ending is Ending.TIMEOUT
        assert 2000 <= run.outcome.latency_ms < 4000
        assert len(run.requests) == 1


class TestTheUsersOwnThings:
    def test_the_login_file_is_used_and_nothing_else_of_the_home(
        self, codex_program: Path, model_server: ModelServer, tmp_path: Path
    ) -> None:
        """F32 P3: markers in the real home and its configuration reach neither the model nor the provider."""
        home = tmp_path / "home"
        (home / ".codex" / "skills" / "marker").mkdir(parents=True)
        (home / ".agents" / "skills" / "marker").mkdir(parents=True)
        login = {"auth_mode": "apikey", "OPENAI_API_KEY": "login-canary"}
        (home / ".codex" / "auth.json").write_text(json.dumps(login))
        (home / ".codex" / "config.toml").write_text('model = "marker-token"\n')
        skill = "---\nname: marker-token\ndescription: marker-token\n---\nmarker-token\n"
        for path in (".codex/AGENTS.md", ".codex/skills/marker/SKILL.md", ".agents/skills/marker/SKILL.md"):
            (home / path).write_text(skill)
        codex = Codex(codex_program, model_server, tmp_path, HOME=str(home), CODEX_API_KEY="")
        run = codex.ask(ANSWERING, built_in=True)

        assert run.outcome.ending is Ending.SUCCESS
        (request,) = run.requests
        assert request.headers["authorization"] == "Bearer login-canary"
        assert "marker-token" not in json.dumps(request.body)
        assert "marker-token" not in json.dumps(dict(request.headers))

    def test_the_key_of_the_environment_is_the_programs_own(
        self, codex_program: Path, model_server: ModelServer, tmp_path: Path
    ) -> None:
        """P3: CODEX_API_KEY is read by the program."""
        codex = Codex(codex_program, model_server, tmp_path, CODEX_API_KEY="key-canary")
        (request,) = codex.ask(ANSWERING, built_in=True).requests

        assert request.headers["authorization"] == "Bearer key-canary"

    def test_other_keys_of_the_same_vendor_are_not(
        self, codex_program: Path, model_server: ModelServer, tmp_path: Path
    ) -> None:
        """P3: OPENAI_API_KEY would not be read, and does not get that far."""
        codex = Codex(
            codex_program, model_server, tmp_path, CODEX_API_KEY="", OPENAI_API_KEY="foreign-canary"
        )
        (request,) = codex.ask(ANSWERING, built_in=True).requests

        assert "foreign-canary" not in json.dumps(dict(request.headers))


class TestIdentity:
    def test_the_version_passes_through_the_shim(self, codex: Codex, codex_program: Path) -> None:
        """P2: the real program's own line."""
        shim = write_shim(codex.tmp_path / "shim", codex_program, custom_provider("http://127.0.0.1:9"))

        through = CodexProvider.at(shim, around=codex.around).executable
        direct = CodexProvider.at(codex_program, around=codex.around).executable

        assert through.version == direct.version
        assert re.fullmatch(r"codex-cli \d+\.\d+\.\d+", direct.version)
        assert through.sha256 != direct.sha256


def one_pixel() -> bytes:
    """A PNG file of one black pixel."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    body = zlib.compress(bytes(4))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
