"""One digest for a folder and everything in it.

Source: evidence.md, section 3. The preimage is the canonical form of a list, sorted by path (code points),
with one object per thing found below the folder; the folder itself is not listed:

| kind | members |
|---|---|
| `file` | `path`, `kind`, `exec` (any execute bit), `size` (bytes), `sha256` (digest text) |
| `dir` | `path`, `kind`, `exec` false, `size` 0, `sha256` null |
| `link` | `path`, `kind`, `exec` false, `target` (as recorded, never followed) |

A list of objects cannot be confused by names that look like contents, by line feeds in names or by empty
folders. Names are not normalised: the NFC and NFD spellings of one word are two names.
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Final, NamedTuple

from skill_effectiveness.evidence.canonical import digest_chunks, digest_object
from skill_effectiveness.evidence.chunks import chunks_of, regular_file
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import Fault, FileCode, FileError, TreeCode, TreeError
from skill_effectiveness.evidence.fsops import closing
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.evidence.strict import LONE_SURROGATE

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem

DEEPEST_FOLDER: Final = 128
"""A folder nested deeper is refused: a walk keeps one descriptor open for every folder around it."""

_EXECUTE: Final = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


class Found(NamedTuple):
    """A name met on a walk, valid until the next step of the walk.

    Attributes:
        path: relative, with forward slashes; a byte that is not UTF-8 shows as half a surrogate pair.
        parent: descriptor of the folder that holds it.
        name: the last segment.
        status: of the name itself, links not followed.
    """

    path: str
    parent: int
    name: str
    status: os.stat_result


def digest_tree(fs: FileSystem, folder: Path) -> str:
    """The digest of everything below a folder.

    Args:
        fs: file operations.
        folder: absolute; links among its ancestors are followed, a link as its last segment is not.

    Raises:
        TreeError: with every fault found: `name_not_utf8`, `name_collision` (two names of one folder are
            equal after case folding), `not_regular` (a FIFO, socket or device, which is not opened),
            `too_deep`.
        FileError: `missing`, `not_regular` (not a folder), `not_readable`, `io_error`.
    """
    faults: list[Fault] = []
    entries: list[dict[str, object]] = []
    folded: dict[str, str] = {}
    for found in walk_tree(fs, folder):
        where = printable(found.path)
        fault = _fault_of_name(found, where, folded)
        if fault is None:
            fault = _add_entry(fs, found, where, entries)
        if fault is not None:
            faults.append(fault)
    if faults:
        raise TreeError(*faults)
    entries.sort(key=lambda entry: str(entry["path"]))
    return digest_object(entries)


def walk_tree(fs: FileSystem, folder: Path) -> Iterator[Found]:
    """Everything below a folder, each folder before its contents, names in order.

    Raises:
        TreeError: `too_deep`.
        FileError: as `digest_tree`.
    """
    where = folder.name
    with reported(where, reading=True):
        if not stat.S_ISDIR(fs.lstat(None, str(folder)).st_mode):
            sentence = f"{where} is not a folder; name the folder itself."
            raise FileError(Fault(FileCode.NOT_REGULAR, where, sentence))
        with closing(fs, fs.open_dir(None, str(folder))) as fd:
            yield from _walk(fs, fd, "", 1)


def _walk(fs: FileSystem, fd: int, prefix: str, depth: int) -> Iterator[Found]:
    where = printable(prefix) or "the folder"
    if depth > DEEPEST_FOLDER:
        sentence = f"{where} is nested more than {DEEPEST_FOLDER} folders deep; flatten the tree."
        raise TreeError(Fault(TreeCode.TOO_DEEP, where, sentence))
    with reported(where, reading=True):
        for name in sorted(fs.listdir(fd)):
            status = fs.lstat(fd, name)
            yield Found(prefix + name, fd, name, status)
            if stat.S_ISDIR(status.st_mode):
                with reported(printable(prefix + name), reading=True):
                    opened = fs.open_dir(fd, name)
                with closing(fs, opened) as inner:
                    yield from _walk(fs, inner, f"{prefix}{name}/", depth + 1)


def _fault_of_name(found: Found, where: str, folded: dict[str, str]) -> Fault | None:
    if LONE_SURROGATE.search(found.name):
        return Fault(TreeCode.NAME_NOT_UTF8, where, f"The name {where} is not UTF-8; rename it.")
    # Only names of one folder can meet: a folder that differs in case alone was refused itself.
    other = folded.setdefault(found.path.casefold(), where)
    if other != where:
        sentence = f"The names {other} and {where} differ only in case; rename one."
        return Fault(TreeCode.NAME_COLLISION, where, sentence)
    return None


def _add_entry(fs: FileSystem, found: Found, where: str, entries: list[dict[str, object]]) -> Fault | None:
    mode = found.status.st_mode
    if stat.S_ISDIR(mode):
        entries.append({"path": found.path, "kind": "dir", "exec": False, "size": 0, "sha256": None})
    elif stat.S_ISLNK(mode):
        with reported(where, reading=True):
            target = fs.readlink(found.parent, found.name)
        if LONE_SURROGATE.search(target):
            return Fault(TreeCode.NAME_NOT_UTF8, where, f"The target of the link {where} is not UTF-8.")
        entries.append({"path": found.path, "kind": "link", "exec": False, "target": target})
    elif stat.S_ISREG(mode):
        entries.append({"path": found.path, "kind": "file", **_file_members(fs, found, where)})
    else:
        sentence = f"{where} is a FIFO, a socket or a device; remove it."
        return Fault(TreeCode.NOT_REGULAR, where, sentence)
    return None


def _file_members(fs: FileSystem, found: Found, where: str) -> dict[str, object]:
    size = 0

    def counted(chunks: Iterator[bytes]) -> Iterator[bytes]:
        nonlocal size
        for chunk in chunks:
            size += len(chunk)
            yield chunk

    with regular_file(fs, found.parent, found.name, where) as fd:
        executable = bool(fs.fstat(fd).st_mode & _EXECUTE)
        digest = digest_chunks(counted(chunks_of(fs, fd)))
    return {"exec": executable, "size": size, "sha256": digest}
