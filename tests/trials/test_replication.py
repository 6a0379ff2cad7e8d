"""Several machines and one kind of verdict: a property of the set, and never a verdict."""

from __future__ import annotations

import inspect
import itertools
import json
import re
import typing
from typing import Any

import pytest
from pydantic import ValidationError

from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import DocumentError, EvidenceError
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.protocol.gates import EvidenceTier, EvidenceTierName
from skill_effectiveness.protocol.registries import RegistrySchema
from skill_effectiveness.trials import replication, summary
from skill_effectiveness.trials.replication import (
    Given,
    ReplicatedAdvisoryReport,
    ReplicationFailure,
    Unloadable,
    establish,
    read_summary,
)
from skill_effectiveness.trials.summary import parse_summary
from tests.support.summaries import MACHINE, OTHER_MACHINE, digest, of_machine

FIRST, SECOND = of_machine(MACHINE), of_machine(OTHER_MACHINE)

ALONE: dict[ReplicationFailure, tuple[Given, ...]] = {
    ReplicationFailure.TOO_FEW: (FIRST,),
    ReplicationFailure.UNLOADABLE: (FIRST, SECOND, Unloadable("It is no summary.")),
    ReplicationFailure.NOT_ADVISORY_PAIRED: tuple(
        of_machine(
            machine,
            verdict_tier=EvidenceTierName.CAUSAL,
            registry_schema=RegistrySchema.SKILL_CONTENT,
            coverage_limitations=(),
        )
        for machine in (MACHINE, OTHER_MACHINE)
    ),
    ReplicationFailure.NOT_PASSED: (FIRST, of_machine(OTHER_MACHINE, status="fail", verdict_tier=None)),
    ReplicationFailure.SYNTHETIC: (FIRST, of_machine(OTHER_MACHINE, synthetic=True, verdict_tier=None)),
    ReplicationFailure.CONFIG_DIFFERS: (FIRST, of_machine(OTHER_MACHINE, config_hash=digest("1"))),
    ReplicationFailure.ARM_REGISTRY_DIFFERS: (
        FIRST,
        of_machine(OTHER_MACHINE, arm_registry_hash=digest("1")),
    ),
    ReplicationFailure.TASKS_DIFFER: (FIRST, of_machine(OTHER_MACHINE, tasks_hash=digest("1"))),
    ReplicationFailure.PROVIDER_DIFFERS: (FIRST, of_machine(OTHER_MACHINE, provider="other")),
    ReplicationFailure.MODEL_DIFFERS: (FIRST, of_machine(OTHER_MACHINE, model="model-2")),
    ReplicationFailure.BUNDLE_TWICE: (FIRST, of_machine(OTHER_MACHINE, bundle_hash=FIRST.bundle_hash)),
    ReplicationFailure.MACHINE_UNKNOWN: (FIRST, of_machine(None, bundle_hash=digest("5"))),
    ReplicationFailure.MACHINE_TWICE: (FIRST, of_machine(MACHINE, bundle_hash=digest("5"))),
}


class TestEstablish:
    def test_two_machines(self) -> None:
        """T61: everything holds."""
        report = establish([FIRST, SECOND])
        assert (report.established, report.failures) == (True, ())
        assert sorted(report.summary_hashes) == sorted([FIRST.summary_hash, SECOND.summary_hash])

    def test_order_plays_no_part(self) -> None:
        """T61: a set has none."""
        three = [FIRST, SECOND, of_machine("a" * 32)]
        reports = {to_text(establish(order)) for order in itertools.permutations(three)}
        assert len(reports) == 1

    @pytest.mark.parametrize("failure", ReplicationFailure)
    def test_each_condition_alone(self, failure: ReplicationFailure) -> None:
        """T61: one broken condition is enough, and is the only one named."""
        report = establish(ALONE[failure])
        assert (report.established, report.failures) == (False, (failure,))

    @pytest.mark.parametrize(
        "failure", [failure for failure in ReplicationFailure if failure is not ReplicationFailure.TOO_FEW]
    )
    def test_many_good_ones_outvote_nothing(self, failure: ReplicationFailure) -> None:
        """T61: every summary of the set counts."""
        more = [of_machine(letter * 32) for letter in "abcde"]
        report = establish([*more, *ALONE[failure]])
        assert not report.established
        assert failure in report.failures

    def test_none(self) -> None:
        """T61: of nothing nothing holds."""
        assert establish([]).failures == (ReplicationFailure.TOO_FEW,)

    def test_one_summary_twice(self) -> None:
        """T61: a copy is no second machine."""
        assert establish([FIRST, FIRST]).failures == (
            ReplicationFailure.BUNDLE_TWICE,
            ReplicationFailure.MACHINE_TWICE,
        )

    def test_limitations_are_a_union_verbatim(self) -> None:
        """T61: of all that loaded, also when the property fails."""
        other = of_machine(
            OTHER_MACHINE, coverage_limitations=("complete_access_audit", "mount_evidence"), model="m"
        )
        assert to_json(establish([FIRST, other]))["coverage_limitations"] == [
            "access_root_enforcement",
            "complete_access_audit",
            "mount_evidence",
        ]

    @pytest.mark.parametrize(
        "update",
        [
            {"verdict_tier": EvidenceTierName.CAUSAL},
            {"coverage_limitations": ()},
            {"machine_hash": digest("4")},
            {"synthetic": True},
        ],
    )
    def test_a_summary_changed_in_memory(self, update: dict[str, object]) -> None:
        """T26 T61: the hash is over what was summarised, so a changed copy is none."""
        changed = SECOND.model_copy(update=update)
        assert establish([FIRST, changed]).failures == (ReplicationFailure.UNLOADABLE,)


def to_text(report: ReplicatedAdvisoryReport) -> str:
    return json.dumps(to_json(report), sort_keys=True)


class TestReport:
    def test_fields(self) -> None:
        """T61: no status, tier, effect or mean."""
        assert to_json(establish([FIRST, SECOND])) == {
            "schema_version": 1,
            "artifact_contract": "skill-effectiveness-replicated-advisory-report-v1",
            "property": "replicated-advisory",
            "established": True,
            "failures": [],
            "summary_hashes": sorted([FIRST.summary_hash, SECOND.summary_hash]),
            "coverage_limitations": ["access_root_enforcement", "mount_evidence"],
            "boundary": "property-of-a-set-never-a-verdict",
            "machine_boundary": "declared-not-proven",
        }

    def test_loads_as_no_summary(self) -> None:
        """T61: nor does a summary load as a report."""
        report = to_json(establish([FIRST, SECOND]))
        with pytest.raises(DocumentError):
            parse_summary(json.dumps(report).encode())
        assert isinstance(read_summary(json.dumps(report).encode()), Unloadable)
        with pytest.raises(DocumentError):
            validate(ReplicatedAdvisoryReport, to_json(FIRST))

    @pytest.mark.parametrize("failure", ["too_few", "synthetic"])
    def test_cannot_contradict_itself(self, failure: str) -> None:
        """T61: established and a failure, or neither, or of one summary."""
        good: dict[str, Any] = to_json(establish([FIRST, SECOND]))
        for changes in (
            {"failures": [failure]},
            {"established": False},
            {"summary_hashes": [FIRST.summary_hash]},
            {"summary_hashes": [FIRST.summary_hash] * 2},
            {"boundary": "verdict"},
            {"verdict_tier": "advisory-paired"},
            {"coverage_limitations": None},
        ):
            with pytest.raises(DocumentError):
                validate(ReplicatedAdvisoryReport, good | changes)


class TestNeverATier:
    def test_is_refused_as_a_requested_tier(self) -> None:
        """T27: the property is no tier that could be asked for."""
        declared = {"schema_version": 1, "requested_tier": "replicated-advisory", "waived_items": []}
        with pytest.raises(EvidenceError):
            validate(EvidenceTier, declared)
        assert "replicated-advisory" not in [tier.value for tier in EvidenceTierName]

    def test_no_tier_can_be_written_over_another(self) -> None:
        """T26: summaries and reports are frozen."""
        with pytest.raises(ValidationError):
            FIRST.verdict_tier = EvidenceTierName.CAUSAL  # type: ignore[misc]
        with pytest.raises(ValidationError):
            establish([FIRST, SECOND]).property = "causal"  # type: ignore[assignment,misc]

    @pytest.mark.parametrize("module", [summary, replication])
    def test_no_function_makes_a_verdict_of_summaries(self, module: Any) -> None:  # noqa: ANN401 - a module
        """T26: by its types none takes a summary or report and answers one, or a tier."""
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ != module.__name__:
                continue
            hints = {hint: str(kind) for hint, kind in inspect.get_annotations(function).items()}
            answered = hints.pop("return")
            taken = " ".join(hints.values())
            # Reading a summary once more is no way from one to another.
            if name != "_loaded_again" and re.search("Summary|Given|Report", taken):
                assert not re.search("TierName|TerminalVerdictSummary", answered), name

    def test_the_report_holds_no_tier(self) -> None:
        """T26: no field of a report is a tier, a status or a number."""
        kinds = typing.get_type_hints(ReplicatedAdvisoryReport)
        assert not {"status", "verdict_tier", "effect", "mean"} & set(kinds)
        assert EvidenceTierName not in kinds.values()
