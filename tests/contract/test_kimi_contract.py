"""The adapter against the real Kimi, which talks to a model server on loopback.

It is run as it is installed: a name on PATH that leads to its script, whose first line asks for `node` there.
Its configuration is a user's, in a home that holds much which no session may see.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from skill_effectiveness.execution import Sandbox, sweep_sessions
from skill_effectiveness.providers import (
    UNKNOWN_USAGE,
    Ending,
    JudgeCall,
    ReadCall,
    ReplyError,
    Usage,
    WorkCall,
    one_json_object,
)
from skill_effectiveness.providers.calls import SandboxKind
from skill_effectiveness.providers.kimi import KimiProvider
from skill_effectiveness.providers.mount import Mount
from tests.support.kimi import write_configuration
from tests.support.model_server import (
    Answer,
    Cut,
    Hang,
    NamedCall,
    OneModelOnly,
    Quota,
    Refused,
)
from tests.support.players import erring, sound
from tests.support.provider_calls import ANSWER, SCHEMA, left_behind, same_answer, surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.execution import Executable
    from skill_effectiveness.providers import CallOutcome
    from tests.support.model_server import ModelServer, Request, Scenario
    from tests.support.model_wire import Asked, Reply, Wire

pytestmark = pytest.mark.realcli

CHECKOUT = Path(__file__).parents[2]
NUMBERS = count()
ALIAS = "fake-model"
UNDERLYING = "underlying-model"
MARKER = "marker-token"
SKILL = f"---\nname: {{name}}\ndescription: {MARKER}\n---\n{MARKER}\n"
ONE_REQUEST = Usage(input_tokens=1200, cached_input_tokens=200, output_tokens=34)


ANSWERING = Answer(same_answer)


@pytest.fixture(scope="module")
def installed(kimi_script: Path, node_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as an installation puts it on PATH."""
    folder = tmp_path_factory.mktemp("installed")
    (folder / "kimi").symlink_to(kimi_script)
    (folder / "node").symlink_to(node_program)
    return folder


@pytest.fixture(scope="module")
def executable(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Executable:
    """The program, bound once for all tests."""
    around = surroundings(tmp_path_factory.mktemp("bound"), PATH=path_of(installed))
    return KimiProvider.at(installed / "kimi", around=around).executable


def path_of(installed: Path) -> str:
    return f"{installed}:/usr/bin:/bin"


def plant(home: Path) -> None:
    """Everything in a home that would like to tell the program something."""
    for place in (".kimi-code/AGENTS.md", ".agents/AGENTS.md", ".kimi-code/SYSTEM.md", "AGENTS.md"):
        (home / place).parent.mkdir(parents=True, exist_ok=True)
        (home / place).write_text(f"{MARKER}\n")
    for place in (".kimi-code/skills", ".agents/skills", ".kimi/skills", ".claude/skills"):
        (home / place / "planted").mkdir(parents=True)
        (home / place / "planted" / "SKILL.md").write_text(SKILL.format(name="planted"))
    (home / ".kimi-code" / "agents").mkdir()
    (home / ".kimi-code" / "agents" / "agent.md").write_text(
        f"---\nname: agent\ndescription: {MARKER}\noverride: true\n---\n{MARKER}\n"
    )
    server = {"mcpServers": {MARKER: {"command": "/usr/bin/touch", "args": [str(home / "touched")]}}}
    (home / ".kimi-code" / "mcp.json").write_text(json.dumps(server))


@dataclass(frozen=True)
class Run:
    """One call of the real program and the model requests it made."""

    outcome: CallOutcome
    requests: tuple[Request, ...]

    @property
    def bodies(self) -> str:
        return json.dumps([request.body for request in self.requests])

    @property
    def warned(self) -> list[str]:
        return [warning.code.value for warning in self.outcome.warnings]


class Kimi:
    """The real program in surroundings of the test's own."""

    def __init__(self, executable: Executable, server: ModelServer, tmp_path: Path) -> None:
        self.executable = executable
        self.server = server
        self.home = tmp_path / "home"
        self.around: Surroundings = surroundings(
            tmp_path, HOME=str(self.home), PATH=path_of(executable.path.parent)
        )
        self.name = f"kimi-{next(NUMBERS)}"

    def play(self, scenario: Scenario) -> KimiProvider:
        """The provider, whose configuration leads to this scenario."""
        write_configuration(self.home, self.server.play(self.name, scenario), ALIAS)
        return KimiProvider(self.executable).for_model(ALIAS, self.around)

    def run(self, outcome: CallOutcome) -> Run:
        return Run(outcome, self.server.requests(self.name))

    def judge(self, scenario: Scenario, *, prompt: str = "Which is better?", seconds: float = 120) -> Run:
        call = JudgeCall(prompt, SCHEMA, ALIAS, seconds)
        return self.run(self.play(scenario).judge(call, around=self.around))

    def read(self, scenario: Scenario, checkout: Path) -> Run:
        call = ReadCall("Read it.", checkout, ALIAS, 120, SCHEMA)
        return self.run(self.play(scenario).read(call, around=self.around))

    def work(self, scenario: Scenario, working_copy: Path, mount: Mount | None = None) -> Run:
        call = WorkCall("Do it.", working_copy, ALIAS, 120, mount=mount)
        return self.run(self.play(scenario).work(call, around=self.around))


@pytest.fixture
def kimi(executable: Executable, model_server: ModelServer, tmp_path: Path) -> Kimi:
    return Kimi(executable, model_server, tmp_path)


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Iterator[None]:
    """P10: no process that was given a session's home, and no folder of one."""
    yield
    nothing_runs(tmp_path)
    temporary = tmp_path / "temporary"
    assert not temporary.exists() or not list(temporary.iterdir())


def nothing_runs(tmp_path: Path) -> None:
    for process in psutil.process_iter(["environ"]):
        environment = process.info["environ"] or {}
        assert not environment.get("KIMI_CODE_HOME", "").startswith(str(tmp_path))


class TestIdentity:
    def test_the_script_behind_the_name_is_bound(self, executable: Executable, kimi_script: Path) -> None:
        """P2: the file that is the program, and its own word for its version."""
        assert executable.path.name == "kimi"
        assert executable.resolved == kimi_script.resolve()
        assert executable.version == "2.1.0"


class TestJudging:
    def test_a_sound_model_and_a_home_full_of_instructions(self, kimi: Kimi) -> None:
        """P2 P4 P6 P8 P9 P12 F32: the prompt as it is, no tool, no marker, what it cost, and the answer."""
        plant(kimi.home)
        prompt = "Compare “A” with “B”.\n" + "é" * 50_000 + "\n--version /goal @x $HOME"
        run = kimi.judge(ANSWERING, prompt=prompt)

        assert (run.outcome.ending, run.outcome.answer) == (Ending.SUCCESS, ANSWER)
        (request,) = run.requests
        assert request.asked.prompt == prompt
        assert request.asked.model == UNDERLYING
        assert request.asked.tools == ()
        assert request.headers["authorization"] == "Bearer key-canary"
        system = request.body["messages"][0]
        assert system["role"] == "system"
        assert json.loads(system["content"].splitlines()[-1]) == SCHEMA
        assert MARKER not in run.bodies
        assert not (kimi.home / "touched").exists()
        assert run.outcome.usage == ONE_REQUEST
        assert run.outcome.observed_model is None
        assert (run.outcome.session_id or "").startswith("session_")
        assert (run.outcome.exit_code, run.warned) == (0, [])

    def test_eight_sessions_at_once(self, kimi: Kimi) -> None:
        """R31 F41 P3: each has a home, an id and a prompt of its own; the user's home is as it was."""
        provider = kimi.play(Answer(lambda prompt: json.dumps({"seen": prompt})))
        before = sorted(str(path) for path in kimi.home.rglob("*"))

        def ask(number: int) -> CallOutcome:
            call = JudgeCall(f"question {number}", SCHEMA, ALIAS, 120)
            return provider.judge(call, around=kimi.around)

        with ThreadPoolExecutor(8) as pool:
            outcomes = list(pool.map(ask, range(8)))

        assert [outcome.answer for outcome in outcomes] == [f'{{"seen": "question {n}"}}' for n in range(8)]
        assert len({outcome.session_id for outcome in outcomes}) == 8
        assert {outcome.usage for outcome in outcomes} == {ONE_REQUEST}
        assert sorted(str(path) for path in kimi.home.rglob("*")) == before

    def test_a_schema_that_the_model_ignores(self, kimi: Kimi) -> None:
        """P12: the text comes back as it was given, and is refused by whoever reads it."""
        run = kimi.judge(Answer(lambda _: f"Sure:\n```json\n{ANSWER}\n```"))

        assert run.outcome.ending is Ending.SUCCESS
        with pytest.raises(ReplyError):
            one_json_object(run.outcome.answer or "", allow_json_fence=KimiProvider.json_fence)

    def test_a_tool_ends_the_call_and_is_not_used(self, kimi: Kimi, tmp_path: Path) -> None:
        """P9 R31: the model wants one that it was not offered."""
        place = tmp_path / "ran"
        command = {"command": f"touch {place}", "description": "x"}
        run = kimi.judge(NamedCall("Bash", command, same_answer))

        assert run.outcome.ending is Ending.TOOL_ACTIVITY
        assert run.outcome.answer is None
        assert len(run.requests) <= 2
        assert not place.exists()


@dataclass(frozen=True)
class Filtered:
    """The provider blocks what its model said."""

    def answer(self, wire: Wire, asked: Asked) -> Reply:
        reply = wire.text(asked.model, ANSWER)
        return replace(reply, events=[(name, self._blocked(dict(event))) for name, event in reply.events])

    def _blocked(self, event: dict[str, Any]) -> dict[str, Any]:
        choices = [
            {**choice, "finish_reason": choice["finish_reason"] and "content_filter"}
            for choice in event["choices"]
        ]
        return {**event, "choices": choices}


@dataclass(frozen=True)
class Trouble:
    """What one scenario comes to."""

    scenario: Scenario
    kind: str
    requests: int = 1


TROUBLES = {
    "401": Trouble(Refused(401, "invalid_api_key", "Incorrect API key provided"), "auth_unavailable"),
    "429": Trouble(Refused(429, "rate_limit_exceeded", "Slow down"), "rate_limited", 2),
    "quota": Trouble(Quota(), "quota_unavailable"),
    "500": Trouble(Refused(500, "server_error", "It\nbroke"), "server_error", 2),
    "cut": Trouble(Cut(lambda _: ANSWER * 20), "connection_lost", 2),
    "wrong model": Trouble(OneModelOnly("another-model", same_answer), "model_unavailable"),
    # F16: an answer without a word is an error to the program.
    "nothing said": Trouble(Answer(lambda _: ""), "other", 2),
}


@pytest.fixture(scope="module")
def troubled(
    executable: Executable, model_server: ModelServer, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Run]:
    """One judge call of each kind of trouble, some at a time; each in surroundings of its own."""

    def ask(name: str) -> Run:
        folder = tmp_path_factory.mktemp(name.replace(" ", "-"))
        run = Kimi(executable, model_server, folder).judge(TROUBLES[name].scenario, seconds=120)
        nothing_runs(folder)
        assert left_behind(surroundings(folder)) == []
        return run

    with ThreadPoolExecutor(3) as pool:
        return dict(zip(TROUBLES, pool.map(ask, TROUBLES), strict=True))


class TestTrouble:
    @pytest.mark.parametrize("name", TROUBLES)
    def test_each_has_its_kind(self, troubled: dict[str, Run], name: str) -> None:
        """P7 P11 F13 F16: at most one retry, which is told; half an answer is none."""
        expected, run = TROUBLES[name], troubled[name]

        assert (run.outcome.ending, run.outcome.error_kind) == (Ending.PROVIDER_ERROR, expected.kind)
        assert run.outcome.exit_code == 1
        assert run.outcome.answer is None
        assert run.outcome.usage == UNKNOWN_USAGE
        assert (run.outcome.session_id or "").startswith("session_")
        assert len(run.requests) == expected.requests
        assert run.warned == ["provider_notice"] * (expected.requests - 1) + ["stderr_output"]

    def test_a_provider_that_blocks_an_answer(self, kimi: Kimi) -> None:
        """P6: refused, by the program's own word."""
        assert kimi.judge(Filtered()).outcome.ending is Ending.REFUSED

    def test_a_server_that_never_answers(self, kimi: Kimi) -> None:
        """P6 P10 R26: over within its time plus two seconds, nothing left."""
        run = kimi.judge(Hang(), seconds=5)

        assert run.outcome.ending is Ending.TIMEOUT
        assert 5000 <= run.outcome.latency_ms < 7000

    def test_a_run_that_is_killed(self, kimi: Kimi, tmp_path: Path) -> None:
        """P10: whoever asked dies by KILL, and so does everything it had started."""
        kimi.play(Hang())
        asking = (
            "import dataclasses, json, sys\nfrom pathlib import Path\n"
            "from skill_effectiveness.evidence.surroundings import Surroundings\n"
            "from skill_effectiveness.providers import JudgeCall\n"
            "from skill_effectiveness.providers.kimi import KimiProvider\n"
            "around = dataclasses.replace(Surroundings.real(), environ=json.loads(sys.argv[2]))\n"
            "provider = KimiProvider.at(Path(sys.argv[1]), around=around)\n"
            f"provider.judge(JudgeCall('x', {{}}, {ALIAS!r}, 60), around=around)\n"
        )
        program, environ = str(kimi.executable.path), json.dumps(kimi.around.environ)
        with subprocess.Popen(  # noqa: S603 - our own words
            [sys.executable, "-c", asking, program, environ],
            env={"PYTHONPATH": str(CHECKOUT / "eval"), "PATH": os.environ["PATH"]},
        ) as asker:
            while not kimi.server.requests(kimi.name):
                assert asker.poll() is None
                kimi.around.sleep(0.1)
            asker.kill()
        gone = [p for p in psutil.process_iter(["environ"]) if is_of(p, tmp_path)]
        psutil.wait_procs(gone, timeout=5)
        nothing_runs(tmp_path)
        left = tmp_path / "temporary"
        assert [path.name.startswith("skill-effectiveness-") for path in left.iterdir()] == [True]
        assert sweep_sessions(kimi.around).removed == 1


def is_of(process: psutil.Process, tmp_path: Path) -> bool:
    return str((process.info["environ"] or {}).get("KIMI_CODE_HOME", "")).startswith(str(tmp_path))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository that would like to tell its reader what to do."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)  # noqa: S603, S607 - fixed words
    (folder / "AGENTS.md").write_text(f"{MARKER}\n")
    for place in (".agents/skills", ".kimi-code/skills"):
        (folder / place / "planted").mkdir(parents=True)
        (folder / place / "planted" / "SKILL.md").write_text(SKILL.format(name="planted"))
    (folder / ".kimi-code" / "agents").mkdir()
    for name in ("agent", "reader"):
        (folder / ".kimi-code" / "agents" / f"{name}.md").write_text(
            f"---\nname: {name}\ndescription: {MARKER}\noverride: true\n---\n{MARKER}\n"
        )
    server = {"mcpServers": {MARKER: {"command": "/usr/bin/touch", "args": [str(tmp_path / "touched")]}}}
    (folder / ".mcp.json").write_text(json.dumps(server))
    (folder / "file.txt").write_text("file-canary\n")
    return folder


class TestReading:
    def test_a_reader_reads_and_is_not_led(self, kimi: Kimi, checkout: Path, tmp_path: Path) -> None:
        """P13 F32: four tools; what the checkout and the home say reaches nobody."""
        plant(kimi.home)
        command = {"command": "cat file.txt", "description": "x"}
        run = kimi.read(NamedCall("Bash", command, same_answer), checkout)

        assert (run.outcome.ending, run.outcome.answer) == (Ending.SUCCESS, ANSWER)
        assert sorted(run.requests[0].asked.tools) == ["Bash", "Glob", "Grep", "Read"]
        assert len(run.requests) == 2
        assert "file-canary" in run.bodies
        assert MARKER not in run.bodies
        assert not (tmp_path / "touched").exists()
        assert run.outcome.usage == Usage(2400, 400, 68)

    def test_a_reader_changes_nothing(self, kimi: Kimi, checkout: Path) -> None:
        """P13: that is the sandbox's work, and the record says whether there was one."""
        command = {"command": "touch written; echo done", "description": "x"}
        run = kimi.read(NamedCall("Bash", command, same_answer), checkout)

        assert run.outcome.ending is Ending.SUCCESS
        confined = run.outcome.sandbox is SandboxKind.BUBBLEWRAP
        assert confined is (Sandbox.found(kimi.around) is not None)
        assert (checkout / "written").exists() is not confined

    def test_a_tool_that_a_reader_does_not_have(self, kimi: Kimi, checkout: Path) -> None:
        """P13: denied, and the session goes on."""
        run = kimi.read(NamedCall("Write", {"path": "written", "content": "x"}, same_answer), checkout)

        assert run.outcome.ending is Ending.SUCCESS
        assert not (checkout / "written").exists()
        assert "not found" in run.bodies


@pytest.fixture
def mount(tmp_path: Path) -> Mount:
    skill = tmp_path / "arm" / "review-work"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: review-work\ndescription: arm-skill\n---\narm-skill-body\n")
    return Mount((skill,), "arm-instructions")


@pytest.fixture
def working_copy(tmp_path: Path) -> Path:
    folder = tmp_path / "copy"
    folder.mkdir()
    (folder / "file.txt").write_text("file-canary\n")
    return folder


class TestWorking:
    def test_a_skill_of_the_arm(self, kimi: Kimi, working_copy: Path, mount: Mount) -> None:
        """P13 F33: its skill and its instructions enter, and nothing is written into the working copy."""
        plant(kimi.home)
        run = kimi.work(NamedCall("Skill", {"skill": "review-work"}, same_answer), working_copy, mount)

        assert (run.outcome.ending, run.outcome.answer) == (Ending.SUCCESS, ANSWER)
        first, second = (json.dumps(request.body) for request in run.requests)
        assert "arm-instructions" in first
        assert "arm-skill" in first
        assert "arm-skill-body" not in first
        assert "arm-skill-body" in second
        assert MARKER not in run.bodies
        assert [path.name for path in working_copy.iterdir()] == ["file.txt"]

    def test_without_a_mount(self, kimi: Kimi, working_copy: Path) -> None:
        """P13 F31 F32: no skill and no instruction of the user's; what it makes is there."""
        plant(kimi.home)
        run = kimi.work(
            NamedCall("Write", {"path": "made.txt", "content": "made\n"}, same_answer), working_copy
        )

        assert run.outcome.ending is Ending.SUCCESS
        assert (working_copy / "made.txt").read_text() == "made\n"
        assert MARKER not in run.bodies
        offered = set(run.requests[0].asked.tools)
        assert offered >= {"Bash", "Edit", "Read", "Skill", "Write"}
        assert not offered & {"WebSearch", "FetchURL"}

    def test_the_web_is_closed(self, kimi: Kimi, working_copy: Path) -> None:
        """P13: a tool that is wanted all the same is refused, and the session goes on."""
        run = kimi.work(NamedCall("FetchURL", {"url": "http://127.0.0.1:9/"}, same_answer), working_copy)

        assert run.outcome.ending is Ending.SUCCESS
        assert "is disabled by the active tool policy" in run.bodies


@dataclass(frozen=True)
class Examined:
    """One examination through the command line, and what the model server saw of it."""

    done: subprocess.CompletedProcess[str]
    requests: int
    out: Path


@pytest.fixture(scope="module")
def examined(
    executable: Executable, model_server: ModelServer, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Examined]:
    """A sound model and one that errs, both at a time; each in surroundings of its own."""
    players = {"sound": sound, "erring": erring}

    def examine(name: str) -> Examined:
        folder = tmp_path_factory.mktemp(name)
        kimi = Kimi(executable, model_server, folder)
        kimi.play(Answer(players[name]))
        words = ["reviewer-calibration", "--provider", "kimi", "--kimi-path", str(executable.path)]
        words += ["--model", ALIAS, "--reviewer-family", "moonshot", "--out", str(folder / "out")]
        done = subprocess.run(  # noqa: S603 - our own door
            [sys.executable, str(CHECKOUT / "run.py"), *words, "--timeout-seconds", "120"],
            env=dict(kimi.around.environ),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        nothing_runs(folder)
        assert left_behind(kimi.around) == []
        return Examined(done, len(model_server.requests(kimi.name)), folder / "out")

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(players, pool.map(examine, players), strict=True))


class TestExamination:
    def test_a_sound_model_passes(self, examined: dict[str, Examined]) -> None:
        """R4 R32 R34 R41: two requests, a published pair, its labels and what was selected."""
        run = examined["sound"]

        assert run.done.returncode == 0, run.done.stderr
        assert "calibration_status=pass\n" in run.done.stdout
        assert "key-canary" not in run.done.stdout + run.done.stderr
        assert run.requests == 2
        result = json.loads((run.out / "reviewer-calibration-result.json").read_text())
        assert result["provider"] == "kimi"
        assert result["tool_access"] == "config-denied-stream-audited-detection-only"
        assert result["requested_session_mode"] == "private-kimi-home-explicit-model-stream"
        binding = result["provider_binding"]
        assert binding["model_alias"] == ALIAS
        assert binding["provider_id"] == "loop"
        assert binding["underlying_model"] == UNDERLYING

    def test_an_erring_model_fails_and_is_published(self, examined: dict[str, Examined]) -> None:
        """R5 R41: exit 1 with the pair."""
        run = examined["erring"]

        assert run.done.returncode == 1, run.done.stderr
        assert "calibration_status=fail\n" in run.done.stdout
        assert (run.out / "reviewer-calibration.json").exists()
