"""What a bundle may hold once its plan and journal are read: files that nothing explains are refused.

The seal covers whatever lies there, so a signer could put a vote, an attempt or a grade beside the evidence
that no row of the journal knows: an attempt that was made and not told, for example. Each check refuses such
files of the folder that it answers for (studies.md section 8).
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.documents import Canonical, parse
from skill_effectiveness.evidence.root import HISTORY
from skill_effectiveness.evidence.strict import Profile
from skill_effectiveness.studies.attempts import ATTEMPTS, EXIT, TREE
from skill_effectiveness.studies.batches import ASSAYS, batches
from skill_effectiveness.studies.bundle_case import CheckFailedError
from skill_effectiveness.studies.pairing import planned_pairs, trial_key
from skill_effectiveness.studies.report_files import PAGE, REPORT, RESULTS
from skill_effectiveness.studies.root import LICENCES, licence_name
from skill_effectiveness.studies.table_building import blinded_pairs
from skill_effectiveness.studies.voting import VOTES, vote_name
from skill_effectiveness.trials.binding import AUDIT, EVENTS, OUTCOME
from skill_effectiveness.trials.blinding import FOLDER, JUDGE, LEAKS, MAPPINGS, LeakDocument
from skill_effectiveness.trials.grades import GRADE_NAME, REPLAY_NAME
from skill_effectiveness.trials.store import BREACH, TRIAL, TRIALS, parse_document
from skill_effectiveness.trials.trial_reading import GRADING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from skill_effectiveness.studies.bundle_case import BundleCase

_OF_A_TRIAL: Final = (
    TRIAL, EVENTS, AUDIT, OUTCOME, BREACH, f"{GRADING}/{GRADE_NAME}", f"{GRADING}/{REPLAY_NAME}",
)  # fmt: skip


def demand_attempts_known(case: BundleCase) -> None:
    """Refuse what lies under `attempts` and is of no attempt of the journal."""
    known = {
        f"{ATTEMPTS}/{slot.slot}/a{attempt.number}/{name}"
        for slot in case.state.slots.values()
        for attempt in slot.attempts
        for name in (EXIT, TREE)
    }
    _demand_known(case, ATTEMPTS, known, "an attempt that the journal knows")


def demand_trials_known(case: BundleCase) -> None:
    """Refuse what lies under `trials` and is no part of a planned trial."""
    known = {
        f"{TRIALS}/{trial_key(case.plan, slot).path}/{name}" for slot in case.slots for name in _OF_A_TRIAL
    }
    _demand_known(case, TRIALS, known, "a trial of the plan")


def demand_assays_known(case: BundleCase) -> None:
    """Refuse what lies under `assays` and is of no batch of the plan."""
    known = {
        f"{ASSAYS}/{batch.batch}-{phase}.json" for batch in batches(case.plan) for phase in ("open", "close")
    }
    _demand_known(case, ASSAYS, known, "an assay of a planned batch")


def demand_votes_known(case: BundleCase) -> None:
    """Refuse votes that the journal never started, and licences that the plan does not name."""
    votes = {f"{VOTES}/{vote_name(vote_id)}" for vote_id in case.state.votes}
    _demand_known(case, VOTES, votes, "a vote that the journal knows")
    licences = {f"{LICENCES}/{licence_name(reviewer.licence_id)}" for reviewer in case.plan.reviewers}
    _demand_known(case, LICENCES, licences, "a licence of the plan")


def demand_blinding_known(case: BundleCase) -> None:
    """Refuse what lies under `blinding` and is about no pair of the plan."""
    showings = [showing for pair in blinded_pairs(case.evidence) for showing in pair.seats]
    known = {f"{FOLDER}/{kind}/{showing}.json" for showing in showings for kind in (MAPPINGS, JUDGE)}
    _demand_known(case, FOLDER, known | set(_leaks(case)), "a pair of the plan")


def _leaks(case: BundleCase) -> Iterator[str]:
    trials = {
        name for pair in planned_pairs(case.plan, case.slots) for name in (pair.treatment, pair.comparator)
    }
    for name in case.files.names(f"{FOLDER}/{LEAKS}"):
        where = f"{FOLDER}/{LEAKS}/{name}"
        found = parse(LeakDocument, case.files.demand(where), Profile.DOCUMENT, canonical=Canonical.LINE)
        if all(leak.outcome_id in trials for leak in found.leaks):
            yield where


def demand_report_known(case: BundleCase) -> None:
    """Refuse what lies under `report` and is neither this report nor, by its name, a former one."""
    names = (PAGE, RESULTS, *case.results.tables)
    known = {f"{REPORT}/{name}" for name in names}
    stems = {(PurePosixPath(name).stem, PurePosixPath(name).suffix) for name in names}
    for subject in case.statement.subjects:
        pure = PurePosixPath(subject.name)
        stem, _, digest = pure.stem.rpartition("-")
        former = str(pure.parent) == f"{REPORT}/{HISTORY}" and (stem, pure.suffix) in stems
        if former and digest == subject.sha256:
            known.add(subject.name)
    _demand_known(case, REPORT, known, "this report or a former one")


def files_of_trial(trial: str, document: bytes, names: Iterable[str]) -> list[str]:
    """Everything that a bundle has of one trial: its folder, and the attempts of its slot.

    Args:
        trial: its path, such as `fix-01/profile-full/sample-001`.
        document: the bytes of its `trial.json`.
        names: of the bundle's files.

    Raises:
        TrialError: the document is none.
    """
    slot = parse_document(document).runtime.session_id.removeprefix("slot-")
    folders = (f"{TRIALS}/{trial}/", f"{ATTEMPTS}/{slot}/")
    return [name for name in names if name.startswith(folders)]


def _demand_known(case: BundleCase, folder: str, known: Collection[str], what: str) -> None:
    """Of what was sealed; that nothing else lies here is what check 2 is for."""
    sealed = (subject.name for subject in case.statement.subjects)
    strays = [name for name in sealed if name.startswith(f"{folder}/") and name not in known]
    if strays:
        more = f" ({len(strays) - 1} more like this)" if len(strays) > 1 else ""
        raise CheckFailedError(f"{min(strays)} is no part of {what}{more}.")
