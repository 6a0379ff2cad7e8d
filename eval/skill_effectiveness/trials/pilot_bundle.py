"""The folder that holds the evidence of one gate together (trials.md section 9).

```
bundle.json   trial-records.jsonl   reviewer-calibration.json   reviewer-calibration-result.json
calibrations/<family>/reviewer-calibration[-result].json     capability/<name>.json
trials/<task>/<arm>/sample-NNN/…                             sealed copies of the trials
```

`open_bundle` checks that every file is the one whose digest `bundle.json` holds, before anything is judged.
A pair of documents that is there and does not load is evidence against the reviewers, not a broken bundle.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration.documents import PAIR_NAMES
from skill_effectiveness.calibration.errors import PairRefused
from skill_effectiveness.calibration.loader import load_calibration
from skill_effectiveness.evidence.canonical import digest_chunks, digest_object, dump, list_chunks
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError, FileCode, FileError, RootCode, RootError
from skill_effectiveness.evidence.row_files import row_file
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.evidence.tree import digest_tree
from skill_effectiveness.protocol.document import to_json, told
from skill_effectiveness.protocol.errors import ProtocolError
from skill_effectiveness.protocol.words import BankName
from skill_effectiveness.trials.capability_matrix import read_probe_file
from skill_effectiveness.trials.gate_reviewers import PairStanding, ReviewerPair
from skill_effectiveness.trials.pilot_errors import PilotCode, PilotError
from skill_effectiveness.trials.pilot_records import BundleDocument, read_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import JsonValue

    from skill_effectiveness.calibration.inputs import FrozenInputs
    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.evidence.row_files import RowFile
    from skill_effectiveness.trials.capability_matrix import ProbeFile
    from skill_effectiveness.trials.models import TrialKey
    from skill_effectiveness.trials.pilot_records import TrialRecord

BUNDLE: Final = "bundle.json"
RECORDS: Final = "trial-records.jsonl"
CALIBRATIONS: Final = "calibrations"
CAPABILITY: Final = "capability"
SEALED: Final = "trials"
PAIR: Final = PAIR_NAMES[BankName.JUDGED]
EVALUATED: Final = "evaluated"
SYNTHETIC: Final = "not_evaluated_synthetic"


@dataclass(frozen=True, slots=True)
class PilotBundle:
    """An open bundle whose files are those that `document` binds.

    Attributes:
        root: the open folder; closed by whoever opened it.
        document: `bundle.json`.
        pairs: of every reviewer family.
        probes: read back from `capability/`.
        records_digest: of the bytes of the rows, so that reading them again shows a change.
    """

    root: PrivateRoot
    document: BundleDocument
    pairs: tuple[ReviewerPair, ...]
    probes: tuple[ProbeFile, ...]
    records_digest: str

    def rows(self) -> Iterator[TrialRecord | None]:
        """The rows in order; None for one that is no record.

        Raises:
            PilotError: `bundle_mismatch`: the file was changed since the bundle was opened.
        """
        with _records(self.root) as file:
            for line in file.lines():
                yield read_record(_row(line))
            if file.digest != self.records_digest:
                raise _mismatch(RECORDS)

    def sealed_trial(self, key: TrialKey) -> PrivateRoot | None:
        """The copy of a trial, open; None where the bundle has none."""
        if self.document.trials_tree_hash is None:
            return None
        try:
            return self.root.child(SEALED, key.task_id, key.arm_id, key.sample_name)
        except RootError as error:
            if error.code is RootCode.ROOT_MISSING:
                return None
            raise


def open_bundle(root: PrivateRoot, inputs: FrozenInputs) -> PilotBundle:
    """Check a bundle against its own digests.

    Args:
        root: the open folder.
        inputs: the judged bank and the frozen gates, for the loader of pairs.

    Raises:
        PilotError: `bundle_missing`, `bundle_invalid`, `bundle_mismatch`.
        EvidenceError: the disk failed, or a folder is no private one of ours.
    """
    document = _document(root)
    digest, count = _records_hash(root)
    if count != document.record_count or digest.records != document.records_hash:
        raise _mismatch(RECORDS)
    pairs = [_pair(root, (document.calibration_hash, document.calibration_result_hash), inputs)]
    for reference in document.calibrations or ():
        family = reference.reviewer_family
        with _below(root, CALIBRATIONS, family) as folder:
            where = f"{CALIBRATIONS}/{family}/"
            hashes = (reference.calibration_hash, reference.calibration_result_hash)
            pairs.append(_pair(folder, hashes, inputs, where=where, family=family))
    probes = _probes(root, document)
    if document.trials_tree_hash is not None and _tree_hash(root) != document.trials_tree_hash:
        raise _mismatch(SEALED)
    return PilotBundle(root, document, tuple(pairs), probes, digest.file)


def bundle_hash(document: dict[str, JsonValue]) -> str:
    """The hash of a bundle document, over everything but itself."""
    return digest_object({name: value for name, value in document.items() if name != "bundle_hash"})


def _document(root: PrivateRoot) -> BundleDocument:
    value = _read(root, BUNDLE, BUNDLE)
    try:
        document = validate(BundleDocument, value)
    except EvidenceError as error:
        raise PilotError(PilotCode.BUNDLE_INVALID, BUNDLE, f"it is no bundle: {told(error)}") from error
    if bundle_hash(to_json(document)) != document.bundle_hash:
        raise _mismatch(BUNDLE)
    return document


def _read(root: PrivateRoot, name: str, where: str) -> JsonValue:
    """A JSON file of the bundle."""
    try:
        return read_json(root.read(name), Profile.DOCUMENT, want_object=True)
    except FileError as error:
        if error.code is FileCode.MISSING:
            raise _missing(where) from error
        raise
    except EvidenceError as error:
        raise PilotError(PilotCode.BUNDLE_INVALID, where, f"it cannot be read: {told(error)}") from error


@contextmanager
def _below(root: PrivateRoot, *segments: str) -> Iterator[PrivateRoot]:
    try:
        folder = root.child(*segments)
    except RootError as error:
        if error.code is RootCode.ROOT_MISSING:
            raise _missing("/".join(segments)) from error
        raise
    with folder:
        yield folder


# Rows.


@dataclass(frozen=True, slots=True)
class _Digests:
    records: str
    file: str


@contextmanager
def _records(root: PrivateRoot) -> Iterator[RowFile]:
    try:
        with row_file(root, RECORDS) as file:
            yield file
    except FileError as error:
        if error.code is FileCode.MISSING:
            raise _missing(RECORDS) from error
        raise


def _records_hash(root: PrivateRoot) -> tuple[_Digests, int]:
    """The object digest of the list of rows, read one by one, and how many there are."""
    count = 0

    def counted(file: RowFile) -> Iterator[bytes]:
        nonlocal count
        for line in file.lines():
            count += 1
            yield dump(_row(line))

    with _records(root) as file:
        digest = digest_chunks(list_chunks(counted(file)))
        if file.torn:
            sentence = "the last row does not end with a line feed; it may have been cut off."
            raise PilotError(PilotCode.BUNDLE_INVALID, RECORDS, sentence)
    return _Digests(digest, file.digest), count


def _row(line: bytes) -> JsonValue:
    try:
        return read_json(line, Profile.ROW)
    except EvidenceError as error:
        raise PilotError(PilotCode.BUNDLE_INVALID, RECORDS, f"a row is not JSON: {told(error)}") from error


# Reviewers and capability.


def _pair(
    folder: PrivateRoot,
    hashes: tuple[str, str],
    inputs: FrozenInputs,
    *,
    where: str = "",
    family: str | None = None,
) -> ReviewerPair:
    """One pair: its digests are the bundle's business, everything else that of the loader."""
    evidence = _read(folder, PAIR.evidence, where + PAIR.evidence)
    result = _read(folder, PAIR.result, where + PAIR.result)
    for name, value, stated in zip((PAIR.evidence, PAIR.result), (evidence, result), hashes, strict=True):
        if digest_object(value) != stated:
            raise _mismatch(where + name)
    status = evidence.get("status") if isinstance(evidence, dict) else None
    if status == SYNTHETIC:
        return ReviewerPair(PairStanding.NOT_EVALUATED_SYNTHETIC)
    if status != EVALUATED:
        return ReviewerPair(PairStanding.STATUS_UNKNOWN)
    try:
        loaded = load_calibration(folder.read(PAIR.evidence), folder.read(PAIR.result), inputs=inputs)
    except PairRefused:
        return ReviewerPair(PairStanding.REFUSED)
    if family not in (None, loaded.result.reviewer_family):
        return ReviewerPair(PairStanding.REFUSED)
    return ReviewerPair(PairStanding.LOADED, loaded)


def _probes(root: PrivateRoot, document: BundleDocument) -> tuple[ProbeFile, ...]:
    if document.capability_probes is None:
        return ()
    with _below(root, CAPABILITY) as folder:
        probes = [_probe(folder, name) for name in folder.names()]
    if sorted(probe.entry_hash for probe in probes) != list(document.capability_probes):
        raise _mismatch(CAPABILITY)
    return tuple(probes)


def _probe(folder: PrivateRoot, name: str) -> ProbeFile:
    where = f"{CAPABILITY}/{name}"
    try:
        return read_probe_file(folder.read(name))
    except ProtocolError as error:
        raise PilotError(PilotCode.BUNDLE_INVALID, where, error.sentence) from error
    except FileError:
        raise
    except EvidenceError as error:
        raise PilotError(PilotCode.BUNDLE_INVALID, where, f"it cannot be read: {told(error)}") from error


def _tree_hash(root: PrivateRoot) -> str:
    with _below(root, SEALED) as folder:
        return digest_tree(root.around.fs, folder.path)


def _missing(where: str) -> PilotError:
    return PilotError(PilotCode.BUNDLE_MISSING, where, "it is not there; write the whole bundle.")


def _mismatch(where: str) -> PilotError:
    sentence = "it is not what bundle.json binds; it was changed, so write the bundle again."
    return PilotError(PilotCode.BUNDLE_MISMATCH, where, sentence)
