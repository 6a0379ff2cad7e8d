"""The hash of everything an examination runs on: our code, the frozen inputs, interpreter and distributions.

`launch.manifest` names and reads them; this module turns its answer into the words of this room.
"""

from __future__ import annotations

from skill_effectiveness.calibration.errors import CalibrationCode, CalibrationError
from skill_effectiveness.launch.manifest import ManifestError, calibration_manifest


def runtime_manifest() -> dict[str, object]:
    """The whole runtime manifest (calibration.md, section 3), read anew.

    Raises:
        CalibrationError: `runtime_manifest_unavailable`.
    """
    try:
        return calibration_manifest()
    except ManifestError as error:
        raise CalibrationError(CalibrationCode.RUNTIME_MANIFEST_UNAVAILABLE, str(error)) from error


def runtime_manifest_hash() -> str:
    """Its hash alone; errors as `runtime_manifest`."""
    return str(runtime_manifest()["manifest_hash"])
