"""What a power loss may leave behind: every legal image of a folder for every prefix of a recorded run.

Source: evidence.md, section 10, method "enumeration". Data that was not synced is there, absent, cut at a multiple of
512 bytes or zero-filled. Of the operations on a folder's names that were not synced any subset may have happened, as
long as those on one name keep their order.
"""

from __future__ import annotations

import itertools
import shutil
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from skill_effectiveness.evidence.fsdoubles import Step

BLOCK = 512
FOLDER = None
"""Content of a folder in an image."""

Image = frozenset[tuple[str, bytes | None]]
"""Relative path and content of everything there is."""


@dataclass(eq=False)
class _Inode:
    """A file: its data, and the data that would survive."""

    data: bytes = b""
    synced: bytes | None = None

    def versions(self) -> list[bytes]:
        """What a reader may find after the loss."""
        if self.synced == self.data:
            return [self.data]
        cuts = [self.data[:size] for size in range(0, len(self.data), BLOCK)]
        return list(dict.fromkeys([self.data, self.synced or b"", *cuts, bytes(len(self.data))]))


class _Change(NamedTuple):
    """One operation on the names of a folder: names to what they then stand for, None for nothing."""

    entries: tuple[tuple[str, _Inode | _Folder | None], ...]


@dataclass(eq=False)
class _Folder:
    """A folder: names that survive, and changes of them that may or may not."""

    durable: dict[str, _Inode | _Folder] = field(default_factory=dict)
    pending: list[_Change] = field(default_factory=list)

    def live(self) -> dict[str, _Inode | _Folder]:
        """Names as the running program sees them."""
        return _applied(self.durable, self.pending)

    def versions(self) -> Iterator[dict[str, _Inode | _Folder]]:
        """Names as a reader may find them after the loss."""
        for chosen in itertools.product((False, True), repeat=len(self.pending)):
            taken = [change for change, happened in zip(self.pending, chosen, strict=True) if happened]
            if _in_order(self.pending, chosen):
                yield _applied(self.durable, taken)


def _applied(
    names: dict[str, _Inode | _Folder], changes: Sequence[_Change]
) -> dict[str, _Inode | _Folder]:
    found = dict(names)
    for change in changes:
        for name, what in change.entries:
            if what is None:
                found.pop(name, None)
            else:
                found[name] = what
    return found


def _in_order(changes: Sequence[_Change], chosen: Sequence[bool]) -> bool:
    """Whether no change happened before an earlier one of the same name."""
    skipped: set[str] = set()
    for change, happened in zip(changes, chosen, strict=True):
        names = {name for name, _ in change.entries}
        if happened and names & skipped:
            return False
        if not happened:
            skipped |= names
    return True


class Disk:
    """Follows the recorded steps below a folder and tells what could be found after each.

    Args:
        top: the folder that the images are of; it was there and empty before the first step.
        advisory: ending of the names that decide nothing, and so are left as the running program sees them.
    """

    def __init__(self, top: Path, advisory: str = ".holder") -> None:
        self._top = PurePosixPath(top)
        self._root = _Folder()
        self._advisory = advisory

    def follow(self, step: Step) -> None:
        """Take one step."""
        if not PurePosixPath(step.path).is_relative_to(self._top):
            return
        name = PurePosixPath(step.path).name
        match step.operation:
            case "create_exclusive":
                self._change(step.path, _Inode())
            case "mkdir":
                self._change(step.path, _Folder())
            case "write":
                inode = self._inode(step.path)
                inode.data = inode.data[: step.offset] + step.data
            case "fsync":
                inode = self._inode(step.path)
                inode.synced = inode.data
            case "fsync_dir":
                folder = self._folder(PurePosixPath(step.path))
                folder.durable, folder.pending = folder.live(), []
            case "link":
                self._change(step.target, self._inode(step.path))
            case "rename":
                target = PurePosixPath(step.target).name
                entries = ((name, None), (target, self._inode(step.path)))
                self._folder(PurePosixPath(step.path).parent).pending.append(_Change(entries))
            case "unlink":
                self._change(step.path, None)
            case "fchmod" | "chmod_dir":
                pass
            case other:
                raise AssertionError(f"a step that is not followed: {other}")

    def images(self) -> set[Image]:
        """Everything that a power loss now could leave."""
        return {frozenset(image.items()) for image in self._images(self._root, "")}

    def _images(self, folder: _Folder, prefix: str) -> Iterator[dict[str, bytes | None]]:
        for names in folder.versions():
            parts = [list(self._entry(what, f"{prefix}{name}")) for name, what in sorted(names.items())]
            for chosen in itertools.product(*parts):
                merged: dict[str, bytes | None] = {}
                for part in chosen:
                    merged |= part
                yield merged

    def _entry(self, what: _Inode | _Folder, path: str) -> Iterator[dict[str, bytes | None]]:
        if isinstance(what, _Folder):
            for image in self._images(what, f"{path}/"):
                yield {path: FOLDER, **image}
        elif path.endswith(self._advisory):
            yield {path: what.data}
        else:
            for data in what.versions():
                yield {path: data}

    def _folder(self, path: PurePosixPath) -> _Folder:
        folder = self._root
        for segment in path.relative_to(self._top).parts:
            below = folder.live()[segment]
            assert isinstance(below, _Folder)
            folder = below
        return folder

    def _inode(self, path: str) -> _Inode:
        place = PurePosixPath(path)
        found = self._folder(place.parent).live()[place.name]
        assert isinstance(found, _Inode)
        return found

    def _change(self, path: str, what: _Inode | _Folder | None) -> None:
        place = PurePosixPath(path)
        folder = self._folder(place.parent)
        change = _Change(((place.name, what),))
        if self._advisory in place.name:
            # As the running program sees it: what decides nothing would only multiply the images.
            folder.durable = _applied(folder.durable, [change])
        else:
            folder.pending.append(change)


def restore(image: Image, top: Path) -> None:
    """Lay an image in the place of the folder it is of."""
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir(mode=0o700)
    for relative, data in sorted(image, key=lambda entry: entry[0]):
        path = top / relative
        if data is FOLDER:
            path.mkdir(mode=0o700)
        else:
            path.write_bytes(data)
            path.chmod(0o600)
