"""`run.py study quick`: the first question in one command (studies.md, head)."""

from __future__ import annotations

import math
import signal
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skill_effectiveness.cli import crash, screen
from skill_effectiveness.cli.boundary import ExitCode
from skill_effectiveness.cli.door import absolute, checkout, surroundings
from skill_effectiveness.cli.interruption import told_how_to_go_on
from skill_effectiveness.cli.keys import AsJson  # noqa: TC001 - likewise
from skill_effectiveness.cli.next_step import tell_next
from skill_effectiveness.cli.refusals import CommandCode, Refusal
from skill_effectiveness.cli.study_cluster import (
    Cluster,
    Crew,
    Jobs,
    PlainTcp,
    at_work,
    read_crew,
)
from skill_effectiveness.cli.study_keys import signer, state_root, trusted_keys
from skill_effectiveness.cli.study_plan import (
    MissingOracle,
    check_values,
    plan_values,
    tell_findings,
    tell_left_out,
    tell_power,
    tell_task,
)
from skill_effectiveness.cli.study_progress import StudyProgress
from skill_effectiveness.cli.study_report import exit_of, report_values, tell_sentences
from skill_effectiveness.cli.study_run import draining, tell_blocked
from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.providers.prices import ModelPrice
from skill_effectiveness.studies.checks import CheckReport
from skill_effectiveness.studies.drivers import confinable, demand_drivable
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.grader import sandbox_available
from skill_effectiveness.studies.halting import Halt
from skill_effectiveness.studies.judging import JudgeStatus, judge_study
from skill_effectiveness.studies.loading import load_study
from skill_effectiveness.studies.plan_seal import PLAN, PLAN_SEAL
from skill_effectiveness.studies.planning import PlanRequest, plan_study
from skill_effectiveness.studies.quick import QuickOrder, quick_study
from skill_effectiveness.studies.report_files import PAGE, REPORT
from skill_effectiveness.studies.reporting import RESULTS_PATH, report_study
from skill_effectiveness.studies.root import StudyRoot
from skill_effectiveness.studies.runner import RunStatus, run_study
from skill_effectiveness.studies.study_file import STUDY_FILE, StudyFileError
from skill_effectiveness.studies.words import SIMULATED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.studies.planning import Planned
    from skill_effectiveness.studies.results import Results
    from skill_effectiveness.studies.runner import RunOutcome

_DRAINED: Final = 128 + signal.SIGINT
_OPTIONS: Final[Mapping[str, str]] = {
    "/arms/full/skills": "--skill",
    "/arms/reference": "--placebo",
    "/tasks": "--tasks",
    "/driver/provider": "--driver",
    "/driver/executable": "--executable",
    "/driver/model": "--model",
    "/driver/settings/prices": "--price",
    "/samples": "--samples",
    "/budgets/study/tokens": "--max-tokens",
    "/budgets/study/cost_units": "--max-cost-units",
    "/reviewers": "--reviewer",
    "/isolation/read_only": "--read-only",
    "/isolation/audit": "--audit",
}
"""Places of the study file and the options that they are made of."""

Reviewers = Annotated[
    list[str] | None,
    typer.Option(
        help="Licence file and program of a reviewer; of a simulated one the licence. May be repeated.",
        metavar="LICENCE=EXE",
    ),
]
Prices = Annotated[
    list[str] | None,
    typer.Option(
        help="Cost units of a million tokens where the program tells no cost: input and output, and if "
        "they cost otherwise, cached_input and reasoning. May be repeated.",
        metavar="KIND=N",
    ),
]
ReadOnly = Annotated[
    list[Path] | None,
    typer.Option(
        help="What the agent's program needs to read beside itself and the system, such as a wrapper's "
        "target. May be repeated.",
        metavar="PATH",
    ),
]


def quick(  # one parameter per option is what a command line is
    *,
    skill: Annotated[Path, typer.Option(help="Folder of the skill, with its SKILL.md.", metavar="FOLDER")],
    tasks: Annotated[Path, typer.Option(help="Folder with one folder for each task.", metavar="DIR")],
    driver: Annotated[
        str,
        typer.Option(help="The tested agent: codex, claude, opencode, kimi or simulated.", metavar="P"),
    ],
    model: Annotated[str, typer.Option(help="Exact model, as the program names it.", metavar="M")],
    out: Annotated[
        Path, typer.Option(help="Private folder for the study, new, outside any checkout.", metavar="R")
    ],
    executable: Annotated[
        Path | None, typer.Option(help="Path of the agent's program; none for a simulated one.", metavar="E")
    ] = None,
    placebo: Annotated[
        bool, typer.Option("--placebo", help="Compare with a generated placebo of the skill as well.")
    ] = False,
    reviewer: Reviewers = None,
    samples: Annotated[int, typer.Option(min=1, help="Repeats of each task in each arm.")] = 3,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens that the whole study may use; unlimited if left out.")
    ] = None,
    max_cost_units: Annotated[
        float | None, typer.Option(help="Cost units that the whole study may use, above 0; likewise.")
    ] = None,
    price: Prices = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    allow_plain_tcp: PlainTcp = False,
    read_only: ReadOnly = None,
    audit: Annotated[
        bool, typer.Option("--audit", help="Record every file that the agent touches, by strace.")
    ] = False,
    allow_missing_oracle: MissingOracle = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Stop after the plan; start no trial.")] = False,
    as_json: AsJson = False,
) -> int:
    """Ask whether a skill changes what an agent achieves: check, plan, run, judge and report in one line.

    The same line goes on where it stopped. Exit 0: the gate passed, or the plan of a dry run is made. 1: a
    check or the gate failed, or the run is blocked. 2: refused, or the folder holds a study of other
    arguments. 3: reported, and by design not evaluated: no licensed reviewer was asked, or the agent is
    simulated. 130: stopped by Ctrl-C.
    """
    around = surroundings()
    # Before the folder is made: it would hold a study that nobody wants.
    demand_drivable(driver, "--driver")
    crew = read_crew(jobs, cluster, plain=allow_plain_tcp)
    _demand_sense(driver, executable, max_cost_units)
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
        price=_prices(driver, price or ()),
        sandbox=confinable(driver) and sandbox_available(around),
        audit=audit,
        read_only=tuple(str(absolute(path)) for path in read_only or ()),
    )
    planned = _planned(order, absolute(out), around, allow_missing_oracle=allow_missing_oracle)
    if planned.plan is None:
        tell_findings(planned.report)
        screen.results(check_values(planned.report), as_json=as_json)
        screen.complain("Now: put right what is named above, in the line itself too, then type it again.")
        return ExitCode.NOT_PASSED
    tell_power(planned.plan)
    if dry_run:
        screen.results(plan_values(planned.plan, out.name), as_json=as_json)
        tell_next("study", "run", out)
        return ExitCode.DONE
    return _carried_out(out, crew, as_json=as_json)


def _demand_sense(driver: str, executable: Path | None, cost_units: float | None) -> None:
    """Refuse what contradicts itself, in the words of the line.

    Raises:
        Refusal: `usage`.
    """
    if driver == SIMULATED and executable is not None:
        raise Refusal(CommandCode.USAGE, "A simulated agent has no program; leave --executable out.")
    if driver != SIMULATED and executable is None:
        raise Refusal(CommandCode.USAGE, f"Name the program of {driver} with --executable.")
    if cost_units is not None and not 0 < cost_units < math.inf:
        raise Refusal(CommandCode.USAGE, "A limit of cost is a number above 0; correct --max-cost-units.")


def _prices(driver: str, given: Sequence[str]) -> dict[str, str]:
    """Prices by kind of token, as given on the command line; whether they are any is the study file's to say.

    Raises:
        Refusal: `usage`.
    """
    if given and driver == SIMULATED:
        raise Refusal(CommandCode.USAGE, "A simulated agent costs nothing; leave --price out.")
    prices: dict[str, str] = {}
    for word in given:
        kind, equals, price = word.partition("=")
        if not equals or kind not in ModelPrice.model_fields:
            kinds = ", ".join(ModelPrice.model_fields)
            raise Refusal(CommandCode.USAGE, f"A price is given as KIND=N, with a kind of {kinds}.")
        if kind in prices:
            raise Refusal(CommandCode.USAGE, f"The price of {kind} is given twice; give it once.")
        prices[kind] = price
    return prices


def _reviewer(given: str) -> tuple[str, str | None]:
    """A licence and its program, as given on the command line.

    Raises:
        Refusal: `usage`.
    """
    licence, equals, program = given.partition("=")
    if not licence or (equals and not program):
        raise Refusal(CommandCode.USAGE, "A reviewer is given as LICENCE=EXE, a simulated one as LICENCE.")
    return str(absolute(licence)), str(absolute(program)) if program else None


def _planned(order: QuickOrder, out: Path, around: Surroundings, *, allow_missing_oracle: bool) -> Planned:
    """The plan of an order, in its folder."""
    with (
        state_root(around) as state,
        PrivateRoot.create(out, RootKind.OUT, around=around, checkout=checkout()) as root,
        _laid(root, quick_study(order)),
        _in_words_of_the_line(),
    ):
        key = signer(None, state)
        loaded = load_study(around.fs, out / STUDY_FILE)
        tell_left_out(loaded)
        resumed = root.exists(PLAN) and root.exists(PLAN_SEAL)
        if resumed:
            screen.complain(
                "The plan is there already; its checks were made before it, and are not repeated."
            )
        return plan_study(
            PlanRequest(
                loaded=loaded,
                out=out,
                key=key,
                trusted=trusted_keys(state, key),
                around=around,
                checkout=checkout(),
                state=state,
                allow_missing_oracle=allow_missing_oracle,
                # A plan that holds other inputs is refused, and those it holds passed.
                checked=CheckReport((), oracle_needed=False) if resumed else None,
                on_task=tell_task,
            )
        )


@contextmanager
def _laid(root: PrivateRoot, data: bytes) -> Iterator[None]:
    """Have the study file in its folder; one that is new and comes to no plan is taken away again.

    A line with a wrong argument could not be corrected otherwise.

    Raises:
        StudyError: `plan_exists`.
    """
    new = not root.exists(STUDY_FILE)
    try:
        root.publish(STUDY_FILE, data)
    except FileError as error:
        if error.code is not FileCode.EXISTS_DIFFERENT:
            raise
        sentence = "this folder holds a study of other arguments; give another folder."
        raise StudyError(StudyCode.PLAN_EXISTS, STUDY_FILE, sentence) from error
    try:
        yield
    finally:
        if new and not root.exists(PLAN):
            root.remove(STUDY_FILE)


@contextmanager
def _in_words_of_the_line() -> Iterator[None]:
    """Name faults by the options that they come from: nobody wrote the study file.

    Raises:
        StudyError: as it was, at another place.
    """
    try:
        yield
    except StudyFileError as error:
        fault = error.faults[0]
        raise StudyError(error.code, _option(fault.pointer), fault.sentence) from error
    except StudyError as error:
        raise StudyError(error.code, _option(error.where), error.sentence) from error


def _option(where: str) -> str:
    """The option that a place of the study file comes from, else the place."""
    return next((option for start, option in _OPTIONS.items() if where.startswith(start)), where)


def _carried_out(out: Path, crew: Crew, *, as_json: bool) -> int:
    """Run, judge and report."""
    around, halt = surroundings(), Halt()
    with (
        told_how_to_go_on(screen.complain, lambda: "the same line goes on."),
        state_root(around) as state,
        StudyRoot.open(absolute(out), around=around, checkout=checkout()) as study,
        crash.kept_in(study.root),
    ):
        with (
            StudyProgress(study.plan.name, study.plan.allocation.slots) as progress,
            draining(halt),
            at_work(crew, study, state, halt, progress) as parts,
        ):
            outcome = run_study(parts)
        if outcome.status is not RunStatus.COMPLETE:
            return _stopped(outcome, as_json=as_json)
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


def _stopped(outcome: RunOutcome, *, as_json: bool) -> int:
    counts = outcome.counts
    screen.results(
        {"run_status": str(outcome.status), "slots": counts.slots, "ended": counts.ended}, as_json=as_json
    )
    if outcome.status is RunStatus.BLOCKED:
        tell_blocked(outcome)
        return ExitCode.NOT_PASSED
    screen.complain("Drained; the same line goes on.")
    return _DRAINED


def _told(results: Results, *, as_json: bool) -> int:
    spent, decide = results.usage.total, results.primary.to_decide
    screen.results(
        {
            **report_values(results, RESULTS_PATH, as_json=as_json),
            "tokens": spent.tokens,
            "cost_units": screen.rounded(spent.cost_units),
            "wall_seconds": screen.rounded(spent.wall_seconds),
            "to_decide_trials": decide and decide.trials,
            "to_decide_cost_units": decide and screen.rounded(decide.cost_units),
        },
        as_json=as_json,
    )
    tell_sentences(results)
    return exit_of(results, None)
