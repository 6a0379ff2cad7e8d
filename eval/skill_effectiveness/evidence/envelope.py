"""DSSE envelopes signed with Ed25519: how a payload is wrapped, and who signed it.

Source: evidence.md, section 9, steps 1 to 4; the DSSE protocol, version 1. Nothing here looks into the
payload.

An envelope of ours has exactly one byte form: the canonical JSON of its three members and one LF, standard
base64 without variants, and as `keyid` the id of the signing key; and it holds no signature but those that
verify, each once. So no byte of it can be changed unnoticed and none added, although DSSE leaves `keyid`, all
layout and the list of signatures outside of what is signed. Envelopes of other DSSE clients differ in layout
and in how they name keys; read with `own=False`, their `keyid` is a hint that is not even looked at.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from cryptography.exceptions import InvalidSignature
from pydantic import BaseModel, ConfigDict, Field

from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.evidence.documents import Canonical, parse
from skill_effectiveness.evidence.faults import Fault, SealCode, SealError
from skill_effectiveness.evidence.keys import public_key_id
from skill_effectiveness.evidence.strict import Profile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
_MOST_SIGNATURES: Final = 64


class WrittenSignature(BaseModel):
    """One signature as it stands in an envelope; DSSE lets `keyid` be left out."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    keyid: str = ""
    sig: str


class Envelope(BaseModel):
    """A DSSE envelope as it was written, base64 not yet undone."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    payload: str
    payloadType: str  # noqa: N815 - the wire's spelling
    signatures: Annotated[tuple[WrittenSignature, ...], Field(min_length=1, max_length=_MOST_SIGNATURES)]


class Signature(NamedTuple):
    """A signature with its base64 undone."""

    keyid: str
    value: bytes


def pae(payload: bytes) -> bytes:
    """The pre-authentication encoding of a payload of our type: the bytes that are signed."""
    # Loading it takes a tenth of a second, which a process that neither signs nor verifies need not spend.
    from securesystemslib.dsse import Envelope as DsseEnvelope  # noqa: PLC0415 - see above

    encoded: bytes = DsseEnvelope(payload, PAYLOAD_TYPE, {}).pae()
    return encoded


def seal_payload(payload: bytes, key: Ed25519PrivateKey) -> bytes:
    """The bytes of an envelope of ours around a payload, signed by one key."""
    signature = {
        "keyid": public_key_id(key.public_key()),
        "sig": base64.b64encode(key.sign(pae(payload))).decode(),
    }
    return dump_line(
        {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [signature],
        }
    )


def read_envelope(data: bytes, *, own: bool) -> Envelope:
    """The envelope that the bytes hold.

    Args:
        data: the bytes of the file.
        own: demand the one byte form in which this program writes it.

    Raises:
        StrictError, DocumentError: as `documents.parse`.
    """
    return parse(Envelope, data, Profile.DOCUMENT, canonical=Canonical.LINE if own else None)


def undo_base64(text: str) -> bytes:
    """The bytes behind standard base64 with padding, of which every value has one spelling only.

    Raises:
        SealError: `payload_base64`: any other spelling.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if base64.b64encode(data).decode() != text:
        sentence = "the payload or a signature is not base64 in its standard spelling."
        raise SealError(Fault(SealCode.PAYLOAD_BASE64, "", sentence))
    return data


def signers(
    payload: bytes, signatures: Iterable[Signature], keys: Iterable[Ed25519PublicKey], *, own: bool
) -> set[str]:
    """The ids of those keys that signed the payload; a key counts once however often it is given or signed.

    Args:
        payload: the exact bytes.
        signatures: of the envelope.
        keys: those the caller trusts.
        own: a signature counts for the key that its `keyid` names and must be by that key, and where one
            counts, each has to, once: what nobody can check, or what is said already, is no part of a seal of
            ours. Otherwise every key is tried on every signature, and those that fit none are passed over, as
            DSSE says.

    Returns:
        Empty when no signature is by a trusted key, also of an `own` envelope: then nothing in it counts.

    Raises:
        SealError: `signature`: `own`, and a signature is not by the trusted key that it names, stands beside
            good ones without being by a trusted key, or is there twice.
    """
    signed = pae(payload)
    trusted = {public_key_id(key): key for key in keys}
    accepted: set[str] = set()
    strangers = False
    for signature in signatures:
        candidates = {signature.keyid} & trusted.keys() if own else trusted.keys()
        fitting = {key_id for key_id in candidates if _fits(trusted[key_id], signature.value, signed)}
        if own and fitting != candidates:
            raise _unsigned("a signature is not by the key that it names, or not of this payload.")
        if own and fitting & accepted:
            raise _unsigned("a signature stands twice; use the seal as it was made.")
        accepted |= fitting
        strangers = strangers or not fitting
    if own and accepted and strangers:
        raise _unsigned("a signature beside a good one is by none of your keys; use the seal as it was made.")
    return accepted


def _unsigned(sentence: str) -> SealError:
    return SealError(Fault(SealCode.SIGNATURE, "", sentence))


def _fits(key: Ed25519PublicKey, signature: bytes, signed: bytes) -> bool:
    try:
        key.verify(signature, signed)
    except InvalidSignature:
        return False
    return True
