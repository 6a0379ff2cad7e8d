"""`run.py study init`, `check` and `plan`: before anything runs (studies.md, sections 1 and 2)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skill_effectiveness.cli import screen
from skill_effectiveness.cli.boundary import PREFIX, ExitCode
from skill_effectiveness.cli.door import absolute, checkout, surroundings
from skill_effectiveness.cli.keys import AsJson, Ask, PassphraseFd  # noqa: TC001 - typer reads the annotations
from skill_effectiveness.cli.next_step import tell_again, tell_next
from skill_effectiveness.cli.study_keys import Key, signer, state_root, trusted_keys
from skill_effectiveness.studies.checks import CheckReport, CheckStatus, check_study
from skill_effectiveness.studies.example import example_files, write_example
from skill_effectiveness.studies.loading import load_study, study_file_at
from skill_effectiveness.studies.plan_seal import PLAN
from skill_effectiveness.studies.planning import PlanRequest, plan_study
from skill_effectiveness.studies.study_file import STUDY_FILE

if TYPE_CHECKING:
    from skill_effectiveness.studies.loading import LoadedStudy
    from skill_effectiveness.studies.plan import StudyPlan

StudyPath = Annotated[
    Path, typer.Argument(help="Study file, or the folder with its study.yaml.", metavar="S")
]
MissingOracle = Annotated[
    bool, typer.Option("--allow-missing-oracle", help="A task without a solution is no fault.")
]


def init(
    name: Annotated[str, typer.Argument(help="Name of the study (a-z, 0-9, -), and of the folder to make.")],
    *,
    as_json: AsJson = False,
) -> int:
    """Write an example study into a new folder: simulated agent, real tasks and graders.

    Exit 0: written. 2: the folder exists already, or the name is none.
    """
    write_example(surroundings().fs, absolute(name), example_files(name))
    screen.results({"study": f"{name}/{STUDY_FILE}"}, as_json=as_json)
    tell_next("study", "check", name)
    return ExitCode.DONE


def check(study: StudyPath, *, allow_missing_oracle: MissingOracle = False, as_json: AsJson = False) -> int:
    """Check a study with all that it names, and try out the scripts of its tasks.

    Where nothing else is wrong, the model of a real agent is asked one thing. Exit 0: every check passed. 1:
    one failed. 2: the study file cannot be used.
    """
    around = surroundings()
    loaded = load_study(around.fs, study_path(study))
    tell_left_out(loaded)
    with state_root(around) as state:
        report = check_study(
            loaded,
            trusted=trusted_keys(state),
            around=around,
            allow_missing_oracle=allow_missing_oracle,
            on_task=tell_task,
        )
    tell_findings(report)
    screen.results(check_values(report), as_json=as_json)
    leave = ("--allow-missing-oracle",) if allow_missing_oracle else ()
    if report.passed:
        tell_next("study", "plan", study, "--out", "R", *leave)
    else:
        tell_again("study", "check", study, *leave)
    return ExitCode.DONE if report.passed else ExitCode.NOT_PASSED


def plan(
    study: StudyPath,
    *,
    out: Annotated[Path, typer.Option(help="Private folder for the study, new.", metavar="R")],
    key: Key = None,
    allow_missing_oracle: MissingOracle = False,
    ask: Ask = False,
    passphrase_fd: PassphraseFd = None,
    as_json: AsJson = False,
) -> int:
    """Check a study, freeze everything it is made of, and sign the plan.

    The checks are those of check, its question to the model among them. Exit 0: planned, or planned before
    and still the same. 1: a check failed, nothing was written. 2: the study file cannot be used, or the
    folder holds another plan.
    """
    around = surroundings()
    loaded = load_study(around.fs, study_path(study))
    tell_left_out(loaded)
    with state_root(around) as state:
        private = signer(key, state, ask=ask, descriptor=passphrase_fd)
        planned = plan_study(
            PlanRequest(
                loaded=loaded,
                out=absolute(out),
                key=private,
                trusted=trusted_keys(state, private),
                around=around,
                checkout=checkout(),
                state=state,
                allow_missing_oracle=allow_missing_oracle,
                on_task=tell_task,
            )
        )
    if planned.plan is None:
        tell_findings(planned.report)
        screen.results(check_values(planned.report), as_json=as_json)
        tell_again("study", "check", study, *(("--allow-missing-oracle",) if allow_missing_oracle else ()))
        return ExitCode.NOT_PASSED
    tell_power(planned.plan)
    screen.results(plan_values(planned.plan, out.name), as_json=as_json)
    tell_next("study", "run", out)
    return ExitCode.DONE


def plan_values(plan: StudyPlan, folder: str) -> dict[str, object]:
    """What machines are told of a plan.

    Args:
        plan: that was made.
        folder: name of its folder.
    """
    return {
        "plan_digest": plan.plan_digest,
        "trials": plan.allocation.slots,
        "power": plan.power.at_minimum_effect,
        "detectable": plan.power.detectable,
        "plan": f"{folder}/{PLAN}",
    }


def study_path(given: Path) -> Path:
    """The study file that a person meant."""
    return study_file_at(surroundings().fs, absolute(given))


def check_values(report: CheckReport) -> dict[str, object]:
    """What machines are told of the checks."""
    values: dict[str, object] = {"check_status": str(CheckStatus.PASS if report.passed else CheckStatus.FAIL)}
    return values | {f"check.{result.name}": str(result.status) for result in report.results}


def tell_findings(report: CheckReport) -> None:
    """Every finding on stderr."""
    for result in report.results:
        for finding in result.findings:
            screen.complain(f"{PREFIX}: {result.name}: {finding}")


def tell_left_out(loaded: LoadedStudy) -> None:
    """What a generated placebo has no counterpart of, on stderr."""
    for path in loaded.left_out:
        screen.complain(f"The placebo leaves out {path}: only texts are imitated.")


def tell_task(task_id: str) -> None:
    """Whose scripts are tried out now."""
    screen.complain(f"Trying out the scripts of task {task_id}.")


def tell_power(plan: StudyPlan) -> None:
    """What a person should know of a plan before anything is paid."""
    half, power = 0.5, plan.power.at_minimum_effect
    if power < half:
        screen.complain(
            f"With {len(plan.tasks)} tasks the least effect worth acting on would be found in "
            f"{power:.0%} of such studies only; add tasks."
        )
