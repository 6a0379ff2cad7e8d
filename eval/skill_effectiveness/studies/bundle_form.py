"""What a bundle is: which files of a study it has, what opens its slots, what its seal says (section 8).

A bundle is the study's folder without what must stay secret (the seed's private file, the blinding key), what
may be large or foreign (streams, collected trees, frozen inputs with their hidden tests) and what is none of
its evidence (locks, crash files). What goes in is listed, so nothing else ever does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field

from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.evidence.documents import Canonical, parse
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.merkle import Tree, file_entry, leaf_hash
from skill_effectiveness.evidence.seal import PredicateType
from skill_effectiveness.evidence.strict import LARGEST_INTEGER, Profile
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One
from skill_effectiveness.studies.attempts import ATTEMPTS, EXIT, TREE
from skill_effectiveness.studies.batches import ASSAYS
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.frozen import FROZEN
from skill_effectiveness.studies.plan_seal import COMMITMENTS, PLAN, PLAN_SEAL
from skill_effectiveness.studies.report_files import PAGE, REPORT, RESULTS
from skill_effectiveness.studies.root import JOURNAL, LICENCES, STATUS
from skill_effectiveness.studies.study_file import STUDY_FILE
from skill_effectiveness.studies.voting import VOTES
from skill_effectiveness.trials.allocation import salt
from skill_effectiveness.trials.blinding import FOLDER as BLINDING
from skill_effectiveness.trials.store import TRIALS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skill_effectiveness.trials.allocation import Slot

ENVELOPE: Final = "bundle.dsse.json"
OPENINGS: Final = "openings.jsonl"
INCLUSION: Final = "inclusion.json"
ROOT_FILE: Final = "root.json"
BUNDLE_CONTRACT: Final = "skill-effectiveness-study-bundle-v1"
OPENINGS_CONTRACT: Final = "skill-effectiveness-study-openings-v1"
PROOF_CONTRACT: Final = "skill-effectiveness-study-proof-v1"
ENVELOPE_LIMIT: Final = 67_108_864
FILE_LIMIT: Final = 2 * 268_435_456
"""Bytes of one file of a bundle; the largest of a study are segments of its journal and results of trials."""

_FILES: Final = frozenset({ROOT_FILE, STUDY_FILE, PLAN, PLAN_SEAL, FROZEN, COMMITMENTS, STATUS})
_FOLDERS: Final = frozenset({JOURNAL, BLINDING, TRIALS, ASSAYS, LICENCES, VOTES, REPORT})
_OF_AN_ATTEMPT: Final = frozenset({EXIT, TREE})
REQUIRED: Final = frozenset({*_FILES, OPENINGS, f"{REPORT}/{PAGE}", f"{REPORT}/{RESULTS}"})
"""Files without which nothing is the bundle of a study."""

_ATTEMPT_PARTS: Final = 4

Size = Annotated[int, Field(ge=0, le=LARGEST_INTEGER)]


class PinnedJournal(FrozenModel):
    """How long the journal was and what its last row is."""

    journal_id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    count: Size
    head: DigestText


class BundlePredicate(FrozenModel):
    """What a bundle's seal says of its files."""

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-study-bundle-v1"]
    merkle_root: DigestText
    tree_size: Size
    plan_digest: DigestText
    journal: PinnedJournal
    results_digest: DigestText
    synthetic: bool


PREDICATES: Final = {PredicateType.BUNDLE: BundlePredicate}


class ProvenFile(FrozenModel):
    """One file and the way from it to the root of its bundle."""

    path: Annotated[str, Field(min_length=1, max_length=4_096)]
    size: Size
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    leaf_index: Size
    hashes: Annotated[tuple[Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")], ...], Field(max_length=64)]


class InclusionDocument(FrozenModel):
    """`inclusion.json`: that these files of one trial stand in a bundle."""

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-study-proof-v1"]
    trial: Annotated[str, Field(min_length=1, max_length=1_024)]
    tree_size: Size
    files: Annotated[tuple[ProvenFile, ...], Field(min_length=1, max_length=10_000)]


def read_inclusion(data: bytes) -> InclusionDocument:
    """The proofs of one trial, out of their file.

    Raises:
        StudyError: `bundle_invalid`.
    """
    try:
        return parse(InclusionDocument, data, Profile.DOCUMENT, canonical=Canonical.LINE)
    except EvidenceError as error:
        sentence = f"these are no proofs as they were written: {error.faults[0].sentence}"
        raise StudyError(StudyCode.BUNDLE_INVALID, INCLUSION, sentence) from error


def belongs(path: str) -> bool:
    """Whether a file of a study goes into its bundle.

    Args:
        path: relative to the study's folder, with forward slashes.
    """
    parts = path.split("/")
    if any(part.startswith(".") for part in parts):
        return False
    if len(parts) == 1:
        return path in _FILES
    if parts[0] == ATTEMPTS:
        return len(parts) == _ATTEMPT_PARTS and parts[-1] in _OF_AN_ATTEMPT
    return parts[0] in _FOLDERS


def is_bundled(path: str) -> bool:
    """Whether a file may be named by the seal of a bundle: one that belongs there, or the openings."""
    return path == OPENINGS or belongs(path)


def openings(seed: bytes, slots: Sequence[Slot]) -> bytes:
    """The bytes of `openings.jsonl`: the seed, then what opens each slot's commitment.

    Args:
        seed: of the plan.
        slots: the whole run order.
    """
    first = {"schema_version": 1, "artifact_contract": OPENINGS_CONTRACT, "seed": seed.hex()}
    lines = [
        {
            "slot": slot.slot,
            "task_id": slot.task_id,
            "arm": slot.arm,
            "sample": slot.sample,
            "salt": salt(seed, slot.slot),
        }
        for slot in slots
    ]
    return b"".join(map(dump_line, [first, *lines]))


def tree_over(files: Iterable[tuple[str, int, str]]) -> Tree:
    """The Merkle tree over files.

    Args:
        files: name, size and digest of each; any order.
    """
    return Tree(leaf_hash(file_entry(*file)) for file in sorted(files))


def root_text(root: bytes) -> str:
    """A Merkle root as a digest text."""
    return f"sha256:{root.hex()}"
