"""Requests through one stream against one process per request, and a pair of requests with every fsync.

`--pairs N` runs N pairs of preparation and completed checkpoint (10,000 for B45) and prints the growth of the
door's memory between the first tenth and the end.
"""

from __future__ import annotations

import json
import sys
import time

import psutil

from benchmarks.harness import Figure, report
from skill_effectiveness.trials.models import TrialKey
from tests.support.bridge import Bridge, Stream
from tests.support.crash_images import fast_folder

ALONE = 5
MANY = 300
MILLISECONDS = 8.0
GROWTH_MEGABYTES = 16.0


def main() -> int:
    pairs = int(sys.argv[2]) if sys.argv[1:2] == ["--pairs"] else 100
    # In memory where there is a file system of it: then a pair is our own work, with every fsync asked for.
    with fast_folder() as folder:
        bridge = Bridge(folder)
        missing = bridge.checkpoint(TrialKey("task-a", "profile-full", 9_999), "failed")
        bridge.ask(missing)
        data = json.dumps(missing).encode()
        alone = min(_seconds(lambda: bridge.raw(data)) for _ in range(ALONE))
        with bridge.stream() as stream:
            stream.ask(missing)
            served = (
                min(_seconds(lambda: [_sent(stream, data) for _ in range(MANY)]) for _ in range(3)) / MANY
            )
            each, growth = _pairs(stream, pairs)
    print(f"alone={alone * 1e3:.0f}ms served={served * 1e3:.2f}ms pair={each:.2f}ms growth={growth:.1f}MB")
    return report(
        Figure("bridge_stream_to_single_requests_per_second", alone / served, 50, at_most=False),
        Figure("bridge_pair_milliseconds", each, MILLISECONDS),
        Figure(f"bridge_memory_growth_megabytes_over_{pairs}_pairs", growth, GROWTH_MEGABYTES),
    )


def _pairs(stream: Stream, count: int) -> tuple[float, float]:
    """Milliseconds of the best pair in ten, and megabytes that the door grew by."""
    bridge, process = stream.bridge, psutil.Process(stream.process.pid)
    times, resident = [], [0, 0]
    for number in range(1, count + 1):
        key = TrialKey("task-a", "profile-full", number)
        start = time.perf_counter()
        made = _sent(stream, json.dumps(bridge.prepare(f"p-{number}", sample_index=number)).encode())
        spent = time.perf_counter() - start
        bridge.place.fill(key)
        completion = json.dumps(bridge.completion(key, f"c-{number}")).encode()
        start = time.perf_counter()
        done = _sent(stream, completion)
        times.append(spent + time.perf_counter() - start)
        assert b'"status":"ok"' in made
        assert b'"status":"ok"' in done
        if number in (max(count // 10, 1), count):
            resident.append(process.memory_info().rss)
    best = sorted(times)[len(times) // 10]
    return best * 1e3, (resident[-1] - resident[2]) / 1e6


def _sent(stream: Stream, data: bytes) -> bytes:
    """A line out and a line in, not looked at."""
    assert stream.process.stdin is not None
    assert stream.process.stdout is not None
    stream.process.stdin.write(data + b"\n")
    stream.process.stdin.flush()
    return stream.process.stdout.readline()


def _seconds(call: object) -> float:
    assert callable(call)
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
