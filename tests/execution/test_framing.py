"""Lines from chunks, whatever the chunks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.execution.framing import LineFramer


def fed(framer: LineFramer, *chunks: bytes) -> list[bytes]:
    return [line for chunk in chunks for line in framer.feed(chunk)]


class TestLines:
    @pytest.mark.parametrize(
        ("chunks", "lines", "rest"),
        [
            ((), [], b""),
            ((b"",), [], b""),
            ((b"\n",), [b""], b""),
            ((b"a\nb",), [b"a"], b"b"),
            ((b"a", b"b", b"\n"), [b"ab"], b""),
            ((b"a\n\n\nb\n",), [b"a", b"", b"", b"b"], b""),
            ((b"a\r\n",), [b"a\r"], b""),
            ((b"a\x0b\x0c\x85\xe2\x80\xa8b\n",), [b"a\x0b\x0c\x85\xe2\x80\xa8b"], b""),
            ((b"\xe2\x82", b"\xac\n"), [b"\xe2\x82\xac"], b""),
        ],
    )
    def test_lf_alone_ends_one(self, chunks: tuple[bytes, ...], lines: list[bytes], rest: bytes) -> None:
        """P5 F20 F44: no other separator, no decoding, nothing joined or lost."""
        framer = LineFramer(100)
        assert fed(framer, *chunks) == lines
        assert framer.rest == rest

    @given(st.lists(st.binary(max_size=20)))
    def test_chunks_do_not_matter(self, chunks: list[bytes]) -> None:
        """P5: the same bytes give the same lines, however they were read."""
        framer = LineFramer(1000)
        lines = fed(framer, *chunks)
        assert b"".join(line + b"\n" for line in lines) + framer.rest == b"".join(chunks)
        assert all(b"\n" not in line for line in (*lines, framer.rest))


class TestTheLimit:
    def test_the_longest_line_fits(self) -> None:
        framer = LineFramer(3)
        assert fed(framer, b"abc", b"\n", b"abc\n") == [b"abc", b"abc"]
        assert not framer.overflowed

    @pytest.mark.parametrize(
        "chunks", [(b"ok\nabcd\nx\n",), (b"ok\nab", b"cd\nx\n"), (b"ok\nabcd", b"\nx\n")]
    )
    def test_one_byte_more_ends_it(self, chunks: tuple[bytes, ...]) -> None:
        """F17: earlier lines stand, nothing comes after, nothing is held any more."""
        framer = LineFramer(3)
        assert fed(framer, *chunks) == [b"ok"]
        assert framer.overflowed
        assert framer.rest == b""

    def test_a_rest_has_the_same_limit(self) -> None:
        """F17: a line is refused while it arrives, not at its end."""
        framer = LineFramer(3)
        fed(framer, b"abcd")
        assert framer.overflowed

    @given(st.integers(1, 10), st.lists(st.binary(max_size=20)))
    def test_no_line_is_longer(self, longest: int, chunks: list[bytes]) -> None:
        framer = LineFramer(longest)
        lines = fed(framer, *chunks)
        assert all(len(line) <= longest for line in (*lines, framer.rest))
        whole = b"".join(chunks).split(b"\n")
        assert framer.overflowed == any(len(line) > longest for line in whole)
        assert lines == whole[: len(lines)]
