"""The pilot gate over 5,000 completed trials: under ten seconds, and linear from 1,250 on.

Every trial is real on disk: seven files, opened once, its completion replayed, its judge payload searched.
Seconds are of the processor, because the gate is one thread and the files are in memory; the peak of resident
memory is that of the process, plan and rows included, over what it was before the first gate.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness import Figure, report
from skill_effectiveness.trials.gate_words import GateStatus
from tests.support.pilots import Pilot, many

FEW, MANY = 1_250, 5_000
SECONDS = 10.0
GROWTH = 1.5
MEGABYTES = 300.0


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="skill-effectiveness-gate-") as folder:
        place = Path(folder).resolve()
        small, large = (_pilot(place / str(count), count) for count in (FEW, MANY))
        few_seconds = min(_seconds(small) for _ in range(3))
        many_seconds = min(_seconds(large) for _ in range(2))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    per_trial = (many_seconds / MANY) / (few_seconds / FEW)
    return report(
        Figure("gate_over_5000_trials_seconds", many_seconds, SECONDS),
        Figure("gate_seconds_per_trial_5000_to_1250", per_trial, GROWTH),
        Figure("gate_over_5000_trials_peak_megabytes", peak, MEGABYTES),
    )


def _pilot(folder: Path, count: int) -> Pilot:
    folder.mkdir(mode=0o700)
    return many(folder, count)


def _seconds(pilot: Pilot) -> float:
    start = time.process_time()
    result = pilot.evaluate().result
    spent = time.process_time() - start
    assert result.status is GateStatus.PASS
    assert result.metrics.trials == len(pilot.rows)
    return spent


if __name__ == "__main__":
    sys.exit(main())
