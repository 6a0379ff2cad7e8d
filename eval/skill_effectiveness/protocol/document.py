"""What every frozen document has in common: an exact model, strict reading and portable numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from skill_effectiveness.evidence import documents
from skill_effectiveness.evidence.canonical import check_portable
from skill_effectiveness.evidence.documents import RuleBroken, validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import JsonValue, Profile, read_json
from skill_effectiveness.protocol.errors import ProtocolError, fixture_invalid
from skill_effectiveness.protocol.resources import RESTORE, read_frozen

if TYPE_CHECKING:
    from skill_effectiveness.evidence.fsops import FileSystem

_FAULTS_SHOWN: Final = 5


class FrozenModel(BaseModel):
    """Base of the records of this room: no unknown field, no conversion, no change after loading."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


One = documents.One
"""The integer token 1, as in every `schema_version`."""

Two = documents.Two
"""The integer token 2."""

Yes = documents.Yes
"""The token true."""

No = documents.No
"""The token false."""


def _stated(value: object) -> object:
    if value is None:
        raise RuleBroken("Leave this field out instead of writing null.")
    return value


Stated = BeforeValidator(_stated)
"""For a field that a document may lack: its default is `None`, but null is refused."""

DigestText = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
"""`sha256:` and 64 lowercase hex digits (evidence.md section 3)."""

Rate = Annotated[float, Field(ge=0, le=1)]
"""A share between 0 and 1."""

Count = Annotated[int, Field(ge=1, le=1_000_000)]
"""A number of things, at least one."""

ModelT = TypeVar("ModelT", bound=FrozenModel)


def to_json(document: FrozenModel) -> dict[str, JsonValue]:
    """A document as plain JSON values, without the fields it may lack and does; hashes are over these."""
    plain: dict[str, JsonValue] = document.model_dump(mode="json", exclude_defaults=True)
    return plain


def parse_document(model: type[ModelT], data: bytes, name: str, *, advice: str = RESTORE) -> ModelT:
    """Read one frozen document.

    Numbers must be portable, so that every writer gets the same digest from them (evidence.md section 3).

    Args:
        model: what the document must be, exactly.
        data: its bytes; any layout, since hashes are over objects.
        name: how errors call it.
        advice: what to do about a malformed one.

    Raises:
        ProtocolError: `fixture_invalid`, naming the faults found and where.
    """
    try:
        value = read_json(data, Profile.DOCUMENT, want_object=True)
        check_portable(value)
        return validate(model, value)
    except EvidenceError as error:
        raise _refusal(name, error, advice) from error


def read_document(fs: FileSystem, relative: str, model: type[ModelT]) -> ModelT:
    """Read one frozen document of this installation; errors as `parse_document` and `read_frozen`."""
    return parse_document(model, read_frozen(fs, relative), relative)


def told(error: EvidenceError) -> str:
    """The faults of a document for people, each with its pointer; of many, the first few."""
    lines = [
        f"{fault.where or 'the whole'}: {fault.code}: {fault.sentence}"
        for fault in error.faults[:_FAULTS_SHOWN]
    ]
    if len(error.faults) > _FAULTS_SHOWN:
        lines.append(f"And {len(error.faults) - _FAULTS_SHOWN} more.")
    return " ".join(lines)


def _refusal(name: str, error: EvidenceError, advice: str) -> ProtocolError:
    """One error for all faults; its place is that of the first."""
    first = error.faults[0].where
    return fixture_invalid(
        f"{name}#{first}" if first.startswith("/") else name,
        f"the frozen document is malformed; {advice} Found: {told(error)}",
    )
