from __future__ import annotations

import enum
import hashlib
import hmac
import itertools
import json
import math
import random
import struct
import subprocess
import sys
from collections import OrderedDict
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence import canonical
from skill_effectiveness.evidence.canonical import (
    check_caller_digest,
    check_portable,
    digest_bytes,
    digest_chunks,
    digest_file,
    digest_object,
    digest_text,
    draws,
    dump,
    dump_line,
    dump_plain,
    list_chunks,
    mac,
)
from skill_effectiveness.evidence.faults import CanonicalCode, CanonicalError, FileCode, FileError
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.strict import Profile, read_json
from tests.support.json_values import json_values, some_value

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

C = CanonicalCode
LARGEST = 2**53 - 1


def faults_of(call: Callable[..., object], *args: object) -> list[tuple[str, str]]:
    with pytest.raises(CanonicalError) as caught:
        call(*args)
    return [(fault.code, fault.where) for fault in caught.value.faults]


# Known answers.


@pytest.mark.parametrize(
    ("value", "digest"),
    [
        ({}, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
        (
            {"b": 1, "a": [1.5, True, None]},
            "7a2a761017025a9219c8d203b29ecd09b9df7dcd1a458efef32a3e0d6ee650a4",
        ),
        (
            {"\U0001f600": 1, "\ufb33": 2},
            "2aa3f5086e32bb90ce39c508a6f40fd72e792684f130d0f3b896ea191368f1e3",
        ),
        (
            {"x": 1e-7, "y": 1e21, "z": -0.0, "w": 333333333.33333329},
            "2cac7a1cb5b4608d5336e337adc6888e3d128fb3f1eea63596fff79793b85b01",
        ),
        ({"e": "\u00e9"}, "7ba0f4e2c41c8d9af7ff79fbef3618b982b41a3d10be9091c54719db8a1888c0"),
        ({"e": "e\u0301"}, "313b430e41dd9b1be1698adddef7963916026762aa85541cf18af88533218cb6"),
    ],
)
def test_known_digests(value: object, digest: str) -> None:
    """E8 F46: the table of evidence.md section 3."""
    assert digest_object(value) == "sha256:" + digest


def test_known_bytes() -> None:
    """E8 F46: astral names sort by UTF-16 code units, numbers have their ECMAScript form."""
    assert dump({"\ufb33": 2, "\U0001f600": 1}) == '{"\U0001f600":1,"\ufb33":2}'.encode()
    assert dump({"x": 1e-7, "y": 1e21, "z": -0.0, "w": 333333333.33333329}) == (
        b'{"w":333333333.3333333,"x":1e-7,"y":1e+21,"z":0}'
    )


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        (0x0000000000000000, b"0"),
        (0x8000000000000000, b"0"),
        (0x0000000000000001, b"5e-324"),
        (0x8000000000000001, b"-5e-324"),
        (0x7FEFFFFFFFFFFFFF, b"1.7976931348623157e+308"),
        (0xFFEFFFFFFFFFFFFF, b"-1.7976931348623157e+308"),
        (0x4340000000000000, b"9007199254740992"),
        (0xC340000000000000, b"-9007199254740992"),
        (0x4430000000000000, b"295147905179352830000"),
        (0x44B52D02C7E14AF5, b"9.999999999999997e+22"),
        (0x44B52D02C7E14AF6, b"1e+23"),
        (0x44B52D02C7E14AF7, b"1.0000000000000001e+23"),
        (0x444B1AE4D6E2EF4E, b"999999999999999700000"),
        (0x444B1AE4D6E2EF4F, b"999999999999999900000"),
        (0x444B1AE4D6E2EF50, b"1e+21"),
        (0x3EB0C6F7A0B5ED8C, b"9.999999999999997e-7"),
        (0x3EB0C6F7A0B5ED8D, b"0.000001"),
        (0x41B3DE4355555553, b"333333333.3333332"),
        (0x41B3DE4355555557, b"333333333.33333343"),
        (0xBECBF647612F3696, b"-0.0000033333333333333333"),
        (0x43143FF3C1CB0959, b"1424953923781206.2"),
    ],
)
def test_numbers_of_rfc_8785_appendix_b(bits: int, text: bytes) -> None:
    """E8: the sample numbers of the RFC."""
    (number,) = struct.unpack(">d", bits.to_bytes(8, "big"))
    assert dump(number) == text


def test_the_example_of_rfc_8785_section_3_2_4() -> None:
    """E8: the sample object of the RFC."""
    value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"\u002f",
        "literals": [None, True, False],
    }
    assert dump(value) == (
        b'{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        b'"string":"' + "\u20ac".encode() + rb"$\u000f\nA'B\"\\\\\"" + b'/"}'
    )


def test_a_line_is_the_bytes_and_one_line_feed() -> None:
    assert dump_line({"b": 1, "a": 2}) == b'{"a":2,"b":1}\n'


def test_normal_forms_are_different() -> None:
    """E10: no Unicode normalisation."""
    assert digest_object("\u00e9") != digest_object("e\u0301")
    assert digest_text("\u00e9") != digest_text("e\u0301")


# Equality with the reference implementation.


def test_10_000_values_are_written_as_rfc8785_writes_them() -> None:
    """E9: `dump` equals the library, and so do both ways of our own wherever they answer."""
    chance = random.Random(8785)  # noqa: S311 - test data
    fast = each = 0
    for _ in range(10_000):
        value = some_value(chance)
        expected = rfc8785.dumps(value)  # type: ignore[arg-type]
        assert dump(value) == expected
        quick = canonical._dump_fast(value)
        assert quick in (expected, None)
        fast += quick is not None
        one_by_one = canonical._dump_each(value)
        assert one_by_one in (expected, None)
        each += one_by_one is not None
    assert 2_000 < fast < 9_000
    assert fast < each < 9_900


@given(json_values)
def test_any_value_is_written_as_rfc8785_writes_it(value: object) -> None:
    """E9: as above, with shrinking."""
    expected = rfc8785.dumps(value)  # type: ignore[arg-type]
    assert dump(value) == expected
    assert canonical._dump_fast(value) in (expected, None)
    assert canonical._dump_each(value) in (expected, None)


@given(st.integers(0, 2**64 - 1))
def test_any_double_is_written_as_rfc8785_writes_it(bits: int) -> None:
    """E9: of every size, or left to the library."""
    (number,) = struct.unpack(">d", bits.to_bytes(8, "big"))
    if math.isfinite(number):
        assert canonical._dump_each([number]) in (rfc8785.dumps([number]), None)
    else:
        assert canonical._dump_each([number]) is None


@given(st.floats(1e-4, 1e16, exclude_max=True), st.sampled_from([1, -1]))
def test_a_portable_double_is_written_here(size: float, sign: int) -> None:
    """E9: those of an everyday size need no library, and are written alike."""
    number = sign * size
    if not number.is_integer():
        assert canonical._dump_each({"n": number}) == rfc8785.dumps({"n": number})


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, b"0"),
        (-0.0, b"0"),
        (1.0, b"1"),
        (-7.0, b"-7"),
        (float(LARGEST), b"9007199254740991"),
        (-float(LARGEST), b"-9007199254740991"),
        (1e-4, b"0.0001"),
        (0.1 + 0.2, b"0.30000000000000004"),
        (1424953923781206.2, b"1424953923781206.2"),
    ],
)
def test_everyday_numbers_are_written_here(number: float, text: bytes) -> None:
    """E8 E9: in the ECMAScript form, by hand."""
    assert canonical._dump_each(number) == text


@pytest.mark.parametrize("number", [2.0**53, 1e16, 1e21, 9.99e-5, 5e-324, math.inf, math.nan])
def test_odd_numbers_are_left_to_the_library(number: float) -> None:
    """E9: where writers spell a number in two ways, or there is none."""
    assert canonical._dump_each([number]) is None


_ascii = st.text(st.characters(max_codepoint=127), max_size=8)
_plain = st.recursive(
    st.none() | st.booleans() | st.integers(-LARGEST, LARGEST) | _ascii,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(_ascii, inner, max_size=5),
)


@given(json_values | _plain)
def test_a_plain_value_is_written_as_any_other(value: object) -> None:
    """E9: the shortest way is the same, or none."""
    data = dump_plain(value)
    assert data in {None, rfc8785.dumps(value)}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "is_plain"),
    [
        ({"a": [1, True, None, "x\n"], "b": {}}, True),
        (2**53 - 1, True),
        (-(2**53 - 1), True),
        (2**53, False),
        (-(2**53), False),
        (1.0, False),
        ("é", False),
        ("\x1f", False),
        ({"é": 1}, False),
        ({1: 1}, False),
        ({"a": 1, 1: 1}, False),
        ((1,), False),
        ([(1,)], False),
        ("x" * 4_093, True),
        ("x" * 4_094, False),
        (OrderedDict(a=1), False),
    ],
    ids=lambda each: repr(each)[:20],
)
def test_what_is_plain(value: object, is_plain: bool) -> None:  # noqa: FBT001 - a value of the table
    """E9: what is not is left to the other ways."""
    assert (dump_plain(value) is not None) is is_plain


def test_a_value_in_itself_is_not_plain() -> None:
    ring: list[object] = []
    ring.append(ring)
    assert dump_plain(ring) is None


@given(json_values)
def test_the_canonical_bytes_are_read_back_and_written_alike(value: object) -> None:
    data = dump(value)
    read = read_json(data, Profile.DOCUMENT)
    assert read == value
    assert dump(read) == data


@pytest.mark.parametrize(
    "code_point", [*range(0x100), 0x2028, 0x2029, 0xD7FF, 0xE000, 0xFB33, 0xFFFD, 0x10FFFD]
)
def test_each_escape(code_point: int) -> None:
    """E9: both ways write every control, quote and separator as the library does, as value and as name."""
    text = f"a{chr(code_point)}u0041{chr(code_point)}"
    for value in (text, [text, "\\u0041"], {text: text}, {text: 0.5}):
        expected = rfc8785.dumps(value)
        assert dump(value) == expected
        assert canonical._dump_fast(value) in (expected, None)
        assert canonical._dump_each(value) in (expected, None)


@pytest.mark.parametrize(
    "value",
    [
        {"a": "\x7f"},
        {"a": "é"},
        ["\\u0041"],
        {"a": [1, {"b": None}]},
        [],
        {},
        0,
        "",
        LARGEST,
        ["\x1b"],
        [[[]]],
    ],
)
def test_the_fast_way_covers_what_it_should(value: object) -> None:
    """E9: without floats and with ASCII names the fast way answers, so the equality above is about it."""
    assert canonical._dump_fast(value) == rfc8785.dumps(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [0.5, {"é": 1}, {"a": {"\U0001f600": 1}}, [[1.0]]])
def test_the_fast_way_leaves_the_rest(value: object) -> None:
    assert canonical._dump_fast(value) is None


@pytest.mark.parametrize("value", [0.5, {"b": [0.25, None, True, "é\n"], "a": {}}, [[1.0]], {"": -1.5}])
def test_floats_need_no_library(value: object) -> None:
    """E9: with ASCII names the second way answers, so the equality above is about it."""
    assert canonical._dump_each(value) == rfc8785.dumps(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [{"é": 0.5}, {"a\ud800": 0.5}, ["\ud800"], (0.5,), {1: 0.5}, [2**53]])
def test_the_second_way_leaves_the_rest(value: object) -> None:
    """E9: whatever it cannot be sure of."""
    assert canonical._dump_each(value) is None


def test_a_value_in_itself_ends_the_second_way() -> None:
    """E4: at the deepest level that is written."""
    ring: list[object] = [0.5]
    ring += [ring, ring]
    assert canonical._dump_each(ring) is None
    assert canonical._dump_each(nested(64, 0.5)) == rfc8785.dumps(nested(64, 0.5))  # type: ignore[arg-type]
    assert canonical._dump_each(nested(65, 0.5)) is None


@pytest.mark.parametrize("seed", range(20))
def test_long_integers_are_told_from_digits_in_texts(seed: int) -> None:
    """E9: the search for long runs of digits is a sieve, not the judgement."""
    chance = random.Random(seed)  # noqa: S311 - test data
    digits = str(chance.randint(10**20, 10**40))
    rows = [
        {"n": chance.randint(-LARGEST, LARGEST), "t": digits, "m": n} for n in range(chance.randint(1, 30))
    ]
    assert canonical._dump_fast(rows) == rfc8785.dumps(rows)  # type: ignore[arg-type]
    rows[chance.randrange(len(rows))]["m"] = chance.choice([LARGEST + 1, -LARGEST - 1, 10**16, 10**300])
    assert {code for code, _ in faults_of(dump, rows)} == {C.NUMBER_RANGE}


# What has no canonical form.


class Word(str):
    __slots__ = ()


class Number(int):
    pass


class Fractional(float):
    pass


class Mapping(dict[str, int]):
    pass


class Sequence(list[int]):
    pass


class Pair(NamedTuple):
    a: int


class Colour(enum.Enum):
    RED = 1


class Text(enum.StrEnum):
    RED = "red"


class Count(enum.IntEnum):
    ONE = 1


UNSUPPORTED = [
    (1,),
    {1},
    frozenset(),
    b"x",
    bytearray(b"x"),
    memoryview(b"x"),
    Decimal(1),
    Fraction(1),
    1j,
    object(),
    Ellipsis,
    int,
    range(1),
    iter([]),
    Pair(1),
    OrderedDict(a=1),
    Word("x"),
    Number(1),
    Fractional(1.5),
    Mapping(a=1),
    Sequence([1]),
    Colour.RED,
    Text.RED,
    Count.ONE,
]


@pytest.mark.parametrize("odd", UNSUPPORTED, ids=lambda odd: type(odd).__name__)
@pytest.mark.parametrize("company", [1, "é", 0.5, 1e300], ids=["plain", "raw", "each", "slow"])
def test_only_exact_json_types_are_written(odd: object, company: object) -> None:
    """E9 E65: every other type is refused at its place, whichever way would have written it."""
    assert faults_of(dump, odd) == [(C.UNSUPPORTED_TYPE, "")]
    assert faults_of(dump, {"a": [company, odd]}) == [(C.UNSUPPORTED_TYPE, "/a/1")]


@pytest.mark.parametrize("name", [1, 1.5, True, None, (1,), b"x", Word("x"), Text.RED])
def test_only_plain_texts_are_names(name: object) -> None:
    assert faults_of(dump, {name: 1}) == [(C.UNSUPPORTED_TYPE, "")]
    assert faults_of(dump, {"a": {"b": 1, name: 1}}) == [(C.UNSUPPORTED_TYPE, "/a")]


@pytest.mark.parametrize("number", [LARGEST + 1, -LARGEST - 1, 10**5000], ids=["up", "down", "far"])
def test_integers_reach_to_the_last_exact_double(number: int) -> None:
    """E3 E65: ±(2^53-1) is written, one more is not."""
    assert dump([LARGEST, -LARGEST]) == b"[9007199254740991,-9007199254740991]"
    assert faults_of(dump, number) == [(C.NUMBER_RANGE, "")]
    assert faults_of(dump, {"a": ["x" * 500, number]}) == [(C.NUMBER_RANGE, "/a/1")]
    assert faults_of(dump, [0.5, number]) == [(C.NUMBER_RANGE, "/1")]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_floats_are_finite(number: float) -> None:
    """F19: no spelling for what is not a number."""
    assert faults_of(dump, {"score": number}) == [(C.NON_FINITE, "/score")]


@pytest.mark.parametrize("company", [1, "é", 0.5, 1e300], ids=["plain", "raw", "each", "slow"])
def test_half_a_surrogate_pair_has_no_bytes(company: object) -> None:
    """F46: refused as value and as name."""
    assert faults_of(dump, [company, "a\ud800"]) == [(C.LONE_SURROGATE, "/1")]
    assert faults_of(dump, [company, {"\udfff": 1}]) == [(C.LONE_SURROGATE, "/1/\\udfff")]
    assert faults_of(digest_text, "\udc00") == [(C.LONE_SURROGATE, "")]


def nested(depth: int, innermost: object) -> object:
    value = innermost
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


@pytest.mark.parametrize("innermost", [0, 0.5])
def test_64_levels_are_written_and_no_more(innermost: object) -> None:
    """E4: what can be written can be read back."""
    data = dump(nested(64, innermost))
    assert read_json(data, Profile.DOCUMENT) == nested(64, innermost)
    assert faults_of(dump, nested(65, innermost)) == [(C.TOO_DEEP, "/a/0" * 32)]


@pytest.mark.parametrize("innermost", [[], {}])
def test_an_empty_container_counts_as_a_level(innermost: object) -> None:
    dump(nested(63, innermost))
    assert [code for code, _ in faults_of(dump, nested(64, innermost))] == [C.TOO_DEEP]


def test_a_value_that_contains_itself_is_too_deep() -> None:
    """E65: no endless walk, also with several ways round."""
    ring: list[object] = []
    ring.extend([ring, ring, ring])
    assert [code for code, _ in faults_of(dump, ring)] == [C.TOO_DEEP]
    loop: dict[str, object] = {}
    loop["a"] = {"b": loop}
    assert [code for code, _ in faults_of(dump, loop)] == [C.TOO_DEEP]


def test_every_reason_is_told_at_once() -> None:
    """E7: in document order."""
    value = {"a": [math.nan, 2**53, (1,)], "b\ud800": {1: "\ud800"}}
    assert faults_of(dump, value) == [
        (C.LONE_SURROGATE, "/b\\ud800"),
        (C.NON_FINITE, "/a/0"),
        (C.NUMBER_RANGE, "/a/1"),
        (C.UNSUPPORTED_TYPE, "/a/2"),
        (C.UNSUPPORTED_TYPE, "/b\\ud800"),
    ]
    assert len(faults_of(dump, [math.nan] * 3_000)) == 1_000


def test_every_canonical_code_is_seen() -> None:
    """E65: the tests of this file raise exactly the members of the enum."""
    assert set(CanonicalCode) == {
        C.UNSUPPORTED_TYPE,
        C.NUMBER_RANGE,
        C.NON_FINITE,
        C.LONE_SURROGATE,
        C.TOO_DEEP,
        C.NUMBER_FORM,
        C.DIGEST_MISMATCH,
    }


# Digests.

ABC = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@given(st.lists(json_values, max_size=5))
def test_a_list_comes_piece_by_piece(values: list[object]) -> None:
    """E8 E9: as it comes whole."""
    assert b"".join(list_chunks(map(dump, values))) == dump(values)


def test_digests_of_bytes_and_text() -> None:
    """E8: the example of FIPS 180-4; text is not quoted."""
    assert digest_bytes(b"abc") == ABC
    assert digest_text("abc") == ABC
    assert digest_chunks([b"a", b"", b"bc"]) == ABC
    assert digest_chunks([]) == digest_bytes(b"") == digest_text("")


def test_the_digest_of_a_file(tmp_path: Path) -> None:
    big = tmp_path / "big"
    big.write_bytes(b"ab" * 1_500_000)
    assert digest_file(RealFs(), big) == "sha256:" + hashlib.sha256(b"ab" * 1_500_000).hexdigest()


def test_only_a_regular_file_has_a_digest(tmp_path: Path) -> None:
    """F48: links, FIFOs and folders are refused, at once and by name."""
    import os  # noqa: PLC0415 - used here only

    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/etc/passwd")
    for name, code in {
        "fifo": FileCode.NOT_REGULAR,
        "link": FileCode.FILE_SYMLINK,
        ".": FileCode.NOT_REGULAR,
        "none": FileCode.MISSING,
    }.items():
        with pytest.raises(FileError) as caught:
            digest_file(RealFs(), tmp_path / name)
        assert caught.value.code is code


# Keyed proofs and draws.


def test_mac_is_hmac_sha256_over_the_canonical_bytes() -> None:
    expected = hmac.new(b"k" * 32, b'{"a":[1,0.5],"b":null}', hashlib.sha256).digest()
    assert mac(b"k" * 32, {"b": None, "a": [1, 0.5]}) == expected
    assert mac(b"j" * 32, {"b": None, "a": [1, 0.5]}) != expected


def test_mac_follows_rfc_4231_where_the_data_is_json() -> None:
    """The construction of RFC 4231 test case 2 (key `Jefe`), with a JSON text as data."""
    inner_key = b"Jefe".ljust(64, b"\0")
    inner = hashlib.sha256(bytes(b ^ 0x36 for b in inner_key) + b'"what do ya want for nothing?"').digest()
    outer = hashlib.sha256(bytes(b ^ 0x5C for b in inner_key) + inner).digest()
    assert mac(b"Jefe", "what do ya want for nothing?") == outer


@given(st.binary(max_size=40), st.text(st.characters(codec="utf-8"), max_size=20))
def test_draws_are_the_words_of_one_shake_stream(seed: bytes, use: str) -> None:
    preimage = rfc8785.dumps({"seed": seed.hex(), "use": use})
    stream = hashlib.shake_256(preimage).digest(4 * 3_000)
    words = [int.from_bytes(stream[at : at + 4], "little") for at in range(0, len(stream), 4)]
    assert list(itertools.islice(draws(seed, use), 3_000)) == words


def test_known_draws() -> None:
    """The preimage is spelled out, so that another program can repeat the draws."""
    preimage = b'{"seed":"' + b"00" * 32 + b'","use":"power"}'
    first = next(draws(bytes(32), "power"))
    assert first.to_bytes(4, "little") == hashlib.shake_256(preimage).digest(4)


def test_draws_of_two_uses_are_different() -> None:
    one, other = (list(itertools.islice(draws(b"s", use), 8)) for use in ("flip/full-off", "bca/full-off"))
    assert not set(one) & set(other)
    assert all(0 <= word < 2**32 for word in one)


def test_draws_refuse_a_bad_use_at_once() -> None:
    assert faults_of(draws, b"", "\ud800") == [(C.LONE_SURROGATE, "/use")]


# Portable numbers.


@pytest.mark.parametrize("token", ["100", "0", "-0", "0.5", "0.0001", "-0.0001", "15e-1", "9007199254740991"])
def test_portable_numbers(token: str) -> None:
    """E12: integers without fraction, and fractions of common size."""
    check_portable(read_json(f'{{"a":[{token}]}}'.encode(), Profile.WIRE))


@pytest.mark.parametrize(
    "token",
    [
        "100.0",
        "1e2",
        "1.5e3",
        "0.0",
        "-0.0",
        "1E0",
        "0.00009",
        "-9e-5",
        "1e-7",
        "5e-324",
        "9007199254740991.0",
    ],
)
def test_numbers_with_two_spellings(token: str) -> None:
    """E12: whole with fraction or exponent, or smaller than 1e-4."""
    value = read_json(f'{{"a":[1,{token}],"b":0.5}}'.encode(), Profile.WIRE)
    assert faults_of(check_portable, value) == [(C.NUMBER_FORM, "/a/1")]


def test_numbers_from_1e16_up_are_not_portable() -> None:
    assert faults_of(check_portable, [1e16, -2.5e300, 1e15 + 0.5]) == [
        (C.NUMBER_FORM, "/0"),
        (C.NUMBER_FORM, "/1"),
    ]


def python_hash(text: str) -> str:
    """What a caller computes who sorts names and leaves out white space, but writes numbers his own way."""
    own = json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(own.encode()).hexdigest()


def test_a_caller_hash_over_a_portable_number_is_accepted() -> None:
    """E12: `100` is spelled alike by everybody."""
    text = '{"limit": 100, "share": 0.25}'
    check_caller_digest(read_json(text.encode(), Profile.WIRE), python_hash(text))


def test_a_caller_hash_over_another_spelling_is_refused_by_number_form() -> None:
    """E12: over `100.0` the refusal says `number form` and the pointer."""
    text = '{"gates": [{"limit": 100.0}], "tiny": 1e-5}'
    value = read_json(text.encode(), Profile.WIRE)
    with pytest.raises(CanonicalError, match="number form") as caught:
        check_caller_digest(value, python_hash(text))
    assert [(fault.code, fault.where) for fault in caught.value.faults] == [
        (C.NUMBER_FORM, "/gates/0/limit"),
        (C.NUMBER_FORM, "/tiny"),
    ]


def test_a_caller_hash_that_equals_ours_is_accepted_whatever_the_spelling() -> None:
    """E12: a caller who writes canonical JSON may hold `100.0`."""
    value = read_json(b'{"limit": 100.0}', Profile.WIRE)
    check_caller_digest(value, "sha256:" + hashlib.sha256(b'{"limit":100}').hexdigest())


@pytest.mark.parametrize("digest", ["", "sha256:", ABC, ABC.upper(), "é", "\ud800"])
def test_any_other_hash_does_not_belong(digest: str) -> None:
    """E65: a plain mismatch has its own code."""
    assert faults_of(check_caller_digest, {"a": 1}, digest) == [(C.DIGEST_MISMATCH, "")]


# Loading.


def test_rfc8785_is_loaded_when_first_needed() -> None:
    """E59: values with ASCII names and numbers of an everyday size do without it."""
    script = (
        "import sys\n"
        "from skill_effectiveness.evidence.canonical import dump\n"
        "dump({'a': ['é', 1, 0.5]})\n"
        "assert 'rfc8785' not in sys.modules\n"
        "dump(1e300)\n"
        "assert 'rfc8785' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)  # noqa: S603 - our own interpreter
