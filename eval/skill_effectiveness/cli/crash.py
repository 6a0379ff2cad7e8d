"""Crash files: where something unforeseen happened, without what it happened to.

Source: trials.md, section 11. They go into `crash/` of the folder an examination or demonstration works in,
else of the state folder. A folder to be sealed or holding keys gets none: it must hold nothing but its own
files.
"""

from __future__ import annotations

import platform
import sys
import traceback
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.cli.refusals import REFUSED
from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.root import PrivateRoot, RootKind, state_path
from skill_effectiveness.protocol.resources import source_checkout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.evidence.surroundings import Surroundings

FOLDER: Final = "crash"


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
    except REFUSED:
        raise
    except Exception as unforeseen:
        raise RecordedError(record(unforeseen, root.around, root)) from unforeseen


def record(unforeseen: BaseException, around: Surroundings, root: PrivateRoot | None = None) -> str:
    """Write the crash file and answer half a sentence naming it; it never raises.

    Args:
        unforeseen: what happened. Its text is left out, since it may quote input; frames, the names of the
            errors and versions are kept.
        around: when it happened; where the state folder is.
        root: the command's own folder; tried first.
    """
    try:
        when = around.now().strftime("%Y%m%dT%H%M%SZ")
        name = f"{when}-{around.entropy(4).hex()}.json"
        data = dump_line(_document(unforeseen))
        try:
            place = _publish(root, name, data) if root is not None else _publish_in_state(around, name, data)
        except EvidenceError:
            if root is None:
                raise
            place = _publish_in_state(around, name, data)
    except EvidenceError as refused:
        return f"no crash file could be written ({refused.code})"
    except Exception as again:  # noqa: BLE001 - the first error is what the person must hear about
        return f"no crash file could be written ({type(again).__qualname__})"
    return f"the crash file {place} says where"


def version() -> str:
    """The installed version of this distribution, or `unknown`."""
    try:
        return metadata.version("skill-effectiveness")
    except metadata.PackageNotFoundError:
        return "unknown"


def _document(unforeseen: BaseException) -> dict[str, object]:
    return {
        "schema_version": 1,
        "errors": [_error(each) for each in _chain(unforeseen)],
        "versions": {
            "python": platform.python_version(),
            "platform": sys.platform,
            "skill-effectiveness": version(),
        },
    }


def _chain(unforeseen: BaseException) -> Iterator[BaseException]:
    """The error and what it came from, the last first; a chain may be a ring."""
    seen: set[int] = set()
    error: BaseException | None = unforeseen
    while error is not None and id(error) not in seen:
        yield error
        seen.add(id(error))
        error = error.__cause__ or error.__context__


def _error(error: BaseException) -> dict[str, object]:
    return {
        "error": type(error).__qualname__,
        "frames": [
            {"file": Path(frame.filename).name, "line": frame.lineno or 0, "function": frame.name}
            for frame in traceback.extract_tb(error.__traceback__)
        ],
    }


def _publish(root: PrivateRoot, name: str, data: bytes) -> str:
    with root.child(FOLDER, create=True) as folder:
        folder.publish(name, data)
        return f"{folder.path}/{name}"


def _publish_in_state(around: Surroundings, name: str, data: bytes) -> str:
    with PrivateRoot.create(
        state_path(around), RootKind.STATE, around=around, checkout=source_checkout()
    ) as state:
        return _publish(state, name, data)
