"""What the isolation of a study demands around a real agent, and what was observed of it.

Source: studies.md sections 1 and 3; trials.md section 5; field-failures.md F31, F32.

| a study says | what the call gets |
|---|---|
| `sandbox: bubblewrap` | the working copy at the task's `workdir`; nothing of the user's but the login |
| `audit: strace` | every access recorded; complete only in a sandbox, which keeps the log out of reach |
| `read_only` | these places too, to be read; without a sandbox they are only no breach |
| `network: provider` | the network, which an agent needs for its model |

An access outside the roots is an observed breach, whatever the attempt came to. What was asked for and
refused is kept beside it and is none.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.resolution import PathResolver, UnresolvedError, holds
from skill_effectiveness.providers.confinement import Confinement
from skill_effectiveness.studies.agent import Observed
from skill_effectiveness.studies.attempt_records import Refusal
from skill_effectiveness.studies.words import Audit, Sandbox
from skill_effectiveness.trials.models import AuditRow, IsolationEvidence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.providers.confinement import Observation, Touch
    from skill_effectiveness.studies.study_file import Isolation

ACTOR: Final = "tested-agent"


def confinement_of(
    isolation: Isolation, workdir: str, hidden: Iterable[Path] = (), *, traced: bool = True
) -> Confinement | None:
    """What has to be around a call; `None` where the study demands nothing.

    Args:
        isolation: of the study.
        workdir: where the working copy lies in a sandbox.
        hidden: what no agent may be shown.
        traced: whether this call belongs to what is audited.
    """
    place = workdir if isolation.sandbox is Sandbox.BUBBLEWRAP else None
    audited = traced and isolation.audit is Audit.STRACE
    if place is None and not audited:
        return None
    readable = tuple(map(Path, isolation.read_only))
    return Confinement(place=place, readable=readable, traced=audited, hidden=tuple(hidden))


def observed_of(observation: Observation | None, evidence: IsolationEvidence) -> Observed:
    """What was observed, as a trial takes it; an absent proof is absent."""
    if observation is None:
        return Observed(evidence=evidence)
    return Observed(
        evidence=evidence,
        audit=tuple(map(_row, observation.touched)),
        audit_complete=observation.complete,
        roots_enforced=observation.enforced,
        read_roots=observation.read_roots,
        write_roots=observation.write_roots,
        refused=tuple(
            validate(Refusal, {"operation": one.operation, "mode": one.mode, "path": one.path})
            for one in observation.refused
        ),
        audit_faults=observation.faults,
    )


def is_breach(observation: Observation | None, fs: FileSystem) -> bool:
    """Whether an access lay outside the roots; links on the way count as they lie now."""
    if observation is None:
        return False
    resolver = PathResolver(fs)
    places: dict[str, str] = {}
    for touch in observation.touched:
        if touch.path not in places:
            try:
                places[touch.path] = resolver.resolve(touch.path)
            except UnresolvedError:
                places[touch.path] = touch.path
        writes = touch.operation == "write" or touch.mode == "write"
        roots = observation.write_roots if writes else observation.read_roots
        if not any(holds(root, places[touch.path]) for root in roots):
            return True
    return False


def _row(touch: Touch) -> AuditRow:
    row = {"actor": ACTOR, "operation": touch.operation, "path": touch.path}
    return validate(AuditRow, row if touch.mode is None else {**row, "access_mode": touch.mode})


def session_evidence(
    session_id: str | None, *, began_empty: bool | None, known: set[str]
) -> IsolationEvidence:
    """What was seen of an agent's session: new if its folders were empty and its name is a new one.

    Args:
        session_id: that the program told; None where it told none.
        began_empty: whether nothing lay in the session's folders before.
        known: names of sessions that were seen before; this one is added.
    """
    new = session_id is not None and bool(began_empty) and session_id not in known
    if session_id is not None:
        known.add(session_id)
    if not new:
        return IsolationEvidence(provider_persistence="unverified")
    return IsolationEvidence(
        fresh_session=True, forked_from_existing=False, provider_persistence="unverified"
    )
