"""Whole folders that appear at once, or not at all.

Source: evidence.md, section 5 (make folder, leftovers) and trials.md, section 3: a folder is built complete
under a name of ours, `.<name>.<16 hex>.new`, made durable and renamed. The caller holds the lock under which
folders of that name are made, so that no living builder owns what `sweep_builds` takes away.
"""

from __future__ import annotations

import re
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence import writes
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import Fault, FileCode, FileError
from skill_effectiveness.evidence.fsops import FILE_MODE, closing, write_all
from skill_effectiveness.evidence.names import TOKEN_BYTES, check_collision, check_written_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.root import PrivateRoot

_BUILD: Final = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{16}\.new", re.DOTALL)
_DEEPEST: Final = 8


def build_of(name: str) -> str | None:
    """The final name that a folder under construction was meant for; `None` for any other name."""
    match = _BUILD.fullmatch(name)
    return None if match is None else match["name"]


def publish_folder(
    root: PrivateRoot, name: str, *, files: Mapping[str, bytes], folders: Sequence[str] = ()
) -> None:
    """Give a name to a private folder that holds exactly these files and empty folders.

    Args:
        root: where.
        name: one segment that nothing has yet.
        files: content by name.
        folders: names of empty folders beside them.

    Raises:
        FileError: `exists_different`: the name is taken; `name_form`, `name_collision`; the code of a failed
            write. The name does not exist then, and what was built is gone or is a leftover that
            `sweep_builds` knows.
    """
    folder = root.folder
    for inner in (name, *files, *folders):
        check_written_name(inner, folder.prefix)
    with reported(folder.where(name)):
        check_collision(name, folder.fs.listdir(folder.fd), folder.prefix)
        _demand_free(root, name)
        build = f".{name}.{folder.entropy(TOKEN_BYTES).hex()}.new"
        try:
            writes.make_folder(folder.fs, folder.fd, build)
            with closing(folder.fs, folder.fs.open_dir(folder.fd, build)) as fd:
                _fill(folder.fs, fd, files, folders)
            # rename would replace an empty folder; under the caller's lock nothing of ours makes one.
            _demand_free(root, name)
            folder.fs.rename(folder.fd, build, folder.fd, name)
        except BaseException:
            # The first error is what the caller must hear about.
            with suppress(OSError, FileError):
                _take_away(folder.fs, folder.fd, build)
            raise
        writes.sync_folder(folder.fs, folder.fd)


def _demand_free(root: PrivateRoot, name: str) -> None:
    folder = root.folder
    if folder.status(name) is not None:
        where = folder.where(name)
        sentence = f"{where} exists already and is never replaced; use another name."
        raise FileError(Fault(FileCode.EXISTS_DIFFERENT, where, sentence))


def _fill(fs: FileSystem, fd: int, files: Mapping[str, bytes], folders: Sequence[str]) -> None:
    """Write everything and make it durable; no name here is known to anybody yet."""
    for inner in folders:
        writes.make_folder(fs, fd, inner)
    for inner, data in files.items():
        with closing(fs, fs.create_exclusive(fd, inner)) as file:
            if stat.S_IMODE(fs.fstat(file).st_mode) != FILE_MODE:
                fs.fchmod(file, FILE_MODE)
            write_all(fs, file, data)
            fs.fsync(file)
    writes.sync_folder(fs, fd)


def make_durable(root: PrivateRoot) -> None:
    """Make the names of a folder durable, whoever gave them.

    For callers that answer for what they found: whoever put it there may have died before making it durable.

    Raises:
        FileError: the code of a failed fsync.
    """
    with reported(root.folder.prefix or "."):
        writes.sync_folder(root.folder.fs, root.folder.fd)


def sweep_builds(root: PrivateRoot, name: str) -> tuple[str, ...]:
    """Remove what interrupted builds of `name` left behind.

    Returns:
        The names removed, sorted. A link, a file or a folder of somebody else stays.

    Raises:
        FileError: the code of a failed removal; `not_regular` for a folder deeper than any that is built
            here.
    """
    folder = root.folder
    found: list[str] = []
    with reported(folder.prefix or "."):
        for other in sorted(folder.fs.listdir(folder.fd)):
            # Most names of a long folder are told apart by their first letter already.
            if not other.startswith(".") or build_of(other) != name:
                continue
            status = folder.fs.lstat(folder.fd, other)
            if stat.S_ISDIR(status.st_mode) and status.st_uid == folder.fs.user():
                _take_away(folder.fs, folder.fd, other)
                found.append(other)
        if found:
            writes.sync_folder(folder.fs, folder.fd)
    return tuple(found)


def _take_away(fs: FileSystem, parent: int, name: str, depth: int = 1) -> None:
    """Remove a folder of ours with all it holds, following no link."""
    if depth > _DEEPEST:
        raise FileError(Fault(FileCode.NOT_REGULAR, name, f"{name} is no leftover of ours; move it away."))
    with closing(fs, fs.open_dir(parent, name)) as fd:
        for inner in fs.listdir(fd):
            if stat.S_ISDIR(fs.lstat(fd, inner).st_mode):
                _take_away(fs, fd, inner, depth + 1)
            else:
                fs.unlink(fd, inner)
    fs.rmdir(parent, name)
