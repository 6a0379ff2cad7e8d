"""Lines are cut at LF alone, however the bytes arrive, and long ones are not kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.journal_lines import LineFeed

LIMIT = 1_048_576


def fed(*chunks: bytes) -> tuple[list[tuple[bytes, int]], tuple[bytes, int]]:
    """The lines and the rest."""
    lines: list[tuple[bytes, int]] = []
    feed = LineFeed(lambda line, size: lines.append((line, size)))
    for chunk in chunks:
        feed.feed(chunk)
    return lines, feed.rest()


@given(
    st.lists(
        st.binary(max_size=6) | st.sampled_from([b"\n", b"\n\n", b"\r\n", b"\x0b", b"\x85", b"\xe2\x80\xa8"])
    )
)
def test_any_cutting_gives_the_same_lines(chunks: list[bytes]) -> None:
    """F44: U+2028, VT, CR and U+0085 end nothing."""
    *whole, rest = b"".join(chunks).split(b"\n")
    assert fed(*chunks) == ([(line, len(line)) for line in whole], (rest, len(rest)))


def test_of_a_long_line_the_size_is_kept_and_one_byte_more_than_a_row_may_have() -> None:
    for chunks in (
        [b"x" * (3 * LIMIT), b"\ny"],
        [b"x" * LIMIT] * 3 + [b"\ny"],
        [b"x" * (3 * LIMIT) + b"\ny"],
    ):
        lines, rest = fed(*chunks)
        assert lines == [(b"x" * (LIMIT + 1), 3 * LIMIT)]
        assert rest == (b"y", 1)


def test_a_line_in_the_middle_of_a_chunk_is_cut_too() -> None:
    lines, _ = fed(b"a\n" + b"x" * (2 * LIMIT) + b"\nb\n")
    assert [(len(line), size) for line, size in lines] == [(1, 1), (LIMIT + 1, 2 * LIMIT), (1, 1)]


def test_a_rest_without_end_is_not_kept() -> None:
    _, (kept, size) = fed(*[b"x" * LIMIT] * 20)
    assert (len(kept), size) == (LIMIT + 1, 20 * LIMIT)
