"""Verifying a journal of 1,000,000 rows against a bare loop, and its memory (evidence.md, section 13).

The bare loop parses each row (`json.loads`), encodes it again (`json.dumps(sort_keys=True)`) and hashes it;
it holds nothing against anything. Time is measured in turns in this process, memory in a child that does
nothing but verify; that figure is its peak divided by 200 MB.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.harness import Figure, ratio, report
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.journal import Entry, Journal
from skill_effectiveness.evidence.journal_faults import JournalStatus
from skill_effectiveness.evidence.journal_verify import verify_segments
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.surroundings import Surroundings

ROWS = 1_000_000
GROUP = 1_000
GOAL = 1.5
MEGABYTE = 1_000_000
GOAL_MEGABYTES = 200

# What a child runs: only it tells how much memory verification takes by itself.
MEASURE = """
import sys
from pathlib import Path
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.journal_verify import verify_segments
report = verify_segments(RealFs(), Path(sys.argv[1]))
# Not ru_maxrss, which begins with what the parent had when it forked.
lines = Path("/proc/self/status").read_text().splitlines()
(peak,) = [line.split()[1] for line in lines if line.startswith("VmHWM")]
print(report.status, int(peak) * 1024)
"""


def entry(number: int) -> Entry:
    body = {
        "slot": number,
        "attempt": 1,
        "class": "completed",
        "detail": "the task was finished within its budget",
        "tree": f"sha256:{number:064x}",
        "usage": {"input_tokens": 12_345, "output_tokens": number % 4_096},
    }
    return Entry("attempt_ended", body)


def build(folder: Path) -> Path:
    """A journal of the wanted number of rows."""
    around = Surroundings.real()
    with (
        PrivateRoot.create(folder / "root", RootKind.OUT, around=around, checkout=None) as root,
        Journal.open(root, purpose="benchmark", state=None, group_max=GROUP) as journal,
    ):
        while journal.count < ROWS:
            journal.append([entry(journal.count + n) for n in range(min(GROUP, ROWS - journal.count))])
    return folder / "root" / "journal"


def verify(journal: Path) -> None:
    found = verify_segments(RealFs(), journal)
    assert found.status is JournalStatus.INTACT
    assert found.count >= ROWS


def bare(journal: Path) -> None:
    rows = 0
    for segment in sorted(journal.glob("*.jsonl")):
        with segment.open("rb") as file:
            for line in file:
                row = line[:-1]
                json.dumps(json.loads(row), sort_keys=True)
                hashlib.sha256(row).hexdigest()
                rows += 1
    assert rows >= ROWS


def peak_bytes(journal: Path) -> int:
    """The most memory that a process needed which verifies and nothing else."""
    command = [sys.executable, "-c", MEASURE, str(journal)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - our own interpreter
    status, size = done.stdout.split()
    assert status == JournalStatus.INTACT
    return int(size)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        journal = build(Path(folder).resolve())
        cost = ratio(partial(verify, journal), partial(bare, journal), rounds=2)
        peak = peak_bytes(journal) / MEGABYTE
    print(f"journal_verify/memory peak={peak:.0f} MB")
    return report(
        Figure("journal_verify/time", cost, GOAL),
        Figure("journal_verify/memory", peak / GOAL_MEGABYTES, 1.0),
    )


if __name__ == "__main__":
    sys.exit(main())
