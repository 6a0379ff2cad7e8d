"""Whether an artifact root is still what a sample has made of it (calibration.md, section 5, steps 6 and 9).

A reviewer's program runs under our own user, and whatever runs beside it may reach the root as well. What was
changed there while we held the lock would be found by the next request; so it is looked for before an answer
is stored, and again before a sample is acknowledged.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from skill_effectiveness.calibration import receipts
from skill_effectiveness.calibration.errors import demand_seen
from skill_effectiveness.calibration.ledger import judge_receipts
from skill_effectiveness.calibration.models import to_line
from skill_effectiveness.calibration.root_lock import SAMPLE_LOCK
from skill_effectiveness.evidence.faults import EvidenceError

if TYPE_CHECKING:
    from skill_effectiveness.calibration.models import LedgerEntry, Sample, SampleIntent
    from skill_effectiveness.calibration.receipts import Listing
    from skill_effectiveness.evidence.root import PrivateRoot


class Disturbance(StrEnum):
    """What is not as it was left: the folder itself, its lock, its being open, or what lies in it."""

    ARTIFACT_ROOT = "artifact_root"
    SAMPLE_LOCK = "sample_lock"
    FINALIZATION_INTENT = "finalization_intent"
    RECEIPTS = "receipts"


def after_call(before: Listing, started: LedgerEntry, intent: SampleIntent) -> Listing:
    """What lies in a root when the one call of an id is over and its private log is written.

    Args:
        before: what lay there when the id was admitted, with the orientation key.
        started: its ledger entry.
        intent: its intent.
    """
    sample_id = intent.sample_id
    return replace(
        before,
        ledgers={**before.ledgers, sample_id: to_line(started)},
        intents={**before.intents, sample_id: to_line(intent)},
        logs=before.logs | {sample_id},
    )


def disturbed(root: PrivateRoot, expected: Listing) -> Disturbance | None:
    """What somebody else changed in a root; None when everything is as expected, to the byte.

    Raises:
        FileError: `io_error`: it could not be looked at for a reason that may pass.
    """
    return _outside(root) or (None if receipts.read_listing(root) == expected else Disturbance.RECEIPTS)


def unusable(root: PrivateRoot, sample: Sample) -> Disturbance | None:
    """What keeps a sample that was stored from being found complete; None when nothing does.

    Raises:
        FileError: `io_error`: it could not be looked at for a reason that may pass.
    """
    if found := _outside(root):
        return found
    complete = judge_receipts(receipts.read_listing(root)).complete.get(sample.sample_id)
    return None if complete is not None and complete.sample == sample else Disturbance.RECEIPTS


def _outside(root: PrivateRoot) -> Disturbance | None:
    """What is wrong beside the receipts."""
    try:
        root.demand_in_place()
    except EvidenceError as error:
        demand_seen(error)
        return Disturbance.ARTIFACT_ROOT
    try:
        root.read(SAMPLE_LOCK)
    except EvidenceError as error:
        demand_seen(error)
        return Disturbance.SAMPLE_LOCK
    return Disturbance.FINALIZATION_INTENT if root.exists(receipts.FINALIZATION_INTENT) else None
