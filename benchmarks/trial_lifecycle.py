"""The life of a trial against the same writes and fsyncs bare (trials.md, section 14).

A life is prepare, running, completed and replay, each durable. The bare rival does for every trial exactly
the operations that one recorded life did to the disk: it makes, writes, links, renames, removes and fsyncs
the same names with the same bytes, and parses, checks, locks and hashes nothing. Both go on side by side, so
that a slow spell of the disk hits both; the figures depend on the disk: run it where evidence is kept
(`TMPDIR`).

Trials lie in tasks of 100 samples. Each size is told by the last 200 trials before it, in blocks of ten by
turns, of which the block that was disturbed least counts; `growth` is the time of a trial at 5,000 against
that at 100. What both spent of the processor is told beside it: it hardly depends on what else the machine
does, and tells a slow disk from slow code.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.harness import Figure, report
from benchmarks.trial_bench import Bench
from skill_effectiveness.evidence.fsdoubles import RecordingFs
from skill_effectiveness.evidence.fsops import RealFs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from skill_effectiveness.evidence.fsdoubles import Step

SIZES = (100, 1_000, 5_000)
GOAL = 1.5
GROWTH = 1.3
SAMPLES = 100
BLOCK = 10
WINDOW = 200


class Spent(NamedTuple):
    """Seconds of the clock, and of the processor."""

    clock: float
    processor: float

    @classmethod
    def now(cls) -> Spent:
        """Where both stand."""
        return cls(time.perf_counter(), time.process_time())

    def since(self) -> Spent:
        """What was spent since then."""
        clock, processor = Spent.now()
        return Spent(clock - self.clock, processor - self.processor)


def live(bench: Bench, number: int) -> Spent:
    """One life, without the making of its inputs and evidence, which the rival has no part in."""
    task, sample = f"task-{number // SAMPLES:03d}", number % SAMPLES + 1
    order = bench.order(sample, task)
    start = Spent.now()
    key = bench.prepare(order)
    bench.run(key)
    first = start.since()
    bench.fill(key)
    request = bench.completion(key)
    start = Spent.now()
    bench.complete(key, request)
    bench.replay(key)
    then = start.since()
    return Spent(first.clock + then.clock, first.processor + then.processor)


def recorded(base: Path) -> tuple[str, list[Step]]:
    """The folder of the arm, and the operations of a life in it that is not its first."""
    fs = RecordingFs(RealFs())
    with Bench(base, base / "checkout", fs) as bench:
        live(bench, 0)
        begun = len(fs.steps)
        live(bench, 1)
        arm = str(bench.store.trial_place(next(bench.store.keys())).parent)
        return arm, [step for step in fs.steps[begun:] if arm in step.path]


class Bare:
    """The recorded operations, again and again, each time in a folder of 100."""

    def __init__(self, base: Path, arm: str, steps: list[Step]) -> None:
        self._base = base
        self._steps = [(step.operation, step.path[len(arm) :], step.target, step.data) for step in steps]

    def live(self, number: int) -> Spent:
        folder = f"{self._base}/task-{number // SAMPLES:03d}/arm"
        Path(folder).mkdir(parents=True, exist_ok=True)
        own = f"sample-{number % SAMPLES + 1:03d}"
        start = Spent.now()
        self._operate(folder, own)
        return start.since()

    def _operate(self, folder: str, own: str) -> None:
        file = -1
        for operation, name, target, data in self._steps:
            path = folder + name.replace("sample-002", own)
            match operation:
                case "create_exclusive":
                    if file >= 0:
                        os.close(file)
                    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
                case "write":
                    os.write(file, data)
                case "fsync":
                    os.fsync(file)
                case "fsync_dir":
                    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
                    os.fsync(opened)
                    os.close(opened)
                case _:
                    other = target.rpartition("/")[2].replace("sample-002", own)
                    OF_NAMES[operation](path, f"{path.rpartition('/')[0]}/{other}")
                    if file >= 0:
                        os.close(file)
                        file = -1


# A life ends with names, so no file stays open.
OF_NAMES: dict[str, Callable[[str, str], object]] = {
    "mkdir": lambda path, _: os.mkdir(path, 0o700),  # noqa: PTH102 - bare calls are what is measured
    "link": os.link,
    "rename": os.rename,
    "unlink": lambda path, _: os.unlink(path),  # noqa: PTH108 - likewise
}


def side_by_side(bench: Bench, bare: Bare) -> Iterator[tuple[Spent, Spent]]:
    """What each life and its rival spent, ten and ten by turns."""
    for first in range(0, SIZES[-1], BLOCK):
        numbers = range(first, first + BLOCK)
        ours = [live(bench, number) for number in numbers]
        theirs = [bare.live(number) for number in numbers]
        yield from zip(ours, theirs, strict=True)


def main() -> int:
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary).resolve()
        (base / "checkout").mkdir()
        (base / "recorded").mkdir()
        arm, steps = recorded(base / "recorded")
        fsyncs = sum(step.operation.startswith("fsync") for step in steps)
        print(f"one life: {len(steps)} operations on the disk, {fsyncs} of them fsyncs")
        with Bench(base / "ours", base / "checkout") as bench:
            lives = list(side_by_side(bench, Bare(base / "bare", arm, steps)))
    last = {size: lives[max(size - WINDOW, 0) : size] for size in SIZES}
    ours = {size: best([life[0].clock for life in last[size]]) for size in SIZES}
    theirs = {size: best([life[1].clock for life in last[size]]) for size in SIZES}
    for size in SIZES:
        spent, bare = (best([life[who].processor for life in last[size]]) for who in (0, 1))
        print(
            f"{size:,} trials: {ours[size] * 1000:.2f} ms each, bare {theirs[size] * 1000:.2f} ms; "
            f"of the processor {spent * 1000:.2f} ms, bare {bare * 1000:.2f} ms"
        )
    return report(
        *(Figure(f"trial life, {size:,}", ours[size] / theirs[size], GOAL) for size in SIZES),
        Figure("trial life, growth", ours[SIZES[-1]] / ours[SIZES[0]], GROWTH),
    )


def best(seconds: list[float]) -> float:
    """Seconds of one life in the block that was disturbed least."""
    return min(sum(seconds[first : first + BLOCK]) for first in range(0, len(seconds), BLOCK)) / BLOCK


if __name__ == "__main__":
    sys.exit(main())
