"""Crash files of the command line: where something unforeseen happened, without what it happened to.

Source: trials.md, section 11. They go into `crash/` of the folder an examination or demonstration works in,
else of the state folder. A folder to be sealed or holding keys gets none: it must hold nothing but its own
files.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from skill_effectiveness.cli.door import checkout
from skill_effectiveness.cli.refusals import refusals
from skill_effectiveness.evidence import crash
from skill_effectiveness.evidence.crash import version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.evidence.surroundings import Surroundings

__all__ = ["RecordedError", "kept_in", "record", "version"]


class RecordedError(Exception):
    """Something unforeseen whose crash file has been written.

    Attributes:
        told: half a sentence that names the file.
    """

    def __init__(self, told: str) -> None:
        self.told = told
        super().__init__(told)


@contextmanager
def kept_in(root: PrivateRoot) -> Iterator[None]:
    """Within it, something unforeseen leaves its crash file in this folder.

    Raises:
        RecordedError: instead of what was unforeseen.
    """
    try:
        yield
    except refusals():
        raise
    except Exception as unforeseen:
        raise RecordedError(record(unforeseen, root.around, root)) from unforeseen


def record(unforeseen: BaseException, around: Surroundings, root: PrivateRoot | None = None) -> str:
    """Write the crash file and answer half a sentence naming it; it never raises.

    Args:
        unforeseen: what happened; see `evidence.crash.record` for what is kept of it.
        around: when it happened; where the state folder is.
        root: the command's own folder; tried first.
    """
    return crash.record(unforeseen, around, root, checkout=checkout())
