"""What one call starts, as a record: arguments, environment and every file that is laid for it.

Source: studies.md section 4 (treatment diff), S35; field-failures.md F33.

`CommandLine` makes a `Launch` from what an adapter asks for, and starts the program from this record and from
nothing else; so what can be looked at before is what happens. Two launches of one program are compared by
their shapes: the folders of a session have other names each time, and in a shape they are called `{session}`,
the working copy `{copy}`, the program `{program}` and the prompt `{prompt}`.

What a shape does not have: the variable by which `execution` marks every child of ours, and the sandbox
around the program, which is made of the folders that a shape does have. What the program itself left in its
folders when it was asked for its version is no part of what was laid.
"""

from __future__ import annotations

import json
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_bytes, digest_chunks
from skill_effectiveness.evidence.chunks import file_chunks, regular_file
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.fsops import read_all
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.evidence.tree import walk_tree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.tree import Found
    from skill_effectiveness.execution import SessionFolders

SESSION: Final = "{session}"
COPY: Final = "{copy}"
PROGRAM: Final = "{program}"
PROMPT: Final = "{prompt}"
FOLDER: Final = "folder"
"""The word for a folder in a tree."""

_OTHER: Final = "no file"
_LAID_BYTES: Final = 64 * 1024 * 1024
"""Largest file that is laid in a session."""

Names = tuple[tuple[str, str], ...]
"""What is called otherwise in a shape: the text as it is, and its name."""


def file_word(data: bytes, *, executable: bool = False) -> str:
    """The word for a file in a tree."""
    return digest_word(digest_bytes(data), executable=executable)


def digest_word(digest: str, *, executable: bool = False) -> str:
    """The word for a file whose bytes have this digest."""
    return f"{'program' if executable else 'file'} {digest}"


def link_word(target: str) -> str:
    """The word for a link, which is never followed."""
    return f"link {target}"


@dataclass(frozen=True, slots=True)
class Laying:
    """What lay in a session at one moment: every path below its folders, and below a working copy.

    Attributes:
        tree: the word for each path, by path; a path begins with `{session}` or `{copy}`.
    """

    tree: Mapping[str, str] = field(repr=False)

    def since(self, before: Laying) -> Laying:
        """What was laid or changed after another moment; a working copy counts as a whole."""
        return Laying(
            {
                path: word
                for path, word in self.tree.items()
                if path.startswith(f"{COPY}/") or before.tree.get(path) != word
            }
        )


def names_of(session: SessionFolders, copy: Path | None = None) -> Names:
    """What the folders of a call are called, the longest path first.

    A path may stand in a JSON text, where it may be spelt otherwise.
    """
    named = [(str(session.parent), SESSION), *([] if copy is None else [(str(copy), COPY)])]
    spelt = {(form, name) for path, name in named for form in (path, json.dumps(path)[1:-1])}
    return tuple(sorted(spelt, key=lambda pair: (-len(pair[0]), pair)))


def look(
    fs: FileSystem,
    session: SessionFolders,
    copy: Path | None = None,
    withheld: Mapping[Path, str] | None = None,
) -> Laying:
    """What lies in a session, and in a working copy, now; no link is followed.

    Args:
        fs: file operations.
        session: the folders.
        copy: absolute; `None` leaves it out.
        withheld: files with a credential of the user's in them, and what stands for their digest;
            `None` for none.

    Raises:
        FileError, TreeError: something cannot be read, or is nested too deep.
    """
    names = names_of(session, copy)
    tree: dict[str, str] = {}
    kept = {str(path): text for path, text in (withheld or {}).items()}
    for folder in session.folders:
        for found in walk_tree(fs, folder):
            text = kept.get(f"{folder}/{found.path}")
            word = _word(fs, found, names) if text is None else f"file {text}"
            tree[f"{SESSION}/{folder.name}/{found.path}"] = word
    for found in () if copy is None else walk_tree(fs, copy):
        tree[f"{COPY}/{found.path}"] = _word(fs, found, None)
    return Laying(tree)


def _word(fs: FileSystem, found: Found, names: Names | None) -> str:
    """The word for what was found; `names` are what is called otherwise in its bytes."""
    where, mode = printable(found.path), found.status.st_mode
    if stat.S_ISDIR(mode):
        return FOLDER
    if stat.S_ISLNK(mode):
        with reported(where, reading=True):
            return link_word(_named(fs.readlink(found.parent, found.name), names or ()))
    if not stat.S_ISREG(mode):
        return _OTHER
    executable = bool(mode & (stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH))
    if names is None:
        chunks = file_chunks(fs, found.parent, found.name, where)
        return digest_word(digest_chunks(chunks), executable=executable)
    with regular_file(fs, found.parent, found.name, where) as fd:
        data = read_all(fs, fd, _LAID_BYTES, where)
    for text, name in names:
        data = data.replace(text.encode(), name.encode())
    return file_word(data, executable=executable)


def _named(text: str, names: Names) -> str:
    for form, name in names:
        text = text.replace(form, name)
    return text


def _read(stdin: bytes, prompt: str) -> str:
    if not stdin:
        return ""
    return PROMPT if stdin == prompt.encode() else digest_bytes(stdin)


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """A launch as it can be compared with another one of the same program.

    Attributes:
        argv: the arguments, the program first.
        folder: where it runs.
        stdin: `{prompt}`, or the digest of something else; empty where there is nothing to read.
        environment: every variable.
        writable: what it may write inside a sandbox; `None` where there is to be none.
        tree: the word for every path that was laid.
        users: names of variables whose values are the user's or the task's, not the adapter's.
        logins: paths at which a login of the user's is seen.
    """

    argv: tuple[str, ...] = field(repr=False)
    folder: str
    stdin: str
    environment: Mapping[str, str] = field(repr=False)
    writable: tuple[str, ...] | None
    tree: Mapping[str, str] = field(repr=False)
    users: frozenset[str] = frozenset()
    logins: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Launch:
    """What one call starts.

    Attributes:
        argv: the program by absolute path, and its arguments.
        folder: its working folder.
        stdin: what it can read before its stdin is closed.
        environment: the whole of it, but for the mark of `execution`.
        writable: see `Asked`.
        names: what the folders of the call are called in a shape.
        laid: what was laid for it; `None` where nobody asked for that.
        users, logins: see `LaunchShape`.
    """

    argv: tuple[str, ...] = field(repr=False)
    folder: Path
    stdin: bytes = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    writable: tuple[Path, ...] | None = None
    names: Names = ()
    laid: Laying | None = None
    users: frozenset[str] = frozenset()
    logins: frozenset[str] = frozenset()

    def shape(self, prompt: str) -> LaunchShape:
        """The launch without what is another one each time.

        Args:
            prompt: that the call has.

        Raises:
            ValueError: nobody looked at what was laid.
        """
        if self.laid is None:
            raise ValueError("a launch has a shape only where somebody looked at what was laid for it")
        _, *words = self.argv
        return LaunchShape(
            argv=(PROGRAM, *(PROMPT if word == prompt else _named(word, self.names) for word in words)),
            folder=_named(str(self.folder), self.names),
            stdin=_read(self.stdin, prompt),
            environment={name: _named(value, self.names) for name, value in self.environment.items()},
            writable=None
            if self.writable is None
            else tuple(_named(str(place), self.names) for place in self.writable),
            tree=self.laid.tree,
            users=self.users,
            logins=self.logins,
        )


@dataclass(frozen=True, slots=True)
class Treatment:
    """What a mount changes of a launch, as an adapter declares it; whatever else differs is no treatment.

    In a pair, the first is what there is without the mount and the second what there is with it; `None` is
    nothing at all. Paths and values are those of a shape.

    Attributes:
        skills: the folder in which every skill lies, under its name.
        instructions: the file of the instructions.
        options: arguments of two words, the option and its value, by option.
        environment: variables by name.
        files: the adapter's own files, by path.
    """

    skills: str
    instructions: str
    options: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    environment: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    files: Mapping[str, tuple[bytes | None, bytes | None]] = field(default_factory=dict)
