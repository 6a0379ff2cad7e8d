"""A controller's examination of the real codex: one process for each request, the model on loopback.

The model server counts what it is asked, so "one call for a sample, none for a probe or a finalization, and
never a second one" is measured and not believed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from skill_effectiveness.calibration.inputs import load_inputs
from skill_effectiveness.calibration.loader import load_calibration
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.words import BankName
from tests.support.codex_shim import custom_provider, write_shim
from tests.support.controller import (
    EVIDENCE,
    RESULT,
    Reply,
    changed,
    finalize_request,
    probe_request,
    sample_request,
)
from tests.support.model_server import Answer, Cut, Hang, Quota, ToolCall
from tests.support.players import erring, sound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.model_server import ModelServer, Scenario

pytestmark = pytest.mark.realcli

CHECKOUT = Path(__file__).parents[2]
NUMBERS = count()
KEY = "key-canary-7f3a"


class Controller:
    """Starts doors, and counts what the model is asked."""

    def __init__(self, folder: Path, program: Path, server: ModelServer) -> None:
        self.root = folder / "root"
        self.shim = folder / "codex"
        self._folder, self._program, self._server = folder, program, server
        self._name = f"single-sample-{next(NUMBERS)}"
        self.environment = {
            "HOME": str(folder / "home"),
            "TMPDIR": str(folder / "tmp"),
            "PATH": os.environ["PATH"],
            "CODEX_API_KEY": KEY,
        }
        for name in ("home", "tmp"):
            (folder / name).mkdir(mode=0o700)
        self.manifest = ""
        self._before = 0
        self._played = False
        self.play(Answer(sound))

    def play(self, scenario: Scenario) -> None:
        """What the model does from here on; the program stays the same."""
        self._before = self.requests if self._played else 0
        self._played = True
        options = custom_provider(self._server.play(self._name, scenario))
        write_shim(self.shim, self._program, options)

    @property
    def requests(self) -> int:
        """Requests that the model got in all."""
        return self._before + len(self._server.requests(self._name))

    def start(self, request: Mapping[str, Any]) -> subprocess.Popen[bytes]:
        """A door that has its request."""
        door = subprocess.Popen(
            [sys.executable, "-m", "skill_effectiveness.calibration"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._folder,
            env=self.environment,
        )
        assert door.stdin is not None
        door.stdin.write(json.dumps(request).encode())
        door.stdin.close()
        door.stdin = None
        return door

    def ask(self, request: Mapping[str, Any]) -> Reply:
        """One request and its answer; afterwards nothing runs and no session is left."""
        door = self.start(request)
        out, err = door.communicate(timeout=150)
        for secret in (KEY, str(self.root), "A win", "judgments"):
            assert secret.encode() not in out
        assert KEY.encode() not in err
        assert b"Traceback" not in err
        nothing_runs(self._folder / "tmp")
        assert list((self._folder / "tmp").iterdir()) == []
        return Reply.of(out, door.returncode, err.decode())

    def probe(self) -> Reply:
        """Learn the manifest."""
        reply = self.ask(probe_request())
        self.manifest = str(reply.result["runtime_manifest_hash"])
        return reply

    def sample(self, sample_id: str, **payload: object) -> dict[str, Any]:
        """The request for one sample."""
        named = {
            "executable": str(self.shim),
            "model": "fake-model",
            "reviewer_family": "openai",
            "timeout_seconds": 60,
            "runtime_manifest_hash": self.manifest,
        }
        return sample_request(self.root, sample_id, **{**named, **payload})

    def finalization(self) -> dict[str, Any]:
        """The request for the pair of two samples."""
        return finalize_request(self.root, runtime_manifest_hash=self.manifest)


def nothing_runs(temporary: Path) -> None:
    """No process of a session is left."""
    for process in psutil.process_iter(["environ"]):
        environment = process.info["environ"] or {}
        assert not environment.get("CODEX_HOME", "").startswith(str(temporary))


@pytest.fixture
def controller(codex_program: Path, model_server: ModelServer, tmp_path: Path) -> Controller:
    controller = Controller(tmp_path, codex_program, model_server)
    controller.probe()
    return controller


def run(*words: object, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, str(CHECKOUT / "run.py"), *map(str, words)],
        env=dict(environment),
        capture_output=True,
        text=True,
        check=False,
    )


def test_probe_sample_sample_finalize_seal_verify(controller: Controller, tmp_path: Path) -> None:
    """R20 R39 R45: two calls in all; the pair loads, seals and verifies."""
    assert controller.requests == 0
    for number, sample_id in enumerate(("s-1", "s-2"), start=1):
        reply = controller.ask(controller.sample(sample_id))
        assert reply.result["sample_artifact"] == f"{sample_id}.json"
        assert reply.told == ""
        assert controller.requests == number
    done = controller.ask(controller.finalization())
    assert done.result["calibration_status"] == "pass"
    assert done.result["model_call_count"] == 0
    assert controller.requests == 2

    published = controller.root / "calibration"
    loaded = load_calibration(
        (published / EVIDENCE).read_bytes(),
        (published / RESULT).read_bytes(),
        inputs=load_inputs(RealFs(), BankName.JUDGED),
    )
    assert loaded.result.sample_ids == ("s-1", "s-2")
    assert loaded.result.tool_access == "read-only-observed-none"
    assert loaded.result.requested_session_mode == "ephemeral"
    assert loaded.result.runtime_manifest_hash == controller.manifest

    keys, sealed = tmp_path / "keys", tmp_path / "sealed"
    made = run("keys", "new", "k", "--root", keys, environment=controller.environment)
    assert made.returncode == 0, made.stderr
    key = keys / "keys" / "k.key"
    sealing = run(
        "reviewers", "seal", published, "--key", key, "--out", sealed, environment=controller.environment
    )
    assert sealing.returncode == 0, sealing.stderr
    verified = run("verify", sealed, "--pub", key.with_suffix(".pub"), environment=controller.environment)
    assert verified.returncode == 0, verified.stderr
    assert controller.requests == 2


def test_an_erring_model_fails_the_gates_and_is_published(controller: Controller) -> None:
    """R5: always the first seat is chance after turning back."""
    controller.play(Answer(erring))
    for sample_id in ("s-1", "s-2"):
        assert controller.ask(controller.sample(sample_id)).word == "ok"
    assert controller.ask(controller.finalization()).result["calibration_status"] == "fail"
    sheet = json.loads((controller.root / "calibration/reviewer-calibration-metrics.json").read_text())
    assert sheet["reviewers"][0]["position"]["first_seat"]["value"] == 1


FAULTS = {
    "quota": (Quota(), 1),
    "cut stream": (Cut(sound), 2),
    "tool call": (ToolCall("cat /etc/hostname", sound), 2),
}


@pytest.mark.parametrize(("scenario", "most"), FAULTS.values(), ids=FAULTS.keys())
def test_a_call_that_gives_nothing_closes_the_root(
    controller: Controller, scenario: Scenario, most: int
) -> None:
    """R9 R31: one answer, no second call, no pair; earlier samples stay."""
    assert controller.ask(controller.sample("s-1")).word == "ok"
    controller.play(scenario)
    reply = controller.ask(controller.sample("s-2"))
    assert (reply.word, reply.exit_code) == ("model_call_unresolved", 3)
    asked = controller.requests
    assert 2 <= asked <= 1 + most
    for again in (controller.sample("s-2"), controller.sample("s-3"), controller.finalization()):
        assert controller.ask(again).word == "artifact_root_quarantined"
    assert controller.requests == asked
    assert (controller.root / "samples/s-1.json").exists()


def test_a_hanging_model_is_ended_by_the_timeout(controller: Controller) -> None:
    """R26: one request, and no process left."""
    controller.play(Hang())
    reply = controller.ask(controller.sample("s-1", timeout_seconds=3))
    assert reply.word == "model_call_unresolved"
    assert "timeout" in reply.told
    assert controller.requests == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_door_that_is_ended_during_its_call(controller: Controller, tmp_path: Path, number: int) -> None:
    """R9 F10: the program dies with it; the root takes no further call, and one was counted."""
    controller.play(Hang())
    door = controller.start(controller.sample("s-1"))
    deadline = time.monotonic() + 60
    while not controller.requests:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    door.send_signal(number)
    out, _ = door.communicate(timeout=30)
    if number == signal.SIGKILL:
        assert (door.returncode, out) == (-signal.SIGKILL, b"")
    else:
        assert Reply.of(out, door.returncode).word == "model_call_unresolved"
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            nothing_runs(tmp_path / "tmp")
        except AssertionError:
            time.sleep(0.1)
        else:
            break
    nothing_runs(tmp_path / "tmp")
    controller.play(Answer(sound))
    request = controller.sample("s-1")
    # What the killed door left in the temporary folder is removed by the next one.
    for again in (request, changed(request, "payload.sample_id", "s-2"), controller.finalization()):
        assert controller.ask(again).word == "artifact_root_quarantined"
    assert controller.requests == 1
