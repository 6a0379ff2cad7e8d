"""What is kept of a call beside its answer: raw text of a provider, privately, and nothing of the answer."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.calibration.models import to_json
from skill_effectiveness.calibration.provider_log import (
    MESSAGES_MAX,
    TEXT_BYTES_MAX,
    provider_log,
    read_log,
    write_log,
)
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.providers import (
    CallOutcome,
    CallWarning,
    Ending,
    Notice,
    NoticeKind,
    ProviderErrorKind,
    TurnFailed,
    WarningCode,
)
from skill_effectiveness.providers.events import Message, Reasoning
from tests.support.examinations import open_out

if TYPE_CHECKING:
    from pathlib import Path

ANSWER = "the whole answer"
OUTCOME = CallOutcome(
    Ending.SUCCESS,
    answer=ANSWER,
    session_id="session-1",
    observed_model="model-9",
    exit_code=0,
    warnings=(
        CallWarning(WarningCode.STDERR_OUTPUT, "Grüße\x1b[0m"),
        CallWarning(WarningCode.LINGERED),
    ),
    events=(
        Message(ANSWER),
        Reasoning("thoughts"),
        Notice(NoticeKind.RETRY, "again in 2 s"),
        TurnFailed("503"),
    ),
    latency_ms=41,
    survivors=2,
)


def text(data: bytes) -> dict[str, object]:
    """The record of evidence.md, section 2, by hand."""
    return {
        "b64": base64.b64encode(data).decode(),
        "sha256": f"sha256:{hashlib.sha256(data).hexdigest()}",
        "bytes": len(data),
    }


def test_holds_what_was_said_beside_the_answer() -> None:
    """P7 P8 P11: warnings with their texts, retries, the observed model; of the session a digest."""
    assert to_json(provider_log("s-1", OUTCOME, synthetic=False)) == {
        "schema_version": 1,
        "artifact_contract": "skill-effectiveness-reviewer-calibration-provider-log-v1",
        "sample_id": "s-1",
        "ending": "success",
        "error_kind": None,
        "limit": None,
        "exit_code": 0,
        "survivors": 2,
        "latency_ms": 41,
        "observed_model": text(b"model-9"),
        "session_id_hash": "sha256:" + hashlib.sha256(b"session-1").hexdigest(),
        "warnings": [
            {"kind": "stderr_output", "text": text("Grüße\x1b[0m".encode()), "whole": True},
            {"kind": "lingered", "text": text(b""), "whole": True},
        ],
        "warnings_left_out": 0,
        "notices": [
            {"kind": "retry", "text": text(b"again in 2 s"), "whole": True},
            {"kind": "turn_failed", "text": text(b"503"), "whole": True},
        ],
        "notices_left_out": 0,
    }


def test_what_is_unknown_is_null() -> None:
    log = provider_log(
        "s-1", CallOutcome(Ending.PROVIDER_ERROR, error_kind=ProviderErrorKind.OTHER), synthetic=True
    )
    assert (log.observed_model, log.session_id_hash, log.exit_code) == (None, None, None)
    assert (log.error_kind, log.synthetic) == ("other", True)


def test_floods_are_cut_and_counted() -> None:
    """P11: a program that never stops complaining fills no disk."""
    long = "x" * (TEXT_BYTES_MAX + 1)
    events = tuple(Notice(NoticeKind.ERROR, long) for _ in range(MESSAGES_MAX + 7))
    log = provider_log("s-1", CallOutcome(Ending.TIMEOUT, events=events), synthetic=False)
    assert (len(log.notices), log.notices_left_out) == (MESSAGES_MAX, 7)
    assert (log.notices[0].text.bytes, log.notices[0].whole) == (TEXT_BYTES_MAX, False)


def test_text_that_is_no_unicode_has_a_form() -> None:
    odd = CallOutcome(Ending.TIMEOUT, session_id="\ud800", observed_model="\udfff")
    assert provider_log("s-1", odd, synthetic=False).session_id_hash is not None


def test_is_read_back_as_written_once(tmp_path: Path) -> None:
    root = open_out(tmp_path)
    log = provider_log("s-1", OUTCOME, synthetic=False)
    write_log(root, log)
    assert read_log(root, "s-1") == log
    with pytest.raises(EvidenceError):
        write_log(root, provider_log("s-1", CallOutcome(Ending.TIMEOUT), synthetic=False))
    with pytest.raises(EvidenceError):
        read_log(root, "s-2")
    assert ANSWER.encode() not in (tmp_path / "out/provider-log/s-1.json").read_bytes()
