"""Whether several machines came to the same kind of verdict: `replicated-advisory`.

Source: trials.md sections 6 and 9. It is a property of a set of terminal verdict summaries and nothing a
verdict could be: the report has no status, tier, effect or mean, so it can be taken for neither.

| failure | when |
|---|---|
| `too_few` | fewer than two summaries are given |
| `unloadable` | one is no summary: limitations missing, edited, or anything else wrong |
| `not_advisory_paired` | one has another tier |
| `not_passed` | one did not pass |
| `synthetic` | one is of a simulated run |
| `config_differs`, `arm_registry_differs`, `tasks_differ` | not equal over all |
| `provider_differs`, `model_differs` | not equal over all |
| `bundle_twice` | one bundle is behind two of them |
| `machine_unknown` | one machine has no id |
| `machine_twice` | two come from one machine |
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from skill_effectiveness.evidence.documents import RuleBroken, validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One, to_json
from skill_effectiveness.protocol.gates import EvidenceTierName, WaivableItem
from skill_effectiveness.trials.summary import TerminalVerdictSummary, parse_summary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

REPORT_CONTRACT: Final = "skill-effectiveness-replicated-advisory-report-v1"
PROPERTY: Final = "replicated-advisory"
LEAST: Final = 2


class ReplicationFailure(StrEnum):
    """Why the property is not established; see the table above."""

    TOO_FEW = "too_few"
    UNLOADABLE = "unloadable"
    NOT_ADVISORY_PAIRED = "not_advisory_paired"
    NOT_PASSED = "not_passed"
    SYNTHETIC = "synthetic"
    CONFIG_DIFFERS = "config_differs"
    ARM_REGISTRY_DIFFERS = "arm_registry_differs"
    TASKS_DIFFER = "tasks_differ"
    PROVIDER_DIFFERS = "provider_differs"
    MODEL_DIFFERS = "model_differs"
    BUNDLE_TWICE = "bundle_twice"
    MACHINE_UNKNOWN = "machine_unknown"
    MACHINE_TWICE = "machine_twice"


@dataclass(frozen=True, slots=True)
class Unloadable:
    """A document that is no summary.

    Attributes:
        sentence: why, for people.
    """

    sentence: str


Given = TerminalVerdictSummary | Unloadable


class ReplicatedAdvisoryReport(FrozenModel):
    """Whether the property holds of a set, and why not.

    Attributes:
        failures: each once, sorted; empty exactly when established.
        summary_hashes: of the summaries that loaded, sorted.
        coverage_limitations: every limitation of every summary, verbatim, sorted.
    """

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-replicated-advisory-report-v1"]
    property: Literal["replicated-advisory"]
    established: bool
    failures: tuple[ReplicationFailure, ...]
    summary_hashes: tuple[DigestText, ...]
    coverage_limitations: Annotated[tuple[WaivableItem, ...], Field(max_length=len(WaivableItem))]
    boundary: Literal["property-of-a-set-never-a-verdict"]
    machine_boundary: Literal["declared-not-proven"]

    @model_validator(mode="after")
    def _is_established_without_failures_only(self) -> Self:
        if self.established is bool(self.failures):
            raise RuleBroken("The property is established exactly when nothing failed.")
        if self.established and len(set(self.summary_hashes)) < LEAST:
            raise RuleBroken("The property needs at least two summaries.")
        return self


def read_summary(data: bytes) -> Given:
    """A summary out of its file, or what is said of a file that holds none."""
    try:
        return parse_summary(data)
    except EvidenceError as error:
        return Unloadable(error.faults[0].sentence)


def establish(summaries: Sequence[Given]) -> ReplicatedAdvisoryReport:
    """Judge a set of summaries; the order plays no part.

    Nothing is averaged and no summary is changed: one that does not hold what it must fails the whole set.
    """
    loaded = [held for held in map(_loaded_again, summaries) if held is not None]
    failures = set(_failures_of_each(loaded)) | set(_failures_between(loaded))
    if len(summaries) < LEAST:
        failures.add(ReplicationFailure.TOO_FEW)
    if len(loaded) < len(summaries):
        failures.add(ReplicationFailure.UNLOADABLE)
    return ReplicatedAdvisoryReport(
        schema_version=1,
        artifact_contract=REPORT_CONTRACT,
        property=PROPERTY,
        established=not failures,
        failures=tuple(sorted(failures)),
        summary_hashes=tuple(sorted(summary.summary_hash for summary in loaded)),
        coverage_limitations=tuple(
            sorted({item for summary in loaded for item in summary.coverage_limitations})
        ),
        boundary="property-of-a-set-never-a-verdict",
        machine_boundary="declared-not-proven",
    )


def _loaded_again(given: Given) -> TerminalVerdictSummary | None:
    """The summary as its document says it, so that one changed in memory does not count."""
    if isinstance(given, Unloadable):
        return None
    try:
        return validate(TerminalVerdictSummary, to_json(given))
    except EvidenceError:
        return None


def _failures_of_each(summaries: Sequence[TerminalVerdictSummary]) -> Iterator[ReplicationFailure]:
    for summary in summaries:
        if summary.status != "pass":
            yield ReplicationFailure.NOT_PASSED
        if summary.synthetic:
            yield ReplicationFailure.SYNTHETIC
        if summary.verdict_tier not in {None, EvidenceTierName.ADVISORY_PAIRED}:
            yield ReplicationFailure.NOT_ADVISORY_PAIRED
        if summary.machine_hash is None:
            yield ReplicationFailure.MACHINE_UNKNOWN


_EQUAL_OVER_ALL: Final[tuple[tuple[ReplicationFailure, Callable[[TerminalVerdictSummary], str]], ...]] = (
    (ReplicationFailure.CONFIG_DIFFERS, lambda summary: summary.config_hash),
    (ReplicationFailure.ARM_REGISTRY_DIFFERS, lambda summary: summary.arm_registry_hash),
    (ReplicationFailure.TASKS_DIFFER, lambda summary: summary.tasks_hash),
    (ReplicationFailure.PROVIDER_DIFFERS, lambda summary: summary.provider),
    (ReplicationFailure.MODEL_DIFFERS, lambda summary: summary.model),
)


def _failures_between(summaries: Sequence[TerminalVerdictSummary]) -> Iterator[ReplicationFailure]:
    for failure, held in _EQUAL_OVER_ALL:
        if len(set(map(held, summaries))) > 1:
            yield failure
    if _twice(summary.bundle_hash for summary in summaries):
        yield ReplicationFailure.BUNDLE_TWICE
    if _twice(summary.machine_hash for summary in summaries if summary.machine_hash is not None):
        yield ReplicationFailure.MACHINE_TWICE


def _twice(values: Iterator[str]) -> bool:
    return any(times > 1 for times in Counter(values).values())
