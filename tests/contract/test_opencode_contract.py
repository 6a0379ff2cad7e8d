"""The adapter against the real opencode, which talks to a model server on loopback.

Recordings say what the program once printed; these say that it still does. One program starts in seconds and
not in moments, so every call of `CALLS` is made once, some at a time, and the tests look at what came of it.
A call is over only when no process of its session is left and no file outside its private folders.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

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
from skill_effectiveness.providers.opencode import OpenCodeProvider
from skill_effectiveness.providers.opencode_skills import skill_events
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
from tests.support.opencode_shim import model_of, write_shim
from tests.support.players import erring, sound
from tests.support.provider_calls import ANSWER, SCHEMA, left_behind, same_answer, surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.providers import CallOutcome, Recording
    from tests.support.model_server import ModelServer, Request, Scenario
    from tests.support.model_wire import Asked, Reply, Wire

pytestmark = pytest.mark.realcli

CHECKOUT = Path(__file__).parents[2]
MARKER = "marker-token-93ab"
PROMPT = (
    "Compare “A” with “B”.\n@/etc/hosts {env:HOME}\n/init " + "é" * 70_000 + "\nLabels: case-01 case-02\n"
)
ONE_REQUEST = Usage(1200, 200, 34, 5, None)
TWO_REQUESTS = Usage(2400, 400, 68, 10, None)
PAIR = ("reviewer-calibration.json", "reviewer-calibration-result.json")


def labelled(prompt: str) -> str:
    """A model that reads the labels of the prompt."""
    labels = re.findall(r"case-\d\d", prompt)
    return json.dumps({"judgments": [{"case": label, "verdict": "tie"} for label in labels]})


@dataclass(frozen=True)
class Hasty:
    """A server that lets the program try again at once, which it does five times."""

    scenario: Scenario

    def answer(self, wire: Wire, asked: Asked) -> Reply | None:
        reply = self.scenario.answer(wire, asked)
        return None if reply is None else replace(reply, headers={"retry-after-ms": "1"})


@dataclass(frozen=True)
class Uncounted:
    """An answer without usage."""

    def answer(self, wire: Wire, asked: Asked) -> Reply:
        reply = wire.text(asked.model, ANSWER)
        return replace(reply, events=reply.events[:-1])


class Stage:
    """The real program behind one shim, and a folder for each call."""

    def __init__(self, shims: dict[str, Path], folder: Path, server: ModelServer) -> None:
        self.folder = folder
        self.server = server
        self.home = folder / "home"
        plant(self.home)
        plant(folder)
        self.providers = {
            name: OpenCodeProvider.at(shim, around=self.around("binding")) for name, shim in shims.items()
        }

    def around(self, name: str) -> Surroundings:
        place = self.folder / name
        place.mkdir(exist_ok=True)
        return surroundings(place, HOME=str(self.home), PATH=os.environ["PATH"])

    def copy(self, name: str) -> Path:
        """A folder with instructions and skills of its own, that is no repository."""
        place = self.folder / name / "copy"
        plant(place)
        (place / "file.txt").write_text("file-canary\n")
        return place


def plant(folder: Path) -> None:
    """Instructions, skills, agents and settings wherever the program could look for them."""
    skill = f"---\nname: {MARKER}\ndescription: {MARKER}\n---\n{MARKER}\n"
    for place in (".opencode/skill", ".opencode/skills", ".claude/skills", ".agents/skills"):
        write(folder / place / MARKER / "SKILL.md", skill)
    for place in (
        ".opencode/agent",
        ".opencode/command",
        ".config/opencode/agent",
        ".config/opencode/skill/x",
    ):
        write(folder / place / "marker.md", skill)
    for name in ("AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", ".config/opencode/AGENTS.md"):
        write(folder / name, f"{MARKER}\n")
    settings = json.dumps({"instructions": ["AGENTS.md"], "permission": {"*": "allow"}})
    for name in ("opencode.json", ".opencode/opencode.json", ".config/opencode/opencode.json"):
        write(folder / name, settings)
    touch = f"export const P = async () => {{ require('fs').writeFileSync('{folder}/plugin-ran', '') }}\n"
    write(folder / ".opencode/plugin/marker.ts", touch)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


Make = Callable[[Stage, str], "CallOutcome"]


def judging(
    prompt: str = "Which is better?",
    *,
    seconds: float = 120,
    model: str | None = None,
    shim: str = "plain",
) -> Make:
    def make(stage: Stage, name: str) -> CallOutcome:
        call = JudgeCall(f"canary-{name} {prompt}", SCHEMA, model or model_of(name), seconds)
        return stage.providers[shim].judge(call, around=stage.around(name))

    return make


def killed(stage: Stage, name: str) -> CallOutcome:
    """A judge call whose program is killed by somebody in the middle of its work."""
    temporary = stage.around(name).environ["TMPDIR"]

    def kill() -> None:
        while not stage.server.requests(name):
            time.sleep(0.05)
        for process in psutil.process_iter(["environ", "exe"]):
            place = (process.info["environ"] or {}).get("XDG_DATA_HOME", "")
            if place.startswith(temporary) and (process.info["exe"] or "").endswith("opencode"):
                process.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    outcome = judging()(stage, name)
    killer.join()
    return outcome


def stopped(stage: Stage, name: str) -> CallOutcome:
    """A judge call that we stop once the model was asked."""
    call = JudgeCall(f"canary-{name}", SCHEMA, model_of(name), 120)
    return stage.providers["plain"].judge(
        call, around=stage.around(name), cancelled=lambda: bool(stage.server.requests(name))
    )


def reading(stage: Stage, name: str) -> CallOutcome:
    around, checkout = stage.around(name), stage.copy(name)
    for words in (["init", "-q"], ["add", "file.txt"], ["commit", "-qm", "history-canary"]):
        settings = ["-c", "user.name=n", "-c", "user.email=e", "-C", str(checkout)]
        subprocess.run(["git", *settings, *words], check=True)  # noqa: S603, S607 - fixed words
    call = ReadCall(f"canary-{name}", checkout, model_of(name), 120, {"type": "object"})
    return stage.providers["plain"].read(call, around=around)


def working(*, mounted: bool = False) -> Make:
    def make(stage: Stage, name: str) -> CallOutcome:
        around, copy = stage.around(name), stage.copy(name)
        skill = stage.folder / name / "arm" / "review-work"
        write(skill / "SKILL.md", "---\nname: review-work\ndescription: Reviews.\n---\nskill-canary\n")
        mount = Mount((skill,), "instruction-canary") if mounted else None
        call = WorkCall(f"canary-{name}", copy, model_of(name), 120, mount=mount)
        return stage.providers["plain"].work(call, around=around)

    return make


WRITE = {"filePath": "written.txt", "content": "x"}
TASK = {"description": "d", "prompt": "Do it.", "subagent_type": "general"}
CALLS: dict[str, tuple[Scenario, Make]] = {
    "sound": (Answer(labelled), judging(PROMPT)),
    "uncounted": (Uncounted(), judging()),
    "e401": (Refused(401, "invalid_api_key", "Incorrect API key provided"), judging()),
    "e429": (Hasty(Refused(429, "rate_limit_exceeded", "Slow down")), judging()),
    "e500": (Hasty(Refused(500, "server_error", "It broke")), judging()),
    "quota": (Hasty(Quota()), judging()),
    "other-model": (OneModelOnly("another-model", same_answer), judging()),
    "no-model": (Answer(same_answer), judging(model="no-model/another-model")),
    "killed": (Hang(), killed),
    "stopped": (Hang(), stopped),
    "command": (ToolCall("sleep 20", same_answer), judging()),
    "agent": (Answer(lambda _: "I would say: A."), judging(shim="other agent")),
    "reads": (ToolCall("git log", same_answer), reading),
    "writes": (ToolCall("git log --output=written.txt", same_answer), reading),
    "runs": (ToolCall("cat file.txt", same_answer), reading),
    "works": (NamedCall("write", WRITE, same_answer), working()),
    "mounted": (SkillCall("review-work", same_answer), working(mounted=True)),
    "delegates": (NamedCall("task", TASK, same_answer), working()),
    # Last, when the crowd is gone: their time has to reach as far as the first request.
    "cut": (Cut(same_answer), judging(seconds=30)),
    "hang": (Hang(), judging(seconds=30)),
}
AT_ONCE = 8


@dataclass(frozen=True)
class Run:
    """One call of the real program and the model requests it made."""

    outcome: CallOutcome
    requests: tuple[Request, ...]
    place: Path

    @property
    def sent(self) -> str:
        """Everything that reached the server."""
        return json.dumps([request.body for request in self.requests])

    @property
    def offered(self) -> list[list[str]]:
        """The tools of each request."""
        return [sorted(request.asked.tools) for request in self.requests]


class Runs:
    """All calls of this file, made before the first test looks at them."""

    def __init__(self, stage: Stage, outcomes: dict[str, CallOutcome]) -> None:
        self._stage = stage
        self._outcomes = outcomes

    def __getitem__(self, name: str) -> Run:
        around = self._stage.around(name)
        assert left_behind(around) == []
        nothing_runs(Path(around.environ["TMPDIR"]))
        return Run(self._outcomes[name], self._stage.server.requests(name), self._stage.folder / name)


def nothing_runs(temporary: Path) -> None:
    """No process that was given a folder of the session."""
    for process in psutil.process_iter(["environ"]):
        environment = process.info["environ"] or {}
        assert not environment.get("XDG_DATA_HOME", "").startswith(str(temporary))


@pytest.fixture(scope="module")
def stage(
    opencode_program: Path, model_server: ModelServer, tmp_path_factory: pytest.TempPathFactory
) -> Stage:
    folder = tmp_path_factory.mktemp("opencode")
    scenarios = {name: scenario for name, (scenario, _) in CALLS.items()}
    addresses = {name: model_server.play(name, scenario) for name, scenario in scenarios.items()}
    shims = {
        "plain": write_shim(folder / "plain", opencode_program, addresses),
        "other agent": write_shim(folder / "other", opencode_program, addresses, agent="nobody"),
    }
    return Stage(shims, folder, model_server)


@pytest.fixture(scope="module")
def runs(stage: Stage) -> Iterator[Runs]:
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        made = {name: pool.submit(make, stage, name) for name, (_, make) in CALLS.items()}
        outcomes = {name: call.result(timeout=240) for name, call in made.items()}
    yield Runs(stage, outcomes)
    # What the user has is as it was, and nothing that lay there was run.
    assert not [*stage.folder.rglob("plugin-ran")]
    assert not (stage.home / ".local").exists()


class TestAnswers:
    def test_a_sound_model_that_reads_the_prompt(self, runs: Runs) -> None:
        """P2 P4 P6 P8: the prompt reaches the model as it is, the answer comes back as it was given."""
        run = runs["sound"]

        assert run.outcome.ending is Ending.SUCCESS
        assert run.outcome.answer == labelled("case-01 case-02")
        (request,) = run.requests
        assert (request.asked.prompt, request.asked.model) == (f"canary-sound {PROMPT}", "fake-model")
        assert run.outcome.usage == ONE_REQUEST
        assert (run.outcome.exit_code, run.outcome.observed_model) == (0, "sound/fake-model")
        assert re.fullmatch(r"ses_[A-Za-z0-9]+", run.outcome.session_id or "")
        assert run.outcome.warnings == ()

    def test_a_judge_is_offered_no_tool_and_told_the_form(self, runs: Runs) -> None:
        """P9 P12: one request, no second one for a title, no tools in it."""
        (request,) = runs["sound"].requests

        assert "tools" not in request.body
        system = request.body["messages"][0]["content"]
        assert '"enum":["A win","B win","tie"]' in system
        assert "Is directory a git repo: yes" in system

    def test_a_server_that_counts_nothing(self, runs: Runs) -> None:
        """F40: the program prints zeros then."""
        outcome = runs["uncounted"].outcome

        assert (outcome.ending, outcome.usage) == (Ending.SUCCESS, UNKNOWN_USAGE)

    def test_eight_sessions_at_once(self, runs: Runs) -> None:
        """F41 P3 R31: each has its own folders, and nothing of the others."""
        made = {name: runs[name] for name in CALLS}
        sessions = [run.outcome.session_id for run in made.values() if run.outcome.session_id]

        assert len(sessions) == len(set(sessions)) > AT_ONCE
        for name, run in made.items():
            assert set(re.findall(r"(?<!-)\bcanary-[a-z0-9-]+", run.sent)) <= {f"canary-{name}"}


class TestTrouble:
    @pytest.mark.parametrize(
        ("name", "kind", "retryable", "requests"),
        [
            ("e401", "auth_unavailable", False, 1),
            ("e429", "rate_limited", True, 6),
            ("e500", "server_error", True, 6),
            ("quota", "quota_unavailable", False, 6),
            ("other-model", "model_unavailable", False, 1),
            ("no-model", "model_unavailable", False, 0),
        ],
    )
    def test_each_has_its_kind(
        self, runs: Runs, name: str, kind: str, *, retryable: bool, requests: int
    ) -> None:
        """P7 P11 F13 R31: the program tries again by itself, and nothing turns that down."""
        run = runs[name]

        assert (run.outcome.ending, run.outcome.error_kind) == (Ending.PROVIDER_ERROR, kind)
        assert run.outcome.retryable is retryable
        assert run.outcome.exit_code == 1
        assert len(run.requests) == requests

    @pytest.mark.parametrize("name", ["cut", "hang"])
    def test_what_is_tried_again_in_silence_is_ended_by_the_timeout(self, runs: Runs, name: str) -> None:
        """P6 P10 F11: a cut stream says nothing for over a minute."""
        run = runs[name]

        assert run.outcome.ending is Ending.TIMEOUT
        assert 30_000 <= run.outcome.latency_ms < 35_000
        assert len(run.requests) >= 1

    def test_a_program_that_is_killed(self, runs: Runs) -> None:
        """P6 P10: by anybody, in the middle of its work."""
        outcome = runs["killed"].outcome

        assert (outcome.ending, outcome.exit_code) == (Ending.STREAM_INVALID, None)

    def test_our_own_stop(self, runs: Runs) -> None:
        """P6 P10: once the model was asked."""
        assert runs["stopped"].outcome.ending is Ending.CANCELLED


class TestTools:
    def test_a_tool_ends_a_judge_call(self, runs: Runs) -> None:
        """P9 R31: at its first sign, and at most one request more."""
        run = runs["command"]

        assert (run.outcome.ending, run.outcome.answer) == (Ending.TOOL_ACTIVITY, None)
        assert len(run.requests) <= 2

    def test_another_agent_is_seen(self, runs: Runs) -> None:
        """P2 P6 R31: the program falls back silently; the export tells, and no tool was offered."""
        run = runs["agent"]

        assert run.outcome.ending is Ending.STREAM_INVALID
        assert run.outcome.exit_code == 0
        assert "surface_differs" in {warning.code for warning in run.outcome.warnings}
        assert run.offered == [[]]


class TestReaders:
    def test_a_reader_reads_and_is_not_led(self, runs: Runs) -> None:
        """P13: a command of git; four tools; what the checkout says about how to work reaches nobody."""
        run = runs["reads"]

        assert run.outcome.ending is Ending.SUCCESS
        assert run.outcome.usage == TWO_REQUESTS
        assert run.offered == [["bash", "glob", "grep", "read"]] * 2
        assert "history-canary" in json.dumps(run.requests[1].body)

    def test_other_commands_are_denied(self, runs: Runs) -> None:
        """P13: and nobody is asked."""
        run = runs["runs"]

        assert run.outcome.ending is Ending.SUCCESS
        assert len(run.requests) == 2
        assert "file-canary" not in run.sent
        assert "a rule which prevents you" in run.sent

    def test_a_reader_changes_nothing(self, runs: Runs) -> None:
        """P13: an option of an allowed command writes; the sandbox is what keeps it from that."""
        run = runs["writes"]

        assert len(run.requests) == 2
        if run.outcome.sandbox is SandboxKind.BUBBLEWRAP:
            assert not (run.place / "copy" / "written.txt").exists()
        else:
            assert run.outcome.sandbox is SandboxKind.PERMISSIONS_ONLY


class TestWorkers:
    def test_a_worker_changes_its_working_copy(self, runs: Runs) -> None:
        """P13 F31: and nothing of the copy's, the home's or the program's own skills reaches it."""
        run = runs["works"]

        assert run.outcome.ending is Ending.SUCCESS
        assert run.outcome.usage == TWO_REQUESTS
        assert (run.place / "copy" / "written.txt").read_text() == "x"
        assert run.offered[0] == ["bash", "edit", "glob", "grep", "read", "task", "todowrite", "write"]
        assert "customize-opencode" not in run.sent
        row = skill_events(told(run))
        assert row.verifiable
        assert row.events is not None
        assert row.events.skills_invoked == ()

    def test_a_mounted_skill_is_called(self, runs: Runs) -> None:
        """P13 A24 F33: the arm's skill and instructions reach the model, and nothing else does."""
        run = runs["mounted"]

        assert run.outcome.ending is Ending.SUCCESS
        assert run.sent.count("instruction-canary") == 2
        assert run.sent.count("skill-canary") == 1
        assert "customize-opencode" not in run.sent
        row = skill_events(told(run))
        assert row.events is not None
        assert [(call.skill, call.event_index, call.completed) for call in row.events.skills_invoked] == [
            ("review-work", 0, True)
        ]
        assert sorted(path.name for path in (run.place / "copy").iterdir()) == sorted(
            [
                ".agents",
                ".claude",
                ".config",
                ".opencode",
                "AGENTS.md",
                "CLAUDE.md",
                "file.txt",
                "opencode.json",
            ]
        )

    def test_a_subagent_has_the_same_limits(self, runs: Runs) -> None:
        """P13 P8: no web and no skills for it either; what it costs is not told."""
        run = runs["delegates"]

        assert run.outcome.ending is Ending.SUCCESS
        assert len(run.requests) == 4
        assert not {"webfetch", "websearch", "skill"} & {tool for tools in run.offered for tool in tools}
        assert run.outcome.usage == UNKNOWN_USAGE


def told(run: Run) -> Recording:
    """The recording of a call that was started."""
    assert run.outcome.recording is not None
    return run.outcome.recording


class TestTheUsersOwnThings:
    @pytest.mark.parametrize("name", ["sound", "reads", "runs", "works", "mounted", "delegates"])
    def test_markers_reach_no_request(self, runs: Runs, name: str) -> None:
        """P3 F31 F32: home, configuration, working folder and every folder above it."""
        run = runs[name]

        assert run.requests
        assert MARKER not in run.sent
        assert not any(MARKER in value for one in run.requests for value in one.headers.values())


@pytest.mark.parametrize("verdict", [(sound, 0, "pass"), (erring, 1, "fail")], ids=["sound", "erring"])
def test_an_examination(
    opencode_program: Path,
    model_server: ModelServer,
    tmp_path: Path,
    verdict: tuple[Callable[[str], str], int, str],
) -> None:
    """R4 R5 R31 R32: two repeats, two requests, a published pair with this provider's labels."""
    player, code, status = verdict
    name = f"loopback-{status}"
    shim = write_shim(
        tmp_path / "opencode", opencode_program, {name: model_server.play(name, Answer(player))}
    )
    temporary, out = tmp_path / "tmp", tmp_path / "out"
    temporary.mkdir()
    environment = {"HOME": str(tmp_path / "home"), "TMPDIR": str(temporary), "PATH": os.environ["PATH"]}
    words = ["reviewer-calibration", "--provider", "opencode", "--opencode-path", str(shim)]
    words += ["--model", model_of(name), "--reviewer-family", name, "--out", str(out)]
    done = subprocess.run(  # noqa: S603 - our own door
        [sys.executable, str(CHECKOUT / "run.py"), *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert f"calibration_status={status}\n" in done.stdout
    assert len(model_server.requests(name)) == 2
    assert all((out / document).exists() for document in PAIR)
    result = json.loads((out / PAIR[1]).read_text())
    assert result["tool_access"] == "agent-disabled-observed-none"
    assert result["requested_session_mode"] == "private-xdg-explicit-model-export"
    assert [*temporary.iterdir()] == []
    nothing_runs(temporary)
