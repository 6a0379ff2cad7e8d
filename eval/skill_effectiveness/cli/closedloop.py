"""`closedloop`, also `run.py closedloop`: run jobs until files and commands say that they are done.

Source: loop.md, sections 8, 9 and 13.

| exit | meaning |
|---|---|
| 0 | passed; an inspecting command answered |
| 2 | exhausted |
| 3 | limitCycle |
| 4 | aborted; also an interrupt |
| 5 | invalid configuration or usage; nothing ran |
| 1 | something unforeseen; no outcome |

An inspecting command that is interrupted ends with 128+n. Results go to stdout, progress and sentences for
people to stderr; with `--json` stdout holds one result object, or the stored lines of a watched run.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skill_effectiveness.acceptance.loop.config import read_config
from skill_effectiveness.acceptance.loop.errors import LoopRefusedError
from skill_effectiveness.acceptance.loop.inspection import Runs
from skill_effectiveness.acceptance.loop.limits import CONFIG_BYTES
from skill_effectiveness.acceptance.loop.repository import repository_at
from skill_effectiveness.acceptance.loop.runner import run_jobs, unheard
from skill_effectiveness.acceptance.loop.summary import RunSummary
from skill_effectiveness.acceptance.loop.words import EXITS, INVALID, REFUSED_EXIT, Outcome
from skill_effectiveness.cli import closedloop_door, screen
from skill_effectiveness.cli.closedloop_progress import end_lines, progress_line
from skill_effectiveness.cli.door import absolute, surroundings
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.evidence.signals import Terminated

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from skill_effectiveness.acceptance.loop.config import Configuration

POLL_SECONDS: Final = 0.2
_RUN: Final = "run"
_COMMANDS: Final = frozenset({_RUN, "runs", "status", "watch"})

app = typer.Typer(
    name=closedloop_door.PROGRAM,
    help=(
        "closedloop [--json] [--keep] [--quiet] CONFIG runs the jobs of a configuration until what is "
        "measured, never what an agent prints, says that they are done. The commands below look at runs."
    ),
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
Repo = Annotated[
    Path | None, typer.Option(help="Any folder of the repository; the current one.", show_default=False)
]
RunId = Annotated[str | None, typer.Argument(metavar="ID", help="Id of a run; the newest by default.")]


def main(arguments: Sequence[str] | None = None, called: str = closedloop_door.PROGRAM) -> int:
    """Carry out one command line (default: the process's own) and answer its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    first = next((word for word in words if not word.startswith("-")), None)
    asks = not words or "--help" in words
    if first not in _COMMANDS and not asks:
        words = [_RUN, *words]
    return closedloop_door.main(app, words, called)


@app.command(_RUN, hidden=True)
def run_command(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="The configuration, as JSON.")],
    *,
    as_json: AsJson = False,
    keep: Annotated[bool, typer.Option("--keep", help="Failed worktrees stay.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> int:
    """Run the jobs of a configuration."""
    isolated: frozenset[str] = frozenset()
    try:
        configuration = _configuration(config)
        isolated = frozenset(job.name for job in configuration.jobs if job.keys.isolate)
        summary = run_jobs(
            configuration,
            around=surroundings(),
            keep=keep,
            observer=unheard if quiet else _tell_progress,
        )
    except LoopRefusedError as refused:
        if as_json:
            _print(RunSummary(outcome=INVALID, exit=REFUSED_EXIT, run=None, reason=str(refused)).line())
        raise
    except Terminated:
        # Before there was a run.
        exit_code = EXITS[Outcome.ABORTED]
        summary = RunSummary(outcome=Outcome.ABORTED, exit=exit_code, run=None, reason="aborted: interrupted")
    for line in end_lines(summary, isolated):
        screen.complain(line)
    if as_json:
        _print(summary.line())
    return summary.exit


def _configuration(path: Path) -> Configuration:
    place = absolute(path)
    around = surroundings()
    try:
        resolved = Path(around.fs.resolve(str(place)))
        data = read_public(around.fs, resolved, CONFIG_BYTES)
    except (EvidenceError, OSError, ValueError) as error:
        why = str(error.code) if isinstance(error, EvidenceError) else "missing"
        raise LoopRefusedError(f"config: the file cannot be read ({why})") from None
    return read_config(data, resolved)


def _tell_progress(event: dict[str, Any]) -> None:
    line = progress_line(event)
    if line is not None:
        screen.complain(line)


@app.command("runs")
def runs_command(*, repo: Repo = None) -> int:
    """List the runs of the repository, oldest first."""
    runs = _runs(repo)
    for run in runs.ids():
        try:
            status = runs.status(run)
        except LoopRefusedError as broken:
            screen.line(f"{run} broken: {broken}")
            continue
        outcome = f" {status.outcome}" if status.outcome else ""
        screen.line(f"{run} {status.state.value}{outcome} ({status.attempts} attempts)")
    return 0


@app.command("status")
def status_command(run: RunId = None, *, repo: Repo = None, as_json: AsJson = False) -> int:
    """Print the current state of a run."""
    runs = _runs(repo)
    status = runs.status(runs.chosen(run))
    plain = status.model_dump(mode="json")
    if not as_json:
        last = plain.pop("last_attempt") or {}
        plain |= {f"last_attempt_{name}": value for name, value in last.items()}
        plain["worktrees"] = " ".join(status.worktrees) or "none"
        plain = {name: "none" if value is None else value for name, value in plain.items()}
    screen.results(plain, as_json=as_json)
    return 0


@app.command("watch")
def watch_command(run: RunId = None, *, repo: Repo = None, as_json: AsJson = False) -> int:
    """Follow a run until it is over."""
    runs = _runs(repo)
    chosen = runs.chosen(run)
    runs.status(chosen)
    with runs.followed(chosen) as follower:
        over = False
        while True:
            for stored, event in follower.lines():
                line = progress_line(event, hint=False)
                if as_json:
                    _print(stored)
                elif line is not None:
                    screen.line(line)
            if over:
                return 0
            # Once more: it may have written its last lines before it ended.
            over = follower.over()
            if not over:
                surroundings().sleep(POLL_SECONDS)


def _runs(repo: Path | None) -> Runs:
    around = surroundings()
    return Runs(repository_at(absolute(repo or Path()), around, anywhere=True), around)


def _print(line: bytes) -> None:
    """Bytes on stdout, as they are."""
    screen.raw(line)
