"""The geometry of the report's figures: where marks lie, in percent of the width they are given.

A strip is drawn at the width of the page, so that its lines stay as thick and its text as large on a
telephone as on a desk. Everything here is numbers; the template turns them into SVG.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skill_effectiveness.studies.results import EvidenceRecord

_LIMITS: Final = (0.1, 0.25, 0.5, 1.0)
_WIDTH: Final = 100.0


def place(fraction: float) -> str:
    """A part of the width, from 0 to 1, as the template writes it; outside it is the nearer edge."""
    return f"{_WIDTH * min(1.0, max(0.0, fraction)):.3f}".rstrip("0").rstrip(".")


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from `-limit` to `limit`.

    Attributes:
        limit: its end.
    """

    limit: float

    @classmethod
    def holding(cls, values: Iterable[float]) -> Axis:
        """The shortest axis that holds all values."""
        reach = max((abs(value) for value in values), default=0.0)
        return cls(next((limit for limit in _LIMITS if reach <= limit), _LIMITS[-1]))

    def at(self, value: float) -> str:
        """The place of a value."""
        return place((value + self.limit) / (2 * self.limit))

    def between(self, low: float, high: float) -> str:
        """The width of a stretch, cut at the edges."""
        low, high = max(low, -self.limit), min(high, self.limit)
        return place(max(0.0, high - low) / (2 * self.limit))

    @property
    def ticks(self) -> tuple[float, ...]:
        """Five of them."""
        return tuple(self.limit * step / 2 for step in (-2, -1, 0, 1, 2))


@dataclass(frozen=True, slots=True)
class EvidenceCurve:
    """Evidence and confidence sequence over tasks, as points of a square of 100 by 100.

    Attributes:
        points: of log E, `x,y` apart by blanks.
        band: outline of the sequence, on an axis from -1 at the bottom to 1 at the top.
        limit_y: where 1 / alpha lies.
        one_y: where E = 1 lies.
    """

    points: str
    band: str
    limit_y: str
    one_y: str


def evidence_curve(looks: Sequence[EvidenceRecord], alpha: float) -> EvidenceCurve | None:
    """The curve of at least one look; None without."""
    if not looks:
        return None
    logs = [math.log10(max(look.e, 1e-12)) for look in looks]
    top = max(*logs, math.log10(1 / alpha), 0.0) + 0.1
    bottom = min(*logs, 0.0) - 0.1

    def y(log: float) -> str:
        return place((top - log) / (top - bottom))

    def x(number: int) -> str:
        return place(number / max(1, len(looks) - 1)) if len(looks) > 1 else place(0.5)

    points = " ".join(f"{x(number)},{y(log)}" for number, log in enumerate(logs))
    held = [
        (number, look.low, look.high)
        for number, look in enumerate(looks)
        if look.low is not None and look.high is not None
    ]
    upper = [f"{x(number)},{place((1 - high) / 2)}" for number, _, high in held]
    lower = [f"{x(number)},{place((1 - low) / 2)}" for number, low, _ in reversed(held)]
    return EvidenceCurve(
        points=points,
        band=" ".join(upper + lower),
        limit_y=y(math.log10(1 / alpha)),
        one_y=y(0.0),
    )
