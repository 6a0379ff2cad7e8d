"""Appending to a journal against a bare loop of the same system calls (evidence.md, section 13).

One append of one row, with the lock not contended and the copy of the pin kept, changes files in these steps
and no others. The bare loop takes them too, in this order, with bytes of the same sizes that are ready:

| steps | what for |
|---|---|
| open, flock | the lock |
| create, write, close | the note of who holds it |
| write, fsync | the row |
| create, write, fsync, close, rename, fsync of the folder | the pin |
| create, write, fsync, close, rename, fsync of the folder | its copy |
| unlink, close | the note and the lock |

That these are the steps is not believed but recorded from an append before anything is measured. The loop
encodes nothing, checks nothing, chains nothing and reads nothing. So the figure depends on the disk: run it
where evidence is kept (`TMPDIR`). Turns are short, so that some rounds of each are left alone by whatever
else the machine does.
"""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.harness import Figure, ratio, report
from skill_effectiveness.evidence.fsdoubles import RecordingFs
from skill_effectiveness.evidence.journal import Entry, Journal
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.surroundings import Surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator

APPENDS = 5
ROUNDS = 300
GOAL = 1.3
ROW = Entry("attempt_ended", {"slot": 12, "attempt": 1, "class": "completed", "tree": "sha256:" + "5f" * 32})
NOTE = ("create_exclusive", "write")
EXCHANGE = ("create_exclusive", "write", "fsync", "rename", "fsync_dir")
STEPS = [*NOTE, "write", "fsync", *EXCHANGE, *EXCHANGE, "unlink"]


class Written(NamedTuple):
    """The bytes that one append writes."""

    holder: bytes
    row: bytes
    pin: bytes
    copy: bytes


class BareLoop:
    """The steps of an append and nothing else."""

    def __init__(self, folder: Path, written: Written) -> None:
        folder.mkdir()
        self._written = written
        self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        (folder / "journal").mkdir()
        (folder / "pins").mkdir()
        self._journal = os.open(folder / "journal", os.O_RDONLY | os.O_DIRECTORY)
        self._pins = os.open(folder / "pins", os.O_RDONLY | os.O_DIRECTORY)
        self._rows = os.open("000001.jsonl", os.O_RDWR | os.O_CREAT, 0o600, dir_fd=self._journal)
        os.close(os.open(".journal.lock", os.O_RDWR | os.O_CREAT, 0o600, dir_fd=self._folder))

    def __call__(self) -> None:
        for _ in range(APPENDS):
            self._append()

    def _append(self) -> None:
        lock = os.open(".journal.lock", os.O_RDWR, dir_fd=self._folder)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        holder = os.open(
            ".journal.lock.holder", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=self._folder
        )
        os.write(holder, self._written.holder)
        os.close(holder)
        os.write(self._rows, self._written.row)
        os.fsync(self._rows)
        self._exchange(self._journal, "head.json", self._written.pin)
        self._exchange(self._pins, "copy.json", self._written.copy)
        os.unlink(".journal.lock.holder", dir_fd=self._folder)
        os.close(lock)

    @staticmethod
    def _exchange(folder: int, name: str, data: bytes) -> None:
        fd = os.open("temporary", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
        os.write(fd, data)
        os.fsync(fd)
        os.close(fd)
        os.rename("temporary", name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)


@contextmanager
def opened(base: Path, around: Surroundings) -> Iterator[Journal]:
    """A journal whose pins are copied."""
    with (
        PrivateRoot.create(base / "root", RootKind.OUT, around=around, checkout=None) as root,
        PrivateRoot.create(base / "state", RootKind.STATE, around=around, checkout=None) as state,
        Journal.open(root, purpose="benchmark", state=state) as journal,
    ):
        yield journal


def recorded(base: Path, around: Surroundings) -> Written:
    """What one append writes; fails when its steps are not those of the bare loop."""
    fs = RecordingFs(around.fs)
    with opened(base, replace(around, fs=fs)) as journal:
        journal.append([ROW])
        fs.steps.clear()
        journal.append([ROW])
    assert [step.operation for step in fs.steps] == STEPS
    return Written(*(step.data for step in fs.steps if step.operation == "write"))


def main() -> int:
    around = Surroundings.real()
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary).resolve()
        bare = BareLoop(base / "bare", recorded(base / "recorded", around))
        with opened(base / "measured", around) as journal:

            def ours() -> None:
                for _ in range(APPENDS):
                    journal.append([ROW])

            cost = ratio(ours, bare, rounds=ROUNDS)
    return report(Figure("journal_append", cost, GOAL))


if __name__ == "__main__":
    sys.exit(main())
