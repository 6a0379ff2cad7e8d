"""Appending to a journal against a bare loop of the same system calls (evidence.md, section 13).

For each row the bare loop makes the writes, renames and fsyncs that one append makes, with bytes that are
ready: take the lock and note its holder, write the row and fsync it, exchange the pin and its copy (write,
fsync, rename, fsync the folder each), drop the holder's note, let go. It encodes nothing, checks nothing and
chains nothing. The figure therefore depends on the disk: run it where evidence is kept (`TMPDIR`).
"""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.harness import Figure, ratio, report
from skill_effectiveness.evidence.journal import Entry, Journal
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.surroundings import Surroundings

APPENDS = 30
GOAL = 1.3
BODY = {"slot": 12, "attempt": 1, "class": "completed", "tree": "sha256:" + "5f" * 32}
ROW = b"x" * 300 + b"\n"
PIN = b"p" * 250 + b"\n"
HOLDER = b"h" * 170 + b"\n"


class BareLoop:
    """The system calls of an append and nothing else."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
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
        self._exchange(self._folder, ".journal.lock.holder", HOLDER, durable=False)
        os.write(self._rows, ROW)
        os.fsync(self._rows)
        self._exchange(self._journal, "head.json", PIN, durable=True)
        self._exchange(self._pins, "copy.json", PIN, durable=True)
        os.unlink(".journal.lock.holder", dir_fd=self._folder)
        os.close(lock)

    @staticmethod
    def _exchange(folder: int, name: str, data: bytes, *, durable: bool) -> None:
        fd = os.open("temporary", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
        os.write(fd, data)
        if durable:
            os.fsync(fd)
        os.close(fd)
        os.rename("temporary", name, src_dir_fd=folder, dst_dir_fd=folder)
        if durable:
            os.fsync(folder)


def main() -> int:
    around = Surroundings.real()
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary).resolve()
        with (
            PrivateRoot.create(base / "root", RootKind.OUT, around=around, checkout=None) as root,
            PrivateRoot.create(base / "state", RootKind.STATE, around=around, checkout=None) as state,
            Journal.open(root, purpose="benchmark", state=state) as journal,
        ):

            def ours() -> None:
                for _ in range(APPENDS):
                    journal.append([Entry("attempt_ended", BODY)])

            cost = ratio(ours, BareLoop(base / "bare"), rounds=40)
    return report(Figure("journal_append", cost, GOAL))


if __name__ == "__main__":
    sys.exit(main())
