"""Writing the bundle of one gate: rows derived from the trials, the reviewers' pairs, and what seals them.

Source: trials.md section 9. The rows say exactly what is on disk, so a bundle written here is contradicted by
nothing unless something changes afterwards. `bundle.json` is published last: without it there is no bundle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import (
    digest_chunks,
    digest_object,
    dump,
    dump_line,
    list_chunks,
)
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError, FileCode, FileError, RootCode, RootError
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.evidence.tree import digest_tree
from skill_effectiveness.protocol.document import to_json, told
from skill_effectiveness.trials.binding import AUDIT, EVENTS, OUTCOME
from skill_effectiveness.trials.capability_matrix import read_probe_file
from skill_effectiveness.trials.gate_evidence import read_expected
from skill_effectiveness.trials.grades import GRADE_NAME, REPLAY_NAME
from skill_effectiveness.trials.models import TrialKey
from skill_effectiveness.trials.pilot_bundle import (
    BUNDLE,
    CALIBRATIONS,
    CAPABILITY,
    PAIR,
    RECORDS,
    SEALED,
    bundle_hash,
)
from skill_effectiveness.trials.pilot_errors import PilotCode, PilotError
from skill_effectiveness.trials.pilot_records import BUNDLE_CONTRACT, BundleDocument, record_of
from skill_effectiveness.trials.store import BREACH, TRIAL
from skill_effectiveness.trials.trial_reading import GRADING, StoredTrials, TrialReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic import JsonValue

    from skill_effectiveness.calibration.inputs import FrozenInputs
    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.trials.gate_evidence import Expected, Planned
    from skill_effectiveness.trials.pilot_plan import PlanIndex
    from skill_effectiveness.trials.store import TrialStore

_FAMILY: Final = "reviewer_family"
COPIED: Final = (TRIAL, EVENTS, AUDIT, OUTCOME, f"{GRADING}/{GRADE_NAME}", f"{GRADING}/{REPLAY_NAME}", BREACH)
"""The files of a trial that a sealed copy has."""


@dataclass(frozen=True, slots=True)
class BundleContents:
    """What a bundle is made of besides the trials.

    Attributes:
        expected: the plan.
        pairs: bytes of evidence and result of each reviewer family, at least one.
        probes: bytes of capability probe files.
        sealed: whether copies of the trials go into it, so that it can be judged without the store.
    """

    expected: Expected
    pairs: Sequence[tuple[bytes, bytes]]
    probes: Sequence[bytes] = ()
    sealed: bool = False


def write_bundle(
    target: PrivateRoot, contents: BundleContents, inputs: FrozenInputs, store: TrialStore
) -> BundleDocument:
    """Write a bundle into an empty private folder.

    Raises:
        PilotError: `bundle_occupied`, `bundle_invalid` (a pair or probe is no JSON), `plan_invalid`,
            `tier_mismatch`.
        ProtocolError, TrialError: as `gate_evidence.evaluate_bundle`.
        EvidenceError: a file could not be read or written.
    """
    if target.names():
        sentence = "it holds something already; give an empty folder."
        raise PilotError(PilotCode.BUNDLE_OCCUPIED, "", sentence)
    if not contents.pairs:
        raise PilotError(PilotCode.BUNDLE_INVALID, PAIR.evidence, "a bundle needs at least one examination.")
    planned = read_expected(contents.expected, inputs.gates)
    rows = [dump(row) for row in _rows(planned, inputs, store)]
    target.publish(RECORDS, b"".join(row + b"\n" for row in rows))
    document: dict[str, JsonValue] = {
        "schema_version": 1,
        "artifact_contract": BUNDLE_CONTRACT,
        "records_hash": digest_chunks(list_chunks(rows)),
        "record_count": len(rows),
        "config_hash": planned.config_hash,
        "plan_binding_hash": planned.plan.binding_hash,
        **_put_pairs(target, contents.pairs),
    }
    if contents.probes:
        document["capability_probes"] = list(_put_probes(target, contents.probes))
    if contents.sealed:
        document["trials_tree_hash"] = _put_copies(target, planned.plan, store)
    document["bundle_hash"] = bundle_hash(document)
    target.publish(BUNDLE, dump_line(document))
    return validate(BundleDocument, document)


def _rows(planned: Planned, inputs: FrozenInputs, store: TrialStore) -> Iterator[dict[str, JsonValue]]:
    """The row of every trial, in the order in which they run."""
    reader = TrialReader(planned.design, StoredTrials(store), inputs.gates)
    arms = {arm.arm_id: arm for arm in planned.design.arms}
    for trial in sorted(planned.plan.trials.values(), key=lambda trial: trial.run_order):
        yield to_json(record_of(trial, reader.read(trial), arms[trial.name.arm_id]))


def _put_pairs(target: PrivateRoot, pairs: Sequence[tuple[bytes, bytes]]) -> dict[str, JsonValue]:
    """Put the first pair at the top and the others below their family; what binds them."""
    bound: dict[str, JsonValue] = {}
    further: list[JsonValue] = []
    for index, (evidence, result) in enumerate(pairs):
        said = _object(result, PAIR.result)
        hashes: dict[str, JsonValue] = {
            "calibration_hash": digest_object(_object(evidence, PAIR.evidence)),
            "calibration_result_hash": digest_object(said),
        }
        if index == 0:
            bound |= hashes
            _put_pair(target, evidence, result)
            continue
        family = said.get(_FAMILY)
        if not isinstance(family, str):
            sentence = "the result names no reviewer family; give the pair of an examination."
            raise PilotError(PilotCode.BUNDLE_INVALID, PAIR.result, sentence)
        with target.child(CALIBRATIONS, family, create=True) as folder:
            _put_pair(folder, evidence, result)
        further.append({_FAMILY: family, **hashes})
    return bound | {"calibrations": further} if further else bound


def _put_pair(folder: PrivateRoot, evidence: bytes, result: bytes) -> None:
    folder.publish(PAIR.evidence, evidence)
    folder.publish(PAIR.result, result)


def _object(data: bytes, name: str) -> dict[str, JsonValue]:
    try:
        value = read_json(data, Profile.DOCUMENT, want_object=True)
    except EvidenceError as error:
        raise PilotError(PilotCode.BUNDLE_INVALID, name, f"it cannot be read: {told(error)}") from error
    return value if isinstance(value, dict) else {}


def _put_probes(target: PrivateRoot, probes: Sequence[bytes]) -> list[str]:
    with target.child(CAPABILITY, create=True) as folder:
        hashes = sorted(read_probe_file(data).entry_hash for data in probes)
        for data in probes:
            name = read_probe_file(data).entry_hash.removeprefix("sha256:")
            folder.publish(f"{name}.json", data)
    return hashes


def _put_copies(target: PrivateRoot, plan: PlanIndex, store: TrialStore) -> str:
    """Copy what a gate reads of every trial that is there; the digest of all copies."""
    with target.child(SEALED, create=True) as copies:
        for name in plan.trials:
            key = TrialKey(*name)
            trial = store.trial(key)
            if trial is None:
                continue
            with (
                trial,
                copies.child(key.task_id, key.arm_id, key.sample_name, create=True) as copy,
            ):
                for path in COPIED:
                    _copy(trial, copy, path)
        return digest_tree(target.around.fs, copies.path)


def _copy(source: PrivateRoot, target: PrivateRoot, path: str) -> None:
    """Copy one file of a trial; one that is not there, or not ours, stays absent in the copy too."""
    folder, _, name = path.rpartition("/")
    try:
        if not folder:
            target.publish(name, source.read(name))
            return
        with source.child(folder) as below:
            data = below.read(name)
    except (FileError, RootError) as error:
        if error.code in {FileCode.MISSING, RootCode.ROOT_MISSING}:
            return
        raise
    with target.child(folder, create=True) as copied:
        copied.publish(name, data)
