"""Documents that a person named on the command line: their faults say in which file they are."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.faults import DocumentError, Fault, StrictError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SHOWN: Final = 5


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the file's name, and the pointer of what is at fault in it, before the sentence.

    Raises:
        StrictError, DocumentError: as they were raised inside, kind and codes the same.
    """
    try:
        yield
    except (StrictError, DocumentError) as error:
        first, *others = (_named(path.name, fault) for fault in error.faults[:_SHOWN])
        raise type(error)(first, *others) from error


def _named(name: str, fault: Fault) -> Fault:
    place = f" at {fault.where}" if fault.where.startswith("/") else ""
    return Fault(fault.code, fault.where, f"{name}{place}: {fault.sentence}")
