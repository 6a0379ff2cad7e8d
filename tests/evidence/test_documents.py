from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from skill_effectiveness.evidence.documents import (
    Canonical,
    No,
    One,
    RuleBroken,
    Two,
    Yes,
    parse,
    text_record,
    validate,
)
from skill_effectiveness.evidence.faults import (
    CanonicalError,
    DocumentCode,
    DocumentError,
    StrictCode,
    StrictError,
)
from skill_effectiveness.evidence.strict import Profile
from tests.support.json_values import json_values

D = DocumentCode
SECRET = "hunter2"


class Verdict(StrEnum):
    WIN = "win"
    TIE = "tie"


class Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Row(Frozen):
    case: str
    verdict: Verdict


class Call(Frozen):
    kind: Literal["call"]
    seat: int


class Note(Frozen):
    kind: Literal["note"]
    text: str


class Sheet(Frozen):
    count: int
    share: float = 0.5
    valid: bool = True
    rows: tuple[Row, ...] = ()
    limit: int | None = None
    item: Annotated[Call | Note, Field(discriminator="kind")] | None = None
    either: int | tuple[int, ...] = 0
    counts: dict[str, int] = {}
    name: Annotated[str, Field(pattern="^[a-z]+$", max_length=9)] = "a"
    small: Annotated[int, Field(ge=1, le=5)] = 1


class Ruled(Frozen):
    low: int
    high: int
    token: str = ""

    @field_validator("token")
    @classmethod
    def _no_token(cls, token: str) -> str:
        if token:
            message = f"do not quote {token}"
            raise ValueError(message)
        return token

    @model_validator(mode="after")
    def _in_order(self) -> Ruled:
        if self.low > self.high:
            message = "low must not be above high; swap them."
            raise RuleBroken(message)
        return self


class Anything(Frozen):
    value: Any


def faults_of(model: type[BaseModel], value: object) -> list[tuple[str, str]]:
    """Codes and places of a refusal, the same whether read or given."""
    with pytest.raises(DocumentError) as read:
        parse(model, json.dumps(value).encode(), Profile.WIRE)
    with pytest.raises(DocumentError) as given_value:
        validate(model, value)
    assert read.value.faults == given_value.value.faults
    assert SECRET not in str(read.value)
    return [(fault.code, fault.where) for fault in read.value.faults]


# What fits.


def test_json_spellings_of_python_types_fit() -> None:
    data = (
        b'{"count":3,"share":1,"rows":[{"case":"a","verdict":"tie"}],"limit":null,'
        b'"item":{"kind":"call","seat":1},"either":[1,2]}'
    )
    sheet = parse(Sheet, data, Profile.WIRE)
    assert sheet.rows == (Row(case="a", verdict=Verdict.TIE),)
    assert sheet.rows[0].verdict is Verdict.TIE
    assert type(sheet.share) is float
    assert sheet.item == Call(kind="call", seat=1)
    assert sheet.either == (1, 2)


@given(json_values)
def test_values_reach_the_model_as_they_were_read(value: object) -> None:
    """E6: also after the way through pydantic, `1` and `1.0` are different."""
    reached = parse(Anything, json.dumps({"value": value}).encode(), Profile.DOCUMENT).value
    assert repr(reached) == repr(value)


# What does not.


@pytest.mark.parametrize("value", [1.0, True, "1", None, [1], {"a": 1}, 0.0])
def test_only_integer_tokens_fit_integer_fields(value: object) -> None:
    """E6: `1.0`, `true` and `"1"` fail an integer field."""
    assert faults_of(Sheet, {"count": value}) == [(D.WRONG_TYPE, "/count")]


@pytest.mark.parametrize("value", [1.0, True, "1"])
def test_only_integer_tokens_fit_optional_and_nested_integer_fields(value: object) -> None:
    """E6: unions and containers are no way around."""
    assert faults_of(Sheet, {"count": 1, "limit": value}) == [(D.WRONG_TYPE, "/limit")]
    assert faults_of(Sheet, {"count": 1, "counts": {"x": value}}) == [(D.WRONG_TYPE, "/counts/x")]
    assert faults_of(Sheet, {"count": 1, "either": [value]}) == [
        (D.WRONG_TYPE, "/either"),
        (D.WRONG_TYPE, "/either/0"),
    ]


@pytest.mark.parametrize(
    ("member", "value", "fault"),
    [
        ("share", True, (D.WRONG_TYPE, "/share")),
        ("share", "0.5", (D.WRONG_TYPE, "/share")),
        ("valid", 1, (D.WRONG_TYPE, "/valid")),
        ("valid", "true", (D.WRONG_TYPE, "/valid")),
        ("rows", {}, (D.WRONG_TYPE, "/rows")),
        ("rows", [{"case": "a", "verdict": "lose"}], (D.WRONG_VALUE, "/rows/0/verdict")),
        ("rows", [{"case": 1, "verdict": "tie"}], (D.WRONG_TYPE, "/rows/0/case")),
        ("rows", [{"verdict": "tie"}], (D.MISSING_FIELD, "/rows/0/case")),
        ("rows", [{"case": "", "verdict": "tie", SECRET: 1}], (D.UNKNOWN_FIELD, f"/rows/0/{SECRET}")),
        ("item", {"kind": SECRET}, (D.WRONG_VALUE, "/item")),
        ("item", {"seat": 1}, (D.WRONG_VALUE, "/item")),
        ("item", {"kind": "call"}, (D.MISSING_FIELD, "/item/seat")),
        ("item", {"kind": "note", "text": 1}, (D.WRONG_TYPE, "/item/text")),
        ("name", SECRET.upper(), (D.WRONG_VALUE, "/name")),
        ("name", SECRET * 3, (D.WRONG_VALUE, "/name")),
        ("small", 6, (D.WRONG_VALUE, "/small")),
        ("a/b~", 1, (D.UNKNOWN_FIELD, "/a~1b~0")),
    ],
)
def test_each_misfit_has_code_and_pointer(member: str, value: object, fault: tuple[str, str]) -> None:
    """E65: the four document codes; pointers name places of the document, not pydantic's."""
    assert faults_of(Sheet, {"count": 1, member: value}) == [fault]


@pytest.mark.parametrize("value", [[], 1, "x", None])
def test_a_document_that_is_no_object(value: object) -> None:
    assert faults_of(Sheet, value) == [(D.WRONG_TYPE, "")]


class Twins(Frozen):
    twins: tuple[Row, Row]


def test_an_item_that_a_fixed_list_lacks_is_named() -> None:
    """E7: the pointer is the place where it belongs."""
    with pytest.raises(DocumentError) as caught:
        validate(Twins, {"twins": [{"case": "x", "verdict": "win"}]})
    assert [(fault.code, fault.where) for fault in caught.value.faults] == [(D.MISSING_FIELD, "/twins/1")]


def test_every_misfit_is_told_at_once() -> None:
    """E7: all faults of a document together."""
    assert faults_of(Sheet, {"share": "x", "rows": [{}], "more": 1}) == [
        (D.MISSING_FIELD, "/count"),
        (D.WRONG_TYPE, "/share"),
        (D.MISSING_FIELD, "/rows/0/case"),
        (D.MISSING_FIELD, "/rows/0/verdict"),
        (D.UNKNOWN_FIELD, "/more"),
    ]


def test_the_list_of_misfits_is_bounded() -> None:
    assert len(faults_of(Sheet, {"count": 1, **{f"x{n}": n for n in range(3_000)}})) == 1_000


def test_all_document_codes_are_seen() -> None:
    """E65: the tests above raise exactly the members of the enum."""
    assert set(DocumentCode) == {D.UNKNOWN_FIELD, D.MISSING_FIELD, D.WRONG_TYPE, D.WRONG_VALUE}


# Sentences.


def sentence_of(model: type[BaseModel], value: object) -> str:
    with pytest.raises(DocumentError) as caught:
        validate(model, value)
    return caught.value.faults[0].sentence


def test_a_sentence_tells_what_the_model_wants() -> None:
    assert sentence_of(Sheet, {"count": 1, "small": 6}) == (
        "This field has a value that is not allowed. Input should be less than or equal to 5."
    )
    assert sentence_of(Sheet, {"count": "1"}) == (
        "This field has another JSON type than is needed. Input should be a valid integer."
    )


class Kind(StrEnum):
    FIRST = "first kind"
    SECOND = "second's"


class Kinds(BaseModel):
    one: Literal[Kind.FIRST] | None = None
    two: Literal[Kind.FIRST, Kind.SECOND] | None = None
    any: Kind | None = None
    yes: Literal[True] | None = None
    word: Literal["<a: b>"] | None = None


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ({"one": "x"}, "'first kind'"),
        ({"two": "x"}, "'first kind' or \"second's\""),
        ({"any": "x"}, "'first kind' or \"second's\""),
        ({"yes": False}, "true"),
        ({"word": "x"}, "'<a: b>'"),
    ],
)
def test_a_sentence_shows_values_and_no_python(value: object, wanted: str) -> None:
    """Members of an enum by their text, constants as JSON has them."""
    told = "This field has a value that is not allowed. Input should be "
    assert sentence_of(Kinds, value) == f"{told}{wanted}."


def test_a_rule_of_a_model_speaks_for_itself() -> None:
    assert sentence_of(Ruled, {"low": 2, "high": 1}) == "low must not be above high; swap them."
    assert faults_of(Ruled, {"low": 2, "high": 1}) == [(D.WRONG_VALUE, "")]


def test_an_accidental_text_of_a_validator_is_not_passed_on() -> None:
    assert sentence_of(Ruled, {"low": 1, "high": 1, "token": SECRET}) == (
        "This field has a value that is not allowed."
    )


# Bytes.


def test_json_level_faults_come_first() -> None:
    with pytest.raises(StrictError) as caught:
        parse(Sheet, b'{"count":"x","count":NaN}', Profile.WIRE)
    assert [fault.code for fault in caught.value.faults] == [StrictCode.DUPLICATE_KEY, StrictCode.NON_FINITE]


@pytest.mark.parametrize(
    ("form", "data"),
    [(Canonical.LINE, b'{"count":1,"share":0.25}\n'), (Canonical.BARE, b'{"count":1,"share":0.25}')],
)
def test_canonical_bytes_are_accepted(form: Canonical, data: bytes) -> None:
    assert parse(Sheet, data, Profile.WIRE, canonical=form) == Sheet(count=1, share=0.25)


@pytest.mark.parametrize(
    ("form", "data"),
    [
        (Canonical.LINE, b'{"count":1}'),
        (Canonical.LINE, b'{"count":1}\n\n'),
        (Canonical.LINE, b'{"count":1}\r\n'),
        (Canonical.BARE, b'{"count":1}\n'),
        (Canonical.BARE, b' {"count":1}'),
        (Canonical.BARE, b'{"share":0.5,"count":1}'),
        (Canonical.BARE, b'{"count":1,"share":0.50}'),
        (Canonical.BARE, b'{"count":1,"share":1.0}'),
        (Canonical.BARE, b'{"count":-0}'),
        (Canonical.BARE, rb'{"count":1,"name":"\u0061"}'),
        (Canonical.BARE, b'{"count":"not looked at" }'),
    ],
)
def test_any_other_spelling_is_not_canonical(form: Canonical, data: bytes) -> None:
    """E1: documents that this program alone writes have one spelling."""
    with pytest.raises(StrictError) as caught:
        parse(Sheet, data, Profile.WIRE, canonical=form)
    assert [(fault.code, fault.where) for fault in caught.value.faults] == [(StrictCode.NOT_CANONICAL, "")]


@pytest.mark.parametrize(
    "value", [{"count": float("nan")}, {"count": (1,)}, {1: 1}, {"name": "\ud800"}, object()]
)
def test_only_plain_values_are_fitted(value: object) -> None:
    with pytest.raises(CanonicalError):
        validate(Sheet, value)


# Records of bytes.


def test_bytes_that_are_not_text_become_a_record() -> None:
    """F18: nothing of the bytes is lost, and the record has a canonical form."""
    assert text_record(b"\xed\xa0\x80\x00") == {
        "b64": "7aCAAA==",
        "sha256": "sha256:54e8de6f3a9f43134f42c4a32e48f805f166d6cda49881a2f3f67700ce18b7ae",
        "bytes": 4,
    }
    assert text_record(b"")["sha256"] == (
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )


class Tokens(Frozen):
    one: One = 1
    two: Two = 2
    yes: Yes = True
    no: No = False


@pytest.mark.parametrize(
    ("name", "token"),
    [("one", 1), ("two", 2), ("yes", True), ("no", False)],
)
def test_literal_tokens_take_no_look_alike(name: str, token: object) -> None:
    """E6: in Python 1, 1.0 and true are equal, and so are 0 and false; in a document they are not."""
    assert getattr(validate(Tokens, {name: token}), name) is token
    for other in (0, 1, 2, 3, 1.0, 2.0, 0.0, True, False, "1", "true", None, [1]):
        if type(other) is type(token) and other == token:
            continue
        with pytest.raises(DocumentError) as caught:
            validate(Tokens, {name: other})
        assert [fault.where for fault in caught.value.faults] == [f"/{name}"]
