"""The judgement of the samples that are to become one calibration (calibration.md, section 6).

In the order of the section: sets of ids, each sample with the receipts that confirm it, equality across the
samples, the frozen bank, the judgements themselves. Whatever is replayed, drifted, of unclear finality or
bound differently stops here; nothing is guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration import ledger
from skill_effectiveness.calibration.binding import runner_hash, sample_runner_contract
from skill_effectiveness.calibration.errors import CalibrationCode, CalibrationError
from skill_effectiveness.calibration.models import ShownAnswer
from skill_effectiveness.calibration.reviewer import ADAPTERS, CONTROLLED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.calibration.models import Observation, Sample
    from skill_effectiveness.calibration.receipts import Listing
    from skill_effectiveness.protocol.cases import Bank

_SHARED: Final = (
    "provider",
    "provider_cli_version",
    "provider_executable_hash",
    "model",
    "reviewer_family",
    "runner_hash",
)


@dataclass(frozen=True, slots=True)
class AnsweredSample:
    """One sample that counts; without an observation it was shown in bank order and orientation."""

    sample: Sample
    observation: Observation | None

    @property
    def seen(self) -> tuple[ShownAnswer, ...]:
        """How it was shown and answered."""
        if self.observation is not None:
            return self.observation.shown
        return tuple(
            ShownAnswer(case_id=judgment.case_id, orientation=0, verdict=judgment.verdict)
            for judgment in self.sample.judgments
        )


def confirmed_samples(
    listing: Listing, sample_ids: Sequence[str], runtime_manifest_hash: str
) -> tuple[Sample, ...]:
    """The samples of a root, each confirmed by its receipts, all of one reviewer and one runtime.

    Args:
        listing: the receipts, at rest.
        sample_ids: what the root has to hold, exactly; their order is kept.
        runtime_manifest_hash: what they have to be bound to.

    Raises:
        CalibrationError: `artifact_root_quarantined`, `sample_set_mismatch`, `sample_invalid`,
            `sample_finality_unknown`, `artifact_root_mismatch`, `sample_intent_mismatch`,
            `sample_binding_mismatch`: the first that applies.
    """
    if set(ledger.check_sets(listing)) != set(sample_ids):
        raise CalibrationError(
            CalibrationCode.SAMPLE_SET_MISMATCH,
            "The ids are not exactly the samples of this root; name each of them once, and no other.",
        )
    samples = tuple(_confirmed(listing, sample_id) for sample_id in sample_ids)
    for sample in samples:
        _check_equal(samples[0], sample, runtime_manifest_hash)
    return samples


def answered_samples(listing: Listing, samples: Sequence[Sample], bank: Bank) -> tuple[AnsweredSample, ...]:
    """The same samples, their answers held against the frozen bank and against how they were shown.

    Raises:
        CalibrationError: `fixture_drift`, then `sample_invalid`.
    """
    for sample in samples:
        hashes = (sample.known_answer_fixture_hash, sample.case_fixture_hash)
        if hashes != (bank.known_answer_fixture_hash, bank.case_fixture_hash):
            raise CalibrationError(
                CalibrationCode.FIXTURE_DRIFT,
                f"The sample {sample.sample_id} was taken with other cases than the frozen ones; "
                "take new samples in a new root.",
            )
    return tuple(_answered(listing, sample, bank) for sample in samples)


def _confirmed(listing: Listing, sample_id: str) -> Sample:
    sample = ledger.stored_sample(listing, sample_id)
    _check_contract(sample)
    ledger.confirm(listing, sample)
    return sample


def _check_contract(sample: Sample) -> None:
    """What a sample says of how it was taken is what this protocol does."""
    if sample.provider not in CONTROLLED:
        raise _invalid(sample, "is of a provider that no controller samples")
    adapter, contract = ADAPTERS[sample.provider], sample_runner_contract(sample.provider)
    expected = {
        "runner_contract": contract,
        "runner_hash": runner_hash(contract, sample.runtime_manifest_hash, sample.provider_executable_hash),
        "requested_session_mode": adapter.session_label,
        "tool_access": adapter.tool_label,
        "synthetic": None,
    }
    for field, value in expected.items():
        if getattr(sample, field) != value:
            raise _invalid(sample, f"has another {field} than this protocol gives")


def _check_equal(first: Sample, sample: Sample, runtime_manifest_hash: str) -> None:
    differing = [field for field in _SHARED if getattr(sample, field) != getattr(first, field)]
    if sample.runtime_manifest_hash != runtime_manifest_hash:
        differing.insert(0, "runtime_manifest_hash")
    if differing:
        raise CalibrationError(
            CalibrationCode.SAMPLE_BINDING_MISMATCH,
            f"The sample {sample.sample_id} has another {differing[0]} than the others or than this runtime; "
            "take all samples of a calibration with one reviewer and one installation, in a new root.",
        )


def _answered(listing: Listing, sample: Sample, bank: Bank) -> AnsweredSample:
    if tuple(judgment.case_id for judgment in sample.judgments) != bank.case_ids:
        raise _invalid(sample, "does not judge every case of the bank once, in its order")
    return AnsweredSample(sample, ledger.observed(listing, sample))


def _invalid(sample: Sample, told: str) -> CalibrationError:
    return CalibrationError(
        CalibrationCode.SAMPLE_INVALID, f"The sample {sample.sample_id} {told}; use a new root."
    )
