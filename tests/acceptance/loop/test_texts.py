"""Cutting what others wrote."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.acceptance.loop.texts import Ends, head_and_tail, readable


@given(st.text(), st.integers(0, 300))
def test_never_longer_than_the_limit(text: str, limit: int) -> None:
    """L32: in bytes, and without NUL."""
    cut = head_and_tail(text, limit)
    assert len(cut.encode()) <= max(limit, 0)
    assert "\0" not in cut


def test_both_ends_stay() -> None:
    """L32: head and tail, with the gap between them told."""
    cut = head_and_tail("a" * 1_000 + "z" * 1_000, 200)
    assert cut.startswith("aaa")
    assert cut.endswith("zzz")
    assert "bytes left out" in cut
    assert head_and_tail("short", 200) == "short"


@given(st.lists(st.binary(max_size=40)), st.integers(2, 60))
def test_ends_of_a_stream(chunks: list[bytes], limit: int) -> None:
    """L21: the first and the last bytes, in whatever pieces they come."""
    ends = Ends(limit)
    for chunk in chunks:
        ends.add(chunk)
    whole = b"".join(chunks)
    assert ends.size == len(whole)
    half = limit // 2
    if len(whole) <= 2 * half:
        assert ends.text == readable(whole[:half]) + readable(whole[half:])
    else:
        assert ends.text.startswith(readable(whole[:half]))
        assert ends.text.endswith(readable(whole[-half:]))
