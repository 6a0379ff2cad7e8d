from __future__ import annotations

import hashlib
import hmac
import json
import re
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.calibration.canary import (
    Canary,
    CanaryAnswer,
    CanaryWatch,
    Showing,
    draw,
    factors,
    showings,
    watch,
)
from skill_effectiveness.calibration.models import ShownAnswer
from skill_effectiveness.calibration.orientation import draw as draw_presentation
from skill_effectiveness.protocol.policy import CanaryRule
from skill_effectiveness.protocol.words import Verdict
from tests.support.examinations import INPUTS, PROBES, Anything
from tests.support.verdicts import bank_with

if TYPE_CHECKING:
    from skill_effectiveness.protocol.cases import Bank

RULE = INPUTS.policy.canary_rule


def answers(text: str, first: int = 0) -> list[CanaryAnswer]:
    """`r` and `w`, every second vote a canary."""
    return [CanaryAnswer(first + 2 * place, letter == "r") for place, letter in enumerate(text)]


def test_the_frozen_rule() -> None:
    """R38: times 0.625 for a right, times 2.5 for a wrong answer."""
    assert (RULE.rate, RULE.p0, RULE.p1, RULE.limit) == (0.05, 0.8, 0.5, 20)
    assert factors(RULE) == (Fraction(5, 8), Fraction(5, 2))


@pytest.mark.parametrize(
    ("text", "evidence", "revoked"),
    [
        ("", 1.0, False),
        ("r", 0.625, False),
        ("w", 2.5, False),
        ("www", 15.625, False),
        ("wwww", 39.0625, True),
        ("rwww", 9.765625, False),
        ("rwwww", 24.4140625, True),
        ("rrwwww", 15.2587890625, False),
    ],
)
def test_known_answers(text: str, evidence: float, revoked: bool) -> None:  # noqa: FBT001 - a column
    """R38: four wrong in a row from the start revoke, three do not, right then four wrong do."""
    found = watch(RULE, answers(text))
    assert (float(found.evidence), found.revoked) == (evidence, revoked)


def test_exactly_the_limit_revokes() -> None:
    """R38: at e >= 20, not above it; thresholds are the decimals that were written."""
    rule = CanaryRule(rate=0.05, p0=0.8, p1=0.5, limit=15.625)
    assert watch(rule, answers("www")).revoked_at == 4
    assert not watch(rule, answers("ww")).revoked


def test_votes_after_the_last_right_canary_are_void() -> None:
    """R38: the vote at the right canary counts, those behind it do not, nor any later one."""
    found = watch(RULE, answers("rrrwwwwwww"))
    assert (found.last_right, found.revoked_at) == (4, 14)
    assert [position for position in range(30) if found.counts(position)] == [0, 1, 2, 3, 4]


def test_without_a_right_canary_every_vote_is_void() -> None:
    """R38: nobody can say that it ever was the licensed reviewer."""
    found = watch(RULE, answers("wwww"))
    assert not any(found.counts(position) for position in range(30))


def test_while_the_licence_stands_every_vote_counts() -> None:
    """R38: three wrong in a row void nothing."""
    found = watch(RULE, answers("rwww"))
    assert all(found.counts(position) for position in range(30))


def test_a_revocation_is_final() -> None:
    """R38: right canaries afterwards bring nothing back."""
    found = watch(RULE, answers("rwwwwrrrrrrrr"))
    assert found == CanaryWatch(Fraction(5**5, 2**7), 0, 8)


@given(st.text("rw", max_size=40), st.integers(0, 40))
def test_going_on_is_the_same_as_going_through(text: str, cut: int) -> None:
    """R38: a study that was resumed comes to the same."""
    every = answers(text)
    begun = watch(RULE, every[:cut])
    assert watch(RULE, every[cut:], begun) == watch(RULE, every)


@pytest.mark.parametrize("positions", [(1, 1), (2, 1), (-1,)])
def test_canaries_come_in_order(positions: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="order"):
        watch(RULE, [CanaryAnswer(position, right=True) for position in positions])


# Drawing.

KEY = bytes(range(32))
LICENCE = 32 * "a"
BANK = INPUTS.bank
SMALL = bank_with("ABT")
EVERY = frozenset(Showing(case_id, swapped) for case_id in BANK.case_ids for swapped in (False, True))
EXAMINED = st.sets(st.sampled_from(sorted(EVERY)))


def drawn(votes: int, examined: frozenset[Showing] = frozenset(), **changes: Anything) -> list[Canary]:
    given = {"key": KEY, "licence_id": LICENCE, "bank": BANK, "rule": RULE, **changes}
    bank, rule = given.pop("bank"), given.pop("rule")
    return list(draw(bank, rule, votes=votes, examined=examined, **given))


def by_hand(use: str, bank: Bank = BANK, **named: int | str) -> bytes:
    """HMAC-SHA256 over sorted JSON, which is canonical for ASCII texts and small integers."""
    whole = {"use": use, "bank": bank.case_fixture_hash, "licence_id": LICENCE, **named}
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"))
    return hmac.new(KEY, text.encode("ascii"), hashlib.sha256).digest()


class TestPlaces:
    def test_one_in_twenty_by_hand(self) -> None:
        """R38: the frozen rate; the place within each twenty is a draw of the key."""
        expected = [
            20 * stretch + int(by_hand("canary-place", stretch=stretch).hex(), 16) % 20
            for stretch in range(50)
        ]
        assert [canary.position for canary in drawn(1000)] == expected
        assert len({position % 20 for position in expected}) > 10

    def test_borders_of_another_rate_are_rounded_up(self) -> None:
        """R38: at 0.4 the stretches of five votes are 0 to 2 and 3 to 4, and so on."""
        rule = RULE.model_copy(update={"rate": 0.4})
        positions = [canary.position for canary in drawn(100, rule=rule)]
        assert len(positions) == 40
        for fives in range(20):
            first, second = positions[2 * fives : 2 * fives + 2]
            assert 5 * fives <= first < 5 * fives + 3 <= second < 5 * fives + 5

    @given(st.integers(0, 3000))
    def test_the_rate_is_kept_whatever_the_number_of_votes(self, votes: int) -> None:
        """R38: one in each whole twenty, and at most one in what remains."""
        positions = [canary.position for canary in drawn(votes)]
        assert positions == sorted(set(positions))
        assert len(positions) - votes // 20 in (0, 1)
        for stretch in range(votes // 20):
            assert sum(20 * stretch <= position < 20 * stretch + 20 for position in positions) == 1
        assert all(position < votes for position in positions)

    @given(st.floats(0.01, 0.99), st.integers(0, 500))
    def test_any_rate(self, rate: float, votes: int) -> None:
        """R38: never further from the rate than one canary."""
        found = drawn(votes, rule=RULE.model_copy(update={"rate": rate}))
        assert abs(len(found) - rate * votes) <= 1
        assert len({canary.position for canary in found}) == len(found)


class TestWhatIsShown:
    def test_by_hand(self) -> None:
        """R38: unused showings first, each of the two groups by the digests of the key."""
        a, b, tie = SMALL.case_ids
        examined = frozenset(
            {Showing(a, swapped=False), Showing(b, swapped=True), Showing(tie, swapped=True)}
        )
        unused = [(a, True), (b, False), (tie, False)]
        used = [(a, False), (b, True), (tie, True)]
        expected: list[tuple[str, bool]] = []
        for turn in range(2):
            for group in (unused, used):
                expected += sorted(
                    group,
                    key=lambda each: by_hand(
                        "canary-showing", SMALL, turn=turn, case_id=each[0], swapped=int(each[1])
                    ),
                )
        found = drawn(240, examined, bank=SMALL)
        assert [tuple(canary.showing) for canary in found] == expected

    def test_texts_and_truth_follow_the_seats(self) -> None:
        """R38: a swapped win changes sides with its text, a tie stays."""
        cases = {case.case_id: case for case in SMALL.cases}
        truth = dict(zip(SMALL.case_ids, "ABT", strict=True))
        over = {"A": "B win", "B": "A win", "T": "tie"}
        straight = {"A": "A win", "B": "B win", "T": "tie"}
        found = drawn(120, bank=SMALL)
        assert len({canary.showing for canary in found}) == 6
        for canary in found:
            case, swapped = cases[canary.showing.case_id], canary.showing.swapped
            texts = (case.candidate_b, case.candidate_a) if swapped else (case.candidate_a, case.candidate_b)
            assert (canary.task, canary.rubric, canary.shown_a, canary.shown_b) == (
                case.task,
                case.rubric,
                *texts,
            )
            assert canary.truth.value == (over if swapped else straight)[truth[case.case_id]]

    @given(EXAMINED, st.integers(0, 96))
    def test_nothing_is_shown_again_while_something_else_remains(
        self, examined: frozenset[Showing], number: int
    ) -> None:
        """R38: of the examination's showings none before the unused are gone, of any none a second time."""
        shown = [canary.showing for canary in drawn(20 * number, frozenset(examined))]
        assert len(shown) == number
        unused = EVERY - examined
        for turn in range(0, number, 48):
            these = shown[turn : turn + 48]
            assert len(set(these)) == len(these)
            assert set(these[: len(unused)]) <= unused

    def test_an_examination_says_what_it_used(self) -> None:
        """R4 R38: case and orientation of every answer, whichever sample and whatever verdict."""
        samples = [draw_presentation(BANK, name, KEY).shown for name in ("s-1", "s-2", "s-3")]
        answered = [
            [
                ShownAnswer(case_id=case.case_id, orientation=int(case.swapped), verdict=Verdict.TIE)
                for case in sample
            ]
            for sample in samples
        ]
        used = showings(answered)
        assert used == {(case.case_id, case.swapped) for sample in samples for case in sample}
        unused = len(EVERY - used)
        assert 0 < unused < 24
        found = drawn(20 * 48, used)
        assert [canary.showing in used for canary in found] == unused * [False] + (48 - unused) * [True]

    def test_all_were_used(self) -> None:
        """R38: five samples may leave nothing; the order is still nobody's but the key's."""
        assert {canary.showing for canary in drawn(20 * 48, EVERY)} == EVERY


class TestForm:
    PAIR_ID = re.compile(r"pair-[0-9a-f]{64}")

    def test_ids_are_those_of_pairs(self) -> None:
        """R38 T36: unlinkable, also when one case is shown twice."""
        found = drawn(20 * 100)
        assert len({canary.pair_id for canary in found}) == 100
        assert [canary.pair_id for canary in found if not self.PAIR_ID.fullmatch(canary.pair_id)] == []
        first = found[0]
        assert first.pair_id == f"pair-{by_hand('canary-pair', position=first.position).hex()}"

    def test_nothing_shown_tells_a_canary(self) -> None:
        """R3 R38: no case id, no answer, no word for what it is."""
        for canary in drawn(20 * 48):
            shown = f"{canary.pair_id} {canary.task} {canary.rubric} {canary.shown_a} {canary.shown_b}"
            words = (canary.showing.case_id, "canary", *(verdict.value for verdict in Verdict))
            assert [word for word in words if word in shown] == []

    def test_no_trace_tells_its_answer(self) -> None:
        """R3: not where it is printed."""
        (canary, *_) = drawn(20)
        assert repr(canary) == f"<Canary at {canary.position}>"

    @pytest.mark.parametrize("verdict", list(Verdict))
    def test_an_answer_is_right_or_wrong(self, verdict: Verdict) -> None:
        """R38: what `watch` goes through."""
        for canary in drawn(20 * 48):
            assert canary.answered(verdict) == CanaryAnswer(canary.position, verdict is canary.truth)
        right = [canary.answered(canary.truth) for canary in drawn(100)]
        assert watch(RULE, right).evidence == Fraction(5, 8) ** 5


class TestDeterminism:
    @given(st.integers(0, 400), st.integers(0, 400), EXAMINED)
    def test_more_votes_only_add(self, votes: int, more: int, examined: frozenset[Showing]) -> None:
        """R38: whoever goes on with a study draws the same again."""
        short, whole = drawn(votes, frozenset(examined)), drawn(votes + more, frozenset(examined))
        assert whole[: len(short)] == short

    @pytest.mark.parametrize(
        "changes", [{"key": bytes(range(1, 33))}, {"licence_id": 32 * "b"}, {"bank": bank_with(24 * "T")}]
    )
    def test_another_key_licence_or_bank_draws_anew(self, changes: dict[str, Anything]) -> None:
        """R38: one licence tells nothing about another."""
        here, there = drawn(2000), drawn(2000, **changes)
        for part in ("position", "showing", "pair_id"):
            same = sum(
                getattr(one, part) == getattr(other, part) for one, other in zip(here, there, strict=True)
            )
            assert same < 30, part
        assert drawn(2000, **changes) == there

    def test_a_longer_key_is_one(self) -> None:
        assert drawn(200, key=bytes(64)) == drawn(200, key=bytes(64))

    @pytest.mark.parametrize(
        "changes",
        [
            {"key": bytes(31)},
            {"bank": PROBES.bank},
            {"examined": frozenset({Showing("nowhere-01", swapped=False)})},
            {"votes": -1},
        ],
    )
    def test_what_nobody_can_draw(self, changes: dict[str, Anything]) -> None:
        with pytest.raises(ValueError, match=r"bank|key|votes"):
            drawn(**{"votes": 20, **changes})
