from __future__ import annotations

import base64
import hashlib
import subprocess
import sys

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.envelope import (
    Signature,
    pae,
    read_envelope,
    seal_payload,
    signers,
    undo_base64,
)
from skill_effectiveness.evidence.faults import DocumentError, SealCode, SealError, StrictError
from tests.support.seals import KEY, OTHER_KEY, line, wrapped

PUBLIC = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"
SIGNATURE = (
    "47f92d515b4c4915f0af7424003907818f0dba720d268fdaa05d10ba4c3b50ca"
    "d3a1df35c19c3a1e017d8e692699fe31136d688f0aa2157f25124b1d50d43c02"
)
# SHA-256 of the 44 bytes of SubjectPublicKeyInfo: the fixed head of RFC 8410 and the public key.
KEY_ID = hashlib.sha256(bytes.fromhex("302a300506032b6570032100" + PUBLIC)).hexdigest()
OTHER_ID = hashlib.sha256(
    OTHER_KEY.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
).hexdigest()


# Known answers.


def test_known_pre_authentication_encoding() -> None:
    """E45: PAE of `hello`."""
    assert pae(b"hello") == b"DSSEv1 28 application/vnd.in-toto+json 5 hello"
    assert pae(b"") == b"DSSEv1 28 application/vnd.in-toto+json 0 "


def test_known_key_and_signature() -> None:
    """E45: Ed25519 with the seed 00 01 … 1f over that PAE."""
    assert KEY.public_key().public_bytes_raw().hex() == PUBLIC
    assert KEY.sign(pae(b"hello")).hex() == SIGNATURE


def test_known_envelope() -> None:
    """E45: the one byte form of an envelope of ours."""
    sig = base64.b64encode(bytes.fromhex(SIGNATURE)).decode()
    assert (
        seal_payload(b"hello", KEY)
        == (
            '{"payload":"aGVsbG8=","payloadType":"application/vnd.in-toto+json",'
            f'"signatures":[{{"keyid":"{KEY_ID}","sig":"{sig}"}}]}}\n'
        ).encode()
    )


# Shape.


def test_own_envelopes_have_one_byte_form() -> None:
    data = seal_payload(b"hello", KEY)
    assert read_envelope(data, own=True) == read_envelope(data, own=False)
    for other in (data[:-1], data + b" ", b" " + data, data.replace(b":", b": ", 1)):
        read_envelope(other, own=False)
        with pytest.raises(StrictError):
            read_envelope(other, own=True)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        {"payload": ...},
        {"payloadType": ...},
        {"signatures": ...},
        {"signatures": []},
        {"signatures": [{"keyid": "x"}]},
        {"signatures": [{"sig": "x", "cert": "x"}]},
        {"signatures": [{"keyid": "x", "sig": "x"}] * 65},
        {"payload": 1},
        {"payload": None},
        {"more": 1},
    ],
)
def test_other_shapes_are_refused(change: dict[str, object], *, own: bool) -> None:
    envelope = {**wrapped(b"hello", (KEY_ID, KEY)), **change}
    data = line({name: value for name, value in envelope.items() if value is not ...})
    with pytest.raises(DocumentError):
        read_envelope(data, own=own)


def test_a_repeated_member_is_refused() -> None:
    """F22: a second payload cannot hide behind the first."""
    data = seal_payload(b"hello", KEY)
    with pytest.raises(StrictError):
        read_envelope(b'{"payload":"",' + data[1:], own=False)


def test_other_clients_may_leave_out_the_key_id() -> None:
    envelope = wrapped(b"hello", (KEY_ID, KEY))
    del envelope["signatures"][0]["keyid"]
    assert read_envelope(line(envelope), own=False).signatures[0].keyid == ""


# Base64.


@given(st.binary(max_size=40))
def test_standard_base64_is_undone(data: bytes) -> None:
    assert undo_base64(base64.b64encode(data).decode()) == data


@pytest.mark.parametrize(
    "text",
    [
        "aGVsbG8",
        "aGVsbG8==",
        "aGVsbG8=\n",
        " aGVsbG8=",
        "aGVs bG8=",
        "aGVsbG9=",
        "aGVsbG8=aGVsbG8=",
        "aGVsb",
        "-_-_",
        "é",
        "=",
        "====",
        "a",
    ],
)
def test_any_other_spelling_is_refused(text: str) -> None:
    """E65: no padding, white space, the URL alphabet or set bits behind the end."""
    with pytest.raises(SealError) as caught:
        undo_base64(text)
    assert caught.value.code is SealCode.PAYLOAD_BASE64


# Signers.

PAYLOAD = b"hello"
SIG = Signature(KEY_ID, KEY.sign(pae(PAYLOAD)))
OTHER_SIG = Signature(OTHER_ID, OTHER_KEY.sign(pae(PAYLOAD)))
KEYS = [KEY.public_key(), OTHER_KEY.public_key()]


@pytest.mark.parametrize("own", [True, False])
def test_each_key_that_signed_is_named_once(*, own: bool) -> None:
    """E47: however often a key signed or is given, it counts once."""
    assert signers(PAYLOAD, [SIG, OTHER_SIG], KEYS, own=own) == {KEY_ID, OTHER_ID}
    assert signers(PAYLOAD, [SIG], [*KEYS, *KEYS], own=own) == {KEY_ID}
    assert signers(PAYLOAD, [SIG], [], own=own) == set()


def test_a_signature_that_stands_twice_spoils_our_own_seal() -> None:
    """E46 E47: it says nothing new, and would be bytes that somebody added unnoticed."""
    assert signers(PAYLOAD, [SIG, SIG], KEYS, own=False) == {KEY_ID}
    for signatures in ([SIG, SIG], [SIG, OTHER_SIG, SIG]):
        with pytest.raises(SealError) as caught:
            signers(PAYLOAD, signatures, KEYS, own=True)
        assert caught.value.code is SealCode.SIGNATURE


def test_the_key_id_is_a_hint_for_other_clients() -> None:
    """E47: under a foreign id the signature still counts for its key, and for that key only once."""
    renamed = [Signature(key_id, SIG.value) for key_id in ("", "x", OTHER_ID)]
    assert signers(PAYLOAD, renamed, KEYS, own=False) == {KEY_ID}


def test_what_nobody_can_check_spoils_our_own_seal() -> None:
    """E46: beside a good signature; alone it is a seal by nobody the caller trusts."""
    for stranger in (Signature("", SIG.value), Signature("x", b""), OTHER_SIG):
        assert signers(PAYLOAD, [SIG, stranger], KEYS[:1], own=False) == {KEY_ID}
        assert signers(PAYLOAD, [stranger, stranger], KEYS[:1], own=True) == set()
        for signatures in ([SIG, stranger], [stranger, SIG], [SIG, SIG, stranger]):
            with pytest.raises(SealError) as caught:
                signers(PAYLOAD, signatures, KEYS[:1], own=True)
            assert caught.value.code is SealCode.SIGNATURE


def test_the_key_id_of_our_own_seals_is_exact() -> None:
    assert signers(PAYLOAD, [Signature("", SIG.value)], KEYS, own=True) == set()
    with pytest.raises(SealError) as caught:
        signers(PAYLOAD, [Signature(OTHER_ID, SIG.value)], KEYS, own=True)
    assert caught.value.code is SealCode.SIGNATURE


def test_a_broken_signature_of_a_trusted_key_spoils_our_own_seal() -> None:
    """No byte of a signature may change unnoticed, also when enough others remain."""
    broken = Signature(OTHER_ID, bytes(64))
    assert signers(PAYLOAD, [SIG, broken], KEYS, own=False) == {KEY_ID}
    with pytest.raises(SealError):
        signers(PAYLOAD, [SIG, broken], KEYS, own=True)


@pytest.mark.parametrize("value", [b"", bytes(63), bytes(64), bytes(65), SIG.value[:-1], SIG.value + b"\0"])
def test_no_other_bytes_are_a_signature(value: bytes) -> None:
    assert signers(PAYLOAD, [Signature("", value)], KEYS, own=False) == set()


def test_a_signature_covers_the_payload_and_not_just_its_bytes() -> None:
    """The signature of the bare payload, as other formats have it, is none."""
    assert signers(PAYLOAD, [Signature(KEY_ID, KEY.sign(PAYLOAD))], KEYS, own=False) == set()
    assert signers(b"hullo", [SIG], KEYS, own=False) == set()


def test_the_dsse_library_is_loaded_when_first_needed() -> None:
    script = (
        "import sys, skill_effectiveness.evidence.seal\n"
        "assert not any(name.startswith('securesystemslib') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)  # noqa: S603 - our own interpreter
