"""Publishing into a folder in which no temporary may ever be seen.

Source: closeout.md, section 7, "Layout": its readers take every file of a folder for a record, so a file is
written in a folder beside it and linked over when it is complete.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from skill_effectiveness.evidence import writes
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import Fault, FileCode, FileError
from skill_effectiveness.evidence.names import check_written_name

if TYPE_CHECKING:
    from skill_effectiveness.evidence.root import PrivateRoot


def publish_staged(staging: PrivateRoot, target: PrivateRoot, name: str, data: bytes) -> None:
    """Give a free name in `target` its content at once, by way of `staging` on the same file system.

    A kill at any step leaves the name with the whole content or free, and at most a temporary in `staging`,
    which `staging.sweep()` removes under the lock of whoever owns both.

    Raises:
        FileError: `exists_different`: the name is taken, whatever it holds; `name_form`; or the code of the
            failed write. Then nothing of this call stays.
    """
    source, goal = staging.folder, target.folder
    check_written_name(name, goal.prefix)
    where = goal.where(name)
    with reported(where):
        temporary = writes.write_temporary(source, name, data)
        try:
            # link, unlike rename, never replaces.
            goal.fs.link(source.fd, temporary, goal.fd, name)
        except FileExistsError as error:
            sentence = f"{where} exists already and is never overwritten; repeat the command."
            raise FileError(Fault(FileCode.EXISTS_DIFFERENT, where, sentence)) from error
        finally:
            # What the caller must hear about is the link; `sweep` finds what cannot be removed now.
            with suppress(OSError):
                source.fs.unlink(source.fd, temporary)
        try:
            writes.sync_folder(goal.fs, goal.fd)
        except BaseException:
            # What nobody was promised must not count later on.
            with suppress(OSError):
                goal.fs.unlink(goal.fd, name)
            raise
