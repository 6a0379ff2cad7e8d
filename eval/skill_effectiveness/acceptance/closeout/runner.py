"""`run` and `decision`: from a site and a request to a decision document.

Source: closeout.md, sections 8 to 10. Whatever blocks ends in a document that says so; only a signal or a
defect of ours leaves without one.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from skill_effectiveness.acceptance.closeout import layout, runner_journal
from skill_effectiveness.acceptance.closeout.command import run_command
from skill_effectiveness.acceptance.closeout.decision import Draft, to_json
from skill_effectiveness.acceptance.closeout.desk import open_desk
from skill_effectiveness.acceptance.closeout.errors import CloseoutError, PolicyError
from skill_effectiveness.acceptance.closeout.evaluation import evaluate
from skill_effectiveness.acceptance.closeout.evidence_root import last_attempt
from skill_effectiveness.acceptance.closeout.policy_models import ResolvedCommand
from skill_effectiveness.acceptance.closeout.records import CommandRecord
from skill_effectiveness.acceptance.closeout.site import UnresolvedError, candidate_worktree, survey
from skill_effectiveness.acceptance.closeout.words import SPEC_VERSION
from skill_effectiveness.evidence.canonical import digest_bytes, dump_line
from skill_effectiveness.evidence.journal import Entry
from skill_effectiveness.execution.worktree import sweep_worktrees

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skill_effectiveness.acceptance.closeout.decision import DecisionDocument
    from skill_effectiveness.acceptance.closeout.desk import Desk
    from skill_effectiveness.acceptance.closeout.evaluation import StoredRecord
    from skill_effectiveness.acceptance.closeout.site import Request, Site


class Blocked(Exception):  # noqa: N818 - how a decision ends, not a defect
    """The decision is blocked as a whole, before or instead of an evaluation.

    Attributes:
        document: what is printed.
        error: what blocks.
    """

    def __init__(self, document: DecisionDocument, error: CloseoutError) -> None:
        self.document = document
        self.error = error
        super().__init__(str(error))


def decide(site: Site, request: Request) -> DecisionDocument:
    """The current decision about a candidate; runs nothing, and keeps the document.

    Raises:
        Blocked: with the blocked document, when the evaluation could not be made.
        UsageRefused: the candidate's identity is no text.
    """
    return _decided(site, request, lambda _desk: None)


def run(site: Site, request: Request) -> DecisionDocument:
    """Run every command item of the gate, each in a worktree of its own, then decide.

    Raises:
        Blocked, UsageRefused: as `decide`.
        Terminated: a signal arrived; the command it met is dead, and its worktree gone.
    """
    return _decided(site, request, _run_commands)


def _decided(site: Site, request: Request, work: Callable[[Desk], None]) -> DecisionDocument:
    draft = Draft(site, request)
    try:
        situation = survey(site, request)
    except UnresolvedError as error:
        known = draft.at(error.base, error.head).under(error.policy)
        raise Blocked(known.blocked(error), error) from error
    except PolicyError as error:
        raise Blocked(draft.blocked(error), error) from error
    draft = draft.at(situation.base, situation.head).under(situation.policy).warned(situation.warnings)
    try:
        with open_desk(site, request, situation) as desk:
            return _at_desk(desk, draft, work)
    except CloseoutError as error:
        raise Blocked(draft.blocked(error), error) from error


def _at_desk(desk: Desk, draft: Draft, work: Callable[[Desk], None]) -> DecisionDocument:
    situation, gate = desk.situation, desk.request.gate
    try:
        work(desk)
        results = evaluate(
            situation.policy.at(gate), situation.inputs(desk.site, desk.request), desk.records()
        )
    except CloseoutError as error:
        # A decision that was kept before is not the latest any more. What keeps this one from being kept is
        # the same trouble, or a lesser one.
        with suppress(CloseoutError):
            _keep(desk, draft.blocked(error))
        raise
    document = draft.decided(results)
    _keep(desk, document)
    return document


def _run_commands(desk: Desk) -> None:
    """Run the command items in order and store what came of each."""
    before = desk.records()
    sweep_worktrees(desk.site.git, desk.site.around)
    for item in desk.situation.policy.at(desk.request.gate):
        if isinstance(item, ResolvedCommand):
            _run_command(desk, item, before)


def _run_command(desk: Desk, item: ResolvedCommand, before: Sequence[StoredRecord]) -> None:
    site, situation = desk.site, desk.situation
    place = desk.place(item.id)
    desk.journal.note(Entry(runner_journal.STARTED, desk.about(place)))
    with candidate_worktree(site.git, situation.head, site.around) as worktree:
        ran = run_command(item, worktree, site.around)
    record, digest = desk.evidence.store(
        place,
        lambda attempt, artifacts: CommandRecord(
            specVersion=SPEC_VERSION,
            recordType="command",
            itemId=item.id,
            base=situation.base,
            head=situation.head,
            policyDigest=place.digest,
            attempt=attempt,
            evaluator=desk.runner,
            artifacts=artifacts,
            producer=desk.runner,
            exec=ran.execution,
        ),
        log=ran.log,
        least=last_attempt(before, place) + 1,
    )
    body = {**desk.about(place), "attempt": record.attempt, "recordDigest": digest}
    desk.journal.note(Entry(runner_journal.COMMAND, body))


def _keep(desk: Desk, document: DecisionDocument) -> None:
    """Keep the decision as the latest of its candidate, in the evidence directory and in the journal.

    A file that is there already says nothing about the journal: its writer may have been killed in between,
    or have had another store. Whoever reads the journal must find the newest word there.
    """
    situation, gate = desk.situation, desk.request.gate
    data = dump_line(to_json(document))
    folders = layout.decision_folders(gate, situation.policy.digest)
    desk.evidence.keep_decision(folders, f"{situation.head}.json", data)
    about = {
        "gate": gate,
        "base": situation.base,
        "head": situation.head,
        "policyDigest": situation.policy.digest,
    }
    digest = digest_bytes(data)
    if desk.journal.last_decision(about) != digest:
        told = {"decision": document.decision.value, "decisionDigest": digest}
        desk.journal.note(Entry(runner_journal.DECIDED, {**about, **told}))
