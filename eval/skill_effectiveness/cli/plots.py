"""The plot people compare reviewers with: one SVG, no script, no network, same sheets same bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.cli.door import surroundings
from skill_effectiveness.cli.drawing import drawn_svg
from skill_effectiveness.cli.screen import neutral

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, GRID, PASSES, FAILS = "#1b1f24", "#d0d7de", "#1a7f5a", "#b3432b"
CAPTION: Final = "share of cases or judgements; line: 95 % interval; dotted: frozen gate"


@dataclass(frozen=True, slots=True)
class Bar:
    """One measured rate in [0, 1], its interval, and the gate it must reach (`None` where no gate stands)."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    gate: float | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """What one reviewer shows: a heading and its bars."""

    heading: str
    bars: tuple[Bar, ...]


def reviewer_plot(panels: Sequence[Panel]) -> bytes:
    """An SVG with one panel a reviewer: rates as points, intervals as lines, gates as marks.

    Bars of the same label stand in one row, so that panels can be compared; a panel without that bar leaves
    the row empty. The bytes depend on the panels alone, whatever style the person has configured for plots of
    their own.

    Args:
        panels: at least one.

    Raises:
        EvidenceError: as `drawing.drawn_svg`.
    """
    rows = tuple(dict.fromkeys(bar.label for panel in panels for bar in panel.bars))

    def draw(make: type[Figure]) -> Figure:
        figure = make(figsize=(5.2 * len(panels), 0.55 * len(rows) + 1.3), layout="constrained")
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axis, panel in zip(axes, panels, strict=True):
            _draw(axis, panel, rows)
        figure.supxlabel(CAPTION, fontsize="small")
        return figure

    return drawn_svg(draw, surroundings())


def _draw(axis: Axes, panel: Panel, rows: Sequence[str]) -> None:
    """One panel; the first row is the topmost."""
    for bar in panel.bars:
        _draw_bar(axis, bar, len(rows) - rows.index(bar.label))
    axis.set_yticks(range(len(rows), 0, -1), [neutral(label) for label in rows])
    axis.set_xlim(-0.02, 1.02)
    axis.set_ylim(0.4, len(rows) + 0.75)
    axis.grid(axis="x", color=GRID, linewidth=0.6)
    axis.set_axisbelow(True)
    axis.set_title(neutral(panel.heading), loc="left")
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)
    axis.tick_params(axis="y", length=0)


def _draw_bar(axis: Axes, bar: Bar, height: int) -> None:
    passes = bar.gate is None or bar.value >= bar.gate
    colour = INK if bar.gate is None else PASSES if passes else FAILS
    if bar.low is not None and bar.high is not None:
        axis.plot([bar.low, bar.high], [height, height], color=colour, linewidth=3, alpha=0.45)
    axis.plot([bar.value], [height], marker="o", color=colour, markersize=7)
    if bar.gate is not None:
        mark = [height - 0.3, height + 0.3]
        axis.plot([bar.gate, bar.gate], mark, color=INK, linewidth=1.5, linestyle=":")
    axis.annotate(
        f"{bar.value:.3f}", (bar.value, height), xytext=(0, 8), textcoords="offset points", ha="center"
    )
