"""`accepted-outcome`, also `run.py accepted-outcome`: whether an agent completed an issue, and what follows.

Source: outcome.md, sections 11 and 12.

| exit | meaning |
|---|---|
| 0 | accepted; a record was stored; may be closed or was closed; printed |
| 1 | not accepted; of `close` also accepted and withheld |
| 2 | usage, or an error of the input |
| 3 | undecidable: contract, store, policy or a needed record cannot be trusted; also anything unforeseen |
| 4 | not applicable; 0 with `--allow-not-applicable` |
| 128+n | ended by signal n; 141 when nobody reads stdout any more |

Results go to stdout, sentences for people to stderr; with `--json` stdout holds one object.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skill_effectiveness.acceptance.outcome.bound import work_bound
from skill_effectiveness.acceptance.outcome.claim import read_claim
from skill_effectiveness.acceptance.outcome.claims import ClaimKey, Ledger
from skill_effectiveness.acceptance.outcome.closedloop import read_loop
from skill_effectiveness.acceptance.outcome.closure import Closing, close, consider
from skill_effectiveness.acceptance.outcome.contract import load_contract
from skill_effectiveness.acceptance.outcome.errors import OutcomeCode, OutcomeError
from skill_effectiveness.acceptance.outcome.evaluate import evaluate
from skill_effectiveness.acceptance.outcome.issues import IssuePlace, issue_key, issue_reference, read_issue
from skill_effectiveness.acceptance.outcome.project import project
from skill_effectiveness.acceptance.outcome.recording import (
    NewEdge,
    add_attempt,
    add_edge,
    add_reference,
    record_of,
)
from skill_effectiveness.acceptance.outcome.records import Attempt, ClosingReference
from skill_effectiveness.acceptance.outcome.sibling_records import Shown
from skill_effectiveness.acceptance.outcome.store import reading, writing
from skill_effectiveness.acceptance.outcome.submission import (
    NOT_RECORDED,
    public_form,
    read_citations,
    submit,
)
from skill_effectiveness.acceptance.outcome.words import Result
from skill_effectiveness.cli import accepted_outcome_door, screen
from skill_effectiveness.cli.accepted_outcome_door import ExitCode, UsageRefused
from skill_effectiveness.cli.door import absolute, checkout, surroundings
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.evidence.root import state_path
from skill_effectiveness.evidence.strict import Profile, read_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skill_effectiveness.acceptance.outcome.claims import ClaimRow

FILE_BYTES: Final = 1_048_576

app = typer.Typer(
    name=accepted_outcome_door.PROGRAM,
    help="Grade the claim that an agent completed an issue, and close the issue if the claim may.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
attempt_app = typer.Typer(add_completion=False, help="Record attempts.", rich_markup_mode=None)
edge_app = typer.Typer(add_completion=False, help="Record evidence.", rich_markup_mode=None)
reference_app = typer.Typer(
    add_completion=False, help="Record commits that name an issue.", rich_markup_mode=None
)
app.add_typer(attempt_app, name="attempt")
app.add_typer(edge_app, name="edge")
app.add_typer(reference_app, name="reference")

Issue = Annotated[
    str | None,
    typer.Option(
        help="Needed: OWNER/NAME#N, or a Markdown file with --repository and --number.", show_default=False
    ),
]
Repository = Annotated[str | None, typer.Option(help="Repository of the issue.", show_default=False)]
Number = Annotated[int | None, typer.Option(help="Number of the issue.", show_default=False)]
AttemptId = Annotated[
    str | None, typer.Option("--attempt", help="Needed: id of the attempt.", show_default=False)
]
Commit = Annotated[str | None, typer.Option(help="Full commit id.", show_default=False)]
Store = Annotated[Path | None, typer.Option(help="Private store of all tools.", show_default=False)]
Exempt = Annotated[bool, typer.Option("--allow-not-applicable", help="Exit 0 where nothing is graded.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]


def main(arguments: Sequence[str] | None = None, called: str = accepted_outcome_door.PROGRAM) -> int:
    """Carry out one command line (default: the process's own) and answer its exit code."""
    return accepted_outcome_door.main(app, arguments, called)


def place_of(
    issue: str | None, repository: str | None, number: int | None, **others: str | None
) -> IssuePlace:
    """The issue that the common options name.

    Args:
        issue: of the common options.
        repository: likewise.
        number: likewise.
        others: what the command cannot do without beside them, so that all that is missing is told at once.

    Raises:
        UsageRefused: they name none, or another option is missing.
        OutcomeError: `record_invalid`.
    """
    named = issue or (repository is not None and number is not None) or None
    _demand({"issue": named, **others})
    if repository is not None and number is not None:
        return IssuePlace(issue_key(repository, number), absolute(issue) if issue else None)
    key = issue_reference(issue or "")
    if key is None or repository is not None or number is not None:
        raise UsageRefused("an issue is OWNER/NAME#N, or a file with --repository and --number")
    return IssuePlace(key)


def demanded(**options: str | None) -> tuple[str, ...]:
    """The values of options that a command cannot do without, in their order.

    Raises:
        UsageRefused: some are missing or empty; all of them are named.
    """
    _demand(options)
    return tuple(value for value in options.values() if value)


def _demand(options: Mapping[str, object]) -> None:
    if missing := [f"--{name}" for name, value in options.items() if not value]:
        raise UsageRefused(f"missing {', '.join(missing)}")


def _store(path: Path | None) -> Path:
    return state_path(surroundings()) if path is None else absolute(path)


def _file(path: Path, code: OutcomeCode) -> bytes:
    try:
        return read_public(surroundings().fs, absolute(path), FILE_BYTES)
    except EvidenceError as error:
        raise OutcomeError(
            code, f"{error.faults[0].sentence} Nothing was done.", f": {error.code}"
        ) from error


def _show(values: Mapping[str, object], lines: Iterable[tuple[str, object]], *, as_json: bool) -> None:
    """One object for machines, or `key=value` lines, of which a key may stand more than once."""
    if as_json:
        screen.results(values, as_json=True)
        return
    for key, value in lines:
        screen.line(f"{key}={screen.spelled(value)}")


def _exit(result: Result, *, exempt: bool) -> int:
    if result is Result.ACCEPTED:
        return ExitCode.ACCEPTED
    if result is Result.NOT_APPLICABLE:
        return ExitCode.ACCEPTED if exempt else ExitCode.NOT_APPLICABLE
    return ExitCode.NOT_ACCEPTED


@app.command("contract", short_help="Print or check the contract.")
def contract_command(
    *,
    check: Annotated[
        Path | None, typer.Option(help="A contract file to hold against the code.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Print the contract, or check a file: exit 3 when it says something else than the code does."""
    document = load_contract(surroundings().fs, None if check is None else absolute(check))
    if check is None:
        screen.results(document.model_dump(mode="json"), as_json=True)
    else:
        values = {"contract": document.contract, "version": document.version}
        _show(values, values.items(), as_json=as_json)
    return ExitCode.ACCEPTED


@app.command("grade", short_help="Grade a claim that is written out.")
def grade_command(
    claim: Annotated[Path | None, typer.Argument(metavar="CLAIM.json", help="The claim.")] = None,
    *,
    public: Annotated[bool, typer.Option("--public", help="What everybody may see.")] = False,
    allow_not_applicable: Exempt = False,
    as_json: AsJson = False,
) -> int:
    """Grade one claim; stores nothing."""
    if claim is None:
        raise UsageRefused("missing CLAIM.json")
    read = read_claim(_file(claim, OutcomeCode.CLAIM_INVALID))
    load_contract(surroundings().fs)
    outcome = evaluate(read)
    reasons = [reason.text for reason in outcome.reasons]
    if public:
        shown = project(outcome)
        screen.results(shown, as_json=True)
        return _exit(outcome.result, exempt=allow_not_applicable)
    accepted = outcome.accepted.to_json() if outcome.accepted else None
    values = {"state": outcome.result.value, "reasons": reasons, "accepted": accepted}
    lines = [("state", outcome.result.value), *(("reason", reason) for reason in reasons)]
    if outcome.accepted:
        lines += [("evidenced", each.criterion) for each in outcome.accepted.criteria]
    _show(values, lines, as_json=as_json)
    return _exit(outcome.result, exempt=allow_not_applicable)


@attempt_app.command("add")
def attempt_add_command(
    *,
    attempt_id: Annotated[
        str | None, typer.Option("--id", help="Needed: id of the attempt.", show_default=False)
    ] = None,
    issue: Issue = None,
    repository: Repository = None,
    number: Number = None,
    actor: Annotated[str | None, typer.Option(help="Needed: agent or human.", show_default=False)] = None,
    principal: Annotated[
        str | None, typer.Option(help="Who asked for the work, TYPE:ID.", show_default=False)
    ] = None,
    budget: Annotated[str | None, typer.Option(help="A JSON object.", show_default=False)] = None,
    state: Annotated[
        str | None,
        typer.Option(help="queued, running, finished, failed or cancelled.", show_default=False),
    ] = None,
    commit: Commit = None,
    session: Annotated[str | None, typer.Option(help="Session of the agent.", show_default=False)] = None,
    from_closedloop: Annotated[
        Path | None,
        typer.Option(help="Folder of a run: budget, state and commit are its.", show_default=False),
    ] = None,
    job: Annotated[str | None, typer.Option(help="Job of that run.", show_default=False)] = None,
    store: Store = None,
    as_json: AsJson = False,
) -> int:
    """Record an attempt, or how far a known one has come."""
    further = {} if from_closedloop is not None else {"state": state}
    place = place_of(issue, repository, number, id=attempt_id, actor=actor, **further)
    attempt_id, actor = demanded(id=attempt_id, actor=actor)
    value: dict[str, object] = {
        "repository": place.key.repository,
        "issue_number": place.key.number,
        "attempt_id": attempt_id,
        "actor": actor,
        "principal": principal,
        "session": session,
    }
    if from_closedloop is None:
        (state,) = demanded(state=state)
        value |= {"state": state, "budget": _budget(budget), "commit": commit and commit.lower()}
        value |= {"source": "manual"}
    else:
        if state or commit or budget:
            raise UsageRefused("--from-closedloop reads budget, state and commit itself")
        run = read_loop(absolute(from_closedloop), job, surroundings())
        value |= {"state": run.state.value, "budget": run.budget, "commit": run.commit}
        value |= {"source": "closedloop"}
    attempt = record_of(Attempt, value)
    with writing(_store(store), surroundings(), checkout(), "record an attempt") as desk:
        add_attempt(desk, attempt)
    stored = attempt.model_dump(mode="json")
    told = [(name, stored[name]) for name in ("attempt_id", "state", "commit")]
    _show(stored, told, as_json=as_json)
    return ExitCode.ACCEPTED


def _budget(text: str | None) -> object:
    if text is None:
        return None
    try:
        return read_json(text.encode("utf-8", "surrogatepass"), Profile.WIRE, want_object=True)
    except EvidenceError as error:
        sentence = f"{error.faults[0].sentence} Nothing was stored."
        raise OutcomeError(OutcomeCode.RECORD_INVALID, sentence, " at /budget") from error


@reference_app.command("add")
def reference_add_command(
    *,
    issue: Issue = None,
    repository: Repository = None,
    number: Number = None,
    commit: Commit = None,
    closed_by: Annotated[
        str | None, typer.Option(help="The person who closed the issue by it.", show_default=False)
    ] = None,
    store: Store = None,
    as_json: AsJson = False,
) -> int:
    """Record that a commit names an issue, so that evidence at it may be recorded."""
    place = place_of(issue, repository, number, commit=commit)
    (commit,) = demanded(commit=commit)
    value: dict[str, object] = {
        "repository": place.key.repository,
        "issue_number": place.key.number,
        "commit": commit.lower(),
        "closed_by_user_id": closed_by,
    }
    reference = record_of(ClosingReference, value)
    with writing(_store(store), surroundings(), checkout(), "record a reference") as desk:
        add_reference(desk, reference)
    stored = reference.model_dump(mode="json")
    _show(stored, stored.items(), as_json=as_json)
    return ExitCode.ACCEPTED


@edge_app.command("add")
def edge_add_command(
    *,
    issue: Issue = None,
    repository: Repository = None,
    number: Number = None,
    family: Annotated[
        str | None, typer.Option(help="qualification, build, deployment or push.", show_default=False)
    ] = None,
    commit: Commit = None,
    result: Annotated[str | None, typer.Option(help="The receipt's word.", show_default=False)] = None,
    receipt: Annotated[
        str | None, typer.Option(help="Reference of a build, deployment or push.", show_default=False)
    ] = None,
    environment: Annotated[str | None, typer.Option(help="Of a deployment.", show_default=False)] = None,
    decision: Annotated[Path | None, typer.Option(help="A Closeout decision.", show_default=False)] = None,
    item: Annotated[str | None, typer.Option(help="One item of it.", show_default=False)] = None,
    record: Annotated[
        Path | None, typer.Option(help="The record that decided the item.", show_default=False)
    ] = None,
    milestone: Annotated[
        str | None, typer.Option(help="Run that closed a milestone.", show_default=False)
    ] = None,
    repository_folder: Annotated[
        Path, typer.Option("--checkout", help="A repository that has the commit.")
    ] = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> int:
    """Record a receipt that is about an issue at a commit."""
    place = place_of(issue, repository, number, family=family)
    (family,) = demanded(family=family)
    shown = Shown(
        decision=None if decision is None else absolute(decision),
        item=item,
        record=None if record is None else absolute(record),
        milestone=milestone,
    )
    new = NewEdge(
        issue=place.key,
        commit=commit and commit.lower(),
        family=family,
        result=result,
        receipt=receipt,
        environment=environment,
        shown=shown,
        checkout=absolute(repository_folder),
    )
    with writing(_store(store), surroundings(), checkout(), "record an edge") as desk:
        edge = add_edge(desk, new, surroundings())
    stored = edge.model_dump(mode="json")
    told = [(name, stored[name]) for name in ("edge_id", "family", "result", "commit")]
    _show(stored, told, as_json=as_json)
    return ExitCode.ACCEPTED


@app.command("submit", short_help="Grade a claim from records.")
def submit_command(
    *,
    issue: Issue = None,
    repository: Repository = None,
    number: Number = None,
    attempt: AttemptId = None,
    evidence: Annotated[
        Path | None, typer.Option(help="Which edge satisfied which criterion.", show_default=False)
    ] = None,
    store: Store = None,
    allow_not_applicable: Exempt = False,
    as_json: AsJson = False,
) -> int:
    """Grade a claim from records and store the grading; closes nothing."""
    cited = None if evidence is None else str(evidence)
    place = place_of(issue, repository, number, attempt=attempt, evidence=cited)
    attempt, named = demanded(attempt=attempt, evidence=cited)
    citations = read_citations(_file(Path(named), OutcomeCode.CLAIM_INVALID))
    around = surroundings()
    with writing(_store(store), around, checkout(), "grade a claim", NOT_RECORDED) as desk:
        judged = submit(desk, place, attempt, citations, around)
        row = desk.ledger.row(judged.key)
    grading = judged.grading
    may = grading.state is Result.ACCEPTED and judged.withheld is None
    values = {
        "state": grading.state.value,
        "reasons": list(grading.reasons),
        "may_close": may,
        "claim": None if row is None else row.model_dump(mode="json"),
    }
    lines = [
        ("state", grading.state.value),
        *(("reason", reason) for reason in grading.reasons),
        ("may_close", may),
    ]
    _show(values, lines, as_json=as_json)
    return _exit(grading.state, exempt=allow_not_applicable)


@app.command("close", short_help="Close the issue if its claim may.")
def close_command(
    *,
    issue: Issue = None,
    repository: Repository = None,
    number: Number = None,
    attempt: AttemptId = None,
    execute: Annotated[bool, typer.Option("--execute", help="Close it; otherwise only say so.")] = False,
    store: Store = None,
    allow_not_applicable: Exempt = False,
    as_json: AsJson = False,
) -> int:
    """Close the issue if its claim may; without --execute nothing changes."""
    place = place_of(issue, repository, number, attempt=attempt)
    (attempt,) = demanded(attempt=attempt)
    around = surroundings()
    if execute:
        with writing(_store(store), around, checkout(), "close an issue", NOT_RECORDED) as desk:
            found = close(desk, place, attempt, around)
    else:
        found = consider(reading(_store(store), around, checkout()), place, attempt, around)
    _show_closing(found, as_json=as_json)
    if found.state is Result.ACCEPTED:
        return ExitCode.ACCEPTED if found.may else ExitCode.NOT_ACCEPTED
    return _exit(found.state, exempt=allow_not_applicable)


def _show_closing(found: Closing, *, as_json: bool) -> None:
    values = {
        "state": found.state.value,
        "reasons": list(found.reasons),
        "may_close": found.may,
        "closed": found.closed,
        "claim": None if found.row is None else found.row.model_dump(mode="json"),
    }
    lines = [
        ("state", found.state.value),
        *(("reason", reason) for reason in found.reasons),
        ("may_close", found.may),
        ("closed", found.closed),
    ]
    _show(values, lines, as_json=as_json)


@app.command("show", short_help="Show a stored claim.")
def show_command(
    *,
    issue: Issue = None,
    repository: Repository = None,
    number: Number = None,
    attempt: AttemptId = None,
    public: Annotated[bool, typer.Option("--public", help="What everybody may see.")] = False,
    store: Store = None,
    as_json: AsJson = False,
) -> int:
    """Show a stored claim and its gradings, or its public form."""
    place = place_of(issue, repository, number, attempt=attempt)
    (attempt,) = demanded(attempt=attempt)
    found = reading(_store(store), surroundings(), checkout())
    known = found.ledger.attempts.get(attempt)
    commit = "" if known is None else known.commit or ""
    key = ClaimKey(*place.key, attempt, commit)
    row = found.ledger.row(key)
    if row is None:
        raise OutcomeError(OutcomeCode.CLAIM_NOT_GRADED, "There is no such claim; submit it first.")
    if public:
        screen.results(public_form(row, found), as_json=True)
        return ExitCode.ACCEPTED
    gradings = [
        {"graded_at": when, "state": grading.state.value, "reasons": list(grading.reasons)}
        for when, grading in found.ledger.gradings(key)
    ]
    _show(
        {"claim": row.model_dump(mode="json"), "gradings": gradings}, _lines(row, gradings), as_json=as_json
    )
    return ExitCode.ACCEPTED


def _lines(row: ClaimRow, gradings: Sequence[Mapping[str, object]]) -> Iterable[tuple[str, object]]:
    # What does not apply is left out: it would read as something that is not known.
    yield from row.model_dump(mode="json", exclude={"reasons", "criteria"}, exclude_none=True).items()
    for reason in row.reasons:
        yield "reason", reason
    for each in row.criteria:
        yield "criterion", each.criterion
        yield "evidence", each.evidence if each.evidence is not None else "private"
    for grading in gradings:
        yield "graded", f"{grading['graded_at']} {grading['state']}"


@app.command("bound", short_help="Say how much work an issue buys.")
def bound_command(
    *,
    issue: Issue = None,
    repository: Repository = None,
    number: Number = None,
    milliseconds: Annotated[
        int | None, typer.Option(help="Ask for less; more is never granted.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Say how much work an issue buys, on which branch, and what the agent is told."""
    place = place_of(issue, repository, number)
    around = surroundings()
    body = read_issue(place, Ledger(), around).body
    bound = work_bound(*place.key, body, milliseconds)
    values = bound.to_json()
    lines = [(name, value) for name, value in values.items() if name != "missing"]
    lines += [("missing", name) for name in bound.missing]
    _show(values, lines, as_json=as_json)
    return ExitCode.ACCEPTED
