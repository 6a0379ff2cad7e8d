"""What a study says in sentences."""

from __future__ import annotations

import pytest

from skill_effectiveness.calibration.figures import Interval
from skill_effectiveness.studies import sentences
from skill_effectiveness.studies.analysis.blinding_index import Blinding
from skill_effectiveness.studies.analysis.conclusions import Reason, Word
from skill_effectiveness.studies.analysis.outcomes import Outcome
from skill_effectiveness.studies.analysis.records import Method, Uncorrected
from tests.support.study_results import study
from tests.support.study_tables import from_differences, from_thirds

MINUS = "\N{MINUS SIGN}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.444, "+0.44"),
        (-0.444, f"{MINUS}0.44"),
        (0.0, "0.00"),
        (-0.001, "0.00"),
        (0.005, "+0.01"),
        (-1.0, f"{MINUS}1.00"),
    ],
)
def test_signs(value: float, text: str) -> None:
    """A zero has none, rounded ones included; a minus is a minus."""
    assert sentences.signed(value) == text


def test_spread() -> None:
    assert sentences.spread(Interval(low=-0.1, high=0.2)) == f"{MINUS}0.10 to +0.20"
    assert sentences.spread(None) == "unknown"


@pytest.mark.parametrize(
    ("p", "text"),
    [(None, "p unknown"), (0.0009, "p < 0.001"), (0.001, "p = 0.001"), (1.0, "p = 1.000")],
)
def test_p(p: float | None, text: str) -> None:
    assert sentences.chance_of(p) == text


@pytest.mark.parametrize(
    ("level", "text"), [(0.95, "95 %"), (0.9, "90 %"), (0.975, "97.5 %"), (0.93, "93 %")]
)
def test_levels(level: float, text: str) -> None:
    assert sentences.percent(level) == text


def test_amounts() -> None:
    """F40: unknown is a word."""
    assert [sentences.amount(value) for value in (None, 0, 1234567, 1234.5)] == [
        "unknown", "0", "1,234,567", "1,234.50",
    ]  # fmt: skip


def test_every_word_reason_and_method_has_its_sentence() -> None:
    """A new member without one would be found by a reader."""
    assert set(sentences.MEANINGS) == set(Word)
    assert set(sentences.REASONS) == set(Reason)
    assert set(sentences.METHODS) == set(Method)
    assert set(sentences.MEASURES) == set(Outcome)
    assert set(sentences.BLINDINGS) == set(Blinding)
    assert set(sentences.UNCORRECTED) == set(Uncorrected)


def test_three_sentences_of_a_decided_study() -> None:
    """S4 S5: estimate, cost, and that it is decided."""
    said = sentences.three_sentences(study(from_thirds((3, 1, 2, 0, 1, -1, 2, 1, 1, 2))).results)
    assert said[0].endswith("95 % interval +0.11 to +0.67, p = 0.023: improves.")
    assert said[2] == "The question is decided; more tasks would narrow the interval."


def test_missing_values() -> None:
    """S50 S51: six tasks won, two of which the comparator's value is missing."""
    values = from_differences([1.0] * 6)
    values |= {"t07": {"full": [0.0], "off": [None]}, "t08": {"full": [0.0], "off": [None]}}
    assert sentences.missing_sentence(study(values).results) == (
        "2 trials have no value. Whatever the missing values are, the effect lies within +0.50 to +0.75; "
        "1 of them at their worst would change the word."
    )
    assert sentences.missing_sentence(study(from_thirds((1, 2))).results) == "No value is missing."
