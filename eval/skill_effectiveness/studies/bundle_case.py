"""One bundle under examination: what its checks have read so far, each part read once."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from skill_effectiveness.calibration.licensing import claimed_licence
from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.documents import Canonical, parse
from skill_effectiveness.evidence.faults import DocumentError, StrictError
from skill_effectiveness.evidence.identity import RootDocument
from skill_effectiveness.evidence.journal_verify import verify_segments
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.studies.bundle_form import OPENINGS, ROOT_FILE
from skill_effectiveness.studies.chance import SEED_BYTES, Chance
from skill_effectiveness.studies.chronicle import read_chronicle
from skill_effectiveness.studies.derivation import derive
from skill_effectiveness.studies.frozen import FROZEN, read_frozen_study
from skill_effectiveness.studies.plan import read_plan
from skill_effectiveness.studies.plan_seal import PLAN
from skill_effectiveness.studies.reporting import RESULTS_PATH
from skill_effectiveness.studies.results import read_results
from skill_effectiveness.studies.root import JOURNAL, LICENCES, allocation_of, licence_name
from skill_effectiveness.studies.state import fold
from skill_effectiveness.studies.trial_rows import StudyEvidence
from skill_effectiveness.trials.faults import TrialError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from skill_effectiveness.calibration.licence import LicencePredicate
    from skill_effectiveness.evidence.journal_faults import JournalReport
    from skill_effectiveness.evidence.journal_rows import Row
    from skill_effectiveness.evidence.seal import Statement
    from skill_effectiveness.studies.bundle_files import BundleFiles
    from skill_effectiveness.studies.bundle_form import BundlePredicate
    from skill_effectiveness.studies.chronicle import Chronicle
    from skill_effectiveness.studies.derivation import Derived
    from skill_effectiveness.studies.frozen import FrozenStudy
    from skill_effectiveness.studies.plan import StudyPlan
    from skill_effectiveness.studies.results import Results
    from skill_effectiveness.studies.state import StudyState
    from skill_effectiveness.trials.allocation import Slot


class CheckFailedError(Exception):
    """A check does not hold; `sentence` is for people."""

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence
        super().__init__(sentence)


@contextmanager
def named(file: str) -> Iterator[None]:
    """Within it what is wrong with a document names its file: a fault has a place in the document alone.

    Raises:
        CheckFailedError: in place of the fault.
    """
    try:
        yield
    except (StrictError, DocumentError) as error:
        fault = error.faults[0]
        raise CheckFailedError(f"{file}{fault.where and ' at '}{fault.where}: {fault.sentence}") from error
    except TrialError as error:
        raise CheckFailedError(f"{file}: {error.sentence}") from error


class BundleCase:
    """A bundle whose signature was accepted. Every property raises what reading it raises.

    Args:
        files: of the bundle.
        key: that is trusted.
        statement: what was signed.
        predicate: its predicate.
    """

    def __init__(
        self, files: BundleFiles, key: Ed25519PublicKey, statement: Statement, predicate: BundlePredicate
    ) -> None:
        self.files = files
        self.key = key
        self.statement = statement
        self.predicate = predicate
        self.rows: list[Row] = []

    @cached_property
    def journal(self) -> JournalReport:
        """What verifying the journal says; its rows are there afterwards."""
        self.rows.clear()
        return verify_segments(self.files.fs, self.files.path / JOURNAL, on_row=self.rows.append)

    @cached_property
    def plan(self) -> StudyPlan:
        """The plan."""
        with named(PLAN):
            return read_plan(self.files.demand(PLAN))

    @cached_property
    def seed(self) -> bytes:
        """The seed that the openings name."""
        line = self.files.demand(OPENINGS).partition(b"\n")[0]
        with named(OPENINGS):
            first = read_json(line, Profile.ROW, want_object=True)
        told = first.get("seed") if isinstance(first, dict) else None
        seed = bytes.fromhex(told) if isinstance(told, str) else b""
        if len(seed) != SEED_BYTES:
            raise CheckFailedError("the openings name no seed.")
        return seed

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """The run order under that seed."""
        return allocation_of(self.seed, self.plan)

    @cached_property
    def state(self) -> StudyState:
        """What the journal amounts to."""
        return fold(self.rows)

    @cached_property
    def told(self) -> Chronicle:
        """What the journal tells beside that."""
        return read_chronicle(self.rows)

    @cached_property
    def frozen(self) -> FrozenStudy:
        """Manifests, registry and tasks."""
        with named(FROZEN):
            return read_frozen_study(self.files.demand(FROZEN), self.plan)

    @cached_property
    def root_id(self) -> str:
        """The identity of the study's folder."""
        with named(ROOT_FILE):
            return parse(
                RootDocument, self.files.demand(ROOT_FILE), Profile.DOCUMENT, canonical=Canonical.LINE
            ).root_id

    @cached_property
    def licences(self) -> tuple[LicencePredicate, ...]:
        """The licences of the plan, which pins their bytes."""
        found = []
        for reviewer in self.plan.reviewers:
            data = self.files.demand(f"{LICENCES}/{licence_name(reviewer.licence_id)}")
            if digest_bytes(data) != reviewer.licence_hash:
                raise CheckFailedError(f"the licence {reviewer.licence_id} is not the one that was planned.")
            found.append(claimed_licence(data))
        return tuple(found)

    @cached_property
    def evidence(self) -> StudyEvidence:
        """Everything that tables are built from."""
        return StudyEvidence(self.plan, self.frozen.tasks, self.slots, self.state, self.files)

    @cached_property
    def derived(self) -> Derived:
        """Tables and results, made again."""
        return derive(self.evidence, self.licences, Chance(self.seed), self.told)

    @cached_property
    def results(self) -> Results:
        """The results that the bundle holds."""
        with named(RESULTS_PATH):
            return read_results(self.files.demand(RESULTS_PATH))
