"""Ratios measured fairly: contenders take turns in one process, and the best round of each counts.

A benchmark is a module run as `python -m benchmarks.<name>`. It prints one line per figure,
`name ratio=… goal=… ok|missed`, and exits 0 when every goal is met, else 1.
"""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Figure(NamedTuple):
    """One measured ratio and what it is held against.

    Attributes:
        name: what is measured.
        ratio: ours divided by the rival.
        goal: the limit.
        at_most: whether the ratio must stay below the goal (a cost) or above it (a rate).
    """

    name: str
    ratio: float
    goal: float
    at_most: bool = True

    @property
    def met(self) -> bool:
        return self.ratio <= self.goal if self.at_most else self.ratio >= self.goal

    def __str__(self) -> str:
        return f"{self.name} ratio={self.ratio:.3f} goal={self.goal:g} {'ok' if self.met else 'missed'}"


def best_seconds(*contenders: Callable[[], object], rounds: int = 7, repeats: int = 1) -> tuple[float, ...]:
    """The shortest time of each contender, in seconds per call.

    The contenders take turns in every round, so that a slow spell of the machine hits all of them; the
    minimum is the round that was disturbed least.

    Args:
        contenders: called without arguments.
        rounds: how often each contender gets its turn.
        repeats: calls in one turn.
    """
    best = [float("inf")] * len(contenders)
    for contender in contenders:
        contender()
    gc.disable()
    try:
        for _ in range(rounds):
            for index, contender in enumerate(contenders):
                best[index] = min(best[index], _turn(contender, repeats))
    finally:
        gc.enable()
    return tuple(best)


def _turn(contender: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        contender()
    return (time.perf_counter() - start) / repeats


def ratio(
    ours: Callable[[], object], rival: Callable[[], object], *, rounds: int = 7, repeats: int = 1
) -> float:
    """The time of ours divided by the time of the rival."""
    own_seconds, rival_seconds = best_seconds(ours, rival, rounds=rounds, repeats=repeats)
    return own_seconds / rival_seconds


def report(*figures: Figure) -> int:
    """Print the figures; the exit code."""
    for figure in figures:
        print(figure)
    return 0 if all(figure.met for figure in figures) else 1
