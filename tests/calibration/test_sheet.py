from __future__ import annotations

import dataclasses
from typing import NamedTuple

import pytest
from pydantic import ValidationError

from skill_effectiveness.calibration.agreement import alpha_agreement, pair_agreement
from skill_effectiveness.calibration.intervals import wilson
from skill_effectiveness.calibration.models import ShownAnswer, Usage
from skill_effectiveness.calibration.sheet import (
    BOOTSTRAP_SEED,
    MetricsSheet,
    ReviewerRecords,
    Totals,
    build_sheet,
    cost_sheet,
)
from skill_effectiveness.evidence.canonical import dump
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.cases import load_bank
from skill_effectiveness.protocol.policy import load_policy
from skill_effectiveness.protocol.words import BankName, Verdict
from tests.support.verdicts import bank_with, seen, verdicts

BANK = bank_with("AAAAAAAA BBBBBBBB TTTTTTTT")
X = verdicts("AAAAAAAA BBBBBBBB TTTTTTTT")
Y = verdicts("AAAAAAAT BBBBBBAA TTTTTTTB")
HASH = "sha256:" + "5" * 64
POLICY = load_policy(RealFs())
KEY_HASH = "sha256:" + "7" * 64


class Spent(NamedTuple):
    """Usage of one call."""

    input_tokens: int | None = 100
    output_tokens: int | None = 10
    cost_units: float | None = 0.1
    latency_ms: int | None = 1000


def records(family: str, *runs: tuple[Verdict, ...]) -> ReviewerRecords:
    return ReviewerRecords(
        family=family,
        runs=runs,
        seen=[seen(BANK, [0] * 24, given) for given in runs],
        calls=[Spent()] * len(runs),
        attempts=len(runs),
        orientation_key_hashes=[KEY_HASH] * len(runs),
    )


def sheet_of(*reviewers: ReviewerRecords) -> MetricsSheet:
    return build_sheet(BANK, reviewers, evidence_hash=HASH, synthetic=False, policy=POLICY)


class TestWholeSheet:
    def test_two_families_of_the_worked_example(self) -> None:
        """R22: every figure of section 8 stands in the sheet."""
        sheet = sheet_of(records("x", X, X), records("y", Y, Y))
        (pair,) = sheet.pairs
        assert pair.families == ("x", "y")
        assert sheet.alpha is not None
        values = [pair.figures.agreement, pair.figures.kappa, pair.figures.ac1, sheet.alpha]
        assert [round(estimate.value, 4) for estimate in values] == [0.8333, 0.75, 0.7502, 0.7549]
        assert [round(reviewer.accuracy.value, 4) for reviewer in sheet.reviewers] == [1, 0.8333]
        assert sheet.reviewers[1].accuracy.interval == wilson(20, 24)
        assert sheet.reviewers[1].confusion[Verdict.B_WIN] == {
            Verdict.A_WIN: 4,
            Verdict.B_WIN: 12,
            Verdict.TIE: 0,
        }

    def test_sensitivity_counts_are_pooled_over_runs(self) -> None:
        """Y finds 7 of 8 true A and calls 2 of the 16 others A, in each of two runs."""
        a_win = sheet_of(records("y", Y, Y)).reviewers[0].verdicts[Verdict.A_WIN]
        assert (a_win.hits, a_win.n1, a_win.rejections, a_win.n0) == (14, 16, 28, 32)
        assert a_win.sensitivity is not None
        assert (a_win.sensitivity.value, a_win.sensitivity.interval) == (0.875, wilson(7, 8))

    def test_intervals_are_repeatable_from_the_recorded_seed(self) -> None:
        """R22: seed and number of draws are on record and give the same bootstrap again."""
        sheet = sheet_of(records("x", X, X), records("y", Y, Y))
        assert sheet.bootstrap.draws == 2000
        assert sheet.bootstrap.seed == BOOTSTRAP_SEED
        assert sheet.pairs[0].figures == pair_agreement(X, Y, sheet.bootstrap.seed)
        assert sheet.alpha == alpha_agreement([X, Y], sheet.bootstrap.seed)
        assert sheet_of(records("x", X, X), records("y", Y, Y)) == sheet

    def test_a_modal_tie_is_written_as_none(self) -> None:
        """R21: the case without consensus is named as such and counted."""
        (reviewer,) = sheet_of(records("x", X, (Verdict.B_WIN, *X[1:]))).reviewers
        assert reviewer.consensus[:2] == ("none", Verdict.A_WIN)
        assert reviewer.inconsistent_cases == 1
        assert round(reviewer.self_consistency.value, 4) == 0.9583

    def test_one_family_has_no_pairs_and_no_alpha(self) -> None:
        sheet = sheet_of(records("x", X, X))
        assert (sheet.pairs, sheet.alpha, sheet.reviewers[0].bias) == ((), None, None)

    def test_repeats_never_narrow(self) -> None:
        """R23: three equal samples give the figures of two."""
        two, three = (sheet_of(records("y", *[Y] * times)).reviewers[0] for times in (2, 3))
        assert (two.accuracy, two.self_consistency) == (three.accuracy, three.self_consistency)

    def test_position_and_key_commitments(self) -> None:
        """R5: a first-seat judge is told by its share, and the keys can be checked once opened."""
        always = (Verdict.A_WIN,) * 24
        turned = tuple(verdict.turned() for verdict in always)
        told = dataclasses.replace(
            records("x", always, turned), seen=[seen(BANK, [0] * 24, always), seen(BANK, [1] * 24, always)]
        )
        (reviewer,) = sheet_of(told).reviewers
        assert (reviewer.position.first_seat.value, reviewer.position.flips.value) == (1, 1)
        assert reviewer.orientation_key_hashes == (KEY_HASH, KEY_HASH)

    def test_records_of_the_room_fit(self) -> None:
        """Observations and usage go in as they are stored."""
        shown = [
            ShownAnswer(case_id=case_id, orientation=0, verdict=verdict)
            for case_id, verdict in zip(BANK.case_ids, X, strict=True)
        ]
        usage = Usage(input_tokens=1, output_tokens=2, cost_units=None, latency_ms=3)
        stored = dataclasses.replace(records("x", X, X), seen=[shown, shown], calls=[usage, usage])
        (reviewer,) = sheet_of(stored).reviewers
        assert reviewer.cost.input_tokens == Totals(sum=2, median=1)

    def test_written_and_read_back_it_is_the_same(self) -> None:
        sheet = sheet_of(records("x", X, X), records("y", Y, Y))
        text = dump(sheet.model_dump(mode="json"))
        assert MetricsSheet.model_validate_json(text) == sheet
        assert b"NaN" not in text

    @pytest.mark.parametrize("version", [b"true", b"1.0", b'"1"'])
    def test_its_version_is_the_token_1(self, version: bytes) -> None:
        """R7: look-alikes are not."""
        text = dump(sheet_of(records("x", X, X)).model_dump(mode="json"))
        changed = text.replace(b'"schema_version":1', b'"schema_version":' + version)
        assert changed != text
        with pytest.raises(ValidationError):
            MetricsSheet.model_validate_json(changed)

    def test_the_probe_bank_has_its_table(self) -> None:
        bank = load_bank(RealFs(), BankName.BIAS_PROBE)
        told = ReviewerRecords(
            family="x",
            runs=[bank.truth] * 3,
            seen=[seen(bank, [0] * len(bank.truth), bank.truth)] * 3,
            calls=[Spent()] * 3,
            attempts=3,
            orientation_key_hashes=[],
        )
        sheet = build_sheet(bank, [told], evidence_hash=HASH, synthetic=True, policy=POLICY)
        (reviewer,) = sheet.reviewers
        assert reviewer.bias is not None
        assert (reviewer.bias.passed, sheet.synthetic, sheet.bank) == (True, True, BankName.BIAS_PROBE)


class TestCost:
    def test_sum_and_median(self) -> None:
        sheet = cost_sheet([Spent(10, 1, 0.1, 900), Spent(20, 2, 0.2, 100), Spent(60, 6, 0.3, 200)])
        assert sheet.call_count == 3
        assert sheet.input_tokens == Totals(sum=90, median=20)
        assert sheet.output_tokens == Totals(sum=9, median=2)
        # Summed without drift: 0.1 + 0.2 + 0.3 is 0.6 and not 0.6000000000000001.
        assert sheet.cost_units == Totals(sum=0.6, median=0.2)
        assert sheet.latency_ms == Totals(sum=1200, median=200)

    def test_an_even_number_of_calls_has_a_middle(self) -> None:
        assert cost_sheet([Spent(10), Spent(15)]).input_tokens == Totals(sum=25, median=12.5)

    @pytest.mark.parametrize("part", Spent._fields)
    def test_one_call_without_the_figure_makes_it_unknown(self, part: str) -> None:
        """R25: unknown is a word of its own, for this part alone, and never 0."""
        told = cost_sheet([Spent(), Spent()._replace(**{part: None})]).model_dump(mode="json")
        assert told[part] == "unknown"
        assert [name for name in Spent._fields if told[name] == "unknown"] == [part]

    def test_no_call_is_unknown_too(self) -> None:
        """R25: nothing was measured."""
        sheet = cost_sheet([])
        assert {sheet.input_tokens, sheet.output_tokens, sheet.cost_units, sheet.latency_ms} == {"unknown"}

    def test_a_known_zero_is_a_zero(self) -> None:
        """R25: a free call costs 0, which is known."""
        assert cost_sheet([Spent(cost_units=0.0)]).cost_units == Totals(sum=0.0, median=0.0)

    @pytest.mark.parametrize("amount", [2**53 - 1, 1e308])
    def test_sums_that_cannot_be_written_are_unknown(self, amount: float) -> None:
        calls = [Spent(cost_units=amount), Spent(cost_units=amount)]
        assert cost_sheet(calls).cost_units == "unknown"


class TestAttempts:
    @pytest.mark.parametrize(
        ("attempts", "unusable", "flagged"), [(2, 0, False), (20, 2, False), (20, 3, True), (3, 1, True)]
    )
    def test_unusable_answers_are_counted_and_flagged_above_a_tenth(
        self,
        attempts: int,
        unusable: int,
        flagged: bool,  # noqa: FBT001 - a table column
    ) -> None:
        """F24: whatever was tried in vain is left out, counted, and flags the examination above the share."""
        told = dataclasses.replace(records("x", *[X] * (attempts - unusable)), attempts=attempts)
        sheet = sheet_of(told).reviewers[0].attempts
        assert (sheet.attempts, sheet.unusable_answers, sheet.flagged) == (attempts, unusable, flagged)

    @pytest.mark.parametrize(("least", "flagged"), [(0.5, False), (0.51, True)])
    def test_the_share_is_the_one_of_the_licence_policy(
        self,
        least: float,
        flagged: bool,  # noqa: FBT001 - a table column
    ) -> None:
        """F24: one number decides both, wherever it is edited."""
        policy = POLICY.model_copy(update={"usable_answer_rate_min": least})
        told = dataclasses.replace(records("x", X, X), attempts=4)
        sheet = build_sheet(BANK, [told], evidence_hash=HASH, synthetic=False, policy=policy)
        assert sheet.reviewers[0].attempts.flagged is flagged

    @pytest.mark.parametrize(("attempts", "calls"), [(1, 2), (2, 1), (2, 3)])
    def test_counts_that_contradict_each_other_are_refused(self, attempts: int, calls: int) -> None:
        told = dataclasses.replace(records("x", X, X), attempts=attempts, calls=[Spent()] * calls)
        with pytest.raises(ValueError, match="attempt"):
            sheet_of(told)


class TestRefusals:
    def test_no_family_or_one_twice(self) -> None:
        with pytest.raises(ValueError, match="family"):
            sheet_of()
        with pytest.raises(ValueError, match="family"):
            sheet_of(records("x", X, X), records("x", X, X))

    def test_no_runs_or_short_ones(self) -> None:
        short = dataclasses.replace(records("x", X, X), runs=[X, X[1:]])
        for told in (records("x"), short):
            with pytest.raises(ValueError, match="one run"):
                sheet_of(told)

    def test_a_sample_that_was_not_seen(self) -> None:
        told = dataclasses.replace(records("x", X, X), seen=[seen(BANK, [0] * 24, X)])
        with pytest.raises(ValueError, match="seen once"):
            sheet_of(told)
