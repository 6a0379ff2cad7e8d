"""Whole folders that appear at once, or not at all.

Source: evidence.md, section 5 (make folder, leftovers) and trials.md, section 3: a folder is built complete
under a name of ours, `.<name>.<16 hex>.new`, made durable and renamed. The caller holds the lock under which
folders of that name are made, so that no living builder owns what `sweep_builds` takes away.

Nobody knows the names in a build before the rename, so none of them has to be durable before another: every
file is synced once and every folder once, when all that it holds was made.
"""

from __future__ import annotations

import re
import stat
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence import writes
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import Fault, FileCode, FileError
from skill_effectiveness.evidence.fsops import closing, write_all
from skill_effectiveness.evidence.names import TOKEN_BYTES, check_collision, check_name, check_written_name
from skill_effectiveness.evidence.root import demand_private_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from skill_effectiveness.evidence.files import Folder
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
            write. The name does not exist then, unless the sync behind the rename is what failed, and what
            was built is gone or is a leftover that `sweep_builds` knows.
        FileError `file_mode`, RootError `root_mode`: this file system does not keep modes.
    """
    for inner in (name, *files, *folders):
        check_written_name(inner, root.folder.prefix)
    publish_tree(root, name, files=files.items(), folders=folders)


def publish_tree(
    root: PrivateRoot, name: str, *, files: Iterable[tuple[str, bytes]], folders: Sequence[str] = ()
) -> None:
    """Give a name to a private folder that holds exactly these files, in folders below it.

    Args:
        root: where.
        name: one segment that nothing has yet.
        files: path below the folder, with forward slashes, and content, each asked for when its turn comes.
        folders: paths of folders that are made also if no file lies in them.

    Raises:
        FileError, RootError: as `publish_folder`.
    """
    folder = root.folder
    check_written_name(name, folder.prefix)
    with reported(folder.where(name)):
        check_collision(name, folder.fs.listdir(folder.fd), folder.prefix)
        _demand_free(root, name)
        build = f".{name}.{folder.entropy(TOKEN_BYTES).hex()}.new"
        try:
            writes.make_new_folder(folder.fs, folder.fd, build)
            with closing(folder.fs, folder.fs.open_dir(folder.fd, build)) as fd:
                _Build(replace(folder, fd=fd, prefix=f"{folder.where(name)}/")).fill(files, folders)
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


class _Build:
    """A folder that is being built and has no name that anybody knows.

    Args:
        folder: the build, open; stays the caller's.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        # The names in every folder made so far, by their folded form, parents before what lies in them.
        self._names: dict[tuple[str, ...], dict[str, str]] = {(): {}}

    def fill(self, files: Iterable[tuple[str, bytes]], folders: Iterable[str]) -> None:
        """Write everything and make it durable."""
        demand_private_folder(self._folder.fs.fstat(self._folder.fd), self._folder.prefix, self._user)
        for path in folders:
            self._make(tuple(path.split("/")))
        for path, data in files:
            *parents, name = path.split("/")
            self._make(tuple(parents))
            with self._opened(tuple(parents)) as folder:
                check_written_name(name, folder.prefix)
                self._claim(tuple(parents), name, folder)
                _write(folder, name, data)
        for segments, names in reversed(self._names.items()):
            if names or not segments:
                with self._opened(segments) as folder:
                    writes.sync_folder(folder.fs, folder.fd)

    @property
    def _user(self) -> int:
        return self._folder.fs.user()

    def _make(self, segments: tuple[str, ...]) -> None:
        """Make a folder, and those above it, unless they were made."""
        if segments in self._names:
            return
        *parents, name = segments
        self._make(tuple(parents))
        with self._opened(tuple(parents)) as folder:
            check_name(name, folder.prefix)
            self._claim(tuple(parents), name, folder)
            writes.make_new_folder(folder.fs, folder.fd, name)
            demand_private_folder(folder.fs.lstat(folder.fd, name), folder.where(name), self._user)
        self._names[segments] = {}

    def _claim(self, parents: tuple[str, ...], name: str, folder: Folder) -> None:
        """Demand a name that no other one in its folder equals after case folding."""
        other = self._names[parents].setdefault(name.casefold(), name)
        check_collision(name, (other,), folder.prefix)

    @contextmanager
    def _opened(self, segments: tuple[str, ...]) -> Iterator[Folder]:
        """A folder of this build."""
        fs, fd = self._folder.fs, self._folder.fd
        with ExitStack() as opened:
            for segment in segments:
                fd = opened.enter_context(closing(fs, fs.open_dir(fd, segment)))
            prefix = self._folder.prefix + "".join(f"{segment}/" for segment in segments)
            yield replace(self._folder, fd=fd, prefix=prefix)


def _write(folder: Folder, name: str, data: bytes) -> None:
    """Write a file of a build, which is taken away as a whole should that fail."""
    fs = folder.fs
    with closing(fs, fs.create_exclusive(folder.fd, name)) as file:
        masked = writes.demand_fresh(folder, file, name)
        write_all(fs, file, data)
        # Of an empty file there is nothing to lose but its name, which is the folder's to keep.
        if data or masked:
            fs.fsync(file)


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
