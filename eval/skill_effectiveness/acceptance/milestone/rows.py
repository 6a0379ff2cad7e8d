"""The rows of a run, and what is asked about them.

Source: milestone.md, section 3. A row is `{"body":{…},"prev":"sha256:…","seq":n,"time":"…","type":"…"}`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skill_effectiveness.acceptance.milestone.words import RowType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from skill_effectiveness.evidence.journal_rows import Row


@dataclass(frozen=True, slots=True)
class JournalRow:
    """One row.

    Attributes:
        seq: its number.
        digest: of its bytes.
        type: its type; journals of other makers may have more of them than `RowType`.
        time: when it was written.
        body: what it says.
    """

    seq: int
    digest: str
    type: str
    time: str
    body: dict[str, Any] = field(repr=False)

    @classmethod
    def of(cls, row: Row) -> JournalRow:
        """A row as the journal reads it; one of another maker may lack members."""
        value = row.value
        body = value.get("body")
        kind, time = value.get("type"), value.get("time")
        return cls(
            row.seq,
            row.digest,
            kind if isinstance(kind, str) else "",
            time if isinstance(time, str) else "",
            body if isinstance(body, dict) else {},
        )


class RunRows:
    """The rows of one run, in their order."""

    def __init__(self, rows: Sequence[JournalRow] = ()) -> None:
        self._rows = list(rows)

    def __iter__(self) -> Iterator[JournalRow]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: JournalRow) -> None:
        """Take over a row that was acknowledged."""
        self._rows.append(row)

    def all(self, kind: RowType, **members: object) -> list[JournalRow]:
        """Every row of a type whose body has these members."""
        return [
            row
            for row in self._rows
            if row.type == kind and all(row.body.get(name) == value for name, value in members.items())
        ]

    def newest(self, kind: RowType, **members: object) -> JournalRow | None:
        """The last of them."""
        found = self.all(kind, **members)
        return found[-1] if found else None

    def newest_where(self, kind: RowType, holds: Callable[[dict[str, Any]], bool]) -> JournalRow | None:
        """The last row of a type whose body passes a test."""
        return next((row for row in reversed(self._rows) if row.type == kind and holds(row.body)), None)

    @property
    def ended(self) -> bool:
        """Whether the run has ended: a `finished` or `run/paused` row after the last `started`."""
        for row in reversed(self._rows):
            if row.type in {RowType.FINISHED, RowType.PAUSED}:
                return True
            if row.type == RowType.STARTED:
                return False
        return False

    @property
    def finished(self) -> JournalRow | None:
        """The `finished` row, unless the run was started again after it."""
        for row in reversed(self._rows):
            if row.type == RowType.FINISHED:
                return row
            if row.type == RowType.STARTED:
                return None
        return None

    def open_calls(self) -> list[JournalRow]:
        """The prepared rows whose call has no completed row and was not repeated."""
        over = {row.body.get("call") for row in self.all(RowType.COMPLETED)}
        over |= {row.body.get("repeats") for row in self.all(RowType.PREPARED)}
        return [row for row in self.all(RowType.PREPARED) if row.body.get("call") not in over]

    def completed(self, call: str) -> JournalRow | None:
        """The completed row of a call."""
        return self.newest(RowType.COMPLETED, call=call)
