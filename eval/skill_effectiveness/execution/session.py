"""Private folders of one session of a program, gone when it is over.

Source: providers.md P3, section 2.
"""

from __future__ import annotations

import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import EvidenceError, Fault, FileCode, FileError
from skill_effectiveness.evidence.fsops import remove_tree
from skill_effectiveness.evidence.laying import lay_missing
from skill_effectiveness.evidence.names import check_name
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.execution.session_owner import MARK, SessionOwner

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.surroundings import Surroundings

_OUTSIDE: Final = "session folders exist inside their `with` block only"
FOLDERS: Final = ("home", "config", "data", "tmp", "work")
PREFIX: Final = "skill-effectiveness-"
NAME_BYTES: Final = 8


def base_folder(around: Surroundings, base: Path | None) -> Path:
    """Where sessions lie: the given folder, else `TMPDIR` of the surroundings, else `/tmp`; without links.

    Raises:
        FileError: it is missing or cannot be looked up.
    """
    named = base or Path(around.environ.get("TMPDIR") or "/tmp")  # noqa: S108 - names below it are drawn and 0700
    with reported("the temporary folder", reading=True):
        return Path(around.fs.resolve(str(named)))


def remove_session(fs: FileSystem, parent: Path) -> None:
    """Remove the folders of a session, the mark of its owner last; nothing happens when they are gone.

    Raises:
        FileError: something could not be removed.
    """
    for name in FOLDERS:
        # Whoever dies here leaves the mark, so that the rest is found. The last removal tells every fault.
        with suppress(FileError):
            remove_tree(fs, parent / name)
    remove_tree(fs, parent)


class SessionFolders:
    """Five private folders beside each other, made on entering and removed on leaving, whatever happens.

    They are siblings, so the temporary folder holds none of the others: a program may refuse to keep its
    configuration below the temporary folder. Their parent is fresh and 0700, below `TMPDIR` of the
    surroundings or `/tmp`, and holds the mark of the process that made it besides (see `session_owner`).

    Attributes:
        parent: the folder that holds the five.
        home: for `HOME`.
        config: for the program's configuration folder.
        data: for the data and state folders.
        tmp: for `TMPDIR`.
        work: where the program runs.
    """

    def __init__(self, around: Surroundings, base: Path | None = None) -> None:
        self._around = around
        self._base = base
        self._made: Path | None = None
        self._root: PrivateRoot | None = None

    def __enter__(self) -> Self:
        """Make the folders.

        Raises:
            FileError, RootError: the base is missing, or its folders may be changed by others;
                nothing of it stays.
        """
        around = self._around
        self._made = base_folder(around, self._base) / f"{PREFIX}{around.entropy(NAME_BYTES).hex()}"
        try:
            # Kind `repo` is every rule of a private root but the distance from a checkout, which a
            # temporary folder may hold.
            self._root = PrivateRoot.create(self._made, RootKind.REPO, around=around, checkout=None)
            self._root.publish(MARK, SessionOwner.here(around).line())
            for name in FOLDERS:
                self._root.child(name, create=True).close()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Remove the folders; a fault in that does not hide an error that is on its way.

        Raises:
            FileError: something could not be removed.
        """
        try:
            self._remove()
        except EvidenceError as fault:
            if error is None:
                raise
            error.add_note(f"A private session folder could not be removed: {fault}")

    def _remove(self) -> None:
        if self._root is not None:
            self._root.close()
        if self._made is not None:
            remove_session(self._around.fs, self._made)

    @property
    def around(self) -> Surroundings:
        """The surroundings they were made in."""
        return self._around

    @property
    def parent(self) -> Path:
        """The folder that holds the five."""
        if self._made is None:
            raise ValueError(_OUTSIDE)
        return self._made

    @property
    def folders(self) -> tuple[Path, ...]:
        """The five, which alone a program of the session needs to write."""
        return tuple(self.parent / name for name in FOLDERS)

    def beside(self, name: str) -> Path:
        """A place of ours beside the five, which no program of the session is shown; nothing is made."""
        check_name(name, "the session")
        return self.parent / name

    @property
    def home(self) -> Path:
        """For `HOME`."""
        return self.parent / "home"

    @property
    def config(self) -> Path:
        """For the program's configuration folder."""
        return self.parent / "config"

    @property
    def data(self) -> Path:
        """For its data and state folders."""
        return self.parent / "data"

    @property
    def tmp(self) -> Path:
        """For `TMPDIR`."""
        return self.parent / "tmp"

    @property
    def work(self) -> Path:
        """Where the program runs."""
        return self.parent / "work"

    def publish(self, name: str, data: bytes) -> Path:
        """Put a file of ours, 0600, into `data`, for the program to read.

        Raises:
            FileError: as `PrivateRoot.publish`.
            RootError: `data` is not a private folder any more.
        """
        if self._root is None:
            raise ValueError(_OUTSIDE)
        with self._root.child("data") as folder:
            folder.publish(name, data)
        return self.data / name

    def link_login(
        self, name: str, source: Path, *, below: Sequence[str] = ("config",), folder: bool = False
    ) -> Path:
        """Let one piece of the user's login appear under a name, as a link to the real thing.

        Removing the folders removes the link alone. Nothing else of the user's own configuration becomes
        visible.

        Args:
            name: one segment.
            source: the file or folder behind it, by way of links or not.
            below: where the link is laid: one of the five folders, and folders in it that are made as needed.
            folder: whether the source is a folder; otherwise it is a regular file.

        Raises:
            FileError: `name_form`; `missing`, `not_regular` when the source is not of its kind;
                `exists_different`.
        """
        for segment in (*below, name):
            check_name(segment, "/".join(below) + "/")
        with reported(name, reading=True):
            target = Path(self._around.fs.resolve(str(source)))
            mode = self._around.fs.lstat(None, str(target)).st_mode
            if not (stat.S_ISDIR(mode) if folder else stat.S_ISREG(mode)):
                kind = "folder" if folder else "regular file"
                raise FileError(Fault(FileCode.NOT_REGULAR, name, f"The login file {name} is not a {kind}."))
        place = self.parent
        for segment in below:
            place /= segment
            lay_missing(self._around.fs, place)
        link = place / name
        with reported(name):
            try:
                link.symlink_to(target)
            except FileExistsError as error:
                sentence = f"{name} is already there in the session's configuration folder."
                raise FileError(Fault(FileCode.EXISTS_DIFFERENT, name, sentence)) from error
        return link
