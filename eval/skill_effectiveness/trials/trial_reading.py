"""Opening one trial, once, and reading everything the gate wants to know of it.

What lies in a trial's folder is foreign until it was read: whatever is malformed, absent or not a private
file of ours is an absent value, and only the disk's own trouble is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.faults import EvidenceError, FileCode, FileError, RootError
from skill_effectiveness.evidence.row_files import row_file
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.protocol.arm_errors import ArmError
from skill_effectiveness.protocol.event_rows import (
    HOST_RESIDUAL_CONTRACT,
    HostResidualRow,
    SkillEventsRow,
    read_event_row,
)
from skill_effectiveness.protocol.manifests import SkillContentManifest
from skill_effectiveness.protocol.registry_plan import build_plan
from skill_effectiveness.protocol.skill_events import EVENT_CONTRACT
from skill_effectiveness.trials.binding import EVENTS, OUTCOME
from skill_effectiveness.trials.faults import TrialError
from skill_effectiveness.trials.gate_facts import MISSING_TRIAL, TrialFacts
from skill_effectiveness.trials.gate_words import EvidenceSource
from skill_effectiveness.trials.grades import GRADE_NAME, REPLAY_NAME
from skill_effectiveness.trials.leaks import LeakRules
from skill_effectiveness.trials.models import TrialKey, TrialStatus
from skill_effectiveness.trials.replay import replay_folder
from skill_effectiveness.trials.store import BREACH, check_identity, read_document
from skill_effectiveness.trials.trial_facts import EventRows, StoredTrial, TrialContext, facts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.protocol.gates import PilotGates
    from skill_effectiveness.trials.gate_facts import PlannedTrial
    from skill_effectiveness.trials.models import TrialDocument
    from skill_effectiveness.trials.pilot_bundle import PilotBundle
    from skill_effectiveness.trials.pilot_plan import Design
    from skill_effectiveness.trials.replay import Replayed
    from skill_effectiveness.trials.store import TrialStore

GRADING: Final = "grading"
_OUTCOME_FOLDER, _OUTCOME_NAME = OUTCOME.split("/")
_OF_THE_DISK: Final = frozenset({FileCode.IO_ERROR, FileCode.NOT_READABLE})
_UNNAMED: Final[frozenset[str]] = frozenset()


class TrialSource(Protocol):
    """Where planned trials are opened."""

    @property
    def kind(self) -> EvidenceSource:
        """What it is."""
        ...

    def trial(self, key: TrialKey) -> PrivateRoot | None:
        """The folder of a trial, open; None where there is none."""
        ...

    def is_misplaced(self, key: TrialKey, document: TrialDocument) -> bool:
        """Whether a document was made for another place than it lies in."""
        ...


@dataclass(frozen=True, slots=True)
class StoredTrials:
    """Trials in their store."""

    store: TrialStore
    kind: EvidenceSource = EvidenceSource.TRIAL_STORE

    def trial(self, key: TrialKey) -> PrivateRoot | None:
        """See `TrialSource`."""
        return self.store.trial(key)

    def is_misplaced(self, key: TrialKey, document: TrialDocument) -> bool:
        """See `TrialSource`."""
        try:
            check_identity(self.store, key, document)
        except TrialError:
            return True
        return False


@dataclass(frozen=True, slots=True)
class SealedTrials:
    """The copies in a bundle; their place is bound by the plan's fingerprint alone."""

    bundle: PilotBundle
    kind: EvidenceSource = EvidenceSource.SEALED_COPIES

    def trial(self, key: TrialKey) -> PrivateRoot | None:
        """See `TrialSource`."""
        return self.bundle.sealed_trial(key)

    def is_misplaced(self, _key: TrialKey, _document: TrialDocument) -> bool:
        """See `TrialSource`."""
        return False


class NoTrials:
    """Nothing: there is no bundle, so nothing is opened."""

    kind = EvidenceSource.NONE

    def trial(self, _key: TrialKey) -> PrivateRoot | None:
        """See `TrialSource`."""
        return None

    def is_misplaced(self, _key: TrialKey, _document: TrialDocument) -> bool:
        """See `TrialSource`."""
        return False


class TrialReader:
    """Opens planned trials and derives their facts."""

    def __init__(self, design: Design, source: TrialSource, gates: PilotGates) -> None:
        self._design = design
        self._source = source
        self._gates = gates
        try:
            self._plan_hash: str | None = build_plan(list(design.manifests.values())).plan_hash
        except ArmError:
            # Arms that differ where they must not make no plan; the gate fails by them.
            self._plan_hash = None
        self._arms = {arm.arm_id: arm for arm in design.arms}
        owners = {owner for task in design.tasks.values() for owner in task.task.expected_owners}
        self._leaks = LeakRules(arm_ids=design.manifests, owners=owners, digests=design.manifest_hashes)

    def read(self, planned: PlannedTrial) -> TrialFacts:
        """The facts of one trial, opened once.

        Raises:
            EvidenceError: the disk failed.
        """
        try:
            key = TrialKey(*planned.name)
            trial = self._source.trial(key)
        except (TrialError, RootError):
            # No name of a trial, or what lies there is no private folder of ours.
            return MISSING_TRIAL
        if trial is None:
            return MISSING_TRIAL
        with trial:
            try:
                document = read_document(trial)
            except TrialError:
                return MISSING_TRIAL
            misplaced = self._source.is_misplaced(key, document)
            stored = read_trial(trial, document, self._gates, misplaced=misplaced)
        return facts(stored, self._context(planned))

    def _context(self, planned: PlannedTrial) -> TrialContext:
        task = self._design.tasks[planned.name.task_id]
        arm = self._design.manifests[planned.name.arm_id]
        policy = arm.bundle_policy if isinstance(arm, SkillContentManifest) else None
        return TrialContext(
            planned=planned,
            task=task.task,
            reference=task.reference,
            registry_schema=self._design.registry_schema,
            plan_hash=self._plan_hash,
            bundle_id=None if policy is None else policy.bundle_id,
            calls_are_matched=self._arms[arm.arm_id].calls_are_matched,
            leaks=self._leaks,
        )


def read_trial(
    trial: PrivateRoot, document: TrialDocument, gates: PilotGates, *, misplaced: bool
) -> StoredTrial:
    """Read a trial's folder.

    Args:
        trial: open.
        document: read from it.
        gates: the frozen ones.
        misplaced: whether the document was made for another place.

    Raises:
        EvidenceError: the disk failed.
    """
    replayed = _replayed(trial, document, gates)
    events, events_digest = _events(trial)
    outcome, outcome_digest = _outcome(trial)
    if replayed is not None and (
        events_digest != replayed.evidence.events or outcome_digest != replayed.evidence.outcome
    ):
        # Changed between two looks: what was checked is not what would be judged.
        replayed = None
    grade, again = _grades(trial)
    return StoredTrial(
        document=document,
        misplaced=misplaced,
        isolation=None if replayed is None else replayed.isolation,
        breaches=_breaches(trial),
        events=events,
        outcome=outcome,
        grade=grade,
        grade_again=again,
    )


def _replayed(trial: PrivateRoot, document: TrialDocument, gates: PilotGates) -> Replayed | None:
    if document.status is not TrialStatus.COMPLETED:
        return None
    try:
        return replay_folder(trial, document, gates)
    except TrialError:
        return None
    except FileError as error:
        if error.code in _OF_THE_DISK:
            raise
        return None
    except EvidenceError:
        return None


def _events(trial: PrivateRoot) -> tuple[EventRows, str | None]:
    """The rows of the two contracts, and the digest of the whole file; nothing of a file that is not ours."""
    residuals: list[HostResidualRow | None] = []
    skill_events: list[SkillEventsRow | None] = []
    try:
        with row_file(trial, EVENTS) as file:
            for line in file.lines():
                _sort(line, residuals, skill_events)
            return EventRows(residuals, skill_events), file.digest
    except FileError as error:
        _pass_on(error)
        return EventRows(), None


def _sort(
    line: bytes, residuals: list[HostResidualRow | None], skill_events: list[SkillEventsRow | None]
) -> None:
    """Put a row where it belongs; one of no contract of ours is not read at all."""
    # An escape could spell the name of a contract in other bytes.
    if not any(word in line for word in _TOLD_BY):
        return
    try:
        row = read_json(line, Profile.ROW)
    except EvidenceError:
        return
    contract = row.get("event_contract") if isinstance(row, dict) else None
    try:
        found = read_event_row(row)
    except EvidenceError:
        found = None
    if contract == HOST_RESIDUAL_CONTRACT:
        residuals.append(found if isinstance(found, HostResidualRow) else None)
    elif contract == EVENT_CONTRACT:
        skill_events.append(found if isinstance(found, SkillEventsRow) else None)


_TOLD_BY: Final = (HOST_RESIDUAL_CONTRACT.encode(), EVENT_CONTRACT.encode(), b"\\u")


def _outcome(trial: PrivateRoot) -> tuple[Mapping[str, JsonValue] | None, str | None]:
    data = _bytes(trial, _OUTCOME_FOLDER, _OUTCOME_NAME)
    if data is None:
        return None, None
    try:
        value = read_json(data, Profile.DOCUMENT, want_object=True)
    except EvidenceError:
        return None, None
    return value if isinstance(value, dict) else None, digest_bytes(data)


def _grades(trial: PrivateRoot) -> tuple[bytes | None, bytes | None]:
    return _bytes(trial, GRADING, GRADE_NAME), _bytes(trial, GRADING, REPLAY_NAME)


def _breaches(trial: PrivateRoot) -> frozenset[str] | None:
    """What the breach mark names; a mark that cannot be read is still one."""
    if not trial.exists(BREACH):
        return None
    try:
        value = read_json(trial.read(BREACH), Profile.DOCUMENT, want_object=True)
    except EvidenceError:
        return _UNNAMED
    named = value.get("breaches") if isinstance(value, dict) else None
    return frozenset(name for name in named if isinstance(name, str)) if isinstance(named, list) else _UNNAMED


def _bytes(trial: PrivateRoot, folder: str, name: str) -> bytes | None:
    """The bytes of a private file of ours; None where there is none."""
    try:
        with trial.child(folder) as below:
            return below.read(name)
    except FileError as error:
        _pass_on(error)
        return None
    except RootError:
        return None


def _pass_on(error: FileError) -> None:
    """Raise what is the disk's trouble; anything else is an absent value."""
    if error.code in _OF_THE_DISK:
        raise error
