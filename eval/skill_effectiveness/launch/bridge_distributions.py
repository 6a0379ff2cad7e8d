"""The distributions that the bridge's actions can load, as they are installed: name, version, RECORD.

Source: bridge.md section 3 (`dependencies`). Where a distribution lies and which version it has is told by
the name of its `.dist-info` folder (packaging.python.org, "Recording installed projects"), so nothing of it
is imported.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.launch.bridge_manifest import DEPENDENCIES, Reading
from skill_effectiveness.launch.faults import ManifestError
from skill_effectiveness.launch.library import site_folders
from skill_effectiveness.launch.trusted import read_lone_file

if TYPE_CHECKING:
    from collections.abc import Sequence

INFO: Final = ".dist-info"


def bridge_dependencies() -> list[dict[str, str]]:
    """`{name, version, record_sha256}` of each, sorted by name.

    Raises:
        ManifestError: one is not installed, or twice, or its RECORD cannot be trusted.
    """
    folders = site_folders()
    found = _installed(folders)
    rows = []
    for name in DEPENDENCIES:
        homes = found.get(name, [])
        if len(homes) != 1:
            raise ManifestError(
                f"The distribution {name} is installed {len(homes)} times in the interpreter's own site "
                "folder; install it once, with pip, in this environment."
            )
        version = homes[0].name.removesuffix(INFO).partition("-")[2]
        if not version or not version.isascii():
            raise ManifestError(f"The distribution {name} has no version that can be read; install it again.")
        record = read_lone_file(homes[0] / "RECORD")
        if f"\n{homes[0].name}/RECORD," not in f"\n{record.decode('utf-8', 'replace')}":
            raise ManifestError(f"The RECORD of {name} is of another version; install it again.")
        digest = f"sha256:{hashlib.sha256(record).hexdigest()}"
        rows.append({"name": name, "version": version, "record_sha256": digest})
    return rows


def _installed(folders: Sequence[Path]) -> dict[str, list[Path]]:
    """The `.dist-info` folders by the distribution's name as PEP 503 compares it."""
    found: dict[str, list[Path]] = {}
    for folder in folders:
        try:
            names = os.listdir(folder)  # noqa: PTH208 - names, not paths
        except OSError:
            continue
        for entry in names:
            if entry.endswith(INFO):
                name = re.sub(r"[-_.]+", "-", entry.partition("-")[0]).lower()
                found.setdefault(name, []).append(folder / entry)
    return found


def bound_by_bridge() -> dict[str, object]:
    """Entries and dependencies of the bridge as it is installed here, for an importer.

    Raises:
        ManifestError: see `Reading` and `bridge_dependencies`.
    """
    checkout = Path(__file__).resolve().parents[3]
    return {**Reading(str(checkout)).manifest, "dependencies": bridge_dependencies()}
