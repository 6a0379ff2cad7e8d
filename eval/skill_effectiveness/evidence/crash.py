"""Crash files: where something unforeseen happened, without what it happened to.

Source: trials.md, section 11; calibration.md, section 3 (`internal_error`). They go into `crash/` of the
folder a program works in, else of the state folder.
"""

from __future__ import annotations

import platform
import sys
import traceback
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.root import PrivateRoot, RootKind, state_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.evidence.surroundings import Surroundings

FOLDER: Final = "crash"


def record(
    unforeseen: BaseException, around: Surroundings, root: PrivateRoot | None = None, *, checkout: Path | None
) -> str:
    """Write the crash file and answer half a sentence naming it; it never raises.

    Args:
        unforeseen: what happened. Its text is left out, since it may quote input; frames, the names of the
            errors and versions are kept.
        around: when it happened; where the state folder is.
        root: the program's own folder; tried first.
        checkout: the source checkout, from which the state folder keeps away.
    """
    try:
        when = around.now().strftime("%Y%m%dT%H%M%SZ")
        name = f"{when}-{around.entropy(4).hex()}.json"
        data = dump_line(_document(unforeseen))
        try:
            place = (
                _publish_in_state(around, checkout, name, data)
                if root is None
                else _publish(root, name, data)
            )
        except EvidenceError:
            if root is None:
                raise
            place = _publish_in_state(around, checkout, name, data)
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


def _publish_in_state(around: Surroundings, checkout: Path | None, name: str, data: bytes) -> str:
    with PrivateRoot.create(state_path(around), RootKind.STATE, around=around, checkout=checkout) as state:
        return _publish(state, name, data)
