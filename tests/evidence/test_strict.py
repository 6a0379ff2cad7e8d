from __future__ import annotations

import contextlib
import io
import json
import math
import sys
import time
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skill_effectiveness.evidence.documents import Canonical, parse
from skill_effectiveness.evidence.faults import StrictCode, StrictError
from skill_effectiveness.evidence.merkle import InclusionProof
from skill_effectiveness.evidence.strict import JsonValue, Profile, _Scan, read_json, read_rows
from tests.support.json_values import json_values

if TYPE_CHECKING:
    from collections.abc import Callable

C = StrictCode


def faults_of(
    data: bytes, profile: Profile = Profile.WIRE, *, want_object: bool = False
) -> list[tuple[str, str]]:
    """The codes and places of a refusal."""
    with pytest.raises(StrictError) as caught:
        read_json(data, profile, want_object=want_object)
    return [(fault.code, fault.where) for fault in caught.value.faults]


def row_faults(data: bytes) -> list[tuple[str, str]]:
    with pytest.raises(StrictError) as caught:
        list(read_rows(io.BytesIO(data)))
    return [(fault.code, fault.where) for fault in caught.value.faults]


# What is read.


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"{}", {}),
        (b" \t\r\n[ 1 , true ]\n ", [1, True]),
        (b"null", None),
        (b"-0", 0),
        (b"-0.0", 0.0),
        (b"0e999", 0.0),
        (b"1.0", 1.0),
        (b"1E2", 100.0),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\\u0000\\u001f\x7f"', "\x00\x1f\x7f"),
        (b'{"a":{"a":{"a":[]}}}', {"a": {"a": {"a": []}}}),
        (b'"[[[[{{{{,,,,"', "[[[[{{{{,,,,"),
        ('{"é":"\u2028"}'.encode(), {"é": "\u2028"}),
        ('["\u1ffe\ufdcf\ufdf0\ufffd", "\\uffaa"]'.encode(), ["\u1ffe\ufdcf\ufdf0\ufffd", "\uffaa"]),
    ],
)
def test_plain_values(data: bytes, value: JsonValue) -> None:
    read = read_json(data, Profile.WIRE)
    assert read == value
    assert type(read) is type(value)


def test_a_number_without_fraction_is_an_integer_and_no_other() -> None:
    """E6: `1` and `1.0` stay apart, booleans stay booleans."""
    read = read_json(b'[1, 1.0, 1e0, true, "1"]', Profile.WIRE)
    assert isinstance(read, list)
    assert [type(item) for item in read] == [int, float, float, bool, str]


def test_negative_zero_reads_as_zero() -> None:
    read = read_json(b"[-0, -0.0]", Profile.WIRE)
    assert isinstance(read, list)
    assert [type(item) for item in read] == [int, float]
    assert all(math.copysign(1, item) == 1 for item in read if isinstance(item, int | float))


@given(json_values)
def test_what_the_standard_library_writes_is_read_back(value: object) -> None:
    assert read_json(json.dumps(value).encode(), Profile.DOCUMENT) == value
    assert read_json(json.dumps(value, ensure_ascii=False).encode(), Profile.DOCUMENT) == value


@given(st.binary(max_size=60))
@example(b'"\\')
@example(b'{"a":1,"a":NaN}]')
def test_any_bytes_give_a_value_or_a_strict_error(data: bytes) -> None:
    """E1: nothing but a strict error is raised for bytes."""
    with contextlib.suppress(StrictError):
        read_json(data, Profile.ROW)


@given(st.text(alphabet='[]{}",:\\u019eE.+-dDfFalsnr \t\n\x0b\ufeff\ud7ff', max_size=40))
def test_any_json_like_text_is_judged_as_the_standard_library_judges_it(text: str) -> None:
    data = text.encode("utf-8")
    try:
        expected = json.loads(data.decode())
    except ValueError:
        with pytest.raises(StrictError):
            read_json(data, Profile.WIRE)
        return
    codes: set[object] = set()
    try:
        assert read_json(data, Profile.WIRE) == expected
    except StrictError as error:
        codes = {fault.code for fault in error.faults}
    assert not codes & {C.SYNTAX, C.TRAILING_DATA, C.NOT_UTF8}


# Every code.

ONE_FAULT: dict[str, tuple[bytes, StrictCode, str]] = {
    "no bytes": (b"", C.EMPTY, ""),
    "white space only": (b" \r\n\t", C.EMPTY, ""),
    "mark before a value": (b"\xef\xbb\xbf{}", C.BOM, ""),
    "mark alone": (b"\xef\xbb\xbf", C.BOM, ""),
    "a stray byte": (b'"\xff"', C.NOT_UTF8, ""),
    "an overlong slash": (b'"\xc0\xaf"', C.NOT_UTF8, ""),
    "an encoded surrogate": (b'"\xed\xa0\x80"', C.NOT_UTF8, ""),
    "beyond Unicode": (b'"\xf4\x90\x80\x80"', C.NOT_UTF8, ""),
    "cut in a character": (b'"\xc3', C.NOT_UTF8, ""),
    "UTF-16": ("{}".encode("utf-16"), C.NOT_UTF8, ""),
    "an open object": (b'{"a":1', C.SYNTAX, ""),
    "an open text": (b'"abc', C.SYNTAX, ""),
    "a comma at the end": (b"[1,]", C.SYNTAX, ""),
    "single quotes": (b"{'a':1}", C.SYNTAX, ""),
    "a bare word": (b"undefined", C.SYNTAX, ""),
    "a comment": (b"/* */ 1", C.SYNTAX, ""),
    "a plus": (b"+1", C.SYNTAX, ""),
    "no digit before the dot": (b".5", C.SYNTAX, ""),
    "a raw line feed in a text": (b'"a\nb"', C.SYNTAX, ""),
    "an unknown escape": (b'"\\x41"', C.SYNTAX, ""),
    "a short escape": (b'"\\u12"', C.SYNTAX, ""),
    "a form feed as space": (b"\x0c1", C.SYNTAX, ""),
    "a no-break space as space": ("\u00a01".encode(), C.SYNTAX, ""),
    "digits of another script": ("\u0661".encode(), C.SYNTAX, ""),
    "two values": (b"{} {}", C.TRAILING_DATA, ""),
    "a leading zero": (b"01", C.TRAILING_DATA, ""),
    "NUL behind a value": (b"{}\x00", C.TRAILING_DATA, ""),
    "a vertical tab behind a value": (b"{}\x0b", C.TRAILING_DATA, ""),
    "NaN": (b'{"score":NaN}', C.NON_FINITE, "/score"),
    "Infinity": (b"[Infinity]", C.NON_FINITE, "/0"),
    "-Infinity": (b"[0,-Infinity]", C.NON_FINITE, "/1"),
    "1e999": (b'{"score":1e999}', C.NON_FINITE, "/score"),
    "-1e999": (b"-1e999", C.NON_FINITE, ""),
    "2^53": (b"9007199254740992", C.NUMBER_RANGE, ""),
    "-2^53": (b"-9007199254740992", C.NUMBER_RANGE, ""),
    "2^53 as a fraction": (b"9007199254740992.0", C.NUMBER_RANGE, ""),
    "2^53 by rounding": (b"9007199254740991.5", C.NUMBER_RANGE, ""),
    "1e21": (b'{"y":1e21}', C.NUMBER_RANGE, "/y"),
    "zero by rounding": (b"[1e-999]", C.NUMBER_RANGE, "/0"),
    "minus zero by rounding": (b"-0.0001e-400", C.NUMBER_RANGE, ""),
    "65 digits of fraction": (b"0." + b"1" * 63, C.NUMBER_RANGE, ""),
    "65 zeros": (b"0." + b"0" * 63, C.NUMBER_RANGE, ""),
    "5,000 digits": (b"1" * 5_000, C.NUMBER_RANGE, ""),
    "half a pair": (b'"\\ud800"', C.LONE_SURROGATE, ""),
    "the other half": (b'["a\\uDFFFb"]', C.LONE_SURROGATE, "/0"),
    "halves in wrong order": (b'"\\udc00\\ud800"', C.LONE_SURROGATE, ""),
    "half a pair as a name": (b'{"\\ud800":1}', C.LONE_SURROGATE, "/\\ud800"),
    "a raw noncharacter": ('"\ufffe"'.encode(), C.NONCHARACTER, ""),
    "an escaped noncharacter": (b'"\\ufdd0"', C.NONCHARACTER, ""),
    "the last noncharacter of the block": (b'"\\uFDEF"', C.NONCHARACTER, ""),
    "a noncharacter by a pair": (b'"\\ud83f\\udfff"', C.NONCHARACTER, ""),
    "the last code point": ('{"a":["\U0010ffff"]}'.encode(), C.NONCHARACTER, "/a/0"),
    "a noncharacter as a name": (b'{"\\uffff":{}}', C.NONCHARACTER, "/\\uffff"),
    "a name twice": (b'{"pass":false,"pass":true}', C.DUPLICATE_KEY, "/pass"),
}


@pytest.mark.parametrize("name", ONE_FAULT)
def test_each_code(name: str) -> None:
    """E1 E3 F19 F22: each kind of bad bytes has its code and place."""
    data, code, where = ONE_FAULT[name]
    assert faults_of(data) == [(code, where)]


@pytest.mark.parametrize("data", [b"[]", b"null", b'"{}"', b"1"])
def test_an_object_is_asked_for(data: bytes) -> None:
    """E1: anything but an object is refused where one is wanted."""
    read_json(data, Profile.WIRE)
    assert faults_of(data, want_object=True) == [(C.NOT_AN_OBJECT, "")]


def test_a_faulty_object_is_still_an_object() -> None:
    assert faults_of(b'{"a":1,"a":2}', want_object=True) == [(C.DUPLICATE_KEY, "/a")]


NONCHARACTERS = [
    *range(0xFDD0, 0xFDF0),
    *(plane << 16 | low for plane in range(17) for low in (0xFFFE, 0xFFFF)),
]


@pytest.mark.parametrize("code_point", NONCHARACTERS)
def test_all_66_noncharacters_raw_and_escaped(code_point: int) -> None:
    """E1: U+FDD0 to U+FDEF and the last two code points of each plane."""
    text = chr(code_point)
    assert faults_of(json.dumps(text).encode()) == [(C.NONCHARACTER, "")]
    assert faults_of(json.dumps(text, ensure_ascii=False).encode()) == [(C.NONCHARACTER, "")]


@pytest.mark.parametrize("code_point", [0xD800, 0xDBFF, 0xDC00, 0xDFFF])
@pytest.mark.parametrize("form", ["{:04x}", "{:04X}"])
def test_half_pairs_in_any_case(code_point: int, form: str) -> None:
    """E1: escapes in both cases of hex digits."""
    assert faults_of(rb'"\u%s"' % form.format(code_point).encode()) == [(C.LONE_SURROGATE, "")]


OTHERWISE: dict[StrictCode, Callable[[], object]] = {
    C.TOO_LARGE: lambda: read_json(b" " * 1_048_577, Profile.WIRE),
    C.TOO_DEEP: lambda: read_json(b"[" * 65, Profile.WIRE),
    C.TOO_MANY_NODES: lambda: read_json(b"[" + b"1," * 200_000 + b"1]", Profile.WIRE),
    C.NOT_AN_OBJECT: lambda: read_json(b"[]", Profile.WIRE, want_object=True),
    C.TORN_ROW: lambda: list(read_rows(io.BytesIO(b"{}"))),
    C.BLANK_ROW: lambda: list(read_rows(io.BytesIO(b"\n"))),
    C.NOT_CANONICAL: lambda: parse(InclusionProof, b"{ }", Profile.WIRE, canonical=Canonical.BARE),
}
"""Codes that are no matter of the bytes alone."""


@pytest.mark.parametrize("code", OTHERWISE)
def test_each_code_that_bytes_alone_do_not_give(code: StrictCode) -> None:
    """E1 E65: limits, rows and forms that a caller asks for."""
    with pytest.raises(StrictError) as caught:
        OTHERWISE[code]()
    assert code in [fault.code for fault in caught.value.faults]


def test_no_code_is_left_out() -> None:
    """E1 E65: the two tables of situations have every member."""
    assert {code for _, code, _ in ONE_FAULT.values()} | OTHERWISE.keys() == set(StrictCode)


@pytest.mark.parametrize(
    "token", [b"9007199254740991", b"-9007199254740991", b"9007199254740991.0", b"5e-324"]
)
def test_the_largest_and_smallest_numbers_pass(token: bytes) -> None:
    """E3: 2^53-1 is the largest integer, however spelled."""
    assert read_json(token, Profile.WIRE) == float(token)


@pytest.mark.parametrize("token", [b"0." + b"1" * 62, b"1" + b"0" * 4 + b"e" + b"0" * 58])
def test_64_characters_of_a_number_pass(token: bytes) -> None:
    assert len(token) == 64
    assert read_json(token, Profile.WIRE) == float(token)


# Limits.


@pytest.mark.parametrize("profile", list(Profile))
def test_size(profile: Profile) -> None:
    """E1: the limit itself passes, one byte more does not."""
    full = b" " * (profile.max_bytes - 1) + b"1"
    assert read_json(full, profile) == 1
    assert faults_of(full + b" ", profile) == [(C.TOO_LARGE, "")]


@pytest.mark.parametrize(
    ("opening", "closing"),
    [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"[":', b"}]")],
    ids=["array", "object", "both"],
)
@pytest.mark.parametrize("profile", list(Profile))
def test_depth(profile: Profile, opening: bytes, closing: bytes) -> None:
    """E4: depth 64 passes, 65 fails (rows: 32 and 33)."""
    levels = profile.max_depth // (2 if opening.startswith(b"[{") else 1)
    full = opening * levels + b"0" + closing * levels
    read_json(full, profile)
    assert faults_of(b"[" + full + b"]", profile) == [(C.TOO_DEEP, "")]


def test_width_is_not_depth() -> None:
    assert read_json(b"[" + b",".join([b"[[]]"] * 1_000) + b"]", Profile.WIRE) == [[[]]] * 1_000


@pytest.mark.parametrize("bracket", [b"[", b"{", b'{"a":[', b"[ "])
def test_100_000_brackets_fail_before_parsing(bracket: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """E4: hostile nesting never reaches the parser, costs no recursion and little time."""
    monkeypatch.setattr(json, "JSONDecoder", None)
    monkeypatch.setattr(sys, "getrecursionlimit", lambda: 100)
    start = time.perf_counter()
    faults = faults_of(bracket * 100_000)
    assert time.perf_counter() - start < 1
    assert faults[0] == (C.TOO_DEEP, "")


def nested_texts(count: int) -> bytes:
    return b"[" + b",".join([b'"[[,,{"'] * count) + b"]"


NODES: dict[str, Callable[[int], bytes]] = {
    "integers": lambda count: b"[" + b",".join([b"1"] * (count - 1)) + b"]",
    "texts": lambda count: nested_texts(count - 1),
    "empty containers": lambda count: b"[" + b",".join([b"[ ]", b"{\n}"] * ((count - 1) // 2)) + b",1]",
    "members": lambda count: b"{" + b",".join(b'"%d":1' % n for n in range(count - 1)) + b"}",
}


@pytest.mark.parametrize("shape", NODES)
def test_nodes(shape: str) -> None:
    """E1: every value counts, member names and what stands inside texts do not."""
    limit = Profile.ROW.max_nodes
    assert limit == 100_000
    full = NODES[shape](limit)
    read_json(full, Profile.ROW)
    assert faults_of(full[:-1] + (b',"x":1}' if shape == "members" else b",1]"), Profile.ROW) == [
        (C.TOO_MANY_NODES, "")
    ]


def size_of(value: object) -> tuple[int, int]:
    """Nodes and depth of a value, counted the plain way."""
    if not isinstance(value, dict | list):
        return 1, 0
    inner = [size_of(child) for child in (value.values() if isinstance(value, dict) else value)]
    return 1 + sum(nodes for nodes, _ in inner), 1 + max((depth for _, depth in inner), default=0)


TRICKY = st.text(alphabet='\\"[]{},: \n0é', max_size=8)


@given(
    st.recursive(
        TRICKY | st.integers(-9, 9),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TRICKY, inner, max_size=4),
    ),
    st.integers(1, 9),
    st.sampled_from([None, 0, 1]),
)
def test_nodes_and_depth_are_exact_wherever_windows_end(
    value: object, window: int, indent: int | None
) -> None:
    """E4: a window may end in a text, behind a backslash or between two brackets."""
    data = json.dumps(value, indent=indent, ensure_ascii=False).encode()
    scan = _Scan()
    nodes, depth = size_of(value)
    for start in range(0, len(data), window):
        scan.take(data[start : start + window])
        assert scan.nodes <= nodes
    assert (scan.nodes, scan.deepest) == (nodes, depth)


def test_a_document_of_many_texts_is_refused_with_little_memory() -> None:
    """E1: the scan holds a window, whatever the document is made of."""
    data = b"[" + b'"",' * 10_000_000 + b'""]'
    tracemalloc.start()
    try:
        assert faults_of(data, Profile.DOCUMENT) == [(C.TOO_MANY_NODES, "")]
        # The text of the document itself is held.
        assert tracemalloc.get_traced_memory()[1] < len(data) + 30_000_000
    finally:
        tracemalloc.stop()


def test_an_unterminated_text_of_the_largest_size_is_scanned_once() -> None:
    data = b'"' + b"\\\\" * (Profile.WIRE.max_bytes // 2 - 1)
    start = time.perf_counter()
    assert faults_of(data) == [(C.SYNTAX, "")]
    assert time.perf_counter() - start < 1


# Duplicates.


def nested(depth: int, innermost: bytes) -> bytes:
    return b'{"a":' * (depth - 1) + innermost + b"}" * (depth - 1)


@pytest.mark.parametrize("depth", [1, 40])
def test_duplicates_at_any_depth(depth: int) -> None:
    """E2 F22: the same name twice is found at depth 1 and 40."""
    assert faults_of(nested(depth, b'{"b":1,"c":2,"b":1}')) == [(C.DUPLICATE_KEY, "/a" * (depth - 1) + "/b")]


@pytest.mark.parametrize(
    ("names", "pointer"),
    [
        (rb'"a":1,"\u0061":2', "/a"),
        (rb'"\/":1,"/":2', "/~1"),
        (rb'"\ud83d\ude00":1,"' + "\U0001f600".encode() + b'":1', "/\U0001f600"),
        (rb'"":1,"":2', "/"),
    ],
)
def test_names_are_compared_after_unescaping(names: bytes, pointer: str) -> None:
    r"""E2: `"a"` beside `"\u0061"` is a duplicate."""
    assert faults_of(b"{" + names + b"}") == [(C.DUPLICATE_KEY, pointer)]


def test_names_that_differ_only_in_normal_form_or_case_are_different() -> None:
    data = '{"\u00e9":1,"e\u0301":2,"a":3,"A":4}'.encode()
    assert read_json(data, Profile.WIRE) == {"\u00e9": 1, "e\u0301": 2, "a": 3, "A": 4}


def test_a_name_three_times_is_told_twice() -> None:
    assert faults_of(b'{"a":1,"a":2,"a":3}') == [(C.DUPLICATE_KEY, "/a")] * 2


# All at once.


def test_all_faults_of_one_document_are_told_in_document_order() -> None:
    """E7: every fault with its pointer, also inside members that stand twice, and what trails."""
    data = (
        rb'{"n":[1,NaN,2e999,9007199254740992],"d":{"x":{"y":-Infinity},"x":{"y":1e-400}},'
        rb'"s":["\ud800","\ufdd0","\ud800\ufffe"],"\udc00/~":0} ,'
    )
    assert faults_of(data) == [
        (C.LONE_SURROGATE, "/\\udc00~1~0"),
        (C.NON_FINITE, "/n/1"),
        (C.NON_FINITE, "/n/2"),
        (C.NUMBER_RANGE, "/n/3"),
        (C.DUPLICATE_KEY, "/d/x"),
        (C.NON_FINITE, "/d/x/y"),
        (C.NUMBER_RANGE, "/d/x/y"),
        (C.LONE_SURROGATE, "/s/0"),
        (C.NONCHARACTER, "/s/1"),
        (C.LONE_SURROGATE, "/s/2"),
        (C.NONCHARACTER, "/s/2"),
        (C.TRAILING_DATA, ""),
    ]


def test_a_mark_and_bad_bytes_are_told_together() -> None:
    """E7: faults of the byte level are collected too."""
    assert faults_of(b"\xef\xbb\xbf\xff") == [(C.BOM, ""), (C.NOT_UTF8, "")]


def test_too_deep_and_too_many_are_told_together() -> None:
    """E7: both limits are judged in one scan."""
    assert faults_of(b"[" * 200_002) == [(C.TOO_DEEP, ""), (C.TOO_MANY_NODES, "")]


def test_the_list_of_faults_is_bounded() -> None:
    name = "x" * 500_000
    faults = faults_of(b'{"%s":[%s]}' % (name.encode(), b",".join([b"NaN"] * 2_000)))
    assert len(faults) == 1_000
    assert faults[-1] == (C.NON_FINITE, "/" + "x" * 128 + "…/999")


def test_sentences_say_where_the_syntax_broke_and_quote_nothing() -> None:
    with pytest.raises(StrictError) as caught:
        read_json(b'{"a":1,\n "secret" 2}', Profile.WIRE)
    assert str(caught.value) == "Line 2, column 11: This is not JSON (RFC 8259); correct it."
    with pytest.raises(StrictError) as caught:
        read_json(b"1\n\n  secret", Profile.WIRE)
    assert str(caught.value) == "Line 3, column 3: Something follows the JSON value; only one value is read."
    with pytest.raises(StrictError, match=r"^Byte 3: This is not UTF-8"):
        read_json(b'"a\xff"', Profile.WIRE)


# Rows.


def test_rows_are_split_on_line_feeds_only() -> None:
    """E5 F44: U+2028, U+0085, vertical tab and form feed are data or faults, never row ends."""
    rows = ['{"a":"x\u2028y\u0085z"}', '["\\u000b\\f\\r"]', "  7 ", '"last"\r']
    data = "".join(row + "\n" for row in rows).encode()
    assert list(read_rows(io.BytesIO(data))) == [{"a": "x\u2028y\u0085z"}, ["\x0b\x0c\r"], 7, "last"]


@pytest.mark.parametrize("separator", [b"\x0b", b"\x0c", "\u2028".encode(), "\u0085".encode(), b"\r"])
def test_a_changed_separator_is_found(separator: bytes) -> None:
    """E5 F44: a line feed that became something else fuses two rows, which is found."""
    assert row_faults(b'{"a":1}\n{"b":2}' + separator + b'{"c":3}\n') == [(C.TRAILING_DATA, "2")]


def test_no_row_at_all() -> None:
    assert list(read_rows(io.BytesIO(b""))) == []


def test_rows_before_a_bad_one_are_given() -> None:
    rows = read_rows(io.BytesIO(b"1\n2\nNaN\n4\n"))
    assert [next(rows), next(rows)] == [1, 2]
    with pytest.raises(StrictError):
        next(rows)
    assert list(rows) == []


def test_all_faults_of_one_row_are_told_with_its_number() -> None:
    """E7: row number and pointer."""
    assert row_faults(b'{}\n{"a":NaN,"b":[1e999]}\n') == [(C.NON_FINITE, "2/a"), (C.NON_FINITE, "2/b/0")]


@pytest.mark.parametrize("data", [b"1\n2", b"1\n{", b"1\n "])
def test_a_row_without_line_feed_is_torn(data: bytes) -> None:
    """E1: the last row must end with LF."""
    assert row_faults(data) == [(C.TORN_ROW, "2")]


@pytest.mark.parametrize("data", [b"1\n\n2\n", b"1\n \t\r\n"])
def test_an_empty_row_is_blank(data: bytes) -> None:
    """E1: a row holds a value."""
    assert row_faults(data) == [(C.BLANK_ROW, "2")]


@pytest.mark.parametrize(
    ("row", "code"), [(b"\xff", C.NOT_UTF8), (b"\xef\xbb\xbf1", C.BOM), (b"[", C.SYNTAX)]
)
def test_a_bad_row_has_its_own_code(row: bytes, code: StrictCode) -> None:
    assert row_faults(b"1\n" + row + b"\n") == [(code, "2")]


def test_rows_have_their_own_limits() -> None:
    """E4: a row is at most 32 deep."""
    list(read_rows(io.BytesIO(b"[" * 32 + b"]" * 32 + b"\n")))
    assert row_faults(b"[" * 33 + b"]" * 33 + b"\n") == [(C.TOO_DEEP, "1")]


def test_a_row_of_exactly_the_limit_passes() -> None:
    limit = Profile.ROW.max_bytes
    row = b'"' + b"x" * (limit - 2) + b'"'
    assert list(read_rows(io.BytesIO(row + b"\n1\n"))) == ["x" * (limit - 2), 1]
    assert row_faults(b" " + row + b"\n1\n") == [(C.TOO_LARGE, "1")]


class Endless:
    """A stream without line feed that counts what is taken from it."""

    def __init__(self) -> None:
        self.taken = 0

    def readline(self, size: int) -> bytes:
        self.taken += size
        return b"x" * size


def test_a_row_without_end_is_refused_after_the_limit() -> None:
    """E1: one byte more than the limit is read and held, not the row."""
    stream = Endless()
    tracemalloc.start()
    try:
        with pytest.raises(StrictError) as caught:
            next(read_rows(stream))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.code is C.TOO_LARGE
    assert stream.taken == Profile.ROW.max_bytes + 1
    assert peak < 3 * Profile.ROW.max_bytes
