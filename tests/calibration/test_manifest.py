from __future__ import annotations

import pytest

from skill_effectiveness.calibration.errors import CalibrationCode, CalibrationError
from skill_effectiveness.calibration.manifest import runtime_manifest, runtime_manifest_hash
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.launch.manifest import ManifestError


def test_the_hash_is_over_the_rest_of_the_manifest() -> None:
    """By the canonical form of `evidence`, which is not the code that made it."""
    manifest = runtime_manifest()
    stated = manifest.pop("manifest_hash")
    assert runtime_manifest_hash() == stated == digest_object(manifest)


def test_it_names_the_code_of_this_room_and_the_judged_bank() -> None:
    entries = runtime_manifest()["entries"]
    assert isinstance(entries, list)
    paths = {entry["path"] for entry in entries}
    assert {
        "skill_effectiveness/__init__.py",
        "skill_effectiveness/calibration/sample.py",
        "skill_effectiveness/providers/simulated.py",
        "fixtures/reviewer-calibration-cases.json",
        "fixtures/reviewer-calibration-known-answers.json",
        "fixtures/pilot-gates.json",
    } <= paths
    assert not any("/cli/" in path for path in paths)


def test_an_entry_that_cannot_be_trusted_is_said_in_the_words_of_this_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken() -> dict[str, object]:
        raise ManifestError("An entry is gone.")

    monkeypatch.setattr("skill_effectiveness.calibration.manifest.calibration_manifest", broken)
    with pytest.raises(CalibrationError, match="An entry is gone") as caught:
        runtime_manifest_hash()
    assert caught.value.code is CalibrationCode.RUNTIME_MANIFEST_UNAVAILABLE
