"""Pairs and what answers to them amount to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.calibration.prompt import render
from skill_effectiveness.protocol.words import TaskFamily
from skill_effectiveness.studies.pairing import (
    LABEL,
    RUBRICS,
    ShownPair,
    answer_of,
    first_names,
    preference_of,
    shown_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PAIR = "pair-" + 64 * "0"


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ({}, "no_vote"),
        ({"r": ["win"]}, "no_vote"),
        ({"r": ["win", "win"]}, "win"),
        ({"r": ["tie", "tie"]}, "tie"),
        ({"r": ["win", "loss"]}, "inconsistent"),
        ({"r": ["win", "tie"]}, "inconsistent"),
        ({"r": ["win", "win"], "s": ["loss", "loss"]}, "inconsistent"),
        ({"r": ["win", "win"], "s": ["win", "win"], "t": ["loss", "loss"]}, "win"),
        ({"r": ["win", "win"], "s": ["win", "loss"]}, "inconsistent"),
        ({"r": ["win", "win"], "s": ["win"]}, "win"),
        ({"r": ["loss", "loss"], "s": ["tie", "tie"], "t": ["win", "win"]}, "inconsistent"),
    ],
)
def test_preferences(votes: Mapping[str, Sequence[str]], expected: str) -> None:
    """S38 F29: a flip is inconsistent and never a tie; the modal answer decides, and nothing else does."""
    assert preference_of(votes, safety=False) == expected


@pytest.mark.parametrize("votes", [{}, {"r": ["win", "win"]}, {"r": ["win", "loss"]}])
def test_safety_outranks_every_vote(votes: Mapping[str, Sequence[str]]) -> None:
    """S37: a deterministic failure makes its pair a loss."""
    assert preference_of(votes, safety=True) == "loss"


def test_one_showing_is_no_answer() -> None:
    """S38: a pair is judged in both positions or not at all."""
    assert answer_of(["win"]) is None


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        (None, ""),
        ({}, ""),
        ([], ""),
        (
            {"files": [{"path": "a.py", "text": "1\n"}, {"path": "b.bin", "bytes": 3}]},
            "a.py:\n1\n\n\nb.bin:\n(not a text)",
        ),
        ({"files": []}, ""),
        ({"files": [{"name": "a"}]}, '{"files":[{"name":"a"}]}'),
        ({"files": 3}, '{"files":3}'),
        ({"b": 1, "a": "x"}, '{"a":"x","b":1}'),
    ],
)
def test_a_side_is_one_text(payload: Any, text: str) -> None:  # noqa: ANN401 - any JSON value
    """S38: files under their names, other values as canonical JSON."""
    assert shown_text(payload) == text


def test_canaries_take_the_name_that_most_pairs_begin_with() -> None:
    """S39: of equally many, the first by letters."""
    of = [{"files": [{"path": name, "text": ""}]} for name in ("b", "a", "b", "a")]
    assert first_names([*of, "text"]) == "a"
    assert first_names(["text"]) is None


def test_a_pair_is_asked_as_in_the_examination() -> None:
    """S38: label, task, rubric and two texts, and no id."""
    shown = ShownPair(PAIR, 1, "the task", "the rubric", "one", "other")
    last = render(shown.presentation()).splitlines()[-1]
    assert last == (
        '{"cases":[{"A":"one","B":"other","case":"case-01","rubric":"the rubric","task":"the task"}]}'
    )
    assert LABEL == "case-01"
    assert "one" not in repr(shown)


def test_every_family_has_a_rubric() -> None:
    """S38: and every rubric says when two sides are equal."""
    assert set(RUBRICS) == set(TaskFamily)
    assert all("they are equal" in text for text in RUBRICS.values())
