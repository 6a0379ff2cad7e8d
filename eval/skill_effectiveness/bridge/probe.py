"""What an installation is and can do, told under a pinned manifest (bridge.md, section 3).

No model and no module of `trials` is loaded for it. The closed words of the configuration are those of the
published response schema, which is generated from the models and pinned like all code.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.bridge.words import Action, BridgeError, ReasonCode
from skill_effectiveness.evidence.canonical import digest_bytes, digest_object
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import RealFs, read_public
from skill_effectiveness.launch.bridge_manifest import object_hash, plain_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

REQUEST_SCHEMA_FILE: Final = "schemas/bridge-request.schema.json"
RESPONSE_SCHEMA_FILE: Final = "schemas/bridge-response.schema.json"
GATES_FILE: Final = "fixtures/pilot-gates.json"
PROFILE_ARMS: Final = "arms/profile/"
LIMIT: Final = 4_194_304
"""Bytes of a frozen file at most."""
CONSTANT: Final[Mapping[str, object]] = {"b": [1, True, None, "é"], "a": {"": "\n\u2028", "z": -7}}
"""What the two ways to a digest are compared on."""


@dataclass(frozen=True, slots=True)
class Installation:
    """The code and data that run.

    Attributes:
        checkout: the folder of `bridge.py`.
        manifest: see `launch.bridge_manifest`.
        dependencies: `{name, version, record_sha256}` of each distribution.
    """

    checkout: Path
    manifest: Mapping[str, Any]
    dependencies: Sequence[Mapping[str, str]]

    def frozen(self, path: str) -> Any:  # noqa: ANN401 - JSON
        """A frozen JSON file, as it is bound.

        Raises:
            BridgeError: `unsupported_evaluator`: it cannot be read, or is not the bound one.
        """
        bound = next((row["sha256"] for row in self.manifest["entries"] if row["path"] == path), None)
        try:
            data = read_public(RealFs(), self.checkout / path, LIMIT)
            if digest_bytes(data) != bound:
                raise BridgeError(ReasonCode.UNSUPPORTED_EVALUATOR, "a frozen input changed")
        except EvidenceError as error:
            raise BridgeError(ReasonCode.UNSUPPORTED_EVALUATOR, error.code.value) from error
        # Not read strictly: these are our own bytes.
        return json.loads(data)


def configuration(installation: Installation) -> dict[str, Any]:
    """What the installation judges by, and with which distributions.

    Raises:
        BridgeError: `unsupported_evaluator`.
    """
    words = installation.frozen(RESPONSE_SCHEMA_FILE)["$defs"]
    tiers = words["CheckpointTiers"]["properties"]
    arms = [
        installation.frozen(row["path"])
        for row in installation.manifest["entries"]
        if row["path"].startswith(PROFILE_ARMS)
    ]
    return {
        # Frozen numbers are portable (evidence.md section 3), so either way gives the same digest.
        "pilot_gates_hash": object_hash(installation.frozen(GATES_FILE)),
        "profile_arm_templates": {arm["arm_id"]: object_hash(arm) for arm in arms},
        "registry_schemas": sorted(words["RegistrySchema"]["enum"]),
        "evidence_tiers": sorted(words["EvidenceTierName"]["enum"]),
        "advisory_waivable_items": sorted(words["WaivableItem"]["enum"]),
        "checkpoint_evidence_tiers": {name: tier["const"] for name, tier in tiers.items()},
        "profile_arm_registry_plan_contract": words["Configuration"]["properties"][
            "profile_arm_registry_plan_contract"
        ]["const"],
        "dependencies": [dict(row) for row in installation.dependencies],
    }


def is_pinned(pinned: object, installation: Installation) -> bool:
    """Whether a pin is the manifest of the files as they are, to the last byte of its canonical form.

    By bytes, because in Python true equals 1 and 1.0 does.
    """
    return plain_bytes(pinned) == plain_bytes(installation.manifest)


def check_pin(pinned: Mapping[str, Any], installation: Installation) -> None:
    """Demand that the installation is the pinned one, and that both ways to a digest agree.

    Raises:
        BridgeError: `unsupported_evaluator`.
    """
    if not is_pinned(pinned, installation):
        raise BridgeError(ReasonCode.UNSUPPORTED_EVALUATOR, "not what was pinned")
    if digest_object(CONSTANT) != object_hash(CONSTANT):
        raise BridgeError(ReasonCode.UNSUPPORTED_EVALUATOR, "two digests of one value")


def full_result(configured: Mapping[str, Any], loaded: Sequence[str]) -> dict[str, Any]:
    """What the second probe answers.

    Args:
        configured: see `configuration`.
        loaded: the sources that were executed.
    """
    return {
        "phase": "full",
        "supported_actions": [action.value for action in Action],
        "reason_codes": [code.value for code in ReasonCode],
        "configuration": dict(configured),
        "loaded_checkout_modules": sorted(loaded),
    }
