"""Codex: the skills that a checkout holds, named so that they can be switched off for whoever reads it.

Source: providers.md P13 and section 2; field-failures.md F31, F32. Facts were observed on codex 0.171.0.

A prompt that holds `$name` makes the program put the skill of that name beside it, without any event, whether
or not skills are told to the model. What a reader is asked holds words of the checkout's own, a change for
example, and so could call one up. The program has no setting that switches all skills off, but one for each
file.
"""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.fsops import closing
from skill_effectiveness.providers.asking import CannotAskError
from skill_effectiveness.providers.calls import WarningCode
from skill_effectiveness.providers.mount import SKILL_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.evidence.fsops import FileSystem

ROOTS: Final = (".agents/skills", ".codex/skills")
"""Where the program looks for skills in its working folder."""

FOLDERS_MOST: Final = 5_000
"""Folders that are looked at; more than the program does."""
SETTING_BYTES: Final = 100 * 1024
"""Longest setting; the kernel takes 128 KiB for one argument."""


def without_skills(fs: FileSystem, checkout: Path) -> tuple[str, ...]:
    """The arguments that switch the skills of a checkout off; none where it has none.

    Raises:
        CannotAskError: it has more than could be switched off.
        FileError: it cannot be looked through.
    """
    files = sorted({path for root in ROOTS for path in _skills_below(fs, checkout / root)})
    if not files:
        return ()
    switched = ",".join(f"{{path={_toml(path)},enabled=false}}" for path in files)
    if len(switched.encode(errors="surrogateescape")) > SETTING_BYTES:
        raise _too_much()
    return ("-c", f"skills.config=[{switched}]")


def _skills_below(fs: FileSystem, root: Path) -> Iterator[str]:
    """The files of skills below a folder, without links; links to folders are followed, as by the program."""
    found = _resolved(fs, root)
    waiting = [] if found is None else [found]
    seen = set(waiting)
    while waiting:
        folder = waiting.pop()
        for name in _names(fs, folder):
            path = _resolved(fs, folder / name)
            if path is None:
                continue
            if stat.S_ISDIR(_mode(fs, path)):
                if path not in seen:
                    seen.add(path)
                    waiting.append(path)
            elif name.casefold() == SKILL_FILE.casefold():
                yield str(path)
        if len(seen) > FOLDERS_MOST:
            raise _too_much()


def _resolved(fs: FileSystem, path: Path) -> Path | None:
    """What is behind a path; `None` where nothing is, as behind a link into the void."""
    try:
        with reported("the skills of the checkout", reading=True):
            return Path(fs.resolve(str(path)))
    except FileError as error:
        if error.code in {FileCode.MISSING, FileCode.NOT_REGULAR, FileCode.FILE_SYMLINK}:
            return None
        raise


def _names(fs: FileSystem, folder: Path) -> list[str]:
    """The names in a folder; none in a file."""
    if not stat.S_ISDIR(_mode(fs, folder)):
        return []
    with (
        reported("the skills of the checkout", reading=True),
        closing(fs, fs.open_dir(None, str(folder))) as opened,
    ):
        return sorted(fs.listdir(opened))


def _mode(fs: FileSystem, path: Path) -> int:
    with reported("the skills of the checkout", reading=True):
        return fs.lstat(None, str(path)).st_mode


def _toml(path: str) -> str:
    """A path in quotation marks."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise _too_much() from None
    return json.dumps(path, ensure_ascii=False).replace("\x7f", "\\u007f")


def _too_much() -> CannotAskError:
    sentence = (
        "The checkout has more skills, or such with stranger names, than can be switched off for a reader; "
        f"take them out of {' and '.join(ROOTS)}."
    )
    return CannotAskError(WarningCode.SESSION_UNAVAILABLE, sentence)
