"""The executor receipts of a round: gathered from journals and stored copies, written to one file.

Source: milestone.md, section 7, Receipts. An original receipt path is never read here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.acceptance.milestone.accepting import RECEIPTS
from skill_effectiveness.acceptance.milestone.errors import MilestoneError, held
from skill_effectiveness.acceptance.milestone.executor_receipts import (
    NodeEvidence,
    NodeHandover,
    ReusedFrom,
    judge_node_receipt,
    receipts_document,
)
from skill_effectiveness.acceptance.milestone.packets import ReceiptsFile
from skill_effectiveness.acceptance.milestone.store import MilestoneStore
from skill_effectiveness.acceptance.milestone.verdict import AuthorRecord
from skill_effectiveness.acceptance.milestone.words import RowType
from skill_effectiveness.evidence.canonical import digest_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.acceptance.milestone.run import Run
    from skill_effectiveness.acceptance.milestone.store import RunFolder

FOLDER: Final = "crosscheck"


def gather(run: Run) -> tuple[NodeHandover, ...]:
    """What can be handed over for every node of the milestone.

    Raises:
        Stopped: a `crosscheck_receipt_…` hold that names the node.
    """
    handovers = tuple(judge_node_receipt(_evidence(run, node.id)) for node in run.facts.given.nodes)
    for each in handovers:
        if each.hold is not None:
            told = (
                f"The executor receipt of node {each.receipt.node} cannot be handed over "
                f"({each.receipt.state}); accept the node again and resume."
            )
            raise held(each.hold, told, node=each.receipt.node)
    return handovers


def write_receipts(run: Run, number: int, handovers: Sequence[NodeHandover]) -> ReceiptsFile:
    """Write the receipts file of a round; it lies outside every checkout."""
    data = receipts_document(handovers)
    path = run.folder.replace(data, FOLDER, f"{run.milestone}-r{number}-receipts.md")
    return ReceiptsFile(path, digest_bytes(data), tuple(each.receipt for each in handovers))


def authors_of(handovers: Sequence[NodeHandover]) -> tuple[AuthorRecord, ...]:
    """Who wrote the nodes, as far as their unit checks say."""
    authors = []
    for each in handovers:
        told = (each.evidence.check or {}).get("author")
        known: dict[str, Any] = told if isinstance(told, dict) else {}
        authors.append(
            AuthorRecord(
                source="unit_check",
                name=str(known.get("name") or each.receipt.node),
                model=str(known.get("model") or ""),
                family=str(known.get("family") or ""),
            )
        )
    return tuple(authors)


def _evidence(run: Run, node: str) -> NodeEvidence:
    own = run.rows.newest(RowType.UNIT_CHECK, node=node)
    if own is not None:
        return _with_copy(run.folder, NodeEvidence(node, own.body))
    reuse = run.rows.newest(RowType.REUSE, node=node)
    if reuse is None:
        return NodeEvidence(node, None)
    source = ReusedFrom(
        str(reuse.body.get("source_run")), str(reuse.body.get("head")), str(reuse.body.get("acceptance"))
    )
    return _reused(run, node, source)


def _reused(run: Run, node: str, source: ReusedFrom) -> NodeEvidence:
    """The newest unit check of the source run that matches node and accepted head, and its stored copy."""
    try:
        with MilestoneStore.open(run.site.store, run.site.around) as store, store.run(source.run) as folder:
            check = folder.rows().newest(RowType.UNIT_CHECK, node=node, head=source.head)
            if check is None:
                return NodeEvidence(node, None, source)
            return _with_copy(folder, NodeEvidence(node, check.body, source))
    except MilestoneError:
        return NodeEvidence(node, None, source, readable=False)


def _with_copy(folder: RunFolder, evidence: NodeEvidence) -> NodeEvidence:
    receipt = (evidence.check or {}).get("receipt")
    name = receipt.get("copy") if isinstance(receipt, dict) else None
    data = folder.read(RECEIPTS, name) if isinstance(name, str) and name and "/" not in name else None
    if data is None:
        return evidence
    return NodeEvidence(
        evidence.node, evidence.check, evidence.reused, copy=data, copy_digest=digest_bytes(data)
    )
