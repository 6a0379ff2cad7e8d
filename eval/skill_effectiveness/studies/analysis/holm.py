"""Several secondary tests at once (Holm 1979; studies.md section 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjusted p-values in the order given: the running maximum of (k - j + 1) p_(j), at most 1.

    Raises:
        ValueError: a value outside 0 to 1.
    """
    if not all(0 <= p <= 1 for p in p_values):
        raise ValueError("p-values lie from 0 to 1")
    adjusted = [0.0] * len(p_values)
    reached = 0.0
    for rank, position in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        reached = max(reached, min(1.0, (len(p_values) - rank) * p_values[position]))
        adjusted[position] = reached
    return tuple(adjusted)
