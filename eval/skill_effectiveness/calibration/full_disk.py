"""What people are told when an examination runs out of space: one thing, whatever was being written.

Each write says for itself what to do when there is no space. Once a folder is claimed, all of them mean the
same: make room, then go on. A command that is simply repeated would be refused then.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration.binding import CLAIM
from skill_effectiveness.calibration.errors import ExaminationRefused, RefusalCode
from skill_effectiveness.evidence.faults import EvidenceError, Fault, FileCode, FileError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.evidence.root import PrivateRoot

MAKE_ROOM: Final = "free some, then go on with --resume."


@contextmanager
def one_advice(out: PrivateRoot) -> Iterator[None]:
    """Within it, whatever ends for want of space in a claimed folder says so in one sentence.

    Raises:
        FileError: `no_space`, in place of one.
        ExaminationRefused: with the same code and field, in place of one that has no space as its cause.
    """
    try:
        yield
    except (FileError, ExaminationRefused) as error:
        where = place_without_space(error)
        if where is None or not _claimed(out):
            raise
        told = f"There is no space left for {where}; {MAKE_ROOM}"
        if isinstance(error, FileError):
            raise FileError(Fault(FileCode.NO_SPACE, where, told)) from error
        if error.code is RefusalCode.REPEAT_FAILED:
            raise  # it says so itself, beside which repeat it was
        raise ExaminationRefused(error.code, told, field=error.field) from error


def place_without_space(error: BaseException | None) -> str | None:
    """What there was no space for, if that is the error or what it came from."""
    while error is not None:
        if isinstance(error, EvidenceError) and error.code is FileCode.NO_SPACE:
            return error.faults[0].where
        error = error.__cause__
    return None


def _claimed(out: PrivateRoot) -> bool:
    try:
        return out.exists(CLAIM)
    except EvidenceError:
        return True  # then a resume is right as well
