"""The access audit of a trial: rows of its tested agent, judged one by one (trials.md, section 5).

Most rows are written in one spelling, with or without blanks between members, which is recognised without
parsing; every other row goes through the strict reader. Both ways accept the same rows (a property test holds
them together).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.resolution import UnresolvedError, holds
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.trials.binding import AUDIT
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.isolation import Breach
from skill_effectiveness.trials.models import AuditRow, read_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

UNRESOLVED: Final = (
    "Where this path leads cannot be told: it has too many links, or a folder that may not be searched."
)
_PLAIN: Final = re.compile(
    rb'\{(?:"access_mode": ?"(?P<mode>read|write)", ?)?"actor": ?"tested-agent", ?'
    rb'"operation": ?"(?P<operation>read|open|enumerate|write)", ?'
    rb'"path": ?"(?P<path>/[ !#-\[\]-~]{0,4095})"\}'
)


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """What an audit comes to.

    Attributes:
        rows: how many there are, malformed ones included.
        breaches: what was observed, once each.
        breach_rows: how many rows show a breach.
        fault: the first malformed row; a breach in another row counts all the same.
    """

    rows: int
    breaches: tuple[Breach, ...]
    breach_rows: int
    fault: TrialError | None


def audit(
    lines: Iterable[bytes],
    read_roots: Sequence[str],
    write_roots: Sequence[str],
    resolve: Callable[[str], str],
) -> AuditFinding:
    """Judge every row; none is kept.

    Args:
        lines: without LF.
        read_roots: absolute, links resolved.
        write_roots: likewise.
        resolve: where a path leads after links; asked once per distinct path. Raises `UnresolvedError`.
    """
    places: dict[str, tuple[bool, bool]] = {}
    breaches: dict[Breach, int] = {}
    fault: TrialError | None = None
    rows = 0
    for line in lines:
        rows += 1
        try:
            path, writes = read_row(line)
            place = places.get(path)
            if place is None:
                place = places[path] = _place(resolve(path), read_roots, write_roots)
        except TrialError as error:
            fault = fault or _in_row(rows, error.sentence)
            continue
        except UnresolvedError:
            fault = fault or _in_row(rows, UNRESOLVED)
            continue
        if not place[writes]:
            breach = Breach.WRITE_OUTSIDE_ROOTS if writes else Breach.READ_OUTSIDE_ROOTS
            breaches[breach] = breaches.get(breach, 0) + 1
    return AuditFinding(rows, tuple(sorted(breaches)), sum(breaches.values()), fault)


def check_rows(lines: Iterable[bytes]) -> int:
    """Demand well-formed rows without asking where their paths lead; the number of rows.

    Raises:
        TrialError: `evidence_invalid` at the first malformed row.
    """
    rows = 0
    for line in lines:
        rows += 1
        try:
            read_row(line)
        except TrialError as error:
            raise _in_row(rows, error.sentence) from error
    return rows


def read_row(line: bytes) -> tuple[str, bool]:
    """The path of a row, and whether it must lie in a write root.

    Raises:
        TrialError: `evidence_invalid`: the row is malformed.
    """
    plain = _PLAIN.fullmatch(line)
    if plain is not None:
        mode, operation, path = plain.groups()
        if (operation == b"open") == (mode is not None):
            return path.decode("ascii"), operation == b"write" or mode == b"write"
    return parse_row(line)


def parse_row(line: bytes) -> tuple[str, bool]:
    """As `read_row`, by the strict reader."""
    try:
        value = read_json(line, Profile.ROW, want_object=True)
    except EvidenceError as error:
        raise TrialError(TrialCode.EVIDENCE_INVALID, AUDIT, str(error)) from error
    row = read_record(AuditRow, value, code=TrialCode.EVIDENCE_INVALID)
    return row.path, row.writes


def _place(path: str, read_roots: Sequence[str], write_roots: Sequence[str]) -> tuple[bool, bool]:
    """Whether a path may be read, and whether it may be written."""
    return any(holds(root, path) for root in read_roots), any(holds(root, path) for root in write_roots)


def _in_row(number: int, sentence: str) -> TrialError:
    return TrialError(
        TrialCode.EVIDENCE_INVALID, f"{AUDIT}:{number}", f"Row {number} of the audit: {sentence}"
    )
