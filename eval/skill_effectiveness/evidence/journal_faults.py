"""The closed words of the journal and the error it raises.

Source: evidence.md, section 7. `JournalStatus`, `Finding` and `Unreadable` are what verification answers
with; `JournalCode` is why opening or appending was refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from skill_effectiveness.evidence.faults import EvidenceError, Fault, JournalCode

__all__ = [
    "Finding",
    "Found",
    "JournalCode",
    "JournalError",
    "JournalReport",
    "JournalStatus",
    "Unreadable",
    "refusal",
]


class JournalStatus(StrEnum):
    """What verification found."""

    INTACT = "intact"
    """Chain, segments and pin agree."""
    INTACT_WITH_TEARS = "intact_with_tears"
    """The same, with acknowledged tears whose side files match."""
    RECOVERABLE = "recoverable"
    """What a crash may leave: a torn tail, a few rows beyond the pin; the next open settles it."""
    DAMAGED = "damaged"
    """There are findings; nothing is appended any more."""
    UNREADABLE = "unreadable"
    """Not a journal, or it could not be read."""


class Finding(StrEnum):
    """What is wrong at one place of a journal; the last one is a warning only."""

    BAD_ROW = "bad_row"
    PREV_MISMATCH = "prev_mismatch"
    SEQ_GAP = "seq_gap"
    TRUNCATED = "truncated"
    SEGMENT_MISSING = "segment_missing"
    SEGMENT_ORDER = "segment_order"
    ROLLED_BACK = "rolled_back"
    PIN_DAMAGED = "pin_damaged"
    PIN_MISSING = "pin_missing"
    PIN_BEHIND = "pin_behind"
    TEAR_EVIDENCE_MISSING = "tear_evidence_missing"
    FOREIGN_FILE = "foreign_file"
    TIME_BACKWARDS = "time_backwards"


class Unreadable(StrEnum):
    """Why something is not a journal."""

    MISSING = "missing"
    """There is nothing of this name."""
    WRONG_KIND = "wrong_kind"
    """A file where the folder belongs, or the reverse, or neither."""
    NOT_BEGUN = "not_begun"
    """Neither a complete first row nor a pin: nothing was ever acknowledged here."""
    NO_FIRST_ROW = "no_first_row"
    """What stands first is not the first row of a journal, and no pin says that it was."""
    NOT_READABLE = "not_readable"
    """The file system refused or failed to read it."""


@dataclass(frozen=True, slots=True)
class Found:
    """One finding and its place.

    Attributes:
        finding: what is wrong.
        segment: number of the file, from 1; `None` when it is not about one.
        seq: number of the row; `None` when it is not about one.
        offset: of that row in its file, in bytes; `None` where unknown.
        sentence: for people.
    """

    finding: Finding
    segment: int | None
    seq: int | None
    offset: int | None
    sentence: str


@dataclass(frozen=True, slots=True)
class JournalReport:
    """What verification says about a journal.

    Attributes:
        status: the answer.
        journal_id: 32 hex digits; `None` when neither pin nor first row told it.
        count: rows of the unbroken beginning; of a journal that is not damaged, all its rows.
        head: digest of the last of them.
        segments: number of files with rows.
        tears: how many acknowledged tears there are.
        unpinned: rows beyond the pin, which no caller was promised.
        torn_bytes: size of a torn tail.
        findings: why it is damaged; at most 1,000, after which reading stops.
        warnings: what deserves a look and changes nothing; at most 1,000.
        why: why it is unreadable.
        sentence: for people.
    """

    status: JournalStatus
    journal_id: str | None
    count: int
    head: str
    segments: int
    tears: int
    unpinned: int
    torn_bytes: int
    findings: tuple[Found, ...]
    warnings: tuple[Found, ...]
    why: Unreadable | None
    sentence: str

    @property
    def sound(self) -> bool:
        """Whether everything that was acknowledged is there."""
        return self.status in _SOUND


_SOUND = frozenset({JournalStatus.INTACT, JournalStatus.INTACT_WITH_TEARS, JournalStatus.RECOVERABLE})


class JournalError(EvidenceError):
    """A journal was not opened, or a row not appended.

    Attributes:
        report: what verification found, when that is the reason.
    """

    def __init__(self, first: Fault, *others: Fault, report: JournalReport | None = None) -> None:
        super().__init__(first, *others)
        self.report = report


def refusal(
    code: JournalCode, where: str, *sentences: str, report: JournalReport | None = None
) -> JournalError:
    """The error of one code, with a fault for each sentence.

    Args:
        code: the reason.
        where: root-relative name of the journal.
        sentences: at least one.
        report: what verification found.
    """
    faults = [Fault(code, where, sentence) for sentence in sentences]
    return JournalError(*faults, report=report)
