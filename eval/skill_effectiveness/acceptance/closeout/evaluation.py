"""The evaluator: the state of every item, and the verdict over them all.

Source: closeout.md, section 8, whose row numbers stand at the rows. A pure function of loaded values: it
opens nothing, starts nothing and reads no clock. The order of the evidence changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skill_effectiveness.acceptance.closeout.policy_models import (
    ResolvedCommand,
    ResolvedItem,
    ResolvedReview,
    Unsupported,
)
from skill_effectiveness.acceptance.closeout.records import CommandRecord, Record, ReviewRecord
from skill_effectiveness.acceptance.closeout.words import RUNNER, State, Trust, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skill_effectiveness.acceptance.closeout.records import Execution


@dataclass(frozen=True, slots=True)
class Candidate:
    """Who made the candidate, as the orchestrator said; an empty text is unknown."""

    session: str = ""
    model: str = ""
    provider: str = ""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What evidence has to be about, and who is trusted.

    Attributes:
        base: full commit id.
        head: full commit id of the candidate.
        policy_digest: of the effective policy.
        candidate: for independence.
        version: of this evaluator, and so of the trusted runner.
        trust: what a command record needs besides its producer.
    """

    base: str
    head: str
    policy_digest: str
    candidate: Candidate
    version: str
    trust: Trust = Trust.PRODUCER

    def matches(self, record: Record) -> bool:
        """Whether a record is about this base, this candidate and this policy."""
        same_commits = (record.base, record.head) == (self.base, self.head)
        return same_commits and record.policyDigest == self.policy_digest


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record as it lies there.

    Attributes:
        record: what it says.
        broken_artifact: path of the first artifact that is absent or has another hash.
        journalled: whether the runner's journal holds the digest of its bytes.
    """

    record: Record
    broken_artifact: str | None = None
    journalled: bool = False


@dataclass(frozen=True, slots=True)
class ItemResult:
    """The state of one item."""

    id: str
    kind: str
    state: State
    message: str
    attempt: int | None = None


@dataclass(frozen=True, slots=True)
class _Found:
    state: State
    message: str


def evaluate(
    items: Sequence[ResolvedItem], inputs: Inputs, evidence: Iterable[StoredRecord]
) -> tuple[ItemResult, ...]:
    """The state of each item, in order."""
    by_item: dict[str, list[StoredRecord]] = {}
    for stored in evidence:
        by_item.setdefault(stored.record.itemId, []).append(stored)
    return tuple(_evaluate_item(item, inputs, by_item.get(item.id, [])) for item in items)


def verdict_of(results: Iterable[ItemResult]) -> Verdict:
    """Blocked if any item blocks, else rejected if any failed, else accepted."""
    classes = {result.state.verdict for result in results}
    return next((word for word in (Verdict.BLOCKED, Verdict.REJECTED) if word in classes), Verdict.ACCEPTED)


def _evaluate_item(item: ResolvedItem, inputs: Inputs, records: Sequence[StoredRecord]) -> ItemResult:
    found = _before_deciding(item, inputs, records)
    if found is not None:
        return ItemResult(item.id, item.kind, found.state, found.message)
    matching = [stored for stored in records if inputs.matches(stored.record)]
    deciding = max(matching, key=lambda stored: stored.record.attempt)
    found = _by_record(item, inputs, deciding)
    return ItemResult(item.id, item.kind, found.state, found.message, deciding.record.attempt)


def _before_deciding(item: ResolvedItem, inputs: Inputs, records: Sequence[StoredRecord]) -> _Found | None:
    if isinstance(item, Unsupported):
        return _Found(State.UNSUPPORTED, f"kind {item.kind} is not supported")  # row 1
    if not records:
        return _Found(State.MISSING, "no evidence for this candidate and policy")  # row 2
    attempts = [stored.record.attempt for stored in records if inputs.matches(stored.record)]
    if not attempts:
        return _Found(State.STALE, "evidence is for a different candidate or policy")  # row 3
    if len(set(attempts)) < len(attempts):
        return _Found(State.INVALID, "duplicate evidence attempt")  # row 4
    return None


def _by_record(item: ResolvedItem, inputs: Inputs, stored: StoredRecord) -> _Found:
    record = stored.record
    if record.recordType != item.kind:
        return _Found(State.INVALID, "evidence kind does not match the requirement")  # row 5
    if stored.broken_artifact is not None:
        return _Found(State.INVALID, f"artifact {stored.broken_artifact} does not match its hash")  # row 6
    if isinstance(item, ResolvedCommand) and isinstance(record, CommandRecord):
        return _command(item, inputs, record, journalled=stored.journalled)
    if isinstance(item, ResolvedReview) and isinstance(record, ReviewRecord):
        return _review(item, inputs.candidate, record)
    return _Found(State.INVALID, "evidence kind does not match the requirement")


def _command(item: ResolvedCommand, inputs: Inputs, record: CommandRecord, *, journalled: bool) -> _Found:
    if (record.producer.name, record.producer.version) != (RUNNER, inputs.version):
        return _Found(State.UNTRUSTED, "command evidence producer is not trusted")  # row 7
    if inputs.trust is Trust.JOURNAL and not journalled:
        return _Found(State.UNTRUSTED, "command evidence is not in the runner journal")  # row 8
    if record.exec.argv != item.exec:
        return _Found(State.INVALID, "command evidence does not match the policy argv")  # row 9
    return _execution(record.exec)


def _execution(run: Execution) -> _Found:  # noqa: PLR0911 - one return for each row of the table
    if run.timedOut:
        return _Found(State.FAILED, "command timed out")  # row 10
    if run.signal:
        return _Found(State.FAILED, f"command was killed by {run.signal}")  # row 11
    if run.exitCode is None:
        return _Found(State.FAILED, "command could not start")  # row 12
    if run.exitCode != 0:
        return _Found(State.FAILED, f"command exited {run.exitCode}")  # row 13
    if run.headMoved:
        return _Found(State.FAILED, "command moved HEAD")  # row 14
    if run.dirty:
        return _Found(State.FAILED, "command left the worktree dirty")  # row 15
    return _Found(State.PASSED, "exited 0")  # row 16


def _review(item: ResolvedReview, candidate: Candidate, record: ReviewRecord) -> _Found:
    failing = [finding.severity for finding in record.findings if finding.severity.meets(item.fail_on)]
    if failing:
        worst = min(failing)
        return _Found(State.FAILED, f"finding at {worst} meets failOn {item.fail_on}")  # row 17
    reviewer = record.producer
    if item.different_session and not _differ(reviewer.session, candidate.session):
        return _Found(State.INDEPENDENCE, "reviewer does not satisfy differentSession")  # row 18
    if item.different_model and not _differ(reviewer.model, candidate.model):
        return _Found(State.INDEPENDENCE, "reviewer does not satisfy differentModel")  # row 19
    return _Found(State.PASSED, "review findings satisfy the policy")  # row 20


def _differ(reviewer: str, candidate: str) -> bool:
    """Whether both are known and not the same; blanks around a name are no part of it."""
    theirs, own = reviewer.strip(), candidate.strip()
    return bool(theirs) and bool(own) and theirs != own
