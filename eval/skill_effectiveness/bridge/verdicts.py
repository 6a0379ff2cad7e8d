"""From an evaluate payload to a verdict and its file (bridge.md, section 4).

The gate judges; here its stages get their codes, in the order in which a caller is told. The whole verdict is
written as `verdicts/<request_id>.json`, whether the request is answered or blocked.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.bridge.payloads import REFERABLE, relative
from skill_effectiveness.bridge.references import rows_of, value_of
from skill_effectiveness.bridge.transaction import Planned
from skill_effectiveness.bridge.trial_requests import REGISTRY, undeclared
from skill_effectiveness.bridge.words import BridgeError, ReasonCode
from skill_effectiveness.calibration.inputs import load_inputs
from skill_effectiveness.evidence.canonical import digest_bytes, dump_line
from skill_effectiveness.evidence.faults import RootCode, RootError
from skill_effectiveness.protocol.registries import RegistrySchema
from skill_effectiveness.protocol.words import BankName
from skill_effectiveness.trials.gate import failed_stages
from skill_effectiveness.trials.gate_evidence import Expected, evaluate_bundle
from skill_effectiveness.trials.gate_result import result_json
from skill_effectiveness.trials.gate_words import Stage
from skill_effectiveness.trials.store import TRIALS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skill_effectiveness.calibration.inputs import FrozenInputs
    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.trials.store import TrialStore

VERDICTS: Final = "verdicts"
MOST_LISTED: Final = 100
"""Of one failure that names rows, so many are listed in a response."""
CODES: Final = {
    Stage.REVIEWERS: ReasonCode.REVIEWER_CALIBRATION_FAILED,
    Stage.CAPABILITY: ReasonCode.CAPABILITY_UNAVAILABLE,
    Stage.PROOFS: ReasonCode.CAUSAL_CORE_UNAVAILABLE,
    Stage.SKILL_EVENTS: ReasonCode.INVOCATION_UNVERIFIABLE,
    Stage.ISOLATION: ReasonCode.ISOLATION_VIOLATION,
}
"""What blocks; the stage of the gate itself is an answer."""


def plan_of_evaluate(
    store: TrialStore, payload: Mapping[str, Any], inputs: FrozenInputs, request_id: str
) -> Planned:
    """What an evaluation comes to.

    Raises:
        BridgeError: the request, or the first stage that blocks; the verdict file is written then.
        PilotError, ProtocolError, TrialError, EvidenceError: as `evaluate_bundle`.
    """
    root = store.root
    registry = _registry(payload[REGISTRY])
    with _bundle(root, payload["evidence_path"]) as bundle:
        config, tasks, manifests = (value_of(root, payload, name) for name in REFERABLE[:3])
        expected = Expected(
            config=_object(config),
            tasks=_list(tasks),
            manifests=_of_registry(_list(manifests), registry),
            trials=rows_of(root, payload, REFERABLE[3]),
        )
        stored = store if root.exists(TRIALS) else None
        result = evaluate_bundle(bundle, expected, inputs, store=stored).result
    verdict = result_json(result)
    data = dump_line(verdict)
    blocked = next((CODES[stage] for stage in failed_stages(result) if stage in CODES), None)
    if blocked is not None:
        write_verdict(root, request_id, data)
        raise BridgeError(blocked, "the verdict file says more")
    shown: dict[str, JsonValue] = {"verdict": {**verdict, "failures": list(listed(result.failures))}}
    return Planned(
        target=f"{VERDICTS}/{request_id}.json",
        before=digest_of_verdict(root, request_id),
        after=digest_bytes(data),
        result=shown,
        apply=lambda: write_verdict(root, request_id, data),
    )


def listed(failures: Sequence[str]) -> Iterator[str]:
    """Failures as a response lists them: of each that names rows the first hundred, then `<code>:+<n>`."""
    seen: Counter[str] = Counter()
    for failure in failures:
        code, indexed, _ = failure.partition(":")
        seen[code] += 1
        if not indexed or seen[code] <= MOST_LISTED:
            yield failure
    for code, times in seen.items():
        if times > MOST_LISTED:
            yield f"{code}:+{times - MOST_LISTED}"


def write_verdict(root: PrivateRoot, request_id: str, data: bytes) -> None:
    """Write a verdict file; an older one goes to `history/`, the same one stays."""
    name = f"{request_id}.json"
    with root.child(VERDICTS, create=True) as folder:
        folder.sweep()
        if not folder.exists(name) or folder.read(name) != data:
            folder.archive(name, data)


def digest_of_verdict(root: PrivateRoot, request_id: str) -> str | None:
    """The digest of a verdict file; None when there is none."""
    if not root.exists(VERDICTS):
        return None
    with root.child(VERDICTS) as folder:
        name = f"{request_id}.json"
        return digest_bytes(folder.read(name)) if folder.exists(name) else None


def _registry(name: str) -> RegistrySchema:
    try:
        return RegistrySchema(name)
    except ValueError:
        raise BridgeError(ReasonCode.EVIDENCE_INVALID, REGISTRY) from None


def _object(value: JsonValue) -> JsonValue:
    if not isinstance(value, dict):
        raise BridgeError(ReasonCode.EVIDENCE_INVALID, "config is an object")
    return value


def _list(value: JsonValue) -> list[JsonValue]:
    if not isinstance(value, list):
        raise BridgeError(ReasonCode.EVIDENCE_INVALID, "tasks and manifests are lists")
    return value


def _of_registry(manifests: Sequence[JsonValue], registry: RegistrySchema) -> list[JsonValue]:
    """The manifests as they were frozen, once each has declared the registry of the request."""
    for manifest in manifests:
        if not isinstance(manifest, dict) or manifest.get(REGISTRY) != registry.value:
            raise BridgeError(ReasonCode.EVIDENCE_INVALID, "every manifest declares the registry")
    return [undeclared(manifest) for manifest in manifests if isinstance(manifest, dict)]


@contextmanager
def _bundle(root: PrivateRoot, path: str) -> Iterator[PrivateRoot]:
    """The open folder of the bundle."""
    segments = relative(path)
    try:
        folder = root.child(*segments)
    except RootError as error:
        if error.code is RootCode.ROOT_MISSING:
            raise BridgeError(ReasonCode.ARTIFACT_MISSING, "bundle") from error
        raise
    with folder:
        yield folder


def inputs_of(fs: FileSystem) -> FrozenInputs:
    """The frozen inputs of every verdict.

    Raises:
        ProtocolError: `fixture_invalid`.
    """
    return load_inputs(fs, BankName.JUDGED)
