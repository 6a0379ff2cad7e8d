"""What `run.py study report` and `quick` say of results, and the exit code they end with (studies.md)."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from skill_effectiveness.cli import screen
from skill_effectiveness.studies.results import SYNTHETIC_TIER
from skill_effectiveness.studies.sentences import three_sentences

if TYPE_CHECKING:
    from skill_effectiveness.studies.analysis.conclusions import Word
    from skill_effectiveness.studies.results import Results


class ReportExit(IntEnum):
    """How a report can end once it is written."""

    DONE = 0
    NOT_PASSED = 1
    NOT_EVALUATED = 3


def tell_report(results: Results, place: str, *, required: Word | None, as_json: bool) -> ReportExit:
    """Print the keys on stdout and three sentences on stderr.

    Args:
        results: as written.
        place: of `results.json`.
        required: the word that the caller wants, of `--require`.
        as_json: one object instead of lines.

    Returns:
        `exit_of(results, required)`.
    """
    primary = results.primary
    interval = primary.interval
    screen.results(
        {
            "gate_status": results.verdict.gate_status,
            "verdict_tier": results.verdict.verdict_tier and str(results.verdict.verdict_tier),
            "conclusion": str(primary.conclusion),
            "effect": _rounded(primary.effect),
            "interval": _ends(interval.low, interval.high, as_json=as_json) if interval else None,
            "p": _chance(primary.p),
            "tasks": primary.tasks,
            "to_decide_tasks": primary.to_decide and primary.to_decide.tasks,
            "result": place,
        },
        as_json=as_json,
    )
    for sentence in three_sentences(results):
        screen.complain(sentence)
    if results.verdict.verdict_tier == SYNTHETIC_TIER:
        screen.complain(
            "The study is synthetic: it shows how the machinery works and is evidence for nothing."
        )
    return exit_of(results, required)


def exit_of(results: Results, required: Word | None) -> ReportExit:
    """The exit code of a written report.

    A failed gate and a word that was required and did not come are 1, before anything else; a study that by
    design is not evaluated (synthetic, or without a reviewer) is 3. A conclusion alone sets no exit code.
    """
    status = results.verdict.gate_status
    if status == "fail" or (required is not None and results.primary.conclusion is not required):
        return ReportExit.NOT_PASSED
    return ReportExit.DONE if status == "pass" else ReportExit.NOT_EVALUATED


def _rounded(value: float | None) -> float | None:
    """Four digits; a rounded zero has no sign."""
    return None if value is None else round(value, 4) + 0.0


def _chance(p: float | None) -> float | None:
    """Four digits, or three that count: no p is printed as 0."""
    least = 0.001
    return p if p is None else round(p, 4) if p >= least else float(f"{p:.3g}")


def _ends(low: float, high: float, *, as_json: bool) -> object:
    ends = [round(low, 4) + 0.0, round(high, 4) + 0.0]
    return ends if as_json else f"{ends[0]:.4f}..{ends[1]:.4f}"
