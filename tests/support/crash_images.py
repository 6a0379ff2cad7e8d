"""What a crash may leave: every legal image of the disk after every step of a recorded protocol.

Source: evidence.md, section 10. The model is that of a journalling file system without order between data and
names:

- bytes written and not fsynced may be absent, cut at any 512-byte block, or replaced by zeros from any block
  on or in any one block;
- a truncation that was not fsynced may not have happened;
- names created, linked, renamed or removed in a folder that was not fsynced afterwards may each have happened
  or not, in any combination that keeps the order of the operations on one name; a rename is one operation on
  both its names.

A name may therefore be durable while the bytes of its file are not. What was there before the recording is
durable. Records of lock holders are left out: nobody reads them after a crash.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skill_effectiveness.evidence.fsdoubles import RecordingFs, Step
from skill_effectiveness.evidence.fsops import RealFs
from tests.support.private import wrong_modes

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK = 512


@contextmanager
def fast_folder() -> Iterator[Path]:
    """A temporary folder, in memory where there is one: images are many and none outlives its test."""
    memory = Path("/dev/shm")  # noqa: S108 - the folder made in it is private
    parent = memory if os.access(memory, os.W_OK) else None
    path = Path(tempfile.mkdtemp(prefix="skill-effectiveness-test-", dir=parent)).resolve()
    try:
        yield path
    finally:
        shutil.rmtree(path)


# What is on the disk, and what only may be.


@dataclass(eq=False)
class _File:
    """The bytes of a file: those that are durable, and what was done to them since."""

    durable: bytes = b""
    pending: list[Step] = field(default_factory=list)

    def variants(self) -> list[bytes]:
        """Every content that a crash may leave."""
        found = {self.durable: None}
        state = self.durable
        for step in self.pending:
            for content in _contents(state, step):
                found[content] = None
                state = content
        return list(found)


def _contents(state: bytes, step: Step) -> Iterator[bytes]:
    """What one step may have made of a content; the last is what it made."""
    if step.operation == "truncate":
        yield state[: step.number].ljust(step.number, b"\0")
        return
    end = step.offset + len(step.data)
    cuts = [step.offset, *range((step.offset // BLOCK + 1) * BLOCK, end, BLOCK), end]
    for start, stop in pairwise(cuts):
        kept = step.data[: start - step.offset]
        yield _written(state, step.offset, kept)
        yield _written(state, step.offset, kept + bytes(end - start))
        hole = kept + bytes(stop - start) + step.data[stop - step.offset :]
        yield _written(state, step.offset, hole)
    yield _written(state, step.offset, step.data)


def _written(state: bytes, offset: int, data: bytes) -> bytes:
    return state[:offset].ljust(offset, b"\0") + data + state[offset + len(data) :]


@dataclass(frozen=True, eq=False)
class _Change:
    """One operation on the names of a folder; `None` takes a name away."""

    entries: dict[str, _File | _Folder | None]


@dataclass(eq=False)
class _Folder:
    """The names in a folder: those that are durable, and what was done to them since."""

    durable: dict[str, _File | _Folder] = field(default_factory=dict)
    pending: list[_Change] = field(default_factory=list)

    def now(self) -> dict[str, _File | _Folder]:
        """What the running program sees."""
        return _applied(self.durable, self.pending)

    def variants(self) -> Iterator[dict[str, _File | _Folder]]:
        """Every set of names that a crash may leave."""
        for chosen in _closed_subsets(self.pending):
            yield _applied(self.durable, chosen)


def _applied(entries: dict[str, Any], changes: list[_Change]) -> dict[str, _File | _Folder]:
    result = dict(entries)
    for change in changes:
        for name, node in change.entries.items():
            if node is None:
                result.pop(name, None)
            else:
                result[name] = node
    return result


def _closed_subsets(changes: list[_Change]) -> Iterator[list[_Change]]:
    """Every selection in which no change comes without the earlier ones of its names."""
    needs = [
        [earlier for earlier in range(at) if changes[earlier].entries.keys() & change.entries.keys()]
        for at, change in enumerate(changes)
    ]

    def choose(at: int, chosen: frozenset[int]) -> Iterator[frozenset[int]]:
        if at == len(changes):
            yield chosen
            return
        yield from choose(at + 1, chosen)
        if chosen.issuperset(needs[at]):
            yield from choose(at + 1, chosen | {at})

    for chosen in choose(0, frozenset()):
        yield [change for at, change in enumerate(changes) if at in chosen]


# Images.


@dataclass(frozen=True)
class Image:
    """One state of the disk.

    Attributes:
        folders: relative paths.
        files: relative path to content and a number that names of the same file share.
    """

    folders: frozenset[str]
    files: frozenset[tuple[str, bytes, int]]

    def materialise(self, target: Path) -> None:
        """Make the image real in a folder that does not exist yet."""
        target.mkdir(mode=0o700)
        for folder in sorted(self.folders):
            (target / folder).mkdir(mode=0o700)
        made: dict[int, Path] = {}
        for path, content, number in sorted(self.files):
            if number in made:
                os.link(made[number], target / path)
                continue
            made[number] = target / path
            fd = os.open(target / path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.write(fd, content)
            os.close(fd)


def _images(top: _Folder) -> Iterator[Image]:
    for folders, files in _trees(top, ""):
        nodes = list(dict.fromkeys(files.values()))
        numbers = {node: number for number, node in enumerate(nodes)}
        for contents in product(*(node.variants() for node in nodes)):
            placed = dict(zip(nodes, contents, strict=True))
            yield Image(
                frozenset(folders),
                frozenset((path, placed[node], numbers[node]) for path, node in files.items()),
            )


def _trees(folder: _Folder, prefix: str) -> Iterator[tuple[list[str], dict[str, _File]]]:
    """Every choice of names, here and below."""
    for entries in folder.variants():
        below = {name: node for name, node in entries.items() if isinstance(node, _Folder)}
        files = {prefix + name: node for name, node in sorted(entries.items()) if isinstance(node, _File)}
        choices = [list(_trees(node, f"{prefix}{name}/")) for name, node in sorted(below.items())]
        for choice in product(*choices):
            folders = [prefix + name for name in sorted(below)]
            everything = dict(files)
            for inner_folders, inner_files in choice:
                folders += inner_folders
                everything |= inner_files
            yield folders, everything


# Recording.


class Recording:
    """A protocol on its way.

    Args:
        base: everything below it belongs to the image; what is there already is durable.

    Attributes:
        fs: to be used by the protocol.
    """

    def __init__(self, base: Path) -> None:
        self._base = base
        self._before = _snapshot(base)
        self._acknowledged: list[tuple[int, object]] = []
        self.fs = RecordingFs(RealFs(), after=self._look)
        self.wrong_modes: list[str] = []

    def _look(self, step: Step) -> None:
        # Modes are given with the object, so one look after each step sees the modes of every image; a step
        # that changes one would break this and is reported too.
        self.wrong_modes += wrong_modes(self._base)
        if step.operation in {"fchmod", "chmod_dir"}:
            self.wrong_modes.append(f"{step.operation} {step.path}")

    def acknowledge(self, what: object) -> None:
        """Note that the program was promised something at this point."""
        self._acknowledged.append((len(self.fs.steps), what))

    def images(self, seen: set[tuple[Image, int]] | None = None) -> Iterator[tuple[Image, list[Any]]]:
        """Every image after every step, once, with what had been acknowledged by then.

        Args:
            seen: images of other recordings, with the number of their promises, that are left out; grows.
        """
        disk = _Disk(self._base, self._before)
        seen = set() if seen is None else seen
        steps = [step for step in self.fs.steps if ".holder" not in Path(step.path).name]
        at = {id(step): number + 1 for number, step in enumerate(self.fs.steps)}
        for step in [None, *steps]:
            if step is not None:
                disk.do(step)
            done = 0 if step is None else at[id(step)]
            promised = [what for mark, what in self._acknowledged if mark <= done]
            for image in _images(disk.top):
                if (image, len(promised)) not in seen:
                    seen.add((image, len(promised)))
                    yield image, promised


def _snapshot(path: Path) -> _Folder:
    """What is durable before the recording; hard links are not expected there."""
    entries: dict[str, _File | _Folder] = {}
    for child in path.iterdir():
        entries[child.name] = _snapshot(child) if child.is_dir() else _File(child.read_bytes())
    return _Folder(entries)


class _Disk:
    """The disk as the steps change it."""

    def __init__(self, base: Path, top: _Folder) -> None:
        self._base = base
        self.top = top

    def do(self, step: Step) -> None:
        """Take one step."""
        folder, name = self._parent(step.path)
        match step.operation:
            case "create_exclusive":
                folder.pending.append(_Change({name: _File()}))
            case "mkdir":
                folder.pending.append(_Change({name: _Folder()}))
            case "unlink" | "rmdir":
                folder.pending.append(_Change({name: None}))
            case "link":
                target_folder, other = self._parent(step.target)
                target_folder.pending.append(_Change({other: folder.now()[name]}))
            case "rename":
                target = self._beside(folder, step)
                folder.pending.append(_Change({name: None, target: folder.now()[name]}))
            case "write" | "truncate":
                self._file(step.path).pending.append(step)
            case "fsync":
                file = self._file(step.path)
                for pending in file.pending:
                    *_, file.durable = _contents(file.durable, pending)
                file.pending.clear()
            case "fsync_dir":
                synced = self._folder(step.path)
                synced.durable = synced.now()
                synced.pending.clear()
            case other:
                raise AssertionError(f"no model of {other}")

    def _beside(self, folder: _Folder, step: Step) -> str:
        """The second name of a step, which is in the same folder."""
        target, name = self._parent(step.target)
        assert target is folder
        return name

    def _parent(self, path: str) -> tuple[_Folder, str]:
        pure = Path(path)
        return (self.top, "") if pure == self._base else (self._folder(str(pure.parent)), pure.name)

    def _folder(self, path: str) -> _Folder:
        folder = self.top
        for segment in Path(path).relative_to(self._base).parts:
            below = folder.now()[segment]
            assert isinstance(below, _Folder)
            folder = below
        return folder

    def _file(self, path: str) -> _File:
        folder, name = self._parent(path)
        file = folder.now()[name]
        assert isinstance(file, _File)
        return file
