"""Every word of the rooms below has one of ours, and the reserved ones are nobody's."""

from __future__ import annotations

import pytest

from skill_effectiveness.bridge import codes
from skill_effectiveness.bridge.codes import refusal_of
from skill_effectiveness.bridge.verdicts import CODES
from skill_effectiveness.bridge.words import RESERVED, BridgeError, ReasonCode, Status
from skill_effectiveness.evidence.faults import (
    Fault,
    FileCode,
    FileError,
    LockCode,
    LockError,
    RootCode,
    RootError,
)
from skill_effectiveness.launch.doors import DOORS
from skill_effectiveness.launch.faults import ManifestError, UnloadableError
from skill_effectiveness.protocol.errors import ProtocolCode, ProtocolError
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.gate_words import Stage
from skill_effectiveness.trials.pilot_errors import PilotCode
from tests.support.private import REPOSITORY

pytestmark = pytest.mark.slow


def test_every_fault_of_a_trial_bundle_and_lock_has_a_code() -> None:
    """B23: the tables are whole."""
    assert set(codes.TRIAL) == set(TrialCode)
    assert set(codes.PILOT) == set(PilotCode)
    assert set(codes.LOCK) == set(LockCode)
    assert set(CODES) == set(Stage) - {Stage.GATE}


def test_only_versions_are_stale() -> None:
    """B22: of all faults of a trial."""
    stale = [code for code, reason in codes.TRIAL.items() if reason is ReasonCode.STALE_STATE]
    assert stale == [TrialCode.VERSION_CONFLICT]
    assert ReasonCode.STALE_STATE not in {*codes.PILOT.values(), *codes.LOCK.values(), *CODES.values()}


def test_the_reserved_codes_are_never_emitted() -> None:
    """B23: nothing but their definition names them."""
    room = REPOSITORY / "eval" / "skill_effectiveness"
    for path in [*room.glob("bridge/*.py"), *room.glob("launch/*.py"), REPOSITORY / "bridge.py"]:
        if path.name != "words.py":
            assert "cost_policy" not in path.read_text(encoding="utf-8").casefold()
    emitted = {*codes.TRIAL.values(), *codes.PILOT.values(), *codes.LOCK.values(), *CODES.values()}
    assert not emitted & RESERVED


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FileError(Fault(FileCode.NO_SPACE, "x", "s")), ReasonCode.UNKNOWN_FINALITY),
        (FileError(Fault(FileCode.IO_ERROR, "x", "s")), ReasonCode.UNKNOWN_FINALITY),
        (FileError(Fault(FileCode.FILE_MODE, "x", "s")), ReasonCode.EVIDENCE_INVALID),
        (RootError(Fault(RootCode.ROOT_MODE, "x", "s")), ReasonCode.EVIDENCE_INVALID),
        (LockError(Fault(LockCode.LOCK_BUSY, "x", "s")), ReasonCode.TIMEOUT),
        (ProtocolError(ProtocolCode.GATES_CHANGED, "x", "s"), ReasonCode.EVIDENCE_INVALID),
        (ProtocolError(ProtocolCode.FIXTURE_INVALID, "x", "s"), ReasonCode.UNSUPPORTED_EVALUATOR),
    ],
)
def test_errors_of_other_rooms(error: Exception, code: ReasonCode) -> None:
    """B23: each by its meaning."""
    refusal = refusal_of(error)
    assert refusal is not None
    assert refusal.code is code


def test_an_error_that_nobody_foresaw_has_no_code() -> None:
    assert refusal_of(ValueError("x")) is None


def test_sentences_of_other_rooms_are_not_handed_on() -> None:
    """B5: they may name what a request held."""
    refusal = refusal_of(TrialError(TrialCode.TRIAL_MISSING, "canary", "canary", field="canary"))
    assert refusal is not None
    assert "canary" not in refusal.told


@pytest.mark.parametrize("code", [code for code in ReasonCode if code not in RESERVED])
def test_status_and_exit_go_together(code: ReasonCode) -> None:
    """B2: blocked with 3, error with 2 or 4, and no others."""
    for internal in (False, True):
        refusal = BridgeError(code, internal=internal)
        assert (refusal.status, refusal.exit_code) in {
            (Status.BLOCKED, 3),
            (Status.ERROR, 2),
            (Status.ERROR, 4),
        }
        assert (refusal.exit_code == 2) == (code is ReasonCode.PROTOCOL_MISMATCH)


def test_the_words_of_the_launching_part_are_ours() -> None:
    """B3: for answers that are given before this room is loaded."""
    words = DOORS["bridge"].words
    assert {word.reason_code for word in words.values()} == {"unsupported_evaluator", "unknown_finality"}
    assert (words[ManifestError].status, words[ManifestError].exit_code) == ("blocked", 3)
    assert (words[UnloadableError].status, words[UnloadableError].exit_code) == ("error", 4)


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("/resume_cursor", "(bad_record: resume_cursor)"),
        ("/runtime/session_id", "(bad_record: runtime)"),
        ("/read_allow_roots/0", "(bad_record: read_allow_roots)"),
        ("events.jsonl:7", "(bad_record: events.jsonl)"),
        ("outcome/result.json", "(bad_record: outcome/result.json)"),
        ("trial.json", "(bad_record: trial.json)"),
        ("/zq7canary", "(bad_record)"),
        ("/zq7canary/task", "(bad_record)"),
        ("trials/zq7canary", "(bad_record)"),
        ("", "(bad_record)"),
    ],
)
def test_people_are_told_what_it_is_about(where: str, told: str) -> None:
    """B5: by the names of this product alone."""
    refusal = refusal_of(TrialError(TrialCode.BAD_RECORD, where, "zq7canary", field="zq7canary"))
    assert refusal is not None
    assert refusal.told.endswith(told)
    assert "canary" not in refusal.told
