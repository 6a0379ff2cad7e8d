"""The smoke run of the committed fixture, in a process that has done it before: 18 trials in half a second.

Twice: in a folder that has the trials already, which replays them, and in a new one, which prepares,
checkpoints and completes every trial with every fsync.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness import Figure, report
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.protocol.gates import load_gates
from skill_effectiveness.protocol.smoke_fixture import load_smoke_fixture
from skill_effectiveness.trials.smoke import run_smoke

SECONDS = 0.5
ROUNDS = 5


def main() -> int:
    around = Surroundings.real()
    fixture, gates = load_smoke_fixture(around.fs), load_gates(around.fs)

    def seconds(place: Path) -> float:
        start = time.perf_counter()
        with PrivateRoot.create(place, RootKind.OUT, around=around, checkout=None) as out:
            assert run_smoke(fixture, out, gates=gates).is_contract_complete
        return time.perf_counter() - start

    with tempfile.TemporaryDirectory(prefix="skill-effectiveness-smoke-") as folder:
        place = Path(folder).resolve() / "out"
        print(f"smoke_first_run_seconds {seconds(place):.3f}")
        warm = min(seconds(place) for _ in range(ROUNDS))
        fresh = min(seconds(Path(folder).resolve() / f"again-{number}") for number in range(ROUNDS))
    return report(
        Figure("smoke_warm_seconds", warm, SECONDS), Figure("smoke_fresh_folder_seconds", fresh, SECONDS)
    )


if __name__ == "__main__":
    sys.exit(main())
