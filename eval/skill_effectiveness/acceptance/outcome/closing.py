"""Whether an accepted claim may close its issue.

Source: outcome.md, section 8. Two opt-ins: one for grading at all, one for closing. The first reason that
applies is the only one told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skill_effectiveness.acceptance.outcome.words import IssueState, Result, Withheld

if TYPE_CHECKING:
    from skill_effectiveness.acceptance.outcome.assembly import Records
    from skill_effectiveness.acceptance.outcome.claims import Ledger
    from skill_effectiveness.acceptance.outcome.evaluate import Outcome


def withheld(outcome: Outcome, records: Records, ledger: Ledger) -> Withheld | None:
    """Why an accepted claim leaves its issue as it is; `None` when nothing holds it back.

    A claim that closed the issue itself is held back by nothing any more, and one that is not accepted has
    reasons of its own.
    """
    if outcome.result is not Result.ACCEPTED:
        return None
    row = ledger.row(records.key)
    if row is not None and row.closed:
        return None
    if not records.policy.verified_closing_enabled:
        return Withheld.NOT_OPTED_IN
    if ledger.contradicted(records.issue.issue, records.revision):
        return Withheld.CONTRADICTED
    if records.issue.state is not IssueState.OPEN:
        return Withheld.ALREADY_CLOSED
    return None
