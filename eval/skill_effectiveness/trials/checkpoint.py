"""Moving a trial on: planned as a value, then one replace (trials.md, sections 4 to 6).

What is checked comes in the order of bridge.md, section 6: meaning of the request, version, state, observed
breach, evidence files, tier and proofs, budget and progress. So a breach outranks everything that may be
missing. The one file that a refusal leaves is the breach mark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_bytes, dump_line
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.folders import make_durable
from skill_effectiveness.evidence.lock import DEFAULT_WAIT
from skill_effectiveness.evidence.names import temporary_of
from skill_effectiveness.evidence.resolution import PathResolver, UnresolvedError
from skill_effectiveness.protocol.gates import WaivableItem
from skill_effectiveness.trials.audit import audit
from skill_effectiveness.trials.binding import AUDIT, EvidenceDigests
from skill_effectiveness.trials.changes import Change
from skill_effectiveness.trials.evidence_files import evidence_rows, read_events, read_outcome, torn_fault
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.isolation import (
    Protected,
    assess,
    check_roots,
    completion_isolation,
)
from skill_effectiveness.trials.models import (
    Checkpointed,
    TrialStatus,
    evidence_hash,
)
from skill_effectiveness.trials.store import (
    BREACH,
    TRIAL,
    check_identity,
    read_document_bytes,
)
from skill_effectiveness.trials.tiers import check_proofs, derived_tier, required_tier, waivers
from skill_effectiveness.trials.transitions import (
    check_request,
    check_transition,
    check_version,
    next_cursor,
    next_document,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.trials.audit import AuditFinding
    from skill_effectiveness.trials.isolation import Breach, IsolationAssessment
    from skill_effectiveness.trials.models import (
        CheckpointRequest,
        CompletionIsolation,
        TrialDocument,
        TrialKey,
    )
    from skill_effectiveness.trials.store import TrialStore

BREACH_CONTRACT: Final = "skill-effectiveness-trial-breach-v1"
_STAYS_OPEN_TO: Final = frozenset({TrialStatus.CONTAMINATED, TrialStatus.FAILED})


def checkpoint(
    store: TrialStore, key: TrialKey, request: CheckpointRequest, *, wait: float = DEFAULT_WAIT
) -> Checkpointed:
    """Move a trial on, under its lock from the first look to the last write.

    Raises:
        TrialError: see `plan_checkpoint`.
        LockError: the lock was not obtained.
        EvidenceError: the disk failed, or something of the trial is no private file of ours.
    """
    with store.holding(key, wait) as trial:
        change = _plan(store, key, trial, request)
        _write(trial, change)
    return change.result


def plan_checkpoint(store: TrialStore, key: TrialKey, request: CheckpointRequest) -> Change[Checkpointed]:
    """What a checkpoint would make of a trial; nothing changes but that an observed breach is marked.

    For callers that record what they are about to do, and hold a lock of their own over it; `apply` follows.

    Raises:
        TrialError: with the first failing check in the order of the module's text.
        EvidenceError: as `checkpoint`.
    """
    with store.demand_trial(key) as trial:
        return _plan(store, key, trial, request)


def apply(store: TrialStore, change: Change[Checkpointed], *, wait: float = DEFAULT_WAIT) -> Checkpointed:
    """Carry out a planned checkpoint; carrying it out again changes nothing.

    Raises:
        TrialError: `version_conflict`: the trial is neither as it was planned from nor as it was planned;
            `trial_missing`, `evidence_invalid`.
        LockError, EvidenceError: as `checkpoint`.
    """
    with store.holding(change.key, wait) as trial:
        found = digest_bytes(read_document_bytes(trial))
        if found not in {change.before, change.after}:
            sentence = "The trial was changed since this checkpoint was planned; plan it again."
            raise TrialError(TrialCode.VERSION_CONFLICT, change.key.path, sentence)
        if found == change.after:
            make_durable(trial)
        else:
            _write(trial, change)
    return change.result


def _write(trial: PrivateRoot, change: Change[Checkpointed]) -> None:
    """The one replace of a checkpoint; before it, what a killed one left of its own goes."""
    for name in trial.names():
        if temporary_of(name) == TRIAL:
            trial.remove(name)
    if change.data is not None:
        trial.replace(TRIAL, change.data)


def _plan(
    store: TrialStore, key: TrialKey, trial: PrivateRoot, request: CheckpointRequest
) -> Change[Checkpointed]:
    stored = read_document_bytes(trial)
    before = store.read(stored)
    checks = _Checks(store, key, trial, before, request)
    checks.meaning()
    check_version(before, request.expected_state_version)
    check_transition(before.status, request.status)
    assessment, finding = checks.breaches()
    evidence = checks.evidence_files(finding)
    isolation = checks.proofs(assessment)
    cursor = next_cursor(before, request)
    after = next_document(before, request, cursor=cursor, isolation=isolation, evidence=evidence)
    data = store.written(after)
    result = Checkpointed(
        after.state_version,
        derived_tier(before.registry_schema),
        None if isolation is None else isolation.coverage_limitations,
    )
    return Change(key, digest_bytes(stored), digest_bytes(data), data, result)


@dataclass(frozen=True, slots=True)
class _Audited:
    """The audit as it was read: what it comes to, and the digest of its bytes."""

    finding: AuditFinding
    digest: str


class _Checks:
    """The checks of one checkpoint, in the order in which `_plan` calls them."""

    def __init__(
        self,
        store: TrialStore,
        key: TrialKey,
        trial: PrivateRoot,
        before: TrialDocument,
        request: CheckpointRequest,
    ) -> None:
        self._store = store
        self._key = key
        self._trial = trial
        self._before = before
        self._request = request
        self._resolver = PathResolver(store.around.fs)
        self._read_roots: tuple[str, ...] = ()
        self._write_roots: tuple[str, ...] = ()

    @property
    def _completes(self) -> bool:
        return self._request.status is TrialStatus.COMPLETED

    def meaning(self) -> None:
        """The request by itself, and against what the trial is."""
        check_identity(self._store, self._key, self._before)
        check_request(self._request)
        self._read_roots = self._resolved("read_allow_roots")
        self._write_roots = self._resolved("write_allow_roots")
        named = self._read_roots or self._write_roots
        if named and self._request.status not in _STAYS_OPEN_TO:
            protected = self._store.protected(self._key)
            homes = tuple(self._led_to(home) for home in protected.homes)
            mode = self._before.task.execution_mode
            around = Protected(protected.trial, protected.store, homes)
            check_roots(self._read_roots, self._write_roots, mode, around)

    def _led_to(self, home: str) -> str:
        """Where a home folder is; as it is named, where nobody can tell."""
        try:
            return self._resolver.resolve(home)
        except UnresolvedError:
            return home

    def _resolved(self, field: str) -> tuple[str, ...]:
        resolved: list[str] = []
        for index, root in enumerate(getattr(self._request, field) or ()):
            try:
                resolved.append(self._resolver.resolve(root))
            except UnresolvedError as error:
                sentence = "Where this root leads cannot be told; name the folder itself."
                raise TrialError(TrialCode.BAD_RECORD, f"/{field}/{index}", sentence, field=field) from error
        return tuple(resolved)

    def breaches(self) -> tuple[IsolationAssessment, _Audited | TrialError | None]:
        """What was observed; of an audit that cannot be read, why, for the next check.

        Raises:
            TrialError: `isolation_breach`, once the breach is marked.
        """
        assessment = assess(self._request.isolation_evidence)
        marked = self._trial.exists(BREACH)
        if self._request.status in _STAYS_OPEN_TO:
            if assessment.breaches and not marked:
                # Told only with the end, and still a breach: as a void trial it would count for no arm.
                self._mark(assessment.breaches, None)
            return assessment, None
        if marked:
            sentence = (
                "A breach of isolation was observed in this trial; record it as contaminated or failed."
            )
            raise TrialError(TrialCode.ISOLATION_BREACH, BREACH, sentence)
        audited = self._audited() if self._completes else None
        found = list(assessment.breaches)
        if isinstance(audited, _Audited):
            found += audited.finding.breaches
        if found:
            digest = audited.digest if isinstance(audited, _Audited) else None
            self._mark(found, digest)
            kinds = ", ".join(found)
            sentence = (
                f"A breach of isolation was observed ({kinds}); the trial is contaminated, record it so."
            )
            raise TrialError(TrialCode.ISOLATION_BREACH, BREACH, sentence, field=str(found[0]))
        return assessment, audited

    def _audited(self) -> _Audited | TrialError:
        try:
            with evidence_rows(self._trial, AUDIT) as file, reported(AUDIT, reading=True):
                finding = audit(file.lines(), self._read_roots, self._write_roots, self._resolver.resolve)
        except TrialError as error:
            return error
        fault = finding.fault or torn_fault(file, AUDIT)
        return fault if fault and not finding.breaches else _Audited(finding, file.digest)

    def _mark(self, found: Sequence[Breach], audit_hash: str | None) -> None:
        """Publish the mark from which a trial never comes back."""
        mark = {
            "schema_version": 1,
            "artifact_contract": BREACH_CONTRACT,
            "trial_fingerprint": self._before.trial_fingerprint,
            "state_version": self._before.state_version,
            "breaches": sorted(str(kind) for kind in set(found)),
            "evidence_hash": evidence_hash(self._request.isolation_evidence),
            "access_audit_hash": audit_hash,
        }
        self._trial.publish(BREACH, dump_line(mark))

    def evidence_files(self, audited: _Audited | TrialError | None) -> EvidenceDigests | None:
        """The digests of the files that a completion binds.

        Raises:
            TrialError: `evidence_missing`, `evidence_invalid`.
        """
        if not self._completes:
            return None
        events = read_events(self._trial)
        if isinstance(audited, TrialError):
            raise audited
        if audited is None:
            raise ValueError("a completion was judged without its audit")
        if not audited.finding.rows and self._request.access_audit_complete:
            sentence = (
                "The audit is empty, and yet it is said to be complete; an agent reads at least its task."
            )
            raise TrialError(TrialCode.EVIDENCE_MISSING, AUDIT, sentence)
        return EvidenceDigests(events, audited.digest, read_outcome(self._trial))

    def proofs(self, assessment: IsolationAssessment) -> CompletionIsolation | None:
        """The tier by the stored registry, and for a completion every proof that the tier does not waive.

        Raises:
            TrialError: `evidence_invalid`, `registry_mismatch`, `proof_missing`.
        """
        request = self._request
        declared = request.evidence_tier
        tier = derived_tier(self._before.registry_schema)
        if not self._completes:
            if declared is not None:
                waivers(required_tier(self._before.registry_schema), self._store.gates, declared)
            return None
        tier = required_tier(self._before.registry_schema)
        missing = set(assessment.missing)
        if not request.access_audit_complete:
            missing.add(WaivableItem.COMPLETE_ACCESS_AUDIT)
        if not request.access_roots_enforced:
            missing.add(WaivableItem.ACCESS_ROOT_ENFORCEMENT)
        check_proofs(missing, waivers(tier, self._store.gates, declared))
        return completion_isolation(
            request.isolation_evidence,
            request.read_allow_roots or (),
            request.write_allow_roots or (),
            tier,
            missing,
        )
