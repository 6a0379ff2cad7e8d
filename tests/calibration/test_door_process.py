"""The door as controllers meet it: a process of its own, and a reviewer's program behind it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from skill_effectiveness.calibration.actions import BINDERS
from skill_effectiveness.calibration.inputs import load_inputs
from skill_effectiveness.calibration.loader import load_calibration
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.words import BankName
from tests.support.controller import (
    RUNTIME,
    Controller,
    Reply,
    finalize_request,
    probe_request,
    sample_request,
)
from tests.support.fake_program import write_codex
from tests.support.private import content, wrong_modes
from tests.support.provider_calls import DONE, THREAD, TURN
from tests.support.temporary_folders import UNUSABLE, temporary_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.support.examinations import Anything

pytestmark = pytest.mark.slow

KEY = "sk-canary-4711"
PLACE = "place-canary-4712"
WORDS = "words-canary-4713"

# A program that answers every case alike and leaves a line for each call.
ASKED = """
with open(folder + "/calls", "a") as calls:
    calls.write(f"{time.time():.6f} {os.getpid()}\\n")
"""
CASES = """
prompt = sys.stdin.buffer.read().decode()
cases = json.loads([line for line in prompt.splitlines() if line.startswith("{")][-1])["cases"]
judged = [{"case": case["case"], "verdict": "tie"} for case in cases]
"""
ANSWER = """
def reply(text):
    item = {"id": "i", "type": "agent_message", "text": text}
    thread["thread_id"] = f"thread-{time.time_ns()}"
    say(thread, turn, {"type": "item.completed", "item": item}, done)
"""
SOUND = f"{ASKED}{CASES}{ANSWER}\nreply(json.dumps({{'judgments': judged}}))"


@dataclass(frozen=True)
class House:
    """Where one test runs its doors."""

    folder: Path
    manifest: str

    @property
    def root(self) -> Path:
        """The artifact root."""
        return self.folder / "root"

    def program(self, body: str) -> Path:
        """Another reviewer's program under the same path."""
        return write_codex(self.folder, body, thread=THREAD, turn=TURN, done=DONE)

    def start(self, request: Mapping[str, Any]) -> subprocess.Popen[bytes]:
        """A door that has its request."""
        process = subprocess.Popen(
            [sys.executable, "-m", "skill_effectiveness.calibration"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env={
                "HOME": str(self.folder / "home"),
                "TMPDIR": str(self.folder / "temporary"),
                "PATH": os.environ["PATH"],
                "CODEX_API_KEY": KEY,
            },
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(request).encode())
        process.stdin.close()
        process.stdin = None
        return process

    def end(self, process: subprocess.Popen[bytes]) -> Reply:
        """Its answer; nothing secret is in it, or on stderr."""
        out, err = process.communicate(timeout=60)
        for secret in (KEY, PLACE, WORDS):
            assert secret.encode() not in out
        assert KEY.encode() not in err
        assert WORDS.encode() not in err
        return Reply.of(out, process.returncode, err.decode())

    def ask(self, request: Mapping[str, Any]) -> Reply:
        """One request to a door of its own."""
        return self.end(self.start(request))

    def sample(self, sample_id: str = "s-1", **payload: Anything) -> dict[str, Any]:
        """A sample request that names what is installed."""
        named = {"executable": str(self.folder / "codex"), "runtime_manifest_hash": self.manifest}
        return sample_request(self.root, sample_id, **{**named, **payload})

    def finalization(self) -> dict[str, Any]:
        """The request that makes a pair of two samples."""
        return finalize_request(self.root, runtime_manifest_hash=self.manifest)

    def afterwards(self, request: Mapping[str, Any]) -> str:
        """What a later request is answered, asked in this process, which is faster."""
        runtime = {**RUNTIME, "manifest_hash": self.manifest}
        settings = {"binders": BINDERS, "manifest": lambda: runtime}
        return Controller(self.folder, settings=settings).ask(request).word

    def calls(self) -> list[list[str]]:
        """Time and process of each call."""
        file = self.folder / "calls"
        return [row.split() for row in file.read_text().splitlines()] if file.exists() else []


def furnished(folder: Path, manifest: str = "") -> House:
    folder.mkdir()
    (folder / "temporary").mkdir(0o700)
    return House(folder, manifest)


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a probe says; the installation stays the same for all tests here."""
    probe = furnished(tmp_path_factory.mktemp("probe") / PLACE).ask(probe_request())
    assert probe.told == ""
    assert probe.result["runtime_manifest"]["manifest_hash"] == probe.result["runtime_manifest_hash"]
    return str(probe.result["runtime_manifest_hash"])


@pytest.fixture
def house(tmp_path: Path, manifest: str) -> House:
    return furnished(tmp_path / PLACE, manifest)


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def until(seconds: float, what: Callable[[], object]) -> None:
    """Wait for something, and fail without it."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def test_probe_sample_sample_finalize(house: House) -> None:
    """R20 R39: four processes, two calls, a pair that the loader takes; no secret in any line."""
    house.program(f"{SOUND}\nsys.stderr.write('{WORDS}')")
    for sample_id in ("s-1", "s-2"):
        assert house.ask(house.sample(sample_id)).result["sample_id"] == sample_id
    done = house.ask(house.finalization())
    assert done.result["calibration_status"] == "fail"
    assert len(house.calls()) == 2
    files = content(house.root / "calibration")
    loaded = load_calibration(
        files["reviewer-calibration.json"],
        files["reviewer-calibration-result.json"],
        inputs=load_inputs(RealFs(), BankName.JUDGED),
    )
    assert loaded.result.runtime_manifest_hash == house.manifest
    assert "CODEX_API_KEY" in loaded.result.provider_environment_keys
    assert wrong_modes(house.root) == []
    assert not any(KEY.encode() in data or WORDS.encode() in data for data in content(house.root).values())
    assert list((house.folder / "temporary").iterdir()) == []


def test_what_is_no_request_gets_one_line(house: House) -> None:
    """R39 F54: an argument, an empty stdin, half a line."""
    process = subprocess.run(
        [sys.executable, "-m", "skill_effectiveness.calibration", "--stream"],
        input=b"",
        capture_output=True,
        cwd=house.folder,
        env={"HOME": str(house.folder)},
        check=False,
    )
    assert Reply.of(process.stdout, process.returncode).word == "protocol_mismatch"
    assert house.ask({}).word == "invalid_request"


def test_two_samples_of_one_root_take_turns(house: House) -> None:
    """R14: both are taken, and their calls do not overlap; a finalization that comes meanwhile waits."""
    house.program(f"{ASKED}time.sleep(0.7)\n{CASES}{ANSWER}\nreply(json.dumps({{'judgments': judged}}))")
    first, second = house.sample("s-1"), house.sample("s-2")
    doors = [house.start(first), house.start(second)]
    until(30, lambda: len(house.calls()) == 2)
    # The first has let go of the lock, so whoever asks now waits for the second alone.
    closing = house.start(house.finalization())
    assert [house.end(door).word for door in doors] == ["ok", "ok"]
    assert house.end(closing).word == "ok"
    times = [float(when) for when, _ in house.calls()]
    assert times[1] - times[0] >= 0.7
    assert house.afterwards(house.sample("s-3")) == "finalize_already_started"
    assert len(house.calls()) == 2


def test_a_program_that_never_reads_is_ended_with_its_tree(house: House) -> None:
    """R26: by the timeout of the request."""
    house.program(
        f"{ASKED}"
        "child = os.fork()\n"
        "if child == 0:\n    os.setsid()\n    time.sleep(600)\n"
        "open(folder + '/tree', 'w').write(f'{os.getpid()} {child}')\n"
        "time.sleep(600)"
    )
    request = house.sample(timeout_seconds=1)
    began = time.monotonic()
    reply = house.ask(request)
    assert time.monotonic() - began < 12
    assert reply.word == "model_call_unresolved"
    pids = [int(pid) for pid in (house.folder / "tree").read_text().split()]
    assert [alive(pid) for pid in pids] == [False, False]
    assert house.afterwards(request) == "artifact_root_quarantined"
    assert len(house.calls()) == 1


def test_what_a_program_leaves_running_is_dead_before_its_answer_counts(house: House) -> None:
    """R27: a session leader and a double fork, after a normal exit."""
    house.program(
        f"{ASKED}{CASES}{ANSWER}"
        "def leave(name, twice):\n"
        "    if os.fork():\n        return\n"
        "    os.setsid()\n"
        "    if twice and os.fork():\n        os._exit(0)\n"
        "    open(folder + '/' + name, 'w').write(str(os.getpid()))\n"
        "    os.closerange(0, 3)\n"
        "    time.sleep(600)\n"
        "leave('leader', False)\nleave('double', True)\n"
        "while not (os.path.exists(folder + '/leader') and os.path.exists(folder + '/double')):\n"
        "    time.sleep(0.01)\n"
        "time.sleep(0.05)\n"
        "reply(json.dumps({'judgments': judged}))"
    )
    assert house.ask(house.sample()).word == "ok"
    for name in ("leader", "double"):
        assert not alive(int((house.folder / name).read_text()))


HANGING = f"{ASKED}open(folder + '/pid', 'w').write(str(os.getpid()))\ntime.sleep(600)"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_the_call(house: House, number: int) -> None:
    """R9 E63: the call ends, and the answer says that it is unresolved."""
    house.program(HANGING)
    request = house.sample()
    door = house.start(request)
    until(30, (house.folder / "pid").exists)
    door.send_signal(number)
    reply = house.end(door)
    assert (reply.word, reply.exit_code) == ("model_call_unresolved", 3)
    assert not alive(int((house.folder / "pid").read_text()))
    assert house.afterwards(request) == "artifact_root_quarantined"
    assert len(house.calls()) == 1


def test_a_kill_during_the_call(house: House) -> None:
    """R9 F10: the program dies with the door, and no request makes a second call."""
    house.program(HANGING)
    request = house.sample()
    door = house.start(request)
    until(30, (house.folder / "pid").exists)
    door.kill()
    assert door.wait() == -signal.SIGKILL
    door.communicate()
    until(10, lambda: not alive(int((house.folder / "pid").read_text())))
    for again in (request, house.sample("s-2"), house.finalization()):
        assert house.afterwards(again) == "artifact_root_quarantined"
    assert len(house.calls()) == 1


# What a program may answer that is no answer. In this process, because the wire adds nothing to it.
ANSWERS = {
    "no verdict": "for each in judged:\n    del each['verdict']\nreply(json.dumps({'judgments': judged}))",
    "one without a verdict": "del judged[3]['verdict']\nreply(json.dumps({'judgments': judged}))",
    "cut off": "reply(json.dumps({'judgments': judged})[:-40])",
    "cut off after a case": "reply(json.dumps({'judgments': judged[:-1]}))",
    "score beside the verdict": ("judged[0].update(score=0.9)\nreply(json.dumps({'judgments': judged}))"),
    "two verdicts for a case": (
        "judged.append({**judged[0], 'verdict': 'A win'})\nreply(json.dumps({'judgments': judged}))"
    ),
    "two members of one name": (
        "text = json.dumps({'judgments': judged})\n"
        'reply(text.replace(\'"verdict": "tie"\', \'"verdict": "tie", "verdict": "A win"\', 1))'
    ),
    "a quotation before it": (
        "quoted = 'The candidate says {\"judgments\": []} and [END DATA] {0.__class__}.\\n'\n"
        "reply(quoted + json.dumps({'judgments': judged}))"
    ),
    "a quotation behind it": "reply(json.dumps({'judgments': judged}) + '\\nVerdict: A win')",
    "a fence": "reply('```json\\n' + json.dumps({'judgments': judged}) + '\\n```')",
    "prose": "reply('A win, clearly.')",
    "nothing": "reply('')",
    "exit 0 and silence": "pass",
    "a tool": (
        "say(thread, turn, {'type': 'item.started', 'item': {'id': 'i', 'type': 'command_execution'}})\n"
        "reply(json.dumps({'judgments': judged}))"
    ),
    "no terminal event": (
        "say(thread, turn, {'type': 'item.completed',"
        " 'item': {'id': 'i', 'type': 'agent_message', 'text': json.dumps({'judgments': judged})}})"
    ),
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_that_is_none(tmp_path: Path, kind: str) -> None:
    """F23 F24 F26 F28 R31: no verdict is made up, nothing of it is stored, and the root is closed."""
    body = f"{ASKED}{CASES}{ANSWER}\n{ANSWERS[kind]}"
    program = write_codex(tmp_path, body, thread=THREAD, turn=TURN, done=DONE)
    controller = Controller(tmp_path, settings={"binders": BINDERS})
    reply = controller.sample(executable=str(program))
    assert (reply.word, reply.exit_code) == ("model_call_unresolved", 3)
    assert {path.name for path in (controller.root / "samples").iterdir()} == {".s-1.intent.json"}
    assert list((controller.root / "observations").iterdir()) == []
    assert controller.sample("s-2", executable=str(program)).word == "artifact_root_quarantined"
    assert len((tmp_path / "calls").read_text().splitlines()) == 1


def test_a_program_that_is_exchanged_under_its_call(tmp_path: Path) -> None:
    """R9: an answer counts only from the program that was bound before."""
    body = f"{SOUND}\nopen(sys.argv[0], 'a').write('#')"
    program = write_codex(tmp_path, body, thread=THREAD, turn=TURN, done=DONE)
    controller = Controller(tmp_path, settings={"binders": BINDERS})
    assert controller.sample(executable=str(program)).word == "model_call_unresolved"


@pytest.mark.parametrize("kind", UNUSABLE)
def test_a_temporary_folder_that_cannot_be_used(tmp_path: Path, kind: str) -> None:
    """R6: people are told which folder, and not that the program is at fault; nothing is reserved."""
    program = write_codex(tmp_path, SOUND, thread=THREAD, turn=TURN, done=DONE)
    controller = Controller(tmp_path, settings={"binders": BINDERS})
    around = temporary_folder(controller.way().around, tmp_path / "tmp", kind)
    request = sample_request(controller.root, executable=str(program))
    reply = controller.ask(request, way=controller.way(around=around))
    assert (reply.exit_code, reply.word) == (3, "provider_identity_unavailable")
    assert "The temporary folder cannot hold" in reply.told
    assert "TMPDIR" in reply.told
    assert "(no_session_folders, " in reply.told
    assert str(tmp_path) not in reply.told
    assert not (controller.root / "sample-ledger").exists()


def test_a_program_that_states_no_version(tmp_path: Path) -> None:
    """R6: nothing is reserved then."""
    program = tmp_path / "codex"
    program.write_text("#!/bin/sh\necho one; echo two\n")
    program.chmod(0o755)
    controller = Controller(tmp_path, settings={"binders": BINDERS})
    assert controller.sample(executable=str(program)).word == "provider_identity_unavailable"
    assert not (controller.root / "sample-ledger").exists()
