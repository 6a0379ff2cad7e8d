"""Crash files: where something unforeseen happened, without what it happened to. (trials.md, section 11)"""

from __future__ import annotations

import platform
import sys
import traceback
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.root import PrivateRoot, RootKind, state_path
from skill_effectiveness.protocol.resources import source_checkout

if TYPE_CHECKING:
    from skill_effectiveness.evidence.surroundings import Surroundings


def record(unforeseen: BaseException, around: Surroundings) -> str:
    """Write the crash file under the state root and answer half a sentence naming it.

    The file holds frames and versions; exception texts are left out, since they may quote input.
    """
    when = around.now().strftime("%Y%m%dT%H%M%SZ")
    name = f"{when}-{around.entropy(4).hex()}.json"
    document = {
        "schema_version": 1,
        "error": type(unforeseen).__qualname__,
        "frames": [
            {"file": Path(frame.filename).name, "line": frame.lineno or 0, "function": frame.name}
            for frame in traceback.extract_tb(unforeseen.__traceback__)
        ],
        "versions": {
            "python": platform.python_version(),
            "platform": sys.platform,
            "skill-effectiveness": version(),
        },
    }
    try:
        with (
            PrivateRoot.create(
                state_path(around), RootKind.STATE, around=around, checkout=source_checkout()
            ) as state,
            state.child("crash", create=True) as folder,
        ):
            folder.publish(name, dump_line(document))
            return f"the crash file {folder.path}/{name} says where"
    except EvidenceError as refused:
        return f"no crash file could be written ({refused.code})"


def version() -> str:
    """The installed version of this distribution, or `unknown`."""
    try:
        return metadata.version("skill-effectiveness")
    except metadata.PackageNotFoundError:
        return "unknown"
