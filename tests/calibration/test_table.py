from __future__ import annotations

import contextlib
import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.calibration.intervals import wilson
from skill_effectiveness.calibration.table import (
    Lengths,
    Preference,
    TableCode,
    TableError,
    TableRow,
    read_table,
    score_table,
)

JUDGEBENCH = Path(__file__).parent.parent / "data" / "judgebench-o1-mini-verdicts.csv"
HEADER = "pair_id,label,decision_ab,decision_ba"
A, B, NEITHER = Preference

PREFERENCES = st.sampled_from(list(Preference))
ROWS = st.lists(
    st.builds(
        TableRow,
        pair_id=st.uuids().map(str),
        label=st.sampled_from([A, B]),
        decision_ab=st.none() | PREFERENCES,
        decision_ba=st.none() | PREFERENCES,
        category=st.sampled_from(["x", "y"]),
        lengths=st.builds(Lengths, st.integers(0, 3), st.integers(0, 3)),
    ),
    min_size=1,
    max_size=12,
    unique_by=lambda row: row.pair_id,
)


def table(*lines: str, header: str = HEADER) -> bytes:
    return "\n".join([header, *lines, ""]).encode()


def faults(data: bytes) -> list[tuple[TableCode, int | None, str | None]]:
    with pytest.raises(TableError) as caught:
        read_table(data)
    return [(fault.code, fault.row, fault.column) for fault in caught.value.faults]


def row(decision_ab: str, decision_ba: str, label: str = "A>B") -> TableRow:
    """One pair; an empty decision is a missing verdict."""
    ab, ba = (Preference(word) if word else None for word in (decision_ab, decision_ba))
    return TableRow(f"{decision_ab}/{decision_ba}/{label}", Preference(label), ab, ba)


class TestJudgeBench:
    SCORE = score_table(read_table(JUDGEBENCH.read_bytes()))

    def test_published_accuracies(self) -> None:
        """R46: percent correct per category and over all, as published, to the last digit."""
        found = {
            group.category: (group.pairs, round(100 * group.accuracy.value, 2))
            for group in self.SCORE.categories
        }
        assert found == {
            "knowledge": (154, 58.44),
            "reasoning": (98, 62.24),
            "math": (56, 82.14),
            "coding": (42, 78.57),
        }
        assert (self.SCORE.overall.pairs, self.SCORE.overall.category) == (350, None)
        assert round(100 * self.SCORE.overall.accuracy.value, 2) == 65.71

    def test_counts(self) -> None:
        """R46: flips, both orders right, missing verdicts, first-shown and longer text."""
        overall = self.SCORE.overall
        assert (overall.flips, overall.right_both, overall.missing_verdicts) == (110, 203, 0)
        assert (overall.first_shown.part, overall.first_shown.whole) == (367, 656)
        assert overall.longer is not None
        assert (overall.longer.part, overall.longer.whole) == (301, 656)

    def test_categories_add_up(self) -> None:
        """R46: nothing is lost between the groups and the whole."""
        groups = self.SCORE.categories
        assert sum(group.correct for group in groups) == self.SCORE.overall.correct == 230
        assert sum(group.flips for group in groups) == 110

    def test_interval_is_wilson_over_pairs(self) -> None:
        assert self.SCORE.overall.accuracy.interval == wilson(230, 350)


class TestScoring:
    @pytest.mark.parametrize(
        ("decision_ab", "decision_ba", "correct", "flip", "both"),
        [
            ("A>B", "B>A", 1, 0, 1),
            ("A>B", "A>B", 0, 1, 0),
            ("B>A", "A>B", 0, 0, 0),
            ("B>A", "B>A", 0, 1, 0),
            ("A>B", "A=B", 1, 1, 0),
            ("A>B", "", 1, 1, 0),
            ("", "B>A", 1, 1, 0),
            ("A=B", "A=B", 0, 0, 0),
            ("A=B", "", 0, 1, 0),
            ("B>A", "", 0, 1, 0),
            ("", "", 0, 0, 0),
        ],
    )
    def test_one_pair_whose_a_is_better(
        self, decision_ab: str, decision_ba: str, correct: int, flip: int, both: int
    ) -> None:
        """R46: the second decision is as said, so `B>A` there prefers the original A."""
        found = score_table([row(decision_ab, decision_ba)]).overall
        assert (found.correct, found.flips, found.right_both) == (correct, flip, both)
        assert found.missing_verdicts == (not decision_ab) + (not decision_ba)

    def test_first_shown_counts_what_was_said(self) -> None:
        """R5: three of five untied verdicts prefer the text shown first."""
        found = score_table([row("A>B", "A>B"), row("B>A", "A>B"), row("A=B", "B>A")]).overall
        assert (found.first_shown.part, found.first_shown.whole, found.first_shown.value) == (3, 5, 0.6)

    def test_longer_leaves_equal_lengths_out(self) -> None:
        rows = [
            TableRow("1", A, A, B, lengths=Lengths(9, 1)),
            TableRow("2", A, B, NEITHER, lengths=Lengths(9, 1)),
            TableRow("3", A, A, B, lengths=Lengths(5, 5)),
            TableRow("4", A, A, None, lengths=Lengths(1, 9)),
        ]
        longer = score_table(rows).overall.longer
        assert longer is not None
        assert (longer.part, longer.whole) == (2, 4)

    def test_without_lengths_or_categories(self) -> None:
        score = score_table([row("A>B", "B>A")])
        assert (score.categories, score.overall.longer) == ((), None)

    def test_lengths_of_some_rows_only_do_not_count(self) -> None:
        rows = [TableRow("1", A, A, B, lengths=Lengths(9, 1)), TableRow("2", A, A, B)]
        assert score_table(rows).overall.longer is None

    def test_no_untied_verdict_has_no_share(self) -> None:
        assert score_table([row("A=B", "")]).overall.first_shown.value is None

    def test_a_table_without_pairs(self) -> None:
        with pytest.raises(TableError) as caught:
            score_table([])
        assert caught.value.code is TableCode.NO_ROWS

    def test_a_pair_twice(self) -> None:
        with pytest.raises(TableError) as caught:
            score_table([row("A>B", "A>B")] * 3)
        assert [(fault.code, fault.row) for fault in caught.value.faults] == [
            (TableCode.REPEATED_PAIR, 3),
            (TableCode.REPEATED_PAIR, 4),
        ]

    @given(ROWS)
    def test_exchanging_the_two_texts_changes_nothing(self, rows: list[TableRow]) -> None:
        """The pair named the other way round: label and orders change places, what was said stays said."""
        other = {A: B, B: A}
        turned = [
            TableRow(
                r.pair_id,
                other[r.label],
                r.decision_ba,
                r.decision_ab,
                r.category,
                r.lengths and Lengths(r.lengths.b, r.lengths.a),
            )
            for r in rows
        ]
        assert score_table(turned) == score_table(rows)

    @given(ROWS)
    def test_counts_stay_within_their_wholes(self, rows: list[TableRow]) -> None:
        found = score_table(rows).overall
        assert found.right_both <= found.correct <= found.pairs == len(rows)
        assert found.accuracy.interval.low <= found.accuracy.value + 1e-12
        assert found.first_shown.whole + found.missing_verdicts <= 2 * found.pairs

    @given(ROWS)
    def test_written_as_csv_and_read_back(self, rows: list[TableRow]) -> None:
        out = io.StringIO(newline="")
        writer = csv.writer(out)
        writer.writerow(
            ["pair_id", "note", "category", "label", "decision_ab", "decision_ba", "chars_a", "chars_b"]
        )
        for r in rows:
            assert r.lengths is not None
            writer.writerow(
                [r.pair_id, 'a "note",\r\n', r.category, r.label, r.decision_ab, r.decision_ba, *r.lengths]
            )
        assert read_table(out.getvalue().encode()) == tuple(rows)


class TestReading:
    def test_smallest_table(self) -> None:
        assert read_table(table("p1,A>B,A=B,")) == (TableRow("p1", A, NEITHER, None),)

    @pytest.mark.parametrize("end", ["\n", "\r\n", ""])
    def test_line_ends(self, end: str) -> None:
        text = f"{HEADER}{end or chr(10)}p1,A>B,A>B,B>A{end}"
        assert len(read_table(text.encode())) == 1

    def test_unusual_line_separators_are_data(self) -> None:
        """A separator that only some readers split at stays inside its cell, quoted or not."""
        data = table('"p\n1",A>B,A>B,B>A', "p\u20282\x0b\x0c\x85,B>A,A>B,B>A")
        assert [r.pair_id for r in read_table(data)] == ["p\n1", "p\u20282\x0b\x0c\x85"]

    def test_other_columns_are_ignored_wherever_they_stand(self) -> None:
        data = table("x,p1,A>B,,A>B,B>A,y", header="note,pair_id,label,Category,decision_ab,decision_ba,note")
        assert read_table(data) == (TableRow("p1", A, A, B),)


class TestFaults:
    """R46: what cannot be read is told with row and column, all of it at once."""

    def test_every_fault_of_a_table_together(self) -> None:
        header = f"{HEADER},category,chars_a,chars_b"
        data = table(
            "p1,A>B,A>B,B>A,k,1,2",
            "p1,A=B,A,B>A,k,1,2",
            ",A>B,A>B,tie,,-1,2.0",
            "p3,A>B,A>B",
            "p4,a>b,A>B,B>A,k, 1,",
            header=header,
        )
        assert faults(data) == [
            (TableCode.UNKNOWN_WORD, 3, "label"),
            (TableCode.UNKNOWN_WORD, 3, "decision_ab"),
            (TableCode.REPEATED_PAIR, 3, "pair_id"),
            (TableCode.EMPTY_VALUE, 4, "pair_id"),
            (TableCode.UNKNOWN_WORD, 4, "decision_ba"),
            (TableCode.EMPTY_VALUE, 4, "category"),
            (TableCode.NOT_A_COUNT, 4, "chars_a"),
            (TableCode.NOT_A_COUNT, 4, "chars_b"),
            (TableCode.WRONG_WIDTH, 5, None),
            (TableCode.UNKNOWN_WORD, 6, "label"),
            (TableCode.NOT_A_COUNT, 6, "chars_a"),
            (TableCode.NOT_A_COUNT, 6, "chars_b"),
        ]

    def test_missing_and_repeated_columns_beside_faults_of_cells(self) -> None:
        data = table("p1,x,A>B,A>B,1", header="pair_id,label,decision_ab,decision_ab,chars_a")
        assert faults(data) == [
            (TableCode.MISSING_COLUMN, 1, "decision_ba"),
            (TableCode.MISSING_COLUMN, 1, "chars_b"),
            (TableCode.REPEATED_COLUMN, 1, "decision_ab"),
            (TableCode.UNKNOWN_WORD, 2, "label"),
        ]

    @pytest.mark.parametrize("column", HEADER.split(","))
    def test_each_required_column(self, column: str) -> None:
        header = HEADER.replace(column, "other")
        assert (TableCode.MISSING_COLUMN, 1, column) in faults(table("p1,A>B,A>B,B>A", header=header))

    @pytest.mark.parametrize("word", ["A>B ", "a>b", "A<B", "A", "tie", "A win", "B>A,", "\u0410>B"])
    def test_other_words(self, word: str) -> None:
        """F27: no folding, trimming or guessing."""
        assert faults(table(f'p1,A>B,"{word}",B>A')) == [(TableCode.UNKNOWN_WORD, 2, "decision_ab")]

    @pytest.mark.parametrize(
        "number", ["-1", "+1", "1.0", "1e3", "", " 1", "1_000", "\u0661", "0x1", "9" * 16]
    )
    def test_lengths_are_plain_digits(self, number: str) -> None:
        data = table(f"p1,A>B,A>B,B>A,{number},2", header=f"{HEADER},chars_a,chars_b")
        assert faults(data) == [(TableCode.NOT_A_COUNT, 2, "chars_a")]

    def test_rows_are_records_not_lines(self) -> None:
        assert faults(table('"p\n1",A>B,A>B,B>A', "p2,?,A>B,B>A")) == [(TableCode.UNKNOWN_WORD, 3, "label")]

    def test_a_long_text_in_a_column_that_is_ignored_is_no_fault(self) -> None:
        data = table("p1,A>B,A>B,B>A," + "x" * 200_000, header=f"{HEADER},answer")
        assert [row.pair_id for row in read_table(data)] == ["p1"]

    @pytest.mark.parametrize("blank", ["", "  ", ",,,", " ,\t,,", ",,,,,"])
    def test_a_blank_row_is_told_as_that(self, blank: str) -> None:
        """Spreadsheets and editors leave some; that a comma is to be quoted would help nobody."""
        data = table("p1,A>B,A>B,B>A", blank)
        assert faults(data) == [(TableCode.BLANK_ROW, 3, None)]
        with pytest.raises(TableError) as caught:
            read_table(data)
        assert str(caught.value) == "row 3: is blank; remove it"
        assert faults(table("p1,A>B,A>B,B>A", blank, "p2,?,A>B,B>A")) == [
            (TableCode.BLANK_ROW, 3, None),
            (TableCode.UNKNOWN_WORD, 4, "label"),
        ]

    @pytest.mark.parametrize(
        ("data", "code", "number"),
        [
            (b"", TableCode.NO_ROWS, None),
            (HEADER.encode(), TableCode.NO_ROWS, None),
            (b"\xef\xbb\xbf" + table("p1,A>B,A>B,B>A"), TableCode.BOM, None),
            (table("p1,A>B,A>B,B\x00A"), TableCode.NUL, None),
            (table("p1,A>B,A>B,B>A").decode().encode("utf-16-le"), TableCode.NUL, None),
            (table("p1,A>B,A>B,B>A") + b"\xff", TableCode.NOT_UTF8, None),
            (table("p1,A>B,A>B,B>A") + b"\xed\xa0\x80", TableCode.NOT_UTF8, None),
            (table("p1,A>B,A>B,B>A", '"p2,A>B'), TableCode.CSV_SYNTAX, 3),
            (table("p1,A>B,A>B,B>A", '"p2"x,A>B,A>B,A>B'), TableCode.CSV_SYNTAX, 3),
        ],
        ids=[
            "nothing",
            "names only",
            "bom",
            "nul",
            "utf-16",
            "latin",
            "surrogate",
            "open quote",
            "after quote",
        ],
    )
    def test_what_is_no_table_at_all(self, data: bytes, code: TableCode, number: int | None) -> None:
        assert faults(data) == [(code, number, None)]

    def test_sentences_name_the_place_and_quote_nothing(self) -> None:
        with pytest.raises(TableError) as caught:
            read_table(table("p1,secret,A>B,B>A"))
        assert str(caught.value).startswith("row 2, column label: is none of the words")
        assert "secret" not in str(caught.value)

    @given(st.binary())
    def test_any_bytes_are_read_or_refused(self, data: bytes) -> None:
        with contextlib.suppress(TableError):
            assert read_table(HEADER.encode() + b"\n" + data)

    def test_every_code_is_reached(self) -> None:
        found = {
            code
            for data in (
                b"",
                b"\xef\xbb\xbf",
                b"\x00",
                b"\xff",
                table('"'),
                table(
                    ",x,A>B,B>A,",
                    "p,A>B,A>B,A>B,1",
                    "p,A>B,A>B,A>B,1",
                    "p",
                    "",
                    header="pair_id,label,label,decision_ab,chars_a",
                ),
            )
            for code, _, _ in faults(data)
        }
        assert found == set(TableCode)


@pytest.mark.parametrize(("label", "lengths"), [(NEITHER, None), (A, Lengths(-1, 0))])
def test_a_row_that_cannot_be(label: Preference, lengths: Lengths | None) -> None:
    with pytest.raises(ValueError, match="text"):
        TableRow("p", label, A, A, None, lengths)
