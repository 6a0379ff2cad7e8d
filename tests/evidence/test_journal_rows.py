"""Rows: the shorter way of reading gives the answer of the long one, and forms are what they say."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skill_effectiveness.evidence import journal_rows
from skill_effectiveness.evidence.canonical import dump
from skill_effectiveness.evidence.faults import EvidenceError, StrictCode, StrictError
from skill_effectiveness.evidence.journal_rows import (
    Entry,
    Row,
    RowForm,
    Tear,
    fits,
    is_type,
    read_row,
    row_digest,
    row_time,
    write_row,
)
from skill_effectiveness.evidence.strict import JsonValue, Profile, read_json

ZEROS = "sha256:" + "0" * 64
ROW = {"body": {"n": 1}, "prev": ZEROS, "seq": 0, "time": "2026-03-04T05:06:07.089Z", "type": "note"}


def the_long_way(line: bytes) -> JsonValue | StrictCode | str:
    """The value of a line read by the two owners of strictness and form, or why it is refused."""
    try:
        value = read_json(line, Profile.ROW, want_object=True)
    except StrictError as error:
        return StrictCode(error.code)
    return value if dump(value) == line else StrictCode.NOT_CANONICAL


def the_short_way(line: bytes) -> JsonValue | StrictCode | str:
    try:
        return read_row(line)
    except StrictError as error:
        return StrictCode(error.code)


_scalars = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats() | st.text(max_size=8)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
)
_separators = st.sampled_from([(",", ":"), (", ", ":"), (",", ": ")])


def same(one: object, other: object) -> bool:
    """Equal, and of equal types, so that 1, 1.0 and True are told apart."""
    return repr(one) == repr(other)


class TestTheShortWay:
    @given(
        row=st.dictionaries(st.text(max_size=4), _values, max_size=5),
        in_order=st.booleans(),
        escaped=st.booleans(),
        separators=_separators,
    )
    def test_reads_what_json_writers_write_as_the_long_way_does(
        self, row: dict[str, object], *, in_order: bool, escaped: bool, separators: tuple[str, str]
    ) -> None:
        try:
            text = json.dumps(row, sort_keys=in_order, ensure_ascii=escaped, separators=separators)
            line = text.encode()
        except UnicodeEncodeError:
            return
        assert same(the_short_way(line), the_long_way(line))

    @given(
        st.binary(max_size=40)
        | st.text(alphabet='{}[]":,0123456789eE.+-\\untrfalse \n', max_size=30).map(str.encode)
    )
    @example(b'{"a":1,"a":1}')
    @example(b'{"a":1,"\\u0061":2}')
    @example(b'{"a":-0}')
    @example(b'{"a":100.0}')
    @example(b'{"a":1e2}')
    @example(b'{"a":NaN}')
    @example(b'{"a":-Infinity}')
    @example(b'{"a":9007199254740991}')
    @example(b'{"a":9007199254740992}')
    @example(b'{"a":-9007199254740992}')
    @example(b'{"a":"\\ud800"}')
    @example(b'{"a":"\\uffff"}')
    @example('{"a":"\uffff"}'.encode())
    @example('{"\U0001f600":1,"\ufb33":2}'.encode())
    @example('{"\ufb33":2,"\U0001f600":1}'.encode())
    @example(b'{"a":"\x7f"}')
    @example(b'{"a":"\\u007f"}')
    @example(b'{"a":"\\u001F"}')
    @example(b'{"a":"\\u001f"}')
    @example(b'{"a":"\\/"}')
    @example(b'{"b":1,"a":1}')
    @example(b'{"a":1} ')
    @example(b' {"a":1}')
    @example(b'{"a":1}{"b":2}')
    @example(b"[1]")
    @example(b"1")
    @example(b"")
    @example(b'{"a":' + b"[" * 31 + b"]" * 31 + b"}")
    @example(b'{"a":' + b"[" * 32 + b"]" * 32 + b"}")
    @example(b'{"a":' + b"[" * 100_000)
    @example(b'{"a":[' + b"1," * 99_997 + b"1]}")
    @example(b'{"a":[' + b"1," * 99_998 + b"1]}")
    @example(b'{"a":"' + b"x" * 1_048_568 + b'"}')
    @example(b'{"a":"' + b"x" * 1_048_569 + b'"}')
    def test_reads_any_bytes_as_the_long_way_does(self, line: bytes) -> None:
        assert same(the_short_way(line), the_long_way(line))

    def test_is_taken_for_a_plain_row_and_not_for_others(self) -> None:
        """The figures of verification rest on it."""
        plain = dump(ROW)
        assert journal_rows._read_plain(plain) == ROW
        for odd in (dump(ROW | {"body": {"n": 1.5}}), dump(ROW | {"body": {"é": 1}}), plain[:-1]):
            assert journal_rows._read_plain(odd) is None


class TestWriting:
    @given(st.dictionaries(st.text(max_size=4), _values, max_size=5))
    def test_what_is_written_is_read_again(self, row: dict[str, object]) -> None:
        """Also when it was not read again at once, because it is plain."""
        try:
            line = write_row(row)
        except EvidenceError:
            return
        assert same(read_row(line), json.loads(line))
        assert line == dump(row)

    @pytest.mark.parametrize(("inner", "is_read"), [(31, True), (32, False), (40, False)])
    def test_nesting_ends_where_reading_does(self, inner: int, *, is_read: bool) -> None:
        """A row is an object and may hold 31 levels more."""
        value: object = []
        for _ in range(inner - 1):
            value = [value]
        if is_read:
            assert read_row(write_row({"a": value})) == {"a": value}
        else:
            with pytest.raises(StrictError) as caught:
                write_row({"a": value})
            assert caught.value.code is StrictCode.TOO_DEEP

    def test_brackets_in_texts_are_no_nesting(self) -> None:
        assert read_row(write_row({"a": "[" * 40})) == {"a": "[" * 40}


class TestForms:
    def test_the_known_row(self) -> None:
        """The line of evidence.md, section 7, and its digest by another program."""
        line = dump(ROW)
        assert line == (
            b'{"body":{"n":1},"prev":"'
            + ZEROS.encode()
            + b'","seq":0,"time":"2026-03-04T05:06:07.089Z","type":"note"}'
        )
        assert fits(read_row(line), RowForm.KERNEL)
        row = Row(0, row_digest(line), read_row(line))
        assert (row.type, row.time, row.body) == ("note", "2026-03-04T05:06:07.089Z", {"n": 1})

    @pytest.mark.parametrize(
        "change",
        [
            {"body": []},
            {"body": None},
            {"prev": "0" * 64},
            {"prev": "sha256:" + "0" * 63},
            {"prev": "sha256:" + "A" * 64},
            {"prev": None},
            {"seq": True},
            {"seq": "0"},
            {"seq": None},
            {"time": "2026-03-04T05:06:07Z"},
            {"time": "2026-13-04T05:06:07.089Z"},
            {"time": "2026-03-04T24:06:07.089Z"},
            {"time": "2026-03-04T05:06:07.089Z\n"},
            {"time": "٢٠٢٦-03-04T05:06:07.089Z"},
            {"time": 1},
            {"type": ""},
            {"type": "9"},
            {"type": "a b"},
            {"type": "a" * 65},
            {"type": 1},
            {"extra": 1},
        ],
        ids=str,
    )
    def test_other_members_do_not_fit(self, change: dict[str, object]) -> None:
        assert not fits(dict(sorted((ROW | change).items())), RowForm.KERNEL)

    @pytest.mark.parametrize("name", ROW)
    def test_no_member_may_be_missing(self, name: str) -> None:
        row = {key: value for key, value in ROW.items() if key != name}
        assert not fits(row, RowForm.KERNEL)
        assert fits(row, RowForm.OWN) is (name not in {"seq", "prev"})

    def test_a_contract_of_its_own_decides_on_everything_else(self) -> None:
        assert fits({"anything": [], "prev": ZEROS, "seq": 3}, RowForm.OWN)

    @pytest.mark.parametrize("word", ["slot_started", "run/paused", "crw.unitCheck", "a", "A-1:b"])
    def test_types_of_the_contracts(self, word: str) -> None:
        assert is_type(word)

    def test_time_has_milliseconds(self) -> None:
        assert row_time(datetime(2026, 3, 4, 5, 6, 7, 89_999, tzinfo=UTC)) == "2026-03-04T05:06:07.089Z"
        assert row_time(datetime(2026, 3, 4, tzinfo=UTC)) == "2026-03-04T00:00:00.000Z"

    def test_the_file_of_a_tear_is_named_by_number_and_digest(self) -> None:
        tear = Tear(bytes=3, digest="sha256:" + "ab" * 32, seq=7)
        assert tear.file_name == "7-" + "ab" * 32 + ".bin"

    def test_an_entry_is_a_type_and_a_body(self) -> None:
        assert Entry("note", {"n": 1}) == ("note", {"n": 1})
