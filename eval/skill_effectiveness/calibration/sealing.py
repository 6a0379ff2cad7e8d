"""Sealing a published pair for strangers, and judging such a folder in ten numbered checks (section 7).

A sealed folder holds exactly three files: the two of one pair and `seal.dsse.json`. The checks 1 to 9 are
those of `evidence.seal`; the tenth loads the pair, from the very bytes whose digests were checked, and holds
the seal's predicate against it.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from skill_effectiveness.calibration.documents import PAIR_NAMES
from skill_effectiveness.calibration.errors import (
    ExaminationRefused,
    PairFault,
    PairRefused,
    RefusalCode,
    demand_seen,
)
from skill_effectiveness.calibration.inputs import load_inputs
from skill_effectiveness.calibration.loader import LoadedCalibration, load_calibration
from skill_effectiveness.calibration.models import (
    FamilyName,
    ModelName,
    ProviderName,
    Record,
    to_json,
)
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import Fault, FileCode, FileError
from skill_effectiveness.evidence.files import READ_LIMIT
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.evidence.pair import load_pair
from skill_effectiveness.evidence.seal import PredicateType, Statement, Subject, sign, verify
from skill_effectiveness.evidence.subjects import FolderSubjects
from skill_effectiveness.protocol.document import DigestText, One
from skill_effectiveness.protocol.errors import ProtocolError
from skill_effectiveness.protocol.words import BankName

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.evidence.seal import Verification
    from skill_effectiveness.evidence.subjects import SubjectSource

SEAL: Final = "seal.dsse.json"
SEAL_LIMIT: Final = 1_048_576
PAIR_CHECK: Final = 10


class SealPredicate(Record):
    """What a seal says about its two files, so that a reader need not open them."""

    schema_version: One
    calibration_status: Literal["pass", "fail", "not_applicable"]
    provider: ProviderName
    model: ModelName
    reviewer_family: FamilyName
    provider_executable_hash: DigestText
    runner_hash: DigestText
    synthetic: bool


@dataclass(frozen=True, slots=True)
class NumberedCheck:
    """One check of a sealed folder.

    Attributes:
        number: 1 to 10.
        name: the step; printed by machines.
        passed: None when it was not run, because an earlier one failed.
        sentence: for people.
    """

    number: int
    name: str
    passed: bool | None
    sentence: str


@dataclass(frozen=True, slots=True)
class FolderVerification:
    """The ten checks, and the pair if all of them passed."""

    checks: tuple[NumberedCheck, ...]
    calibration: LoadedCalibration | None

    @property
    def passed(self) -> bool:
        """Whether every check was run and passed."""
        return self.calibration is not None and all(check.passed for check in self.checks)


def seal_pair(source: PrivateRoot, key: Ed25519PrivateKey, target: PrivateRoot) -> LoadedCalibration:
    """Copy one complete pair and write its seal beside the copy; doing it again changes nothing.

    Args:
        source: the folder of an examination.
        key: signs.
        target: an empty private folder.

    Returns:
        The pair that was sealed.

    Raises:
        PairError: `pair_incomplete`: nothing, or half a pair, is published there.
        PairRefused: the pair does not load.
        ExaminationRefused: `target_occupied`: the target holds something else.
        ProtocolError: the frozen inputs cannot be read.
        EvidenceError: a file could not be read or written.
    """
    bank = BankName.JUDGED
    if not source.exists(PAIR_NAMES[bank].evidence) and source.exists(
        PAIR_NAMES[BankName.BIAS_PROBE].evidence
    ):
        bank = BankName.BIAS_PROBE
    names, inputs = PAIR_NAMES[bank], load_inputs(source.around.fs, bank)

    def load(evidence: bytes, result: bytes) -> tuple[LoadedCalibration, dict[str, bytes]]:
        loaded = load_calibration(evidence, result, inputs=inputs)
        return loaded, {names.evidence: evidence, names.result: result}

    loaded, files = load_pair(source, names.evidence, names.result, load)
    subjects = tuple(Subject.of(name, data) for name, data in files.items())
    predicate = to_json(_predicate(loaded))
    seal = sign(Statement(subjects, PredicateType.CALIBRATION, predicate), key)
    target.sweep()
    if others := set(target.names()) - {*files, SEAL}:
        raise ExaminationRefused(
            RefusalCode.TARGET_OCCUPIED,
            f"The folder for the seal holds {min(others)}, which no seal would name; give an empty one.",
        )
    for name, data in (*files.items(), (SEAL, seal)):
        target.publish(name, data)
    return loaded


def verify_folder(folder: Path, public_key: Ed25519PublicKey, *, fs: FileSystem) -> FolderVerification:
    """Judge a sealed folder, which need not be private.

    Whatever is wrong with it is a failed check, never an error.

    Args:
        folder: absolute.
        public_key: the key the caller trusts.
        fs: file operations.

    Raises:
        FileError: there is no folder, or no seal in it: `missing`, `not_regular` or `file_symlink` for
            something else in its place; `io_error`: the seal could not be read for a reason that may pass.
    """
    _demand_folder(folder, fs)
    source = _Remembering(FolderSubjects(fs, folder, besides=(SEAL,)))
    unreadable = ""
    try:
        envelope = read_public(fs, folder / SEAL, SEAL_LIMIT)
    except FileError as error:
        if error.code is FileCode.MISSING:
            raise
        demand_seen(error)
        envelope, unreadable = b"", error.faults[0].sentence
    predicates = {PredicateType.CALIBRATION: SealPredicate}
    sealed = verify(envelope, [public_key], subjects=source, predicates=predicates)
    checks = [
        NumberedCheck(each.number, each.name.value, each.passed, each.sentence) for each in sealed.checks
    ]
    if unreadable:
        checks[0] = replace(checks[0], sentence=f"Step 1 (envelope shape): {unreadable}")
    loaded, tenth = _judge_pair(sealed, source, fs)
    return FolderVerification((*checks, tenth), loaded)


def _demand_folder(folder: Path, fs: FileSystem) -> None:
    where = folder.name or str(folder)
    with reported(where, reading=True):
        mode = fs.lstat(None, str(folder)).st_mode
    if stat.S_ISLNK(mode):
        told = f"{where} is a symbolic link; name the sealed folder itself."
        raise FileError(Fault(FileCode.FILE_SYMLINK, where, told))
    if not stat.S_ISDIR(mode):
        raise FileError(Fault(FileCode.NOT_REGULAR, where, f"{where} is no folder; name the sealed one."))


def _judge_pair(
    sealed: Verification, source: _Remembering, fs: FileSystem
) -> tuple[LoadedCalibration | None, NumberedCheck]:
    """Check 10."""
    told = f"Step {PAIR_CHECK} (pair): "
    if sealed.statement is None:
        not_run = f"{told}not run, because an earlier step failed."
        return None, NumberedCheck(PAIR_CHECK, "pair", passed=None, sentence=not_run)
    try:
        loaded = _loaded(sealed.statement, source, fs)
        if sealed.predicate != _predicate(loaded):
            raise _refused(PairFault.DIFFERS, "/predicate", "the predicate does not say what the pair says")
    except (PairRefused, ProtocolError) as error:
        return None, NumberedCheck(PAIR_CHECK, "pair", passed=False, sentence=told + error.sentence)
    passed = f"{told}the pair loads, and the predicate says what the pair says."
    return loaded, NumberedCheck(PAIR_CHECK, "pair", passed=True, sentence=passed)


def _loaded(statement: Statement, source: _Remembering, fs: FileSystem) -> LoadedCalibration:
    """The pair out of the bytes that were checked."""
    sealed = {subject.name for subject in statement.subjects}
    bank = next(
        (bank for bank, names in PAIR_NAMES.items() if sealed == {names.evidence, names.result}), None
    )
    if bank is None:
        raise _refused(PairFault.DOCUMENT, "/subject", "the seal does not name the two files of one pair")
    names = PAIR_NAMES[bank]
    evidence, result = source.remembered.get(names.evidence), source.remembered.get(names.result)
    if evidence is None or result is None:
        raise _refused(
            PairFault.DOCUMENT, "/subject", "a sealed file is larger than any pair of this contract"
        )
    return load_calibration(evidence, result, inputs=load_inputs(fs, bank))


def _refused(code: PairFault, where: str, told: str) -> PairRefused:
    return PairRefused(code, f"{SEAL}:{where}", f"{told}; the pair does not count.")


def _predicate(loaded: LoadedCalibration) -> SealPredicate:
    result = loaded.result
    return SealPredicate(
        schema_version=1,
        calibration_status=result.calibration_status,
        provider=result.provider,
        model=result.model,
        reviewer_family=result.reviewer_family,
        provider_executable_hash=result.provider_executable_hash,
        runner_hash=result.runner_hash,
        synthetic=loaded.synthetic,
    )


class _Remembering:
    """Subjects in a folder whose bytes are kept as they are read, up to the size of any pair.

    What is loaded afterwards is what was checked, whatever happens to the folder meanwhile.
    """

    def __init__(self, inner: SubjectSource) -> None:
        self._inner = inner
        self.remembered: dict[str, bytes] = {}

    def names(self) -> Iterable[str]:
        """See `SubjectSource`."""
        return self._inner.names()

    def chunks(self, name: str) -> Iterator[bytes]:
        """See `SubjectSource`."""
        self.remembered.pop(name, None)
        kept = bytearray()
        for chunk in self._inner.chunks(name):
            if len(kept) <= READ_LIMIT:
                kept += chunk
            yield chunk
        if len(kept) <= READ_LIMIT:
            self.remembered[name] = bytes(kept)
