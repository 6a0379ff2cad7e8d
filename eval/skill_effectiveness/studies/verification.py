"""Verifying a bundle offline, with a public key and nothing else, in fourteen numbered checks (section 8).

| check | demanded | needs |
|---|---|---|
| 1 `envelope` | envelope and signature | |
| 2 `files` | every file is a subject, with the sealed bytes, and the reverse | 1 |
| 3 `merkle` | Merkle root and size | 1 |
| 4 `journal` | the journal is intact and as long as pinned | 1 |
| 5 `plan` | plan digest in the first row, plan seal, no outcome before it | 4 |
| 6 `allocation` | seed and commitments open, the allocation follows | 5 |
| 7 `flow` | planned - reported = explained; attempts in order | 5 |
| 8 `trials` | completion bindings, manifests, tier | 6, 7 |
| 9 `grades` | both grades equal, and as journalled | 6, 7 |
| 10 `assays` | assays of every batch | 7 |
| 11 `votes` | licences live at each vote, canary e, void votes void | 6, 7 |
| 12 `blinding` | mappings complete, leak scan repeated | 6, 7 |
| 13 `tables` | tables rebuilt, analysis recomputed, equal | 6, 7 |
| 14 `statements` | limitations, amendments, unblinding carried over | 6, 7 |

A check that needs one which failed is not run. Of the proof of one trial the checks 1 and 3 are run and no
other. Bad input of any kind is a failed check and never an error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration.licence import LicenceRefused
from skill_effectiveness.calibration.sealing import NumberedCheck
from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import EvidenceError, FileError
from skill_effectiveness.evidence.merkle import (
    InclusionProof,
    TreeHead,
    file_entry,
    leaf_hash,
    verify_inclusion,
)
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.evidence.seal import unverified, verify
from skill_effectiveness.evidence.subjects import HeldSubjects
from skill_effectiveness.protocol.errors import ProtocolError
from skill_effectiveness.studies import bundle_checks, outcome_checks
from skill_effectiveness.studies.bundle_case import BundleCase, CheckFailedError
from skill_effectiveness.studies.bundle_contents import files_of_trial
from skill_effectiveness.studies.bundle_files import BundleFiles
from skill_effectiveness.studies.bundle_form import (
    INCLUSION,
    PREDICATES,
    REQUIRED,
    BundlePredicate,
    is_bundled,
    read_inclusion,
    root_text,
    tree_over,
)
from skill_effectiveness.studies.errors import StudyError
from skill_effectiveness.studies.plan_seal import PLAN
from skill_effectiveness.studies.reporting import RESULTS_PATH
from skill_effectiveness.trials.faults import TrialError
from skill_effectiveness.trials.store import TRIAL, TRIALS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.seal import Verification
    from skill_effectiveness.studies.bundle_form import InclusionDocument
    from skill_effectiveness.studies.results import Results

NAMES: Final = (
    "envelope", "files", "merkle", "journal", "plan", "allocation", "flow",
    "trials", "grades", "assays", "votes", "blinding", "tables", "statements",
)  # fmt: skip
_HOLDS: Final = (
    "the key you gave signed this envelope.",
    "every file is one that was sealed, byte for byte, and the reverse.",
    "the files give the Merkle root and the number that were sealed.",
    "the journal is intact and as long as it was pinned.",
    "the journal begins with the sealed plan; no outcome came before it.",
    "seed and commitments open, and the run order follows from them.",
    "every planned slot is reported or explained, with its attempts in order.",
    "every trial is the planned one, and what it completed with is unchanged.",
    "both grades of every trial are equal, and those of the journal.",
    "every batch lies between its exposure assays.",
    "every vote counts as its licence and the canaries say.",
    "every pair was blinded, and nothing that was shown names an arm.",
    "tables and analysis, made again from the evidence, are equal.",
    "limitations, amendments, deviations and unblinding are carried over.",
)
_NEEDS: Final[Mapping[int, tuple[int, ...]]] = {
    2: (1,), 3: (1,), 4: (1,), 5: (4,), 6: (5,), 7: (5,), 8: (6, 7), 9: (6, 7), 10: (7,),
    11: (6, 7), 12: (6, 7), 13: (6, 7), 14: (6, 7),
}  # fmt: skip
_JUDGES: Final[tuple[Callable[[BundleCase], None], ...]] = (
    bundle_checks.check_journal,
    bundle_checks.check_plan,
    bundle_checks.check_allocation,
    bundle_checks.check_flow,
    outcome_checks.check_trials,
    outcome_checks.check_grades,
    bundle_checks.check_assays,
    outcome_checks.check_votes,
    outcome_checks.check_blinding,
    outcome_checks.check_tables,
    outcome_checks.check_statements,
)
_OF_A_PROOF: Final = (1, 3)
_SIGNED_STEPS: Final = 7
_BAD_INPUT: Final = (EvidenceError, StudyError, TrialError, LicenceRefused, ProtocolError)


@dataclass(frozen=True, slots=True)
class StudyVerification:
    """What verifying a bundle, or the proof of one trial, came to.

    Attributes:
        checks: all fourteen, in order.
        results: of a bundle of which every check passed; None otherwise.
        merkle_root: likewise.
        trial: that a proof is about; None for a bundle.
    """

    checks: tuple[NumberedCheck, ...]
    results: Results | None = None
    merkle_root: str | None = None
    trial: str | None = None

    @property
    def passed(self) -> bool:
        """Whether every check that is to be made was made and passed."""
        wanted = _OF_A_PROOF if self.trial is not None else range(1, len(NAMES) + 1)
        return all(self.checks[number - 1].passed is True for number in wanted)


def verify_bundle(folder: Path, public_key: Ed25519PublicKey, *, fs: FileSystem) -> StudyVerification:
    """Judge the bundle of a study, or the proof of one of its trials.

    Args:
        folder: absolute; need not be private, and may lie anywhere.
        public_key: the one key that is trusted.
        fs: file operations.

    Raises:
        FileError: there is no such folder.
    """
    _demand_folder(folder, fs)
    files = BundleFiles(fs, folder)
    run = _Run(files, public_key)
    run.check(1, run.signed)
    if _is_proof(files):
        return run.proof()
    return run.bundle()


def _demand_folder(folder: Path, fs: FileSystem) -> None:
    with reported(folder.name or str(folder), reading=True):
        # Whatever is no folder refuses to be opened as one; a link is not followed.
        fs.close(fs.open_dir(None, str(folder)))


def _is_proof(files: BundleFiles) -> bool:
    """Whether a folder holds the proof of one trial; what holds a plan or results is judged as a bundle."""
    try:
        names = files.names()
    except EvidenceError:
        return False
    return INCLUSION in names and PLAN not in names and RESULTS_PATH not in names


class _Run:
    """One verification as it goes on."""

    def __init__(self, files: BundleFiles, key: Ed25519PublicKey) -> None:
        self._files = files
        self._key = key
        self._found: dict[int, NumberedCheck] = {}
        self._sealed: Verification | None = None
        self._case: BundleCase | None = None
        self._trial = ""

    @property
    def case(self) -> BundleCase:
        """The bundle; there is one once check 1 passed."""
        if self._case is None:
            raise CheckFailedError("nothing was signed.")
        return self._case

    # How a check is made.

    def check(self, number: int, judge: Callable[[], None], holds: str | None = None) -> None:
        """Make one check, unless one that it needs failed; `holds` is what it says where it passes."""
        if any(self._found[needed].passed is not True for needed in _NEEDS.get(number, ())):
            return self._skip(number, "an earlier check failed")
        try:
            judge()
        except CheckFailedError as failed:
            return self._note(number, passed=False, told=failed.sentence)
        except _BAD_INPUT as error:
            return self._note(number, passed=False, told=_sentence(error))
        except (ValueError, LookupError, TypeError, ArithmeticError) as error:
            told = f"something in the bundle is not as it was written ({type(error).__name__})."
            return self._note(number, passed=False, told=told)
        return self._note(number, passed=True, told=holds or _HOLDS[number - 1])

    def _note(self, number: int, *, passed: bool, told: str) -> None:
        name = NAMES[number - 1]
        sentence = f"Check {number} ({name}): {printable(told)}"
        self._found[number] = NumberedCheck(number, name, passed, sentence)

    def _skip(self, number: int, why: str) -> None:
        name = NAMES[number - 1]
        sentence = f"Check {number} ({name}): not run, because {why}."
        self._found[number] = NumberedCheck(number, name, None, sentence)

    # Checks 1 to 3.

    def signed(self) -> None:
        """Check 1."""
        try:
            envelope = self._files.envelope()
        except FileError as error:
            raise CheckFailedError(error.faults[0].sentence) from error
        self._sealed = verify(envelope, [self._key], subjects=HeldSubjects({}), predicates=PREDICATES)
        for step in self._sealed.checks[:_SIGNED_STEPS]:
            if step.passed is not True:
                raise CheckFailedError(step.sentence.partition(": ")[2])
        statement, predicate = unverified(envelope, PREDICATES)
        if not isinstance(predicate, BundlePredicate):
            raise CheckFailedError("the seal is about something else.")
        self._case = BundleCase(self._files, self._key, statement, predicate)

    def _whole(self) -> None:
        """Check 2."""
        named = {subject.name: f"sha256:{subject.sha256}" for subject in self.case.statement.subjects}
        strangers = sorted(set(self._files.names()) - named.keys())
        if strangers:
            raise CheckFailedError(_first("is present, but the seal does not name it", strangers))
        for name in named:
            try:
                self._files.measured(name)
            except EvidenceError:
                continue
        missing = [name for name in named if name not in self._files.digests]
        if missing:
            raise CheckFailedError(_first("is named by the seal and is missing or no file", missing))
        changed = [name for name, digest in named.items() if self._files.digests[name] != digest]
        if changed:
            raise CheckFailedError(_first("has other bytes than were sealed", changed))
        if foreign := sorted(name for name in named if not is_bundled(name)):
            raise CheckFailedError(_first("is sealed, but no file that a bundle has", foreign))
        if lacking := sorted(REQUIRED - named.keys()):
            raise CheckFailedError(_first("is no part of this bundle, and of every whole one", lacking))

    def _rooted(self) -> None:
        """Check 3."""
        predicate, held = self.case.predicate, []
        for subject in self.case.statement.subjects:
            if subject.name not in self._files.digests:
                self._files.measured(subject.name)
            held.append((subject.name, self._files.sizes[subject.name], self._files.digests[subject.name]))
        tree = tree_over(held)
        if tree.size != predicate.tree_size:
            raise CheckFailedError(f"the seal counts {predicate.tree_size} files and names {tree.size}.")
        if root_text(tree.root) != predicate.merkle_root:
            raise CheckFailedError("the files do not give the Merkle root that was sealed.")

    # All of it.

    def bundle(self) -> StudyVerification:
        """The fourteen checks of a bundle."""
        for number, judge in enumerate((self._whole, self._rooted), start=2):
            self.check(number, judge)
        for number, judge_case in enumerate(_JUDGES, start=4):
            self.check(number, partial(self._of_case, judge_case))
        found = StudyVerification(tuple(self._found[number] for number in sorted(self._found)))
        if not found.passed:
            return found
        return replace(found, results=self.case.results, merkle_root=self.case.predicate.merkle_root)

    def _of_case(self, judge: Callable[[BundleCase], None]) -> None:
        judge(self.case)

    def proof(self) -> StudyVerification:
        """The two checks of the proof of one trial."""
        for number in range(2, len(NAMES) + 1):
            if number in _OF_A_PROOF:
                self.check(
                    number, self._included, "every file of the trial stands in the tree that was sealed."
                )
            else:
                self._skip(number, "this is the proof of one trial and no whole bundle")
        return StudyVerification(tuple(self._found[n] for n in sorted(self._found)), trial=self._trial)

    def _included(self) -> None:
        """Check 3 of a proof: all that was sealed of the trial, and no more, stands in the tree."""
        document = read_inclusion(self._files.demand(INCLUSION))
        self._trial = document.trial
        predicate = self.case.predicate
        named = {file.path for file in document.files}
        if strangers := sorted(set(self._files.names()) - named - {INCLUSION}):
            raise CheckFailedError(_first("is present, and nothing proves it", strangers))
        self._demand_whole_trial(document)
        head = TreeHead(predicate.tree_size, bytes.fromhex(predicate.merkle_root.removeprefix("sha256:")))
        for file in document.files:
            data = self._files.demand(file.path)
            entry = file_entry(file.path, len(data), digest_bytes(data))
            proof = InclusionProof(
                leaf_index=file.leaf_index, tree_size=document.tree_size, hashes=file.hashes
            )
            verify_inclusion(leaf_hash(entry), proof, head)

    def _demand_whole_trial(self, document: InclusionDocument) -> None:
        """The proofs are not signed, but the names of all sealed files are: they say what the trial has."""
        sealed = [subject.name for subject in self.case.statement.subjects]
        record = self._files.demand(f"{TRIALS}/{document.trial}/{TRIAL}")
        wanted = set(files_of_trial(document.trial, record, sealed))
        proven = {file.path for file in document.files}
        if missing := sorted(wanted - proven):
            raise CheckFailedError(_first("was sealed of this trial and is not proven here", missing))
        if foreign := sorted(proven - wanted):
            raise CheckFailedError(_first("is no part of the trial that is named", foreign))


def _first(told: str, names: list[str]) -> str:
    more = f" ({len(names) - 1} more like this)" if len(names) > 1 else ""
    return f"{names[0]} {told}{more}."


def _sentence(error: Exception) -> str:
    if isinstance(error, EvidenceError):
        return error.faults[0].sentence
    where = getattr(error, "where", "")
    told = getattr(error, "sentence", str(error))
    return f"{where}: {told}" if where else str(told)
