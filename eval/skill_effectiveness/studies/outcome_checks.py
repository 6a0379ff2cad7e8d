"""Checks 8, 9 and 11 to 14: what trials, grades, votes and results of a bundle say (studies.md section 8)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration.inputs import load_inputs
from skill_effectiveness.evidence.canonical import digest_bytes, digest_object
from skill_effectiveness.evidence.documents import Canonical, parse
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.protocol.tasks import public_reference
from skill_effectiveness.protocol.words import BankName
from skill_effectiveness.studies import rows
from skill_effectiveness.studies.attempt_records import read_exit
from skill_effectiveness.studies.attempts import ATTEMPTS, EXIT
from skill_effectiveness.studies.bundle_case import CheckFailedError, named
from skill_effectiveness.studies.bundle_checks import DECIDED
from skill_effectiveness.studies.bundle_contents import (
    demand_blinding_known,
    demand_report_known,
    demand_trials_known,
    demand_votes_known,
)
from skill_effectiveness.studies.chance import Chance
from skill_effectiveness.studies.deciding import Deciding
from skill_effectiveness.studies.derivation import circumstances_of
from skill_effectiveness.studies.pairing import planned_pairs, trial_key
from skill_effectiveness.studies.report_files import REPORT
from skill_effectiveness.studies.results import RESULTS_DIGEST, results_json
from skill_effectiveness.studies.roster import may_be_shown
from skill_effectiveness.studies.table_building import blinded_pairs
from skill_effectiveness.studies.tables import Tables
from skill_effectiveness.studies.vote_checks import vote_faults
from skill_effectiveness.studies.words import EndClass, GradeState
from skill_effectiveness.trials.binding import (
    AUDIT,
    EVENTS,
    OUTCOME,
    EvidenceDigests,
    completion_binding,
    fingerprint,
    location_hash,
)
from skill_effectiveness.trials.blinding import FOLDER, JUDGE, MAPPINGS, JudgeInput, PairMapping
from skill_effectiveness.trials.grades import GRADE_NAME, REPLAY_NAME, grade_hash, parse_grade
from skill_effectiveness.trials.leaks import LeakRules, scan
from skill_effectiveness.trials.models import TrialStatus
from skill_effectiveness.trials.store import BREACH, TRIAL, TRIALS, parse_document
from skill_effectiveness.trials.tiers import CAUSAL, required_tier
from skill_effectiveness.trials.trial_facts import JUDGE_PAYLOAD
from skill_effectiveness.trials.trial_reading import GRADING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import JsonValue

    from skill_effectiveness.studies.bundle_case import BundleCase
    from skill_effectiveness.studies.state import SlotState
    from skill_effectiveness.studies.tables import Cell
    from skill_effectiveness.trials.allocation import Slot
    from skill_effectiveness.trials.grades import GradeDocument
    from skill_effectiveness.trials.models import TrialDocument

NEAR: Final = 1e-9
_TABLES: Final = ("trials", "pairs", "judgements")
_CARRIED: Final = ("verdict", "amendments", "deviations", "unblinded_at")
"""Members of results that check 14 answers for."""

_OF_FILES: Final = ("tables", RESULTS_DIGEST)
"""Members of results that are digests; of the bundle's own bytes, not of ours."""


# Trials and grades.


def check_trials(case: BundleCase) -> None:
    """Check 8: completion bindings, manifests, tier."""
    listed = set()
    for slot in case.slots:
        state = case.state.slot(slot.slot)
        name = trial_key(case.plan, slot).path
        data = case.files.read(f"{TRIALS}/{name}/{TRIAL}")
        if data is not None:
            listed.add(name)
        if data is None and state.ended is None:
            continue
        if data is None or not state.attempts:
            raise CheckFailedError(f"the trial {name} is missing, or was never started.")
        with named(f"{TRIALS}/{name}/{TRIAL}"):
            document = parse_document(data)
        _check_identity(case, slot, document, name)
        _check_end(case, state, document, name)
    found = {
        path.removeprefix(f"{TRIALS}/").removesuffix(f"/{TRIAL}")
        for path in case.files.names()
        if path.startswith(f"{TRIALS}/") and path.endswith(f"/{TRIAL}")
    }
    if strangers := found - listed:
        raise CheckFailedError(f"the trial {min(strangers)} is none of the plan.")
    demand_trials_known(case)


def _check_identity(case: BundleCase, slot: Slot, document: TrialDocument, name: str) -> None:
    plan, key = case.plan, trial_key(case.plan, slot)
    runtime = {
        "provider": plan.driver.provider,
        "model": plan.driver.model,
        "session_id": f"slot-{slot.slot}",
        "isolation_config_hash": digest_object(plan.isolation.model_dump(mode="json")),
        "runner_hash": plan.runtime_manifest_hash,
        "experiment_plan_hash": plan.plan_digest,
    }
    manifest = plan.arm(slot.arm).manifest_hash
    place = location_hash(case.root_id, key.path)
    same = (
        document.task == public_reference(case.frozen.tasks[slot.task_id])
        and document.manifest_hash == manifest
        and document.arm_id == key.arm_id
        and document.sample_index == slot.sample
        and document.registry_schema == plan.registry
        and document.registry_plan_hash == plan.arm_registry_plan_hash
        and document.runtime.model_dump(mode="json") == runtime
        and document.trial_location_hash == place
    )
    expected = fingerprint(
        task=case.frozen.tasks[slot.task_id],
        manifest_hash=manifest,
        runtime=document.runtime,
        budget=document.budget,
        sample_index=slot.sample,
        trial_location_hash=place,
    )
    if not same or document.trial_fingerprint != expected:
        raise CheckFailedError(f"the trial {name} is not the one that was planned for its slot.")


def _check_end(case: BundleCase, state: SlotState, document: TrialDocument, name: str) -> None:
    where = f"{TRIALS}/{name}"
    ended = state.ended
    breached = case.files.read(f"{where}/{BREACH}") is not None
    if breached and ended not in {EndClass.CONTAMINATED, EndClass.VOID, None}:
        raise CheckFailedError(f"a breach was seen in the trial {name}, and it counts.")
    if document.stop_reason is not None and document.status is TrialStatus.COMPLETED:
        raise CheckFailedError(f"the trial {name} completed and names a reason why it was stopped.")
    if document.status is TrialStatus.COMPLETED:
        _check_completion(case, document, where)
        last = state.attempts[-1]
        exit_file = f"{ATTEMPTS}/{state.slot}/a{last.number}/{EXIT}"
        with named(exit_file):
            exit_ = read_exit(case.files.demand(exit_file))
        held = document.completion_isolation
        if held is None or exit_.isolation.evidence != held.evidence:
            raise CheckFailedError(f"the trial {name} claims another isolation than its attempt observed.")
    if ended is None:
        return
    if state.completion_binding_hash != document.completion_binding_hash:
        raise CheckFailedError(f"the completion of the trial {name} is not the one of the journal.")
    expected = {EndClass.COMPLETED: TrialStatus.COMPLETED, EndClass.CONTAMINATED: TrialStatus.CONTAMINATED}
    fits = document.status is expected.get(ended, TrialStatus.FAILED)
    if ended is not EndClass.VOID and (
        not fits or (document.status is TrialStatus.FAILED and document.stop_reason != str(ended))
    ):
        raise CheckFailedError(f"the trial {name} ended otherwise than the journal says.")


def _check_completion(case: BundleCase, document: TrialDocument, where: str) -> None:
    digests = [digest_bytes(case.files.demand(f"{where}/{part}")) for part in (EVENTS, AUDIT, OUTCOME)]
    if completion_binding(document, EvidenceDigests(*digests)) != document.completion_binding_hash:
        raise CheckFailedError(f"{where}: document or evidence was changed after completion.")
    isolation = document.completion_isolation
    tier = required_tier(document.registry_schema)
    if isolation is None or isolation.evidence_tier is not tier or tier is not case.plan.tier:
        raise CheckFailedError(f"{where}: the tier is not the one that follows from the registry.")
    if tier is CAUSAL.requested_tier and isolation.coverage_limitations:
        raise CheckFailedError(f"{where}: a causal trial does without a proof.")


def check_grades(case: BundleCase) -> None:
    """Check 9: both grades of every trial equal, and as journalled."""
    for slot in case.slots:
        state = case.state.slot(slot.slot)
        where = f"{TRIALS}/{trial_key(case.plan, slot).path}"
        if state.state is not GradeState.VALID:
            continue
        grades = [_grade(case, f"{where}/{GRADING}/{name}") for name in (GRADE_NAME, REPLAY_NAME)]
        if {grade_hash(grade) for grade in grades} != {state.grade_hash}:
            raise CheckFailedError(f"{where}: the two grades are not equal, or not those of the journal.")
        with named(f"{where}/{TRIAL}"):
            document = parse_document(case.files.demand(f"{where}/{TRIAL}"))
        expected = (document.trial_fingerprint, case.plan.task(slot.task_id).grader_hash)
        if (grades[0].trial_fingerprint, grades[0].grader_hash) != expected:
            raise CheckFailedError(f"{where}: the grade is of another trial, or by another grader.")


def _grade(case: BundleCase, where: str) -> GradeDocument:
    with named(where):
        return parse_grade(case.files.demand(where))


# Votes and blinding.


def check_votes(case: BundleCase) -> None:
    """Check 11: licences live at each vote, canary e recomputed, void votes void."""
    demand_votes_known(case)
    bank = load_inputs(case.files.fs, BankName.JUDGED).bank
    faults = vote_faults(case.evidence, case.licences, bank, Chance(case.seed))
    if faults:
        more = f" ({len(faults) - 1} more like this)" if len(faults) > 1 else ""
        raise CheckFailedError(f"{faults[0]}{more}.")


def check_blinding(case: BundleCase) -> None:
    """Check 12: blinding mappings complete, leak scan repeated.

    Texts of the treatments are no part of a bundle; arms, owners and digests are looked for again.
    """
    demand_blinding_known(case)
    pairs = blinded_pairs(case.evidence)
    voted = {vote.pair_id for vote in case.state.votes.values()}
    _check_complete(case, {(pair.pair.task_id, pair.pair.sample) for pair in pairs})
    registry = case.frozen.registry_plan
    owners = {owner for task in case.frozen.tasks.values() for owner in task.expected_owners}
    hashes = (registry.plan_hash, registry.arm_registry_hash, *registry.manifest_hashes.values())
    rules = LeakRules(owners=owners).with_registry(registry.manifest_hashes, hashes)
    for pair in pairs:
        if not pair.seats:
            continue
        if sorted(pair.seats.values()) != [0, 1]:
            raise CheckFailedError(f"{pair.pair_id} was not shown in both positions.")
        for showing in pair.seats:
            _check_showing(case, showing, rules, asked=showing in voted)


def _check_complete(case: BundleCase, blinded: set[tuple[str, int]]) -> None:
    """Where anybody voted, every pair that could be shown was blinded or refused."""
    if not case.state.votes:
        return
    for pair in planned_pairs(case.plan, case.slots):
        if (pair.task_id, pair.sample) in blinded:
            continue
        slots = (pair.treatment_slot, pair.comparator_slot)
        names = (pair.treatment, pair.comparator)
        if all(may_be_shown(case.state, slot) for slot in slots) and all(
            _payload(case, name) is not None for name in names
        ):
            raise CheckFailedError(f"the pair of {pair.task_id}, sample {pair.sample}, was never blinded.")


def _check_showing(case: BundleCase, showing: str, rules: LeakRules, *, asked: bool) -> None:
    where = f"{FOLDER}/{MAPPINGS}/{showing}.json"
    with named(where):
        mapping = parse(PairMapping, case.files.demand(where), Profile.DOCUMENT, canonical=Canonical.LINE)
    registry = case.frozen.registry_plan
    if (mapping.arm_registry_hash, mapping.arm_registry_plan_hash) != (
        registry.arm_registry_hash,
        registry.plan_hash,
    ):
        raise CheckFailedError(f"{where} belongs to another plan.")
    shown = case.files.read(f"{FOLDER}/{JUDGE}/{showing}.json")
    if shown is None and not asked:
        return
    if shown is None:
        raise CheckFailedError(f"what was shown of {showing} is missing.")
    with named(f"{FOLDER}/{JUDGE}/{showing}.json"):
        given = parse(JudgeInput, shown, Profile.DOCUMENT, canonical=Canonical.LINE)
    seats = mapping.mapping
    if given.pair_id != showing or (_payload(case, seats.A), _payload(case, seats.B)) != (given.A, given.B):
        raise CheckFailedError(f"what was shown of {showing} is not what its trials left.")
    if scan(given.A, rules) or scan(given.B, rules):
        raise CheckFailedError(f"what was shown of {showing} gives an arm away.")


def _payload(case: BundleCase, trial: str) -> JsonValue:
    data = case.files.read(f"{TRIALS}/{trial}/{OUTCOME}")
    if data is None:
        return None
    with named(f"{TRIALS}/{trial}/{OUTCOME}"):
        outcome = read_json(data, Profile.DOCUMENT, want_object=True)
    return outcome.get(JUDGE_PAYLOAD) if isinstance(outcome, dict) else None


# Tables, results, and what is carried over.


def check_tables(case: BundleCase) -> None:
    """Check 13: tables rebuilt from trials and votes, analysis recomputed, both equal."""
    results, derived = case.results, case.derived
    digest = results.results_digest
    if digest != case.predicate.results_digest or case.told.analysed[-1:] != (digest,):
        raise CheckFailedError("the results are not those of the seal and of the journal.")
    demand_report_known(case)
    held = {name: case.files.demand(f"{REPORT}/{name}") for name in results.tables}
    if changed := sorted(name for name, data in held.items() if digest_bytes(data) != results.tables[name]):
        raise CheckFailedError(f"{REPORT}/{changed[0]} is not the table that the results were made of.")
    for form in ("csv", "parquet"):
        found = Tables.of(**{name: held[f"{name}.{form}"] for name in _TABLES}, form=form)
        for name in _TABLES:
            _demand_equal_rows(f"{name}.{form}", found.rows(name), derived.tables.rows(name))
    ours, theirs = results_json(derived.results), results_json(results)
    for member in ours.keys() - {*_CARRIED, *_OF_FILES}:
        if not near(ours[member], theirs[member]):
            raise CheckFailedError(f"the analysis made again differs from the results in {member}.")
    _check_stopping(case)


def _check_stopping(case: BundleCase) -> None:
    """A study that stopped early had the evidence for it; a batch that became void took evidence away."""
    closed = case.state.closed
    if closed is None or closed.reason != DECIDED or any(held.void for held in case.state.batches.values()):
        return
    values = {row.slot: row.value for row in case.derived.tables.trials}
    if not Deciding(case.plan, case.slots).decided(values):
        raise CheckFailedError("slots were closed early, and the evidence did not suffice.")


def _demand_equal_rows(
    name: str, found: Sequence[tuple[Cell, ...]], made: Sequence[tuple[Cell, ...]]
) -> None:
    if len(found) != len(made):
        raise CheckFailedError(f"{name} has {len(found)} rows, and the evidence gives {len(made)}.")
    for number, (one, other) in enumerate(zip(found, made, strict=True), start=1):
        if not near(list(one), list(other)):
            raise CheckFailedError(f"row {number} of {name} is not what the evidence gives.")


def near(one: object, other: object) -> bool:
    """Whether two values are equal, numbers that are not whole to 1e-9."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(near(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(near, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=NEAR, abs_tol=NEAR)
    return type(one) is type(other) and one == other


def check_statements(case: BundleCase) -> None:
    """Check 14: limitations, amendments and unblinding carried over, and nothing made more of it."""
    results, told = case.results, circumstances_of(case.evidence, case.told)
    for member, expected in (
        ("verdict", told.verdict),
        ("amendments", told.amendments),
        ("deviations", told.deviations),
        ("unblinded_at", told.unblinded_at),
    ):
        if getattr(results, member) != expected:
            raise CheckFailedError(f"the results do not carry over what happened: {member} differs.")
    if not case.plan.synthetic is results.synthetic is case.predicate.synthetic:
        raise CheckFailedError("plan, results and seal differ in whether the study is synthetic.")
    if (results.plan_digest, results.seed) != (case.plan.plan_digest, case.seed.hex()):
        raise CheckFailedError("the results are of another plan or seed.")
    last = case.rows[-1].type if case.rows else ""
    if last != rows.Sealed.type:
        raise CheckFailedError("the journal goes on after the study was sealed.")
