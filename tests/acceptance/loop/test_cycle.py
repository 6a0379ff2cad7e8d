"""Returning to a state."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.acceptance.loop.cycle import AttemptState, History, Repetition, decision_digest


def test_periods() -> None:
    """L76: oscillation and standing still."""
    history = History()
    states = [AttemptState(content, "d") for content in "aba"]
    assert [history.repeated(n, state) for n, state in enumerate(states, 1)] == [None, None, Repetition(1, 3)]
    assert Repetition(1, 3).period == 2
    assert str(Repetition(1, 2)) == "attempts 1 and 2 ended in one state (period 1)"


def test_another_decision_is_another_state() -> None:
    """L77: content and measured words both count."""
    history = History()
    first, second = decision_digest([("checks", "1")]), decision_digest([("checks", "2")])
    assert history.repeated(1, AttemptState("a", first)) is None
    assert history.repeated(2, AttemptState("a", second)) is None
    assert decision_digest([("a", "b"), ("c", "d")]) != decision_digest([("a", "bc"), ("", "d")])


@given(st.lists(st.integers(0, 3), max_size=12))
def test_against_a_search(contents: list[int]) -> None:
    """L76: the nearest earlier attempt with the same state, found by looking at all."""
    history = History()
    for number, content in enumerate(contents, 1):
        earlier = [k for k in range(1, number) if contents[k - 1] == content]
        found = history.repeated(number, AttemptState(str(content), "d"))
        assert found == (Repetition(max(earlier), number) if earlier else None)
    assert all(a >= 0 for a, _ in pairwise([*contents, 0]))
