from __future__ import annotations

import hashlib
import hmac
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.calibration.orientation import (
    Presentation,
    arrange,
    draw,
    draw_seats,
    identity,
    key_commitment,
)
from skill_effectiveness.protocol.words import Verdict
from tests.support.verdicts import VERDICTS, bank_with, verdicts

BANK = bank_with("AAAAAAAA BBBBBBBB TTTTTTTT")
KEY = bytes(range(32))
OTHER_KEY = bytes(range(1, 33))


def drawn_by_hand(use: str, sample_id: str, case_id: str) -> bytes:
    """The rule of section 2 by the standard library; the text is ASCII, so sorted JSON is canonical."""
    named = {"use": use, "bank": BANK.case_fixture_hash, "sample_id": sample_id, "case_id": case_id}
    text = json.dumps(named, sort_keys=True, separators=(",", ":"))
    return hmac.new(KEY, text.encode("ascii"), hashlib.sha256).digest()


class TestDraw:
    def test_follows_the_two_rules(self) -> None:
        """R4: order by HMAC, orientation by the last bit of another HMAC."""
        shown = draw(BANK, "s-1", KEY).shown
        by_hand = sorted(BANK.case_ids, key=lambda case_id: drawn_by_hand("order", "s-1", case_id))
        assert [case.case_id for case in shown] == by_hand
        for case in shown:
            assert case.swapped is bool(drawn_by_hand("orientation", "s-1", case.case_id)[-1] % 2)

    def test_two_samples_show_different_orders_and_orientations(self) -> None:
        """R4: neither sequence nor seats repeat from one sample to the next."""
        first, second = draw(BANK, "s-1", KEY), draw(BANK, "s-2", KEY)
        assert [case.case_id for case in first.shown] != [case.case_id for case in second.shown]
        seats = [{case.case_id: case.swapped for case in sample.shown} for sample in (first, second)]
        assert seats[0] != seats[1]

    def test_same_sample_and_key_show_the_same(self) -> None:
        """R4: a draw can be repeated."""
        assert draw(BANK, "s-1", KEY) == draw(BANK, "s-1", KEY)

    def test_another_key_or_bank_shows_otherwise(self) -> None:
        other_bank = bank_with("BAAAAAAA BBBBBBBB TTTTTTTT")
        ways = [draw(BANK, "s", KEY), draw(BANK, "s", OTHER_KEY), draw(other_bank, "s", KEY)]
        assert len({tuple(case.case_id for case in way.shown) for way in ways}) == 3

    def test_seats_are_even_over_many_samples(self) -> None:
        """R4: half of 24 x 200 cases are swapped within four standard errors."""
        swaps = sum(case.swapped for n in range(200) for case in draw(BANK, f"s{n}", KEY).shown)
        assert abs(swaps - 2400) < 4 * (4800 * 0.25) ** 0.5

    def test_texts_change_seats_only_where_swapped(self) -> None:
        by_id = {case.case_id: case for case in BANK.cases}
        for place, case in enumerate(draw(BANK, "s-1", KEY).shown, start=1):
            original = by_id[case.case_id]
            texts = (
                (original.candidate_b, original.candidate_a)
                if case.swapped
                else (original.candidate_a, original.candidate_b)
            )
            assert (case.shown_a, case.shown_b) == texts
            assert (case.task, case.rubric, case.label) == (
                original.task,
                original.rubric,
                f"case-{place:02d}",
            )

    def test_a_short_key_is_refused(self) -> None:
        with pytest.raises(ValueError, match="32 bytes"):
            draw(BANK, "s-1", KEY[:-1])


class TestTurningBack:
    def test_by_hand(self) -> None:
        """R5: swapped wins change, ties stay, and the order becomes that of the bank."""
        bank = bank_with("ABT")
        a, b, tie = bank.case_ids
        presentation = arrange(bank, [(tie, True), (a, True), (b, False)])
        assert presentation.turn_back(verdicts("TAB")) == verdicts("BBT")

    @given(st.text("abc", min_size=1, max_size=5), st.lists(VERDICTS, min_size=24, max_size=24))
    def test_is_undone_by_showing(self, sample_id: str, given_verdicts: list[Verdict]) -> None:
        presentation = draw(BANK, sample_id, KEY)
        in_bank_order = presentation.turn_back(given_verdicts)
        assert presentation.as_shown(in_bank_order) == tuple(given_verdicts)

    def test_identity_changes_nothing(self) -> None:
        presentation = identity(BANK)
        assert [case.case_id for case in presentation.shown] == list(BANK.case_ids)
        assert not any(case.swapped for case in presentation.shown)
        assert presentation.turn_back(BANK.truth) == BANK.truth

    @pytest.mark.parametrize("count", [23, 25])
    def test_one_verdict_per_case(self, count: int) -> None:
        with pytest.raises(ValueError, match="zip"):
            identity(BANK).turn_back((Verdict.TIE,) * count)
        with pytest.raises(ValueError, match="zip"):
            identity(BANK).as_shown((Verdict.TIE,) * count)


class TestSeats:
    def test_by_hand(self) -> None:
        """R4: HMAC-SHA256 over canonical JSON; the last bit turns, the digests order."""

        def drawn(use: str, case_id: str) -> bytes:
            named = f'{{"bank":"bank","case_id":"{case_id}","sample_id":"s-1","use":"{use}"}}'
            return hmac.digest(KEY, named.encode(), "sha256")

        expected = [
            (case_id, bool(drawn("orientation", case_id)[31] % 2))
            for case_id in sorted(("x", "y", "z"), key=lambda case_id: drawn("order", case_id))
        ]
        assert draw_seats("bank", ("z", "y", "x"), "s-1", KEY) == tuple(expected)

    def test_are_those_of_the_presentation(self) -> None:
        seats = draw_seats(BANK.case_fixture_hash, BANK.case_ids, "s-1", KEY)
        assert [(case.case_id, case.swapped) for case in draw(BANK, "s-1", KEY).shown] == list(seats)


class TestArrange:
    def test_rebuilds_a_draw_from_what_an_observation_keeps(self) -> None:
        drawn = draw(BANK, "s-1", KEY)
        assert arrange(BANK, [(case.case_id, case.swapped) for case in drawn.shown]) == drawn

    @pytest.mark.parametrize(
        "ids", [["plan-09"], [], [BANK.case_ids[0]] * 24, [*BANK.case_ids, BANK.case_ids[0]]]
    )
    def test_every_case_once_and_no_other(self, ids: list[str]) -> None:
        with pytest.raises(ValueError, match="presentation"):
            arrange(BANK, [(case_id, False) for case_id in ids])

    def test_a_presentation_cannot_be_made_incomplete(self) -> None:
        whole = identity(BANK)
        with pytest.raises(ValueError, match="exactly once"):
            Presentation(whole.shown[1:], whole.case_ids)


class TestSecrets:
    def test_the_commitment_is_the_digest_of_the_quoted_hex_text(self) -> None:
        text = '"' + "".join(f"{byte:02x}" for byte in range(32)) + '"'
        assert key_commitment(KEY) == "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()

    def test_no_trace_tells_texts_or_seats(self) -> None:
        presentation = draw(BANK, "s-1", KEY)
        told = repr(presentation) + repr(presentation.shown)
        assert "swapped" not in told
        assert not any(case.shown_a in told or case.case_id in told for case in presentation.shown)
