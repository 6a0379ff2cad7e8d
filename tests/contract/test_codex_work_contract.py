"""Work calls of the real codex, which talks to a model server on loopback."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.execution import sweep_sessions
from skill_effectiveness.providers import (
    CodexProvider,
    Ending,
    Mount,
    SandboxKind,
    Usage,
    WarningCode,
    WorkCall,
)
from skill_effectiveness.providers.events import SkillRead, ToolActivity
from tests.support.codex_shim import custom_provider, write_shim
from tests.support.leavings import carrying, digest, nothing_left
from tests.support.model_server import Answer, Cut, Hang, Quota, Refused, ToolCall
from tests.support.provider_calls import SCHEMA, surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from skill_effectiveness.providers import CallOutcome
    from tests.support.model_server import ModelServer, Request, Scenario

pytestmark = pytest.mark.realcli

NUMBERS = count()
FOREIGN = "foreign-marker"


def done(prompt: str) -> str:
    del prompt
    return "done"


ANSWERING = Answer(done)


def skill(folder: Path, name: str, words: str) -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {words}\n---\n{words}\n")
    return folder / name


class Worker:
    """The real program behind a shim, with a user's home full of things that must not be seen."""

    def __init__(self, program: Path, server: ModelServer, tmp_path: Path) -> None:
        self.program = program
        self.server = server
        self.tmp_path = tmp_path
        self.home = tmp_path / "home"
        for place in (self.home, tmp_path):
            for vendor in (".agents", ".codex"):
                skill(place / vendor / "skills", "marker", FOREIGN)
            for name in ("AGENTS.md", ".codex/AGENTS.md", ".codex/AGENTS.override.md"):
                (place / name).write_text(f"{FOREIGN}\n")
            (place / ".codex" / "config.toml").write_text(f'developer_instructions = "{FOREIGN}"\n')
        # A repository around the working copy would make its folder one of the project's.
        subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)  # noqa: S603, S607 - fixed words
        self.copy = self.working_copy("copy")
        self.arm = Mount((skill(tmp_path / "arm", "given", "given-marker"),), "arm-instructions")
        self.around = surroundings(tmp_path, HOME=str(self.home), CODEX_API_KEY="key-canary")

    def working_copy(self, name: str) -> Path:
        copy = self.tmp_path / name
        copy.mkdir()
        (copy / "AGENTS.md").write_text("task-marker\n")
        (copy / "file.txt").write_text(f"canary of {name}\n")
        return copy

    def provider(self, scenario: Scenario) -> tuple[str, CodexProvider]:
        name = f"codex-work-{next(NUMBERS)}"
        options = custom_provider(self.server.play(name, scenario))
        shim = write_shim(self.tmp_path / name, self.program, options)
        return name, CodexProvider.at(shim, around=self.around)

    def work(
        self, scenario: Scenario, mount: Mount | None = None, **details: object
    ) -> tuple[CallOutcome, tuple[Request, ...]]:
        name, provider = self.provider(scenario)
        outcome = provider.work(self.call(mount=mount, **details), around=self.around)
        return outcome, self.server.requests(name)

    def call(self, **details: object) -> WorkCall:
        whole: dict[str, Any] = {
            "prompt": "Mend it.",
            "working_copy": self.copy,
            "model": "fake-model",
            "timeout_seconds": 30,
        }
        return WorkCall(**whole | details)


@pytest.fixture
def worker(codex_program: Path, model_server: ModelServer, tmp_path: Path) -> Iterator[Worker]:
    """A worker; afterwards no process and no file of it is anywhere but in its working copies."""
    worker = Worker(codex_program, model_server, tmp_path)
    before = digest(worker.home)
    yield worker
    nothing_left(worker.around)
    assert digest(worker.home) == before


def texts(requests: tuple[Request, ...]) -> str:
    return json.dumps([[request.body, dict(request.headers)] for request in requests])


class TestTheWorkingCopy:
    def test_a_worker_changes_it_and_nothing_else(self, worker: Worker) -> None:
        """P13 P8 P10: a command of the model's writes there, and is refused everywhere else."""
        orders = "cat file.txt; touch written ../outside $HOME/x $CODEX_HOME/x /var/tmp/x-canary; echo end"
        outcome, requests = worker.work(ToolCall(orders, done))

        assert (outcome.ending, outcome.answer) == (Ending.SUCCESS, "done")
        assert outcome.sandbox is SandboxKind.PROGRAM
        assert ToolActivity("command_execution") in outcome.events
        assert outcome.usage == Usage(2400, 400, 68, 10, None)
        assert sorted(path.name for path in worker.copy.iterdir()) == ["AGENTS.md", "file.txt", "written"]
        assert not (worker.tmp_path / "outside").exists()
        told = json.dumps(requests[1].body)
        assert "canary of copy" in told
        assert told.count("Read-only file system") == 4

    def test_a_schema_reaches_the_server(self, worker: Worker) -> None:
        """P12 P13: where an answer of some form is asked for; what comes instead is the caller's to judge."""
        outcome, requests = worker.work(ANSWERING, answer_schema=SCHEMA)

        assert requests[0].body["text"]["format"]["schema"] == SCHEMA
        assert (outcome.ending, outcome.answer) == (Ending.SUCCESS, "done")

    def test_there_is_no_web_search(self, worker: Worker) -> None:
        """P13: a worker has its working copy."""
        (request,) = worker.work(ANSWERING)[1]

        assert "web_search" not in json.dumps(request.body["tools"])


class TestWhatAnArmGives:
    def test_without_a_mount_there_is_no_skill_and_no_instruction_but_the_tasks(self, worker: Worker) -> None:
        """F31 F32 P3 P13: neither of the real home, nor of the folders around the working copy."""
        sent = texts(worker.work(ToolCall("cat file.txt", done))[1])

        assert FOREIGN not in sent
        assert "<skills_instructions>" not in sent
        assert sent.count("task-marker") == 2

    def test_a_mount_is_all_that_is_added(self, worker: Worker) -> None:
        """F31 F33 P13: its skills and its instructions, and the working copy stays as it was."""
        before = digest(worker.copy)
        sent = texts(worker.work(ANSWERING, worker.arm)[1])

        assert FOREIGN not in sent
        assert "- given: given-marker (file: r0/given/SKILL.md)" in sent
        assert sent.count("- marker:") == 0
        assert sent.index("arm-instructions") < sent.index("task-marker")
        assert digest(worker.copy) == before

    def test_long_instructions_arrive_whole(self, worker: Worker) -> None:
        """P13 F33: the program would cut those of a working copy off at 32 KiB, and say nothing."""
        (worker.copy / "AGENTS.md").write_text("task " * 10_000 + "task-marker\n")
        sent = texts(worker.work(ANSWERING, Mount(instructions="word " * 20_000 + "last-word"))[1])

        assert "last-word" in sent
        assert "task-marker" in sent

    def test_two_arms_differ_in_what_they_were_given(self, worker: Worker) -> None:
        """F33: the same tools, the same settings, the same task."""
        (without,) = worker.work(ANSWERING)[1]
        (with_arm,) = worker.work(ANSWERING, worker.arm)[1]
        own = {"input", "prompt_cache_key", "client_metadata"}

        assert {"model", "tools", "tool_choice", "reasoning"} <= without.body.keys() - own
        assert without.body.keys() == with_arm.body.keys()
        assert {name: without.body[name] for name in without.body.keys() - own} == {
            name: with_arm.body[name] for name in with_arm.body.keys() - own
        }

    def test_a_skill_that_a_command_reads_is_observed(self, worker: Worker) -> None:
        """P13: an observation and nothing more."""
        outcome, requests = worker.work(ToolCall("cat $CODEX_HOME/skills/given/SKILL.md", done), worker.arm)

        assert outcome.ending is Ending.SUCCESS
        assert [event for event in outcome.events if isinstance(event, SkillRead)] == [SkillRead("given")]
        assert json.dumps(requests[1].body).count("given-marker") > json.dumps(requests[0].body).count(
            "given-marker"
        )

    def test_what_an_arm_gives_cannot_be_changed(self, worker: Worker) -> None:
        """P13: a command of the model's is refused by the program's sandbox."""
        before = digest(worker.arm.skills[0])
        orders = "echo changed >> $CODEX_HOME/skills/given/SKILL.md"
        outcome, requests = worker.work(ToolCall(orders, done), worker.arm)

        assert outcome.ending is Ending.SUCCESS
        assert "Read-only file system" in json.dumps(requests[1].body)
        assert digest(worker.arm.skills[0]) == before

    def test_a_skill_that_a_prompt_names_leaves_no_event(self, worker: Worker) -> None:
        """P9: why the program has no skill events, pinned so that a change of it is noticed."""
        outcome, (request,) = worker.work(ANSWERING, worker.arm, prompt="Mend it with $given.")

        assert "<skill>" in json.dumps(request.body)
        assert not any(isinstance(event, SkillRead | ToolActivity) for event in outcome.events)

    def test_a_skill_without_its_file_starts_nothing(self, worker: Worker) -> None:
        """P6 P13: unstartable with the reason, and no request."""
        (worker.tmp_path / "arm" / "empty").mkdir()
        outcome, requests = worker.work(ANSWERING, Mount((worker.tmp_path / "arm" / "empty",)))

        assert outcome.ending is Ending.UNSTARTABLE
        assert [warning.code for warning in outcome.warnings] == [WarningCode.SESSION_UNAVAILABLE]
        assert requests == ()


class TestEndings:
    @pytest.mark.parametrize(
        ("scenario", "kind"),
        [
            (Refused(401, "invalid_api_key", "Incorrect API key provided"), "auth_unavailable"),
            (Refused(429, "rate_limit_exceeded", "Slow down"), "rate_limited"),
            (Refused(500, "server_error", "It broke"), "server_error"),
            (Quota(), "quota_unavailable"),
            (Cut(done), "connection_lost"),
        ],
        ids=["401", "429", "500", "quota", "cut"],
    )
    def test_trouble_has_its_kind(self, worker: Worker, scenario: Scenario, kind: str) -> None:
        """P6 P7: as in a judge call."""
        outcome, requests = worker.work(scenario)

        assert (outcome.ending, outcome.error_kind) == (Ending.PROVIDER_ERROR, kind)
        assert len(requests) == 1

    def test_another_model_is_an_error(self, worker: Worker) -> None:
        """P2 P13 F37: unlike in a read call."""
        outcome, _ = worker.work(Answer(done, reported="other-model"))

        assert (outcome.ending, outcome.observed_model) == (Ending.MODEL_MISMATCH, "other-model")

    def test_a_command_that_outlives_the_time(self, worker: Worker) -> None:
        """P6 P10: the command's own process is gone too."""
        outcome, _ = worker.work(ToolCall("sleep 60", done), timeout_seconds=4)

        assert outcome.ending is Ending.TIMEOUT
        assert outcome.recording is not None
        assert b"command_execution" in outcome.recording.stdout


def test_eight_sessions_at_once(worker: Worker) -> None:
    """F41 P3: each sees its own working copy, and a session id of its own."""
    copies = [worker.working_copy(f"copy-{number}") for number in range(8)]
    _, provider = worker.provider(ToolCall("cat file.txt; echo mine >> file.txt", done))

    def work(copy: Path) -> CallOutcome:
        return provider.work(worker.call(working_copy=copy, mount=worker.arm), around=worker.around)

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(work, copies))

    assert {outcome.ending for outcome in outcomes} == {Ending.SUCCESS}
    assert len({outcome.session_id for outcome in outcomes}) == 8
    for copy, outcome in zip(copies, outcomes, strict=True):
        assert (copy / "file.txt").read_text() == f"canary of {copy.name}\nmine\n"
        assert outcome.recording is not None
        told = outcome.recording.stdout.decode()
        assert re.findall(r"canary of copy-\d", told) == [f"canary of {copy.name}"]


KILLED = """
import json, sys
from dataclasses import replace
from pathlib import Path
from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.providers import CodexProvider, WorkCall
program, copy, environ = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
around = replace(Surroundings.real(), environ=environ)
CodexProvider.at(Path(program), around=around).work(WorkCall("Mend it.", Path(copy), "m", 60), around=around)
"""


def test_a_killed_run_leaves_no_process(worker: Worker) -> None:
    """F10 P10: the program dies with us, and the next start removes what it could not."""
    name, provider = worker.provider(Hang())
    told = [str(provider.executable.path), str(worker.copy), json.dumps(dict(worker.around.environ))]
    run = subprocess.Popen([sys.executable, "-c", KILLED, *told])  # noqa: S603 - fixed words
    until = time.monotonic() + 20
    while not worker.server.requests(name) and time.monotonic() < until:
        time.sleep(0.05)
    assert worker.server.requests(name)
    run.kill()
    run.wait()
    while carrying(worker.around.environ["TMPDIR"] + "/") and time.monotonic() < until:
        time.sleep(0.05)

    assert carrying(worker.around.environ["TMPDIR"] + "/") == []
    assert sweep_sessions(worker.around).removed == 1
