"""Isolation: an observed breach and a missing proof never share a name (trials.md, section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal

from skill_effectiveness.evidence.resolution import holds
from skill_effectiveness.protocol.gates import EvidenceTierName, WaivableItem
from skill_effectiveness.protocol.tasks import ExecutionMode
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.models import CompletionIsolation, IsolationEvidence, evidence_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Breach(StrEnum):
    """What was observed."""

    SESSION_NOT_FRESH = "session_not_fresh"
    FORKED_FROM_EXISTING = "forked_from_existing"
    AUTO_MEMORY_ENABLED = "auto_memory_enabled"
    VECTOR_RETRIEVAL_ENABLED = "vector_retrieval_enabled"
    SESSION_RECALL_ENABLED = "session_recall_enabled"
    CROSS_SESSION_CACHE_ENABLED = "cross_session_cache_enabled"
    CANARY_LEAK_DETECTED = "canary_leak_detected"
    PROVIDER_PERSISTENCE_ENABLED = "provider_persistence_enabled"
    READ_OUTSIDE_ROOTS = "read_outside_roots"
    WRITE_OUTSIDE_ROOTS = "write_outside_roots"


_ENABLED: Final = (
    Breach.FORKED_FROM_EXISTING,
    Breach.AUTO_MEMORY_ENABLED,
    Breach.VECTOR_RETRIEVAL_ENABLED,
    Breach.SESSION_RECALL_ENABLED,
    Breach.CROSS_SESSION_CACHE_ENABLED,
    Breach.CANARY_LEAK_DETECTED,
)
"""Fields of the evidence that say what happened when they are true."""

FILE_ITEMS: Final = (WaivableItem.COMPLETE_ACCESS_AUDIT, WaivableItem.ACCESS_ROOT_ENFORCEMENT)
MEMORY_ITEMS: Final = (WaivableItem.MEMORY_ISOLATION_PROOF, WaivableItem.PROVIDER_SIDE_PERSISTENCE_PROOF)


@dataclass(frozen=True, slots=True)
class IsolationAssessment:
    """What the evidence of a trial comes to.

    Attributes:
        breaches: observed, in the order of the fields.
        missing: proofs that are absent; a breach is no absence.
    """

    breaches: tuple[Breach, ...]
    missing: frozenset[WaivableItem]


def assess(evidence: IsolationEvidence | None) -> IsolationAssessment:
    """Judge what was observed; no evidence at all is missing proof of everything."""
    seen = evidence or IsolationEvidence()
    breaches: list[Breach] = []
    missing: set[WaivableItem] = set()
    if seen.fresh_session is False:
        breaches.append(Breach.SESSION_NOT_FRESH)
    elif seen.fresh_session is not True:
        missing.add(WaivableItem.MEMORY_ISOLATION_PROOF)
    for field in _ENABLED:
        value = getattr(seen, field)
        if value is True:
            breaches.append(field)
        elif value is not False:
            missing.add(WaivableItem.MEMORY_ISOLATION_PROOF)
    if seen.provider_persistence == "enabled":
        breaches.append(Breach.PROVIDER_PERSISTENCE_ENABLED)
    elif seen.provider_persistence != "disabled":
        missing.add(WaivableItem.PROVIDER_SIDE_PERSISTENCE_PROOF)
    return IsolationAssessment(tuple(breaches), frozenset(missing))


@dataclass(frozen=True, slots=True)
class Protected:
    """What a tested agent may never write, and what no root may be.

    Attributes:
        trial: absolute path of the trial's folder.
        store: absolute path of the store.
        homes: absolute paths of home folders.
    """

    trial: str
    store: str
    homes: tuple[str, ...]


_SECRET: Final = ("blinding", "blinding.key", ".orientation.key", "keys", "adjudication", "bridge-receipts")
"""Below a store: what no tested agent may read, so that it learns neither keys nor which arm is which."""
_OF_THE_CONTROLLER: Final = (*_SECRET, "trials", "calibration", "root.json")
"""Below a store: what no tested agent may write."""


def check_roots(
    read: Sequence[str], write: Sequence[str], mode: ExecutionMode | None, protected: Protected
) -> None:
    """Demand separate roots, none of them too wide, that reach nothing of the controller.

    Args:
        read: absolute, without links.
        write: likewise.
        mode: in `workspace` a write root may also be read: the working copy.
        protected: what must stay out of reach.

    Raises:
        TrialError: `bad_record`.
    """
    _check_width("read_allow_roots", read, protected.homes)
    _check_width("write_allow_roots", write, protected.homes)
    for index, root in enumerate(read):
        if any(_reaches(root, f"{protected.store}/{name}") for name in _SECRET):
            sentence = "A read root reaches keys or mappings of the controller; name the folder of the trial."
            raise _bad_root("read_allow_roots", index, sentence)
    for index, root in enumerate(write):
        _check_write_root(root, index, protected)
        for other in read:
            if not _reaches(root, other):
                continue
            if root == other and mode is ExecutionMode.WORKSPACE:
                continue
            sentence = "Read and write roots overlap; only a working copy may be both, in workspace mode."
            raise _bad_root("write_allow_roots", index, sentence)


def _check_width(field: str, roots: Sequence[str], homes: Sequence[str]) -> None:
    """Refuse a root that is everything, or all that is somebody's, and one that is named twice."""
    for index, root in enumerate(roots):
        if root == "/" or any(holds(root, home) for home in homes):
            sentence = (
                "A root is neither the whole file system nor a home folder; name the folder of the trial."
            )
            raise _bad_root(field, index, sentence)
        if root in roots[:index]:
            raise _bad_root(field, index, "The same root stands in the list twice; name it once.")


def _check_write_root(root: str, index: int, protected: Protected) -> None:
    """Refuse a write root that reaches the documents, logs, grades, keys or mappings of the controller."""
    outcome = f"{protected.trial}/outcome"
    if holds(outcome, root):
        return
    for name in _OF_THE_CONTROLLER:
        if _reaches(root, f"{protected.store}/{name}"):
            sentence = (
                "A write root reaches what only the controller writes (documents, logs, grades, keys); "
                "below the store a tested agent writes into the outcome folder of its trial alone."
            )
            raise _bad_root("write_allow_roots", index, sentence)


def _reaches(root: str, place: str) -> bool:
    """Whether one of two paths holds the other."""
    return holds(root, place) or holds(place, root)


def _bad_root(field: str, index: int, sentence: str) -> TrialError:
    return TrialError(TrialCode.BAD_RECORD, f"/{field}/{index}", sentence, field=field)


def completion_isolation(
    evidence: IsolationEvidence | None,
    read_roots: Iterable[str],
    write_roots: Iterable[str],
    tier: EvidenceTierName,
    missing: Iterable[WaivableItem],
) -> CompletionIsolation:
    """What a completion records; `missing` are the absent proofs, all of them waived.

    The same function makes the record and makes it again at replay, so a stored one that differs was changed.
    """
    limitations = tuple(sorted(set(missing)))
    return CompletionIsolation(
        schema_version=1,
        evidence=evidence,
        evidence_hash=evidence_hash(evidence),
        read_allow_roots=tuple(read_roots),
        write_allow_roots=tuple(write_roots),
        status="advisory_limited" if limitations else "ok",
        file_access_status=_status(limitations, FILE_ITEMS),
        memory_isolation_status=_status(limitations, MEMORY_ITEMS),
        evidence_tier=tier,
        coverage_limitations=limitations,
    )


def _status(
    limitations: Sequence[WaivableItem], items: Sequence[WaivableItem]
) -> Literal["ok", "unverified"]:
    return "unverified" if any(item in items for item in limitations) else "ok"
