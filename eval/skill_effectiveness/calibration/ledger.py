"""The judgement of the receipts of one artifact root (calibration.md, section 5).

No receipt is ever repaired. A root whose sets do not fit together stays as evidence and takes no further
call; the one exception is an id that holds nothing but its valid reservation, which the same id may take up
again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeVar

from skill_effectiveness.calibration.errors import CalibrationCode, CalibrationError
from skill_effectiveness.calibration.models import (
    LedgerEntry,
    LegacyLedgerEntry,
    Observation,
    Record,
    Sample,
    SampleBindings,
    SampleIntent,
    to_json,
)
from skill_effectiveness.calibration.orientation import KEY_BYTES, draw_seats, key_commitment
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.documents import Canonical, parse
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.calibration.receipts import Found, Listing

SAMPLE_LIMIT: Final = 5
"""Samples of one root (calibration.md, section 3: `finalize` takes two to five)."""

RecordT = TypeVar("RecordT", bound=Record)


@dataclass(frozen=True, slots=True)
class CompletedSample:
    """One sample whose receipts agree; without an observation it was shown in bank orientation and order."""

    ledger: LedgerEntry | LegacyLedgerEntry
    intent: SampleIntent
    sample: Sample
    observation: Observation | None


class Standing(StrEnum):
    """What an artifact root still allows."""

    OPEN = "open"
    FULL = "full"
    RESERVED = "reserved"
    QUARANTINED = "quarantined"


@dataclass(frozen=True, slots=True)
class RootState:
    """The judgement of one root.

    Attributes:
        standing: what it still allows.
        complete: samples whose receipts agree, by id; empty when quarantined.
        reserved: the one id that holds nothing but its reservation.
        cause: the first thing that does not fit, when quarantined.
        uncalled: ids whose call was certainly not made, when quarantined.
    """

    standing: Standing
    complete: Mapping[str, CompletedSample]
    reserved: str | None = None
    cause: CalibrationError | None = None
    uncalled: frozenset[str] = frozenset()

    def admit(self, sample_id: str) -> None:
        """Return when the root allows one call for this id.

        Raises:
            CalibrationError: `artifact_root_quarantined`, `sample_already_exists`, or `sample_set_mismatch`
                for a sixth sample.
        """
        if self.cause is not None:
            raise CalibrationError(
                CalibrationCode.ARTIFACT_ROOT_QUARANTINED, self.cause.sentence
            ) from self.cause
        if self.reserved is not None and self.reserved != sample_id:
            raise _quarantined(
                f"The id {self.reserved} is reserved and nothing else may be sampled before it"
            )
        # Ids become file names, of which two that differ in case alone cannot stand side by side.
        taken = next((held for held in self.complete if held.casefold() == sample_id.casefold()), None)
        if taken is not None:
            raise CalibrationError(
                CalibrationCode.SAMPLE_ALREADY_EXISTS,
                f"The sample {taken} exists already; take another id.",
            )
        if len(self.complete) >= SAMPLE_LIMIT:
            raise CalibrationError(
                CalibrationCode.SAMPLE_SET_MISMATCH,
                f"The root holds {SAMPLE_LIMIT} samples, which is all a calibration takes; finalize it.",
            )


def judge_receipts(listing: Listing) -> RootState:
    """What a root with these receipts still allows (the table of section 5 and the id-set rules)."""
    try:
        _check_strays(listing)
        reserved = _reserved_id(listing)
        expected = set(listing.ledgers) - {reserved}
        _check_sets(listing, expected)
        complete = {sample_id: judge_sample(listing, sample_id) for sample_id in sorted(expected)}
    except CalibrationError as error:
        uncalled = frozenset(name for name in listing.ledgers if _uncalled(listing, name))
        return RootState(Standing.QUARANTINED, {}, cause=error, uncalled=uncalled)
    if reserved is not None:
        return RootState(Standing.RESERVED, complete, reserved=reserved)
    full = len(complete) >= SAMPLE_LIMIT
    return RootState(Standing.FULL if full else Standing.OPEN, complete)


def judge_sample(listing: Listing, sample_id: str) -> CompletedSample:
    """One sample whose receipts all agree, checked in the order of section 6.

    Raises:
        CalibrationError: a code of `stored_sample`, `confirm` or `observed`.
    """
    sample = stored_sample(listing, sample_id)
    ledger, intent = confirm(listing, sample)
    return CompletedSample(ledger, intent, sample, observed(listing, sample))


def stored_sample(listing: Listing, sample_id: str) -> Sample:
    """The sample of an id by itself.

    Raises:
        CalibrationError: `sample_invalid`: it cannot be read, or is not a sample of that id.
    """
    sample = _parse(
        Sample,
        listing.samples.get(sample_id),
        CalibrationCode.SAMPLE_INVALID,
        f"The sample {sample_id}",
        _written_form(listing, sample_id),
    )
    if sample.sample_id != sample_id:
        raise CalibrationError(
            CalibrationCode.SAMPLE_INVALID,
            f"The sample stored as {sample_id} names another id; use a new root.",
        )
    return sample


def confirm(listing: Listing, sample: Sample) -> tuple[LedgerEntry | LegacyLedgerEntry, SampleIntent]:
    """The ledger entry and the intent that confirm a stored sample.

    Raises:
        CalibrationError: `sample_finality_unknown`, `sample_invalid` (the ledger entry),
            `artifact_root_mismatch` or `sample_intent_mismatch`.
    """
    sample_id = sample.sample_id
    intent = _parse(
        SampleIntent,
        listing.intents.get(sample_id),
        CalibrationCode.SAMPLE_FINALITY_UNKNOWN,
        f"The intent of {sample_id}",
        _written_form(listing, sample_id),
    )
    ledger = _ledger(listing, sample_id)
    if {ledger.artifact_root_hash, sample.artifact_root_hash, intent.artifact_root_hash} != {
        listing.artifact_root_hash
    }:
        raise CalibrationError(
            CalibrationCode.ARTIFACT_ROOT_MISMATCH,
            f"A receipt of {sample_id} names another root; put the folder back where it was taken.",
        )
    if intent.state != "completed" or intent.sample_hash != digest_object(to_json(sample)):
        raise CalibrationError(
            CalibrationCode.SAMPLE_FINALITY_UNKNOWN,
            f"The intent of {sample_id} does not confirm the sample beside it; use a new root.",
        )
    _check_bindings(intent, sample)
    return ledger, intent


def check_sets(listing: Listing) -> tuple[str, ...]:
    """The ids of a root in which every ledger entry has an intent and a sample, sorted.

    Raises:
        CalibrationError: `artifact_root_quarantined`: ids differ, or something there is no receipt.
    """
    _check_strays(listing)
    _check_sets(listing, set(listing.ledgers))
    return tuple(sorted(listing.ledgers))


def _check_strays(listing: Listing) -> None:
    if listing.strays:
        raise _quarantined(f"{listing.strays[0]} is no receipt")


def _reserved_id(listing: Listing) -> str | None:
    """The one id that holds a valid reservation of this root and nothing else."""
    alone = set(listing.ledgers) - set(listing.intents) - set(listing.samples) - set(listing.observations)
    alone -= listing.logs
    if len(alone) != 1:
        return None
    (sample_id,) = alone
    return sample_id if _is_reserved(listing, sample_id) else None


def _uncalled(listing: Listing, sample_id: str) -> bool:
    """Whether an id has nothing but what stands before a call, and its ledger entry says so."""
    later = any(sample_id in held for held in (listing.samples, listing.observations, listing.logs))
    return not later and _is_reserved(listing, sample_id)


def _is_reserved(listing: Listing, sample_id: str) -> bool:
    """Whether the ledger entry of an id is a valid reservation of this root."""
    try:
        entry = _parse(
            LedgerEntry,
            listing.ledgers[sample_id],
            CalibrationCode.SAMPLE_INVALID,
            f"The ledger entry of {sample_id}",
        )
    except CalibrationError:
        return False  # the set check that follows names it
    binding = (entry.sample_id, entry.artifact_root_hash, entry.state)
    return binding == (sample_id, listing.artifact_root_hash, "reserved")


def _check_sets(listing: Listing, expected: set[str]) -> None:
    for what, held in (("intent", listing.intents), ("sample", listing.samples)):
        if set(held) != expected:
            odd = min(set(held) ^ expected)
            raise _quarantined(f"Ledger and {what}s name different ids ({odd})")
    if orphans := set(listing.observations) - expected:
        raise _quarantined(f"The observation of {min(orphans)} has no sample")
    if called := listing.logs - expected:
        raise _quarantined(f"A call of {min(called)} was made, as its log says, and has no sample")


def _written_form(listing: Listing, sample_id: str) -> Canonical | None:
    """Receipts beside a ledger entry of the older contract had another writer, so any layout will do."""
    found = listing.ledgers.get(sample_id)
    if not isinstance(found, bytes):
        return Canonical.LINE
    try:
        parse(LegacyLedgerEntry, found, Profile.DOCUMENT)
    except EvidenceError:
        return Canonical.LINE
    return None


def _ledger(listing: Listing, sample_id: str) -> LedgerEntry | LegacyLedgerEntry:
    found, code, what = (
        listing.ledgers.get(sample_id),
        CalibrationCode.SAMPLE_INVALID,
        f"The ledger entry of {sample_id}",
    )
    entry: LedgerEntry | LegacyLedgerEntry
    try:
        entry = _parse(LedgerEntry, found, code, what)
    except CalibrationError:
        entry = _parse(LegacyLedgerEntry, found, code, what, None)
    if entry.sample_id != sample_id or (
        isinstance(entry, LedgerEntry) and entry.state != "model_call_started"
    ):
        raise CalibrationError(code, f"{what} does not say that its call was started; use a new root.")
    return entry


def _check_bindings(intent: SampleIntent, sample: Sample) -> None:
    for field in SampleBindings.model_fields:
        if getattr(intent, field) != getattr(sample, field):
            raise CalibrationError(
                CalibrationCode.SAMPLE_INTENT_MISMATCH,
                f"Intent and sample {sample.sample_id} differ in {field}; use a new root.",
            )


def observed(listing: Listing, sample: Sample) -> Observation | None:
    """The observation of a sample, None when there is none.

    Turned back it gives the stored judgements, and order and orientation in it are what the key beside it
    draws, so none of the three can be changed alone or with another.

    Raises:
        CalibrationError: `sample_invalid`; `artifact_root_quarantined` for a key that is not private.
    """
    found = listing.observations.get(sample.sample_id)
    if found is None:
        return None
    code, what = CalibrationCode.SAMPLE_INVALID, f"The observation of {sample.sample_id}"
    observation = _parse(Observation, found, code, what)
    turned = {
        shown.case_id: shown.verdict.turned() if shown.orientation else shown.verdict
        for shown in observation.shown
    }
    stored = {judgment.case_id: judgment.verdict for judgment in sample.judgments}
    same_set = len(observation.shown) == len(turned) == len(sample.judgments)
    bound = (observation.sample_id, observation.case_fixture_hash, observation.synthetic)
    if (
        not same_set
        or turned != stored
        or bound != (sample.sample_id, sample.case_fixture_hash, sample.synthetic)
    ):
        raise CalibrationError(code, f"{what} does not give the stored judgements; use a new root.")
    key = _orientation_key(listing, what)
    drawn = draw_seats(sample.case_fixture_hash, stored, sample.sample_id, key)
    seen = tuple((shown.case_id, bool(shown.orientation)) for shown in observation.shown)
    if observation.orientation_key_hash != key_commitment(key) or seen != drawn:
        raise CalibrationError(
            code, f"{what} is not what the orientation key of this root draws; use a new root."
        )
    return observation


def _orientation_key(listing: Listing, what: str) -> bytes:
    key = listing.orientation_key
    if key is None:
        raise CalibrationError(
            CalibrationCode.SAMPLE_INVALID,
            f"{what} cannot be checked, because the orientation key is gone; use a new root.",
        )
    if isinstance(key, EvidenceError):
        raise _quarantined(f"The orientation key is not private ({key.code})") from key
    if len(key) < KEY_BYTES:
        raise _quarantined("The orientation key is shorter than one of ours")
    return key


def _parse(
    model: type[RecordT],
    found: Found | None,
    code: CalibrationCode,
    what: str,
    form: Canonical | None = Canonical.LINE,
) -> RecordT:
    if isinstance(found, bytes):
        try:
            return parse(model, found, Profile.DOCUMENT, canonical=form)
        except EvidenceError as error:
            raise CalibrationError(code, f"{what} is malformed ({error.code}); use a new root.") from error
    if found is None:
        raise CalibrationError(code, f"{what} is absent; use a new root.")
    raise CalibrationError(code, f"{what} cannot be read ({found.code}); use a new root.") from found


def _quarantined(cause: str) -> CalibrationError:
    return CalibrationError(
        CalibrationCode.ARTIFACT_ROOT_QUARANTINED,
        f"{cause}: this root takes no further call and stays as evidence; start again in a new one.",
    )
