"""The files of an open journal and the order in which they are written.

Source: evidence.md, sections 5 and 7. Rows first, pin second: rows are durable before the pin names them, and
nothing is acknowledged before the pin and its copy are durable too. What fails before the pin was exchanged
is taken back; what fails later leaves rows that the pin may or may not name, which only the next open can
tell, so the store is dead then.

The caller holds the journal's lock throughout.
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence import files
from skill_effectiveness.evidence.appender import Appender
from skill_effectiveness.evidence.canonical import digest_bytes, digest_chunks
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import EvidenceError, FileCode, FileError
from skill_effectiveness.evidence.fsops import closing, read_all
from skill_effectiveness.evidence.journal_faults import JournalCode, refusal
from skill_effectiveness.evidence.journal_pin import COPIES, PIN_LIMIT, Position, copy_name
from skill_effectiveness.evidence.journal_rows import LARGEST_GROUP_BYTES, Tear
from skill_effectiveness.evidence.journal_snapshot import segment_chunks
from skill_effectiveness.evidence.names import temporary_of
from skill_effectiveness.evidence.writes import sync_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skill_effectiveness.evidence.journal_chain import Tail
    from skill_effectiveness.evidence.journal_layout import Layout
    from skill_effectiveness.evidence.root import PrivateRoot

_AGAIN: Final = "Open the journal again: that settles what is in it."


class Store:
    """The open files of one journal.

    Args:
        root: the folder with its parts; stays the caller's.
        layout: their names.
        where: how faults name the journal.
    """

    def __init__(self, root: PrivateRoot, layout: Layout, where: str) -> None:
        self._root = root
        self._layout = layout
        self._where = where
        self._copies: PrivateRoot | None = None
        self._copy_name = ""
        self._appender: Appender | None = None
        self.segment = 1
        self._pin_data: bytes | None = None
        self._dead = False

    def close(self) -> None:
        """Close the files; closing again does nothing."""
        if self._appender is not None:
            self._appender.close()
        if self._copies is not None:
            self._copies.close()
        self._dead = True

    # Opening.

    def keep_copies(self, state: PrivateRoot) -> None:
        """Keep a copy of the pin from now on.

        Args:
            state: the root for copies of pins; stays the caller's.

        Raises:
            RootError, FileError: there cannot be one.
        """
        self._copies = state.child(COPIES, create=True)

    def sweep(self) -> None:
        """Remove what a crash in the middle of our own writing left beside the rows.

        Raises:
            RootError, FileError: the folder of torn tails is not private, or something could not be removed.
        """
        _sweep(self._root, self._layout.is_temporary)
        if self._root.exists(self._layout.torn):
            with self._root.child(self._layout.torn) as torn:
                torn.sweep()

    def belongs_to(self, journal_id: str) -> None:
        """Take over the journal's id, and remove what a crash left beside the copy of its pin.

        Raises:
            FileError: something could not be removed.
        """
        self._copy_name = copy_name(journal_id)
        if self._copies is not None:
            _sweep(self._copies, lambda name: temporary_of(name) == self._copy_name)

    def demand_private(self, names: Sequence[str]) -> None:
        """Demand that each of these names is free or a private file of ours.

        Raises:
            FileError: a code of `files.file_fault`, or `file_links`.
        """
        folder = self._root.folder
        for name in names:
            with reported(folder.where(name), reading=True):
                status = folder.status(name)
            if status is not None:
                files.demand_replaceable(folder, name, status)

    def remember(self, pin_data: bytes | None) -> None:
        """Take over what the survey read as the pin."""
        self._pin_data = pin_data

    def set_aside(self, seq: int, tail: Tail) -> Tear:
        """Keep the bytes of a torn tail.

        Args:
            seq: number of the row that would stand there.
            tail: where it is.

        Raises:
            RootError, FileError: they could not be kept; nothing was cut.
        """
        data = self._bytes_of(tail)
        tear = Tear(bytes=len(data), digest=digest_bytes(data), seq=seq)
        with self._root.child(self._layout.torn, create=True) as torn:
            torn.publish(tear.file_name, data)
        return tear

    def _bytes_of(self, tail: Tail) -> bytes:
        folder, name = self._root.folder, self._layout.segment_name(tail.segment)
        where = folder.where(name)
        with closing(folder.fs, files.open_private(folder, name)) as fd, reported(where, reading=True):
            folder.fs.seek(fd, tail.offset)
            return read_all(folder.fs, fd, LARGEST_GROUP_BYTES, where)

    def cut(self, segment: int, size: int) -> None:
        """Cut a file to the end of its rows.

        Raises:
            FileError: that failed.
        """
        appender = Appender.open(self._root.folder, self._layout.segment_name(segment), size)
        try:
            appender.cut()
        finally:
            appender.close()

    def attach(self, segment: int, size: int, *, unended: bool = False) -> None:
        """Make a file the one that rows are added to, and what is in it durable.

        Args:
            segment: its number; it is made, empty, if it is missing.
            size: end of its rows.
            unended: the last of them lacks its LF, which is put there.

        Raises:
            FileError: that failed.
        """
        name = self._layout.segment_name(segment)
        if not self._root.exists(name):
            self._root.publish(name, b"")
        appender = Appender.open(self._root.folder, name, size - unended)
        try:
            if unended:
                appender.append(b"\n")
            else:
                appender.sync()
            with reported(self._root.folder.prefix or "."):
                sync_folder(self._root.folder.fs, self._root.folder.fd)
        except BaseException:
            appender.close()
            raise
        former, self._appender, self.segment = self._appender, appender, segment
        if former is not None:
            former.close()

    # Appending.

    def demand_as_remembered(self, end: Position) -> None:
        """Demand that nobody else wrote since this store did, and that its last write came to its end.

        Args:
            end: of the rows, as the caller knows it.

        Raises:
            JournalError: `journal_dead`, `journal_changed`.
            FileError: rows or pin could not be looked at.
        """
        # A signal may raise between any two steps; what was written then may be more than the caller knows.
        expected = end.offset if end.segment == self.segment else 0
        appender = self._appender
        if self._dead or appender is None or not appender.alive or appender.size != expected:
            sentence = f"{self._where} was closed, or a write failed half-way. {_AGAIN}"
            raise refusal(JournalCode.JOURNAL_DEAD, self._where, sentence)
        if not appender.is_as_remembered() or not self._pin_is(self._pin_data):
            sentence = (
                f"{self._where} or its pin was changed by another program since it was opened. {_AGAIN}"
            )
            raise refusal(JournalCode.JOURNAL_CHANGED, self._where, sentence)

    def _pin_is(self, data: bytes | None) -> bool:
        try:
            return self._root.read(self._layout.pin, PIN_LIMIT) == data
        except FileError as error:
            if error.code is FileCode.MISSING:
                return data is None
            if error.code is FileCode.FILE_SIZE:
                return False
            raise

    def commit(
        self, start: Position, lines: Sequence[bytes], head: str, pin_of: Callable[[Position], bytes]
    ) -> Position:
        """Add rows to the attached file and have the pin name them.

        Args:
            start: the end so far.
            lines: the rows, without LF.
            head: digest of the last of them.
            pin_of: the bytes of the pin for a new end.

        Returns:
            The new end, which is acknowledged.

        Raises:
            FileError, RootError: they are not acknowledged, and unless the store died nothing of them stays.
        """
        appender = self._appender
        if appender is None:
            raise ValueError("no file is attached")
        size, former = appender.size, self._pin_data
        appender.append(b"\n".join((*lines, b"")))
        end = Position(start.count + len(lines), head, self.segment, appender.size)
        try:
            self.put_pin(pin_of(end))
        except BaseException:
            # Rows that the pin on the disk may name already must stay: it may lag, never lead.
            if self._pin_is_surely(former):
                appender.undo(size)
            else:
                self._dead = True
            raise
        return end

    def put_pin(self, data: bytes) -> None:
        """Exchange the pin, then its copy.

        Args:
            data: a pin of this journal.

        Raises:
            JournalError: `pin_full`: what it must hold is more than is read again; nothing was exchanged.
            FileError, RootError: one of them may be the old one still.
        """
        if len(data) > PIN_LIMIT:
            sentence = f"The pin of {self._where} can hold no more tears; keep the journal and begin another."
            raise refusal(JournalCode.PIN_FULL, self._where, sentence)
        self._root.replace(self._layout.pin, data)
        self.put_copy(data)
        self._pin_data = data

    def put_copy(self, data: bytes) -> None:
        """Exchange the copy of the pin.

        Raises:
            FileError, RootError: it may be the old one still.
        """
        if self._copies is not None:
            self._copies.replace(self._copy_name, data)

    def _pin_is_surely(self, data: bytes | None) -> bool:
        try:
            return self._pin_is(data)
        except EvidenceError:
            return False

    def segment_digest(self, segment: int, size: int) -> str:
        """The digest of a closed file.

        Raises:
            FileError: it could not be read.
        """
        return digest_chunks(segment_chunks(self._root.folder, self._layout, segment, size))


def _sweep(root: PrivateRoot, is_ours: Callable[[str], bool]) -> None:
    """Remove temporaries as `writes.sweep` does, but only some: others may be in use at this moment."""
    folder = root.folder
    with reported(folder.prefix or "."):
        for name in filter(is_ours, folder.fs.listdir(folder.fd)):
            status = folder.status(name)
            if status is not None and stat.S_ISREG(status.st_mode) and status.st_uid == folder.fs.user():
                folder.fs.unlink(folder.fd, name)
