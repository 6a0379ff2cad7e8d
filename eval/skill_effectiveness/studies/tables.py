"""The three tables of a study, from which everything that is said about it follows (studies.md section 7).

They hold no text of an agent. As CSV they are UTF-8 with LF line ends, quoted as RFC 4180 has it, an empty
field being null; as Parquet they hold the same values. Both are written from typed rows and read back into
them, so that a table from outside is a table of this form or an error with its place.

| mark | in CSV | in Parquet |
|---|---|---|
| text | as it is, never empty | string |
| whole | decimal digits | int64 |
| number | shortest spelling that reads back the same | float64 |
| truth | `true`, `false` | bool |
| time | RFC 3339 in UTC, `Z` | timestamp in microseconds, UTC |
"""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Mark(StrEnum):
    """What a column holds."""

    TEXT = "text"
    WHOLE = "whole"
    NUMBER = "number"
    TRUTH = "truth"
    TIME = "time"


R = TypeVar("R", "TrialRow", "PairRow", "JudgementRow")
Cell = str | int | float | bool | datetime | None


class Column(NamedTuple):
    """One column.

    Attributes:
        name: as in the header.
        mark: what its cells are.
        nullable: whether a cell may be null.
        words: the closed set of its texts; None where any text will do.
    """

    name: str
    mark: Mark
    nullable: bool = False
    words: frozenset[str] | None = None


class TrialRow(NamedTuple):
    """One planned slot and what became of it."""

    slot: int
    trial_id: str
    task_id: str
    family: str
    cohort: str
    arm: str
    sample: int
    attempts: int
    end_class: str
    detail: str | None
    counted: str
    reward: float | None
    passed: bool | None
    value: float | None
    exposed: str
    invoked: str
    safety_failure: bool | None
    model_requested: str
    model_reported: str | None
    started_at: datetime | None
    ended_at: datetime | None
    wall_seconds: float | None
    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    tool_calls: int | None
    cost_units: float | None
    grade_hash: str | None
    trial_fingerprint: str
    completion_binding_hash: str | None


class PairRow(NamedTuple):
    """Two arms of one task and sample, and what the reviewers preferred."""

    pair_id: str
    task_id: str
    sample: int
    treatment: str
    comparator: str
    treatment_value: float | None
    comparator_value: float | None
    difference: float | None
    preference: str
    votes: int
    safety: bool


class JudgementRow(NamedTuple):
    """One vote, or one canary.

    `position` is 0 where the treatment was shown as A and 1 where it was shown as B.
    """

    vote_id: str
    pair_id: str
    position: int
    reviewer: str
    licence_id: str
    canary: bool
    truth: str | None
    state: str
    verdict: str | None
    for_treatment: str | None
    guess: str | None
    chars_a: int
    chars_b: int
    tokens: int | None
    cost_units: float | None
    latency_ms: int | None
    voted_at: datetime


def _words(*words: str) -> frozenset[str]:
    return frozenset(words)


_VERDICTS: Final = _words("A win", "B win", "tie")
_RESULTS: Final = ("win", "tie", "loss")

COLUMNS: Final[dict[str, tuple[Column, ...]]] = {
    "trials": (
        Column("slot", Mark.WHOLE),
        Column("trial_id", Mark.TEXT),
        Column("task_id", Mark.TEXT),
        Column("family", Mark.TEXT),
        Column("cohort", Mark.TEXT),
        Column("arm", Mark.TEXT),
        Column("sample", Mark.WHOLE),
        Column("attempts", Mark.WHOLE),
        Column("class", Mark.TEXT),
        Column("detail", Mark.TEXT, nullable=True),
        Column("counted", Mark.TEXT, words=_words("value", "failure", "missing")),
        Column("reward", Mark.NUMBER, nullable=True),
        Column("passed", Mark.TRUTH, nullable=True),
        Column("value", Mark.NUMBER, nullable=True),
        Column("exposed", Mark.TEXT, words=_words("yes", "no", "unverified")),
        Column("invoked", Mark.TEXT, words=_words("yes", "no", "unverified")),
        Column("safety_failure", Mark.TRUTH, nullable=True),
        Column("model_requested", Mark.TEXT),
        Column("model_reported", Mark.TEXT, nullable=True),
        Column("started_at", Mark.TIME, nullable=True),
        Column("ended_at", Mark.TIME, nullable=True),
        Column("wall_seconds", Mark.NUMBER, nullable=True),
        Column("input_tokens", Mark.WHOLE, nullable=True),
        Column("cached_tokens", Mark.WHOLE, nullable=True),
        Column("output_tokens", Mark.WHOLE, nullable=True),
        Column("reasoning_tokens", Mark.WHOLE, nullable=True),
        Column("tool_calls", Mark.WHOLE, nullable=True),
        Column("cost_units", Mark.NUMBER, nullable=True),
        Column("grade_hash", Mark.TEXT, nullable=True),
        Column("trial_fingerprint", Mark.TEXT),
        Column("completion_binding_hash", Mark.TEXT, nullable=True),
    ),
    "pairs": (
        Column("pair_id", Mark.TEXT),
        Column("task_id", Mark.TEXT),
        Column("sample", Mark.WHOLE),
        Column("treatment", Mark.TEXT),
        Column("comparator", Mark.TEXT),
        Column("treatment_value", Mark.NUMBER, nullable=True),
        Column("comparator_value", Mark.NUMBER, nullable=True),
        Column("difference", Mark.NUMBER, nullable=True),
        Column("preference", Mark.TEXT, words=_words(*_RESULTS, "inconsistent", "no_vote")),
        Column("votes", Mark.WHOLE),
        Column("safety", Mark.TRUTH),
    ),
    "judgements": (
        Column("vote_id", Mark.TEXT),
        Column("pair_id", Mark.TEXT),
        Column("position", Mark.WHOLE),
        Column("reviewer", Mark.TEXT),
        Column("licence_id", Mark.TEXT),
        Column("canary", Mark.TRUTH),
        Column("truth", Mark.TEXT, nullable=True, words=_VERDICTS),
        Column(
            "state",
            Mark.TEXT,
            words=_words("valid", "no_verdict", "invalid", "refused", "provider_error", "void"),
        ),
        Column("verdict", Mark.TEXT, nullable=True, words=_VERDICTS),
        Column("for_treatment", Mark.TEXT, nullable=True, words=_words(*_RESULTS)),
        Column("guess", Mark.TEXT, nullable=True, words=_words("A", "B", "unsure")),
        Column("chars_a", Mark.WHOLE),
        Column("chars_b", Mark.WHOLE),
        Column("tokens", Mark.WHOLE, nullable=True),
        Column("cost_units", Mark.NUMBER, nullable=True),
        Column("latency_ms", Mark.WHOLE, nullable=True),
        Column("voted_at", Mark.TIME),
    ),
}
"""Every table with its columns in order."""

_ROWS: Final[dict[str, type[TrialRow | PairRow | JudgementRow]]] = {
    "trials": TrialRow,
    "pairs": PairRow,
    "judgements": JudgementRow,
}
_ARROW: Final = {
    Mark.TEXT: pa.string(),
    Mark.WHOLE: pa.int64(),
    Mark.NUMBER: pa.float64(),
    Mark.TRUTH: pa.bool_(),
    Mark.TIME: pa.timestamp("us", tz="UTC"),
}
_TYPES: Final[dict[Mark, type]] = {
    Mark.TEXT: str,
    Mark.WHOLE: int,
    Mark.NUMBER: float,
    Mark.TRUTH: bool,
    Mark.TIME: datetime,
}
_WHOLE: Final = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_LEAST, _GREATEST = -(2**63), 2**63 - 1
_TRUTHS: Final = {"true": True, "false": False}
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z")


class TableError(ValueError):
    """A table is not of its form; the text names table, row and column, and no value."""


@dataclass(frozen=True, slots=True)
class Tables:
    """All three, each checked cell by cell when the object is made.

    Raises:
        TableError: a cell that its column does not allow.
    """

    trials: tuple[TrialRow, ...]
    pairs: tuple[PairRow, ...] = ()
    judgements: tuple[JudgementRow, ...] = ()

    def __post_init__(self) -> None:
        for name in COLUMNS:
            for number, row in enumerate(self.rows(name), start=1):
                _check(name, number, row)

    def rows(self, name: str) -> Sequence[tuple[Cell, ...]]:
        """The rows of the table of that name."""
        return cast("Sequence[tuple[Cell, ...]]", getattr(self, name))

    def csv(self, name: str) -> bytes:
        """One table as CSV."""
        out = io.StringIO(newline="")
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([column.name for column in COLUMNS[name]])
        writer.writerows([_spelt(cell) for cell in row] for row in self.rows(name))
        return out.getvalue().encode()

    def parquet(self, name: str) -> bytes:
        """One table as Parquet."""
        columns = COLUMNS[name]
        schema = pa.schema([pa.field(c.name, _ARROW[c.mark], nullable=c.nullable) for c in columns])
        cells: list[list[Cell]] = [[row[k] for row in self.rows(name)] for k in range(len(columns))]
        arrays = [pa.array(held, type=field.type) for held, field in zip(cells, schema, strict=True)]
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_arrays(arrays, schema=schema), sink, compression="zstd")
        return cast("bytes", sink.getvalue().to_pybytes())

    @classmethod
    def of(cls, *, trials: bytes, pairs: bytes, judgements: bytes, form: str) -> Tables:
        """Read all three back.

        Args:
            trials: bytes of that table.
            pairs: bytes of that table.
            judgements: bytes of that table.
            form: `csv` or `parquet`.

        Raises:
            TableError: not of the form, with the first fault's place.
        """
        read = {"csv": _read_csv, "parquet": _read_parquet}[form]
        return cls(
            trials=_made(TrialRow, read("trials", trials)),
            pairs=_made(PairRow, read("pairs", pairs)),
            judgements=_made(JudgementRow, read("judgements", judgements)),
        )


def _made(kind: type[R], rows: Iterable[Sequence[Cell]]) -> tuple[R, ...]:
    return tuple(cast("Any", kind)(*row) for row in rows)


def _check(name: str, number: int, row: tuple[Cell, ...]) -> None:
    columns = COLUMNS[name]
    if not isinstance(row, _ROWS[name]):
        raise TableError(f"{name} row {number}: not a row of this table")
    for column, cell in zip(columns, row, strict=True):
        if reason := _refused(column, cell):
            raise TableError(f"{name} row {number}, column {column.name}: {reason}")


def _refused(column: Column, cell: Cell) -> str | None:
    if cell is None:
        return None if column.nullable else "null where a value is needed"
    if type(cell) is not _TYPES[column.mark]:
        return f"not of the kind {column.mark}"
    if column.words is not None and cell not in column.words:
        return "not one of its words"
    return _REFUSALS[column.mark](cell)


def _refused_text(cell: Cell) -> str | None:
    text = cast("str", cell)
    if not text or any(ord(sign) < ord(" ") or "\ud800" <= sign <= "\udfff" for sign in text):
        return "empty, or with control characters or half a surrogate pair"
    return None


def _refused_whole(cell: Cell) -> str | None:
    return None if _LEAST <= cast("int", cell) <= _GREATEST else "beyond 64 bits"


def _refused_number(cell: Cell) -> str | None:
    return None if math.isfinite(cast("float", cell)) else "not finite"


def _refused_truth(_cell: Cell) -> str | None:
    return None


def _refused_time(cell: Cell) -> str | None:
    return None if cast("datetime", cell).tzinfo is UTC else "not a time in UTC"


_REFUSALS: Final = {
    Mark.TEXT: _refused_text,
    Mark.WHOLE: _refused_whole,
    Mark.NUMBER: _refused_number,
    Mark.TRUTH: _refused_truth,
    Mark.TIME: _refused_time,
}


def _spelt(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, datetime):
        return cell.replace(tzinfo=None).isoformat() + "Z"
    return repr(cell) if isinstance(cell, float) else str(cell)


def _read_csv(name: str, data: bytes) -> list[list[Cell]]:
    try:
        lines = list(csv.reader(io.StringIO(data.decode("utf-8"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"{name}: not a table of comma-separated UTF-8 text") from error
    columns = COLUMNS[name]
    if not lines or lines[0] != [column.name for column in columns]:
        raise TableError(f"{name}: the first row does not name the columns of this table")
    return [_read_line(name, number, line) for number, line in enumerate(lines[1:], start=1)]


def _read_line(name: str, number: int, line: list[str]) -> list[Cell]:
    columns = COLUMNS[name]
    if len(line) != len(columns):
        raise TableError(f"{name} row {number}: another number of fields than columns")
    cells = []
    for column, text in zip(columns, line, strict=True):
        try:
            cells.append(_read_cell(column.mark, text))
        except ValueError as error:
            raise TableError(f"{name} row {number}, column {column.name}: not {column.mark}") from error
    return cells


def _read_cell(mark: Mark, text: str) -> Cell:
    """A cell in the one spelling that `_spelt` gives it.

    Raises:
        ValueError: another spelling.
    """
    if not text:
        return None
    cell: Cell = text
    if mark is Mark.WHOLE:
        cell = int(text) if _WHOLE.fullmatch(text) else None
    elif mark is Mark.NUMBER:
        cell = float(text)
    elif mark is Mark.TRUTH:
        cell = _TRUTHS.get(text)
    elif mark is Mark.TIME and _TIME.fullmatch(text):
        cell = datetime.fromisoformat(text[:-1]).replace(tzinfo=UTC)
    if cell is None or _spelt(cell) != text:
        raise ValueError("not as this form spells it")
    return cell


def _read_parquet(name: str, data: bytes) -> list[list[Cell]]:
    try:
        table = pq.read_table(pa.BufferReader(data))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise TableError(f"{name}: not a Parquet table") from error
    columns = COLUMNS[name]
    expected = pa.schema([pa.field(c.name, _ARROW[c.mark], nullable=c.nullable) for c in columns])
    if not table.schema.equals(expected):
        raise TableError(f"{name}: other columns or types than this table has")
    held = [_pythonic(table.column(k).to_pylist()) for k in range(len(columns))]
    return [list(row) for row in zip(*held, strict=True)]


def _pythonic(cells: list[Cell]) -> list[Cell]:
    return [cell.astimezone(UTC) if isinstance(cell, datetime) else cell for cell in cells]
