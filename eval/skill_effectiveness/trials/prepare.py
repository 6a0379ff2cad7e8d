"""Preparing a trial: made once, complete from its first moment, found again after that.

A trial's folder is built under another name and renamed, so that no one sees half of it. Preparing what is
there changes nothing but what an interrupted first preparation left undone.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.evidence.canonical import digest_bytes, dump
from skill_effectiveness.evidence.faults import FileCode, FileError, RootError
from skill_effectiveness.evidence.folders import make_durable, publish_folder, sweep_builds
from skill_effectiveness.evidence.lock import DEFAULT_WAIT
from skill_effectiveness.evidence.names import temporary_of
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.protocol.tasks import public_reference
from skill_effectiveness.trials.binding import AUDIT, EVENTS, fingerprint
from skill_effectiveness.trials.budget import check_left, remaining
from skill_effectiveness.trials.changes import Change
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.models import (
    TRIAL_CONTRACT,
    Mode,
    PreparedTrial,
    TrialDocument,
    TrialKey,
    TrialStatus,
)
from skill_effectiveness.trials.replay import replay
from skill_effectiveness.trials.store import (
    BREACH,
    OUTCOME_FOLDER,
    TRIAL,
    TRIAL_LOCK,
    hold_trial,
    read_document_bytes,
)
from skill_effectiveness.trials.tiers import check_in_force, required_tier

if TYPE_CHECKING:
    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.protocol.manifests import ArmManifest
    from skill_effectiveness.protocol.registries import RegistrySchema
    from skill_effectiveness.protocol.registry_plan import ArmRegistryPlan
    from skill_effectiveness.protocol.tasks import Task
    from skill_effectiveness.trials.models import (
        ExpectedIsolation,
        RemainingBudget,
        TrialBudget,
        TrialRuntime,
    )
    from skill_effectiveness.trials.store import TrialStore

FIXED: Final = (
    "schema_version",
    "artifact_contract",
    "enforcement",
    "registry_schema",
    "task",
    "arm_id",
    "manifest_hash",
    "runtime",
    "budget",
    "sample_index",
    "registry_plan_hash",
    "trial_location_hash",
    "trial_fingerprint",
)
"""Fields of `trial.json` that never change."""

_LOGS: Final = (EVENTS, AUDIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareOrder:
    """Which trial is to be prepared.

    Attributes:
        task: the full record.
        manifest: the frozen arm.
        runtime: what it runs in.
        budget: what it may use.
        sample_index: from 1.
        registry_schema: the registry the caller means; the manifest's own when absent.
        plan: the frozen registry plan.
        study: a study never prepares without a plan.
        expected: what a caller says that the trial, if completed, recorded.
    """

    task: Task
    manifest: ArmManifest
    runtime: TrialRuntime
    budget: TrialBudget
    sample_index: int
    registry_schema: RegistrySchema | None = None
    plan: ArmRegistryPlan | None = None
    study: bool = False
    expected: ExpectedIsolation | None = None

    @property
    def key(self) -> TrialKey:
        """Which trial it is.

        Raises:
            TrialError: `bad_record`.
        """
        return TrialKey(self.task.task_id, self.manifest.arm_id, self.sample_index)


def prepare(store: TrialStore, order: PrepareOrder, *, wait: float = DEFAULT_WAIT) -> PreparedTrial:
    """Make a trial, or find the one that was made.

    Raises:
        TrialError: see `plan_prepare`.
        LockError: the lock was not obtained.
        EvidenceError: the disk failed, or something there is no private folder or file of ours.
    """
    _check_order(store, order)
    with store.preparing(order.key, wait) as arm:
        change = _plan(store, order, arm)
        _carry_out(store, arm, change)
    return change.result


def plan_prepare(store: TrialStore, order: PrepareOrder) -> Change[PreparedTrial]:
    """What preparing would find or make; nothing changes.

    For callers that record what they are about to do; `apply_prepare` follows.

    Raises:
        TrialError: `bad_record`, `registry_mismatch`, `plan_missing`, `plan_mismatch`: the order;
            `identity_mismatch`: the sample was prepared for something else, the field is named;
            `budget_exceeded`: nothing is left; `cursor_invalid`: a started trial without its cursor;
            `isolation_breach`: the trial is marked; `binding_mismatch`: a completed trial does not replay, or
            is not what the caller expects; `evidence_invalid`: what is there is no trial.
        EvidenceError: as `prepare`.
    """
    _check_order(store, order)
    return _plan(store, order)


def _plan(store: TrialStore, order: PrepareOrder, arm: PrivateRoot | None = None) -> Change[PreparedTrial]:
    """What an order that makes sense comes to."""
    key = order.key
    trial = store.trial(key, arm)
    if trial is None:
        return _creation(store, order)
    with trial:
        names = trial.names()
        if TRIAL not in names:
            _check_interrupted(trial, names)
            return _creation(store, order)
        stored = read_document_bytes(trial)
        document = store.read(stored)
        marked = BREACH in names
    _check_same_order(store, order, document)
    mode, left = _found(store, order, document, marked=marked)
    digest = digest_bytes(stored)
    result = PreparedTrial(key.path, mode, document.state_version, left)
    return Change(key, digest, digest, None, result)


def apply_prepare(
    store: TrialStore, change: Change[PreparedTrial], *, wait: float = DEFAULT_WAIT
) -> PreparedTrial:
    """Carry out a planned preparation; carrying it out again changes nothing.

    Raises:
        TrialError: `version_conflict`: the trial is neither as it was planned from nor as it was planned;
            `evidence_invalid`.
        LockError, EvidenceError: as `prepare`.
    """
    with store.preparing(change.key, wait) as arm:
        _carry_out(store, arm, change)
    return change.result


# What is asked for.


def _check_order(store: TrialStore, order: PrepareOrder) -> None:
    """Demand an order that makes sense by itself."""
    manifest = order.manifest
    if not manifest.runnable:
        raise _refused(TrialCode.BAD_RECORD, "manifest", "The arm may not run; choose a runnable one")
    if order.registry_schema is not None and order.registry_schema is not manifest.registry_schema:
        told = "The manifest is of another registry than the caller says"
        raise _refused(TrialCode.REGISTRY_MISMATCH, "registry_schema", told)
    _ = order.key
    _check_plan(order)
    check_in_force(required_tier(manifest.registry_schema), store.gates)


def _check_plan(order: PrepareOrder) -> None:
    plan, manifest = order.plan, order.manifest
    if plan is None:
        if order.study:
            told = "A study prepares its trials under a frozen registry plan only"
            raise _refused(TrialCode.PLAN_MISSING, "registry_plan", told)
        return
    if plan.registry_schema is not manifest.registry_schema:
        raise _refused(
            TrialCode.REGISTRY_MISMATCH, "registry_plan", "Plan and manifest are of two registries"
        )
    if not plan.contains(manifest.arm_id, manifest.manifest_hash):
        raise _refused(TrialCode.PLAN_MISMATCH, "registry_plan", "The manifest is not one of the plan's")


def _refused(code: TrialCode, field: str, told: str) -> TrialError:
    return TrialError(code, f"/{field}", f"{told}; the trial was not prepared.", field=field)


def _new_document(order: PrepareOrder, location: str) -> TrialDocument:
    fields: dict[str, Any] = {
        "schema_version": 1,
        "artifact_contract": TRIAL_CONTRACT,
        "enforcement": "advisory",
        "registry_schema": str(order.manifest.registry_schema),
        "task": public_reference(order.task),
        "arm_id": order.manifest.arm_id,
        "manifest_hash": order.manifest.manifest_hash,
        "runtime": order.runtime,
        "budget": order.budget,
        "sample_index": order.sample_index,
        "trial_location_hash": location,
        "trial_fingerprint": fingerprint(
            task=order.task,
            manifest_hash=order.manifest.manifest_hash,
            runtime=order.runtime,
            budget=order.budget,
            sample_index=order.sample_index,
            trial_location_hash=location,
        ),
        "status": TrialStatus.PREPARED,
        "state_version": 0,
        "completion_claim": False,
        "resume_cursor": None,
        "stop_reason": None,
        "completion_isolation": None,
        "completion_binding_hash": None,
    }
    if order.plan is not None:
        fields["registry_plan_hash"] = order.plan.plan_hash
    return TrialDocument(**fields)


def _creation(store: TrialStore, order: PrepareOrder) -> Change[PreparedTrial]:
    document = _new_document(order, store.location(order.key))
    data = store.written(document)
    result = PreparedTrial(order.key.path, Mode.CREATED, 0, remaining(order.budget, None))
    return Change(order.key, None, digest_bytes(data), data, result)


# What is found.


def _check_same_order(store: TrialStore, order: PrepareOrder, document: TrialDocument) -> None:
    """Demand that the sample was prepared for exactly this order.

    Raises:
        TrialError: `identity_mismatch`, naming the first field that differs.
    """
    stored = document.trial_location_hash
    location = stored if store.is_location(order.key, stored) else store.location(order.key)
    wanted, found = to_json(_new_document(order, location)), to_json(document)
    for field in FIXED:
        if dump(wanted.get(field)) != dump(found.get(field)):
            sentence = f"This sample was prepared with another {field}; use a new sample index."
            raise TrialError(TrialCode.IDENTITY_MISMATCH, f"/{field}", sentence, field=field)


def _found(
    store: TrialStore, order: PrepareOrder, document: TrialDocument, *, marked: bool
) -> tuple[Mode, RemainingBudget]:
    """The mode of a trial that is there, and what is left of its budget."""
    cursor = document.resume_cursor
    left = remaining(document.budget, None if cursor is None else cursor.consumed_budget)
    match document.status:
        case TrialStatus.CONTAMINATED | TrialStatus.FAILED:
            return Mode.TERMINAL, left
        case TrialStatus.COMPLETED:
            _check_completed(store, order)
            return Mode.COMPLETE, left
        case _:
            pass
    if marked:
        sentence = "A breach of isolation was observed in this trial; record it as contaminated or failed."
        raise TrialError(TrialCode.ISOLATION_BREACH, BREACH, sentence)
    if cursor is None and document.status is not TrialStatus.PREPARED:
        sentence = (
            "The trial was started and has no cursor, so nobody knows where it stopped; record it as failed."
        )
        raise TrialError(TrialCode.CURSOR_INVALID, "/resume_cursor", sentence, field="resume_cursor")
    check_left(left)
    return Mode.RESUME, left


def _check_completed(store: TrialStore, order: PrepareOrder) -> None:
    if order.expected is None:
        told = "A completed trial is handed out only against its isolation evidence and both lists of roots"
        raise TrialError(TrialCode.BINDING_MISMATCH, "/expected_isolation_evidence", f"{told}; give them.")
    try:
        replay(store, order.key, expected=order.expected)
    except TrialError as error:
        if error.code in {TrialCode.BINDING_MISMATCH, TrialCode.ISOLATION_BREACH}:
            raise
        raise TrialError(
            TrialCode.BINDING_MISMATCH, error.where, error.sentence, field=error.field
        ) from error


def _check_interrupted(trial: PrivateRoot, names: tuple[str, ...]) -> None:
    """Demand that a folder without a document holds only what an interrupted creation leaves.

    Raises:
        TrialError: `evidence_invalid`; the folder stays as it is.
    """
    for name in names:
        if _is_left_behind(trial, name):
            continue
        sentence = f"The folder has no {TRIAL} and holds {name!a}, which no preparation leaves; move it away."
        raise TrialError(TrialCode.EVIDENCE_INVALID, trial.folder.where(name), sentence)


def _is_left_behind(trial: PrivateRoot, name: str) -> bool:
    """Whether an interrupted creation leaves this: an empty log or folder, a lock, a temporary of ours."""
    if name in _LOCKS or temporary_of(name) in {*_LOGS, TRIAL, *_LOCKS}:
        return True
    try:
        if name in _LOGS:
            return not trial.read(name, limit=0)
        if name == OUTCOME_FOLDER:
            with trial.child(name) as folder:
                return not folder.names()
    except (FileError, RootError) as error:
        if error.code is FileCode.IO_ERROR:
            raise
    return False


_LOCKS: Final = (TRIAL_LOCK, f"{TRIAL_LOCK}.holder")


# What is done.


def _carry_out(store: TrialStore, arm: PrivateRoot, change: Change[PreparedTrial]) -> None:
    """Make what is not there; the caller holds the prepare lock."""
    key = change.key
    sweep_builds(arm, key.sample_name)
    with ExitStack() as stack:
        trial = store.trial(key, arm)
        if trial is None:
            _make(arm, change)
            return
        stack.enter_context(trial)
        if trial.exists(TRIAL):
            found = read_document_bytes(trial)
            if digest_bytes(found) not in {change.before, change.after}:
                sentence = "The trial was changed since this preparation was planned; plan it again."
                raise TrialError(TrialCode.VERSION_CONFLICT, key.path, sentence)
            if store.read(found).state_version == 0:
                _complete(trial)
            make_durable(trial)
            make_durable(arm)
            return
        _check_interrupted(trial, trial.names())
        stack.enter_context(hold_trial(trial))
        trial.sweep()
        _complete(trial)
        trial.publish(TRIAL, _data_of(change))
        make_durable(arm)


def _make(arm: PrivateRoot, change: Change[PreparedTrial]) -> None:
    publish_folder(
        arm,
        change.key.sample_name,
        files={TRIAL: _data_of(change), EVENTS: b"", AUDIT: b"", TRIAL_LOCK: b""},
        folders=(OUTCOME_FOLDER,),
    )


def _data_of(change: Change[PreparedTrial]) -> bytes:
    if change.data is None:
        sentence = "The trial that this preparation had found is gone; plan it again."
        raise TrialError(TrialCode.VERSION_CONFLICT, change.key.path, sentence)
    return change.data


def _complete(trial: PrivateRoot) -> None:
    """Add what a trial of version 0 has and an interrupted creation may not have made."""
    trial.child(OUTCOME_FOLDER, create=True).close()
    for name in _LOGS:
        if not trial.exists(name):
            trial.publish(name, b"")
