"""Receipts, replay, settling, and what a crash or a full disk leaves."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.signals import Cutoff, Terminated
from skill_effectiveness.trials.models import TrialKey
from tests.support.bridge import Bridge, Reply
from tests.support.bridge_room import OTHER_BINDING, Room
from tests.support.private import wrong_modes
from tests.support.trials import cursor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow


KEY = TrialKey("task-a", "profile-full", 1)


def receipts(bridge: Bridge) -> Path:
    return bridge.root / "bridge-receipts"


def begun(bridge: Bridge) -> Bridge:
    """A place with a prepared trial."""
    assert Room().ask(bridge.prepare("p"))[0] == "ok"
    return bridge


def running(bridge: Bridge, request_id: str = "c") -> dict[str, Any]:
    return bridge.checkpoint(KEY, "running", request_id, resume_cursor=cursor())


# Replay.


def test_a_replay_equals_but_for_its_flag(bridge: Bridge) -> None:
    """B32: the receipt holds the request's hash, the runtime and the result, and is canonical."""
    begun(bridge)
    word, first = Room().ask(running(bridge))
    assert (word, first["replayed_receipt"]) == ("ok", False)
    word, second = Room().ask(running(bridge))
    assert (word, second) == ("ok", {**first, "replayed_receipt": True})
    data = (receipts(bridge) / "c.json").read_bytes()
    receipt = json.loads(data)
    assert set(receipt) == {
        "schema_version",
        "artifact_contract",
        "request_id",
        "request_hash",
        "runtime_binding",
        "result",
    }
    assert receipt["artifact_contract"] == "skill-effectiveness-bridge-receipt-v1"
    assert data == json.dumps(receipt, sort_keys=True, separators=(",", ":")).encode()
    assert bridge.place.document(KEY)["state_version"] == 1
    assert list((receipts(bridge) / "intents").iterdir()) == []
    assert wrong_modes(bridge.root) == []


def test_another_request_under_a_known_id(bridge: Bridge) -> None:
    """B22 B32: it is stale, and the first receipt stays."""
    begun(bridge)
    Room().ask(running(bridge))
    kept = (receipts(bridge) / "c.json").read_bytes()
    other = bridge.checkpoint(KEY, "failed", "c")
    assert Room().ask(other)[0] == "stale_state"
    assert (receipts(bridge) / "c.json").read_bytes() == kept


def test_another_runtime_under_a_known_id(bridge: Bridge) -> None:
    """B32: the same request of another installation is stale."""
    begun(bridge)
    Room().ask(running(bridge))
    assert Room(binding=OTHER_BINDING).ask(running(bridge))[0] == "stale_state"


def test_a_refusal_is_not_recorded(bridge: Bridge) -> None:
    """B32: the same id may be sent again once the cause is gone."""
    assert Room().ask(running(bridge))[0] == "artifact_missing"
    begun(bridge)
    assert Room().ask(running(bridge))[0] == "ok"


@pytest.mark.parametrize("request_id", [".", "..", "." * 128, ".lock", "intents", "a.json"])
def test_odd_request_ids(bridge: Bridge, request_id: str) -> None:
    """B32: every id of the form is legal, and stored by name inside the folder."""
    assert Room().ask(bridge.prepare(request_id))[0] == "ok"
    assert (receipts(bridge) / f"{request_id}.json").is_file()
    assert Room().ask(bridge.prepare(request_id))[1]["replayed_receipt"] is True


def test_ids_that_differ_in_case(bridge: Bridge) -> None:
    """B47: never a foreign result; on a file system that tells them apart as well as on one that does not."""
    assert Room().ask(bridge.prepare("Abc"))[0] == "ok"
    assert Room().ask(bridge.prepare("aBC"))[0] == "stale_state"
    (receipts(bridge) / "Abc.json").rename(receipts(bridge) / "aBC.json")
    assert Room().ask(bridge.prepare("aBC"))[0] == "stale_state"


# Many at once.


@pytest.mark.parametrize("times", [6, 16])
def test_identical_requests_at_once(bridge: Bridge, times: int) -> None:
    """B33: one is carried out, the others are its replay."""
    data = json.dumps(bridge.prepare("same")).encode()
    doors = [bridge.start() for _ in range(times)]
    for door in doors:
        assert door.stdin is not None
        door.stdin.write(data)
        door.stdin.close()
        door.stdin = None
    replies = []
    for door in doors:
        out, err = door.communicate(timeout=120)
        replies.append(Reply.of(out, door.returncode, err.decode()))
    assert sorted(reply.replayed for reply in replies) == [False] + [True] * (times - 1)
    assert all(reply.answered == replies[0].answered for reply in replies)


def test_a_lock_that_is_held(bridge: Bridge) -> None:
    """B38: the wait is bounded, and nothing changed."""
    begun(bridge)
    holder = held_lock(bridge)
    try:
        started = time.monotonic()
        assert Room(lock_wait=0.3).ask(running(bridge))[0] == "timeout"
        assert time.monotonic() - started < 20
    finally:
        holder.kill()
        holder.communicate()
    assert bridge.place.document(KEY)["state_version"] == 0
    assert Room().ask(running(bridge))[0] == "ok"


# Unsafe folders and files.


@pytest.mark.parametrize("what", ["bridge-receipts", "bridge-receipts/intents", "bridge-receipts/.lock"])
def test_links_are_not_written_through(bridge: Bridge, tmp_path: Path, what: str) -> None:
    """B37: `artifact_mismatch`, exit 4, and nothing appears behind the link."""
    begun(bridge)
    place = bridge.root / what
    aside = tmp_path / "aside"
    place.rename(aside)
    place.symlink_to(aside)
    before = sorted((path.name, path.lstat().st_mtime_ns) for path in tmp_path.rglob("aside/*"))
    reply = bridge.ask(running(bridge))
    assert (reply.word, reply.exit_code) == ("artifact_mismatch", 4)
    assert sorted((path.name, path.lstat().st_mtime_ns) for path in tmp_path.rglob("aside/*")) == before
    assert bridge.place.document(KEY)["state_version"] == 0


def test_a_linked_receipt(bridge: Bridge, tmp_path: Path) -> None:
    """B37: a symbolic or second hard link is refused."""
    begun(bridge)
    receipt = receipts(bridge) / "p.json"
    os.link(receipt, tmp_path / "second")
    assert Room().ask(bridge.prepare("p"))[0] == "artifact_mismatch"
    receipt.unlink()
    receipt.symlink_to(tmp_path / "second")
    assert Room().ask(bridge.prepare("p"))[0] == "artifact_mismatch"


def test_our_own_temporary_beside_a_receipt(bridge: Bridge) -> None:
    """B37: what a crash in the middle of a publication leaves is no second link."""
    begun(bridge)
    os.link(receipts(bridge) / "p.json", receipts(bridge) / ".p.json.0123456789abcdef.tmp")
    assert Room().ask(bridge.prepare("p"))[1]["replayed_receipt"] is True


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"{", b"\xff", b'{"schema_version":1}'])
def test_a_foreign_receipt_or_intent(bridge: Bridge, data: bytes) -> None:
    """B37: `artifact_mismatch`."""
    begun(bridge)
    for place in (receipts(bridge) / "c.json", receipts(bridge) / "intents" / "x.json"):
        fd = os.open(place, os.O_CREAT | os.O_WRONLY, 0o600)
        os.write(fd, data)
        os.close(fd)
        assert Room().ask(running(bridge))[0] == "artifact_mismatch"
        place.unlink()
    assert Room().ask(running(bridge))[0] == "ok"


# Kill.

PROTOCOLS: dict[str, Callable[[Bridge], dict[str, Any]]] = {
    "prepare": lambda bridge: bridge.prepare("k", sample_index=2),
    "checkpoint": lambda bridge: running(bridge, "k"),
}


def test_killed_for_real(bridge: Bridge) -> None:
    """B34: by SIGKILL, at moments of its own."""
    begun(bridge)
    for number, delay in enumerate((0.05, 0.2, 0.3, 0.4, 0.5)):
        request = bridge.prepare(f"k{number}", sample_index=10 + number)
        door = bridge.start()
        assert door.stdin is not None
        door.stdin.write(json.dumps(request).encode())
        door.stdin.close()
        door.stdin = None
        time.sleep(delay)
        door.kill()
        door.communicate()
        word, result = Room().ask(request)
        # A receipt of the killed door, if there is one, names the real installation.
        assert word == "ok" or (word, result) == ("stale_state", {})
        assert bridge.place.document(TrialKey("task-a", "profile-full", 10 + number))["state_version"] == 0


def test_a_trial_that_somebody_else_moved(bridge: Bridge) -> None:
    """B34: an intent whose state is neither before nor after is kept as evidence; its id stays unknown."""
    begun(bridge)
    request = running(bridge, "k")
    intents = receipts(bridge) / "intents"
    full = Injection("rename", errno.ENOSPC, about=lambda path: "trial.json" in path)
    assert Room(fs=FaultFs(RealFs(), full)).ask(request)[0] == "unknown_finality"
    assert (intents / "k.json").is_file()
    bridge.place.edit(KEY, stop_reason="edited")
    assert Room().ask(bridge.prepare("other", sample_index=3))[0] == "ok"
    assert [path.name for path in intents.iterdir()] == ["unsettled"]
    assert (intents / "unsettled" / "k.json").is_file()
    assert Room().ask(request)[0] == "unknown_finality"
    assert Room().ask(running(bridge, "k2"))[0] == "ok"
    assert Room().ask(request)[0] == "unknown_finality"


# A disk that refuses.


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_disk_that_refuses_at_every_step(tmp_path: Path, protocol: str, number: int) -> None:
    """B36: `unknown_finality`; the same request settles it once there is room."""
    refused = 0
    for operation in ("write", "fsync", "fsync_dir", "create_exclusive", "link", "rename", "mkdir", "unlink"):
        for nth in range(1, 30):
            folder = tmp_path / f"{operation}-{nth}"
            folder.mkdir()
            bridge = begun(Bridge(folder))
            request = PROTOCOLS[protocol](bridge)
            fault = Injection(operation, number, nth)
            word, first = Room(fs=FaultFs(RealFs(), fault)).ask(request)
            assert word in {"unknown_finality", "ok"}, (operation, nth, word)
            refused += word != "ok"
            again, second = Room().ask(request)
            assert again == "ok", (operation, nth)
            if word == "ok":
                assert second == {**first, "replayed_receipt": True}
            if not fault.hits:
                break
    assert refused > 10


# Signals and a reader that is gone.


def test_a_signal_while_the_request_is_read(bridge: Bridge) -> None:
    """B39: `cancelled`, and nothing changed."""
    door = bridge.start("--stream")
    assert door.stderr is not None
    assert door.stderr.readline().startswith(b"ready ")
    door.send_signal(signal.SIGTERM)
    out, _ = door.communicate(timeout=60)
    assert (door.returncode, out) == (128 + signal.SIGTERM, b"")


def held_lock(bridge: Bridge) -> subprocess.Popen[bytes]:
    """Somebody who holds the lock of the root."""
    code = (
        "import fcntl, sys, time\n"
        "file = open(sys.argv[1], 'r+')\n"
        "fcntl.flock(file, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\n"
        "time.sleep(60)\n"
    )
    holder = subprocess.Popen(  # noqa: S603 - our own code
        [sys.executable, "-c", code, receipts(bridge) / ".lock"], stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    return holder


def test_a_signal_before_the_change(bridge: Bridge) -> None:
    """B39 B23: while the lock is waited for; `cancelled`, and nothing changed."""
    begun(bridge)
    holder = held_lock(bridge)
    try:
        door = bridge.start()
        assert door.stdin is not None
        door.stdin.write(json.dumps(running(bridge)).encode())
        door.stdin.close()
        door.stdin = None
        time.sleep(4)
        door.send_signal(signal.SIGTERM)
        out, err = door.communicate(timeout=60)
    finally:
        holder.kill()
        holder.communicate()
    reply = Reply.of(out, door.returncode, err.decode())
    assert (reply.word, reply.exit_code) == ("cancelled", 3)
    assert list((receipts(bridge) / "intents").iterdir()) == []
    assert bridge.place.document(KEY)["state_version"] == 0
    assert Room().ask(running(bridge))[0] == "ok"


def test_a_signal_from_the_change_on(bridge: Bridge) -> None:
    """B39: it is only remembered; the steps finish and the answer is given."""
    begun(bridge)
    interruptions = Cutoff()
    seen = []

    def defer() -> None:
        seen.append(list((receipts(bridge) / "intents").iterdir()))
        interruptions.defer()
        os.kill(os.getpid(), signal.SIGTERM)

    with interruptions.heard():
        assert Room(defer=defer).ask(running(bridge))[0] == "ok"
    assert interruptions.number == signal.SIGTERM
    assert seen == [[]]
    assert bridge.place.document(KEY)["state_version"] == 1
    with pytest.raises(Terminated):
        interruptions.hear()


def test_a_reader_that_is_gone(bridge: Bridge) -> None:
    """B40: exit 4; effect and receipt stay, and the replay works."""
    request = bridge.prepare("gone")
    reading, writing = os.pipe()
    door = bridge.start(stdout=writing)
    os.close(writing)
    os.close(reading)
    _, err = door.communicate(json.dumps(request).encode(), timeout=60)
    assert door.returncode == 4
    assert b"Traceback" not in err
    reply = bridge.ask(request)
    assert reply.replayed
    assert reply.result["mode"] == "created"
