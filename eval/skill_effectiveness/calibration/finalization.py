"""Making one calibration out of the samples of a root, without a model call (calibration.md, section 6).

`finalize` holds the root's lock, judges every receipt, derives the pair and then walks through the table of
`finalization_rules`: it looks, takes the step that the table names, and looks again. So a request that is
repeated after a crash finishes what was begun, and what nothing of ours can have left stops it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.calibration import receipts
from skill_effectiveness.calibration.binding import CLAIM, TOKEN_BYTES
from skill_effectiveness.calibration.documents import (
    PAIR_NAMES,
    Declared,
    evidence_document,
    result_document,
)
from skill_effectiveness.calibration.errors import CalibrationCode, CalibrationError, demand_seen
from skill_effectiveness.calibration.finalization_rules import (
    ClaimFound,
    FileFound,
    FolderFound,
    Found,
    IntentFound,
    Step,
    next_step,
)
from skill_effectiveness.calibration.inputs import FrozenInputs, load_inputs
from skill_effectiveness.calibration.loader import LoadedCalibration, load_calibration
from skill_effectiveness.calibration.models import UNKNOWN_COST, Claim, FinalizationIntent, to_json, to_line
from skill_effectiveness.calibration.provider_log import read_log
from skill_effectiveness.calibration.publication import commits_otherwise
from skill_effectiveness.calibration.root_lock import LOCK_WAIT_SECONDS, locked
from skill_effectiveness.calibration.sample_set import answered_samples, confirmed_samples
from skill_effectiveness.calibration.sheet import ReviewerRecords, build_sheet
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.documents import Canonical, parse
from skill_effectiveness.evidence.faults import EvidenceError, FileCode, RootCode, RootError
from skill_effectiveness.evidence.pair import Member, pending_name, publish_pair
from skill_effectiveness.evidence.signals import Terminated
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.execution import never
from skill_effectiveness.protocol.errors import ProtocolError
from skill_effectiveness.protocol.words import BankName

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skill_effectiveness.calibration.models import Record
    from skill_effectiveness.calibration.sample_set import AnsweredSample
    from skill_effectiveness.calibration.sheet import MetricsSheet
    from skill_effectiveness.evidence.root import PrivateRoot

FOLDER: Final = "calibration"
NAMES: Final = PAIR_NAMES[BankName.JUDGED]
ACTION: Final = "calibration finalize"


@dataclass(frozen=True, slots=True)
class _Pair:
    """What is to be published.

    Attributes:
        evidence: the first document.
        result: the second.
        sheet: bytes of the figures that are derived from both and from how the cases were shown.
        loaded: the pair as its consumers read it.
        hash: `published_pair_hash`.
    """

    evidence: Member
    result: Member
    sheet: bytes
    loaded: LoadedCalibration
    hash: str

    @property
    def members(self) -> tuple[Member, Member]:
        """Both documents, in the order of their publication."""
        return self.evidence, self.result


@dataclass(frozen=True, slots=True)
class DerivedCalibration:
    """A finalized calibration, read from its samples: the published pair, and the figures."""

    calibration: LoadedCalibration
    sheet: MetricsSheet


def finalize(
    root: PrivateRoot,
    sample_ids: Sequence[str],
    runtime_manifest_hash: str,
    *,
    lock_wait: float = LOCK_WAIT_SECONDS,
    published: Callable[[], object] = never,
) -> LoadedCalibration:
    """Publish the pair of a root, or finish publishing it.

    Args:
        root: the artifact root, open and private; its lock is taken here.
        sample_ids: 2 to 5 different ids, exactly those of the root; runs keep their order.
        runtime_manifest_hash: the current one, which the samples have to be bound to.
        lock_wait: seconds to wait for another process that uses the root.
        published: called when the pair lies there and only the end of the publication is left to be noted.

    Returns:
        The published pair.

    Raises:
        CalibrationError: a code of section 3; nothing was published unless it is
            `finalization_recovery_required`, after which the same request finishes or is told what is in its
            way.
        EvidenceError: a receipt could not even be looked for; nothing was changed.
    """
    with locked(root, lock_wait, ACTION):
        _demand_folders(root)
        listing = receipts.read_listing(root)
        samples = confirmed_samples(listing, sample_ids, runtime_manifest_hash)
        inputs = _inputs(root)
        answered = answered_samples(listing, samples, inputs.bank)
        _demand_own_sessions(root, answered)
        pair = _pair(answered, inputs)
        try:
            _Finalization(root, answered, pair, inputs).run(published)
        except (EvidenceError, Terminated) as error:
            told = error if isinstance(error, EvidenceError) else "a signal cut it off."
            raise CalibrationError(
                CalibrationCode.FINALIZATION_RECOVERY_REQUIRED,
                f"The publication was not completed: {told} Send the same request again.",
            ) from error
        return pair.loaded


def derive_again(root: PrivateRoot, *, lock_wait: float = LOCK_WAIT_SECONDS) -> DerivedCalibration:
    """The completed finalization of a root, derived from its samples once more; nothing is published.

    Args:
        root: the artifact root, open and private; its lock is taken here.
        lock_wait: seconds to wait for another process that uses the root.

    Raises:
        CalibrationError: `finalization_recovery_required` when nothing was finalized here, not to its end, or
            when the published pair is not what the samples give; the codes of `finalize` for the samples.
        EvidenceError: a file could not be read.
    """
    with locked(root, lock_wait, ACTION):
        intent = _completed_intent(root)
        listing = receipts.read_listing(root)
        samples = confirmed_samples(listing, intent.sample_ids, intent.runtime_manifest_hash)
        inputs = _inputs(root)
        answered = answered_samples(listing, samples, inputs.bank)
        _demand_own_sessions(root, answered)
        pair = _pair(answered, inputs)
        with root.child(FOLDER) as folder:
            same = all(folder.read(member.name) == member.data for member in pair.members)
            sheet = _sheet(answered, pair.loaded, inputs)
            recommitted = commits_otherwise(folder, NAMES.metrics, sheet)
        if not same or intent.published_pair_hash != pair.hash:
            raise _unfinished("the published pair is not what the samples give")
        if recommitted:
            raise CalibrationError(
                CalibrationCode.SAMPLE_INVALID,
                f"{NAMES.metrics} commits to another orientation key than the one that lies beside the "
                "samples, so the samples were changed; use a new root.",
            )
        return DerivedCalibration(pair.loaded, sheet)


def _completed_intent(root: PrivateRoot) -> FinalizationIntent:
    try:
        data = root.read(receipts.FINALIZATION_INTENT)
        intent = parse(FinalizationIntent, data, Profile.DOCUMENT, canonical=Canonical.LINE)
    except EvidenceError as error:
        demand_seen(error)
        raise _unfinished(f"its intent cannot be believed ({error.code.value})") from error
    if intent.state != "completed" or intent.artifact_root_hash != receipts.artifact_root_hash(root):
        raise _unfinished("its finalization was not completed here")
    return intent


def _unfinished(told: str) -> CalibrationError:
    return CalibrationError(
        CalibrationCode.FINALIZATION_RECOVERY_REQUIRED, f"This root holds no finalized calibration: {told}."
    )


def _demand_folders(root: PrivateRoot) -> None:
    """Samples need two folders; that each is a private folder of ours, the judgement of receipts demands."""
    for folder in (receipts.LEDGERS, receipts.SAMPLES):
        if not root.exists(folder):
            raise CalibrationError(
                CalibrationCode.SAMPLE_SET_MISMATCH, "This root holds no samples; take them first."
            )


def _demand_own_sessions(root: PrivateRoot, answered: Sequence[AnsweredSample]) -> None:
    """Each call has a session of its own, as far as its log knows; older roots have no logs."""
    seen: dict[str, str] = {}
    for sample_id in (each.sample.sample_id for each in answered):
        try:
            session = read_log(root, sample_id).session_id_hash
        except EvidenceError as error:
            if error.code in (FileCode.MISSING, RootCode.ROOT_MISSING):
                continue
            demand_seen(error)
            raise _not_alone(
                f"the log of its call cannot be believed ({error.code.value})", sample_id
            ) from error
        if session is not None and seen.setdefault(session, sample_id) != sample_id:
            raise _not_alone(f"it was taken in the session of {seen[session]}", sample_id)


def _not_alone(told: str, sample_id: str) -> CalibrationError:
    return CalibrationError(
        CalibrationCode.SAMPLE_INVALID, f"The sample {sample_id} does not count: {told}; use a new root."
    )


def _inputs(root: PrivateRoot) -> FrozenInputs:
    try:
        return load_inputs(root.around.fs, BankName.JUDGED)
    except ProtocolError as error:
        raise CalibrationError(CalibrationCode.FIXTURE_INVALID, str(error)) from error


def _pair(answered: Sequence[AnsweredSample], inputs: FrozenInputs) -> _Pair:
    samples = [each.sample for each in answered]
    first = samples[0]
    evidence = evidence_document(inputs, first.reviewer_family, [sample.judgments for sample in samples])
    declared = Declared(
        provider=first.provider,
        provider_cli_version=first.provider_cli_version,
        provider_executable_hash=first.provider_executable_hash,
        provider_environment_keys=tuple(
            sorted({key for sample in samples for key in sample.provider_environment_keys})
        ),
        model=first.model,
        reviewer_family=first.reviewer_family,
        runner_contract=first.runner_contract,
        runtime_manifest_hash=first.runtime_manifest_hash,
        requested_session_mode=first.requested_session_mode,
        tool_access=first.tool_access,
        sample_ids=tuple(sample.sample_id for sample in samples),
    )
    result = result_document(declared, evidence, inputs)
    members = Member(NAMES.evidence, to_line(evidence)), Member(NAMES.result, to_line(result))
    hashes: dict[str, Any] = {
        "result": digest_object(to_json(result)),
        "evidence": digest_object(to_json(evidence)),
    }
    loaded = load_calibration(members[0].data, members[1].data, inputs=inputs)
    sheet = to_line(_sheet(answered, loaded, inputs))
    return _Pair(*members, sheet, loaded, digest_object(hashes))


def _sheet(
    answered: Sequence[AnsweredSample], loaded: LoadedCalibration, inputs: FrozenInputs
) -> MetricsSheet:
    seen = [each.observation for each in answered if each.observation is not None]
    records = ReviewerRecords(
        family=loaded.result.reviewer_family,
        runs=[[judgment.verdict for judgment in each.sample.judgments] for each in answered],
        seen=[each.seen for each in answered],
        calls=[each.observation.usage if each.observation else UNKNOWN_COST for each in answered],
        # A call that gave nothing closes its root, so a root that comes here holds none.
        attempts=len(answered),
        orientation_key_hashes=[observation.orientation_key_hash for observation in seen],
    )
    return build_sheet(
        inputs.bank,
        [records],
        evidence_hash=loaded.result.calibration_evidence_hash,
        synthetic=False,
        policy=inputs.policy,
    )


class _Finalization:
    """One walk through the table; the caller holds the lock of the root."""

    def __init__(
        self, root: PrivateRoot, answered: Sequence[AnsweredSample], pair: _Pair, inputs: FrozenInputs
    ) -> None:
        self._root = root
        self._pair = pair
        self._inputs = inputs
        self._token = ""
        """Of the intent that was found or published last."""
        self._wanted: dict[str, Any] = {
            "schema_version": 1,
            "artifact_contract": "skill-effectiveness-reviewer-calibration-finalization-intent-v1",
            "artifact_root_hash": receipts.artifact_root_hash(root),
            "runtime_manifest_hash": answered[0].sample.runtime_manifest_hash,
            "sample_ids": tuple(each.sample.sample_id for each in answered),
            "sample_hashes": tuple(digest_object(to_json(each.sample)) for each in answered),
            "published_pair_hash": pair.hash,
        }

    def run(self, published: Callable[[], object]) -> None:
        """Look, take the step, look again; every step leads to a later one."""
        steps = {
            Step.BEGIN: self._begin,
            Step.CLAIM: self._claim,
            Step.PUBLISH: self._publish,
            Step.CONFIRM: self._confirm,
        }
        for _ in Step:
            step = next_step(self._look())
            if step is Step.CONFIRM:
                published()
            steps[step]()
            if step is Step.CONFIRM:
                return
        raise CalibrationError(
            CalibrationCode.FINALIZATION_RECOVERY_REQUIRED,
            "Somebody else changes this root while it is finalized; stop them, then repeat the request.",
        )

    # Looking.

    def _look(self) -> Found:
        intent = self._look_at_intent()
        try:
            folder = self._root.child(FOLDER)
        except RootError as error:
            absent = error.code is RootCode.ROOT_MISSING
            kind = FolderFound.ABSENT if absent else FolderFound.UNSAFE
            return Found(intent, kind, ClaimFound.ABSENT, *self._files(None))
        with folder:
            folder.sweep()
            return Found(intent, FolderFound.PRIVATE, self._look_at_claim(folder), *self._files(folder))

    def _look_at_intent(self) -> IntentFound:
        try:
            data = self._root.read(receipts.FINALIZATION_INTENT)
            held = parse(FinalizationIntent, data, Profile.DOCUMENT, canonical=Canonical.LINE)
        except EvidenceError as error:
            if error.code is FileCode.MISSING:
                return IntentFound.ABSENT
            demand_seen(error)
            return IntentFound.LINK if error.code is FileCode.FILE_SYMLINK else IntentFound.OTHER
        if held.state == "completed":
            return IntentFound.COMPLETED
        if any(getattr(held, field) != value for field, value in self._wanted.items()):
            return IntentFound.OTHER
        self._token = held.claim_token
        return IntentFound.STARTED if held.state == "publication_started" else IntentFound.CLAIMED

    def _look_at_claim(self, folder: PrivateRoot) -> ClaimFound:
        try:
            claim = parse(Claim, folder.read(CLAIM), Profile.DOCUMENT, canonical=Canonical.LINE)
        except EvidenceError as error:
            demand_seen(error)
            return ClaimFound.ABSENT if error.code is FileCode.MISSING else ClaimFound.FOREIGN
        return ClaimFound.OURS if claim.claim_token == self._token else ClaimFound.FOREIGN

    def _files(
        self, folder: PrivateRoot | None
    ) -> tuple[Mapping[str, FileFound], Mapping[str, FileFound], Mapping[str, FileFound]]:
        """What has the names of pair, staged pair and sheet."""
        members = self._pair.members
        return (
            _look_at_files(folder, {member.name: member.data for member in members}),
            _look_at_files(folder, {pending_name(member.name): member.data for member in members}),
            _look_at_files(folder, {NAMES.metrics: self._pair.sheet}),
        )

    # Stepping.

    def _begin(self) -> None:
        self._root.child(FOLDER, create=True).close()
        self._token = self._root.around.entropy(TOKEN_BYTES).hex()
        intent = self._intent("publication_started")
        try:
            self._root.publish(receipts.FINALIZATION_INTENT, to_line(intent))
        except EvidenceError as error:
            if error.code is not FileCode.EXISTS_DIFFERENT:
                raise
            raise CalibrationError(
                CalibrationCode.FINALIZE_ALREADY_STARTED,
                "Another finalization was begun here at the same moment; let it finish.",
            ) from error
        self._verify(intent)

    def _claim(self) -> None:
        with self._root.child(FOLDER, create=True) as folder:
            self._put_claim(folder)
        self._advance("output_claimed")

    def _publish(self) -> None:
        with self._root.child(FOLDER, create=True) as folder:
            self._put_claim(folder)
            # The claim was just made sure of, so a half that lies here is what we left.
            publish_pair(folder, *self._pair.members, load=self._load, overwrite_half=True)

    def _confirm(self) -> None:
        with self._root.child(FOLDER) as folder:
            self._put_claim(folder)
            for member in self._pair.members:
                folder.remove(pending_name(member.name))
            if _look_at_file(folder, NAMES.metrics, self._pair.sheet) is not FileFound.EQUAL:
                folder.replace(NAMES.metrics, self._pair.sheet)
        self._advance("completed")

    def _load(self, evidence: bytes, result: bytes) -> LoadedCalibration:
        return load_calibration(evidence, result, inputs=self._inputs)

    def _put_claim(self, folder: PrivateRoot) -> None:
        folder.publish(CLAIM, to_line(Claim(claim_token=self._token)))

    def _intent(self, state: str) -> FinalizationIntent:
        return FinalizationIntent.model_validate(self._wanted | {"state": state, "claim_token": self._token})

    def _advance(self, state: str) -> None:
        intent = self._intent(state)
        self._root.replace(receipts.FINALIZATION_INTENT, to_line(intent))
        self._verify(intent)

    def _verify(self, record: Record) -> None:
        """Read back: what is acknowledged is what lies there."""
        if self._root.read(receipts.FINALIZATION_INTENT) != to_line(record):
            raise CalibrationError(
                CalibrationCode.FINALIZATION_RECOVERY_REQUIRED,
                "The finalization intent was changed by somebody else; stop them, then repeat the request.",
            )


def _look_at_files(folder: PrivateRoot | None, wanted: Mapping[str, bytes]) -> dict[str, FileFound]:
    """What has these names, by root-relative name."""
    return {
        f"{FOLDER}/{name}": FileFound.ABSENT if folder is None else _look_at_file(folder, name, data)
        for name, data in wanted.items()
    }


def _look_at_file(folder: PrivateRoot, name: str, wanted: bytes) -> FileFound:
    try:
        data = folder.read(name)
        read_json(data, Profile.DOCUMENT)
    except EvidenceError as error:
        demand_seen(error)
        return FileFound.ABSENT if error.code is FileCode.MISSING else FileFound.UNSAFE
    return FileFound.EQUAL if data == wanted else FileFound.DIFFERENT
