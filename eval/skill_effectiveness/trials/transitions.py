"""Which states follow which, and what the next document says (trials.md, section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skill_effectiveness.evidence.strict import LARGEST_INTEGER
from skill_effectiveness.trials.binding import completion_binding
from skill_effectiveness.trials.budget import check_progress, check_within, has_limit
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.models import (
    CheckpointRequest,
    TrialDocument,
    TrialStatus,
    read_record,
)

if TYPE_CHECKING:
    from skill_effectiveness.trials.binding import EvidenceDigests
    from skill_effectiveness.trials.models import CompletionIsolation, ResumeCursor

_TAINTED = frozenset({TrialStatus.CONTAMINATED, TrialStatus.FAILED})
_NOT_YET_BOUND = "sha256:" + "0" * 64


def read_request(value: object) -> CheckpointRequest:
    """A caller's request.

    Raises:
        TrialError: `cursor_invalid` when the first misfit is in the cursor, else `bad_record`.
    """
    try:
        return read_record(CheckpointRequest, value)
    except TrialError as error:
        if error.where.startswith("/resume_cursor"):
            raise TrialError(
                TrialCode.CURSOR_INVALID, error.where, error.sentence, field=error.field
            ) from error
        raise


def check_request(request: CheckpointRequest) -> None:
    """Demand what a request must say whatever the trial is like.

    Raises:
        TrialError: `bad_record`.
    """
    if request.status is TrialStatus.PREPARED:
        raise _silent("status", "A trial is prepared by preparing it; a checkpoint moves it on.")
    if request.status is not TrialStatus.COMPLETED:
        return
    for name in ("access_audit_complete", "access_roots_enforced"):
        if getattr(request, name) is None:
            raise _silent(name, f"A completion must state {name}; silence proves nothing.")
    for name in ("read_allow_roots", "write_allow_roots"):
        if getattr(request, name) is None:
            raise _silent(name, f"A completion needs {name}: without them the audit says nothing.")


def _silent(name: str, sentence: str) -> TrialError:
    return TrialError(TrialCode.BAD_RECORD, f"/{name}", sentence, field=name)


def check_version(before: TrialDocument, expected: int | None) -> None:
    """Demand that the stored version is the one the caller saw.

    Raises:
        TrialError: `version_conflict`; `evidence_invalid`: no version can follow the stored one.
    """
    if before.state_version == LARGEST_INTEGER:
        sentence = "The stored version is one that no trial reaches; the document was changed."
        raise TrialError(TrialCode.EVIDENCE_INVALID, "/state_version", sentence, field="state_version")
    if expected is not None and expected != before.state_version:
        sentence = f"The trial is at version {before.state_version}; read it again before you change it."
        raise TrialError(
            TrialCode.VERSION_CONFLICT, "/expected_state_version", sentence, field="expected_state_version"
        )


def check_transition(before: TrialStatus, status: TrialStatus) -> None:
    """Demand a legal step: every state that has not ended leads to all but `prepared`.

    Raises:
        TrialError: `terminal`; `bad_record`: back to `prepared`.
    """
    if before.is_terminal:
        raise TrialError(TrialCode.TERMINAL, "/status", f"The trial has ended ({before}); nothing follows.")
    if status is TrialStatus.PREPARED:
        raise _silent("status", "A trial is prepared by preparing it; a checkpoint moves it on.")


def next_cursor(before: TrialDocument, request: CheckpointRequest) -> ResumeCursor | None:
    """The cursor that the next document holds: the given one, else the stored one.

    Raises:
        TrialError: `cursor_invalid`: needed and absent; `budget_exceeded`, `no_progress`.
    """
    given = request.resume_cursor
    if given is None:
        if _needs_cursor(before, request.status):
            sentence = f"A checkpoint to {request.status} needs a cursor: run order and what was used so far."
            raise TrialError(TrialCode.CURSOR_INVALID, "/resume_cursor", sentence, field="resume_cursor")
        return before.resume_cursor
    check_progress(
        before.resume_cursor, given, must_advance=request.status is TrialStatus.INTERIM_BUDGET_STOP
    )
    if request.status not in _TAINTED:
        # How far a spoilt trial overran belongs on the record; only going on or counting is refused.
        check_within(before.budget, given.consumed_budget)
    return given


def _needs_cursor(before: TrialDocument, status: TrialStatus) -> bool:
    match status:
        case TrialStatus.RUNNING:
            return before.resume_cursor is None
        case TrialStatus.INTERIM_BUDGET_STOP:
            return True
        case TrialStatus.COMPLETED:
            return has_limit(before.budget)
        case _:
            return False


def next_document(
    before: TrialDocument,
    request: CheckpointRequest,
    *,
    cursor: ResumeCursor | None,
    isolation: CompletionIsolation | None = None,
    evidence: EvidenceDigests | None = None,
) -> TrialDocument:
    """The document one version on; a completion sets status, isolation and binding together.

    Args:
        before: as stored.
        request: already judged.
        cursor: see `next_cursor`.
        isolation: of a completion.
        evidence: digests of the files that a completion binds.
    """
    changed: dict[str, Any] = dict(before) | {
        "status": request.status,
        "state_version": before.state_version + 1,
        "completion_claim": request.status is TrialStatus.COMPLETED,
        "resume_cursor": cursor,
        "stop_reason": request.stop_reason,
        "completion_isolation": isolation,
        "completion_binding_hash": None,
    }
    if evidence is None:
        return TrialDocument(**_stated(changed))
    unbound = TrialDocument(**_stated(changed | {"completion_binding_hash": _NOT_YET_BOUND}))
    # The one field that changes is a digest of ours, so nothing has to be validated again.
    return unbound.model_copy(update={"completion_binding_hash": completion_binding(unbound, evidence)})


def _stated(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields without those a document may lack and does."""
    optional = ("registry_schema", "registry_plan_hash")
    return {name: value for name, value in fields.items() if value is not None or name not in optional}
