"""From bytes to frozen models, and bytes that are not text as a record.

Source: evidence.md, section 2. The normal way is `parse(Model, data, Profile.WIRE)`: the bytes are read
strictly (`strict`), held against their canonical form if asked, and fitted to a pydantic model; every misfit
is told at once with its JSON pointer.

Fitting is strict: an integer field takes `1`, never `1.0`, `true` or `"1"`. Values that JSON has no type for
keep their JSON spelling: an enum member is its text, a tuple an array. pydantic does that for JSON text only,
so the value already read is written out here and handed over as text: the sender's bytes meet one parser,
`strict`.
"""

from __future__ import annotations

import base64
import json
import re
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypedDict, TypeVar

from pydantic import BaseModel, BeforeValidator, ValidationError

from skill_effectiveness.evidence.canonical import digest_bytes, dump, dump_line
from skill_effectiveness.evidence.faults import DocumentCode, DocumentError, Fault, StrictCode, StrictError
from skill_effectiveness.evidence.pointer import json_pointer
from skill_effectiveness.evidence.strict import MOST_FAULTS, JsonValue, Profile, read_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import ErrorDetails

ModelT = TypeVar("ModelT", bound=BaseModel)


class Canonical(Enum):
    """Which canonical form a document must have when this product alone writes it."""

    LINE = "line"
    """The canonical bytes and one LF."""
    BARE = "bare"
    """The canonical bytes alone."""


class RuleBroken(ValueError):  # noqa: N818 - what a validator says, not an error of this room
    """Raised by a validator of a model; its sentence reaches people, so it holds no part of the input."""


def _integer(value: object) -> object:
    if type(value) is not int:
        raise RuleBroken("A whole number, written as one, is needed here.")
    return value


def _truth(value: object) -> object:
    if not isinstance(value, bool):
        raise RuleBroken("true or false is needed here.")
    return value


# Alone, Literal[1] takes `true` and `1.0` as well, and Literal[True] takes `1`: in Python they are equal.
One = Annotated[Literal[1], BeforeValidator(_integer)]
"""The integer token 1, as in every `schema_version`."""

Two = Annotated[Literal[2], BeforeValidator(_integer)]
"""The integer token 2."""

Yes = Annotated[Literal[True], BeforeValidator(_truth)]
"""The token true."""

No = Annotated[Literal[False], BeforeValidator(_truth)]
"""The token false."""


class TextRecord(TypedDict):
    """Bytes from outside that are not I-JSON text: standard base64, digest (`sha256:…`), number of bytes."""

    b64: str
    sha256: str
    bytes: int


def text_record(data: bytes) -> TextRecord:
    """The record that stands in a document for bytes such as raw output or a file name."""
    return {"b64": base64.b64encode(data).decode(), "sha256": digest_bytes(data), "bytes": len(data)}


def parse(
    model: type[ModelT], data: bytes, profile: Profile, *, canonical: Canonical | None = None
) -> ModelT:
    """Read a document strictly and fit it to its model.

    Args:
        model: the frozen model of the document.
        data: the bytes as received.
        profile: the limits.
        canonical: demand that the bytes are the canonical form.

    Raises:
        StrictError: as `strict.read_json`; `not_canonical`.
        DocumentError: with every misfit, at most 1,000; `where` is a JSON pointer.
    """
    value = read_json(data, profile)
    if canonical is not None and data != _canonical_form(value, canonical):
        sentence = (
            "The bytes are not the canonical form (RFC 8785) that this program writes; they were changed."
        )
        raise StrictError(Fault(StrictCode.NOT_CANONICAL, "", sentence))
    return _fit(model, value)


def validate(model: type[ModelT], value: object) -> ModelT:
    """Fit a plain JSON value to a model, as `parse` does after reading.

    Raises:
        CanonicalError: the value is not made of plain JSON values.
        DocumentError: with every misfit, at most 1,000; `where` is a JSON pointer.
    """
    dump(value)
    return _fit(model, value)


def _canonical_form(value: JsonValue, form: Canonical) -> bytes:
    return dump_line(value) if form is Canonical.LINE else dump(value)


def _fit(model: type[ModelT], value: object) -> ModelT:
    try:
        # Not the canonical text: that writes the float 1.0 as 1, which an integer field would take.
        return model.model_validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        raise DocumentError(*_faults(details, value)) from None


def _faults(details: list[ErrorDetails], value: object) -> list[Fault]:
    """One fault for each code and pointer: the members of a union that do not fit are one misfit."""
    faults: dict[tuple[DocumentCode, str], Fault] = {}
    for detail in details[:MOST_FAULTS]:
        code = _code(detail["type"])
        where = json_pointer(_segments(detail, value))
        faults.setdefault((code, where), Fault(code, where, _sentence(code, detail)))
    return list(faults.values())


def _code(kind: str) -> DocumentCode:
    if kind == "extra_forbidden":
        return DocumentCode.UNKNOWN_FIELD
    if kind == "missing":
        return DocumentCode.MISSING_FIELD
    return (
        DocumentCode.WRONG_TYPE
        if kind.endswith("_type") or kind in _OTHER_TYPES
        else DocumentCode.WRONG_VALUE
    )


_OTHER_TYPES: Final = frozenset({"none_required", "is_instance_of", "int_from_float"})


def _segments(detail: ErrorDetails, value: object) -> list[str | int]:
    """The steps of pydantic's location that are steps in the document.

    pydantic also names the members of unions it tried and whether a member name was meant.
    """
    segments: list[str | int] = []
    node: Any = value
    for step in detail["loc"]:
        if _leads_on(node, step):
            node = node[step]
            segments.append(step)
    if detail["type"] == "missing":
        segments.append(detail["loc"][-1])
    return segments


def _leads_on(node: object, step: str | int) -> bool:
    if isinstance(node, list):
        # The place of an item that a fixed list lacks is none of the document.
        return isinstance(step, int) and step < len(node)
    return isinstance(node, dict) and step in node


_SENTENCES: Final = {
    DocumentCode.UNKNOWN_FIELD: "This field is not known here; remove it or correct its name.",
    DocumentCode.MISSING_FIELD: "This field is needed; add it.",
    DocumentCode.WRONG_TYPE: "This field has another JSON type than is needed.",
    DocumentCode.WRONG_VALUE: "This field has a value that is not allowed.",
}

# Errors whose text pydantic makes from the model alone. Others may quote the input, as a validator's own may.
_TELLING: Final = frozenset(
    {
        "enum",
        "greater_than",
        "greater_than_equal",
        "less_than",
        "less_than_equal",
        "literal_error",
        "multiple_of",
        "string_pattern_mismatch",
        "string_too_long",
        "string_too_short",
        "too_long",
        "too_short",
    }
)


def _sentence(code: DocumentCode, detail: ErrorDetails) -> str:
    cause = detail.get("ctx", {}).get("error")
    if isinstance(cause, RuleBroken):
        return str(cause)
    telling = detail["type"] in _TELLING or (code is DocumentCode.WRONG_TYPE and not detail.get("ctx"))
    return f"{_SENTENCES[code]} {_plain_words(detail)}." if telling else _SENTENCES[code]


_MEMBER: Final = re.compile(r"<[A-Za-z_][A-Za-z_0-9]*\.[A-Za-z_][A-Za-z_0-9]*: ([^<>]*)>")
_CONSTANTS: Final[Mapping[str, str]] = MappingProxyType({"True": "true", "False": "false", "None": "null"})


def _plain_words(detail: ErrorDetails) -> str:
    """What pydantic says, with values as JSON spells them; it spells members of enums as Python does."""
    if detail["type"] != "literal_error":
        return detail["msg"]
    start, wanted, values = detail["msg"].partition("should be ")
    plain = _MEMBER.sub(r"\1", values)
    return f"{start}{wanted}{_CONSTANTS.get(plain, plain)}"
