"""The outside of a request: strict JSON, five members, an id (bridge.md, section 1).

What the action's payload holds is judged by `payloads`, the root where it is opened.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.bridge.words import (
    REQUEST_SCHEMA,
    UNVALIDATED_REQUEST,
    Action,
    BridgeError,
    ReasonCode,
)
from skill_effectiveness.evidence.faults import StrictError
from skill_effectiveness.evidence.strict import Profile, read_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.evidence.strict import JsonValue

REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
FIELDS: Final = frozenset({"schema", "request_id", "action", "artifact_root", "payload"})


@dataclass(frozen=True, slots=True)
class Envelope:
    """A request whose outside is right.

    Attributes:
        request: the whole of it, for its hash.
        request_id: comes back in the answer.
        action: what is asked.
        artifact_root: as given, not judged yet; None for a probe.
        payload: its members, not judged yet.
    """

    request: Mapping[str, JsonValue] = field(repr=False)
    request_id: str
    action: Action
    artifact_root: JsonValue = field(repr=False)
    payload: Mapping[str, Any] = field(repr=False)


def mismatch(detail: str) -> BridgeError:
    """A request that is not one of this protocol."""
    return BridgeError(ReasonCode.PROTOCOL_MISMATCH, detail)


def read_request(data: bytes) -> JsonValue:
    """The JSON value of a request.

    Raises:
        BridgeError: `protocol_mismatch`.
    """
    try:
        return read_json(data, Profile.WIRE)
    except StrictError as error:
        raise mismatch(f"not strict JSON: {error.code.value}") from error


def heading_of(value: JsonValue) -> str:
    """The id that an answer repeats: that of the request, once its envelope is right in every other point."""
    try:
        return read_envelope(value).request_id
    except BridgeError:
        return UNVALIDATED_REQUEST


def read_envelope(value: JsonValue) -> Envelope:
    """The outside of a request.

    Raises:
        BridgeError: `protocol_mismatch`.
    """
    if not isinstance(value, dict) or value.keys() != FIELDS:
        raise mismatch("a request has schema, request_id, action, artifact_root and payload")
    if value["schema"] != REQUEST_SCHEMA:
        raise mismatch("schema")
    request_id, payload = value["request_id"], value["payload"]
    if not isinstance(request_id, str) or not REQUEST_ID.fullmatch(request_id):
        raise mismatch("request_id")
    action = next((action for action in Action if action.value == value["action"]), None)
    if action is None:
        raise mismatch("action")
    if not isinstance(payload, dict):
        raise mismatch("payload is an object")
    root = value["artifact_root"]
    if action is Action.PROBE and root is not None:
        raise mismatch("a probe has no artifact root")
    return Envelope(value, request_id, action, root, payload)
