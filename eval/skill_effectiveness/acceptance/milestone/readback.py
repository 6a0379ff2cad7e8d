"""`milestone deliver`, also `audit --delivery`: what was published, as far as it can be observed.

Source: milestone.md, section 11. Before any target is looked at, close, gate and crosscheck must stand at one
head. Nothing is written but the row of what was seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skill_effectiveness.acceptance.milestone.delivery import (
    Observation,
    judge_issues,
    judge_milestone,
    judge_push,
    worst,
)
from skill_effectiveness.acceptance.milestone.gating import newest_gate
from skill_effectiveness.acceptance.milestone.run import Run, open_run, required
from skill_effectiveness.acceptance.milestone.trackers import tracker_of
from skill_effectiveness.acceptance.milestone.verdict import Verdict
from skill_effectiveness.acceptance.milestone.words import (
    DeliveryKind,
    DeliveryWord,
    GateState,
    RowType,
    Word,
)
from skill_effectiveness.evidence.documents import validate

if TYPE_CHECKING:
    from skill_effectiveness.acceptance.milestone.input import DeliveryCheck
    from skill_effectiveness.acceptance.milestone.run import Site
    from skill_effectiveness.acceptance.milestone.trackers import Tracker


@dataclass(frozen=True, slots=True)
class Delivered:
    """What a readback saw."""

    word: DeliveryWord
    value: dict[str, Any]


def deliver(site: Site, name: str, *, record: bool = True) -> Delivered:
    """Read back the delivery of a closed milestone.

    Args:
        site: where.
        name: the run; its lock is held until what was seen is recorded.
        record: append the `delivery_checked` row.

    Raises:
        MilestoneError: `row_required`: there is no close over a passed gate and a verified crosscheck at one
            head, or nothing was deferred; as `open_run`.
    """
    with open_run(site, name, "read back the delivery") as run:
        head, criteria = _closed(run)
        tracker = tracker_of(run.facts.configuration.tracker, site.around, run.repository.path)
        observed = [
            _observe(run, tracker, head, entry.id, check) for entry in criteria for check in entry.checks
        ]
        word = worst([each.word for each in observed])
        value: dict[str, Any] = {
            "criteria": [entry.id for entry in criteria],
            "head": head,
            "observations": [each.plain() for each in observed],
            "state": word.value,
            "time": site.around.now().isoformat(timespec="seconds").replace("+00:00", "Z"),
        }
        if record:
            run.note(RowType.DELIVERY, **value)
    return Delivered(word, value)


def _closed(run: Run) -> tuple[str, Any]:
    """The closed head and the deferred criteria, once everything stands at one head."""
    row = run.rows.newest(RowType.CLOSE)
    if row is None:
        raise required(RowType.CLOSE)
    head = row.body.get("head")
    gate = newest_gate(run)
    if gate is None or gate.state is not GateState.PASS or gate.head != head:
        raise required(RowType.FINAL_GATE)
    checked = run.rows.newest(RowType.CROSSCHECK, digest=row.body.get("crosscheck"))
    verdict = None if checked is None else validate(Verdict, checked.body["verdict"])
    if verdict is None or verdict.word is not Word.VERIFIED or verdict.head != head:
        raise required(RowType.CROSSCHECK)
    if not run.facts.criteria.deferred:
        raise required(RowType.DELIVERY)
    return str(head), run.facts.criteria.deferred


def _observe(run: Run, tracker: Tracker, head: str, criterion: str, check: DeliveryCheck) -> Observation:
    word, reason = _judged(run, tracker, head, check)
    return Observation(criterion, check.kind, check.ref, word, reason)


def _judged(run: Run, tracker: Tracker, head: str, check: DeliveryCheck) -> tuple[DeliveryWord, str]:
    kind = DeliveryKind(check.kind)
    if kind is DeliveryKind.REMOTE_PUSH:
        return judge_push(head, run.repository.remote_branch(run.facts.given.target, head))
    if kind is DeliveryKind.ISSUES_CLOSED:
        issues = [node.issue for node in run.facts.given.nodes if node.issue is not None]
        return judge_issues([(issue, tracker.issue(issue)) for issue in dict.fromkeys(issues)])
    return judge_milestone(tracker.milestone(str(check.ref)))
