"""Which executor receipt is handed over for a node, or why a round is held.

Source: milestone.md, section 7, Receipts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.acceptance.milestone.errors import StopCode
from skill_effectiveness.acceptance.milestone.verdict import NodeReceipt
from skill_effectiveness.acceptance.milestone.words import Role, Word

if TYPE_CHECKING:
    from collections.abc import Sequence

ACCEPTED: Final = "accepted"
NOT_ASSIGNED: Final = "not_assigned"
NO_EXECUTOR: Final = "no_executor"
OK: Final = "ok"


@dataclass(frozen=True, slots=True)
class ReusedFrom:
    """Where a reused node was accepted.

    Attributes:
        run: the source run.
        head: the accepted head.
        acceptance: the acceptance's call.
    """

    run: str
    head: str
    acceptance: str


@dataclass(frozen=True, slots=True)
class NodeEvidence:
    """What is known of one node's executor.

    Attributes:
        node: its id.
        check: body of the newest unit check that counts; `None`: there is none.
        reused: set for a reused node.
        readable: whether the source journal of a reused node could be read.
        copy: the bytes of the stored copy; `None`: it is not there.
        copy_digest: their digest.
    """

    node: str
    check: dict[str, Any] | None
    reused: ReusedFrom | None = None
    readable: bool = True
    copy: bytes | None = None
    copy_digest: str | None = None


@dataclass(frozen=True, slots=True)
class NodeHandover:
    """What the receipts file says about a node, or why nothing may start.

    Attributes:
        receipt: state and digest.
        evidence: what it rests on.
        hold: why the round is held.
    """

    receipt: NodeReceipt
    evidence: NodeEvidence
    hold: StopCode | None = None


def judge_node_receipt(evidence: NodeEvidence) -> NodeHandover:
    """Judge what can be handed over for one node."""
    check, reused = evidence.check, evidence.reused
    if check is None:
        if reused is None:
            return _handover(evidence, NO_EXECUTOR)
        return _handover(evidence, "missing", StopCode.RECEIPT_MISSING)
    verified = (check.get("role"), check.get("state"), check.get("verdict"))
    if verified != (Role.UNIT_CHECK, OK, Word.VERIFIED):
        return _handover(evidence, "unverified", StopCode.RECEIPT_UNVERIFIED)
    receipt = check.get("receipt")
    state = receipt.get("state") if isinstance(receipt, dict) else None
    if not isinstance(receipt, dict) or state not in {ACCEPTED, NOT_ASSIGNED}:
        return _handover(evidence, "unverified", StopCode.RECEIPT_UNVERIFIED)
    if state == NOT_ASSIGNED:
        return _handover(evidence, NOT_ASSIGNED)
    return _copied(evidence, receipt)


def _copied(evidence: NodeEvidence, receipt: dict[str, Any]) -> NodeHandover:
    if not receipt.get("copy"):
        return _handover(evidence, "not_copied", StopCode.RECEIPT_NOT_COPIED)
    if evidence.copy is None:
        return _handover(evidence, "missing", StopCode.RECEIPT_MISSING)
    if evidence.copy_digest != receipt.get("sha256"):
        return _handover(evidence, "mismatch", StopCode.RECEIPT_MISMATCH)
    return _handover(evidence, ACCEPTED, digest=evidence.copy_digest)


def _handover(
    evidence: NodeEvidence, state: str, hold: StopCode | None = None, digest: str | None = None
) -> NodeHandover:
    source = None if evidence.reused is None else evidence.reused.run
    return NodeHandover(
        NodeReceipt(node=evidence.node, state=state, sha256=digest, source_run=source), evidence, hold
    )


def receipts_document(handovers: Sequence[NodeHandover]) -> bytes:
    """The receipts file: a block for each node, with the bytes of its receipt as they are."""
    blocks = [b"# Executor receipts\n"]
    for each in handovers:
        lines = [f"\n## node {each.receipt.node}", f"state: {each.receipt.state}"]
        if each.receipt.sha256 is not None:
            lines.append(f"sha256: {each.receipt.sha256}")
        reused, check = each.evidence.reused, each.evidence.check
        if reused is not None and check is not None:
            lines += [
                f"source run: {reused.run}",
                f"unit check: {check.get('call')}",
                f"acceptance: {reused.acceptance}",
            ]
        blocks.append(("\n".join(lines) + "\n\n").encode())
        if each.receipt.state == ACCEPTED and each.evidence.copy is not None:
            blocks.append(each.evidence.copy.rstrip(b"\n") + b"\n")
    return b"".join(blocks)
