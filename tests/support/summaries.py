"""Terminal verdict summaries of one machine after another."""

from __future__ import annotations

from dataclasses import replace

from skill_effectiveness.protocol.gates import EvidenceTierName
from skill_effectiveness.protocol.registries import RegistrySchema
from skill_effectiveness.trials.summary import TerminalVerdictSummary, VerdictFacts, summarise

MACHINE = "0123456789abcdef0123456789abcdef"
OTHER_MACHINE = "f" * 32


def digest(letter: str) -> str:
    """A digest that nothing has."""
    return "sha256:" + letter * 64


FACTS = VerdictFacts(
    verdict={"status": "pass", "metrics": {"trials": 12}},
    status="pass",
    verdict_tier=EvidenceTierName.ADVISORY_PAIRED,
    registry_schema=RegistrySchema.PAIRED_PROFILE,
    coverage_limitations=("access_root_enforcement", "mount_evidence"),
    bundle_hash=digest("b"),
    config_hash=digest("c"),
    arm_registry_hash=digest("a"),
    tasks_hash=digest("7"),
    provider="codex",
    model="model-1",
    trial_count=12,
    synthetic=False,
)


def of_machine(machine: str | None = MACHINE, **changes: object) -> TerminalVerdictSummary:
    """The summary of one machine; its bundle is its own unless said otherwise."""
    own = {"bundle_hash": digest((machine or "0")[0])}
    return summarise(replace(FACTS, **(own | changes)), machine)  # type: ignore[arg-type]
