"""Evidence records, and the findings that a reviewer hands in.

Source: closeout.md, section 7. A record carries facts. It has no member for an outcome: whether it satisfies
a requirement is the evaluator's to say.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Final, Literal, NoReturn, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError

from skill_effectiveness.acceptance.closeout.policy_models import ClosedModel, Edition, optional
from skill_effectiveness.acceptance.closeout.words import Severity
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import LARGEST_INTEGER, Profile, read_json

if TYPE_CHECKING:
    from skill_effectiveness.evidence.strict import JsonValue

COMMIT: Final = r"^([0-9a-f]{40}|[0-9a-f]{64})$"
DIGEST: Final = r"^sha256:[0-9a-f]{64}$"
ATTEMPT_MOST: Final = 100_000
FINDINGS_MOST: Final = 200
RECORD_BYTES: Final = 16_777_216

IDENTITY_MOST: Final = 256
Identity = Annotated[str, Field(max_length=IDENTITY_MOST)]
Commit = Annotated[str, Field(pattern=COMMIT)]
PolicyDigest = Annotated[str, Field(pattern=DIGEST)]


class Program(ClosedModel):
    """A program and its version."""

    name: str = Field(min_length=1, max_length=128)
    version: str = Field(min_length=1, max_length=64)


class Artifact(ClosedModel):
    """A file that belongs to a record; its path is relative to the evidence directory."""

    path: str = Field(min_length=1, max_length=512)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Finding(ClosedModel):
    """One thing a reviewer reports; it need not be a problem."""

    severity: Severity
    location: str = Field(min_length=1, max_length=512)
    explanation: str = Field(min_length=1, max_length=8000)
    evidence: str = Field(min_length=1, max_length=8000)


class Execution(ClosedModel):
    """How a command ran; `signal` is present only after death by a signal."""

    argv: tuple[str, ...]
    exitCode: int | None  # noqa: N815 - the document's own spelling
    timedOut: bool  # noqa: N815 - the document's own spelling
    dirty: bool
    headMoved: bool  # noqa: N815 - the document's own spelling
    durationMs: int = Field(ge=0)  # noqa: N815 - the document's own spelling
    truncated: bool
    # No null on the wire: the member is there with a name, or it is not there.
    signal: str = Field(default="", pattern=r"^SIG[A-Z0-9+-]{1,16}$", json_schema_extra=optional)


class Reviewer(ClosedModel):
    """Who reviewed, as far as known; an empty text is unknown."""

    session: Identity
    model: Identity
    provider: Identity


class _Record(ClosedModel):
    specVersion: Edition  # noqa: N815 - the document's own spelling
    itemId: str = Field(min_length=1, max_length=256)  # noqa: N815 - the document's own spelling
    base: Commit
    head: Commit
    policyDigest: PolicyDigest  # noqa: N815 - the document's own spelling
    attempt: int = Field(ge=1, le=ATTEMPT_MOST)
    evaluator: Program
    artifacts: tuple[Artifact, ...] = Field(max_length=16)


class CommandRecord(_Record):
    """What happened when a command ran."""

    recordType: Literal["command"]  # noqa: N815 - the document's own spelling
    producer: Program
    exec: Execution


class ReviewRecord(_Record):
    """What a reviewer found."""

    recordType: Literal["review"]  # noqa: N815 - the document's own spelling
    producer: Reviewer
    findings: tuple[Finding, ...] = Field(max_length=FINDINGS_MOST)


Record: TypeAlias = CommandRecord | ReviewRecord
EVIDENCE: Final[TypeAdapter[Record]] = TypeAdapter(
    Annotated[CommandRecord | ReviewRecord, Field(discriminator="recordType")]
)
FINDINGS: Final[TypeAdapter[tuple[Finding, ...]]] = TypeAdapter(
    Annotated[tuple[Finding, ...], Field(max_length=FINDINGS_MOST)]
)


class RecordError(Exception):
    """Bytes are no record, or a value no list of findings; the text is a reason that quotes nothing."""


def read_record(data: bytes) -> Record:
    """The record of one evidence file.

    There may be thousands of files, so plain bytes are read once, by the parser of the models; only what that
    parser would let through, or what is refused, meets the strict reader too.

    Raises:
        RecordError: not strict JSON, or a misfit.
    """
    if not _unusual(data):
        try:
            record = EVIDENCE.validate_json(data, strict=True)
        except ValidationError:
            return _read_strictly(data)
        if _members(record) == _members_written(data) and _exact(record):
            return record
    return _read_strictly(data)


# Escapes and bytes of which some make text that is not I-JSON, and a byte order mark.
_UNUSUAL: Final = (b"\\u", b"\xef\xb7", b"\xbf\xbe", b"\xbf\xbf", b"\xef\xbb\xbf")
_NEGATIVE_ZERO: Final = re.compile(rb"[\s:,\[]-0")


def _unusual(data: bytes) -> bool:
    # One search each: together in one expression they take ten times as long.
    if any(part in data for part in _UNUSUAL):
        return True
    return b"-0" in data and _NEGATIVE_ZERO.search(data) is not None


def _members(record: Record) -> int:
    """How many members the objects of a record have; each is written once."""
    common = len(record.model_fields_set) + len(Program.model_fields) + 2 * len(record.artifacts)
    if isinstance(record, CommandRecord):
        return common + len(Program.model_fields) + len(record.exec.model_fields_set)
    return common + len(Reviewer.model_fields) + len(Finding.model_fields) * len(record.findings)


def _members_written(data: bytes) -> int:
    """How many members a JSON text names: its colons outside texts. More than it has means one twice."""
    # Pairs of backslashes first, so that a quote is escaped exactly if a backslash is left before it.
    plain = data.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in data else data
    return b"".join(plain.split(b'"')[::2]).count(b":")


def _exact(record: Record) -> bool:
    """Whether the numbers without limits of their own can be kept exactly."""
    if not isinstance(record, CommandRecord):
        return True
    return record.exec.durationMs <= LARGEST_INTEGER and abs(record.exec.exitCode or 0) <= LARGEST_INTEGER


def _read_strictly(data: bytes) -> Record:
    value = strict_value(data)
    try:
        # The bytes met the strict reader; enum members and arrays are read from JSON text only.
        return EVIDENCE.validate_json(data, strict=True)
    except ValidationError:
        _explain(value)


def strict_value(data: bytes) -> JsonValue:
    """A JSON value by the strict reader, which here refuses `-0` too.

    Raises:
        RecordError: with the code of the first fault.
    """
    try:
        value = read_json(data, Profile.DOCUMENT)
    except EvidenceError as error:
        raise RecordError(f"not strict JSON ({error.code})") from None
    if b"-0" in data:
        json.loads(data, parse_int=_refuse_negative_zero)
    return value


def _refuse_negative_zero(token: str) -> int:
    if token == "-0":  # noqa: S105 - a number
        raise RecordError("not strict JSON (number_range)")
    return int(token)


def read_findings(value: JsonValue) -> tuple[Finding, ...]:
    """The findings in a JSON array.

    Raises:
        RecordError: a finding breaks the schema, or there are more than 200.
    """
    try:
        return FINDINGS.validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        raise RecordError(_first(error)) from None


def _explain(value: JsonValue) -> NoReturn:
    kind = value.get("recordType") if isinstance(value, dict) else None
    if kind not in {"command", "review"}:
        raise RecordError("/recordType is neither command nor review")
    model: type[_Record] = CommandRecord if kind == "command" else ReviewRecord
    try:
        validate(model, value)
    except EvidenceError as error:
        fault = error.faults[0]
        raise RecordError(f"{fault.where or '/'} {fault.sentence.rstrip('.')}") from None
    raise RecordError("/ the record does not fit its schema")


def _first(error: ValidationError) -> str:
    detail = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = "".join(f"/{segment}" for segment in detail["loc"])
    return f"{where or '/'} {_REASONS.get(detail['type'], 'has a value that is not allowed')}"


_REASONS: Final = {
    "missing": "is missing",
    "extra_forbidden": "is not a member of a finding",
    "string_type": "is not text",
    "string_too_short": "is empty",
    "string_too_long": "is too long",
    "enum": "is not one of P0, P1, P2, P3",
    "model_type": "is not an object",
    "too_long": f"holds more than {FINDINGS_MOST} findings",
}
