"""What every payload has to look like before anything is opened: members, types, forms.

Source: bridge.md, sections 4 and 6.

Everything refused here is `protocol_mismatch`. The two declarations of a completion are of no type here: one
that is there and no boolean is judged with the meaning of the payload.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.bridge.envelope import mismatch
from skill_effectiveness.bridge.words import Action, BridgeError, ReasonCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skill_effectiveness.bridge.envelope import Envelope
    from skill_effectiveness.bridge.shapes import Shapes

DECLARATIONS: Final = ("access_audit_complete", "access_roots_enforced")
STATUSES: Final = ("running", "interim-budget-stop", "completed", "contaminated", "failed")
COMPLETED: Final = "completed"
REFERABLE: Final = ("config", "expected_tasks", "expected_manifests", "expected_trials")
"""Members of an evaluation that may be given as a file."""
PATH: Final = "_path"
DIGEST: Final = "_sha256"

_NEEDED: Final = {
    Action.PROBE: frozenset({"phase"}),
    Action.PREPARE: frozenset({"registry_schema", "task", "manifest", "runtime", "budget", "sample_index"}),
    Action.CHECKPOINT: frozenset({"trial_path", "status"}),
    Action.EVALUATE: frozenset({"registry_schema", "evidence_path"}),
}
_OPTIONAL: Final = {
    Action.PROBE: frozenset({"pinned_manifest"}),
    Action.PREPARE: frozenset(
        {
            "expected_isolation_evidence",
            "expected_read_allow_roots",
            "expected_write_allow_roots",
            "registry_plan_path",
        }
    ),
    Action.CHECKPOINT: frozenset(
        {
            *DECLARATIONS,
            "resume_cursor",
            "stop_reason",
            "isolation_evidence",
            "read_allow_roots",
            "write_allow_roots",
            "expected_state_version",
        }
    ),
    Action.EVALUATE: frozenset(f"{name}{end}" for name in REFERABLE for end in ("", PATH, DIGEST)),
}
MEMBERS: Final = frozenset().union(*_NEEDED.values(), *_OPTIONAL.values())
"""The name of every member of a payload."""
_DEFINITIONS: Final = {
    Action.PROBE: "ProbePayload",
    Action.PREPARE: "PreparePayload",
    Action.CHECKPOINT: "CheckpointPayload",
    Action.EVALUATE: "EvaluatePayload",
}
_DIGEST_FORM: Final = re.compile(r"sha256:[0-9a-f]{64}")


def check_payload(envelope: Envelope, shapes: Callable[[], Shapes], fits: Callable[[object], bool]) -> None:
    """Demand the members and types of the action.

    Args:
        envelope: whose payload it is.
        shapes: gives the types of every payload.
        fits: whether a pin is the very manifest of this installation, which then has the right types.

    Raises:
        BridgeError: `protocol_mismatch`.
    """
    action, payload = envelope.action, envelope.payload
    needed = _NEEDED[action]
    if not needed <= payload.keys() <= needed | _OPTIONAL[action]:
        raise mismatch("payload fields")
    if payload.get("phase") == "full" and fits(payload.get("pinned_manifest")):
        return
    place = shapes().misfit(_DEFINITIONS[action], dict(payload), besides=DECLARATIONS)
    if place is not None:
        raise mismatch(f"type of payload{place}")
    _CHECKS[action](payload)


def _check_probe(payload: Mapping[str, Any]) -> None:
    if payload["phase"] not in ("manifest", "full"):
        raise mismatch("phase")
    if (payload["phase"] == "full") != ("pinned_manifest" in payload):
        raise mismatch("pinned_manifest belongs to phase full, and to no other")


def _check_prepare(_payload: Mapping[str, Any]) -> None:
    """Nothing besides members and types."""


def _check_checkpoint(payload: Mapping[str, Any]) -> None:
    if payload["status"] not in STATUSES:
        raise mismatch("status")
    if payload["status"] == COMPLETED and not payload.keys() >= set(DECLARATIONS):
        raise mismatch("a completion makes both declarations")
    version = payload.get("expected_state_version")
    if version is not None and version < 0:
        raise mismatch("expected_state_version")


def _check_evaluate(payload: Mapping[str, Any]) -> None:
    for name in REFERABLE:
        given = {end for end in ("", PATH, DIGEST) if f"{name}{end}" in payload}
        if given not in ({""}, {PATH, DIGEST}):
            raise mismatch(f"{name} is given inline or by path and digest")
        if DIGEST in given and not _DIGEST_FORM.fullmatch(payload[f"{name}{DIGEST}"]):
            raise mismatch(f"{name}{DIGEST}")


_CHECKS: Final = {
    Action.PROBE: _check_probe,
    Action.PREPARE: _check_prepare,
    Action.CHECKPOINT: _check_checkpoint,
    Action.EVALUATE: _check_evaluate,
}


def relative(path: str) -> tuple[str, ...]:
    """The segments of a relative path.

    Raises:
        BridgeError: `evidence_invalid`: a segment is empty, `.` or `..`, or the path is absolute.
    """
    segments = tuple(path.split("/"))
    if any(segment in {"", ".", ".."} or "\0" in segment for segment in segments):
        raise BridgeError(ReasonCode.EVIDENCE_INVALID, "a path is relative to the artifact root")
    return segments


def check_declarations(payload: Mapping[str, Any]) -> None:
    """Demand that a declaration that is there is a boolean.

    Raises:
        BridgeError: `evidence_invalid`.
    """
    for name in DECLARATIONS:
        if name in payload and not isinstance(payload[name], bool):
            raise BridgeError(ReasonCode.EVIDENCE_INVALID, f"{name} is true or false")
