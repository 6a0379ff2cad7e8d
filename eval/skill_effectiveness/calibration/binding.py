"""What an examination is bound to, and how a difference is named (calibration.md, sections 4 and 7)."""

from __future__ import annotations

from skill_effectiveness.calibration.models import Binding
from skill_effectiveness.evidence.canonical import digest_object

SIMULATED = "simulated"
"""The provider whose every record is synthetic; no other is."""


def sample_runner_contract(provider: str) -> str:
    """The contract under which one sample of a provider is taken."""
    return f"{provider}-cli-reviewer-calibration-single-sample-v1"


def repeats_runner_contract(provider: str) -> str:
    """The contract under which the pair of a multi-repeat examination is published."""
    return f"{provider}-cli-reviewer-calibration-v1"


def runner_hash(runner_contract: str, runtime_manifest_hash: str, provider_executable_hash: str) -> str:
    """What ran: the contract, our code and the provider's executable (calibration.md, section 4)."""
    return digest_object(
        {
            "runner_contract": runner_contract,
            "runtime_manifest_hash": runtime_manifest_hash,
            "provider_executable_hash": provider_executable_hash,
        }
    )


def differing_field(held: Binding, given: Binding) -> str | None:
    """The first field in which two bindings differ, a simulation's settings by name; None when equal."""
    for name in Binding.model_fields:
        before, now = getattr(held, name), getattr(given, name)
        if before == now:
            continue
        if name == "simulation" and before is not None and now is not None:
            inner = next(
                setting
                for setting in type(before).model_fields
                if getattr(before, setting) != getattr(now, setting)
            )
            return f"simulation.{inner}"
        return name
    return None
