"""The runtime manifest of a study: every file of code and configuration that decides what it comes to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from skill_effectiveness.calibration.errors import CalibrationCode, CalibrationError
from skill_effectiveness.launch.manifest import (
    PACKAGE,
    ManifestError,
    build_manifest,
    calibration_dependencies,
    calibration_entries,
    frozen_folder,
)

REVISION: Final = "skill-effectiveness.study.v1"
_ROOMS: Final = ("trials", "studies")
_DEPENDENCIES: Final = ("numpy", "pyarrow", "ruamel.yaml", "scipy")


def runtime_manifest_hash() -> str:
    """Its hash, read anew.

    Raises:
        CalibrationError: `runtime_manifest_unavailable`.
    """
    package = Path(__file__).resolve().parents[1]
    try:
        manifest = build_manifest(
            package_folder=package,
            frozen_folder=frozen_folder(package),
            entries=(
                *calibration_entries(),
                *(f"{PACKAGE}/{room}/**/*.py" for room in _ROOMS),
                "arms/*.json",
                "arms/profile/*.json",
            ),
            dependencies=(*calibration_dependencies(), *_DEPENDENCIES),
            protocol_revision=REVISION,
            interpreter=Path(sys.executable),
        )
    except ManifestError as error:
        raise CalibrationError(CalibrationCode.RUNTIME_MANIFEST_UNAVAILABLE, str(error)) from error
    return str(manifest["manifest_hash"])
