"""Holding the rows of a journal against its pin and the copy of that: a judgement without effects.

Source: evidence.md, section 7. The pin lags behind the rows by one group at most and never leads. What is
wrong here is about the pin; the rows themselves were judged by `journal_chain`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from skill_effectiveness.evidence.journal_faults import Finding
from skill_effectiveness.evidence.journal_rows import LARGEST_GROUP, RowForm

if TYPE_CHECKING:
    from skill_effectiveness.evidence.journal_chain import Chain
    from skill_effectiveness.evidence.journal_findings import Findings
    from skill_effectiveness.evidence.journal_pin import FilePin, Pin, SegmentedPin

_REPIN: Final = "If you know why, have it made anew with `run.py journal repin` and a reason."


class Sides(NamedTuple):
    """Where to put what is wrong.

    Attributes:
        rows: with the rows, which no pin repairs.
        pin: with what a new pin settles.
    """

    rows: Findings
    pin: Findings


def judge_missing_pin(chain: Chain, form: RowForm, findings: Findings) -> None:
    """Judge a journal without a pin: only what is left by a crash while it was begun may lack one."""
    if chain.count > (1 if form is RowForm.KERNEL else 0):
        findings.add(Finding.PIN_MISSING, f"The journal has rows but no pin. {_REPIN}")


def judge_pin(
    chain: Chain, pin: SegmentedPin | FilePin, copy: Pin | None, segments: int, findings: Sides
) -> None:
    """Judge a pin that could be read.

    Args:
        chain: after the last row.
        pin: the pin beside the journal.
        copy: its copy in the `state` root, when there is one that can be read.
        segments: number of the last file.
        findings: where to put what is wrong.
    """
    if chain.opened is not None and chain.opened.journal_id != pin.journal_id:
        findings.pin.add(Finding.PIN_DAMAGED, f"The pin belongs to another journal. {_REPIN}")
        return
    pinned = pin.position
    if pinned.count > 0 and pinned.segment > segments:
        for number in range(segments + 1, pinned.segment + 1):
            sentence = f"Segment {number} is missing; the pin says that rows were acknowledged there."
            findings.pin.add(Finding.SEGMENT_MISSING, sentence, segment=number)
    elif pinned.count > chain.count:
        sentence = (
            f"There are {chain.count} rows, but {pinned.count} were acknowledged; the rest was cut off."
        )
        end = chain.position
        findings.pin.add(Finding.TRUNCATED, sentence, segment=end.segment, seq=chain.count, offset=end.offset)
    elif chain.clean:
        _judge_end(chain, pin, copy, findings)


def _judge_end(chain: Chain, pin: SegmentedPin | FilePin, copy: Pin | None, findings: Sides) -> None:
    """Judge where a pin says that the acknowledged rows end, all of which are there."""
    pinned = pin.position
    end = chain.ends.get(pinned.count - 1)
    if end is not None and end.head != pinned.head:
        is_last = pinned.count == chain.count
        confirmed = copy is not None and (copy.count, copy.head) == (end.count, end.head)
        if is_last and not confirmed:
            sentence = "The last row is not the one that was acknowledged; it was changed."
            findings.rows.add(Finding.PREV_MISMATCH, sentence, segment=end.segment, seq=end.count - 1)
            return
    if end is not None and end != pinned:
        sentence = f"The pin names row {pinned.count - 1} wrongly, while its neighbours do not. {_REPIN}"
        findings.pin.add(Finding.PIN_DAMAGED, sentence)
    elif chain.count - pinned.count > group_max(chain, pin):
        sentence = f"There are {chain.count} rows, but the pin knows {pinned.count} only. {_REPIN}"
        findings.pin.add(Finding.PIN_BEHIND, sentence, seq=pinned.count)


def judge_copy(
    chain: Chain, pin: SegmentedPin | FilePin | None, copy: SegmentedPin | FilePin, findings: Findings
) -> None:
    """Judge rows by the copy in the `state` root; their own pin agrees with them, or tells nothing."""
    if pin is not None and group_max(chain, pin) != group_max(chain, copy):
        findings.add(Finding.PIN_DAMAGED, f"The pin and its copy allow groups of different sizes. {_REPIN}")
    if copy.count > chain.count:
        sentence = (
            f"There are {chain.count} rows, but {copy.count} were acknowledged on this machine: the journal "
            f"and its pin were replaced by older ones. {_REPIN}"
        )
        findings.add(Finding.ROLLED_BACK, sentence, seq=chain.count)
        return
    end = chain.ends.get(copy.count - 1)
    if end is not None and end.head != copy.head:
        sentence = f"Row {copy.count - 1} is not the one that was acknowledged on this machine. {_REPIN}"
        findings.add(Finding.ROLLED_BACK, sentence, seq=copy.count - 1)


def group_max(chain: Chain, pin: SegmentedPin | FilePin | None) -> int:
    """How many rows one append may hold, as far as row 0 or the pin tell."""
    if chain.opened is not None:
        return chain.opened.group_max
    # The other form of a pin has no such member.
    limit: int = getattr(pin, "group_max", LARGEST_GROUP)
    return limit
