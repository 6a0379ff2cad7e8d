"""Seals: signed statements about files, and their verification in nine numbered steps.

Source: evidence.md, section 9. A seal is a DSSE envelope (`envelope`) around an in-toto Statement v1: subjects
(relative names with SHA-256), a predicate type of ours and a predicate. `sign` makes one, `verify` judges one:

| step | name | what is demanded |
|---|---|---|
| 1 | `envelope_shape` | strict JSON of the envelope's shape; of our own seals the canonical bytes and LF |
| 2 | `payload_type` | exactly the in-toto payload type |
| 3 | `payload_base64` | standard base64, one spelling only |
| 4 | `signature` | enough signatures by different keys that the caller supplied |
| 5 | `payload_json` | strict JSON of the statement's shape, well-formed subject names |
| 6 | `statement_type` | exactly Statement v1, and a predicate type the caller expects |
| 7 | `predicate` | fits the model the caller has for its type |
| 8 | `subject_digest` | every subject has its digest |
| 9 | `unnamed_file` | nothing is present that no subject names |

Each of the steps 1 to 7 needs the one before, so the first failure leaves the later ones not run; 8 and 9 are both
run. Nothing of the payload is looked at before its signature was accepted, and no statement is handed out unless
every step passed.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from skill_effectiveness.evidence.canonical import digest_bytes, digest_chunks, dump
from skill_effectiveness.evidence.documents import Canonical, parse, validate
from skill_effectiveness.evidence.envelope import (
    PAYLOAD_TYPE,
    Envelope,
    EnvelopeFault,
    Signature,
    read_envelope,
    seal_payload,
    signers,
    undo_base64,
)
from skill_effectiveness.evidence.faults import EvidenceError, Fault, FileError, SealCode, SealError, StrictCode
from skill_effectiveness.evidence.names import check_name
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.evidence.strict import Profile, read_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    from skill_effectiveness.evidence.subjects import SubjectSource

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"


class PredicateType(StrEnum):
    """What a seal of this product is about."""

    PLAN = "urn:skill-effectiveness:plan:v1"
    BUNDLE = "urn:skill-effectiveness:bundle:v1"
    JOURNAL_HEAD = "urn:skill-effectiveness:journal-head:v1"
    CALIBRATION = "urn:skill-effectiveness:calibration:v1"
    REVIEWER_LICENCE = "urn:skill-effectiveness:reviewer-licence:v1"


@dataclass(frozen=True, slots=True)
class Subject:
    """A sealed file.

    Attributes:
        name: relative, with forward slashes.
        sha256: 64 hex digits of the SHA-256 of its bytes.
    """

    name: str
    sha256: str

    @classmethod
    def of(cls, name: str, data: bytes) -> Subject:
        """The subject for bytes at hand."""
        return cls(name, digest_bytes(data).removeprefix("sha256:"))

    @classmethod
    def of_digest(cls, name: str, digest: str) -> Subject:
        """The subject for a digest text (`sha256:…`)."""
        return cls(name, digest.removeprefix("sha256:"))


@dataclass(frozen=True, slots=True)
class Statement:
    """What a seal says: these files, in this sense.

    Attributes:
        subjects: at least one; `sign` sorts them by name.
        predicate_type: the sense.
        predicate: a plain JSON object.
    """

    subjects: tuple[Subject, ...]
    predicate_type: PredicateType
    predicate: Mapping[str, Any]


def sign(statement: Statement, key: Ed25519PrivateKey) -> bytes:
    """The bytes of a seal: one canonical line.

    Raises:
        SealError: with every fault: `subject_names` (none, not relative, a segment that is no name, equal after
            case folding), `subject_digest` (not 64 hex digits).
        CanonicalError: the predicate is not made of plain JSON values.
        StrictError: the statement could not be read back (a reserved code point, too large).
    """
    subjects = sorted(statement.subjects, key=lambda subject: subject.name)
    faults = [Fault(SealCode.SUBJECT_NAMES, *told) for told in _told_of_names([s.name for s in subjects])]
    faults += [
        Fault(SealCode.SUBJECT_DIGEST, subject.name, "A digest has 64 hex digits in lower case.")
        for subject in subjects
        if not re.fullmatch(_HEX, subject.sha256)
    ]
    if faults:
        raise SealError(*faults)
    payload = dump(
        {
            "_type": STATEMENT_TYPE,
            "subject": [{"name": s.name, "digest": {"sha256": s.sha256}} for s in subjects],
            "predicateType": statement.predicate_type.value,
            "predicate": dict(statement.predicate),
        }
    )
    read_json(payload, Profile.DOCUMENT)
    return seal_payload(payload, key)
