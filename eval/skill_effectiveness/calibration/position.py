"""Whether a reviewer judges the text or the seat (calibration.md, section 8)."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

from skill_effectiveness.calibration.figures import Interval, Share
from skill_effectiveness.calibration.intervals import wilson
from skill_effectiveness.calibration.metrics import majority
from skill_effectiveness.protocol.document import FrozenModel
from skill_effectiveness.protocol.words import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class SeenVerdict(Protocol):
    """One answer as it was given, with how its case was shown; `models.ShownAnswer` is one."""

    @property
    def case_id(self) -> str:
        """Id of the case."""
        ...

    @property
    def orientation(self) -> int:
        """1 when `candidate_a` was shown as B, else 0."""
        ...

    @property
    def verdict(self) -> Verdict:
        """As given, not turned back."""
        ...


class PositionSheet(FrozenModel):
    """What the seats of the texts did to the verdicts.

    Attributes:
        flips: among cases seen in both orientations, those whose majority differs between the two once turned
            back. The whole is the number of cases covered. A majority beside a modal tie differs; two modal
            ties do not.
        flips_interval: 95 % Wilson over the covered cases; None when there are none.
        first_seat: verdicts for the text shown as A, of all verdicts that are no tie, over all samples.
    """

    flips: Share
    flips_interval: Interval | None
    first_seat: Share

    @property
    def cases_covered(self) -> int:
        """Cases seen in both orientations."""
        return self.flips.whole

    @property
    def flip_rate(self) -> Fraction | None:
        """The share of flips, exact, for gates; None when no case is covered."""
        return Fraction(self.flips.part, self.flips.whole) if self.flips.whole else None


def position_sheet(samples: Iterable[Sequence[SeenVerdict]]) -> PositionSheet:
    """Count flips and first seats over the samples of one reviewer.

    Args:
        samples: what each sample was shown and answered. A sample without an observation counts with
            orientation 0.

    Raises:
        ValueError: a sample holds a case twice, or an orientation that is neither 0 nor 1.
    """
    turned: dict[str, tuple[list[Verdict], list[Verdict]]] = {}
    first = decided = 0
    for sample in samples:
        if len({seen.case_id for seen in sample}) < len(sample):
            raise ValueError("a sample shows every case once")
        for seen in sample:
            if seen.orientation not in (0, 1):
                raise ValueError("an orientation is 0 or 1")
            views = turned.setdefault(seen.case_id, ([], []))
            views[seen.orientation].append(seen.verdict.turned() if seen.orientation else seen.verdict)
            first += seen.verdict is Verdict.A_WIN
            decided += seen.verdict is not Verdict.TIE
    both = [(majority(plain), majority(swapped)) for plain, swapped in turned.values() if plain and swapped]
    flips = sum(plain is not swapped for plain, swapped in both)
    return PositionSheet(
        flips=Share.of(flips, len(both)),
        flips_interval=wilson(flips, len(both)) if both else None,
        first_seat=Share.of(first, decided),
    )
