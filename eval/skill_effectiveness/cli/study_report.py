"""`run.py study report`: what a study says, and the exit code it ends with (studies.md, sections 0 and 7)."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skill_effectiveness.cli import crash, screen
from skill_effectiveness.cli.door import surroundings
from skill_effectiveness.cli.interruption import told_how_to_go_on
from skill_effectiveness.cli.keys import AsJson  # noqa: TC001 - typer reads the annotations
from skill_effectiveness.cli.next_step import tell_next
from skill_effectiveness.cli.refusals import CommandCode, Refusal
from skill_effectiveness.cli.study_keys import state_root
from skill_effectiveness.cli.study_status import StudyFolder, open_study
from skill_effectiveness.studies.analysis.conclusions import Word
from skill_effectiveness.studies.report_files import PAGE, REPORT
from skill_effectiveness.studies.reporting import RESULTS_PATH, report_study
from skill_effectiveness.studies.results import SYNTHETIC_TIER
from skill_effectiveness.studies.sentences import CONTENT_EFFECT, three_sentences

if TYPE_CHECKING:
    from skill_effectiveness.studies.results import Results

LONGEST_REASON: Final = 10_000

Required = Annotated[
    Word | None,
    typer.Option(
        "--require",
        help=f"Must come out, another one is exit 1: {', '.join(Word)}.",
        metavar="WORD",
    ),
]


def report(
    folder: StudyFolder,
    *,
    require: Required = None,
    abandon: Annotated[
        str | None,
        typer.Option(help="Why open slots and votes are given up; kept in the report.", metavar="TEXT"),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Make known which arm was which, analyse, and write the folder `report`.

    Nothing can be run or asked afterwards. The same evidence gives the same report. Exit 0: the gate passed.
    1: it failed, or another word came out than was required. 2: slots or votes are open and not given up.
    3: by design not evaluated, since the study is synthetic or planned no reviewer.
    """
    with (
        told_how_to_go_on(screen.complain, lambda: "the same line goes on."),
        state_root(surroundings()) as state,
        open_study(folder) as study,
        crash.kept_in(study.root),
        study.lock().hold(action="study report"),
        study.journal(state) as journal,
    ):
        results = report_study(study, journal, abandon=None if abandon is None else reason_of(abandon))
        place = study.root.path
    code = tell_report(results, RESULTS_PATH, required=require, as_json=as_json)
    screen.complain(f"look at {place / REPORT / PAGE}")
    tell_next("study", "seal", folder, "--out", "B")
    return code


def reason_of(text: str) -> str:
    """A person's reason, as a journal can hold it.

    Raises:
        Refusal: `usage`.
    """
    reason = text.strip()
    if not reason or len(reason) > LONGEST_REASON or not reason.isprintable():
        raise Refusal(
            CommandCode.USAGE,
            f"A reason is one line of 1 to {LONGEST_REASON:,} characters that can be printed; write one.",
        )
    return reason


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
    screen.results(report_values(results, place, as_json=as_json), as_json=as_json)
    tell_sentences(results)
    return exit_of(results, required)


def report_values(results: Results, place: str, *, as_json: bool) -> dict[str, object]:
    """What machines are told of results."""
    primary = results.primary
    interval = primary.interval
    return {
        "gate_status": results.verdict.gate_status,
        "verdict_tier": results.verdict.verdict_tier and str(results.verdict.verdict_tier),
        "conclusion": str(primary.conclusion),
        "effect": _rounded(primary.effect),
        "interval": _ends(interval.low, interval.high, as_json=as_json) if interval else None,
        "p": _chance(primary.p),
        "tasks": primary.tasks,
        "to_decide_tasks": primary.to_decide and primary.to_decide.tasks,
        "result": place,
    }


def tell_sentences(results: Results) -> None:
    """Estimate, cost, what would decide, and what no report can answer yet, for people."""
    for sentence in (*three_sentences(results), CONTENT_EFFECT):
        screen.complain(sentence)
    if results.verdict.verdict_tier == SYNTHETIC_TIER:
        screen.complain(
            "The study is synthetic: it shows how the machinery works and is evidence for nothing."
        )


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
