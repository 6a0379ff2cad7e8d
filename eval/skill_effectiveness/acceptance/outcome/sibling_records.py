"""Looking receipts up where their tools keep them: nothing that is merely shown is a receipt.

Source: outcome.md, section 11. The journals lie in the same private store, in the folders of their tools.
They are verified from the first byte and read as data, without a lock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.outcome.errors import OutcomeCode, OutcomeError
from skill_effectiveness.acceptance.outcome.receipts import (
    Receipt,
    no_receipt,
    read_decision,
    read_record,
    receipt_of_decision,
    receipt_of_item,
    receipt_of_milestone,
)
from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.faults import EvidenceError, RootCode
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.evidence.journal_faults import Unreadable
from skill_effectiveness.evidence.journal_verify import verify_file, verify_segments
from skill_effectiveness.execution.git import Git

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skill_effectiveness.evidence.journal_faults import JournalReport
    from skill_effectiveness.evidence.journal_rows import Row
    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.evidence.surroundings import Surroundings

FILE_BYTES: Final = 16_777_216
CLOSEOUT: Final = "closeout"
MILESTONE: Final = ("milestone", "runs")
_DECIDED: Final = "decision_recorded"
_RECORDED: Final = {
    "command": frozenset({"command_recorded"}),
    "review": frozenset({"review_recorded", "evidence_added"}),
}
_CLOSED: Final = "crw.milestoneClose"
_CANDIDATE: Final = ("gate", "head", "policyDigest")
# What a row is the latest of: a decision of its gate, a record of its item.
_JOURNALLED: Final = (
    (frozenset({_DECIDED}), _CANDIDATE, "decisionDigest"),
    (frozenset().union(*_RECORDED.values()), ("itemId", "head", "policyDigest"), "recordDigest"),
)
_NOTHING_YET: Final = frozenset({Unreadable.MISSING, Unreadable.NOT_BEGUN})
_TREE_ALGORITHMS: Final = {40: "sha1", 64: "sha256"}


@dataclass(frozen=True, slots=True)
class Shown:
    """What a caller shows as the receipt of a qualification: a decision, an item of one, or a milestone.

    Attributes:
        decision: file of a Closeout decision.
        item: id of one item of it.
        record: file of the record that decided that item.
        milestone: id of a run that closed one.
    """

    decision: Path | None = None
    item: str | None = None
    record: Path | None = None
    milestone: str | None = None


NOTHING: Final = Shown()


def look_up(shown: Shown, store: PrivateRoot, around: Surroundings) -> Receipt:
    """The receipt behind what is shown, once its tool's journal has it.

    Args:
        shown: by the caller.
        store: the private store that all tools share.
        around: the surroundings.

    Raises:
        OutcomeError: `evidence_receipt_not_found`; `journal_broken` (a journal that cannot be trusted),
            `store_unsafe`.
    """
    _demand_one_receipt(shown)
    if shown.milestone is not None:
        return _milestone(shown.milestone, store)
    if shown.decision is None:
        raise no_receipt("Neither a decision nor a milestone was shown; name one.")
    data = _bytes(shown.decision, around)
    decision, digest = read_decision(data), digest_bytes(data)
    rows = _closeout_rows(store)
    about = dict(zip(_CANDIDATE, (decision.gate, decision.head, decision.policy.digest), strict=True))
    decided = [row for row in rows if row.type == _DECIDED and about.items() <= row.body.items()]
    # A later decision about the same candidate and policy takes the place of an earlier one.
    if not decided or decided[-1].body.get("decisionDigest") != digest:
        raise no_receipt("Closeout's journal does not have this as its latest decision about the candidate.")
    if shown.item is None:
        return receipt_of_decision(decision, digest)
    if shown.record is None:
        raise no_receipt("An item counts with the record that decided it.")
    data = _bytes(shown.record, around)
    record, digest = read_record(data), digest_bytes(data)
    kinds = _RECORDED[record.recordType]
    if not any(row.type in kinds and row.body.get("recordDigest") == digest for row in rows):
        raise no_receipt("Closeout's journal does not have this record.")
    return receipt_of_item(decision, shown.item, record, digest)


def _demand_one_receipt(shown: Shown) -> None:
    """Refuse what names more than one receipt, or a part of none: no part that was named may go unread."""
    closeout = (shown.decision, shown.item, shown.record)
    if shown.milestone is not None and any(part is not None for part in closeout):
        raise no_receipt("A milestone and a decision are two receipts; name them one at a time.")
    if shown.decision is None and (shown.item is not None or shown.record is not None):
        raise no_receipt("An item and its record count with the decision that they are of; name that, too.")
    if shown.record is not None and shown.item is None:
        raise no_receipt("A record counts for one item of the decision; name it with --item.")


def replaced_receipts(store: PrivateRoot) -> frozenset[str]:
    """The digests of decisions and records that closeout has put others in the place of.

    A receipt was the latest when its edge was recorded. That the gate has changed its mind since is told by
    the same journal, whether or not anybody recorded an edge of it.

    Args:
        store: the private store that all tools share.

    Raises:
        OutcomeError: `journal_broken`: it is there and cannot be trusted.
    """
    rows: list[Row] = []
    try:
        folder = store.child(CLOSEOUT)
    except EvidenceError as error:
        if error.code is RootCode.ROOT_MISSING:
            return frozenset()
        raise _untrusted(error.faults[0].sentence) from error
    with folder:
        report = verify_segments(store.around.fs, folder.path / "journal", state=store, on_row=rows.append)
    if report.findings or not (report.sound or report.why in _NOTHING_YET):
        raise _untrusted(_told(report))
    latest: dict[tuple[object, ...], object] = {}
    seen: set[object] = set()
    for row in rows:
        for kinds, names, digest in _JOURNALLED:
            if row.type in kinds:
                latest[(digest, *(row.body.get(name) for name in names))] = row.body.get(digest)
                seen.add(row.body.get(digest))
    return frozenset(str(digest) for digest in seen.difference(latest.values()))


def _bytes(path: Path, around: Surroundings) -> bytes:
    try:
        return read_public(around.fs, path, FILE_BYTES)
    except EvidenceError as error:
        raise no_receipt(error.faults[0].sentence) from error


def _closeout_rows(store: PrivateRoot) -> Sequence[Row]:
    rows: list[Row] = []
    with _child(store, CLOSEOUT) as folder:
        report = verify_segments(store.around.fs, folder.path / "journal", state=store, on_row=rows.append)
    _demand_sound(report)
    return rows


def _milestone(run: str, store: PrivateRoot) -> Receipt:
    rows: list[Row] = []
    with _child(store, *MILESTONE, run) as folder:
        report = verify_file(store.around.fs, folder.path / "journal.jsonl", state=store, on_row=rows.append)
    _demand_sound(report)
    closes = [row for row in rows if row.value.get("type") == _CLOSED]
    body = closes[-1].value.get("body") if closes else None
    if not isinstance(body, dict):
        raise no_receipt("The run has not closed its milestone.")
    return receipt_of_milestone(body, closes[-1].digest)


def _child(store: PrivateRoot, *segments: str) -> PrivateRoot:
    try:
        return store.child(*segments)
    except EvidenceError as error:
        raise no_receipt("The private store has no journal of that tool.") from error


def _demand_sound(report: JournalReport) -> None:
    if report.findings:
        raise _untrusted(_told(report))
    if not report.sound:
        raise no_receipt(report.sentence)


def _untrusted(sentence: str) -> OutcomeError:
    told = f"A sibling tool's journal cannot be trusted. {sentence} Keep the store as evidence."
    return OutcomeError(OutcomeCode.JOURNAL_BROKEN, told)


def _told(report: JournalReport) -> str:
    """What is wrong with a journal; of several findings the first."""
    return report.findings[0].sentence if report.findings else report.sentence


def tree_digest(checkout: Path, commit: str, around: Surroundings) -> str:
    """The digest of a commit's tree, `sha1:…` or `sha256:…`, as the repository has it.

    Raises:
        OutcomeError: `evidence_repository_not_resolved`.
    """
    word = f"{commit}^{{tree}}"
    answered = Git(checkout, around).ask("rev-parse", "--verify", "--quiet", "--end-of-options", word)
    line = answered.out.decode("ascii", "replace").strip()
    algorithm = _TREE_ALGORITHMS.get(len(line))
    if not answered.good or algorithm is None:
        sentence = "The repository does not have this commit; name a checkout that has it with --checkout."
        raise OutcomeError(OutcomeCode.EVIDENCE_REPOSITORY_NOT_RESOLVED, sentence)
    return f"{algorithm}:{line}"
