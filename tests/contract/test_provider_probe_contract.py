"""The isolation probe of the real codex: one process of the command line, the model on loopback.

The model server plays models that keep a session's secret and models that do not, and counts what it is
asked: two requests for a report, none for a folder that is spent.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import psutil
import pytest

from skill_effectiveness.providers.probe import read_probe_result
from skill_effectiveness.trials.capability_matrix import matrix, read_probe_file
from tests.support import opencode_shim
from tests.support.codex_shim import custom_provider, write_shim
from tests.support.kimi import write_configuration
from tests.support.messages_wire import Formed
from tests.support.model_server import Answer, Cut, Hang, Quota, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.model_server import ModelServer, Request, Scenario

pytestmark = pytest.mark.realcli

CHECKOUT = Path(__file__).parents[2]
NUMBERS = count()
CLAIM, RESULT, ARTIFACT = (
    ".provider-probe.lock",
    "provider-probe-result.json",
    "capability-probe-delegation.json",
)
CANARY = re.compile("[0-9a-f]{64}")


class Model:
    """A model behind a server that keeps something between sessions, or nothing.

    Attributes:
        kept: the canary it was told.
    """

    def __init__(self, recall: str = "none") -> None:
        self._recall = recall
        self.kept = ""

    def __call__(self, prompt: str) -> str:
        if found := CANARY.search(prompt):
            self.kept = found[0]
            return json.dumps({"canary": self.kept})
        grouped = "-".join(self.kept[start : start + 8] for start in range(0, 64, 8)).upper()
        return json.dumps({"recalled_canary": self._recall.format(canary=self.kept, grouped=grouped)})


class Probed:
    """One run of the command line, and what the model server saw of it."""

    def __init__(
        self, done: subprocess.CompletedProcess[str], requests: tuple[Request, ...], out: Path
    ) -> None:
        self.code, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr
        self.requests = requests
        self.out = out

    @property
    def written(self) -> set[str]:
        return {path.name for path in self.out.iterdir() if not path.name.startswith(".probing")}


class Probe(Protocol):
    """Probes the real program while the model server plays one scenario."""

    def __call__(self, scenario: Scenario, *, seconds: int = 60) -> Probed: ...


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The test's folder, in whose temporary folder nothing is left and from which nothing runs on."""
    for name in ("home", "tmp"):
        (tmp_path / name).mkdir(mode=0o700)
    yield tmp_path
    assert list((tmp_path / "tmp").iterdir()) == []
    for process in psutil.process_iter(["environ"]):
        environment = process.info["environ"] or {}
        assert not environment.get("CODEX_HOME", "").startswith(str(tmp_path))


@pytest.fixture
def probed(codex_program: Path, model_server: ModelServer, folder: Path) -> Probe:
    name = f"probe-{next(NUMBERS)}"
    environment = {
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "PATH": os.environ["PATH"],
        "CODEX_API_KEY": "key-canary-7f3a",
    }

    def run(scenario: Scenario, *, seconds: int = 60) -> Probed:
        shim = write_shim(folder / "codex", codex_program, custom_provider(model_server.play(name, scenario)))
        words = ["provider-probe", "--provider", "codex", "--codex-path", str(shim)]
        words += ["--model", "fake-model", "--task-family", "delegation", "--out", str(folder / "out")]
        done = subprocess.run(  # noqa: S603 - our own door
            [sys.executable, str(CHECKOUT / "run.py"), *words, "--timeout-seconds", str(seconds)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
        assert "key-canary-7f3a" not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return Probed(done, model_server.requests(name), folder / "out")

    return run


def lines(outcome: str, *, recalled: bool) -> str:
    return (
        "execution_status=completed\ncapability_matrix_status=causal_core_unavailable\n"
        f"isolation_outcome={outcome}\ncross_session_recall_detected={str(recalled).lower()}\n"
        f"result={RESULT}\n"
    )


class TestOutcomes:
    def test_a_model_that_recalls_nothing(self, probed: Probe) -> None:
        """T37: exit 0, unresolved; the canary went out in one request and stands in no file."""
        model = Model()
        run = probed(Answer(model))
        assert (run.code, run.stdout) == (0, lines("unresolved_isolation_threat", recalled=False))
        assert run.written == {CLAIM, RESULT, ARTIFACT}
        first, second = (json.dumps(request.body) for request in run.requests)
        assert model.kept in first
        assert model.kept not in second
        kept = b"".join(path.read_bytes() for path in run.out.rglob("*") if path.is_file())
        assert model.kept.encode() not in kept
        found = read_probe_result((run.out / ARTIFACT).read_bytes(), (run.out / RESULT).read_bytes())
        assert found.provider_cli_version.startswith("codex-cli ")
        row = read_probe_file((run.out / ARTIFACT).read_bytes())
        assert not matrix([row.row.task_family], "codex", [row]).is_ready

    @pytest.mark.parametrize("form", ["{canary}", "It was {grouped}, as I recall."])
    def test_a_server_that_leaks(self, probed: Probe, form: str) -> None:
        """T37: exit 0 as contaminated, also when the canary comes back in another form."""
        model = Model(form)
        run = probed(Answer(model))
        assert (run.code, run.stdout) == (0, lines("contaminated", recalled=True))
        assert len(run.requests) == 2
        assert model.kept not in run.stdout + run.stderr
        found = read_probe_result((run.out / ARTIFACT).read_bytes(), (run.out / RESULT).read_bytes())
        assert found.cross_trial_canary.recalled_value_hash == found.cross_trial_canary.canary_hash


FAULTS = {
    "a tool": (ToolCall("cat /etc/hostname", Model()), "used a tool", 2),
    "a quota": (Quota(), "provider_error:quota_unavailable", 1),
    "a cut stream": (Cut(Model()), "provider_error:connection_lost", 2),
    "an answer that is too long": (Answer(Model("x" * 600)), "over 512 characters", 2),
    "an answer that is neither": (Answer(Model("I cannot say.")), "neither named a canary", 2),
}


class TestNoReport:
    @pytest.mark.parametrize(("scenario", "told", "most"), FAULTS.values(), ids=FAULTS)
    def test_leaves_the_claim_alone(self, probed: Probe, scenario: Scenario, told: str, most: int) -> None:
        """T39: exit 2, nothing on stdout, and the folder takes no second probe."""
        run = probed(scenario)
        assert (run.code, run.stdout) == (2, "")
        assert told in run.stderr
        assert run.written == {CLAIM}
        assert 1 <= len(run.requests) <= most
        again = probed(Answer(Model()))
        assert (again.code, again.stdout, again.requests) == (2, "", ())
        assert "already claimed" in again.stderr
        assert again.written == {CLAIM}

    def test_a_model_that_hangs(self, probed: Probe) -> None:
        """T39: its time is its own, and no process is left."""
        run = probed(Hang(), seconds=4)
        assert (run.code, len(run.requests)) == (2, 1)
        assert "ended with timeout" in run.stderr
        assert run.written == {CLAIM}


@dataclass(frozen=True)
class Stand:
    """How one program is led to the model server.

    Attributes:
        path: of the program.
        model: that it is asked with.
        environment: beside home, temporary folder and PATH.
    """

    path: Path
    model: str
    environment: dict[str, str]


@pytest.fixture
def stand(
    request: pytest.FixtureRequest, model_server: ModelServer, folder: Path
) -> Callable[[str, Scenario], Stand]:
    """Sets a program up so that it talks to the model server, which plays a scenario."""

    def set_up(provider: str, scenario: Scenario) -> Stand:
        address = model_server.play(f"probe-{provider}", scenario)
        if provider == "claude":
            environment = {
                "ANTHROPIC_BASE_URL": address.removesuffix("/v1"),
                "ANTHROPIC_API_KEY": "key-canary-7f3a",
            }
            return Stand(request.getfixturevalue("claude_program"), "claude-fake-1", environment)
        if provider == "opencode":
            program = request.getfixturevalue("opencode_program")
            shim = opencode_shim.write_shim(folder / "opencode", program, {"loop": address})
            return Stand(shim, opencode_shim.model_of("loop"), {})
        installed = folder / "installed"
        installed.mkdir()
        (installed / "kimi").symlink_to(request.getfixturevalue("kimi_script"))
        (installed / "node").symlink_to(request.getfixturevalue("node_program"))
        write_configuration(folder / "home", address)
        path = f"{installed}:{os.environ['PATH']}"
        return Stand(installed / "kimi", "fake-model", {"PATH": path})

    return set_up


@pytest.mark.parametrize(
    ("provider", "recall"), [("claude", "none"), ("opencode", "{grouped}"), ("kimi", "none")]
)
def test_other_programs(
    stand: Callable[[str, Scenario], Stand],
    model_server: ModelServer,
    folder: Path,
    provider: str,
    recall: str,
) -> None:
    """T37: the mapping is the same for every provider whose adapter can hold the rules."""
    model = Model(recall)
    place = stand(provider, Formed(model) if provider == "claude" else Answer(model))
    out = folder / "out"
    words = ["provider-probe", "--provider", provider, f"--{provider}-path", str(place.path)]
    words += ["--model", place.model, "--task-family", "delegation", "--out", str(out)]
    done = subprocess.run(  # noqa: S603 - our own door
        [sys.executable, str(CHECKOUT / "run.py"), *words, "--timeout-seconds", "100"],
        env={
            "HOME": str(folder / "home"),
            "TMPDIR": str(folder / "tmp"),
            "PATH": os.environ["PATH"],
            **place.environment,
        },
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    leaks = recall != "none"
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    expected = lines("contaminated" if leaks else "unresolved_isolation_threat", recalled=leaks)
    assert done.stdout == expected
    assert model.kept not in done.stdout + done.stderr
    requests = [json.dumps(request.body) for request in model_server.requests(f"probe-{provider}")]
    assert len(requests) == 2
    assert model.kept in requests[0]
    assert model.kept not in requests[1]


def test_the_doctor_knows_all_four(
    *,
    codex_program: Path,
    claude_program: Path,
    opencode_program: Path,
    kimi_script: Path,
    node_program: Path,
    folder: Path,
) -> None:
    """P2 P9 P13: as they are installed; asked for their versions in an empty home, and for nothing else."""
    installed = folder / "installed"
    installed.mkdir()
    (installed / "kimi").symlink_to(kimi_script)
    (installed / "node").symlink_to(node_program)
    (installed / "codex").symlink_to(codex_program)
    words = ["--claude-path", str(claude_program), "--opencode-path", str(opencode_program)]
    done = subprocess.run(  # noqa: S603 - our own door
        [sys.executable, str(CHECKOUT / "run.py"), "providers", "doctor", *words, "--json"],
        env={
            "HOME": str(folder / "home"),
            "TMPDIR": str(folder / "tmp"),
            "PATH": f"{installed}:/usr/bin:/bin",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)["providers"]
    assert {one["provider"]: (one["status"], one["login"]) for one in found} == dict.fromkeys(
        ("codex", "claude", "opencode", "kimi"), ("ready", "not_seen")
    )
    versions = {one["provider"]: one["version"] for one in found}
    assert versions["codex"] == "codex-cli 0.171.0"
    assert versions["claude"].startswith("2.1.332")
    assert "1.18.33" in versions["opencode"]
    assert "2.1.0" in versions["kimi"]
    assert {one["tool_access"] for one in found} == {
        "read-only-observed-none",
        "verified-none",
        "agent-disabled-observed-none",
        "config-denied-stream-audited-detection-only",
    }
    assert list((folder / "home").iterdir()) == []
