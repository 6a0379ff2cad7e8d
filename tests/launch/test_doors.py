"""The words in which a door turns requests away are those of its contract; every reason has one."""

from __future__ import annotations

import pytest

from skill_effectiveness.calibration.errors import CalibrationCode
from skill_effectiveness.launch import faults
from skill_effectiveness.launch.doors import DOORS, Words
from skill_effectiveness.launch.faults import LaunchError


def reasons() -> list[type[LaunchError]]:
    return [
        kind
        for kind in vars(faults).values()
        if isinstance(kind, type) and issubclass(kind, LaunchError) and kind is not LaunchError
    ]


def test_the_reasons_are_closed() -> None:
    assert sorted(kind.code for kind in reasons()) == [
        "code_unloadable",
        "runtime_drift",
        "runtime_manifest_unavailable",
        "unforeseen",
        "wire_broken",
    ]


@pytest.mark.parametrize("name", sorted(DOORS))
def test_every_reason_has_its_words(name: str) -> None:
    assert set(DOORS[name].words) == set(reasons())


def test_the_words_of_calibration() -> None:
    """calibration.md section 3: statuses and exit codes go together."""
    words = DOORS["calibration"].words
    assert words[faults.DriftError] == Words("blocked", "runtime_drift", 3)
    assert words[faults.ManifestError] == Words("error", "runtime_manifest_unavailable", 4)
    assert {words[kind] for kind in reasons()} == {
        Words("blocked", "runtime_drift", 3),
        Words("error", "runtime_manifest_unavailable", 4),
        Words("error", "internal_error", 4),
    }
    known = {str(code) for code in CalibrationCode} | {"internal_error"}
    assert {word.reason_code for word in words.values()} <= known
