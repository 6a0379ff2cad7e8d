"""Whole pilots below an artifact root, and the requests that evaluate them."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.trials.models import TrialKey
from tests.support.bridge import Bridge, changed
from tests.support.pilots import Ending, Pilot, probe_file
from tests.support.private import REPOSITORY
from tests.support.trials import CONTENT, PROFILE, put

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.protocol.registries import RegistrySchema
    from tests.support.bridge import Json

CAUSAL = {"schema_version": 1, "requested_tier": "causal", "waived_items": []}


def gates(registry: RegistrySchema) -> dict[str, Any]:
    """The frozen gates under the tier of a registry."""
    frozen: dict[str, Any] = json.loads((REPOSITORY / "fixtures" / "pilot-gates.json").read_bytes())
    return frozen | ({"evidence_tier": CAUSAL} if registry is CONTENT else {})


class Evaluation:
    """A pilot whose trials have ended and whose bundle lies in the root as `bundle`."""

    def __init__(
        self,
        folder: Path,
        registry: RegistrySchema = PROFILE,
        *,
        probes: bool = True,
        pairs: list[tuple[bytes, bytes]] | None = None,
        **endings: Ending,
    ) -> None:
        self.registry = registry
        self.pilot = Pilot(folder, registry)
        self.bridge = Bridge(folder)
        self.pilot.bundle = self.bridge.root / "bundle"
        self.pilot.config = gates(registry)
        self.pilot.run(**endings)
        files = [probe_file(family, "codex") for family in ("implementation", "review")]
        self.pilot.write(probes=files if probes else [], pairs=pairs)

    def plan(self, count: int) -> None:
        """Plan so many trials instead, samples of the same tasks and arms, and bind the bundle to that."""
        blocks = count // (len(self.pilot.tasks) * len(self.pilot.manifests))
        keys = [
            TrialKey(task, arm, sample)
            for sample in range(1, blocks + 1)
            for task in self.pilot.tasks
            for arm in self.pilot.manifests
        ]
        self.pilot.rows = self.pilot.rows_of(keys)
        shutil.rmtree(self.pilot.bundle)
        self.pilot.write(probes=[])

    @property
    def values(self) -> dict[str, Any]:
        """The four values, as a controller gives them."""
        expected = self.pilot.expected
        declared = {"registry_schema": self.registry.value}
        return {
            "config": self.pilot.config,
            "expected_tasks": list(expected.tasks),
            "expected_manifests": [{**declared, **dict(one)} for one in expected.manifests],  # type: ignore[arg-type] # objects
            "expected_trials": list(self.pilot.rows),
        }

    def request(self, request_id: str = "e-1", **changes: Json) -> dict[str, Any]:
        """With everything inline; `...` takes a member away."""
        payload = {"registry_schema": self.registry.value, "evidence_path": "bundle", **self.values}
        return self.bridge.request("evaluate", changed(payload, changes), request_id)

    def referenced(self, request_id: str = "e-1", **changes: Json) -> dict[str, Any]:
        """With everything in files of the root."""
        payload: dict[str, Any] = {"registry_schema": self.registry.value, "evidence_path": "bundle"}
        folder = self.bridge.root / "inputs"
        folder.mkdir(mode=0o700, exist_ok=True)
        for name, value in self.values.items():
            rows = name == "expected_trials"
            data = (
                b"".join(json.dumps(row).encode() + b"\n" for row in value)
                if rows
                else json.dumps(value, indent=1).encode()
            )
            put(folder / f"{name}.json", data)
            payload |= {f"{name}_path": f"inputs/{name}.json", f"{name}_sha256": digest_bytes(data)}
        return self.bridge.request("evaluate", changed(payload, changes), request_id)

    def verdict_file(self, request_id: str = "e-1") -> Path:
        """Where the whole verdict is written."""
        return self.bridge.root / "verdicts" / f"{request_id}.json"
