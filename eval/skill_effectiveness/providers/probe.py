"""The live probe of what one session of a provider knows of another (providers.md section 6).

A folder takes one probe. In it, in order:

| step | left behind when it fails |
|---|---|
| program, login, model and time are looked at | nothing |
| claim `.provider-probe.lock`, with what is probed | nothing, or the claim |
| first session is given a canary | the claim |
| second session is asked for one | the claim |
| capability artifact and result, both or neither | the claim |

A claim authorises no further call, whatever came of it. Neither the canary nor anything that a model said is
written anywhere: digests are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from skill_effectiveness.evidence.canonical import digest_object, digest_text, dump_line
from skill_effectiveness.evidence.documents import Canonical, parse
from skill_effectiveness.evidence.faults import (
    EvidenceError,
    Fault,
    FileCode,
    LockCode,
    LockError,
    PairCode,
    PairError,
)
from skill_effectiveness.evidence.lock import Lock
from skill_effectiveness.evidence.pair import Member, publish_pair
from skill_effectiveness.evidence.strict import Profile
from skill_effectiveness.execution import never, sweep_sessions
from skill_effectiveness.protocol.capability import CapabilityProbe, probe_of
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One, to_json
from skill_effectiveness.protocol.provider_capability import (
    RESULT_CONTRACT,
    CrossTrialCanary,
    ProviderCapabilityResult,
    artifact_name,
    capability_row,
    outcome_of,
)
from skill_effectiveness.protocol.words import TaskFamily
from skill_effectiveness.providers.calls import CallKind, JudgeCall
from skill_effectiveness.providers.canary import (
    CANARY_BYTES,
    RECALL_KEY,
    SEED_KEY,
    ProbeCode,
    ProbeRefused,
    Recall,
    demand_acknowledged,
    demand_audited,
    recall_of,
    recall_prompt,
    schema_of,
    seed_prompt,
)
from skill_effectiveness.providers.simulated import SimulatedReviewer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.execution import Executable
    from skill_effectiveness.providers.base import Provider
    from skill_effectiveness.providers.calls import CallOutcome, Cancelled

CLAIM: Final = ".provider-probe.lock"
RESULT: Final = "provider-probe-result.json"
SESSIONS: Final = 2
TIMEOUT_SECONDS: Final = range(1, 601)
_PROBING: Final = ".probing.lock"
_TOKEN_BYTES: Final = 32


class ProbeClaim(FrozenModel):
    """`.provider-probe.lock`: what the folder was taken for, before any call."""

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-provider-probe-claim-v1"]
    claim_token: str
    provider: str
    provider_executable_hash: DigestText
    model: str
    task_family: TaskFamily


@dataclass(frozen=True, slots=True)
class ProbeOrder:
    """What is to be probed.

    Attributes:
        model: exact model id.
        family: the task family whose row is written.
        timeout_seconds: of each of the two sessions, 1 to 600.
    """

    model: str
    family: TaskFamily
    timeout_seconds: int = 220


def can_be_probed(adapter: type[Provider]) -> bool:
    """Whether an adapter can hold the rules: a program that answers in fresh sessions without tools."""
    return CallKind.JUDGE in adapter.call_kinds and adapter is not SimulatedReviewer


@dataclass(frozen=True, slots=True)
class _Seen:
    """What both sessions came to, and of which program."""

    executable: Executable
    canary: str = field(repr=False)
    recall: Recall


def probe(
    order: ProbeOrder,
    provider: Provider,
    out: PrivateRoot,
    *,
    told: Callable[[int], object] = lambda _number: None,
    cancelled: Cancelled = never,
) -> ProviderCapabilityResult:
    """Probe a provider once, and publish what it showed.

    Args:
        order: what is probed.
        provider: bound to its program.
        out: the folder, empty.
        told: hears the number of the session that begins, 1 or 2.
        cancelled: asked during each call; True stops.

    Raises:
        ProbeRefused: no report; see `ProbeCode`.
        ProviderError: a model id that is none.
        ExecutableError: the program cannot be identified any more.
        EvidenceError: a file could not be read or written, or the login file is none.
    """
    _demand_askable(order, provider)
    executable = provider.identify(out.around)
    provider.check_login(out.around)
    sweep_sessions(out.around)
    try:
        with Lock(out, _PROBING).hold(0, "provider probe"):
            _claim(order, provider.name, executable, out)
            canary, recall = _asked(order, provider, out, told, cancelled)
            if provider.identify(out.around) != executable:
                sentence = "No report: the program was changed during the probe; probe again in a new folder."
                raise ProbeRefused(ProbeCode.EXECUTABLE_CHANGED, sentence)
            seen = _Seen(executable, canary, recall)
            return _publish(_result(order, provider, seen, out.around.environ), out)
    except LockError as error:
        if error.code is LockCode.LOCK_BUSY:
            raise _claimed() from error
        raise


def read_probe_result(artifact: bytes, result: bytes) -> ProviderCapabilityResult:
    """A published probe, from the bytes of its two files.

    Raises:
        EvidenceError: a file is not the document it has to be.
        PairError: `pair_invalid`: the two do not belong together.
    """
    row = parse(CapabilityProbe, artifact, Profile.DOCUMENT, canonical=Canonical.LINE)
    found = parse(ProviderCapabilityResult, result, Profile.DOCUMENT, canonical=Canonical.LINE)
    if digest_object(to_json(row)) != found.capability_artifact_hash:
        sentence = "The capability artifact is not the one that the result was published with."
        raise PairError(Fault(PairCode.PAIR_INVALID, found.capability_artifact, sentence))
    return found


def _demand_askable(order: ProbeOrder, provider: Provider) -> None:
    """Refuse what could not be asked, before the folder is spent."""
    if not can_be_probed(type(provider)):
        sentence = f"{provider.name} has no program that answers without tools, so it cannot be probed."
        raise ProbeRefused(ProbeCode.PROVIDER_NOT_PROBED, sentence)
    if order.timeout_seconds not in TIMEOUT_SECONDS:
        raise ProbeRefused(ProbeCode.INVALID_PROBE, "A session may take 1 to 600 seconds.")
    _call(order, recall_prompt(), RECALL_KEY)


def _claim(order: ProbeOrder, provider: str, executable: Executable, out: PrivateRoot) -> None:
    """Take the folder, once and for all.

    Raises:
        ProbeRefused: `already_claimed`, `folder_occupied`.
    """
    out.sweep()
    if out.exists(CLAIM):
        raise _claimed()
    if foreign := [name for name in out.names() if not name.startswith(_PROBING)]:
        sentence = f"The folder holds {len(foreign)} other files; probe in a new folder."
        raise ProbeRefused(ProbeCode.FOLDER_OCCUPIED, sentence)
    claim = ProbeClaim(
        schema_version=1,
        artifact_contract="skill-effectiveness-provider-probe-claim-v1",
        claim_token=out.around.entropy(_TOKEN_BYTES).hex(),
        provider=provider,
        provider_executable_hash=executable.sha256,
        model=order.model,
        task_family=order.family,
    )
    try:
        out.publish(CLAIM, dump_line(to_json(claim)))
    except EvidenceError as error:
        if error.code is FileCode.EXISTS_DIFFERENT:
            raise _claimed() from error
        raise


def _asked(
    order: ProbeOrder,
    provider: Provider,
    out: PrivateRoot,
    told: Callable[[int], object],
    cancelled: Cancelled,
) -> tuple[str, Recall]:
    """Both sessions: the canary that the first was given, and what the second recalls."""
    canary = out.around.entropy(CANARY_BYTES).hex()
    told(1)
    first = provider.judge(
        _call(order, seed_prompt(canary), SEED_KEY), around=out.around, cancelled=cancelled
    )
    demand_acknowledged(demand_audited(first), canary, json_fence=provider.json_fence)
    told(SESSIONS)
    second = provider.judge(_call(order, recall_prompt(), RECALL_KEY), around=out.around, cancelled=cancelled)
    demand_audited(second)
    _demand_independent(first, second)
    return canary, recall_of(second, canary, json_fence=provider.json_fence)


def _call(order: ProbeOrder, prompt: str, key: str) -> JudgeCall:
    return JudgeCall(
        prompt=prompt,
        answer_schema=schema_of(key),
        model=order.model,
        timeout_seconds=order.timeout_seconds,
    )


def _demand_independent(first: CallOutcome, second: CallOutcome) -> None:
    """What one session was told is only then unknown to the other by itself if they are two."""
    ids = {first.session_id, second.session_id}
    if None in ids or len(ids) != SESSIONS:
        sentence = (
            "No report: the provider did not tell two different sessions, so nothing shows that they were "
            "independent. The folder is spent; probe again in a new one."
        )
        raise ProbeRefused(ProbeCode.SESSIONS_NOT_INDEPENDENT, sentence)


def _result(
    order: ProbeOrder, provider: Provider, seen: _Seen, environ: Mapping[str, str]
) -> ProviderCapabilityResult:
    executable, named = seen.executable, seen.recall.named
    row = capability_row(provider.name, order.family, recalled=named is not None)
    outcome, matrix = outcome_of(row)
    return ProviderCapabilityResult(
        schema_version=1,
        artifact_contract=RESULT_CONTRACT,
        execution_status="completed",
        provider=provider.name,
        provider_cli_version=executable.version,
        provider_executable_hash=executable.sha256,
        provider_environment_keys=provider.environment_keys(environ),
        model=order.model,
        task_family=order.family,
        timeout_seconds=order.timeout_seconds,
        requested_session_mode=provider.session_label,
        tool_access=provider.tool_label,
        isolation_outcome=outcome,
        cross_trial_canary=CrossTrialCanary(
            canary_hash=digest_text(seen.canary),
            seed_acknowledged=True,
            recall_probe_completed=True,
            cross_session_recall_detected=named is not None,
            recalled_value_hash=None if named is None else digest_text(named),
        ),
        capability_artifact=artifact_name(order.family),
        capability_artifact_hash=digest_object(to_json(probe_of(row))),
        capability_matrix=matrix,
        provider_persistence_declaration="unverified",
        conclusion_boundary="no_recall_in_one_session_is_no_proof_of_isolation",
        security_review_status="not_reviewed",
    )


def _publish(result: ProviderCapabilityResult, out: PrivateRoot) -> ProviderCapabilityResult:
    """The row's artifact and the result, both or neither."""
    artifact = probe_of(result.capability_matrix.rows[0])
    return publish_pair(
        out,
        Member(result.capability_artifact, dump_line(to_json(artifact))),
        Member(RESULT, dump_line(to_json(result))),
        load=read_probe_result,
    )


def _claimed() -> ProbeRefused:
    return ProbeRefused(
        ProbeCode.ALREADY_CLAIMED,
        "The folder is already claimed by a probe, and one folder takes one probe; use a new folder.",
    )
