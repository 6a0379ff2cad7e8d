"""Verifying a journal at any place, private or not: in a store, in a bundle, in a folder that is no journal.

The normal way: `verify_segments(fs, path)` for a journal folder, `verify_file(fs, path)` for the single-file
form. Both stream, need little memory whatever lies there, write nothing, take no lock and never raise:
random bytes, a folder, a FIFO or a sparse file of gigabytes each give a report. Source: evidence.md, section
7.
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.errnos import file_error
from skill_effectiveness.evidence.faults import FileCode
from skill_effectiveness.evidence.files import Folder
from skill_effectiveness.evidence.fsops import closing
from skill_effectiveness.evidence.journal_faults import JournalReport, JournalStatus, Unreadable
from skill_effectiveness.evidence.journal_layout import SEGMENTED, Layout
from skill_effectiveness.evidence.journal_rows import ORIGIN
from skill_effectiveness.evidence.journal_survey import survey

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.journal_rows import Row
    from skill_effectiveness.evidence.root import PrivateRoot


def verify_segments(
    fs: FileSystem,
    path: Path,
    *,
    state: PrivateRoot | None = None,
    on_row: Callable[[Row], object] | None = None,
) -> JournalReport:
    """Verify a journal of the segmented form.

    Args:
        fs: file operations.
        path: of its folder, absolute; links on the way are followed, a link in the end is not.
        state: the root with the copies of pins. Without it nothing can tell that journal and pin were both
            replaced by older ones.
        on_row: called with each row up to the first that is wrong; whoever uses what it saw must first look
            at the status.
    """
    try:
        fd = fs.open_dir(None, str(path))
    except (OSError, ValueError) as error:
        return _unreadable(error, path)
    with closing(fs, fd):
        return survey(Folder(fs, fd, "", _no_entropy), SEGMENTED, state, on_row).report


def verify_file(
    fs: FileSystem,
    path: Path,
    *,
    state: PrivateRoot | None = None,
    on_row: Callable[[Row], object] | None = None,
) -> JournalReport:
    """Verify a journal of the single-file form.

    Args:
        fs: file operations.
        path: of the file with the rows, absolute; its pin and its torn tails lie beside it.
        state: as for `verify_segments`.
        on_row: as for `verify_segments`.
    """
    try:
        fd = fs.open_dir(None, str(path.parent))
    except (OSError, ValueError) as error:
        return _unreadable(error, path)
    with closing(fs, fd):
        folder, layout = Folder(fs, fd, "", _no_entropy), Layout.single(path.name)
        try:
            # A pin without a file is a journal too: one that lost its rows, or has none yet.
            status = folder.status(path.name) or fs.lstat(fd, layout.pin)
        except (OSError, ValueError) as error:
            return _unreadable(error, path)
        if not stat.S_ISREG(status.st_mode):
            return _report(Unreadable.WRONG_KIND, f"{path.name!a} is not a file.")
        return survey(folder, layout, state, on_row).report


def _no_entropy(_size: int) -> bytes:
    raise AssertionError("reading makes no temporary names")


_REASONS: Final = {
    FileCode.MISSING: Unreadable.MISSING,
    FileCode.NOT_REGULAR: Unreadable.WRONG_KIND,
    FileCode.FILE_SYMLINK: Unreadable.WRONG_KIND,
}


def _unreadable(error: OSError | ValueError, path: Path) -> JournalReport:
    if isinstance(error, ValueError):
        # A NUL in the path: nothing can have such a name.
        return _report(Unreadable.MISSING, f"{path.name!a} is no name that anything can have.")
    fault = file_error(error, path.name, reading=True).faults[0]
    sentences = {
        Unreadable.MISSING: f"There is no journal {path.name!a}.",
        Unreadable.WRONG_KIND: f"{path.name!a} is not what a journal of this form is.",
        Unreadable.NOT_READABLE: fault.sentence,
    }
    why = next((why for code, why in _REASONS.items() if code is fault.code), Unreadable.NOT_READABLE)
    return _report(why, sentences[why])


def _report(why: Unreadable, sentence: str) -> JournalReport:
    return JournalReport(
        status=JournalStatus.UNREADABLE,
        journal_id=None,
        count=0,
        head=ORIGIN,
        segments=0,
        tears=0,
        unpinned=0,
        torn_bytes=0,
        findings=(),
        warnings=(),
        why=why,
        sentence=sentence,
    )
