"""The tables of a study: typed cells, two forms, one content."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.studies.tables import (
    COLUMNS,
    JudgementRow,
    Mark,
    PairRow,
    TableError,
    Tables,
    TrialRow,
)

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TRIAL = TrialRow._make([
    1, "slot-1", "t1", "implementation", "known-regression", "full", 1, 2, "completed", None, "value",
    1.0, True, 1.0, "yes", "unverified", False, "m-1", None, AT, AT + timedelta(microseconds=5), 1.5,
    10, None, 3, None, 4, 0.25, "sha256:aa", "sha256:bb", None,
])  # fmt: skip
PAIR = PairRow._make(["pair-1", "t1", 1, "slot-1", "slot-2", 1.0, None, None, "no_vote", 0, False])
VOTE = JudgementRow._make([
    "v1", "pair-1", 0, "simulated", "licence-1", True, "tie", "valid", "A win", "win", None, 10, 12,
    None, 0.5, 7, AT,
])  # fmt: skip
HELD = Tables((TRIAL,), (PAIR,), (VOTE,))

texts = st.text(st.characters(min_codepoint=32, exclude_categories=("Cs",)), min_size=1, max_size=8)
numbers = st.floats(allow_nan=False, allow_infinity=False)
wholes = st.integers(-(2**63), 2**63 - 1)
times = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1)).map(lambda at: at.replace(tzinfo=UTC))  # noqa: DTZ001 - made UTC in the next step
CELLS = {
    Mark.TEXT: texts,
    Mark.WHOLE: wholes,
    Mark.NUMBER: numbers,
    Mark.TRUTH: st.booleans(),
    Mark.TIME: times,
}


def rows(name: str, kind: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401 - any of three row types
    def cell(column: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401 - a column
        held = st.sampled_from(sorted(column.words)) if column.words else CELLS[column.mark]
        return st.none() | held if column.nullable else held

    one = st.tuples(*(cell(column) for column in COLUMNS[name])).map(lambda cells: kind(*cells))
    return st.lists(one, max_size=3).map(tuple)


tables = st.builds(
    Tables,
    trials=rows("trials", TrialRow),
    pairs=rows("pairs", PairRow),
    judgements=rows("judgements", JudgementRow),
)


class TestForms:
    def test_csv_to_the_byte(self) -> None:
        """S58: names in order, empty for null, times in UTC, LF at the end."""
        header, row, rest = HELD.csv("trials").decode().split("\n")
        assert header.split(",")[:10] == [
            "slot", "trial_id", "task_id", "family", "cohort", "arm", "sample", "attempts", "class", "detail",
        ]  # fmt: skip
        assert row == (
            "1,slot-1,t1,implementation,known-regression,full,1,2,completed,,value,1.0,true,1.0,yes,unverified,"
            "false,m-1,,2026-01-02T03:04:05Z,2026-01-02T03:04:05.000005Z,1.5,10,,3,,4,0.25,sha256:aa,sha256:bb,"
        )
        assert rest == ""

    @given(tables)
    def test_both_forms_hold_the_same(self, held: Tables) -> None:
        """S58: whatever the cells, CSV and Parquet read back to the rows they were written from."""
        for form in ("csv", "parquet"):
            written = {name: getattr(held, form)(name) for name in COLUMNS}
            assert Tables.of(**written, form=form) == held

    def test_types_as_another_reader_sees_them(self) -> None:
        """S58: pandas reads the Parquet file, and the csv module the other."""
        frame = pd.read_parquet(io.BytesIO(HELD.parquet("judgements")))
        assert str(frame.dtypes["position"]) == "int64"
        assert str(frame.dtypes["canary"]) == "bool"
        assert str(frame.dtypes["voted_at"]) == "datetime64[us, UTC]"
        assert frame.loc[0, "cost_units"] == 0.5
        found = list(csv.DictReader(io.StringIO(HELD.csv("pairs").decode())))
        assert found[0]["comparator_value"] == ""
        assert found[0]["safety"] == "false"

    def test_same_rows_same_bytes(self) -> None:
        """S57: nothing of the moment of writing gets in."""
        again = Tables((TRIAL,), (PAIR,), (VOTE,))
        for name in COLUMNS:
            assert HELD.csv(name) == again.csv(name)
            assert HELD.parquet(name) == again.parquet(name)
        assert pq.read_metadata(io.BytesIO(HELD.parquet("trials"))).num_rows == 1


class TestRefused:
    @pytest.mark.parametrize(
        ("field", "cell"),
        [
            ("slot", True),
            ("slot", 1.0),
            ("slot", 2**63),
            ("reward", 1),
            ("reward", float("nan")),
            ("value", float("inf")),
            ("passed", 1),
            ("arm", None),
            ("arm", ""),
            ("arm", "a\nb"),
            ("arm", "\ud800"),
            ("counted", "maybe"),
            ("started_at", AT.replace(tzinfo=None)),
            ("started_at", "2026-01-01T00:00:00Z"),
        ],
    )
    def test_cells(self, field: str, cell: object) -> None:
        """S58: the place is named, the cell is not."""
        with pytest.raises(TableError, match=rf"trials row 1, column {field}"):
            Tables((TRIAL._replace(**{field: cell}),))  # type: ignore[arg-type]

    def test_a_row_of_another_table(self) -> None:
        with pytest.raises(TableError, match="not a row of this table"):
            Tables((PAIR,))  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        "changed",
        [
            (b"slot,", b"slots,"),
            (b"\n1,slot-1", b"\n01,slot-1"),
            (b"\n1,slot-1", b"\n1.0,slot-1"),
            (b",1.0,true,", b",1.00,true,"),
            (b",1.0,true,", b",1e0,true,"),
            (b",true,", b",True,"),
            (b"03:04:05Z", b"03:04:05+00:00"),
            (b",sha256:bb,\n", b",sha256:bb\n"),
            (b"implementation", b"\xff"),
            (b"\n1,", b'\n"1,'),
            (b",value,", b",NaN,"),
        ],
    )
    def test_csv_from_outside(self, changed: tuple[bytes, bytes]) -> None:
        """S58: one spelling per cell, so that equal tables have equal bytes."""
        written = {name: HELD.csv(name) for name in COLUMNS}
        assert changed[0] in written["trials"]
        written["trials"] = written["trials"].replace(*changed, 1)
        with pytest.raises(TableError, match="trials"):
            Tables.of(**written, form="csv")

    @pytest.mark.parametrize("data", [b"", b"PAR1", HELD.parquet("pairs"), HELD.parquet("trials")[:-9]])
    def test_parquet_from_outside(self, data: bytes) -> None:
        """S58: another file, or another table."""
        written = {name: HELD.parquet(name) for name in COLUMNS} | {"trials": data}
        with pytest.raises(TableError, match="trials"):
            Tables.of(**written, form="parquet")


def test_rows_and_columns_name_the_same() -> None:
    """`class` is a word of the language, so the row calls it `end_class`."""
    for name, kind in (("trials", TrialRow), ("pairs", PairRow), ("judgements", JudgementRow)):
        fields = ["class" if field == "end_class" else field for field in kind._fields]
        assert fields == [column.name for column in COLUMNS[name]]
