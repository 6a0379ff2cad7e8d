"""Steps: what every invocation of an agent is given and what it hands back.

Source: loop.md, section 5; L33 to L38, L40 to L44. The containers lie in the run directory; agents only ever
see private temporary mirrors of them, and what they leave there is read when no process of theirs is left.
"""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.loop.errors import AbortedError
from skill_effectiveness.acceptance.loop.limits import (
    OUTPUT_BYTES,
    OUTPUT_DEPTH,
    OUTPUT_ENTRIES,
    OUTPUT_FILE_BYTES,
)
from skill_effectiveness.acceptance.loop.words import OutputFault
from skill_effectiveness.evidence.canonical import digest_bytes, dump_line
from skill_effectiveness.evidence.chunks import regular_file
from skill_effectiveness.evidence.faults import EvidenceError, FileCode, FileError
from skill_effectiveness.evidence.fsops import read_all
from skill_effectiveness.evidence.laying import lay_file, lay_folder
from skill_effectiveness.evidence.names import check_written_name
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.evidence.tree import walk_tree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.evidence.tree import Found

IN: Final = "in"
OUT: Final = "out"
REJECTED: Final = "rejected"
MANIFEST: Final = "manifest.json"
STEPS: Final = "steps"
_SOURCE: Final = re.compile(r"steps/(?P<step>[1-9][0-9]{0,8})/(?P<side>in|out)(?:/(?P<path>.+))?")

Files = dict[str, bytes]
"""Relative path with forward slashes, and content."""


class InputUnavailableError(Exception):
    """A wired input is absent or leaves the run directory; the text says which."""


@dataclass(frozen=True, slots=True)
class Output:
    """What an agent left in its output folder.

    Attributes:
        files: its regular files, as far as they may be kept.
        fault: why it is rejected as a whole, if it is.
    """

    files: Files
    fault: OutputFault | None = None

    @property
    def manifest(self) -> bytes:
        """Path, size and SHA-256 of every file, as it is stored."""
        rows = [
            {"path": path, "size": len(data), "sha256": digest_bytes(data)}
            for path, data in sorted(self.files.items())
        ]
        return dump_line({"files": rows, "rejected": None if self.fault is None else self.fault.value})


def read_output(fs: FileSystem, folder: Path) -> Output:
    """Read an output folder in which nobody works any more; no link is followed and no pipe opened."""
    files: Files = {}
    fault = _read_into(files, fs, folder) or _collision(files)
    return Output(files if fault is None else _apart(files), fault)


def _read_into(files: Files, fs: FileSystem, folder: Path) -> OutputFault | None:
    """Read files until one of them may not be kept; why."""
    total, entries = 0, 0
    try:
        for found in walk_tree(fs, folder):
            entries += 1
            fault = _fault(found, entries)
            if fault is not None:
                return fault
            if not stat.S_ISREG(found.status.st_mode):
                continue
            if total + found.status.st_size > OUTPUT_BYTES:
                return OutputFault.TOTAL_SIZE
            files[found.path] = _content(fs, found)
            total += len(files[found.path])
    except FileError as error:
        return OutputFault.FILE_SIZE if error.code is FileCode.FILE_SIZE else OutputFault.UNREADABLE
    except EvidenceError:
        return OutputFault.UNREADABLE
    return None


def _fault(found: Found, entries: int) -> OutputFault | None:
    mode = found.status.st_mode
    if entries > OUTPUT_ENTRIES:
        return OutputFault.ENTRIES
    if stat.S_ISLNK(mode):
        return OutputFault.LINK
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        return OutputFault.SPECIAL
    if found.path.count("/") >= OUTPUT_DEPTH:
        return OutputFault.DEPTH
    try:
        check_written_name(found.name, "")
    except EvidenceError:
        return OutputFault.NAME
    return OutputFault.FILE_SIZE if stat.S_ISREG(mode) and found.status.st_size > OUTPUT_FILE_BYTES else None


def _content(fs: FileSystem, found: Found) -> bytes:
    with regular_file(fs, found.parent, found.name, printable(found.name)) as fd:
        return read_all(fs, fd, OUTPUT_FILE_BYTES, printable(found.name))


def _collision(files: Files) -> OutputFault | None:
    """Two names that differ in case alone cannot both be kept everywhere."""
    return None if len(_apart(files)) == len(files) else OutputFault.NAME


def _apart(files: Files) -> Files:
    """As many files as can be kept beside each other."""
    apart: Files = {}
    taken: dict[str, str] = {}
    for path, data in files.items():
        prefixes = [path, *(str(parent) for parent in PurePosixPath(path).parents)]
        if all(taken.get(prefix.casefold(), prefix) == prefix for prefix in prefixes):
            taken |= {prefix.casefold(): prefix for prefix in prefixes}
            apart[path] = data
    return apart


class StepStore:
    """The steps of one run, numbered from 1 and never numbered twice.

    Agents run as the owner of the run directory, so what lies there counts only as long as it is what was
    put there.

    Args:
        root: the run directory.
    """

    def __init__(self, root: PrivateRoot) -> None:
        self._root = root
        self._last = 0
        self._kept: dict[tuple[int, str], dict[str, str]] = {}

    def has(self, step: object) -> bool:
        """Whether there is a step of this number."""
        return type(step) is int and 1 <= step <= self._last

    def begin(self) -> int:
        """Make the next step; its number.

        Raises:
            AbortedError: somebody has made it already.
            EvidenceError: its folders could not be made.
        """
        self._last += 1
        with self._root.child(STEPS, create=True) as steps:
            if steps.exists(str(self._last)):
                raise _changed()
        for side in (IN, OUT):
            self._root.child(STEPS, str(self._last), side, create=True).close()
            self._kept[self._last, side] = {}
        return self._last

    def give(self, step: int, files: Files) -> None:
        """Keep what a step is given.

        Raises:
            EvidenceError: it could not be written.
        """
        self._keep(step, IN, files)

    def take(self, step: int, output: Output) -> str:
        """Keep what a step handed back, or what may be kept of it; the digest of its manifest.

        Raises:
            EvidenceError: it could not be written.
        """
        self._keep(step, OUT if output.fault is None else REJECTED, output.files)
        with self._root.child(STEPS, str(step)) as folder:
            folder.publish(MANIFEST, output.manifest)
        return digest_bytes(output.manifest)

    def _keep(self, step: int, side: str, files: Files) -> None:
        for path, data in files.items():
            *folders, name = path.split("/")
            with self._root.child(STEPS, str(step), side, *folders, create=True) as folder:
                folder.publish(name, data)
        self._kept[step, side] = {path: digest_bytes(data) for path, data in files.items()}

    def files(self, step: int, side: str) -> Files:
        """Everything that was kept on one side of a step.

        Raises:
            AbortedError: it is not what was kept.
            EvidenceError: it cannot be read.
        """
        with self._root.child(STEPS, str(step), side) as folder:
            files = _read_all(folder, "")
        if {path: digest_bytes(data) for path, data in files.items()} != self._kept[step, side]:
            raise _changed()
        return files

    def wired(self, inputs: Mapping[str, str]) -> Files:
        """The files that explicit wiring names.

        Args:
            inputs: path in `in/`, and path of a file or folder of an earlier step relative to the run
                directory.

        Raises:
            InputUnavailableError: one is absent, leaves the run directory, or meets another.
            EvidenceError: it cannot be read.
        """
        given: Files = {}
        for target, source in inputs.items():
            for below, data in self._source(source).items():
                path = _joined(target, below)
                if path in given:
                    raise InputUnavailableError(f"two inputs are wired to {printable(path)}")
                given[path] = data
        if _collision(given) or any(_is_folder(path, given) for path in given):
            raise InputUnavailableError("inputs are wired to names that cannot stand beside each other")
        return given

    def _source(self, source: str) -> Files:
        match = _SOURCE.fullmatch(source)
        told = InputUnavailableError(f"there is no input {printable(source)}")
        if match is None or int(match["step"]) > self._last or not _plain(match["path"] or "x"):
            raise told
        files = self.files(int(match["step"]), match["side"])
        path = match["path"]
        if path is None:
            return files
        if path in files:
            return {"": files[path]}
        below = {
            each.removeprefix(f"{path}/"): data for each, data in files.items() if each.startswith(f"{path}/")
        }
        if not below:
            raise told
        return below


def _changed() -> AbortedError:
    return AbortedError("the run directory was changed by someone else")


def _joined(target: str, below: str) -> str:
    path = f"{target}/{below}" if below else target
    if not _plain(path):
        raise InputUnavailableError(f"an input cannot be called {printable(target)}")
    return path


def _plain(path: str) -> bool:
    try:
        for name in path.split("/"):
            check_written_name(name, "")
    except EvidenceError:
        return False
    return True


def _is_folder(path: str, given: Files) -> bool:
    return any(other.startswith(f"{path}/") for other in given)


def _read_all(folder: PrivateRoot, prefix: str) -> Files:
    files: Files = {}
    for name in folder.names():
        status = folder.folder.status(name)
        if status is not None and stat.S_ISDIR(status.st_mode):
            with folder.child(name) as below:
                files |= _read_all(below, f"{prefix}{name}/")
        else:
            files[prefix + name] = folder.read(name, OUTPUT_FILE_BYTES)
    return files


def lay_mirror(fs: FileSystem, place: Path, files: Files) -> None:
    """Lay files down below a folder that does not exist yet: folders 0700, files 0600.

    Raises:
        FileError: one could not be written.
    """
    lay_folder(fs, place)
    made = {"."}
    for path, data in sorted(files.items()):
        for parent in reversed(PurePosixPath(path).parents):
            if str(parent) not in made:
                lay_folder(fs, place / parent)
                made.add(str(parent))
        lay_file(fs, place / path, data)
