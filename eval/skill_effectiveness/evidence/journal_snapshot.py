"""What lies in the folder of a journal at one moment.

Verification takes no lock, because it writes nothing. A living writer adds rows first and exchanges the pin
and its copy afterwards, so these are read before the sizes of the files are noted, and rows are read up to
these sizes only: then no pin can lead. And so that it does not lag by more than a crash explains, all is
looked at again while the pin keeps changing.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.chunks import file_chunks, regular_file
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.fsops import closing, read_all
from skill_effectiveness.evidence.journal_pin import PIN_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from skill_effectiveness.evidence.files import Folder
    from skill_effectiveness.evidence.journal_layout import Layout

_TRIES: Final = 20


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The parts of a journal.

    Attributes:
        pin: bytes of the pin; `None` when there is none or it cannot be read.
        pin_fault: why it cannot be read, for people.
        sizes: number of each file with rows to its size in bytes.
        torn: names in the folder of torn tails.
        foreign: names that nothing of ours can have, or that are not of the kind they must be.
    """

    pin: bytes | None
    pin_fault: str | None
    sizes: dict[int, int]
    torn: tuple[str, ...]
    foreign: tuple[str, ...]

    @property
    def has_pin(self) -> bool:
        """Whether anything has the name of the pin."""
        return self.pin is not None or self.pin_fault is not None


def take_snapshot(
    folder: Folder, layout: Layout, on_pin: Callable[[bytes | None, str | None], object]
) -> Snapshot:
    """Look at the parts of a journal.

    Args:
        folder: where they lie.
        layout: their names.
        on_pin: called with the bytes of the pin, or why there are none, before anything else is looked at;
            called again if that must be repeated.

    Raises:
        FileError: the folder cannot be listed, or a status not be had.
    """
    with reported(folder.prefix or ".", reading=True):
        for _ in range(_TRIES):
            pin, fault = _pin(folder, layout)
            on_pin(pin, fault)
            sizes, torn, foreign = _parts(folder, layout)
            if _pin(folder, layout)[0] == pin:
                break
        return Snapshot(pin, fault, sizes, torn, foreign)


def segment_chunks(folder: Folder, layout: Layout, number: int, size: int) -> Iterator[bytes]:
    """The first bytes of a file with rows.

    Args:
        folder: the folder of the journal.
        layout: its names.
        number: of the file, from 1.
        size: how many bytes; fewer when the file is shorter.

    Raises:
        FileError: as `chunks.file_chunks`.
    """
    name = layout.segment_name(number)
    for chunk in file_chunks(folder.fs, folder.fd, name, folder.where(name)):
        yield chunk[:size]
        size -= len(chunk)
        if size <= 0:
            return


def _pin(folder: Folder, layout: Layout) -> tuple[bytes | None, str | None]:
    """The bytes of the pin, or why there are none; neither when nothing has its name."""
    where = folder.where(layout.pin)
    try:
        with regular_file(folder.fs, folder.fd, layout.pin, where) as fd:
            return read_all(folder.fs, fd, PIN_LIMIT, where), None
    except FileError as error:
        return None, None if error.code is FileCode.MISSING else error.faults[0].sentence


def _parts(folder: Folder, layout: Layout) -> tuple[dict[int, int], tuple[str, ...], tuple[str, ...]]:
    """Sizes of the files with rows, torn tails, foreign names."""
    sizes: dict[int, int] = {}
    torn: tuple[str, ...] = ()
    # In a folder that is shared with other things, only our own names are looked at.
    names = [layout.file, layout.torn] if layout.file else sorted(folder.fs.listdir(folder.fd))
    foreign: list[str] = []
    for name in names:
        status = folder.status(name)
        if status is None:
            continue
        number = layout.segment_number(name)
        if number is not None and stat.S_ISREG(status.st_mode):
            sizes[number] = status.st_size
        elif name == layout.torn and stat.S_ISDIR(status.st_mode):
            torn = _torn_names(folder, name)
        elif number is not None or name == layout.torn or layout.is_foreign(name):
            foreign.append(name)
    return sizes, torn, tuple(foreign)


def _torn_names(folder: Folder, name: str) -> tuple[str, ...]:
    with closing(folder.fs, folder.fs.open_dir(folder.fd, name)) as fd:
        return tuple(sorted(folder.fs.listdir(fd)))
