"""Many requests through one door."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from skill_effectiveness.trials.models import TrialKey
from tests.support.bridge import Bridge, Reply, Stream, copy_checkout
from tests.support.bridge_room import Room
from tests.support.crash_images import fast_folder
from tests.support.private import REPOSITORY

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

pytestmark = pytest.mark.slow


def lines(*requests: object) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in requests)


def replies(done: subprocess.CompletedProcess[bytes]) -> list[Reply]:
    return [Reply.of(line + b"\n", None) for line in done.stdout.splitlines()]


def test_answers_keep_the_order_of_requests(bridge: Bridge) -> None:
    """B41: a bad line in the middle gets its answer, and the stream goes on; exit 0 whatever they were."""
    good = [json.dumps(bridge.prepare(f"r-{number}", sample_index=number)).encode() for number in (1, 2, 3)]
    data = b"\n".join([good[0], b"{", b"", good[1] + b"\r", b" " * 1_048_577, b"[" * 3_000_000, good[2], b""])
    done = bridge.raw(data, "--stream")
    assert done.returncode == 0
    assert [(reply.document["request_id"], reply.word) for reply in replies(done)] == [
        ("r-1", "ok"),
        ("redacted-invalid-request-id", "protocol_mismatch"),
        ("redacted-invalid-request-id", "protocol_mismatch"),
        ("r-2", "ok"),
        ("redacted-invalid-request-id", "protocol_mismatch"),
        ("redacted-invalid-request-id", "protocol_mismatch"),
        ("r-3", "ok"),
    ]
    first = done.stderr.splitlines()[0].split()
    assert first[0] == b"ready"
    assert first[2] == bridge.manifest()["manifest_hash"].encode()


@pytest.mark.parametrize(("data", "exit_code", "words"), [(b"", 2, []), (b"{", 2, ["protocol_mismatch"])])
def test_how_a_stream_ends(bridge: Bridge, data: bytes, exit_code: int, words: list[str]) -> None:
    """B41 F54: before any request, and inside a line."""
    done = bridge.raw(data, "--stream")
    assert done.returncode == exit_code
    assert [reply.word for reply in replies(done)] == words


def test_half_a_line_behind_a_whole_one(bridge: Bridge) -> None:
    """B41: the whole one counts, the half one is refused, exit 2."""
    done = bridge.raw(lines(bridge.prepare()) + json.dumps(bridge.prepare("r-2")).encode(), "--stream")
    assert done.returncode == 2
    assert [reply.word for reply in replies(done)] == ["ok", "protocol_mismatch"]


def test_drift_in_the_middle(tmp_path: Path) -> None:
    """B41: for this request and every later one, also when the file is put back."""
    checkout = copy_checkout(tmp_path / "copy" / "checkout")
    (tmp_path / "place").mkdir()
    bridge = Bridge(tmp_path / "place", checkout)
    gates = checkout / "fixtures" / "pilot-gates.json"
    kept = gates.read_bytes()
    with bridge.stream() as stream:
        assert stream.ask(bridge.prepare("r-1")).word == "ok"
        os.utime(gates)
        assert stream.ask(bridge.prepare("r-2")).word == "ok"
        gates.write_bytes(kept + b" ")
        assert stream.ask(bridge.prepare("r-3")).word == "unsupported_evaluator"
        gates.write_bytes(kept)
        assert stream.ask(bridge.prepare("r-4")).word == "unsupported_evaluator"
    assert stream.process.returncode == 0


def test_the_artifact_root_is_that_of_the_request_in_hand(bridge: Bridge, tmp_path: Path) -> None:
    """B41 B16: one stream serves several roots, one after the other."""
    other = Bridge(tmp_path / "other")
    with bridge.stream() as stream:
        for number in (1, 2):
            assert stream.ask(bridge.prepare(f"a{number}", sample_index=number)).word == "ok"
            assert stream.ask(other.prepare(f"b{number}", sample_index=number)).word == "ok"


def test_stream_and_single_share_receipts(bridge: Bridge) -> None:
    """B42: whoever asks second gets the first one's answer."""
    with bridge.stream() as stream:
        first = stream.ask(bridge.prepare("r-1"))
    again = bridge.ask(bridge.prepare("r-1"))
    assert (first.replayed, again.replayed) == (False, True)
    assert again.answered == first.answered
    alone = bridge.ask(bridge.prepare("r-2"))
    with bridge.stream() as stream:
        assert stream.ask(bridge.prepare("r-2")).replayed
    assert not alone.replayed


def test_a_reader_that_stops_stalls_the_door(bridge: Bridge) -> None:
    """B41: nothing is read ahead without bound, and memory does not grow."""
    probe = lines(bridge.request("probe", {"phase": "manifest"}))
    door = bridge.start("--stream")
    assert door.stdin is not None
    os.set_blocking(door.stdin.fileno(), False)
    sent, idle = 0, 0
    resident = 0
    while idle < 20:
        try:
            sent += os.write(door.stdin.fileno(), probe)
            idle = 0
        except BlockingIOError:
            idle += 1
            time.sleep(0.1)
        resident = max(resident, psutil.Process(door.pid).memory_info().rss)
    assert sent < 1_000_000
    assert resident < 200_000_000
    door.kill()
    door.communicate()


def test_a_closed_reader_ends_a_stream(bridge: Bridge) -> None:
    """B41 B40: exit 4; what was done has its receipt."""
    reading, writing = os.pipe()
    door = bridge.start("--stream", stdout=writing)
    os.close(writing)
    os.close(reading)
    _, err = door.communicate(lines(bridge.prepare("r-1")), timeout=60)
    assert door.returncode == 4
    assert b"Traceback" not in err
    assert Room().ask(bridge.prepare("r-1"))[0] == "stale_state"
    assert bridge.ask(bridge.prepare("r-1")).replayed


def test_a_signal_ends_a_stream_behind_the_request_in_hand(bridge: Bridge) -> None:
    """B41 B39: 128+n, and whatever was answered is whole."""
    door = bridge.start("--stream")
    assert door.stdin is not None
    assert door.stdout is not None
    door.stdin.write(lines(bridge.prepare("r-1")))
    door.stdin.flush()
    assert Reply.of(door.stdout.readline(), None).word == "ok"
    door.send_signal(signal.SIGINT)
    out, _ = door.communicate(timeout=60)
    assert (door.returncode, out) == (128 + signal.SIGINT, b"")


def test_memory_stays_flat(bridge: Bridge) -> None:
    """B41: over ten thousand requests, half of them none."""
    missing = TrialKey("task-a", "profile-full", 7)
    requests = lines(bridge.checkpoint(missing, "failed"), {"no": "request"})
    with bridge.stream() as stream:
        assert stream.process.stdin is not None
        assert stream.process.stdout is not None
        process = psutil.Process(stream.process.pid)
        resident = []
        for times in (500, 4_500):
            for _ in range(times):
                stream.process.stdin.write(requests)
                stream.process.stdin.flush()
                assert b"artifact_missing" in stream.process.stdout.readline()
                assert b"protocol_mismatch" in stream.process.stdout.readline()
            resident.append(process.memory_info().rss)
    assert resident[1] - resident[0] < 4_000_000


PAIRS = 1_000
AT_ONCE = 20
"""Requests that fit the pipes at once, so that a busy machine need not turn to the door for each."""


def sent(stream: Stream, requests: list[dict[str, Any]]) -> None:
    """Requests in one piece; their answers are held to be answers, and no more."""
    assert stream.process.stdin is not None
    assert stream.process.stdout is not None
    stream.process.stdin.write(lines(*requests))
    stream.process.stdin.flush()
    for _ in requests:
        assert b'"status":"ok"' in stream.process.stdout.readline()


def test_memory_over_many_pairs() -> None:
    """B45: of preparation and completion; ten thousand of them are `bridge_stream --pairs 10000`."""
    with fast_folder() as folder:
        bridge = Bridge(folder)
        with bridge.stream() as stream:
            process = psutil.Process(stream.process.pid)
            resident = {}
            for first in range(1, PAIRS, AT_ONCE):
                numbers = range(first, first + AT_ONCE)
                sent(stream, [bridge.prepare(f"p-{number}", sample_index=number) for number in numbers])
                keys = [TrialKey("task-a", "profile-full", number) for number in numbers]
                for key in keys:
                    bridge.place.fill(key)
                sent(stream, [bridge.completion(key, f"c-{key.sample_index}") for key in keys])
                resident[numbers[-1]] = process.memory_info().rss
    assert resident[PAIRS] - resident[PAIRS // 10] < 4_000_000


def test_the_figures_are_printed_by_their_benchmarks() -> None:
    """B45: each of section 8 of the contract has its line there."""
    folder = REPOSITORY / "benchmarks"
    printed = "".join(
        (folder / f"{name}.py").read_text() for name in ("bridge_probe", "bridge_stream", "bridge_evaluate")
    )
    for figure in (
        "bridge_manifest_probe",
        "bridge_full_probe_warm",
        "bridge_stream_to_single_requests_per_second",
        "bridge_pair_milliseconds",
        "bridge_memory_growth_megabytes_over_",
        "bridge_evaluate",
    ):
        assert f'Figure("{figure}' in printed or f'Figure(f"{figure}' in printed, figure
