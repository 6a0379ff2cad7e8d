"""In-toto statements: which files a seal is about, and in which sense.

Source: evidence.md, section 9; in-toto attestation framework, Statement v1. A statement of ours holds nothing
besides `_type`, `subject` (each with `name` and `digest.sha256`), `predicateType` and `predicate`; fields
that other tools may add are refused, because nobody here would judge them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from skill_effectiveness.evidence.canonical import digest_bytes, dump
from skill_effectiveness.evidence.documents import Canonical, parse
from skill_effectiveness.evidence.faults import Fault, FileError, SealCode, SealError
from skill_effectiveness.evidence.names import check_name
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.evidence.strict import Profile, read_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"


class PredicateType(StrEnum):
    """What a seal of this product is about."""

    PLAN = "urn:skill-effectiveness:plan:v1"
    BUNDLE = "urn:skill-effectiveness:bundle:v1"
    JOURNAL_HEAD = "urn:skill-effectiveness:journal-head:v1"
    CALIBRATION = "urn:skill-effectiveness:calibration:v1"
    REVIEWER_LICENCE = "urn:skill-effectiveness:reviewer-licence:v1"


_HEX: Final = r"[0-9a-f]{64}"


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
        subjects: at least one; written sorted by name.
        predicate_type: the sense.
        predicate: a plain JSON object.
    """

    subjects: tuple[Subject, ...]
    predicate_type: PredicateType
    predicate: Mapping[str, Any]


class WrittenDigest(BaseModel):
    """The digests of a subject; SHA-256 is the only one."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    sha256: Annotated[str, Field(pattern=f"^{_HEX}$")]


class WrittenSubject(BaseModel):
    """A subject as it stands in a statement."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: str
    digest: WrittenDigest


class WrittenStatement(BaseModel):
    """A statement as it was written, its types not yet judged."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    type: Annotated[str, Field(alias="_type")]
    subject: tuple[WrittenSubject, ...]
    predicateType: str  # noqa: N815 - the wire's spelling
    predicate: dict[str, Any]

    def statement(self, predicate_type: PredicateType) -> Statement:
        """What it says, once its types were judged."""
        subjects = tuple(Subject(subject.name, subject.digest.sha256) for subject in self.subject)
        return Statement(subjects, predicate_type, self.predicate)


def write_statement(statement: Statement) -> bytes:
    """The canonical bytes of a statement, subjects sorted by name (code points).

    Raises:
        SealError: with every fault: `subject_names` (none, not relative, a segment that is no name, equal
            after case folding), `subject_digest` (not 64 hex digits).
        CanonicalError: the predicate is not made of plain JSON values.
        StrictError: the statement could not be read back (a reserved code point, too large).
    """
    subjects = sorted(statement.subjects, key=lambda subject: subject.name)
    faults = list(_name_faults([subject.name for subject in subjects]))
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
    return payload


def read_statement(payload: bytes, *, own: bool) -> WrittenStatement:
    """The statement that a payload holds.

    Args:
        payload: the bytes that were signed.
        own: demand canonical bytes.

    Raises:
        StrictError, DocumentError: as `documents.parse`.
        SealError: `subject_names`, with every fault: as `write_statement`; not sorted.
    """
    written = parse(WrittenStatement, payload, Profile.DOCUMENT, canonical=Canonical.BARE if own else None)
    names = [subject.name for subject in written.subject]
    faults = list(_name_faults(names))
    if names != sorted(names):
        faults.append(Fault(SealCode.SUBJECT_NAMES, "", "The subjects are not sorted by name."))
    if faults:
        raise SealError(*faults)
    return written


def _name_faults(names: Sequence[str]) -> Iterator[Fault]:
    if not names:
        yield Fault(SealCode.SUBJECT_NAMES, "", "A seal needs at least one subject.")
    folded: set[str] = set()
    for name in names:
        told = _told_of_name(name)
        if told is None and name.casefold() in folded:
            told = "it stands twice, or differs from another name only in case."
        if told is not None:
            shown = printable(name)
            yield Fault(SealCode.SUBJECT_NAMES, shown, f"{shown} cannot name a subject: {told}")
        folded.add(name.casefold())


def _told_of_name(name: str) -> str | None:
    if "\\" in name:
        return "it holds a backslash, which other systems read as a slash."
    try:
        for segment in name.split("/"):
            check_name(segment)
    except FileError as error:
        return error.faults[0].sentence
    return None
