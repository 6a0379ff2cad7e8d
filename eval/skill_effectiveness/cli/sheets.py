"""How metrics sheets are shown: a table to compare reviewers by, and the panels of their plot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skill_effectiveness.calibration.documents import PAIR_NAMES
from skill_effectiveness.calibration.sheet import MetricsSheet
from skill_effectiveness.cli import screen
from skill_effectiveness.cli.plots import Bar, Panel
from skill_effectiveness.evidence.documents import parse
from skill_effectiveness.evidence.strict import Profile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skill_effectiveness.calibration.figures import Estimate, Share
    from skill_effectiveness.calibration.repeats import Examination
    from skill_effectiveness.calibration.sheet import CostFigure, ReviewerSheet
    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.protocol.gates import Thresholds

COLUMNS = (
    "reviewer",
    "status",
    "runs",
    "accuracy\n(95 % interval)",
    "self-consistency\n(95 % interval)",
    "flips between\norders",
    "first seat\npreferred",
    "unusable\nanswers",
    "output\ntokens",
    "median\nlatency",
)


def read_sheet(root: PrivateRoot, found: Examination) -> MetricsSheet:
    """The metrics sheet of a published examination."""
    data = root.read(PAIR_NAMES[found.calibration.bank].metrics)
    return parse(MetricsSheet, data, Profile.DOCUMENT)


def show(sheet: MetricsSheet, statuses: Mapping[str, str]) -> None:
    """One row a reviewer, on stderr."""
    show_rows([row(reviewer, statuses[reviewer.family]) for reviewer in sheet.reviewers], sheet.case_count)


def show_rows(rows: Sequence[Sequence[str]], cases: int) -> None:
    """The comparison table."""
    screen.table(f"reviewers on {cases} cases", COLUMNS, rows, stderr=True)


def row(reviewer: ReviewerSheet, status: str, *, name: str | None = None) -> tuple[str, ...]:
    """One reviewer's figures, in the order of `COLUMNS`."""
    attempts = reviewer.attempts
    return (
        name or reviewer.family,
        status,
        str(reviewer.repeat_count),
        _estimate(reviewer.accuracy),
        _estimate(reviewer.self_consistency),
        _share(reviewer.position.flips),
        _share(reviewer.position.first_seat),
        f"{attempts.unusable_answers} of {attempts.attempts}",
        _sum(reviewer.cost.output_tokens),
        _median(reviewer.cost.latency_ms, "ms"),
    )


def panel(reviewer: ReviewerSheet, heading: str, gates: Thresholds) -> Panel:
    """One reviewer's part of the plot; the gates stand at the two figures they decide."""
    bars = [
        _bar("known-answer accuracy", reviewer.accuracy, gates.reviewer_known_answer_accuracy_min),
        _bar("self-consistency", reviewer.self_consistency, gates.reviewer_self_consistency_min),
    ]
    position = reviewer.position
    if position.flips.value is not None:
        interval = position.flips_interval
        low, high = (interval.low, interval.high) if interval else (None, None)
        bars.append(Bar("order flips", position.flips.value, low, high))
    if position.first_seat.value is not None:
        bars.append(Bar("first-seat share", position.first_seat.value))
    return Panel(heading, tuple(bars))


def _bar(label: str, figure: Estimate, gate: float) -> Bar:
    return Bar(label, figure.value, figure.interval.low, figure.interval.high, gate)


def _estimate(figure: Estimate) -> str:
    return f"{figure.value:.3f} ({figure.interval.low:.2f} to {figure.interval.high:.2f})"


def _share(share: Share) -> str:
    return "unknown" if share.value is None else f"{share.part} of {share.whole} ({share.value:.2f})"


def _sum(figure: CostFigure) -> str:
    return figure if isinstance(figure, str) else f"{figure.sum:g}"


def _median(figure: CostFigure, unit: str) -> str:
    return figure if isinstance(figure, str) else f"{figure.median:g} {unit}"
