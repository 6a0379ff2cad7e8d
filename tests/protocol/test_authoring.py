from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.authoring import (
    RENDERED_BYTES_MAX,
    TEXT_BYTES_MAX,
    check_bank,
    rendered_bytes,
)
from skill_effectiveness.protocol.cases import family_of, load_bank
from skill_effectiveness.protocol.findings import AuthoringRule
from skill_effectiveness.protocol.words import BankName, TaskFamily, Verdict
from tests.support.frozen import bank_of

if TYPE_CHECKING:
    from skill_effectiveness.protocol.cases import Bank

Row = tuple[str, Verdict, str, str]


def good_rows() -> list[Row]:
    """24 cases: four a family, eight a verdict, the better text longer in eight of sixteen."""
    rows: list[Row] = []
    for place, family in enumerate(TaskFamily):
        extra = list(Verdict)[place % 3]
        for number, verdict in enumerate([*Verdict, extra], start=1):
            rows.append((f"{family.value}-{number:02d}", verdict, "", ""))
    decided = 0
    for place, (case_id, verdict, _, _) in enumerate(rows):
        better, worse = ("a long sound text", "a wrong text")[:: 1 if decided % 2 else -1]
        if verdict is Verdict.TIE:
            rows[place] = (case_id, verdict, "one way", "another way")
        else:
            texts = (better, worse) if verdict is Verdict.A_WIN else (worse, better)
            rows[place] = (case_id, verdict, *texts)
            decided += 1
    return rows


def rules_of(bank: Bank) -> set[AuthoringRule]:
    return {finding.rule for finding in check_bank(bank)}


class TestCommittedBanks:
    @pytest.mark.parametrize("name", list(BankName))
    def test_no_countable_rule_is_broken(self, name: BankName) -> None:
        """R1: sizes, counts, family grid, length balance, ties and words of the committed banks."""
        assert check_bank(load_bank(RealFs(), name)) == []

    def test_the_judged_bank_counted_by_hand(self) -> None:
        """R1: the same promises, counted here without the checker."""
        bank = load_bank(RealFs(), BankName.JUDGED)
        assert len(bank.cases) >= 24
        counts = [bank.truth.count(verdict) for verdict in ("A win", "B win", "tie")]
        assert min(counts) >= 8
        assert len(set(counts)) == 1
        grid = {
            (case_id.rsplit("-", 1)[0], verdict)
            for case_id, verdict in zip(bank.case_ids, bank.truth, strict=True)
        }
        assert len(grid) == 18
        longer = 0
        total = 0
        for case, verdict in zip(bank.cases, bank.truth, strict=True):
            texts = (case.task, case.rubric, case.candidate_a, case.candidate_b)
            assert all(len(text.encode()) <= 16_384 for text in texts)
            total += sum(len(text.encode()) for text in texts)
            if verdict == "tie":
                assert case.candidate_a != case.candidate_b
            elif verdict == "A win":
                longer += len(case.candidate_a) > len(case.candidate_b)
            else:
                longer += len(case.candidate_b) > len(case.candidate_a)
        assert total <= 98_304
        assert 2 * longer == counts[0] + counts[1]


class TestJudgedBank:
    def test_a_good_bank_has_no_finding(self) -> None:
        assert check_bank(bank_of(good_rows())) == []

    def test_too_few_cases(self) -> None:
        rows = [row for row in good_rows() if not row[0].startswith("review-")]
        assert {AuthoringRule.CASE_COUNT, AuthoringRule.FAMILY_GRID} <= rules_of(bank_of(rows))

    def test_a_verdict_too_few(self) -> None:
        rows = good_rows()
        place = next(place for place, row in enumerate(rows) if row[0] == "implementation-04")
        assert rows[place][1] is Verdict.A_WIN
        rows[place] = ("implementation-04", Verdict.TIE, "one way", "another way")
        findings = [f for f in check_bank(bank_of(rows)) if f.rule is AuthoringRule.VERDICT_BALANCE]
        assert "7 A win, 8 B win, 9 tie" in findings[0].sentence

    def test_more_of_one_verdict_than_of_the_others(self) -> None:
        rows = [*good_rows(), ("plan-05", Verdict.TIE, "one way", "another way")]
        assert rules_of(bank_of(rows)) == {AuthoringRule.VERDICT_BALANCE}

    def test_a_family_without_a_verdict_is_named(self) -> None:
        rows: list[Row] = [
            (case_id.replace("plan-0", "review-1"), verdict, first, second)
            for case_id, verdict, first, second in good_rows()
        ]
        findings = [f.sentence for f in check_bank(bank_of(rows)) if f.rule is AuthoringRule.FAMILY_GRID]
        assert findings == [
            f"the family plan has no case whose answer is {word}." for word in ("A win", "B win", "tie")
        ]

    def test_one_winner_too_many_is_the_longer_text(self) -> None:
        rows = good_rows()
        place = next(
            place for place, row in enumerate(rows) if row[1] is Verdict.A_WIN and len(row[2]) < len(row[3])
        )
        rows[place] = (rows[place][0], Verdict.A_WIN, "a very long sound text", "short")
        findings = check_bank(bank_of(rows))
        assert [finding.rule for finding in findings] == [AuthoringRule.LENGTH_BALANCE]
        assert "9 of 16" in findings[0].sentence

    def test_decided_texts_of_equal_length_are_named(self) -> None:
        rows = good_rows()
        place = next(place for place, row in enumerate(rows) if row[1] is Verdict.A_WIN)
        rows[place] = (rows[place][0], Verdict.A_WIN, "right", "wrong")
        assert rows[place][0] in {
            f.where for f in check_bank(bank_of(rows)) if f.rule is AuthoringRule.LENGTH_BALANCE
        }

    def test_length_is_counted_in_characters(self) -> None:
        rows = good_rows()
        place = next(
            place for place, row in enumerate(rows) if row[1] is Verdict.A_WIN and len(row[2]) < len(row[3])
        )
        rows[place] = (rows[place][0], Verdict.A_WIN, "漢字漢字", "letters")
        assert check_bank(bank_of(rows)) == []

    def test_equal_texts_in_an_even_case(self) -> None:
        rows = good_rows()
        place = next(place for place, row in enumerate(rows) if row[1] is Verdict.TIE)
        rows[place] = (rows[place][0], Verdict.TIE, "same", "same")
        findings = check_bank(bank_of(rows))
        assert [(finding.rule, finding.where) for finding in findings] == [
            (AuthoringRule.TIE_TEXTS, rows[place][0])
        ]


class TestSizes:
    def test_a_text_may_have_exactly_the_limit_in_bytes(self) -> None:
        bank = bank_of(good_rows(), rubric="é" * (TEXT_BYTES_MAX // 2))
        assert AuthoringRule.TEXT_SIZE not in rules_of(bank)
        over = bank_of(good_rows()[:1], rubric="é" * (TEXT_BYTES_MAX // 2) + "x")
        where = [f.where for f in check_bank(over) if f.rule is AuthoringRule.TEXT_SIZE]
        assert where == ["implementation-01/rubric"]

    def test_the_rendered_bank_may_have_exactly_the_limit(self) -> None:
        small = bank_of([("plan-01", Verdict.TIE, "a", "b")], task="t", rubric="r")
        assert rendered_bytes(small) == len('[{"candidate_a":"a","candidate_b":"b","rubric":"r","task":"t"}]')
        room = RENDERED_BYTES_MAX - rendered_bytes(small)
        exact = bank_of([("plan-01", Verdict.TIE, "a", "b")], task="t" + "x" * room, rubric="r")
        assert AuthoringRule.RENDERED_SIZE not in rules_of(exact)
        over = bank_of([("plan-01", Verdict.TIE, "a", "b")], task="tx" + "x" * room, rubric="r")
        assert AuthoringRule.RENDERED_SIZE in rules_of(over)


class TestWords:
    @pytest.mark.parametrize(
        ("text", "rule"),
        [
            ("so this is an A win.", AuthoringRule.VERDICT_WORD),
            ("a WIN for everybody", AuthoringRule.VERDICT_WORD),
            ("then B\nwins", AuthoringRule.VERDICT_WORD),
            ("it is a Tie", AuthoringRule.VERDICT_WORD),
            ("a tie-break", AuthoringRule.VERDICT_WORD),
            ("an off-by-one fault", AuthoringRule.ARM_WORD),
            ("the FULL story", AuthoringRule.ARM_WORD),
            ("a reference", AuthoringRule.ARM_WORD),
            ("ask the oracle", AuthoringRule.ARM_WORD),
            ("the Control group", AuthoringRule.ARM_WORD),
            ("a placebo", AuthoringRule.ARM_WORD),
            ("active_control", AuthoringRule.ARM_WORD),
            ("the treatment arm", AuthoringRule.ARM_WORD),
            ("run Sg first", AuthoringRule.ARM_WORD),
            ("arm M2 here", AuthoringRule.ARM_WORD),
            ("profile-off", AuthoringRule.ARM_WORD),
            ("use ccl-skills:anything", AuthoringRule.SKILL_NAME),
            ("see my-pack:code-review now", AuthoringRule.SKILL_NAME),
            ("as SKILL.md says", AuthoringRule.SKILL_NAME),
            ("like plan-02 above", AuthoringRule.CASE_ID),
            ("Swapped-01-a again", AuthoringRule.CASE_ID),
        ],
    )
    @pytest.mark.parametrize("field", ["task", "rubric", "candidate_a", "candidate_b"])
    def test_a_forbidden_word_in_any_text(self, text: str, rule: AuthoringRule, field: str) -> None:
        rows = good_rows()
        case_id, verdict, first, second = rows[2]
        assert verdict is Verdict.TIE
        rows[2] = (
            case_id,
            verdict,
            text if field == "candidate_a" else first,
            text if field == "candidate_b" else second,
        )
        bank = bank_of(
            rows,
            task=text if field == "task" else "Say something.",
            rubric=text if field == "rubric" else "Say it well.",
        )
        told = {(finding.rule, finding.where) for finding in check_bank(bank)}
        places = bank.case_ids if field in {"task", "rubric"} else (case_id,)
        assert told == {(rule, f"{place}/{field}") for place in places}

    @given(
        st.sampled_from(
            ["a win", "b win", "tie", "off", "full", "reference", "oracle", "control", "placebo"]
        ),
        st.lists(st.booleans(), min_size=9, max_size=9),
        st.sampled_from([" ", "\n", "(", '"', "-", "/", ".", ",", "`"]),
        st.sampled_from([" ", "\n", ")", '"', "-", "/", ".", ",", "`"]),
    )
    def test_a_word_is_found_in_any_case_and_between_any_marks(
        self, word: str, upper: list[bool], before: str, after: str
    ) -> None:
        spelled = "".join(c.upper() if up else c for c, up in zip(word, upper, strict=False))
        assert len(check_bank(bank_of(good_rows(), task=f"so{before}{spelled}{after}it"))) == 24

    @pytest.mark.parametrize(
        "text",
        [
            "a window, a winter, B winds",
            "ties, tied, untied, properties, tie_count",
            "offset, backoff, office, offer",
            "fully, fullness, full_name",
            "references, controls, controller, S3, M5, s0, m1",
            "items[start:end], items[lo:hi-1], main.py:42, http://x.org/y, key: value",
            "std::move, ns::some-thing, 12:30, T:int, user@host:some-path/file",
            "implementation, plan-b, review-1, plan-001",
        ],
    )
    def test_ordinary_text_does_not_trip(self, text: str) -> None:
        assert check_bank(bank_of(good_rows(), task=text)) == []

    def test_every_place_of_a_word_is_told_with_its_position(self) -> None:
        findings = check_bank(bank_of(good_rows()[:1], task="off and off"))
        told = [finding.sentence for finding in findings if finding.rule is AuthoringRule.ARM_WORD]
        assert told == [
            "'off' at character 0 is the name of an arm; choose another word.",
            "'off' at character 8 is the name of an arm; choose another word.",
        ]


def test_good_rows_are_what_they_say() -> None:
    rows = good_rows()
    assert len(rows) == 24
    assert {family_of(row[0]) for row in rows} == set(TaskFamily)
    assert [sum(row[1] is verdict for row in rows) for verdict in Verdict] == [8, 8, 8]


def test_a_finding_is_a_value() -> None:
    finding = check_bank(bank_of(good_rows()[:1]))[0]
    with pytest.raises(dataclasses.FrozenInstanceError):
        finding.where = ""  # type: ignore[misc] # the point of the test
