"""What is passed on of a pilot gate's verdict, so that several machines can be compared.

Source: trials.md section 9, "Terminal verdict summary". A summary exists only in a state that a verdict can
have: a pass has the tier of its registry, everything else has none, and a synthetic run never has one. It
carries the verdict's limitations as they stood; a document without them, or whose hash is not over them, does
not load.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.documents import RuleBroken, parse, validate
from skill_effectiveness.evidence.strict import Profile
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One, to_json
from skill_effectiveness.protocol.gates import EvidenceTierName, WaivableItem
from skill_effectiveness.protocol.registries import RULES, RegistrySchema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.evidence.strict import JsonValue

SUMMARY_CONTRACT: Final = "skill-effectiveness-terminal-verdict-summary-v1"
SUMMARY_HASH: Final = "summary_hash"

TerminalStatus = Literal["pass", "fail"]
Limitations = Annotated[tuple[WaivableItem, ...], Field(max_length=len(WaivableItem))]
Name = Annotated[str, Field(min_length=1, max_length=256)]


class TerminalVerdictSummary(FrozenModel):
    """One verdict of one machine.

    Attributes:
        verdict_hash: `H` of the whole gate result.
        verdict_tier: of a pass; null otherwise.
        coverage_limitations: verbatim, sorted.
        machine_hash: declared by the machine, not proven; null where it has no id.
        summary_hash: `H` of the rest.
    """

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-terminal-verdict-summary-v1"]
    verdict_hash: DigestText
    bundle_hash: DigestText
    status: TerminalStatus
    verdict_tier: EvidenceTierName | None
    registry_schema: RegistrySchema
    coverage_limitations: Limitations
    config_hash: DigestText
    arm_registry_hash: DigestText
    tasks_hash: DigestText
    provider: Name
    model: Name
    trial_count: Annotated[int, Field(ge=0)]
    machine_hash: DigestText | None
    synthetic: bool
    summary_hash: DigestText

    @model_validator(mode="after")
    def _is_a_verdict_as_it_stood(self) -> Self:
        items = [str(item) for item in self.coverage_limitations]
        if items != sorted(set(items)):
            raise RuleBroken("Limitations are sorted and named once; take the verdict's own list.")
        if self.verdict_tier is not self._tier_of_this_state():
            raise RuleBroken("Only a pass that is not synthetic has a tier, that of its registry.")
        if self.status == "pass" and not self.trial_count:
            raise RuleBroken("Nothing passes without a trial.")
        if self.verdict_tier is EvidenceTierName.CAUSAL and items:
            raise RuleBroken("A causal verdict has no limitation.")
        body = to_json(self)
        if digest_object({name: value for name, value in body.items() if name != SUMMARY_HASH}) != (
            self.summary_hash
        ):
            raise RuleBroken("summary_hash is not over this summary; it was edited, so take the original.")
        return self

    def _tier_of_this_state(self) -> EvidenceTierName | None:
        passed = self.status == "pass" and not self.synthetic
        return RULES[self.registry_schema].tier if passed else None


@dataclass(frozen=True, slots=True)
class VerdictFacts:
    """What the gate that came to a verdict knows of it, and what it was about.

    Attributes:
        verdict: the whole gate result.
        status: `pass` or `fail`; nothing else is terminal.
        verdict_tier: the result's own, None unless it passed.
        registry_schema: of its arms.
        coverage_limitations: the result's own list.
        bundle_hash: of the evidence.
        config_hash: of the gates.
        arm_registry_hash: of the arms.
        tasks_hash: of the tasks.
        provider: of the agent.
        model: exact id.
        trial_count: trials evaluated, at least 1 for a pass.
        synthetic: whether agent or reviewers were simulated.
    """

    verdict: Mapping[str, JsonValue]
    status: TerminalStatus
    verdict_tier: EvidenceTierName | None
    registry_schema: RegistrySchema
    coverage_limitations: tuple[str, ...]
    bundle_hash: str
    config_hash: str
    arm_registry_hash: str
    tasks_hash: str
    provider: str
    model: str
    trial_count: int
    synthetic: bool


def summarise(facts: VerdictFacts, machine_id: str | None) -> TerminalVerdictSummary:
    """The summary of a verdict.

    Args:
        facts: of the gate.
        machine_id: the operating system's, handed in by a door; None where there is none.

    Raises:
        DocumentError: the facts are not those of a terminal verdict.
    """
    body: dict[str, JsonValue] = {
        "schema_version": 1,
        "artifact_contract": SUMMARY_CONTRACT,
        "verdict_hash": digest_object(dict(facts.verdict)),
        "bundle_hash": facts.bundle_hash,
        "status": str(facts.status),
        "verdict_tier": None if facts.verdict_tier is None else str(facts.verdict_tier),
        "registry_schema": str(facts.registry_schema),
        "coverage_limitations": [str(item) for item in facts.coverage_limitations],
        "config_hash": facts.config_hash,
        "arm_registry_hash": facts.arm_registry_hash,
        "tasks_hash": facts.tasks_hash,
        "provider": facts.provider,
        "model": facts.model,
        "trial_count": facts.trial_count,
        "machine_hash": machine_hash(machine_id),
        "synthetic": facts.synthetic,
    }
    return validate(TerminalVerdictSummary, body | {SUMMARY_HASH: digest_object(body)})


def parse_summary(data: bytes) -> TerminalVerdictSummary:
    """A summary out of its file.

    Raises:
        StrictError: it is not JSON as this program reads it.
        DocumentError: it is no summary: a field is missing (limitations too), edited or contradicts another.
    """
    return parse(TerminalVerdictSummary, data, Profile.DOCUMENT)


def machine_hash(machine_id: str | None) -> str | None:
    """`H({artifact_contract, machine_id})` with the contract of the summary; None without an id.

    The id itself is confidential (machine-id(5)), so no document holds it.
    """
    if machine_id is None:
        return None
    return digest_object({"artifact_contract": SUMMARY_CONTRACT, "machine_id": machine_id})
