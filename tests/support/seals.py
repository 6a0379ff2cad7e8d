"""Keys and small seals for tests."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import BaseModel, ConfigDict

from skill_effectiveness.evidence.seal import PredicateType, Statement, Subject, sign
from skill_effectiveness.evidence.subjects import HeldSubjects

if TYPE_CHECKING:
    from collections.abc import Mapping

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
PAYLOAD_TYPE = "application/vnd.in-toto+json"


class Count(BaseModel):
    """A predicate with one integer."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    count: int


HELD = {"a.txt": b"one\ntwo\n", "d/b.bin": b"\x00\r\xff"}
# As sha256sum prints them.
A_DIGEST = "c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8"
B_DIGEST = "5e9f7c68f50a1157b97771bb18c8d12d2bb4d08269117e31593d3a98acde7d14"
PREDICATES: dict[PredicateType, type[BaseModel]] = {PredicateType.PLAN: Count}


def statement_of(held: Mapping[str, bytes] = HELD) -> Statement:
    """A plan statement about the bytes held."""
    subjects = tuple(Subject.of(name, data) for name, data in held.items())
    return Statement(subjects, PredicateType.PLAN, {"count": 1})


def seal_of(held: Mapping[str, bytes] = HELD) -> bytes:
    """A seal of ours about the bytes held."""
    return sign(statement_of(held), KEY)


def source_of(held: Mapping[str, bytes] = HELD) -> HeldSubjects:
    """The bytes held."""
    return HeldSubjects(held)


def written_statement(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON is put in to be refused
    """The statement of `seal_of()` as JSON, with members changed, or dropped by `...`."""
    members = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": "a.txt", "digest": {"sha256": A_DIGEST}},
            {"name": "d/b.bin", "digest": {"sha256": B_DIGEST}},
        ],
        "predicateType": "urn:skill-effectiveness:plan:v1",
        "predicate": {"count": 1},
    }
    return {name: value for name, value in {**members, **changes}.items() if value is not ...}


def pae(payload: bytes, payload_type: str = PAYLOAD_TYPE) -> bytes:
    """The bytes that DSSE signs."""
    return b"DSSEv1 %d %s %d %s" % (len(payload_type), payload_type.encode(), len(payload), payload)


def wrapped(
    payload: bytes,
    *keys: tuple[str, Ed25519PrivateKey],
    payload_type: str = PAYLOAD_TYPE,
) -> dict[str, Any]:
    """An envelope around any payload, validly signed by each key under the id given for it."""
    signed = pae(payload, payload_type)
    return {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": payload_type,
        "signatures": [
            {"keyid": key_id, "sig": base64.b64encode(key.sign(signed)).decode()} for key_id, key in keys
        ],
    }


def line(value: object) -> bytes:
    """Canonical JSON and LF of a value without floats and with ASCII names."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
