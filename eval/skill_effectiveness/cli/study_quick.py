"""`run.py study quick`: the first question in one command (studies.md, head)."""

from __future__ import annotations

import signal
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skill_effectiveness.cli import crash, screen
from skill_effectiveness.cli.boundary import ExitCode
from skill_effectiveness.cli.door import absolute, checkout, surroundings
from skill_effectiveness.cli.interruption import told_how_to_go_on
from skill_effectiveness.cli.keys import AsJson  # noqa: TC001 - likewise
from skill_effectiveness.cli.next_step import tell_next
from skill_effectiveness.cli.refusals import CommandCode, Refusal
from skill_effectiveness.cli.study_keys import signer, state_root, trusted_keys
from skill_effectiveness.cli.study_plan import (
    check_values,
    plan_values,
    tell_findings,
    tell_left_out,
    tell_task,
)
from skill_effectiveness.cli.study_progress import StudyProgress
from skill_effectiveness.cli.study_report import exit_of, report_values, tell_sentences
from skill_effectiveness.cli.study_run import draining
from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.studies.agents import bound_agent
from skill_effectiveness.studies.drivers import demand_drivable
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.executors import MOST_JOBS, thread_executor
from skill_effectiveness.studies.grader import sandbox_available
from skill_effectiveness.studies.halting import Halt
from skill_effectiveness.studies.judging import JudgeStatus, judge_study
from skill_effectiveness.studies.loading import load_study
from skill_effectiveness.studies.planning import PlanRequest, plan_study
from skill_effectiveness.studies.quick import QuickOrder, quick_study
from skill_effectiveness.studies.report_files import PAGE, REPORT
from skill_effectiveness.studies.reporting import RESULTS_PATH, report_study
from skill_effectiveness.studies.root import StudyRoot
from skill_effectiveness.studies.runner import RunParts, RunStatus, run_study
from skill_effectiveness.studies.study_file import STUDY_FILE
from skill_effectiveness.studies.words import SIMULATED

if TYPE_CHECKING:
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.studies.planning import Planned
    from skill_effectiveness.studies.results import Results
    from skill_effectiveness.studies.runner import RunOutcome

_DRAINED: Final = 128 + signal.SIGINT


def quick(  # one parameter per option is what a command line is
    *,
    skill: Annotated[Path, typer.Option(help="Folder of the skill, with its SKILL.md.", metavar="FOLDER")],
    tasks: Annotated[Path, typer.Option(help="Folder of the tasks.", metavar="DIR")],
    driver: Annotated[
        str,
        typer.Option(help="Provider of the tested agent, or simulated.", metavar="P"),
    ],
    model: Annotated[str, typer.Option(help="Exact model.", metavar="M")],
    out: Annotated[Path, typer.Option(help="Private folder for the study, new.", metavar="R")],
    executable: Annotated[
        Path | None, typer.Option(help="The agent's program; none for a simulated one.", metavar="E")
    ] = None,
    placebo: Annotated[
        bool, typer.Option("--placebo", help="Compare with a generated placebo of the skill as well.")
    ] = False,
    reviewer: Annotated[
        list[str] | None,
        typer.Option(help="Licence file and program; of a simulated one the licence.", metavar="LICENCE=EXE"),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Repeats of each task in each arm.")] = 3,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens of the whole study.")] = None,
    max_cost_units: Annotated[float | None, typer.Option(help="Cost units of the whole study.")] = None,
    jobs: Annotated[int, typer.Option(min=1, max=MOST_JOBS, help="Attempts at a time.")] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Stop after the plan; start no trial.")] = False,
    as_json: AsJson = False,
) -> int:
    """Ask whether a skill changes what an agent achieves: check, plan, run, judge and report in one line.

    The same line goes on where it stopped. Exits are those of plan, run and report; 2 also when the folder
    holds a study of other arguments, or this version cannot do what is asked.
    """
    around = surroundings()
    # Before the folder is made: it would hold a study that nobody wants.
    demand_drivable(driver, "--driver")
    order = QuickOrder(
        skill=str(absolute(skill)),
        tasks=str(absolute(tasks)),
        provider=driver,
        executable=None if executable is None else str(absolute(executable)),
        model=model,
        placebo=placebo,
        reviewers=tuple(_reviewer(given) for given in reviewer or ()),
        samples=samples,
        tokens=max_tokens,
        cost_units=max_cost_units,
        sandbox=driver != SIMULATED and sandbox_available(around),
    )
    planned = _planned(order, absolute(out), around)
    if planned.plan is None:
        tell_findings(planned.report)
        screen.results(check_values(planned.report), as_json=as_json)
        screen.complain("Now: put right what is named above, then type the same line again.")
        return ExitCode.NOT_PASSED
    if dry_run:
        screen.results(plan_values(planned.plan, out.name), as_json=as_json)
        tell_next("study", "run", out)
        return ExitCode.DONE
    return _carried_out(out, jobs, as_json=as_json)


def _reviewer(given: str) -> tuple[str, str | None]:
    """A licence and its program, as given on the command line.

    Raises:
        Refusal: `usage`.
    """
    licence, equals, program = given.partition("=")
    if not licence or (equals and not program):
        raise Refusal(CommandCode.USAGE, "A reviewer is given as LICENCE=EXE, a simulated one as LICENCE.")
    return str(absolute(licence)), str(absolute(program)) if program else None


def _planned(order: QuickOrder, out: Path, around: Surroundings) -> Planned:
    """The plan of an order, in its folder."""
    with (
        state_root(around) as state,
        PrivateRoot.create(out, RootKind.OUT, around=around, checkout=checkout()) as root,
    ):
        try:
            root.publish(STUDY_FILE, quick_study(order))
        except FileError as error:
            if error.code is not FileCode.EXISTS_DIFFERENT:
                raise
            sentence = "this folder holds a study of other arguments; give another folder."
            raise StudyError(StudyCode.PLAN_EXISTS, STUDY_FILE, sentence) from error
        key = signer(None, state)
        loaded = load_study(around.fs, out / STUDY_FILE)
        tell_left_out(loaded)
        return plan_study(
            PlanRequest(
                loaded=loaded,
                out=out,
                key=key,
                trusted=trusted_keys(state, key),
                around=around,
                checkout=checkout(),
                state=state,
                on_task=tell_task,
            )
        )


def _carried_out(out: Path, jobs: int, *, as_json: bool) -> int:
    """Run, judge and report."""
    around, halt = surroundings(), Halt()
    with (
        told_how_to_go_on(screen.complain, lambda: "the same line goes on."),
        state_root(around) as state,
        StudyRoot.open(absolute(out), around=around, checkout=checkout()) as study,
        crash.kept_in(study.root),
    ):
        with (
            thread_executor(jobs) as executor,
            StudyProgress(study.plan.name, study.plan.allocation.slots) as progress,
            draining(halt),
        ):
            parts = RunParts(study, state, bound_agent(study), executor, jobs, halt, progress)
            outcome = run_study(parts)
        if outcome.status is not RunStatus.COMPLETE:
            return _stopped(outcome)
        with study.lock().hold(action="study quick"), study.journal(state) as journal:
            if study.plan.reviewers and journal.state.unblinded is None:
                judged = judge_study(study, journal)
                if judged.status is not JudgeStatus.COMPLETE:
                    screen.complain(f"Votes missing: {judged.missing}; the report does without them.")
            results = report_study(study, journal)
        place = study.root.path
    code = _told(results, as_json=as_json)
    screen.complain(f"look at {place / REPORT / PAGE}")
    tell_next("study", "seal", out, "--out", "B")
    return code


def _stopped(outcome: RunOutcome) -> int:
    if outcome.status is RunStatus.BLOCKED:
        screen.complain(f"Blocked by {outcome.reason}: put it right, then run the same line again.")
        return ExitCode.NOT_PASSED
    screen.complain("Drained; the same line goes on.")
    return _DRAINED


def _told(results: Results, *, as_json: bool) -> int:
    spent, decide = results.usage.total, results.primary.to_decide
    screen.results(
        {
            **report_values(results, RESULTS_PATH, as_json=as_json),
            "tokens": spent.tokens,
            "cost_units": spent.cost_units,
            "wall_seconds": spent.wall_seconds,
            "to_decide_trials": decide and decide.trials,
            "to_decide_cost_units": decide and decide.cost_units,
        },
        as_json=as_json,
    )
    tell_sentences(results)
    return exit_of(results, None)
