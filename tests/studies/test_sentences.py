"""What a study says in sentences."""

from __future__ import annotations

import pytest

from skill_effectiveness.calibration.figures import Interval
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.gates import (
    COMPARISONS_ALLOWED,
    CONTENT_UNANSWERABLE,
    WaivableItem,
    load_gates,
)
from skill_effectiveness.studies import sentences
from skill_effectiveness.studies.analysis.blinding_index import Blinding
from skill_effectiveness.studies.analysis.conclusions import Reason, Word
from skill_effectiveness.studies.analysis.records import Method, Uncorrected
from skill_effectiveness.studies.results import BlindingFigure, BlindingRecord
from skill_effectiveness.studies.words import Outcome
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
    assert set(sentences.LIMITATIONS) == set(WaivableItem)


class TestCost:
    def test_a_part_that_is_unknown(self) -> None:
        """F40: what is known is said, and what is not: 60 trials of 1,200 tokens and 0.25 units."""
        results = study(from_thirds((3, 1, 2, 0, 1, -1, 2, 1, 1, 2))).results
        votes = results.usage.votes.model_copy(update={"calls": 7, "tokens": None, "cost_units": None})
        total = results.usage.total.model_copy(update={"calls": 67, "tokens": None, "cost_units": None})
        usage = results.usage.model_copy(update={"votes": votes, "total": total})
        assert sentences.cost_sentence(results.model_copy(update={"usage": usage})) == (
            "It took 60 trial attempts and 7 votes, at least 72,000 tokens (those of votes are unknown) and "
            "at least 15.00 cost units (those of votes are unknown); exposure checks and the model check are "
            "not counted."
        )

    def test_nothing_is_known(self) -> None:
        results = study(from_thirds((1, 2))).results
        unknown = {"tokens": None, "cost_units": None}
        arms = {name: one.model_copy(update=unknown) for name, one in results.usage.arms.items()}
        total = results.usage.total.model_copy(update=unknown)
        usage = results.usage.model_copy(update={"arms": arms, "total": total})
        assert sentences.cost_sentence(results.model_copy(update={"usage": usage})) == (
            "It took 12 trial attempts, unknown tokens and unknown cost units; exposure checks and the model "
            "check are not counted."
        )


class TestReach:
    @pytest.mark.parametrize(
        ("word", "low", "high", "kind"),
        [
            (Word.IMPROVES, 0.04, 0.5, "advantage"),
            (Word.IMPROVES, 0.05, 0.5, None),
            (Word.HARMS, -0.5, -0.04, "disadvantage"),
            (Word.HARMS, -0.5, -0.05, None),
            (Word.EQUIVALENT, 0.01, 0.02, None),
            (Word.INCONCLUSIVE, -0.1, 0.5, None),
        ],
    )
    def test_into_the_least_effect(self, word: Word, low: float, high: float, kind: str | None) -> None:
        primary = study(from_thirds((1, 2))).results.primary
        found = primary.model_copy(update={"conclusion": word, "interval": Interval(low=low, high=high)})
        said = sentences.reach_sentence(found, 0.05)
        assert said == (
            kind
            and "The interval reaches into the ±0.05 declared too small to matter, so the "
            f"{kind} may be that small."
        )


class TestMisled:
    @pytest.mark.parametrize(("high", "said"), [(-0.01, True), (0.0, False), (0.2, False)])
    def test_a_negative_index(self, high: float, said: bool) -> None:  # noqa: FBT001 - a case of the table
        index = BlindingFigure(value=-0.3, interval=Interval(low=-0.6, high=high), tasks=9)
        found = BlindingRecord(word=Blinding.BLINDED, treated_first=None, treated_second=index)
        assert (sentences.misled_sentence(found) is not None) is said

    def test_nobody_was_asked(self) -> None:
        found = BlindingRecord(word=Blinding.NOT_SHOWN, treated_first=None, treated_second=None)
        assert sentences.misled_sentence(found) is None


def test_no_content_effect_is_claimed_while_the_control_is_pending() -> None:
    """A16: the words are those of the frozen gates, which know no other state."""
    gates = load_gates(RealFs()).active_control
    assert gates.status == "pending-independent-candidates"
    assert gates.content_effect == "ccl_specific_content_unanswerable" == CONTENT_UNANSWERABLE
    assert gates.allowed_comparisons == ("owner_bundle_only",) == (COMPARISONS_ALLOWED,)
    assert sentences.CONTENT_EFFECT.startswith("ccl_specific_content_unanswerable: ")
    assert sentences.CONTENT_EFFECT.endswith("(owner_bundle_only).")


def test_three_sentences_of_a_decided_study() -> None:
    """S4 S5: estimate, cost, and that it is decided."""
    said = sentences.three_sentences(study(from_thirds((3, 1, 2, 0, 1, -1, 2, 1, 1, 2))).results)
    assert said[0].endswith("95 % interval +0.11 to +0.67, p = 0.023: improves.")
    assert said[2] == "The question is decided: nothing more is needed."


def test_missing_values() -> None:
    """S50 S51: six tasks won, two of which the comparator's value is missing."""
    values = from_differences([1.0] * 6)
    values |= {"t07": {"full": [0.0], "off": [None]}, "t08": {"full": [0.0], "off": [None]}}
    assert sentences.missing_sentence(study(values).results) == (
        "2 trials have no value. Whatever the missing values are, the effect lies within +0.50 to +0.75; "
        "1 of them at their worst would change the word."
    )
    assert sentences.missing_sentence(study(from_thirds((1, 2))).results) == "No value is missing."
