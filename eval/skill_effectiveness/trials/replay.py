"""Whether a completed trial is still what its completion bound (trials.md, section 6).

Everything that is a function of stored bytes is computed again: tier, isolation record, row shapes, binding.
The file system is not asked about audited paths: what a path led to when the trial completed was judged then.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.protocol.gates import WaivableItem
from skill_effectiveness.trials.audit import check_rows
from skill_effectiveness.trials.binding import AUDIT, EvidenceDigests, completion_binding
from skill_effectiveness.trials.budget import check_within, has_limit
from skill_effectiveness.trials.evidence_files import evidence_rows, read_events, read_outcome, torn_fault
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.isolation import FILE_ITEMS, assess, completion_isolation
from skill_effectiveness.trials.models import TrialStatus, evidence_hash
from skill_effectiveness.trials.store import BREACH, check_identity, read_document_bytes
from skill_effectiveness.trials.tiers import check_proofs, required_tier, waivers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.protocol.gates import EvidenceTierName, PilotGates
    from skill_effectiveness.trials.models import (
        CompletionIsolation,
        ExpectedIsolation,
        TrialDocument,
        TrialKey,
    )
    from skill_effectiveness.trials.store import TrialStore


@dataclass(frozen=True, slots=True)
class Replayed:
    """A completed trial that holds.

    Attributes:
        document: its document.
        isolation: what its completion says about isolation.
        evidence: digests of its evidence files now.
    """

    document: TrialDocument
    isolation: CompletionIsolation
    evidence: EvidenceDigests

    @property
    def evidence_tier(self) -> EvidenceTierName:
        """Its tier, derived from the stored registry."""
        return self.isolation.evidence_tier

    @property
    def coverage_limitations(self) -> tuple[WaivableItem, ...]:
        """What it does without, verbatim."""
        return self.isolation.coverage_limitations


def replay(store: TrialStore, key: TrialKey, *, expected: ExpectedIsolation | None = None) -> Replayed:
    """Check a completed trial of a store.

    Args:
        store: where it lies, perhaps moved or copied since.
        key: which trial.
        expected: what a caller says was recorded; compared when given.

    Raises:
        TrialError: `binding_mismatch`: something drifted, naming the field; `isolation_breach`: a breach was
            observed; `registry_mismatch`, `evidence_invalid`: the tier of the stored registry is another one
            than was recorded, or none; `proof_missing`: it lacks what its tier does not waive;
            `trial_missing`.
        EvidenceError: the disk failed, or the trial's folder is no private one of ours.
    """
    with store.demand_trial(key) as trial:
        document = store.read(read_document_bytes(trial))
        check_identity(store, key, document, TrialCode.BINDING_MISMATCH)
        replayed = replay_folder(trial, document, store.gates)
        if expected is not None:
            _check_expected(replayed.isolation, expected, store)
    return replayed


def replay_folder(trial: PrivateRoot, document: TrialDocument, gates: PilotGates) -> Replayed:
    """Check a completed trial by its folder alone, wherever it lies: a sealed copy has no store around it.

    Args:
        trial: the open folder.
        document: read from it.
        gates: that say which tiers are in force.

    Raises:
        TrialError, EvidenceError: as `replay`.
    """
    isolation = document.completion_isolation
    if document.status is not TrialStatus.COMPLETED or isolation is None:
        raise _drift("status", "The trial has not completed")
    if trial.exists(BREACH):
        sentence = "A breach of isolation was observed in this trial; it does not count as completed."
        raise TrialError(TrialCode.ISOLATION_BREACH, BREACH, sentence)
    _check_isolation(document, isolation, gates)
    _check_budget(document)
    evidence = _evidence_again(trial, isolation)
    if completion_binding(document, evidence) != document.completion_binding_hash:
        raise _drift(
            "completion_binding_hash", "The document or an evidence file was changed after completion"
        )
    return Replayed(document, isolation, evidence)


def _check_isolation(document: TrialDocument, isolation: CompletionIsolation, gates: PilotGates) -> None:
    """Make the isolation record again from what it is made of."""
    tier = required_tier(document.registry_schema)
    if isolation.evidence_tier is not tier:
        sentence = f"The completion records another tier than its registry has ({tier}); it was changed."
        raise TrialError(
            TrialCode.REGISTRY_MISMATCH,
            "/completion_isolation/evidence_tier",
            sentence,
            field="evidence_tier",
        )
    assessment = assess(isolation.evidence)
    if assessment.breaches:
        sentence = (
            f"The recorded evidence shows a breach ({assessment.breaches[0]}); the trial does not count."
        )
        raise TrialError(TrialCode.ISOLATION_BREACH, "/completion_isolation/evidence", sentence)
    declared = {item for item in isolation.coverage_limitations if item in FILE_ITEMS}
    missing = assessment.missing | declared
    check_proofs(missing, waivers(tier, gates))
    again = completion_isolation(
        isolation.evidence, isolation.read_allow_roots, isolation.write_allow_roots, tier, missing
    )
    for field in type(again).model_fields:
        if getattr(again, field) != getattr(isolation, field):
            raise _drift(field, "The record of isolation does not follow from its own evidence")


def _check_budget(document: TrialDocument) -> None:
    cursor = document.resume_cursor
    if cursor is None:
        if has_limit(document.budget):
            raise _drift("resume_cursor", "The trial has a limit and no account of what it used")
        return
    try:
        check_within(document.budget, cursor.consumed_budget)
    except TrialError as error:
        raise _drift("resume_cursor", "The trial used more than its budget") from error


def _evidence_again(trial: PrivateRoot, isolation: CompletionIsolation) -> EvidenceDigests:
    try:
        events = read_events(trial)
        outcome = read_outcome(trial)
        with evidence_rows(trial, AUDIT) as file:
            rows = check_rows(file.lines())
        fault = torn_fault(file, AUDIT)
    except TrialError as error:
        raise _drift(error.where, "An evidence file was changed after completion") from error
    if fault is not None:
        raise _drift(AUDIT, "The audit was changed after completion") from fault
    if not rows and WaivableItem.COMPLETE_ACCESS_AUDIT not in isolation.coverage_limitations:
        raise _drift(AUDIT, "The audit is empty and was recorded as complete")
    return EvidenceDigests(events, file.digest, outcome)


def _check_expected(isolation: CompletionIsolation, expected: ExpectedIsolation, store: TrialStore) -> None:
    """Hold what a caller says against what was recorded.

    Raises:
        TrialError: `binding_mismatch`, naming the field.
    """
    if evidence_hash(expected.evidence) != isolation.evidence_hash:
        raise _drift("evidence", "Other isolation evidence was recorded")
    here = str(store.root.path)
    for field in ("read_allow_roots", "write_allow_roots"):
        stored, said = getattr(isolation, field), getattr(expected, field)
        if stored == said:
            continue
        if _rebased(stored, store.located_at) != _rebased(said, (here,)):
            raise _drift(field, "Other roots were recorded")


def _rebased(roots: Iterable[str], places: Iterable[str]) -> str:
    """The digest of the roots, those under a place of the store as seen from it."""
    bases = sorted((PurePosixPath(place) for place in places), key=lambda place: -len(place.parts))
    seen: list[list[str]] = []
    for root in roots:
        path = PurePosixPath(root)
        base = next((base for base in bases if path.is_relative_to(base)), None)
        seen.append(["", root] if base is None else ["store", str(path.relative_to(base))])
    return digest_object(seen)


def _drift(field: str, told: str) -> TrialError:
    sentence = f"{told} ({field}); this trial does not count as completed."
    return TrialError(TrialCode.BINDING_MISMATCH, f"/{field}", sentence, field=field)
