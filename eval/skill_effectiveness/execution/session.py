"""Private folders of one session of a program, gone when it is over.

Source: providers.md P3, section 2.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import EvidenceError, Fault, FileCode, FileError
from skill_effectiveness.evidence.fsops import remove_tree
from skill_effectiveness.evidence.names import check_name
from skill_effectiveness.evidence.root import PrivateRoot, RootKind

if TYPE_CHECKING:
    from types import TracebackType

    from skill_effectiveness.evidence.surroundings import Surroundings

FOLDERS: Final = ("home", "config", "data", "tmp", "work")
NAME_BYTES: Final = 8


class SessionFolders:
    """Five private folders beside each other, made on entering and removed on leaving, whatever happens.

    They are siblings, so the temporary folder holds none of the others: a program may refuse to keep
        its configuration below the temporary folder. Their parent is fresh and 0700, below `TMPDIR` of
        the surroundings or `/tmp`.

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

    def __enter__(self) -> Self:
        """Make the folders.

        Raises:
            FileError, RootError: the base is missing, or its folders may be changed by others;
                nothing of it stays.
        """
        around = self._around
        base = self._base or Path(around.environ.get("TMPDIR") or "/tmp")  # noqa: S108 - the name below is drawn and 0700
        with reported("the temporary folder", reading=True):
            resolved = Path(around.fs.resolve(str(base)))
        self._made = resolved / f"skill-effectiveness-{around.entropy(NAME_BYTES).hex()}"
        try:
            # Kind `repo` is every rule of a private root but the distance from a checkout, which a
            # temporary folder may hold.
            with PrivateRoot.create(self._made, RootKind.REPO, around=around, checkout=None) as root:
                for name in FOLDERS:
                    root.child(name, create=True).close()
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
        if self._made is not None:
            remove_tree(self._around.fs, self._made)

    @property
    def parent(self) -> Path:
        """The folder that holds the five."""
        if self._made is None:
            raise ValueError("session folders exist inside their `with` block only")
        return self._made

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

    def link_login(self, name: str, source: Path) -> Path:
        """Let one login file of the user appear in `config` under a name, as a link to the real file.

        Removing the folders removes the link alone. Nothing else of the user's own configuration becomes
        visible.

        Raises:
            FileError: `name_form`; `missing`, `not_regular` when the source is no regular file;
                `exists_different`.
        """
        check_name(name, "config/")
        with reported(name, reading=True):
            target = Path(self._around.fs.resolve(str(source)))
            if not target.is_file():
                raise FileError(
                    Fault(FileCode.NOT_REGULAR, name, f"The login file {name} is not a regular file.")
                )
        link = self.config / name
        with reported(name):
            try:
                link.symlink_to(target)
            except FileExistsError as error:
                sentence = f"{name} is already there in the session's configuration folder."
                raise FileError(Fault(FileCode.EXISTS_DIFFERENT, name, sentence)) from error
        return link
