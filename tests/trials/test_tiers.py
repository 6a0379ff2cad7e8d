"""Tiers follow from the registry, waive missing proof only, and never change kind."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import typing
from typing import TYPE_CHECKING, Any

import pytest

import skill_effectiveness.trials
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import DocumentError
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.gates import (
    EvidenceTier,
    EvidenceTierName,
    PilotGates,
    WaivableItem,
    load_gates,
)
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.models import TrialDocument, read_record
from skill_effectiveness.trials.tiers import (
    AdvisoryVerdict,
    CausalVerdict,
    check_in_force,
    check_proofs,
    derived_tier,
    required_tier,
    waivers,
)

if TYPE_CHECKING:
    from tests.support.trials import Json

ADVISORY, CAUSAL = EvidenceTierName.ADVISORY_PAIRED, EvidenceTierName.CAUSAL
SIX = {
    "access_root_enforcement",
    "complete_access_audit",
    "live_matched_call_gate",
    "memory_isolation_proof",
    "mount_evidence",
    "provider_side_persistence_proof",
}


def gates(**tier: Json) -> PilotGates:
    frozen = load_gates(RealFs())
    declared = {"schema_version": 1, "requested_tier": "advisory-paired", "waived_items": sorted(SIX)} | tier
    value = frozen.model_dump(mode="json") | {"evidence_tier": declared}
    return validate(PilotGates, value)


def declared(*items: str, tier: str = "advisory-paired") -> EvidenceTier:
    value = {"schema_version": 1, "requested_tier": tier, "waived_items": sorted(items)}
    return read_record(EvidenceTier, value)


def refused(code: TrialCode, call: Json, *arguments: Json) -> str | None:
    with pytest.raises(TrialError) as caught:
        call(*arguments)
    assert caught.value.code is code
    return caught.value.field


def test_the_tier_follows_from_the_registry() -> None:
    """T23: one registry, one tier; none stored, none derived; an unknown one is refused."""
    assert derived_tier("paired-profile") is ADVISORY
    assert derived_tier("skill-content") is CAUSAL
    assert derived_tier(None) is None
    refused(TrialCode.EVIDENCE_INVALID, derived_tier, "another")
    refused(TrialCode.REGISTRY_MISMATCH, required_tier, None)


def test_a_caller_that_says_otherwise_is_refused() -> None:
    """T23: in both directions."""
    refused(TrialCode.REGISTRY_MISMATCH, waivers, ADVISORY, gates(), declared(tier="causal"))
    refused(TrialCode.REGISTRY_MISMATCH, waivers, CAUSAL, gates(), declared())


def test_advisory_waives_six_and_causal_none() -> None:
    assert waivers(ADVISORY, gates()) == SIX
    assert waivers(CAUSAL, gates()) == frozenset()
    assert waivers(CAUSAL, gates(), declared(tier="causal")) == frozenset()


@pytest.mark.parametrize("item", sorted(SIX))
def test_each_waiver_covers_itself_alone(item: str) -> None:
    """T24: one waiver excuses one missing proof and no other."""
    waived = waivers(ADVISORY, gates(), declared(item))
    assert waived == {item}
    check_proofs([WaivableItem(item)], waived)
    for other in SIX - {item}:
        assert refused(TrialCode.PROOF_MISSING, check_proofs, [WaivableItem(other)], waived) == other
    check_proofs([], frozenset())


@pytest.mark.parametrize("item", ["canary_waiver", "isolation", "Mount_evidence", ""])
def test_there_is_no_seventh(item: str) -> None:
    """T24: another name does not load."""
    assert {str(known) for known in WaivableItem} == SIX
    with pytest.raises(TrialError) as caught:
        declared(*SIX, item)
    assert caught.value.code is TrialCode.BAD_RECORD


def test_the_causal_tier_waives_nothing() -> None:
    with pytest.raises(TrialError):
        declared("mount_evidence", tier="causal")


@pytest.mark.parametrize("word", ["replicated-advisory", "synthetic", "advisory", "Causal", ""])
def test_other_words_are_no_tiers(word: str) -> None:
    """T27: `replicated-advisory` is a property of a set and never a tier."""
    with pytest.raises(TrialError) as caught:
        declared(tier=word)
    assert caught.value.code is TrialCode.BAD_RECORD


def test_advisory_exists_only_while_the_gates_declare_it() -> None:
    """T28: gates without the declaration refuse every advisory request; causal ones go on."""
    without = gates(requested_tier="causal", waived_items=[])
    refused(TrialCode.REGISTRY_MISMATCH, check_in_force, ADVISORY, without)
    refused(TrialCode.REGISTRY_MISMATCH, waivers, ADVISORY, without, declared())
    check_in_force(CAUSAL, without)
    check_in_force(ADVISORY, gates())


def test_gates_that_waive_less_allow_less() -> None:
    assert waivers(ADVISORY, gates(waived_items=["mount_evidence"])) == {"mount_evidence"}
    narrow = gates(waived_items=["mount_evidence"])
    assert waivers(ADVISORY, narrow, declared("complete_access_audit")) == frozenset()


def test_a_completion_without_its_limitations_does_not_load() -> None:
    """T25: the record of isolation needs them, and takes no other list of names."""
    field = TrialDocument.model_fields["completion_isolation"].annotation
    record = next(kind for kind in typing.get_args(field) if kind is not type(None))
    assert record.model_fields["coverage_limitations"].is_required()
    with pytest.raises(DocumentError):
        validate(record, {"coverage_limitations": ["something_else"]})


# Kinds of verdicts.


def modules() -> list[Any]:
    package = skill_effectiveness.trials
    names = [found.name for found in pkgutil.iter_modules(package.__path__)]
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


def hints(function: Json) -> dict[str, Any]:
    """Annotations as they are written: names are enough to tell one kind from the other."""
    return {name: str(kind) for name, kind in inspect.get_annotations(function).items()}


def functions() -> list[tuple[str, Any]]:
    found = []
    for module in modules():
        for name, value in vars(module).items():
            if inspect.isfunction(value) and value.__module__ == module.__name__:
                found.append((f"{module.__name__}.{name}", value))
            elif inspect.isclass(value) and value.__module__ == module.__name__:
                found += [
                    (f"{module.__name__}.{name}.{inner}", method)
                    for inner, method in vars(value).items()
                    if inspect.isfunction(method)
                ]
    return found


def test_no_function_makes_a_causal_verdict_of_an_advisory_one() -> None:
    """T26: two types with nothing in common; nothing that is given one answers the other."""
    assert not issubclass(AdvisoryVerdict, CausalVerdict)
    assert not issubclass(CausalVerdict, AdvisoryVerdict)
    assert AdvisoryVerdict.__mro__[1:] == CausalVerdict.__mro__[1:] == (object,)
    for name, function in functions():
        told = hints(function)
        answer = told.pop("return", "")
        if "CausalVerdict" in answer:
            assert not any("AdvisoryVerdict" in given for given in told.values()), name


def test_a_verdict_keeps_its_tier() -> None:
    """T26: the tier of a verdict cannot be set, nor exchanged by copying into the other kind."""
    verdict = AdvisoryVerdict(True, ())  # noqa: FBT003 - the first field
    with pytest.raises(dataclasses.FrozenInstanceError):
        verdict.tier = CAUSAL  # type: ignore[misc,assignment]
    kinds = typing.get_type_hints(AdvisoryVerdict), typing.get_type_hints(CausalVerdict)
    assert typing.get_args(kinds[0]["tier"]) == (ADVISORY,)
    assert typing.get_args(kinds[1]["tier"]) == (CAUSAL,)
    assert not dataclasses.fields(AdvisoryVerdict)[2].init
    assert not dataclasses.fields(CausalVerdict)[1].init
