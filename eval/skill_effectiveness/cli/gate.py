"""`run.py gate`: the pilot gate and what is made of its verdicts (trials.md, section 9)."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated, Final

import typer

from skill_effectiveness.cli import screen
from skill_effectiveness.cli.boundary import PREFIX, ExitCode
from skill_effectiveness.cli.door import absolute, surroundings
from skill_effectiveness.cli.gate_run import GateOptions, run_gate
from skill_effectiveness.cli.keys import AsJson  # noqa: TC001 - likewise
from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.evidence.fsops import read_public, write_new_public
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.trials.replication import Unloadable, establish, read_summary

app = typer.Typer(
    add_completion=False, help="Judge pilots, and sets of their verdicts.", rich_markup_mode=None
)

SUMMARY_LIMIT: Final = 1_048_576


@app.callback(invoke_without_command=True)
def gate(
    context: typer.Context,
    *,
    bundle: Annotated[Path | None, typer.Option(help="Folder of the bundle.  [required]")] = None,
    tasks: Annotated[
        Path | None, typer.Option(help="JSON array of the full task records.  [required]")
    ] = None,
    manifests: Annotated[
        Path | None, typer.Option(help="JSON array of the arm manifests.  [required]")
    ] = None,
    trials: Annotated[Path | None, typer.Option(help="JSONL file of the plan rows.  [required]")] = None,
    store: Annotated[
        Path | None, typer.Option(help="Root of the trials; without it their sealed copies are judged.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Gates that differ from the frozen ones in tier and budgets at most.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Private folder for verdict and summary.  [required]")
    ] = None,
    as_json: AsJson = False,
) -> int | None:
    """Judge whether runner and evaluator of a pilot were valid; never whether a skill works.

    Exit 0: pass. 1: fail, or synthetic and therefore not evaluated. 2: the gate cannot be applied.
    """
    if context.invoked_subcommand is not None:
        return None
    options = GateOptions(bundle, tasks, manifests, trials, store, config, out)
    return run_gate(options, as_json=as_json)


@app.command()
def replicate(
    files: Annotated[list[Path], typer.Argument(help="Terminal verdict summaries.", metavar="FILE...")],
    *,
    out: Annotated[Path, typer.Option(help="Report to write, new.")],
    as_json: AsJson = False,
) -> int:
    """Say whether several machines came to the same advisory verdict.

    The report is no verdict. Exit 0: established. 1: not, and the report says why. 2: a file cannot be read,
    or the report not be written.
    """
    fs = surroundings().fs
    given = [read_summary(read_public(fs, absolute(file), SUMMARY_LIMIT)) for file in files]
    for file, summary in zip(files, given, strict=True):
        if isinstance(summary, Unloadable):
            screen.complain(f"{PREFIX}: {file.name}: {summary.sentence}")
    report = establish(given)
    write_new_public(fs, absolute(out), dump_line(to_json(report)))
    values: dict[str, object] = {
        "property": report.property,
        "established": report.established,
        "failures": [str(failure) for failure in report.failures] if as_json else _joined(report.failures),
        "summaries": len(report.summary_hashes),
        "result": out.name,
    }
    screen.results(values, as_json=as_json)
    return ExitCode.DONE if report.established else ExitCode.NOT_PASSED


def _joined(words: tuple[str, ...]) -> str:
    return ",".join(words) or "none"
