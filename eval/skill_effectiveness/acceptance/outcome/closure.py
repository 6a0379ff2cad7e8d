"""Closing an issue from an accepted claim: the intent first, the close row only for what was read back.

Source: outcome.md, sections 8, 11 and 14. Everything that decides is read afresh under the lock: the issue,
the edges, the policy. What was begun and not confirmed is never taken for done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.outcome.assembly import claimable
from skill_effectiveness.acceptance.outcome.claims import (
    CLOSED,
    GRADED,
    INTENDED,
    ISSUE,
    UNCONFIRMED,
    ClaimKey,
    ClaimRow,
    Close,
    Intent,
    Unconfirmed,
)
from skill_effectiveness.acceptance.outcome.errors import OutcomeCode, OutcomeError
from skill_effectiveness.acceptance.outcome.issues import (
    IssuePlace,
    close_at_forge,
    demand_same_source,
    read_issue,
)
from skill_effectiveness.acceptance.outcome.store import Reading
from skill_effectiveness.acceptance.outcome.submission import Judged, judge, rows_of
from skill_effectiveness.acceptance.outcome.words import COMPLETED, IssueState, Result

if TYPE_CHECKING:
    from pydantic import BaseModel

    from skill_effectiveness.acceptance.outcome.claims import Ledger
    from skill_effectiveness.acceptance.outcome.records import IssueRecord
    from skill_effectiveness.acceptance.outcome.store import Desk
    from skill_effectiveness.acceptance.outcome.words import Withheld
    from skill_effectiveness.evidence.surroundings import Surroundings

_ID_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Closing:
    """What closing came to, or would come to.

    Attributes:
        key: which claim.
        state: of the claim, judged now.
        reasons: why it is not accepted, or accepted without closing.
        withheld: why an accepted claim leaves its issue as it is.
        closed: whether this claim has closed the issue.
        row: as stored; `None` of a dry run.
    """

    key: ClaimKey
    state: Result
    reasons: tuple[str, ...]
    withheld: Withheld | None
    closed: bool
    row: ClaimRow | None = None

    @property
    def may(self) -> bool:
        """Whether the claim closes the issue, or did."""
        return self.closed or (self.state is Result.ACCEPTED and self.withheld is None)


def consider(found: Reading, place: IssuePlace, attempt_id: str, around: Surroundings) -> Closing:
    """What closing would do; nothing is changed, here or at the forge.

    Raises:
        OutcomeError: as `close`.
    """
    row = _stored(found.ledger, place, attempt_id)
    _demand_settled(found.ledger, place, around)
    if row.closed:
        return _done(row)
    return _closing(_judged(found, place, row, around))


def close(desk: Desk, place: IssuePlace, attempt_id: str, around: Surroundings) -> Closing:
    """Close the issue, if the claim may.

    Raises:
        OutcomeError: `claim_not_graded`; `close_unconfirmed`: an earlier or this close was begun and is not
            known to have happened; `claim_not_recorded`; as `submission.judge`.
    """
    row = _stored(desk.ledger, place, attempt_id)
    _settle(desk, place, around)
    if row.closed:
        return _done(row)
    found = Reading(desk.ledger, desk.policy(), desk.replaced)
    judged = _judged(found, place, row, around)
    rows = rows_of(desk.ledger, judged)
    if judged.grading != desk.ledger.gradings(judged.key)[-1][1]:
        rows.append((GRADED, judged.grading))
    closing = _closing(judged)
    if not closing.may:
        if rows:
            desk.append(*rows)
        return closing
    if place.file is not None:
        desk.append(*rows, (CLOSED, Close(**_names(judged.key), intent_id=None)))
    else:
        _close_there(desk, place, judged, rows, around)
    stored = desk.ledger.row(judged.key)
    return closing if stored is None else _done(stored)


def _close_there(
    desk: Desk, place: IssuePlace, judged: Judged, rows: list[tuple[str, BaseModel]], around: Surroundings
) -> None:
    """Close at the forge: intent, command, reading back, close row.

    Raises:
        OutcomeError: `close_unconfirmed`; the intent stays.
    """
    intent = Intent(**_names(judged.key), intent_id=around.entropy(_ID_BYTES).hex())
    desk.append(*rows, (INTENDED, intent))
    said = close_at_forge(place.key, around)
    observed = _observed(desk.ledger, place, around)
    read_back = observed is not None and (observed.state, observed.state_reason) == (
        IssueState.CLOSED,
        COMPLETED,
    )
    if observed is None or not (said and read_back):
        raise _unconfirmed(observed)
    desk.append((ISSUE, observed), (CLOSED, Close(**_names(judged.key), intent_id=intent.intent_id)))


def _stored(ledger: Ledger, place: IssuePlace, attempt_id: str) -> ClaimRow:
    attempt = claimable(ledger.attempts, attempt_id)
    demand_same_source(place, ledger)
    row = ledger.row(ClaimKey(*place.key, attempt_id, attempt.commit or ""))
    if row is None:
        sentence = "This claim was never graded; submit it first. Nothing was closed."
        raise OutcomeError(OutcomeCode.CLAIM_NOT_GRADED, sentence)
    return row


def _judged(found: Reading, place: IssuePlace, row: ClaimRow, around: Surroundings) -> Judged:
    """The claim judged again, with the evidence that was cited last."""
    cited = found.ledger.gradings(row.key)[-1][1].cited
    return judge(
        found.ledger,
        found.policy,
        place,
        row.attempt_id,
        citations=cited,
        replaced=found.replaced(),
        around=around,
    )


def _demand_settled(ledger: Ledger, place: IssuePlace, around: Surroundings) -> None:
    if ledger.pending(place.key):
        raise _unconfirmed(_observed(ledger, place, around))


def _settle(desk: Desk, place: IssuePlace, around: Surroundings) -> None:
    """Report a close that was begun and never confirmed, once; the row says what was observed instead.

    Raises:
        OutcomeError: `close_unconfirmed`.
    """
    pending = desk.ledger.pending(place.key)
    if not pending:
        return
    observed = _observed(desk.ledger, place, around)
    if observed is not None:
        # From now on it is known that nobody knows, and the issue as it is decides.
        rows = [
            Unconfirmed(
                **_names(intent.key),
                intent_id=intent.intent_id,
                observed_state=observed.state,
                observed_reason=observed.state_reason,
            )
            for intent in pending
        ]
        desk.append(*((UNCONFIRMED, row) for row in rows))
    raise _unconfirmed(observed)


def _observed(ledger: Ledger, place: IssuePlace, around: Surroundings) -> IssueRecord | None:
    try:
        return read_issue(place, ledger, around)
    except OutcomeError:
        # That it cannot be read is the observation.
        return None


def _unconfirmed(observed: IssueRecord | None) -> OutcomeError:
    state = (
        "unknown"
        if observed is None
        else " ".join(filter(None, (observed.state.value, observed.state_reason)))
    )
    sentence = "A close was begun and is not known to have happened, so none is claimed. Look at the issue."
    return OutcomeError(OutcomeCode.CLOSE_UNCONFIRMED, sentence, f" observed {state}")


def _names(key: ClaimKey) -> dict[str, str | int]:
    return key._asdict()


def _closing(judged: Judged) -> Closing:
    grading = judged.grading
    return Closing(judged.key, grading.state, grading.reasons, judged.withheld, closed=False)


def _done(row: ClaimRow) -> Closing:
    return Closing(row.key, row.state, row.reasons, None, closed=True, row=row)
