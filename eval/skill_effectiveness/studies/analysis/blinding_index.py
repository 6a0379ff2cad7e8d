"""Whether the reviewers could tell which side was treated (Bang, Ni and Davis 2004; studies.md section 6)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration.figures import Interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_Z: Final = 1.96
_BLINDED_BELOW: Final = 0.2


class Guess(StrEnum):
    """What a reviewer said about a pair whose treated side it does not know."""

    RIGHT = "right"
    WRONG = "wrong"
    UNSURE = "unsure"


class Blinding(StrEnum):
    """What the guesses show."""

    BLINDED = "blinded"
    UNBLINDED = "unblinded"
    NOT_SHOWN = "not_shown"


@dataclass(frozen=True, slots=True)
class BlindingIndex:
    """The index of one shown side: 1 all right, 0 as good as chance, -1 all wrong."""

    value: float
    interval: Interval
    tasks: int


def blinding_index(guesses: Mapping[str, Sequence[Guess]]) -> BlindingIndex | None:
    """The mean over tasks of the share of right less the share of wrong guesses.

    Args:
        guesses: by task id, all guesses about pairs of that task with one shown side treated. Tasks without
            a guess are left out.

    Returns:
        The index with its 95 % interval; None without a guess.
    """
    scores = [
        (list(said).count(Guess.RIGHT) - list(said).count(Guess.WRONG)) / len(said)
        for said in guesses.values()
        if said
    ]
    if not scores:
        return None
    m, mean = len(scores), sum(scores) / len(scores)
    half = _Z * math.sqrt(sum((score - mean) ** 2 for score in scores) / m / m)
    return BlindingIndex(mean, Interval(low=mean - half, high=mean + half), m)


def judge_blinding(first: BlindingIndex | None, second: BlindingIndex | None) -> Blinding:
    """The word for both shown sides together.

    `blinded` needs both upper ends below 0.2, `unblinded` one lower end above 0; a side without guesses
    shows nothing.
    """
    sides = [side for side in (first, second) if side is not None]
    if any(side.interval.low > 0 for side in sides):
        return Blinding.UNBLINDED
    if len(sides) == 2 and all(side.interval.high < _BLINDED_BELOW for side in sides):  # noqa: PLR2004
        return Blinding.BLINDED
    return Blinding.NOT_SHOWN
