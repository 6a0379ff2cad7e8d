"""How a scored table is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skill_effectiveness.cli import screen

if TYPE_CHECKING:
    from skill_effectiveness.calibration.figures import Share
    from skill_effectiveness.calibration.table import GroupScore, TableScore

COLUMNS = (
    "category",
    "pairs",
    "correct",
    "accuracy %",
    "95 % interval",
    "flips",
    "right in both",
    "missing",
    "first-shown preferred",
    "longer preferred",
)


def print_score(score: TableScore, *, as_json: bool) -> None:
    """One table on stdout, or one canonical object with every figure unrounded."""
    if as_json:
        screen.results(score.model_dump(mode="json"), as_json=True)
        return
    rows = [_row(group, group.category or "") for group in score.categories]
    rows.append(_row(score.overall, "overall"))
    screen.table("verdicts against labels", COLUMNS, rows, stderr=False)


def _row(group: GroupScore, name: str) -> tuple[str, ...]:
    interval = group.accuracy.interval
    return (
        name,
        str(group.pairs),
        str(group.correct),
        f"{100 * group.accuracy.value:.2f}",
        f"{100 * interval.low:.2f} to {100 * interval.high:.2f}",
        str(group.flips),
        str(group.right_both),
        str(group.missing_verdicts),
        _share(group.first_shown),
        "" if group.longer is None else _share(group.longer),
    )


def _share(share: Share) -> str:
    if share.value is None:
        return "unknown"
    return f"{share.part} of {share.whole} ({100 * share.value:.1f} %)"
