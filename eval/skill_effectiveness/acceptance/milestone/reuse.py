"""Whether a node that an earlier run integrated may be taken over.

Source: milestone.md, section 4. A node is proven by that run's acceptance and integration, held against the
present target, with an unchanged slice, criteria, design and decisions; a land node by what its release
fixes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skill_effectiveness.acceptance.milestone.words import AuditWord
from skill_effectiveness.evidence.canonical import digest_object

if TYPE_CHECKING:
    from skill_effectiveness.acceptance.milestone.input import MilestoneInput, PlannedNode


@dataclass(frozen=True, slots=True)
class Landing:
    """What the repository says about an accepted head and its batch commit now.

    Attributes:
        head_tree: tree of the accepted head; `None`: the commit is not here.
        head_in_batch: whether the batch commit contains the head.
        batch_in_target: whether the present target contains the batch commit.
    """

    head_tree: str | None
    head_in_batch: bool
    batch_in_target: bool


@dataclass(frozen=True, slots=True)
class Source:
    """What the run that integrated a node holds about it.

    Attributes:
        run: the run.
        given: its pinned input.
        input_digest: of that input.
        acceptance: body of its acceptance row; `None`: there is none.
        integration: body of its integration row.
        audit: what an audit of the acceptance says now.
        landing: what the repository says.
    """

    run: str
    given: MilestoneInput
    input_digest: str
    acceptance: dict[str, Any] | None
    integration: dict[str, Any]
    audit: AuditWord
    landing: Landing


@dataclass(frozen=True, slots=True)
class Reused:
    """A proven node, as its `crw.reuseIntegrated` row holds it."""

    node: str
    source_run: str
    acceptance: str
    head: str
    batch: str
    base: str
    criteria_digest: str
    carried: dict[str, Any] | None

    def plain(self) -> dict[str, Any]:
        """The body of the row."""
        return {
            "node": self.node,
            "source_run": self.source_run,
            "acceptance": self.acceptance,
            "head": self.head,
            "batch": self.batch,
            "base": self.base,
            "criteria_digest": self.criteria_digest,
            "carried": self.carried,
        }


class NotProvenError(Exception):
    """An integrated node has no proof; the text is the reason."""


def judge_reuse(node: PlannedNode, given: MilestoneInput, digest: str, source: Source) -> Reused:
    """Judge an integrated node.

    Args:
        node: as planned now.
        given: the present input.
        digest: of the present input.
        source: the run that integrated it.

    Raises:
        NotProvenError: the integration stands without proof.
    """
    acceptance = source.acceptance
    if acceptance is None:
        raise NotProvenError("it has an integration and no acceptance")
    head, batch = acceptance.get("head"), source.integration.get("batch")
    if not isinstance(head, str) or not isinstance(batch, str) or source.integration.get("head") != head:
        raise NotProvenError("its acceptance and integration name different heads")
    if source.audit is not AuditWord.OK:
        raise NotProvenError(f"its acceptance is audited as {source.audit}")
    if not (source.landing.head_in_batch and source.landing.batch_in_target):
        raise NotProvenError("the present target does not contain it")
    if acceptance.get("criteria_digest") != node.criteria_digest:
        raise NotProvenError("its criteria changed")
    land = node.land is not None
    base = _land_base(node, head, source) if land else _ordinary_base(node, given, source)
    carried = None if land or digest == source.input_digest else _carried(node, given, source)
    return Reused(
        node=node.id,
        source_run=source.run,
        acceptance=str(acceptance.get("call")),
        head=head,
        batch=batch,
        base=base,
        criteria_digest=node.criteria_digest,
        carried=carried,
    )


def _ordinary_base(node: PlannedNode, given: MilestoneInput, source: Source) -> str:
    """The base an ordinary node was first judged under, once nothing about it changed."""
    earlier = source.given.node(node.id)
    if earlier is None:
        raise NotProvenError("the run that integrated it does not plan it")
    if (earlier.slice, earlier.criteria) != (node.slice, node.criteria):
        raise NotProvenError("its slice or criteria changed")
    if earlier.design != node.design or _decisions(earlier, source.given) != _decisions(node, given):
        raise NotProvenError("its approved design or a decision that it refers to changed")
    base = (source.acceptance or {}).get("base")
    return base if isinstance(base, str) else earlier.base


def _land_base(node: PlannedNode, head: str, source: Source) -> str:
    """The base that a release fixes, once acceptance and integration follow it."""
    release = node.land
    if release is None or release.head != head or release.tree != source.landing.head_tree:
        raise NotProvenError("its release fixes another head or tree")
    if (release.slice, release.criteria) != (node.slice, node.criteria):
        raise NotProvenError("its slice or criteria are not those of its release")
    return release.base


def _decisions(node: PlannedNode, given: MilestoneInput) -> dict[str, str]:
    texts = {decision.id: decision.text for decision in given.decisions}
    return {name: texts[name] for name in node.decisions}


def _carried(node: PlannedNode, given: MilestoneInput, source: Source) -> dict[str, Any]:
    """The design and decisions that are carried unchanged, and whose approval is inherited."""
    return {
        "design": digest_object(node.design),
        "decisions": {name: digest_object(text) for name, text in _decisions(node, given).items()},
        "inherited_approval": {"run": source.run, "input_digest": source.input_digest},
    }
