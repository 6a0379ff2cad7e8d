"""`run.py activation`: that somebody used a verdict, for the record (studies.md section 8)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skill_effectiveness.cli import screen
from skill_effectiveness.cli.boundary import ExitCode
from skill_effectiveness.cli.door import absolute, surroundings
from skill_effectiveness.cli.keys import AsJson, public_key
from skill_effectiveness.cli.study_report import ReportExit, reason_of
from skill_effectiveness.evidence.fsops import read_public, write_new_public
from skill_effectiveness.studies.activation import (
    activation_line,
    claimed_results,
    differing_field,
    read_activation,
    record_activation,
    verdict_hash,
)
from skill_effectiveness.studies.verification import verify_bundle

if TYPE_CHECKING:
    from skill_effectiveness.studies.activation import ActivationRecord
    from skill_effectiveness.studies.results import Results
    from skill_effectiveness.studies.verification import StudyVerification

app = typer.Typer(
    add_completion=False,
    help="State that a study's verdict was used; authorises nothing.",
    rich_markup_mode=None,
)

_LIMIT: Final = 67_108_864

BundlePath = Annotated[Path, typer.Option(help="Folder of the bundle.", metavar="B")]
Pub = Annotated[Path, typer.Option(help="Public key file of the signer of the bundle.")]
RecordFile = Annotated[Path, typer.Argument(help="Activation record.", metavar="F")]


@app.command()
def record(  # one parameter per option is what a command line is
    *,
    results: Annotated[
        Path, typer.Option(help="The results that were used: report/results.json of the bundle.", metavar="F")
    ],
    bundle: BundlePath,
    pub: Pub,
    reason: Annotated[str, typer.Option(help="What the verdict was used for.", metavar="T")],
    out: Annotated[Path, typer.Option(help="File for the record, new.", metavar="F2")],
    as_json: AsJson = False,
) -> int:
    """Verify a bundle, then state that somebody used its verdict.

    Nothing is written but with exit 0. Exit 0: recorded. 1: the bundle does not verify, its verdict did not
    pass, or these are not its results. 2: the results lack their limitations or were edited. 3: the study is
    by design not evaluated.
    """
    around = surroundings()
    given, told = claimed_results(read_public(around.fs, absolute(results), _LIMIT)), reason_of(reason)
    found = _verified(bundle, pub)
    status, code = _judged(given, found)
    if status == "recorded" and found.merkle_root is not None:
        made = record_activation(given, found.merkle_root, told, around.now())
        write_new_public(around.fs, absolute(out), activation_line(made))
    screen.results(
        {
            "activation_status": status,
            "verdict_hash": verdict_hash(given.verdict),
            "verdict_tier": given.verdict.verdict_tier and str(given.verdict.verdict_tier),
        },
        as_json=as_json,
    )
    return code


def _judged(given: Results, found: StudyVerification) -> tuple[str, int]:
    """Whether results may be recorded as used, and how the command ends."""
    if not found.passed or found.results is None:
        screen.complain("The bundle does not verify, so it shows no verdict; run verify to see why.")
        return "bundle_not_verified", ExitCode.NOT_PASSED
    if given != found.results:
        screen.complain("These are not the results of the bundle; take report/results.json out of it.")
        return "differs", ExitCode.NOT_PASSED
    status = given.verdict.gate_status
    if status == "fail":
        screen.complain("The verdict did not pass, so there is nothing that could have been used.")
        return "not_passed", ExitCode.NOT_PASSED
    if status != "pass":
        screen.complain("The study is by design not evaluated, so it has no verdict that could be used.")
        return "not_evaluated", ReportExit.NOT_EVALUATED
    return "recorded", ExitCode.DONE


@app.command()
def show(file: RecordFile, *, as_json: AsJson = False) -> int:
    """Print a record.

    Exit 0: printed. 2: it is none, was edited, or lacks the limitations.
    """
    held = _read(file)
    items = [str(item) for item in held.coverage_limitations]
    values: dict[str, object] = {
        "activation_status": "recorded",
        "verdict_hash": held.verdict_hash,
        "verdict_tier": str(held.verdict_tier),
        "coverage_limitations": items if as_json else ",".join(items) or "none",
        "merkle_root": held.merkle_root,
        "recorded_at": held.recorded_at,
        "reason": held.reason,
    }
    screen.results(values, as_json=as_json)
    return ExitCode.DONE


@app.command("verify")
def check(file: RecordFile, *, bundle: BundlePath, pub: Pub, as_json: AsJson = False) -> int:
    """Hold a record against its bundle.

    Exit 0: it states what the bundle shows. 1: it differs, or the bundle does not verify. 2: it is none.
    """
    held = _read(file)
    found = _verified(bundle, pub)
    if found.results is None or found.merkle_root is None:
        status = "bundle_not_verified"
    else:
        field = differing_field(held, found.results, found.merkle_root)
        status = "verified" if field is None else "differs"
        if field is not None:
            screen.complain(f"The record is not about this bundle: {field} differs.")
    values: dict[str, object] = {
        "activation_status": status,
        "verdict_hash": held.verdict_hash,
        "verdict_tier": str(held.verdict_tier),
    }
    screen.results(values, as_json=as_json)
    return ExitCode.DONE if status == "verified" else ExitCode.NOT_PASSED


def _read(file: Path) -> ActivationRecord:
    return read_activation(read_public(surroundings().fs, absolute(file), _LIMIT))


def _verified(bundle: Path, pub: Path) -> StudyVerification:
    around = surroundings()
    return verify_bundle(absolute(bundle), public_key(pub, around), fs=around.fs)
