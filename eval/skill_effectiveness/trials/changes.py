"""A change of one trial as a value, before anything happens.

A caller with receipts of its own (bridge.md, section 5) plans a change, records `before` and `after`, and
only then applies it; after a crash the two digests tell whether it was applied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from skill_effectiveness.trials.models import TrialKey

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Change(Generic[ResultT]):
    """What will become of `trial.json`, and what the caller will be answered.

    Attributes:
        key: which trial.
        before: digest of the bytes of `trial.json` now; `None` where there is none.
        after: digest of its bytes once the change is applied.
        data: those bytes; `None` when nothing is written because `before` stays.
        result: the answer.
    """

    key: TrialKey
    before: str | None
    after: str
    data: bytes | None
    result: ResultT
