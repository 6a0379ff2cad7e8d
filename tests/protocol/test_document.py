from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.protocol.document import Count, DigestText, FrozenModel, Rate, parse_document
from skill_effectiveness.protocol.errors import ProtocolCode, ProtocolError


class Sheet(FrozenModel):
    share: Rate
    number: Count
    digest: DigestText


GOOD = {"share": 0.25, "number": 3, "digest": "sha256:" + 64 * "a"}


def refusal(data: bytes) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        parse_document(Sheet, data, "fixtures/sheet.json")
    assert caught.value.code is ProtocolCode.FIXTURE_INVALID
    return caught.value


def test_a_good_document_in_any_layout() -> None:
    for indent in (None, 2, 8):
        sheet = parse_document(Sheet, json.dumps(GOOD, indent=indent).encode(), "fixtures/sheet.json")
        assert (sheet.share, sheet.number) == (0.25, 3)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"", "empty"),
        (b'\xef\xbb\xbf{"share":0.25}', "bom"),
        (b'{"share":"\xff"}', "not_utf8"),
        (b'{"share":0.25', "syntax"),
        (b'{"share":0.25,"share":0.25}', "duplicate_key"),
        (b'{"share":NaN}', "non_finite"),
        (b"[]", "not_an_object"),
        (b"{} {}", "trailing_data"),
    ],
)
def test_bytes_that_are_not_strict_json(text: bytes, code: str) -> None:
    assert code in refusal(text).sentence


@pytest.mark.parametrize(
    ("member", "value", "code"),
    [
        ("share", 1.5, "wrong_value"),
        ("share", "0.25", "wrong_type"),
        ("share", True, "wrong_type"),
        ("share", None, "wrong_type"),
        ("number", 0, "wrong_value"),
        ("number", "3", "wrong_type"),
        ("digest", "sha256:" + 64 * "A", "wrong_value"),
        ("digest", "sha256:" + 64 * "a" + "\n", "wrong_value"),
        ("digest", "sha256:" + 63 * "a", "wrong_value"),
        ("other", 1, "unknown_field"),
    ],
)
def test_a_wrong_member_is_named_by_pointer_and_code(member: str, value: object, code: str) -> None:
    error = refusal(json.dumps(GOOD | {member: value}).encode())
    assert error.where == f"fixtures/sheet.json#/{member}"
    assert f"/{member}: {code}" in error.sentence


def test_a_missing_member_is_named() -> None:
    error = refusal(b'{"share":0.25,"number":3}')
    assert "missing_field" in error.sentence
    assert "digest" in error.sentence


@pytest.mark.parametrize("spelling", ["1.0", "1e0", "0.00001", "1e-5"])
def test_a_number_that_writers_spell_in_two_ways_is_refused(spelling: str) -> None:
    text = json.dumps(GOOD).replace("0.25", spelling)
    assert "number_form" in refusal(text.encode()).sentence


def test_all_faults_are_counted_and_five_are_told() -> None:
    error = refusal(json.dumps({f"member-{n}": n for n in range(7)}).encode())
    assert error.sentence.count("unknown_field") + error.sentence.count("missing_field") == 5
    assert "And 5 more." in error.sentence


@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(
        lambda value: json.dumps(value).encode()
    )
)
def test_nothing_but_the_typed_error_leaves(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_document(Sheet, data, "fixtures/sheet.json")
