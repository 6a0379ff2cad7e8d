"""Guesses of the treated side."""

from __future__ import annotations

import json

import pytest

from skill_effectiveness.studies.chance import Chance
from skill_effectiveness.studies.guesses import (
    MOST_GUESSES,
    chosen,
    guess_prompt,
    guess_schema,
    read_guess,
    simulated_guess,
)
from skill_effectiveness.studies.pairing import ShownPair

CHANCE = Chance(bytes(32))
LICENCE = 32 * "a"


@pytest.mark.parametrize("said", ["A", "B", "unsure"])
def test_a_guess_is_read(said: str) -> None:
    """S39: one of three words."""
    assert read_guess(json.dumps({"guess": said})) == said


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "",
        "A",
        '"A"',
        '{"guess":"a"}',
        '{"guess":null}',
        '{"guess":["A"]}',
        '{"guess":"A","why":"x"}',
        '{"guess":"A","guess":"B"}',
        '{"side":"A"}',
        'I think {"guess":"A"}',
        '```json\n{"guess":"A"}\n```',
    ],
)
def test_whatever_else_is_no_guess(answer: str | None) -> None:
    """S39 F23 F25 F27: nothing is looked for in other text, and nothing becomes unsure."""
    assert read_guess(answer) is None


def test_a_fence_counts_where_the_provider_may_use_one() -> None:
    """F25: exactly one."""
    assert read_guess('```json\n{"guess":"A"}\n```', json_fence=True) == "A"


def test_at_most_forty_pairs_one_showing_each() -> None:
    """S39: drawn from the seed, each licence for itself, whatever the order of the votes."""
    voted = {f"p{number}": [f"p{number}-0", f"p{number}-1"] for number in range(50)} | {"none": []}
    first = chosen(CHANCE, LICENCE, voted)
    assert len(first) == MOST_GUESSES == 40
    assert len({name.split("-")[0] for name in first}) == 40
    assert {name.split("-")[1] for name in first} == {"0", "1"}
    assert chosen(CHANCE, LICENCE, dict(reversed(voted.items()))) == first
    assert chosen(CHANCE, 32 * "b", voted) != first


def test_the_prompt_holds_what_the_vote_saw_and_no_id() -> None:
    """S38: task and texts alone."""
    shown = ShownPair("pair-" + 64 * "0", 1, "the task", "the rubric", "one", "other")
    prompt = guess_prompt(shown)
    assert json.loads(prompt.splitlines()[-1]) == {"task": "the task", "A": "one", "B": "other"}
    assert "pair-" not in prompt
    assert guess_schema()["required"] == ["guess"]


def test_a_simulated_reviewer_guesses_by_chance() -> None:
    """S39: each word about as often, always the same for one pair."""
    said = [simulated_guess(CHANCE, LICENCE, f"pair-{number}") for number in range(600)]
    assert all(150 < said.count(word) < 250 for word in ("A", "B", "unsure"))
    assert said[0] == simulated_guess(CHANCE, LICENCE, "pair-0")
