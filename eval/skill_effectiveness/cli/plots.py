"""The plot people compare reviewers with: one SVG, no script, no network, same sheets same bytes."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

INK, GRID, PASSES, FAILS = "#1b1f24", "#d0d7de", "#1a7f5a", "#b3432b"
HASH_SALT = "skill-effectiveness"


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

    The bytes depend on the panels alone.
    """
    import matplotlib as mpl  # noqa: PLC0415 - heavy, and most commands draw nothing
    from matplotlib.figure import Figure  # noqa: PLC0415 - likewise

    rows = max(len(panel.bars) for panel in panels)
    with mpl.rc_context({"svg.hashsalt": HASH_SALT, "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure = Figure(figsize=(5.2 * len(panels), 0.55 * rows + 1.3), layout="constrained")
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axis, panel in zip(axes, panels, strict=True):
            _draw(axis, panel)
        figure.supxlabel("share of cases or judgements; line: 95 % interval; dotted: frozen gate", fontsize="small")
        target = io.BytesIO()
        figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
    return target.getvalue()


def _draw(axis: object, panel: Panel) -> None:
    from matplotlib.axes import Axes  # noqa: PLC0415 - see above

    if not isinstance(axis, Axes):
        raise TypeError("a panel is drawn on an Axes")
    positions = list(range(len(panel.bars), 0, -1))
    for position, bar in zip(positions, panel.bars, strict=True):
        passes = bar.gate is None or bar.value >= bar.gate
        colour = INK if bar.gate is None else PASSES if passes else FAILS
        if bar.low is not None and bar.high is not None:
            axis.plot([bar.low, bar.high], [position, position], color=colour, linewidth=3, alpha=0.45)
        axis.plot([bar.value], [position], marker="o", color=colour, markersize=7)
        if bar.gate is not None:
            axis.plot(
                [bar.gate, bar.gate],
                [position - 0.3, position + 0.3],
                color=INK,
                linewidth=1.5,
                linestyle=":",
            )
        axis.annotate(
            f"{bar.value:.3f}", (bar.value, position), xytext=(0, 8), textcoords="offset points", ha="center"
        )
    axis.set_yticks(positions, [bar.label for bar in panel.bars])
    axis.set_xlim(-0.02, 1.02)
    axis.set_ylim(0.4, len(panel.bars) + 0.75)
    axis.grid(axis="x", color=GRID, linewidth=0.6)
    axis.set_axisbelow(True)
    axis.set_title(panel.heading, loc="left")
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)
    axis.tick_params(axis="y", length=0)
