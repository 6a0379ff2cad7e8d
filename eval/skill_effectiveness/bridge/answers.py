"""The one line that answers a request (bridge.md, section 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skill_effectiveness.bridge.words import (
    RESPONSE_LIMIT,
    RESPONSE_SCHEMA,
    BridgeError,
    ReasonCode,
    Status,
)
from skill_effectiveness.evidence.canonical import dump_line

if TYPE_CHECKING:
    from collections.abc import Mapping


def answer_line(request_id: str, binding: Mapping[str, object], result: Mapping[str, object]) -> bytes:
    """The line that answers a request which was carried out.

    Raises:
        BridgeError: `evidence_invalid`, internal: it would be longer than a response may be.
    """
    line = dump_line(
        {
            "schema": RESPONSE_SCHEMA,
            "request_id": request_id,
            "status": Status.OK.value,
            "reason_code": None,
            "runtime_binding": dict(binding),
            "result": dict(result),
        }
    )
    if len(line) > RESPONSE_LIMIT:
        raise BridgeError(ReasonCode.EVIDENCE_INVALID, "the response is over its bound", internal=True)
    return line


def refusal_line(request_id: str, refusal: BridgeError) -> bytes:
    """The line that answers any other request."""
    return dump_line(
        {
            "schema": RESPONSE_SCHEMA,
            "request_id": request_id,
            "status": refusal.status.value,
            "reason_code": refusal.code.value,
            "runtime_binding": {},
            "result": {},
        }
    )
