"""`milestone`, also `run.py milestone`: closing a milestone over evidence that the run makes itself.

Source: milestone.md, sections 10 to 12.

| exit | meaning |
|---|---|
| 0 | closed, ok, passed |
| 1 | gate failed or pending, needs_changes, an escalation, mismatch, pending, unobserved |
| 2 | usage; an unusable run, store or input; for `audit` and `deliver` also a broken journal |
| 3 | held |
| 4 | internal or integrity failure elsewhere |
| 128+n | ended by signal n; 141 when nobody reads stdout any more |

Results go to stdout, sentences for people to stderr; with `--json` stdout holds one object. Nothing here
pushes or writes to a tracker.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from skill_effectiveness.acceptance.milestone import (
    accepting,
    auditing,
    closing,
    readback,
    reporting,
    starting,
)
from skill_effectiveness.acceptance.milestone.engines import bind_registered
from skill_effectiveness.acceptance.milestone.errors import MilestoneCode, MilestoneError, Stopped
from skill_effectiveness.acceptance.milestone.run import Site
from skill_effectiveness.acceptance.milestone.words import DeliveryWord, GateState, Outcome, Word
from skill_effectiveness.cli import milestone_door, screen
from skill_effectiveness.cli.door import absolute, surroundings
from skill_effectiveness.cli.milestone_door import ExitCode
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.evidence.root import state_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skill_effectiveness.acceptance.milestone.closing import Ended
    from skill_effectiveness.acceptance.milestone.engines import Binder

DOCUMENT_BYTES: Final = 67_108_864
_PATHS: Final = frozenset({"configuration", "repository"})
"""Members of a run's first row that hold paths of this machine, which nobody is told."""

app = typer.Typer(
    name="milestone",
    help="Close a milestone over evidence that the run makes itself.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Run = Annotated[str, typer.Option("--run", help="The run.")]
Store = Annotated[
    Path | None, typer.Option(help="Private store, absolute; in the user's state folder.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
NoRecord = Annotated[bool, typer.Option("--no-record", help="Print only; append nothing.")]


def main(
    arguments: Sequence[str] | None = None,
    called: str = milestone_door.PROGRAM,
    binder: Binder | None = None,
) -> int:
    """Carry out one command line (default: the process's own) and answer its exit code."""
    return milestone_door.main(app, arguments, called, binder)


def _site(context: typer.Context, store: Path | None) -> Site:
    """Where the verb works; a store is taken as it was typed, so that a relative one is refused."""
    around = surroundings()
    return Site(state_path(around) if store is None else store, around, context.obj or bind_registered)


def _document(path: Path, code: MilestoneCode) -> bytes:
    try:
        return read_public(surroundings().fs, absolute(path), DOCUMENT_BYTES)
    except EvidenceError as error:
        raise MilestoneError(code, f"/ cannot be read ({error.code})") from None


def _tell(value: Mapping[str, Any], lines: Mapping[str, object], *, as_json: bool) -> None:
    screen.results(value if as_json else lines, as_json=as_json)


@app.command("start")
def start_command(
    context: typer.Context,
    document: Annotated[Path, typer.Argument(metavar="MILESTONE_JSON", help="What is to be closed.")],
    *,
    config: Annotated[
        Path | None, typer.Option(help="Engine profiles and other settings.", show_default=False)
    ] = None,
    run: Annotated[str | None, typer.Option("--run", help="Name of the run.", show_default=False)] = None,
    store: Store = None,
    as_json: AsJson = False,
) -> int:
    """Begin a run; what earlier runs of the plan prove is taken over."""
    order = starting.StartOrder(
        _document(document, MilestoneCode.INPUT_INVALID),
        None if config is None else _document(config, MilestoneCode.CONFIGURATION_INVALID),
        run,
    )
    begun = starting.start(_site(context, store), order)
    for warning in begun.body["warnings"]:
        screen.complain(f"milestone: warning {warning['code']}: {warning['id']}")
    reused = [each.node for each in begun.reused]
    told = {name: value for name, value in begun.body.items() if name not in _PATHS}
    value = {"run": begun.run, **told, "reused": reused}
    lines = {
        "run": begun.run,
        "deferred": " ".join(begun.body["deferred"]),
        "reused": " ".join(reused),
        "prior": "none" if begun.body["prior"] is None else begun.body["prior"]["run"],
    }
    _tell(value, lines, as_json=as_json)
    return ExitCode.DONE


@app.command("accept")
def accept_command(
    context: typer.Context,
    *,
    run: Run,
    node: Annotated[str, typer.Option(help="The node.")],
    head: Annotated[str, typer.Option(help="Its head.")],
    criteria_digest: Annotated[str, typer.Option(help="Digest of its criteria, as accepted.")],
    receipt: Annotated[
        Path | None, typer.Option(help="Receipt of its executor; copied once.", show_default=False)
    ] = None,
    batch: Annotated[
        str | None, typer.Option(help="The commit that integrated it.", show_default=False)
    ] = None,
    author: Annotated[str, typer.Option(help="Who wrote it.")] = "",
    author_model: Annotated[str, typer.Option(help="By which model.")] = "",
    author_family: Annotated[str, typer.Option(help="Of which family.")] = "",
    store: Store = None,
    as_json: AsJson = False,
) -> int:
    """Run a node's commands at its head and accept it."""
    order = accepting.AcceptOrder(
        node,
        head,
        criteria_digest,
        None if receipt is None else absolute(receipt),
        batch,
        accepting.Author(author, author_model, author_family),
    )
    value = accepting.accept(_site(context, store), run, order)
    lines = {name: value[name] for name in ("call", "node", "head", "unit_check")}
    _tell(value, lines, as_json=as_json)
    return ExitCode.DONE


@app.command("gate")
def gate_command(
    context: typer.Context,
    *,
    run: Run,
    make: Annotated[bool, typer.Option("--make", help="First make what is missing.")] = False,
    store: Store = None,
    as_json: AsJson = False,
) -> int:
    """Judge what stands on the integrated head."""
    judged = closing.gate(_site(context, store), run, make=make)
    value = judged.plain()
    for warning in judged.warnings:
        screen.complain(f"milestone: warning {warning.code}: {' '.join(warning.argv)}")
    lines = {
        "state": judged.state.value,
        "head": judged.head,
        "need_tests": len(judged.need_tests),
        "need_qa": str(judged.need_qa).lower(),
    }
    _tell(value, lines, as_json=as_json)
    if judged.state is GateState.PASS:
        return ExitCode.DONE
    screen.complain(f"milestone: gate_{judged.state.value}: the head is not settled; see the pieces.")
    return ExitCode.NOT_PASSED


@app.command("crosscheck")
def crosscheck_command(
    context: typer.Context, *, run: Run, store: Store = None, as_json: AsJson = False
) -> int:
    """Let two passes judge the range of the passed gate."""
    ended = closing.crosscheck(_site(context, store), run)
    if ended.stop is None and ended.value["outcome"] == Word.NEEDS_CHANGES.value:
        screen.complain("milestone: needs_changes: see the findings; `milestone close` corrects once.")
        lines = {"outcome": ended.value["outcome"], "head": ended.value["crosscheck"]["head"]}
        _tell(ended.value | {"code": Word.NEEDS_CHANGES.value}, lines, as_json=as_json)
        return ExitCode.NOT_PASSED
    return _ended(ended, as_json=as_json)


@app.command("close")
def close_command(
    context: typer.Context,
    *,
    run: Run,
    recorded: Annotated[
        bool, typer.Option("--recorded", help="Close on the evidence that stands; make none.")
    ] = False,
    store: Store = None,
    as_json: AsJson = False,
) -> int:
    """Gate, crosscheck, at most one correction, close."""
    return _ended(closing.close(_site(context, store), run, recorded=recorded), as_json=as_json)


@app.command("resume")
def resume_command(context: typer.Context, *, run: Run, store: Store = None, as_json: AsJson = False) -> int:
    """Continue a close that was held or cut off."""
    return _ended(closing.resume(_site(context, store), run), as_json=as_json)


def _ended(ended: Ended, *, as_json: bool) -> int:
    head = ended.value.get("head") or (ended.value.get("crosscheck") or {}).get("head", "")
    lines = {"outcome": ended.value["outcome"], "code": ended.value.get("code", ""), "head": head}
    _tell(ended.value, lines, as_json=as_json)
    if ended.stop is None:
        return ExitCode.DONE
    screen.complain(f"milestone: {Stopped(ended.stop)}")
    return ExitCode.HELD if ended.outcome is Outcome.HELD else ExitCode.NOT_PASSED


@app.command("status")
def status_command(
    context: typer.Context,
    *,
    run: Annotated[str | None, typer.Option("--run", help="One run.", show_default=False)] = None,
    store: Store = None,
    as_json: AsJson = False,
) -> int:
    """Say where runs stand."""
    found = reporting.status(_site(context, store), run)
    if as_json:
        screen.results({"runs": found}, as_json=True)
        return ExitCode.DONE
    for each in found:
        code = f" {each['code']}" if each["code"] else ""
        screen.line(f"{each['run']}  {each['milestone']}  {each['state']}{code}")
    return ExitCode.DONE


@app.command("report")
def report_command(context: typer.Context, *, run: Run, store: Store = None, as_json: AsJson = False) -> int:
    """Report a run; with --json also upwards, which is recorded once per close."""
    told = reporting.report(_site(context, store), run, report_up=as_json)
    gate, checked = told["gate"] or {}, told["crosscheck"] or {}
    lines = {
        "state": told["state"],
        "code": told["code"] or "",
        "head": told["head"] or "",
        "gate": gate.get("state", "none"),
        "crosscheck": checked.get("word", "none"),
        "alignment": told["alignment"],
    }
    _tell(told, lines, as_json=as_json)
    for sentence in told["not_proved"]:
        screen.complain(f"milestone: not proved: {sentence}")
    return ExitCode.DONE


@app.command("audit")
def audit_command(
    context: typer.Context,
    *,
    run: Annotated[str | None, typer.Option("--run", help="The run.", show_default=False)] = None,
    acceptance: Annotated[str | None, typer.Option(help="One acceptance.", show_default=False)] = None,
    milestone: Annotated[str | None, typer.Option(help="Of this milestone.", show_default=False)] = None,
    delivery: Annotated[bool, typer.Option("--delivery", help="Read back the delivery.")] = False,
    state: Annotated[Path | None, typer.Option(help="The store.", show_default=False)] = None,
    store: Store = None,
    no_record: NoRecord = False,
    as_json: AsJson = False,
) -> int:
    """Hold every acceptance against what it rests on."""
    if (run is None) == (acceptance is None):
        raise typer.BadParameter("give --run or --acceptance, and not both")
    if state is not None and store is not None:
        raise typer.BadParameter("--state and --store are the same; give one")
    site = _site(context, state or store)
    if delivery:
        if run is None or milestone is not None:
            raise typer.BadParameter("--delivery takes --run, and neither --acceptance nor --milestone")
        return _delivered(site, run, no_record=no_record, as_json=as_json)
    order = auditing.AuditOrder(run, acceptance, milestone, record=not no_record)
    found = auditing.audit(site, order)
    results = [each.plain() for each in found.results]
    if as_json:
        screen.results({"recorded": found.recorded, "results": results, "run": found.run}, as_json=True)
    else:
        for each in found.results:
            screen.line(f"{each.acceptance}  {each.node}  {each.word}  {each.reason}".rstrip())
    if found.passed:
        return ExitCode.DONE
    worst = "mismatch" if any(each.word == "mismatch" for each in found.results) else "unobserved"
    screen.complain(f"milestone: audit_{worst}: an acceptance is not vouched for.")
    return ExitCode.NOT_PASSED


@app.command("deliver")
def deliver_command(
    context: typer.Context,
    *,
    run: Run,
    store: Store = None,
    no_record: NoRecord = False,
    as_json: AsJson = False,
) -> int:
    """Read back whether what was deferred to delivery has been fulfilled."""
    return _delivered(_site(context, store), run, no_record=no_record, as_json=as_json)


def _delivered(site: Site, run: str, *, no_record: bool, as_json: bool) -> int:
    seen = readback.deliver(site, run, record=not no_record)
    if as_json:
        screen.results(seen.value, as_json=True)
    else:
        for each in seen.value["observations"]:
            screen.line(f"{each['criterion']}  {each['kind']}  {each['state']}  {each['reason']}")
    if seen.word is DeliveryWord.PASSED:
        return ExitCode.DONE
    screen.complain(f"milestone: delivery_{seen.word}: not every declared check passes.")
    return ExitCode.NOT_PASSED
