"""The bridge's room inside this process, on file operations of a test's choice."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skill_effectiveness.bridge.artifacts import Way, act
from skill_effectiveness.bridge.envelope import read_envelope, read_request
from skill_effectiveness.bridge.words import BridgeError
from skill_effectiveness.evidence.fsops import RealFs
from tests.support.private import surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skill_effectiveness.evidence.fsops import FileSystem

DIGEST = "sha256:" + "0" * 64
BINDING: dict[str, Any] = {
    "protocol_revision": "skill-effectiveness.bridge.v1",
    "phase": "full",
    "bridge_hash": DIGEST,
    "manifest_hash": DIGEST,
    "configuration_hash": DIGEST,
    "interpreter": {
        "configured_executable": "/usr/bin/python3",
        "resolved_executable": "/usr/bin/python3",
        "version": "3.11.0",
        "implementation": "cpython",
        "user_site_disabled": True,
    },
}
OTHER_BINDING = {**BINDING, "manifest_hash": "sha256:" + "1" * 64}


def nothing(*_given: object) -> None:
    """Agree to everything."""


@dataclass
class Room:
    """Carries requests out here; answers `ok` and the result, or the reason."""

    fs: FileSystem = field(default_factory=RealFs)
    binding: Mapping[str, Any] = field(default_factory=lambda: BINDING)
    lock_wait: float = 20.0
    still_bound: Callable[[], None] = nothing
    defer: Callable[[], None] = nothing
    cancelled: Callable[[], bool] = bool

    def ask(self, request: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """One request."""
        envelope = read_envelope(read_request(json.dumps(request).encode()))
        way = Way(
            around=surroundings(self.fs),
            checkout=None,
            state=None,
            binding=dict(self.binding),
            admit=nothing,
            still_bound=self.still_bound,
            defer=self.defer,
            cancelled=self.cancelled,
            lock_wait=self.lock_wait,
        )
        try:
            return "ok", act(envelope, way)
        except BridgeError as refusal:
            return refusal.code.value, {}
