"""The doors: what each binds and loads, and its words for turning a request away before it can judge it.

Source: calibration.md section 3; bridge.md sections 1 and 6.

The words are those of the door's own contract. They stand here once more, because they are needed exactly
when the room that owns them must not be loaded; tests hold the two against each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.launch.bridge_distributions import bound_by_bridge
from skill_effectiveness.launch.bridge_request import RESPONSE_SCHEMA
from skill_effectiveness.launch.faults import (
    DriftError,
    ManifestError,
    UndeliverableError,
    UnforeseenError,
    UnloadableError,
)
from skill_effectiveness.launch.manifest import calibration_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skill_effectiveness.launch.faults import LaunchError

UNVALIDATED_REQUEST: Final = "redacted-invalid-request-id"
"""The request id of an answer to a request that was not read."""


@dataclass(frozen=True, slots=True)
class Words:
    """How a door answers one kind of failure."""

    status: str
    reason_code: str
    exit_code: int


@dataclass(frozen=True, slots=True)
class Door:
    """One door.

    Attributes:
        module: the module whose `main` takes over.
        schema: the schema id of its answers.
        manifest: computes what it binds; raises ManifestError.
        words: its answer to every failure of this room.
        besides: further members of such an answer.
    """

    module: str
    schema: str
    manifest: Callable[[], dict[str, object]]
    words: Mapping[type[LaunchError], Words]
    besides: tuple[tuple[str, object], ...] = ()


_INTERNAL: Final = Words("error", "internal_error", 4)
_UNKNOWN: Final = Words("error", "unknown_finality", 4)

DOORS: Final[Mapping[str, Door]] = {
    "calibration": Door(
        module="skill_effectiveness.calibration.door",
        schema="skill-effectiveness.reviewer-calibration.response.v1",
        manifest=calibration_manifest,
        words={
            ManifestError: Words("error", "runtime_manifest_unavailable", 4),
            DriftError: Words("blocked", "runtime_drift", 3),
            UnloadableError: _INTERNAL,
            UndeliverableError: _INTERNAL,
            UnforeseenError: _INTERNAL,
        },
    ),
    "bridge": Door(
        module="skill_effectiveness.bridge.door",
        schema=RESPONSE_SCHEMA,
        manifest=bound_by_bridge,
        words={
            ManifestError: Words("blocked", "unsupported_evaluator", 3),
            DriftError: Words("blocked", "unsupported_evaluator", 3),
            UnloadableError: Words("error", "unsupported_evaluator", 4),
            UndeliverableError: _UNKNOWN,
            UnforeseenError: _UNKNOWN,
        },
        besides=(("runtime_binding", {}), ("result", {})),
    ),
}
