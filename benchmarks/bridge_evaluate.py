"""Evaluation by reference: 5,000 completed trials in a process of its own, and linear from 1,250 on."""

from __future__ import annotations

import json
import resource
import sys
from typing import TYPE_CHECKING

from benchmarks.harness import Figure, report
from skill_effectiveness.evidence.canonical import digest_bytes
from tests.support.bridge import Bridge
from tests.support.bridge_pilots import gates
from tests.support.crash_images import fast_folder
from tests.support.pilots import many
from tests.support.trials import PROFILE, put

if TYPE_CHECKING:
    from pathlib import Path

FEW, MANY = 1_250, 5_000


def main() -> int:
    with fast_folder() as folder:
        few, _ = _evaluated(folder / "few", FEW)
        spent, _ = _evaluated(folder / "many", MANY)
    # Of the largest child there was, which is the door over the larger pilot.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return report(
        Figure("bridge_evaluate_5000_trials_seconds", spent, 10),
        Figure("bridge_evaluate_seconds_per_trial_5000_to_1250", (spent / MANY) / (few / FEW), 1.5),
        Figure("bridge_evaluate_5000_trials_peak_megabytes", peak, 300),
    )


def _processor_seconds() -> float:
    """Of all doors so far: each is one thread, and its files are in memory."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _evaluated(folder: Path, count: int) -> tuple[float, object]:
    """Processor seconds of the whole process, start included, and the verdict."""
    folder.mkdir(mode=0o700)
    pilot = many(folder, count)
    bridge = Bridge(folder)
    pilot.bundle.rename(bridge.root / "bundle")
    payload: dict[str, object] = {
        "registry_schema": "paired-profile",
        "evidence_path": "bundle",
        "config": gates(PROFILE),
        "expected_tasks": list(pilot.expected.tasks),
        "expected_manifests": list(pilot.expected.manifests),
    }
    rows = b"".join(json.dumps(row).encode() + b"\n" for row in pilot.rows)
    put(bridge.root / "rows.jsonl", rows)
    payload |= {"expected_trials_path": "rows.jsonl", "expected_trials_sha256": digest_bytes(rows)}
    request = bridge.request("evaluate", payload, f"e-{count}")
    before = _processor_seconds()
    reply = bridge.ask(request)
    spent = _processor_seconds() - before
    assert reply.result["verdict"]["status"] == "pass"
    return spent, reply.result["verdict"]


if __name__ == "__main__":
    sys.exit(main())
