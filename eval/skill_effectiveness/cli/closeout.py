"""`closeout`, also `run.py closeout`: what has to hold before agent work is accepted, and whether it does.

Source: closeout.md, sections 9, 11 and 13.

| exit | meaning |
|---|---|
| 0 | accepted; a valid or absent policy; a record was stored |
| 1 | rejected: a supported requirement failed |
| 2 | the invocation is invalid |
| 3 | blocked; also anything unforeseen |
| 128+n | ended by signal n; 141 when nobody reads stdout any more |

`conformance` has the table of section 13. Results go to stdout, sentences for people to stderr; with `--json`
stdout holds the document alone.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skill_effectiveness.acceptance.closeout.conformance import CaseResult, Outcome, case_names, run_case
from skill_effectiveness.acceptance.closeout.decision import text_form, to_json
from skill_effectiveness.acceptance.closeout.errors import UsageRefused
from skill_effectiveness.acceptance.closeout.evaluation import Candidate
from skill_effectiveness.acceptance.closeout.intake import Intake, add_evidence, findings_array
from skill_effectiveness.acceptance.closeout.review import TIMEOUT_MOST, TIMEOUT_SECONDS, ReviewOrder, review
from skill_effectiveness.acceptance.closeout.runner import Blocked, decide, run
from skill_effectiveness.acceptance.closeout.site import Request, Site
from skill_effectiveness.acceptance.closeout.validation import Validation, validate_policy
from skill_effectiveness.acceptance.closeout.words import GATE, NO_POLICY, PolicyFrom, Trust, Verdict
from skill_effectiveness.cli import closeout_door, crash, screen
from skill_effectiveness.cli.door import absolute, surroundings
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import read_public

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.acceptance.closeout.decision import DecisionDocument, Notice
    from skill_effectiveness.acceptance.closeout.records import ReviewRecord

FINDINGS_BYTES: Final = 16_777_216
_EXITS: Final = {Verdict.ACCEPTED: 0, Verdict.REJECTED: 1, Verdict.BLOCKED: 3}

app = typer.Typer(
    name="closeout",
    help="Say whether the work of an agent may be accepted: policy, evidence, decision.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
evidence_app = typer.Typer(
    add_completion=False, help="Hand in evidence that a runner cannot make.", rich_markup_mode=None
)
app.add_typer(evidence_app, name="evidence")

Gate = Annotated[str | None, typer.Option(help=f"The gate: {GATE}.", show_default=False)]
Base = Annotated[str | None, typer.Option(help="The base commit.", show_default=False)]
Head = Annotated[str | None, typer.Option(help="The candidate commit.", show_default=False)]
Item = Annotated[str | None, typer.Option(help="Qualified id of the review item.", show_default=False)]
Root = Annotated[Path, typer.Option(help="The top of the repository.")]
EvidenceDir = Annotated[
    Path | None, typer.Option(help="Evidence directory; ROOT/.closeout by default.", show_default=False)
]
Store = Annotated[
    Path | None, typer.Option(help="Private store of the runner's journal.", show_default=False)
]
From = Annotated[PolicyFrom, typer.Option(help="Where the policy is read.")]
Trusted = Annotated[Trust, typer.Option(help="What a command record needs besides its producer.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
Session = Annotated[str, typer.Option("--candidate-session", help="Session that made the candidate.")]
Model = Annotated[str, typer.Option("--candidate-model", help="Model that made the candidate.")]
ProviderOf = Annotated[str, typer.Option("--candidate-provider", help="Provider of that model.")]


def main(arguments: Sequence[str] | None = None, called: str = closeout_door.PROGRAM) -> int:
    """Carry out one command line (default: the process's own) and answer its exit code."""
    return closeout_door.main(app, arguments, called)


def demanded(**options: str | None) -> tuple[str, ...]:
    """The values of options that a command cannot do without, in their order.

    Raises:
        UsageRefused: one is missing or empty, or the gate is another than the one there is.
    """
    for name, value in options.items():
        if not value:
            raise UsageRefused(f"missing --{name}")
        if name == "gate" and value != GATE:
            raise UsageRefused(f"gate must be {GATE}")
    return tuple(value for value in options.values() if value)


def site_of(
    root: Path,
    evidence_dir: Path | None,
    store: Path | None,
    policy_from: PolicyFrom = PolicyFrom.WORKTREE,
    trust: Trust = Trust.PRODUCER,
) -> Site:
    """The site that the common options describe."""
    around = surroundings()
    top = absolute(root)
    # The evidence directory is reached without following a link; the way to the repository may be one. What
    # does not exist is told by whoever looks for a policy there.
    with suppress(OSError):
        top = Path(around.fs.resolve(str(top)))
    return Site(
        root=top,
        around=around,
        version=crash.version(),
        evidence=None if evidence_dir is None else absolute(evidence_dir),
        store=None if store is None else absolute(store),
        policy_from=policy_from,
        trust=trust,
    )


@app.command("validate")
def validate_command(
    *,
    base: Base = None,
    root: Root = Path(),
    evidence_dir: EvidenceDir = None,
    store: Store = None,
    policy_from: From = PolicyFrom.WORKTREE,
    trust: Trusted = Trust.PRODUCER,
    as_json: AsJson = False,
) -> int:
    """Check the policy: exit 0 for a valid or absent one, 3 for one that blocks."""
    if policy_from is PolicyFrom.BASE:
        demanded(base=base)
    found = validate_policy(site_of(root, evidence_dir, store, policy_from, trust), base)
    _warn(found.warnings)
    if found.error is not None:
        screen.complain(f"closeout: {found.error}")
    if as_json:
        screen.results(found.to_json(), as_json=True)
    elif found.error is None:
        for line in _validation_lines(found):
            screen.line(line)
    return 0 if found.error is None else 3


def _validation_lines(found: Validation) -> list[str]:
    policy = found.policy
    if policy is None or policy.absent:
        return [NO_POLICY]
    return [str(policy.path), str(policy.digest), *(item.id for item in policy.items)]


@app.command("run")
def run_command(
    *,
    gate: Gate = None,
    base: Base = None,
    head: Head = None,
    candidate_session: Session = "",
    candidate_model: Model = "",
    candidate_provider: ProviderOf = "",
    root: Root = Path(),
    evidence_dir: EvidenceDir = None,
    store: Store = None,
    policy_from: From = PolicyFrom.WORKTREE,
    trust: Trusted = Trust.PRODUCER,
    as_json: AsJson = False,
) -> int:
    """Run every command item at the candidate commit, store the evidence, print the decision."""
    gate, base, head = demanded(gate=gate, base=base, head=head)
    request = Request(base, head, Candidate(candidate_session, candidate_model, candidate_provider), gate)
    site = site_of(root, evidence_dir, store, policy_from, trust)
    try:
        return _print(run(site, request), as_json=as_json)
    except Blocked as blocked:
        return _print_blocked(blocked, as_json=as_json)


@app.command("decision")
def decision_command(
    *,
    gate: Gate = None,
    base: Base = None,
    head: Head = None,
    candidate_session: Session = "",
    candidate_model: Model = "",
    candidate_provider: ProviderOf = "",
    root: Root = Path(),
    evidence_dir: EvidenceDir = None,
    store: Store = None,
    policy_from: From = PolicyFrom.WORKTREE,
    trust: Trusted = Trust.PRODUCER,
    as_json: AsJson = False,
) -> int:
    """Print the current decision; runs nothing."""
    gate, base, head = demanded(gate=gate, base=base, head=head)
    request = Request(base, head, Candidate(candidate_session, candidate_model, candidate_provider), gate)
    site = site_of(root, evidence_dir, store, policy_from, trust)
    try:
        return _print(decide(site, request), as_json=as_json)
    except Blocked as blocked:
        return _print_blocked(blocked, as_json=as_json)


@evidence_app.command("add")
def add_command(
    *,
    gate: Gate = None,
    item: Item = None,
    base: Base = None,
    head: Head = None,
    session: Annotated[str | None, typer.Option(help="Session of the reviewer.", show_default=False)] = None,
    model: Annotated[str | None, typer.Option(help="Model of the reviewer.", show_default=False)] = None,
    provider: Annotated[str, typer.Option(help="Provider of that model.")] = "",
    findings: Annotated[
        Path | None, typer.Option(help="File with the JSON array of findings.", show_default=False)
    ] = None,
    root: Root = Path(),
    evidence_dir: EvidenceDir = None,
    store: Store = None,
    policy_from: From = PolicyFrom.WORKTREE,
    trust: Trusted = Trust.PRODUCER,
    as_json: AsJson = False,
) -> int:
    """Store the findings of a reviewer as the next attempt; decides nothing."""
    named = None if findings is None else str(findings)
    gate, item, base, head, session, model, named = demanded(
        gate=gate, item=item, base=base, head=head, session=session, model=model, findings=named
    )
    array = findings_array(_findings_bytes(Path(named)))
    site = site_of(root, evidence_dir, store, policy_from, trust)
    record = add_evidence(site, Request(base, head, gate=gate), Intake(item, session, model, provider, array))
    return print_record(record, as_json=as_json)


def _findings_bytes(path: Path) -> bytes:
    try:
        return read_public(surroundings().fs, absolute(path), FINDINGS_BYTES)
    except EvidenceError as error:
        raise UsageRefused(f"findings file cannot be read ({error.code})") from None


def print_record(record: ReviewRecord, *, as_json: bool) -> int:
    """Print a stored review record."""
    plain = record.model_dump(mode="json", exclude_unset=True)
    if as_json:
        screen.results(plain, as_json=True)
    else:
        screen.line(f"{record.itemId}  attempt {record.attempt}  {len(record.findings)} findings")
        screen.results(plain, as_json=True)
    return 0


def _print(document: DecisionDocument, *, as_json: bool) -> int:
    _warn(document.warnings)
    if as_json:
        screen.results(to_json(document), as_json=True)
    else:
        for line in text_form(document):
            screen.line(line)
    return _EXITS[document.decision]


def _print_blocked(blocked: Blocked, *, as_json: bool) -> int:
    code = _print(blocked.document, as_json=as_json)
    screen.complain(f"closeout: {blocked.error}")
    return code


def _warn(warnings: Sequence[Notice]) -> None:
    for warning in warnings:
        screen.complain(f"closeout: warning {warning.code}: {warning.message}")


@app.command("review")
def review_command(
    *,
    gate: Gate = None,
    item: Item = None,
    base: Base = None,
    head: Head = None,
    provider: Annotated[
        str | None, typer.Option(help="Whose command line reviews.", show_default=False)
    ] = None,
    model: Annotated[str | None, typer.Option(help="The exact model.", show_default=False)] = None,
    timeout_seconds: Annotated[
        int, typer.Option(min=1, max=TIMEOUT_MOST, help="For the session.")
    ] = TIMEOUT_SECONDS,
    program: Annotated[
        Path | None,
        typer.Option(help="Its program; by default the one of the provider's name.", show_default=False),
    ] = None,
    root: Root = Path(),
    evidence_dir: EvidenceDir = None,
    store: Store = None,
    policy_from: From = PolicyFrom.WORKTREE,
    trust: Trusted = Trust.PRODUCER,
    as_json: AsJson = False,
) -> int:
    """Run one reviewer and store what it found; decides nothing."""
    gate, item, base, head, provider, model = demanded(
        gate=gate, item=item, base=base, head=head, provider=provider, model=model
    )
    named = None if program is None else absolute(program)
    order = ReviewOrder(item, provider, model, timeout_seconds, named)
    site = site_of(root, evidence_dir, store, policy_from, trust)
    found = review(site, Request(base, head, gate=gate), order)
    _warn(found.warnings)
    return print_record(found.record, as_json=as_json)


@app.command("conformance")
def conformance_command(
    folder: Annotated[Path | None, typer.Argument(metavar="DIR", help="Folder of cases.")] = None,
    *,
    only: Annotated[str | None, typer.Option(help="One case by name.", show_default=False)] = None,
    as_json: AsJson = False,
) -> int:
    """Run conformance cases: exit 0 when all agree, 1 when one does not, 3 when one cannot be run."""
    if folder is None:
        raise UsageRefused("missing DIR")
    around = surroundings()
    try:
        names = case_names(absolute(folder), around)
    except EvidenceError:
        raise UsageRefused("there is no such folder of cases") from None
    names = tuple(name for name in names if only in (None, name))
    if not names:
        raise UsageRefused("there is no case")
    found = []
    for name in names:
        found.append(run_case(absolute(folder), name, around, crash.version()))
        if not as_json:
            screen.line(found[-1].line())
    if as_json:
        screen.results({"cases": [case_values(each) for each in found]}, as_json=True)
    return conformance_exit(found)


def case_values(result: CaseResult) -> dict[str, object]:
    """One case for machines."""
    told = {"expected": result.expected, "got": result.got}
    values: dict[str, object] = {name: text for name, text in told.items() if text}
    return {"name": result.name, "outcome": result.outcome.value} | values


def conformance_exit(found: Sequence[CaseResult]) -> int:
    """3 when a case is malformed or could not be run, else 1 when one disagrees, else 0."""
    outcomes = {result.outcome for result in found}
    if outcomes & {Outcome.MALFORMED, Outcome.BROKEN}:
        return closeout_door.ExitCode.BLOCKED
    return closeout_door.ExitCode.REJECTED if Outcome.FAIL in outcomes else closeout_door.ExitCode.ACCEPTED
