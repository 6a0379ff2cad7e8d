"""What `launch` itself can say of a request to the bridge: whose it is, and whether it asks for the manifest.

Source: bridge.md sections 1 and 3. The room `bridge` judges requests; this is loaded before it may be. So
only what is beyond doubt is recognised here: a request that the room would refuse is never answered by this
module, and one that it would accept is at worst handed on.
"""

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

REQUEST_SCHEMA = "skill-effectiveness.bridge.request.v1"
RESPONSE_SCHEMA = "skill-effectiveness.bridge.response.v1"
REQUEST_LIMIT = 1_048_576
"""Bytes of one request at most."""
FIELDS = {"schema", "request_id", "action", "artifact_root", "payload"}
ACTIONS = ("probe", "prepare", "checkpoint", "evaluate")
LONGEST_ID = 128
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


def request_id_of(data: bytes) -> str | None:
    """The id of a request whose envelope is beyond doubt; None otherwise."""
    request = _members(data)
    return None if request is None else request["request_id"]


def asks_for_manifest(data: bytes) -> bool:
    """Whether a request is a manifest probe, exactly as it has to be."""
    request = _members(data)
    if request is None or request["action"] != "probe" or request["artifact_root"] is not None:
        return False
    payload: object = request["payload"]
    return payload == {"phase": "manifest"}


def manifest_answer(request_id: str, binding: object, manifest: object) -> dict[str, object]:
    """The answer to a manifest probe."""
    return {
        "schema": RESPONSE_SCHEMA,
        "request_id": request_id,
        "status": "ok",
        "reason_code": None,
        "runtime_binding": binding,
        "result": {"phase": "manifest", "runtime_manifest": manifest},
    }


def _members(data: bytes) -> "dict[str, Any] | None":
    """The members of an envelope in which nothing is wrong."""
    if len(data) > REQUEST_LIMIT:
        return None
    try:
        request = json.loads(data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    if not isinstance(request, dict) or request.keys() != FIELDS:
        return None
    request_id = request["request_id"]
    sound = (
        request["schema"] == REQUEST_SCHEMA
        and isinstance(request_id, str)
        and 0 < len(request_id) <= LONGEST_ID
        and _LETTERS.issuperset(request_id)
        and request["action"] in ACTIONS
        and isinstance(request["payload"], dict)
    )
    return request if sound else None


def _unique(pairs: "list[tuple[str, Any]]") -> "dict[str, Any]":
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a member twice")
    return value


def _refuse(_name: str) -> object:
    raise ValueError("no number of JSON")
