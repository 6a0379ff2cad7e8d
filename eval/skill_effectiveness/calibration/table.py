"""Scoring a table of verdicts that were given elsewhere (calibration.md, section 8).

The pairs have known labels and were shown in both orders. The score describes the table: whatever its numbers
are, it makes no calibration, no licence and no gate.

`decision_ab` is what the judge said when A was shown first, `decision_ba` when B was, both in the judge's own
words: `A>B` prefers the text shown first, which in the second order is the original B. The rule is that of
JudgeBench (Tan et al., arXiv 2410.12784).
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from skill_effectiveness.calibration.figures import Estimate, Share
from skill_effectiveness.calibration.intervals import wilson
from skill_effectiveness.protocol.document import FrozenModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_COUNT: Final = re.compile(r"[0-9]{1,15}")
_REQUIRED: Final = ("pair_id", "label", "decision_ab", "decision_ba")
_LENGTHS: Final = ("chars_a", "chars_b")
_KNOWN: Final = (*_REQUIRED, "category", *_LENGTHS)


class TableCode(StrEnum):
    """Why a table of verdicts cannot be scored."""

    NOT_UTF8 = "not_utf8"
    BOM = "bom"
    NUL = "nul"
    CSV_SYNTAX = "csv_syntax"
    NO_ROWS = "no_rows"
    MISSING_COLUMN = "missing_column"
    REPEATED_COLUMN = "repeated_column"
    BLANK_ROW = "blank_row"
    WRONG_WIDTH = "wrong_width"
    EMPTY_VALUE = "empty_value"
    REPEATED_PAIR = "repeated_pair"
    UNKNOWN_WORD = "unknown_word"
    NOT_A_COUNT = "not_a_count"


_SENTENCES: Final = {
    TableCode.NOT_UTF8: "is not UTF-8 text; save the table as UTF-8",
    TableCode.BOM: "begins with a byte order mark; save the table as UTF-8 without one",
    TableCode.NUL: "holds a NUL character; save the table as plain text",
    TableCode.CSV_SYNTAX: "is not well-formed CSV; check the quotes",
    TableCode.NO_ROWS: "has no pair; add one row per pair below the column names",
    TableCode.MISSING_COLUMN: "has no such column; add it to the first row",
    TableCode.REPEATED_COLUMN: "names this column twice; keep one",
    TableCode.BLANK_ROW: "is blank; remove it",
    TableCode.WRONG_WIDTH: "has another number of fields than the first row; quote fields that hold a comma",
    TableCode.EMPTY_VALUE: "is empty; give it a value or leave the column out",
    TableCode.REPEATED_PAIR: "repeats the pair_id of an earlier row; keep one row per pair",
    TableCode.UNKNOWN_WORD: "is none of the words of this column: A>B, B>A, and for decisions A=B or empty",
    TableCode.NOT_A_COUNT: "is not a whole number of characters from 0; write digits only",
}


@dataclass(frozen=True, slots=True)
class TableFault:
    """One thing that is wrong with a table.

    Attributes:
        code: what is wrong.
        row: 1 for the column names, counted on in records; None for the table as a whole.
        column: name of a column this page knows, None where no single column is meant.
    """

    code: TableCode
    row: int | None
    column: str | None

    @property
    def sentence(self) -> str:
        """What is wrong, where, and what to do; quotes nothing from the table."""
        place = "the table" if self.row is None else f"row {self.row}"
        return f"{place}{', column ' + self.column if self.column else ''}: {_SENTENCES[self.code]}"


class TableError(Exception):
    """A table cannot be scored; `faults` holds everything found, at least one."""

    def __init__(self, first: TableFault, *others: TableFault) -> None:
        self.faults: tuple[TableFault, ...] = (first, *others)
        super().__init__("; ".join(fault.sentence for fault in self.faults))

    @property
    def code(self) -> TableCode:
        """The code of the first fault."""
        return self.faults[0].code


class Preference(StrEnum):
    """Which of two texts is better: the label, or what a judge said of the first (A) and second (B) shown."""

    A = "A>B"
    B = "B>A"
    NEITHER = "A=B"


_OTHER_WAY: Final = {
    Preference.A: Preference.B,
    Preference.B: Preference.A,
    Preference.NEITHER: Preference.NEITHER,
}


class Lengths(NamedTuple):
    """Characters of the two texts of a pair."""

    a: int
    b: int


@dataclass(frozen=True, slots=True)
class TableRow:
    """One pair with its label and both decisions as said; a decision of None is a missing verdict.

    Raises:
        ValueError: a label that prefers neither text, or a negative length.
    """

    pair_id: str
    label: Preference
    decision_ab: Preference | None
    decision_ba: Preference | None
    category: str | None = None
    lengths: Lengths | None = None

    def __post_init__(self) -> None:
        if self.label is Preference.NEITHER:
            raise ValueError("a label prefers one of the two texts")
        if self.lengths is not None and min(self.lengths) < 0:
            raise ValueError("a text has no negative length")

    @property
    def decisions(self) -> tuple[Preference | None, Preference | None]:
        """Both decisions about the original A and B."""
        return self.decision_ab, None if self.decision_ba is None else _OTHER_WAY[self.decision_ba]


class GroupScore(FrozenModel):
    """What one category, or the whole table, comes to.

    Attributes:
        category: None for the whole table.
        accuracy: correct ÷ pairs with its 95 % Wilson interval.
        flips: pairs whose decision changes between the orders; a missing verdict beside a given one is a
            change.
        right_both: pairs that agree with the label in both orders.
        missing_verdicts: of two per pair.
        first_shown: untied verdicts for the text shown first.
        longer: untied verdicts for the longer text, pairs of equal length left out; None without lengths.
    """

    category: str | None
    pairs: int
    correct: int
    accuracy: Estimate
    flips: int
    right_both: int
    missing_verdicts: int
    first_shown: Share
    longer: Share | None


class TableScore(FrozenModel):
    """Scores per category, in the order of first appearance, and over all pairs."""

    categories: tuple[GroupScore, ...]
    overall: GroupScore


def read_table(data: bytes) -> tuple[TableRow, ...]:
    """Parse a CSV table (RFC 4180; LF or CRLF) with the columns of section 8, ignoring other columns.

    Raises:
        TableError: anything that keeps the table from being read, every fault with its row and column.
    """
    header, *body = _records(_text(data))
    columns, faults = _columns(header)
    lines: list[dict[str, str]] = []
    seen: set[str] = set()
    for number, record in enumerate(body, start=2):
        if not any(cell.strip() for cell in record):
            faults.append(TableFault(TableCode.BLANK_ROW, number, None))
            continue
        if len(record) != len(header):
            faults.append(TableFault(TableCode.WRONG_WIDTH, number, None))
            continue
        cells = {name: record[position] for name, position in columns.items()}
        faults.extend(
            TableFault(code, number, name)
            for name, text in cells.items()
            for code in _cell_faults(name, text)
        )
        faults.extend(_repeat(cells.get("pair_id"), seen, number))
        lines.append(cells)
    if faults:
        raise TableError(*faults)
    return tuple(_row(cells) for cells in lines)


def score_table(rows: Iterable[TableRow]) -> TableScore:
    """Score every category and the whole table.

    Each order gives +1 for agreeing with the label and -1 for contradicting it; a pair is correct above 0.
    Lengths count only when every row has them.

    Raises:
        TableError: no row, or a `pair_id` twice; rows are counted from 2, as below a line of column names.
    """
    table = tuple(rows)
    if not table:
        raise TableError(TableFault(TableCode.NO_ROWS, None, None))
    seen: set[str] = set()
    faults = [
        fault for number, row in enumerate(table, start=2) for fault in _repeat(row.pair_id, seen, number)
    ]
    if faults:
        raise TableError(*faults)
    measured = all(row.lengths is not None for row in table)
    groups: dict[str, list[TableRow]] = {}
    for row in table:
        if row.category is not None:
            groups.setdefault(row.category, []).append(row)
    return TableScore(
        categories=tuple(_score(group, category, measured=measured) for category, group in groups.items()),
        overall=_score(table, None, measured=measured),
    )


def _text(data: bytes) -> str:
    """The table as text, or one fault about the whole of it."""
    if data.startswith(codecs.BOM_UTF8):
        raise TableError(TableFault(TableCode.BOM, None, None))
    if b"\0" in data:
        raise TableError(TableFault(TableCode.NUL, None, None))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise TableError(TableFault(TableCode.NOT_UTF8, None, None)) from None


def _records(text: str) -> list[list[str]]:
    """All records, the column names first, at least two."""
    # newline="" keeps line ends inside quoted fields and splits at CR and LF only: U+2028, VT and FF are
    # data.
    # A long text in a column that nobody reads is no fault of the table.
    csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    records: list[list[str]] = []
    try:
        for record in reader:
            records.append(record)  # noqa: PERF402 - the row of a fault is known by the records before it
    except csv.Error:
        raise TableError(TableFault(TableCode.CSV_SYNTAX, len(records) + 1, None)) from None
    if len(records) <= 1:
        raise TableError(TableFault(TableCode.NO_ROWS, None, None))
    return records


def _columns(header: Sequence[str]) -> tuple[dict[str, int], list[TableFault]]:
    """Where each known column stands, and what is wrong with the set of columns."""
    present = Counter(name for name in header if name in _KNOWN)
    wanted = {*_REQUIRED, *(_LENGTHS if any(name in present for name in _LENGTHS) else ())}
    missing = [
        TableFault(TableCode.MISSING_COLUMN, 1, name) for name in _KNOWN if name in wanted - present.keys()
    ]
    repeated = [TableFault(TableCode.REPEATED_COLUMN, 1, name) for name in _KNOWN if present[name] > 1]
    return {name: header.index(name) for name in _KNOWN if name in present}, missing + repeated


def _cell_faults(column: str, text: str) -> Iterator[TableCode]:
    """What is wrong with one cell of a known column, apart from repetition."""
    if column in ("pair_id", "category"):
        if not text:
            yield TableCode.EMPTY_VALUE
    elif column in _LENGTHS:
        if not _COUNT.fullmatch(text):
            yield TableCode.NOT_A_COUNT
    elif column == "label":
        if text not in (Preference.A, Preference.B):
            yield TableCode.UNKNOWN_WORD
    elif text and text not in tuple(Preference):
        yield TableCode.UNKNOWN_WORD


def _repeat(pair_id: str | None, seen: set[str], number: int) -> Iterator[TableFault]:
    """A fault if the id occurred before; remembers it."""
    if pair_id in seen:
        yield TableFault(TableCode.REPEATED_PAIR, number, "pair_id")
    elif pair_id:
        seen.add(pair_id)


def _row(cells: dict[str, str]) -> TableRow:
    """A row of cells without faults."""
    measured = _LENGTHS[0] in cells
    return TableRow(
        pair_id=cells["pair_id"],
        label=Preference(cells["label"]),
        decision_ab=Preference(cells["decision_ab"]) if cells["decision_ab"] else None,
        decision_ba=Preference(cells["decision_ba"]) if cells["decision_ba"] else None,
        category=cells.get("category"),
        lengths=Lengths(int(cells["chars_a"]), int(cells["chars_b"])) if measured else None,
    )


def _score(rows: Sequence[TableRow], category: str | None, *, measured: bool) -> GroupScore:
    """Count one group of at least one row."""
    correct = sum(_points(row) > 0 for row in rows)
    first = Counter(said for row in rows for said in (row.decision_ab, row.decision_ba))
    return GroupScore(
        category=category,
        pairs=len(rows),
        correct=correct,
        accuracy=Estimate(value=correct / len(rows), interval=wilson(correct, len(rows))),
        flips=sum(row.decisions[0] is not row.decisions[1] for row in rows),
        right_both=sum(row.decisions == (row.label, row.label) for row in rows),
        missing_verdicts=first[None],
        first_shown=Share.of(first[Preference.A], first[Preference.A] + first[Preference.B]),
        longer=_longer(rows) if measured else None,
    )


def _points(row: TableRow) -> int:
    """+1 per order that agrees with the label, -1 per order that contradicts it; ties and gaps count 0."""
    agreeing = row.decisions.count(row.label)
    return agreeing - row.decisions.count(_OTHER_WAY[row.label])


def _longer(rows: Iterable[TableRow]) -> Share:
    """Untied verdicts for the longer text."""
    part = whole = 0
    for row in rows:
        if row.lengths is None or row.lengths.a == row.lengths.b:
            continue
        longer = Preference.A if row.lengths.a > row.lengths.b else Preference.B
        part += row.decisions.count(longer)
        whole += row.decisions.count(longer) + row.decisions.count(_OTHER_WAY[longer])
    return Share.of(part, whole)
