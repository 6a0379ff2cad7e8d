"""The pieces of a user's login that a session may see, and what keeps one from being seen.

Source: providers.md P3 and sections 2 to 5; field-failures.md F32.

A login is made known by a link, because programs renew their tokens in place. Nothing of one is ever read.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import Fault, FileCode, FileError
from skill_effectiveness.evidence.fsops import closing, demand_regular

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skill_effectiveness.evidence.faults import Code
    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.execution import SessionFolders


@dataclass(frozen=True, slots=True)
class Login:
    """One file or folder of the user's login.

    Attributes:
        source: where it would be, absolute; it need not be there.
        where: what people call it, by the variables that lead to it and never by a path, such as
            `login.json of EXAMPLE_HOME`.
        below: where the session sees it: one of its folders, and folders in that.
        folder: whether it is a folder; otherwise it is a regular file.
    """

    source: Path
    where: str
    below: tuple[str, ...] = ("config",)
    folder: bool = False

    @property
    def name(self) -> str:
        """What it is called, at both ends of the link."""
        return self.source.name


_LOGIN_BYTES: Final = 1_048_576
"""More than any login file holds."""
_FAULTS: Final[Mapping[Code, str]] = {
    FileCode.NOT_REGULAR: "is not a regular file; move away what is there and log in.",
    FileCode.FILE_SYMLINK: "is a link that leads back to itself; remove it and log in.",
    FileCode.NOT_READABLE: "cannot be read; give yourself read permission.",
    FileCode.FILE_SIZE: "is larger than any login; move it away and log in.",
}
_NO_FOLDER: Final = "is not a folder; move away what is there and log in."
_UNSEEN: Final = "cannot be looked at just now; try again."


def check_logins(fs: FileSystem, logins: Iterable[Login]) -> None:
    """Return only if each of them could be seen by a session, or is not there.

    Links are followed, as the session's own link to it is.

    Raises:
        FileError: something is there and cannot be a login.
    """
    for login in logins:
        try:
            (_demand_folder if login.folder else _demand_file)(fs, login)
        except FileError as error:
            if error.code is FileCode.MISSING:
                continue
            told = _FAULTS.get(error.code, _UNSEEN)
            if login.folder and error.code is FileCode.NOT_REGULAR:
                told = _NO_FOLDER
            code, where = error.faults[0].code, login.where
            raise FileError(Fault(code, where, f"The login file {where} {told}")) from error


def _demand_file(fs: FileSystem, login: Login) -> None:
    """Look at a login file without reading it.

    Raises:
        FileError: `missing`, or what keeps it from being one.
    """
    where = login.where
    with reported(where, reading=True):
        target = fs.resolve(str(login.source))
        demand_regular(fs.lstat(None, target), where)
        with closing(fs, fs.open_read(None, target)) as fd:
            opened = fs.fstat(fd)
    demand_regular(opened, where)
    if opened.st_size > _LOGIN_BYTES:
        sentence = f"{where} is larger than {_LOGIN_BYTES} bytes, more than any login file holds."
        raise FileError(Fault(FileCode.FILE_SIZE, where, sentence))


def _demand_folder(fs: FileSystem, login: Login) -> None:
    with reported(login.where, reading=True):
        target = fs.resolve(str(login.source))
        if not stat.S_ISDIR(fs.lstat(None, target).st_mode):
            sentence = f"{login.where} is not a folder."
            raise FileError(Fault(FileCode.NOT_REGULAR, login.where, sentence))
        with closing(fs, fs.open_dir(None, target)):
            pass


def link_logins(session: SessionFolders, logins: Iterable[Login]) -> tuple[Path, ...]:
    """Let those of them that are there, and nothing else of the user's, be seen by a session.

    Returns:
        What the links lead to, without links.

    Raises:
        FileError: as `SessionFolders.link_login`, but for one that is missing.
    """
    linked = []
    for login in logins:
        try:
            link = session.link_login(login.name, login.source, below=login.below, folder=login.folder)
        except FileError as error:
            if error.code is not FileCode.MISSING:
                raise
        else:
            linked.append(Path(session.around.fs.readlink(None, str(link))))
    return tuple(linked)
