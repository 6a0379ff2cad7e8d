"""`milestone accept`: a node's commands at its head, its receipt, and its acceptance.

Source: milestone.md, section 3. The commands of a node are the required ones. The receipt is copied once and
its original path is never read again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.acceptance.milestone.audit import UNIT_CHECK
from skill_effectiveness.acceptance.milestone.errors import (
    MilestoneCode,
    MilestoneError,
    Stop,
    StopCode,
    Stopped,
)
from skill_effectiveness.acceptance.milestone.executor_receipts import ACCEPTED, NOT_ASSIGNED, OK
from skill_effectiveness.acceptance.milestone.identity import Comparison, compare
from skill_effectiveness.acceptance.milestone.run import Run, open_run
from skill_effectiveness.acceptance.milestone.verifying import verify
from skill_effectiveness.acceptance.milestone.words import Outcome, Role, RowType, Word
from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import read_public

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.acceptance.milestone.input import PlannedNode
    from skill_effectiveness.acceptance.milestone.run import Site

RECEIPTS: Final = "receipts"
RECEIPT_BYTES: Final = 16_777_216
_ID_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Author:
    """Who wrote a node, as whoever accepts it says; empty is unknown."""

    name: str = ""
    model: str = ""
    family: str = ""


@dataclass(frozen=True, slots=True)
class AcceptOrder:
    """What is to be accepted.

    Attributes:
        node: its id.
        head: a revision.
        criteria_digest: of the node's criteria, as whoever accepts it knows them.
        receipt: the executor's receipt, absolute; `None`: no executor was assigned.
        batch: the commit that integrated it; a revision.
        author: who wrote it.
    """

    node: str
    head: str
    criteria_digest: str
    receipt: Path | None = None
    batch: str | None = None
    author: Author = Author()


@dataclass(frozen=True, slots=True)
class _Checked:
    """An order that may be carried out."""

    node: PlannedNode
    head: str
    base: str
    receipt: bytes | None
    batch: str | None


def accept(site: Site, run_name: str, order: AcceptOrder) -> dict[str, Any]:
    """Accept a node; the body of its acceptance row.

    Raises:
        MilestoneError: `node_unknown`, `criteria_digest_differs`, `commit_unresolved`, `not_integrated`,
            `receipt_unreadable`, `run_ended`: nothing ran; and those of `open_run`.
        Stopped: the hold `verify_unavailable`, or `unit_check_failed`; there is no acceptance.
    """
    with open_run(site, run_name, f"accept {order.node}") as run:
        if run.rows.finished is not None:
            raise MilestoneError(MilestoneCode.RUN_ENDED, run_name, "Start a new run.")
        checked = _checked(run, order)
        call = _check(run, checked, order)
        acceptance = {
            "base": checked.base,
            "basis": UNIT_CHECK,
            "call": f"acc_{site.around.entropy(_ID_BYTES).hex()}",
            "criteria_digest": checked.node.criteria_digest,
            "head": checked.head,
            "node": order.node,
            "unit_check": call,
        }
        run.note(RowType.ACCEPTANCE, **acceptance)
        if checked.batch is not None:
            run.note(
                RowType.INTEGRATION,
                acceptance=acceptance["call"],
                batch=checked.batch,
                head=checked.head,
                node=order.node,
            )
        return acceptance | {"batch": checked.batch}


def _checked(run: Run, order: AcceptOrder) -> _Checked:
    """Everything that can be refused before anything runs."""
    node = run.facts.given.node(order.node)
    if node is None:
        raise MilestoneError(MilestoneCode.NODE_UNKNOWN, order.node, "The input plans no such node.")
    if order.criteria_digest != node.criteria_digest:
        told = f"The node's criteria have the digest {node.criteria_digest}."
        raise MilestoneError(MilestoneCode.CRITERIA_DIFFER, order.node, told)
    git = run.repository.git
    head, base = git.commit(order.head), git.commit(node.land.base if node.land else node.base)
    if head is None or base is None:
        told = "The head, or the node's base, is no commit of the repository."
        raise MilestoneError(MilestoneCode.COMMIT_UNRESOLVED, order.node, told)
    return _Checked(node, head, base, _receipt(run, order), _batch(run, order, head))


def _batch(run: Run, order: AcceptOrder, head: str) -> str | None:
    if order.batch is None:
        return None
    batch, tip = run.repository.git.commit(order.batch), run.repository.tip(run.facts.given.target)
    integrated = (
        batch is not None
        and tip is not None
        and run.repository.contains(batch, head)
        and run.repository.contains(tip, batch)
    )
    if not integrated:
        told = "The batch commit does not contain the head, or the target does not contain the batch commit."
        raise MilestoneError(MilestoneCode.NOT_INTEGRATED, order.node, told)
    return batch


def _receipt(run: Run, order: AcceptOrder) -> bytes | None:
    if order.receipt is None:
        return None
    try:
        return read_public(run.site.around.fs, order.receipt, RECEIPT_BYTES)
    except EvidenceError as error:
        told = f"The receipt cannot be read ({error.code})."
        raise MilestoneError(MilestoneCode.RECEIPT_UNREADABLE, order.node, told) from error


def _check(run: Run, checked: _Checked, order: AcceptOrder) -> str:
    """Run the commands and write the unit check; its call id.

    Raises:
        Stopped: they cannot run, or did not pass.
    """
    pinned = run.repository.identity_at(checked.head)
    call = f"unit-check-{len(run.rows.all(RowType.UNIT_CHECK)) + 1}"
    try:
        records = [verify(run, argv, checked.head, order.node) for argv in run.facts.required]
    except Stopped as stopped:
        run.note(RowType.HOLD, code=stopped.stop.code.value, node=order.node, verb="accept")
        raise
    good = all(
        record.passed
        and all(compare(pinned, each) is Comparison.SAME for each in (record.before, record.after))
        for record in records
    )
    run.note(
        RowType.UNIT_CHECK,
        author={"family": order.author.family, "model": order.author.model, "name": order.author.name},
        base=checked.base,
        call=call,
        criteria_digest=checked.node.criteria_digest,
        head=checked.head,
        node=order.node,
        receipt=_copy(run, call, checked.receipt),
        records=[record.digest for record in records],
        role=Role.UNIT_CHECK.value,
        state=OK if good else "failed",
        verdict=(Word.VERIFIED if good else Word.NEEDS_CHANGES).value,
    )
    if not good:
        told = "A required command did not pass at the node's head, or left files that git does not ignore."
        raise Stopped(Stop(Outcome.REFUSED, StopCode.UNIT_CHECK_FAILED, told))
    return call


def _copy(run: Run, call: str, receipt: bytes | None) -> dict[str, Any]:
    """Store the copy; what the row says about it."""
    if receipt is None:
        return {"copy": None, "sha256": None, "state": NOT_ASSIGNED}
    name = f"{call}.receipt"
    run.folder.replace(receipt, RECEIPTS, name)
    return {"copy": name, "sha256": digest_bytes(receipt), "state": ACCEPTED}
