"""Where the frozen protocol lies, and reading its bytes.

The same folders (`arms`, `fixtures`, `schemas`) stand at the root of a checkout and, in an installed
distribution, under `frozen` inside the package. Everything else in this room goes through `read_frozen`.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.launch import manifest
from skill_effectiveness.launch.faults import ManifestError
from skill_effectiveness.protocol.errors import fixture_invalid

if TYPE_CHECKING:
    from skill_effectiveness.evidence.fsops import FileSystem

FROZEN_FILE_LIMIT: Final = 4_194_304
"""Bytes; the largest frozen document is under a tenth of this."""

_PACKAGE: Final = Path(__file__).resolve().parents[1]
RESTORE: Final = "restore the committed file, or install the package again."
"""What to do about every unusable frozen input."""


def frozen_folder(package: Path = _PACKAGE) -> Path:
    """The folder that holds `fixtures`: the one whose files the runtime manifest hashes.

    Args:
        package: folder of the import package; the default is this installation's own.

    Raises:
        ProtocolError: `fixture_invalid` when there is none.
    """
    try:
        return manifest.frozen_folder(package)
    except ManifestError as error:
        raise fixture_invalid("fixtures", f"the frozen protocol is not beside the code; {RESTORE}") from error


def read_frozen(fs: FileSystem, relative: str) -> bytes:
    """The bytes of one frozen file.

    Args:
        fs: file operations.
        relative: forward-slashed name below the frozen folder, for example `fixtures/pilot-gates.json`.

    Raises:
        ProtocolError: `fixture_invalid` when the file is missing, is not a regular file or is over
            `FROZEN_FILE_LIMIT`.
        ValueError: `relative` leaves the frozen folder.
    """
    name = PurePosixPath(relative)
    if name.is_absolute() or not name.parts or ".." in name.parts:
        raise ValueError(f"not a name below the frozen folder: {relative!r}")
    try:
        return read_public(fs, frozen_folder() / name, FROZEN_FILE_LIMIT)
    except EvidenceError as error:
        raise fixture_invalid(
            relative, f"the frozen file cannot be read ({error.code}); {RESTORE}"
        ) from error
