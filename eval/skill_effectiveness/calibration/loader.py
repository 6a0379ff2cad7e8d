"""The one loader of published pairs, of every variant (calibration.md, section 6).

It reads both documents strictly and in their one written form, derives every value and every hash again and
refuses the pair if anything differs, naming the field. What no pair can prove by itself is named in
`documents.Declared`; it is held to its form and to what is known of the provider.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from skill_effectiveness.calibration.binding import (
    SIMULATED,
    repeats_runner_contract,
    sample_runner_contract,
)
from skill_effectiveness.calibration.documents import (
    PAIR_NAMES,
    Declared,
    evidence_document,
    result_document,
)
from skill_effectiveness.calibration.errors import PairFault, PairRefused
from skill_effectiveness.calibration.models import (
    EvidenceDocument,
    ProbeResultDocument,
    Record,
    ResultDocument,
    to_json,
)
from skill_effectiveness.calibration.reviewer import ADAPTERS, binds_configuration
from skill_effectiveness.evidence.documents import Canonical, parse
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile
from skill_effectiveness.protocol.words import BankName
from skill_effectiveness.providers import family_of

if TYPE_CHECKING:
    from skill_effectiveness.calibration.inputs import FrozenInputs

RecordT = TypeVar("RecordT", bound=Record)


@dataclass(frozen=True, slots=True)
class LoadedCalibration:
    """A pair in which every value is what it has to be."""

    bank: BankName
    evidence: EvidenceDocument
    result: ResultDocument | ProbeResultDocument

    @property
    def synthetic(self) -> bool:
        """Whether the examined reviewer was simulated."""
        return self.result.synthetic is True


def load_calibration(evidence: bytes, result: bytes, *, inputs: FrozenInputs) -> LoadedCalibration:
    """Read one published pair.

    Args:
        evidence: bytes of the first file.
        result: bytes of the second.
        inputs: the frozen inputs the pair has to be about; their bank decides the variant.

    Raises:
        PairRefused: `document_invalid` or `value_differs`, with the field.
    """
    names = PAIR_NAMES[inputs.bank.name]
    answered = _read(EvidenceDocument, evidence, names.evidence)
    stated: ResultDocument | ProbeResultDocument
    if inputs.bank.name is BankName.JUDGED:
        stated = _read(ResultDocument, result, names.result)
    else:
        stated = _read(ProbeResultDocument, result, names.result)
    _check_evidence(answered, stated, inputs, names.evidence)
    _check_declared(stated, names.result)
    derived = result_document(_declared(stated), answered, inputs)
    _compare(to_json(stated), to_json(derived), names.result)
    return LoadedCalibration(inputs.bank.name, answered, stated)


def _read(model: type[RecordT], data: bytes, name: str) -> RecordT:
    try:
        return parse(model, data, Profile.DOCUMENT, canonical=Canonical.LINE)
    except EvidenceError as error:
        fault = error.faults[0]
        raise PairRefused(
            PairFault.DOCUMENT,
            f"{name}:{fault.where}",
            f"{name} is not a document of this contract ({fault.code}): {fault.sentence}",
        ) from error


def _check_evidence(
    answered: EvidenceDocument,
    stated: ResultDocument | ProbeResultDocument,
    inputs: FrozenInputs,
    name: str,
) -> None:
    """The bank is the frozen one, and one family answered all of it in every run."""
    families = [reviewer.family for reviewer in answered.reviewers]
    if families != [stated.reviewer_family]:
        raise _differs(f"{name}:/reviewers", "must be the one reviewer that the result is about")
    runs = answered.reviewers[0].runs
    if len(runs) != stated.repeat_count:
        raise _differs(f"{name}:/reviewers/0/runs", "must hold as many runs as the result says")
    derived = evidence_document(inputs, stated.reviewer_family, runs)
    _compare(to_json(answered), to_json(derived), name)
    for number, run in enumerate(runs):
        if tuple(judgment.case_id for judgment in run) != inputs.bank.case_ids:
            where = f"{name}:/reviewers/0/runs/{number}"
            raise _differs(where, "must answer every case of the bank once, in its order")


def _check_declared(stated: ResultDocument | ProbeResultDocument, name: str) -> None:
    """What a pair can only state fits the provider it names."""
    adapter = ADAPTERS.get(stated.provider)
    if adapter is None:
        raise _differs(f"{name}:/provider", "is a provider that this version cannot examine")
    single = stated.runner_contract == sample_runner_contract(stated.provider)
    expected = {
        "reviewer_family": family_of(stated.provider, stated.model) or stated.reviewer_family,
        "requested_session_mode": adapter.session_label,
        "tool_access": adapter.tool_label,
        "provider_environment_keys": tuple(sorted(set(stated.provider_environment_keys))),
        "runner_contract": stated.runner_contract if single else repeats_runner_contract(stated.provider),
    }
    for field, value in expected.items():
        if getattr(stated, field) != value:
            raise _differs(f"{name}:/{field}", f"is not what a pair of the provider {stated.provider} says")
    bound = stated.provider_binding
    if binds_configuration(adapter) is not (bound is not None) or (
        bound and bound.model_alias != stated.model
    ):
        told = "is of the configuration that gave the model, and belongs to providers that have one"
        raise _differs(f"{name}:/provider_binding", told)
    simulated = stated.provider == SIMULATED
    if simulated is not (stated.simulation is not None):
        raise _differs(f"{name}:/simulation", "belongs to a simulated reviewer and to no other")
    ids = stated.sample_ids
    if single is not (ids is not None) or (
        ids is not None and not len(set(ids)) == len(ids) == stated.repeat_count
    ):
        raise _differs(
            f"{name}:/sample_ids", "must name each sample of a single-sample pair, and of no other"
        )


def _declared(stated: ResultDocument | ProbeResultDocument) -> Declared:
    return Declared(**{name: getattr(stated, name) for name in Declared.__slots__})


def _compare(found: dict[str, Any], derived: dict[str, Any], name: str) -> None:
    for field in sorted(found.keys() | derived.keys()):
        if field not in found or field not in derived or found[field] != derived[field]:
            raise _differs(f"{name}:/{field}", "is not what the rest of the pair and the frozen inputs give")


def _differs(where: str, told: str) -> PairRefused:
    return PairRefused(PairFault.DIFFERS, where, f"{where} {told}; the pair does not count.")
