"""Completing a trial whose audit has 50,000 rows (trials.md, section 14; T21).

The rows are spread over 5,000 files in 50 folders of a checkout that exists; the whole completion is timed,
with every fsync. Memory is the peak of a process that does nothing else, interpreter and package included.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness import Figure, report
from benchmarks.trial_bench import Bench

ROWS = 50_000
SECONDS = 0.5
MEGABYTES = 100.0
ROUNDS = 5


def rows(checkout: Path) -> bytes:
    paths = [f"{checkout}/folder-{number % 50}/file-{number}.py" for number in range(5_000)]
    line = '{{"actor":"tested-agent","operation":"read","path":"{}"}}\n'
    return "".join(line.format(paths[number % len(paths)]) for number in range(ROWS)).encode()


def lay_out(checkout: Path) -> None:
    for number in range(5_000):
        folder = checkout / f"folder-{number % 50}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file-{number}.py").touch()


def measure(base: Path) -> float:
    """The best of some completions, in seconds."""
    checkout = base / "checkout"
    lay_out(checkout)
    best = float("inf")
    with Bench(base, checkout) as bench:
        for sample in range(1, ROUNDS + 1):
            key = bench.prepare(bench.order(sample))
            bench.fill(key, audit=rows(checkout))
            request = bench.completion(key)
            start = time.perf_counter()
            bench.complete(key, request)
            best = min(best, time.perf_counter() - start)
    return best


def main() -> int:
    if sys.argv[1:]:
        seconds = measure(Path(sys.argv[1]))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(seconds, peak)
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        child = [sys.executable, "-m", "benchmarks.trial_audit", str(Path(temporary).resolve())]
        done = subprocess.run(child, check=True, capture_output=True, text=True)  # noqa: S603 - ourselves
    seconds, peak = map(float, done.stdout.split())
    print(f"completion with {ROWS} audit rows: {seconds:.3f} s, peak {peak:.0f} MB")
    return report(
        Figure("audit seconds, of the goal", seconds / SECONDS, 1.0),
        Figure("audit memory, of the goal", peak / MEGABYTES, 1.0),
    )


if __name__ == "__main__":
    sys.exit(main())
