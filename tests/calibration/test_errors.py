from __future__ import annotations

import re
from pathlib import Path

import pytest

from skill_effectiveness.calibration import errors
from skill_effectiveness.calibration.errors import CalibrationCode, PairFault, RefusalCode

ROOM = Path(errors.__file__).parent
TESTS = Path(__file__).parent


def mentions(folder: Path, *words: str) -> list[str]:
    """Files of a folder, this one aside, that hold one of these words."""
    pattern = re.compile("|".join(rf"(?<![\w.]){re.escape(word)}(?!\w)" for word in words))
    files = sorted(path for path in folder.glob("*.py") if path.name != Path(__file__).name)
    return [path.name for path in files if pattern.search(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("code", [*CalibrationCode, *RefusalCode, *PairFault], ids=str)
def test_every_code_is_raised_and_tested(code: CalibrationCode | RefusalCode | PairFault) -> None:
    """E65 R6: a closed set holds nothing that nobody answers."""
    member = f"{type(code).__name__}.{code.name}"
    assert mentions(ROOM, member), "raised nowhere"
    assert mentions(TESTS, member, f'"{code.value}"'), "tested nowhere"


def test_the_words_of_a_root_are_the_words_of_the_wire() -> None:
    """R6: each code that section 3 names, and no other."""
    wire = [
        "invalid_json",
        "request_too_large",
        "invalid_request",
        "protocol_mismatch",
        "invalid_request_id",
        "unsupported_action",
        "invalid_payload",
        "unsupported_provider",
        "invalid_executable",
        "invalid_provider_configuration",
        "invalid_field",
        "invalid_timeout",
        "invalid_cost_policy",
        "invalid_artifact_root",
        "invalid_sample_set",
        "runtime_drift",
        "sample_lock_unavailable",
        "artifact_root_quarantined",
        "finalize_already_started",
        "sample_already_exists",
        "sample_set_mismatch",
        "provider_identity_unavailable",
        "model_call_unresolved",
        "sample_publication_failed",
        "sample_invalid",
        "sample_finality_unknown",
        "sample_intent_mismatch",
        "sample_binding_mismatch",
        "artifact_root_mismatch",
        "fixture_drift",
        "finalization_recovery_required",
        "runtime_manifest_unavailable",
        "fixture_invalid",
        "internal_error",
    ]
    assert len(wire) == 34
    assert [code.value for code in CalibrationCode] == wire
