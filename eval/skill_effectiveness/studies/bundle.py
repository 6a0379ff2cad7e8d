"""Sealing a study for strangers: its evidence copied into a folder of its own, one signature over all of it.

The row `sealed` is durable before anything is copied, and `bundle.dsse.json` is written last: a folder
without it is no bundle, and the same call completes it. Source: studies.md, sections 3 and 8.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skill_effectiveness.evidence.canonical import digest_bytes, dump_line
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.keys import public_key_id
from skill_effectiveness.evidence.seal import PredicateType, Statement, Subject, sign, unverified
from skill_effectiveness.evidence.subjects import FolderSubjects
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.studies import rows
from skill_effectiveness.studies.bundle_contents import files_of_trial
from skill_effectiveness.studies.bundle_files import BundleFiles
from skill_effectiveness.studies.bundle_form import (
    BUNDLE_CONTRACT,
    ENVELOPE,
    FILE_LIMIT,
    INCLUSION,
    OPENINGS,
    PREDICATES,
    PROOF_CONTRACT,
    BundlePredicate,
    InclusionDocument,
    PinnedJournal,
    ProvenFile,
    belongs,
    openings,
    root_text,
    tree_over,
)
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.plan_seal import COMMITMENTS, PLAN, PLAN_SEAL, verify_plan_seal
from skill_effectiveness.studies.report_files import REPORT
from skill_effectiveness.studies.reporting import RESULTS_PATH
from skill_effectiveness.studies.results import read_results
from skill_effectiveness.trials.faults import TrialError
from skill_effectiveness.trials.store import TRIAL, TRIALS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.merkle import Tree
    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.studies.results import Results
    from skill_effectiveness.studies.root import StudyJournal, StudyRoot


@dataclass(frozen=True, slots=True)
class SealedBundle:
    """A bundle that was sealed.

    Attributes:
        predicate: what its seal says.
        key_id: of the key that signed.
    """

    predicate: BundlePredicate
    key_id: str


def seal_study(
    study: StudyRoot, journal: StudyJournal, target: PrivateRoot, key: Ed25519PrivateKey
) -> SealedBundle:
    """Copy a study's evidence and sign the copy; doing it again changes nothing.

    Args:
        study: open, under its lock.
        journal: of the study, open.
        target: an empty private folder, or one that an earlier call has begun.
        key: signs; the one that sealed the plan.

    Raises:
        StudyError: `report_missing`, `report_changed`; `plan_seal`: another key sealed the plan;
            `bundle_occupied`; `plan_changed`.
        JournalError, LockError, EvidenceError: something cannot be read or written.
    """
    results = demand_reported(study, journal)
    study.check_study()
    _demand_same_key(study, key)
    if _last_type(journal) != rows.Sealed.type:
        journal.append(rows.Sealed())
    journal.save_status()
    opened = openings(study.seed(), study.slots())
    names = tuple(_names(study))
    _demand_free(target, {*names, OPENINGS, ENVELOPE})
    held = dict(_copied(study.root, target, names))
    target.publish(OPENINGS, opened)
    held[OPENINGS] = (len(opened), digest_bytes(opened))
    tree = tree_over((name, size, digest) for name, (size, digest) in held.items())
    predicate = BundlePredicate(
        schema_version=1,
        artifact_contract=BUNDLE_CONTRACT,
        merkle_root=root_text(tree.root),
        tree_size=tree.size,
        plan_digest=study.plan.plan_digest,
        journal=PinnedJournal(
            journal_id=journal.journal.journal_id, count=journal.journal.count, head=journal.journal.head
        ),
        results_digest=results.results_digest,
        synthetic=results.synthetic,
    )
    subjects = tuple(Subject.of_digest(name, digest) for name, (_, digest) in held.items())
    target.publish(ENVELOPE, sign(Statement(subjects, PredicateType.BUNDLE, to_json(predicate)), key))
    return SealedBundle(predicate, public_key_id(key.public_key()))


def demand_reported(study: StudyRoot, journal: StudyJournal) -> Results:
    """The results that lie there, if they are those of the journal and all their tables are there.

    Raises:
        StudyError: `report_missing`, `report_changed`.
        RootError, FileError: the report's folder cannot be used.
    """
    if journal.state.results_digest is None or not study.root.exists(REPORT):
        sentence = "there is no report yet; make it with `study report`, then seal the study."
        raise StudyError(StudyCode.REPORT_MISSING, REPORT, sentence)
    try:
        with study.root.child(REPORT) as folder:
            results = read_results(folder.read(RESULTS_PATH.removeprefix(f"{REPORT}/")))
            tables = {name: digest_bytes(folder.read(name)) for name in results.tables}
    except EvidenceError as error:
        raise _report_changed() from error
    if results.results_digest != journal.state.results_digest or tables != results.tables:
        raise _report_changed()
    return results


def _report_changed() -> StudyError:
    sentence = "the report is not the one that the journal names; make it again with `study report`."
    return StudyError(StudyCode.REPORT_CHANGED, REPORT, sentence)


def _demand_same_key(study: StudyRoot, key: Ed25519PrivateKey) -> None:
    """Refuse another key than the plan's: with one public key a stranger must be able to check both seals."""
    found = verify_plan_seal(
        study.root.read(PLAN_SEAL),
        [key.public_key()],
        plan_file=study.root.read(PLAN),
        commitments=study.root.read(COMMITMENTS),
    )
    if not found.passed:
        sentence = "the plan was sealed with another key; seal the study with that one."
        raise StudyError(StudyCode.PLAN_SEAL, PLAN_SEAL, sentence)


def _last_type(journal: StudyJournal) -> str:
    last = ""
    for row in journal.journal.rows(max(0, journal.journal.count - 1)):
        last = row.type
    return last


def _names(study: StudyRoot) -> Iterator[str]:
    """Every file of a study that goes into its bundle."""
    for name in FolderSubjects(study.around.fs, study.root.path, besides=()).names():
        if belongs(name) and not name.endswith("/"):
            yield name


def _demand_free(target: PrivateRoot, wanted: set[str]) -> None:
    there = FolderSubjects(target.around.fs, target.path, besides=()).names()
    others = {name for name in there if not _is_ours(name, wanted)}
    if others:
        sentence = "the folder holds something that this bundle would not name; give an empty one."
        raise StudyError(StudyCode.BUNDLE_OCCUPIED, "", sentence)


def _is_ours(name: str, wanted: set[str]) -> bool:
    """Whether a name is one of the bundle's, a folder of it, or what a killed call left."""
    folder = any(one.startswith(name) for one in wanted) if name.endswith("/") else False
    return name in wanted or folder or name.rpartition("/")[2].startswith(".")


def _copied(
    source: PrivateRoot, target: PrivateRoot, names: tuple[str, ...]
) -> Iterator[tuple[str, tuple[int, str]]]:
    """Copy files one by one; size and digest of each."""
    folders: dict[str, list[str]] = {}
    for name in sorted(names):
        folder, _, last = name.rpartition("/")
        folders.setdefault(folder, []).append(last)
    for folder, files in folders.items():
        with ExitStack() as opened:
            there, here = source, target
            if folder:
                parts = folder.split("/")
                there = opened.enter_context(source.child(*parts))
                here = opened.enter_context(target.child(*parts, create=True))
            here.sweep()
            for last in files:
                data = there.read(last, FILE_LIMIT)
                here.publish(last, data)
                yield f"{folder}/{last}" if folder else last, (len(data), digest_bytes(data))


# One trial of a bundle.


def prove(fs: FileSystem, bundle: Path, trial: str, target: PrivateRoot) -> InclusionDocument:
    """Write the files of one trial with the proofs that they stand in a bundle.

    Whether the bundle is what its signer sealed is for whoever verifies the proof with the signer's key.

    Args:
        fs: file operations.
        bundle: folder of the bundle, absolute; need not be private.
        trial: its path as the tables have it, such as `fix-01/profile-full/sample-001`.
        target: an empty private folder.

    Raises:
        StudyError: `bundle_invalid`: the bundle is none, or its files are not those that were sealed;
            `trial_unknown`; `bundle_occupied`.
        EvidenceError: something cannot be read or written.
    """
    files = BundleFiles(fs, bundle)
    envelope = files.envelope()
    tree, held = _whole(files, envelope)
    names = sorted(held)
    chosen = _of_trial(files, trial, names)
    if not chosen:
        sentence = "the bundle holds no such trial; take its name from trials.csv, column trial_id."
        raise StudyError(StudyCode.TRIAL_UNKNOWN, "", sentence)
    _demand_free(target, {*chosen, INCLUSION, ENVELOPE})
    document = InclusionDocument(
        schema_version=1,
        artifact_contract=PROOF_CONTRACT,
        trial=trial,
        tree_size=tree.size,
        files=tuple(_proven(tree, names.index(name), name, held[name]) for name in chosen),
    )
    for name in chosen:
        *folders, last = name.split("/")
        with target.child(*folders, create=True) as folder:
            folder.publish(last, files.demand(name))
    target.publish(INCLUSION, dump_line(to_json(document)))
    target.publish(ENVELOPE, envelope)
    return document


def _whole(files: BundleFiles, envelope: bytes) -> tuple[Tree, Mapping[str, tuple[int, str]]]:
    """The tree of a bundle, if its files give the root that was sealed."""
    try:
        statement, predicate = unverified(envelope, PREDICATES)
    except EvidenceError as error:
        raise _not_whole(error.faults[0].sentence) from error
    held = {}
    for subject in statement.subjects:
        size, digest = files.measured(subject.name)
        held[subject.name] = (size, digest)
    tree = tree_over((name, size, digest) for name, (size, digest) in held.items())
    if not isinstance(predicate, BundlePredicate) or root_text(tree.root) != predicate.merkle_root:
        raise _not_whole("its files are not those that were sealed.")
    return tree, held


def _not_whole(told: str) -> StudyError:
    return StudyError(StudyCode.BUNDLE_INVALID, ENVELOPE, f"this bundle proves nothing: {told}")


def _of_trial(files: BundleFiles, trial: str, names: list[str]) -> list[str]:
    """Everything that a bundle has of one trial: its folder, and the attempts of its slot."""
    document = files.read(f"{TRIALS}/{trial}/{TRIAL}")
    if document is None:
        return []
    try:
        return files_of_trial(trial, document, names)
    except TrialError as error:
        raise _not_whole(error.sentence) from error


def _proven(tree: Tree, index: int, name: str, held: tuple[int, str]) -> ProvenFile:
    size, digest = held
    proof = tree.inclusion_proof(index)
    return ProvenFile(
        path=name,
        size=size,
        sha256=digest.removeprefix("sha256:"),
        leaf_index=proof.leaf_index,
        hashes=proof.hashes,
    )
