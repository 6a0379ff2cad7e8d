"""A whole examination through the command line: the real codex, a model server on loopback, a private folder.

The model server plays a sound model, an erring one, and everything that goes wrong in the field; it counts
the requests of each, so "no second call for that record" is measured and not believed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import psutil
import pytest

from tests.support.codex_shim import custom_provider, write_shim
from tests.support.model_server import Answer, Cut, Hang, OneModelOnly, Quota, ToolCall
from tests.support.players import erring, sound

if TYPE_CHECKING:
    from tests.support.model_server import ModelServer, Scenario

pytestmark = pytest.mark.realcli

CHECKOUT = Path(__file__).parents[2]
NUMBERS = count()
PAIR = ("reviewer-calibration.json", "reviewer-calibration-result.json")


class Examined:
    """One run of the command line, and what the model server saw of it."""

    def __init__(self, done: subprocess.CompletedProcess[str], requests: int, out: Path) -> None:
        self.code, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr
        self.requests = requests
        self.out = out

    @property
    def published(self) -> list[str]:
        return [name for name in PAIR if (self.out / name).exists()]


class Examine(Protocol):
    """Examines the real program while the model server plays one scenario."""

    def __call__(self, scenario: Scenario, *extra: str, timeout_seconds: int = 60) -> Examined: ...


@pytest.fixture
def examined(codex_program: Path, model_server: ModelServer, tmp_path: Path) -> Examine:
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    temporary.mkdir()
    environment = {
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "PATH": os.environ["PATH"],
        "CODEX_API_KEY": "key-canary-7f3a",
    }

    name = f"examination-{next(NUMBERS)}"
    out = tmp_path / "out"

    def run(scenario: Scenario, *extra: str, timeout_seconds: int = 60) -> Examined:
        # The address, and so the bound program, is the same for every scenario of a test.
        options = custom_provider(model_server.play(name, scenario))
        shim = write_shim(tmp_path / "codex", codex_program, options)
        before = len(model_server.requests(name))
        words = ["reviewer-calibration", "--provider", "codex", "--codex-path", str(shim)]
        words += ["--model", "fake-model", "--reviewer-family", "openai", "--out", str(out)]
        words += ["--timeout-seconds", str(timeout_seconds), *extra]
        done = subprocess.run(  # noqa: S603 - our own door
            [sys.executable, str(CHECKOUT / "run.py"), *words],
            env=environment,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
        nothing_runs(temporary)
        assert list(temporary.iterdir()) == []
        assert "key-canary-7f3a" not in done.stdout + done.stderr
        return Examined(done, len(model_server.requests(name)) - before, out)

    return run


def nothing_runs(temporary: Path) -> None:
    """No process of the session is left."""
    for process in psutil.process_iter(["environ"]):
        environment = process.info["environ"] or {}
        assert not environment.get("CODEX_HOME", "").startswith(str(temporary))


class TestVerdicts:
    def test_a_sound_model_passes(self, examined: Examine) -> None:
        """R4 R41: two repeats, two requests, a published pair and exit 0."""
        run = examined(Answer(sound))
        assert run.stderr.count("Traceback") == 0
        assert run.code == 0
        assert run.stdout == (
            "execution_status=evaluated\ncalibration_status=pass\nreviewer_family=openai\n"
            "repeat_count=2\nresult=reviewer-calibration-result.json\n"
        )
        assert run.requests == 2
        result = json.loads((run.out / PAIR[1]).read_text())
        assert result["tool_access"] == "read-only-observed-none"
        assert result["requested_session_mode"] == "ephemeral"
        assert result["calibration_evaluation"]["reviewer_metrics"]["openai"]["known_answer_accuracy"] == 1
        assert "synthetic" not in result

    def test_an_erring_model_fails_and_is_published(self, examined: Examine) -> None:
        """R5 R41: always the first seat is chance after turning back; exit 1 with the pair."""
        run = examined(Answer(erring))
        assert run.code == 1
        assert "calibration_status=fail\n" in run.stdout
        assert run.requests == 2
        assert run.published == list(PAIR)
        sheet = json.loads((run.out / "reviewer-calibration-metrics.json").read_text())
        assert sheet["reviewers"][0]["position"]["first_seat"]["value"] == 1


FAULTS = {
    "quota": (Quota(), "provider_error:quota_unavailable", 1),
    "cut stream": (Cut(sound), "provider_error:connection_lost", 2),
    "tool call": (ToolCall("cat /etc/hostname", sound), "tool_activity", 2),
    "wrong model": (OneModelOnly("another-model", sound), "provider_error:model_unavailable", 1),
}


class TestFaults:
    @pytest.mark.parametrize(("scenario", "state", "most"), FAULTS.values(), ids=FAULTS.keys())
    def test_ends_in_its_state_without_a_second_call(
        self, examined: Examine, scenario: Scenario, state: str, most: int
    ) -> None:
        """R31 P6 P7: exit 2, the typed state on stderr, no stdout, no pair, no second call."""
        run = examined(scenario)
        assert run.code == 2
        assert run.stdout == ""
        assert f"failed in its attempt 1 with {state}:" in run.stderr
        assert "Traceback" not in run.stderr
        assert 1 <= run.requests <= most
        assert run.published == []

    def test_resuming_after_a_quota_makes_only_the_missing_calls(self, examined: Examine) -> None:
        """R28: the spent attempt stays, two new calls complete the examination."""
        first = examined(Quota())
        assert (first.code, first.requests) == (2, 1)
        second = examined(Answer(sound), "--resume")
        assert (second.code, second.requests) == (0, 2)
        assert second.published == list(PAIR)
        assert sorted(path.name for path in (second.out / "attempts").iterdir()) == [
            "r01-a1",
            "r01-a2",
            "r02-a1",
        ]
        third = examined(Answer(sound), "--resume")
        assert (third.code, third.requests, third.stdout) == (0, 0, second.stdout)

    def test_a_hanging_model_is_ended_by_the_timeout(self, examined: Examine) -> None:
        """P10: one request, no process left, no pair."""
        run = examined(Hang(), timeout_seconds=4)
        assert run.code == 2
        assert "with timeout:" in run.stderr
        assert (run.requests, run.published) == (1, [])
