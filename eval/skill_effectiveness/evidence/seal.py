"""Seals: signed statements about files, and their verification in nine numbered steps.

Source: evidence.md, section 9. A seal is a DSSE envelope (`envelope`) around an in-toto Statement v1
(`statement`): subjects (relative names with SHA-256), a predicate type of ours and a predicate. `sign` makes
one, `verify` judges one:

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

Each of the steps 1 to 7 needs the one before, so the first failure leaves the later ones not run; 8 and 9 are
both run. Nothing of the payload is looked at before its signature was accepted, and no statement is handed
out unless every step passed.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_chunks
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.envelope import (
    PAYLOAD_TYPE,
    Envelope,
    Signature,
    read_envelope,
    seal_payload,
    signers,
    undo_base64,
)
from skill_effectiveness.evidence.faults import EvidenceError, Fault, SealCode, SealError, StrictCode
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.evidence.statement import (
    STATEMENT_TYPE,
    PredicateType,
    Statement,
    Subject,
    read_statement,
    write_statement,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from pydantic import BaseModel

    from skill_effectiveness.evidence.subjects import SubjectSource

__all__ = ["Check", "PredicateType", "Statement", "Subject", "Verification", "sign", "unverified", "verify"]


def sign(statement: Statement, key: Ed25519PrivateKey) -> bytes:
    """The bytes of a seal: one canonical line.

    Raises:
        SealError, CanonicalError, StrictError: as `statement.write_statement`; `too_large`.
    """
    sealed = seal_payload(write_statement(statement), key)
    read_envelope(sealed, own=True)
    return sealed


# What verification reports.


@dataclass(frozen=True, slots=True)
class Check:
    """One step of a verification.

    Attributes:
        number: 1 to 9.
        name: the step; printed by machines.
        passed: `None` when the step was not run, because an earlier one failed.
        sentence: for people; begins with the step.
    """

    number: int
    name: SealCode
    passed: bool | None
    sentence: str


@dataclass(frozen=True, slots=True)
class Verification:
    """The nine checks, and what was sealed if all of them passed.

    Attributes:
        checks: in order.
        statement: `None` unless every check passed.
        predicate: the predicate as its model, likewise.
    """

    checks: tuple[Check, ...]
    statement: Statement | None = None
    predicate: BaseModel | None = None

    @property
    def passed(self) -> bool:
        """Whether every step was run and passed."""
        return self.statement is not None

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that were run and failed."""
        return tuple(check for check in self.checks if check.passed is False)

    def require(self) -> Statement:
        """The statement.

        Raises:
            SealError: with one fault for each failed check, its name as code.
        """
        if self.statement is None:
            raise SealError(*(Fault(check.name, "", check.sentence) for check in self.failures))
        return self.statement


_STEPS: Final = {
    SealCode.ENVELOPE_SHAPE: "the envelope has the right shape.",
    SealCode.PAYLOAD_TYPE: "the payload is of the in-toto type.",
    SealCode.PAYLOAD_BASE64: "the encoding is strict base64.",
    SealCode.SIGNATURE: "enough of your keys signed it.",
    SealCode.PAYLOAD_JSON: "the statement is strict JSON of the right shape.",
    SealCode.STATEMENT_TYPE: "statement and predicate are of the expected types.",
    SealCode.PREDICATE: "the predicate fits its model.",
    SealCode.SUBJECT_DIGEST: "every subject has the sealed bytes.",
    SealCode.UNNAMED_FILE: "nothing is present that the seal does not name.",
}


class _StoppedError(Exception):
    """A step failed and was recorded."""


class _Report:
    """Collects the checks in the order of the steps."""

    def __init__(self) -> None:
        self._checks: list[Check] = []

    @contextmanager
    def step(self, name: SealCode) -> Iterator[None]:
        """Record the block as a step; an evidence error fails it and stops the verification."""
        try:
            yield
        except EvidenceError as error:
            self._add(name, _told(error), passed=False)
            raise _StoppedError from error
        self._add(name, _STEPS[name], passed=True)

    def checks(self) -> tuple[Check, ...]:
        """All nine, those without a result as not run."""
        for name in list(_STEPS)[len(self._checks) :]:
            self._add(name, "not run, because an earlier step failed.", passed=None)
        return tuple(self._checks)

    def _add(self, name: SealCode, told: str, *, passed: bool | None) -> None:
        number = len(self._checks) + 1
        words = name.value.replace("_", " ")
        self._checks.append(Check(number, name, passed, f"Step {number} ({words}): {told}"))


def _told(error: EvidenceError) -> str:
    first, *others = error.faults
    place = f"at {first.where}: " if first.where.startswith("/") else ""
    more = f" ({len(others)} more like this.)" if others else ""
    return place + first.sentence + more


# Verification.


def verify(
    envelope: bytes,
    keys: Iterable[Ed25519PublicKey],
    *,
    subjects: SubjectSource,
    predicates: Mapping[PredicateType, type[BaseModel]],
    threshold: int = 1,
    own: bool = True,
) -> Verification:
    """Judge a seal; bad input of any kind becomes a failed check, never an error.

    Args:
        envelope: the bytes of the seal.
        keys: those that the caller trusts.
        subjects: where the sealed files are.
        predicates: the predicate types expected here, each with its model.
        threshold: how many different keys must have signed, at least 1.
        own: the seal was written by this program, so it must have the one byte form that this program writes,
            and `keyid` names the signing key; `False` for an envelope that another DSSE client wrote.
    """
    report = _Report()
    try:
        payload = _authenticated(report, envelope, list(keys), threshold, own=own)
        statement, predicate = _understood(report, payload, predicates, own=own)
        _matched(report, statement, subjects)
    except _StoppedError:
        return Verification(report.checks())
    checks = report.checks()
    if not all(check.passed for check in checks):
        return Verification(checks)
    return Verification(checks, statement, predicate)


def unverified(
    envelope: bytes, predicates: Mapping[PredicateType, type[BaseModel]], *, own: bool = True
) -> tuple[Statement, BaseModel]:
    """What a seal claims, whoever signed it: only for showing, and after `verify` has accepted the signature.

    Steps 1 to 3 and 5 to 7; arguments as `verify`.

    Raises:
        SealError: the first step that failed.
    """
    report = _Report()
    try:
        payload, _ = _opened(report, envelope, own=own)
        return _understood(report, payload, predicates, own=own)
    except _StoppedError as stopped:
        failed = next(check for check in report.checks() if check.passed is False)
        # Without its number, which counts a step that was left out.
        raise SealError(Fault(failed.name, "", failed.sentence.partition(": ")[2])) from stopped


def _authenticated(
    report: _Report, data: bytes, keys: list[Ed25519PublicKey], threshold: int, *, own: bool
) -> bytes:
    """Steps 1 to 4; the payload."""
    payload, signatures = _opened(report, data, own=own)
    with report.step(SealCode.SIGNATURE):
        if threshold < 1:
            raise _fails(SealCode.SIGNATURE, "a threshold below 1 would accept anything; ask for 1 or more.")
        count = len(signers(payload, signatures, keys, own=own))
        if count < threshold:
            told = f"{count} of the keys you gave signed this, but {threshold} must; check the keys."
            raise _fails(SealCode.SIGNATURE, told)
    return payload


def _opened(report: _Report, data: bytes, *, own: bool) -> tuple[bytes, list[Signature]]:
    """Steps 1 to 3; the payload and who is said to have signed it."""
    with report.step(SealCode.ENVELOPE_SHAPE):
        envelope = _shape(data, own=own)
    with report.step(SealCode.PAYLOAD_TYPE):
        if envelope.payloadType != PAYLOAD_TYPE:
            raise _fails(SealCode.PAYLOAD_TYPE, f"the payload is not of the type {PAYLOAD_TYPE}.")
    with report.step(SealCode.PAYLOAD_BASE64):
        payload = undo_base64(envelope.payload)
        signatures = [Signature(written.keyid, undo_base64(written.sig)) for written in envelope.signatures]
    return payload, signatures


def _shape(data: bytes, *, own: bool) -> Envelope:
    try:
        return read_envelope(data, own=own)
    except EvidenceError as error:
        if error.code is not StrictCode.NOT_CANONICAL or b"\r\n" not in data:
            raise
        # Either this finds more that is wrong, or the line endings are all.
        read_envelope(data.replace(b"\r\n", b"\n"), own=own)
        told = "line endings differ: the seal was converted to CRLF; restore the original file."
        raise _fails(SealCode.ENVELOPE_SHAPE, told) from error


def _understood(
    report: _Report, payload: bytes, predicates: Mapping[PredicateType, type[BaseModel]], *, own: bool
) -> tuple[Statement, BaseModel]:
    """Steps 5 to 7; the statement and its predicate."""
    with report.step(SealCode.PAYLOAD_JSON):
        written = read_statement(payload, own=own)
    with report.step(SealCode.STATEMENT_TYPE):
        if written.type != STATEMENT_TYPE:
            raise _fails(SealCode.STATEMENT_TYPE, f"the statement is not of the type {STATEMENT_TYPE}.")
        expected = {str(predicate_type): predicate_type for predicate_type in predicates}
        if written.predicateType not in expected:
            raise _fails(SealCode.STATEMENT_TYPE, f"the predicate is not about {' or '.join(expected)}.")
    with report.step(SealCode.PREDICATE):
        predicate_type = expected[written.predicateType]
        predicate = validate(predicates[predicate_type], written.predicate)
    return written.statement(predicate_type), predicate


def _matched(report: _Report, statement: Statement, source: SubjectSource) -> None:
    """Steps 8 and 9; the second is run whatever the first found."""
    with suppress(_StoppedError), report.step(SealCode.SUBJECT_DIGEST):
        faults = [fault for subject in statement.subjects if (fault := _fault_of(subject, source))]
        if faults:
            raise SealError(*faults)
    with suppress(_StoppedError), report.step(SealCode.UNNAMED_FILE):
        named = {subject.name for subject in statement.subjects}
        strangers = map(printable, sorted(set(source.names()) - named))
        faults = [
            Fault(SealCode.UNNAMED_FILE, shown, f"{shown} is present, but the seal does not name it.")
            for shown in strangers
        ]
        if faults:
            raise SealError(*faults)


def _fault_of(subject: Subject, source: SubjectSource) -> Fault | None:
    shown, expected = printable(subject.name), "sha256:" + subject.sha256
    try:
        if digest_chunks(source.chunks(subject.name)) == expected:
            return None
        told = f"{shown} has other bytes than were sealed."
        # Looked at only now, so that an intact file is read and hashed once.
        if digest_chunks(_with_lf(source.chunks(subject.name))) == expected:
            told = f"line endings differ: {shown} was converted to CRLF; restore the original file."
    except EvidenceError as error:
        told = error.faults[0].sentence
    return Fault(SealCode.SUBJECT_DIGEST, shown, told)


def _with_lf(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The bytes with each CRLF turned into LF."""
    held = b""
    for chunk in chunks:
        joined = held + chunk
        # Whether this CR goes with an LF is known with the next chunk.
        held = b"\r" if joined.endswith(b"\r") else b""
        yield joined[: len(joined) - len(held)].replace(b"\r\n", b"\n")
    yield held


def _fails(code: SealCode, sentence: str) -> SealError:
    return SealError(Fault(code, "", sentence))
