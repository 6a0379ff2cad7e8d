"""Reading a request of a controller and writing the one line that answers it (calibration.md, section 3).

A request is judged in the order in which the section lists its checks, and the first that fails answers.
Three of them have later places in that order and are left to whoever acts on the request: a sample id is
judged under the lock, the ids of a finalization after the manifest, an artifact root where it is opened.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from skill_effectiveness.calibration.errors import CalibrationCode, CalibrationError, Status
from skill_effectiveness.calibration.messages import (
    REQUEST_ID,
    Action,
    FinalizeAnswer,
    FinalizePayload,
    FinalizeResult,
    ProbeAnswer,
    ProbePayload,
    ProbeResult,
    RefusalAnswer,
    RuntimeManifest,
    SampleAnswer,
    SamplePayload,
    SampleResult,
)
from skill_effectiveness.calibration.models import FAMILY_NAME, MODEL_NAME, SAMPLE_ID, Record
from skill_effectiveness.calibration.reviewer import CONTROLLED
from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import StrictCode, StrictError
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.launch.doors import UNVALIDATED_REQUEST
from skill_effectiveness.launch.manifest import CALIBRATION_REVISION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import JsonValue

REQUEST_SCHEMA: Final = "skill-effectiveness.reviewer-calibration.request.v1"
RESPONSE_SCHEMA: Final = "skill-effectiveness.reviewer-calibration.response.v1"
REQUEST_LIMIT: Final = 1_048_576
"""Bytes of one request at most."""
SAMPLES_PER_SET: Final = range(2, 6)
TIMEOUT_SECONDS: Final = range(1, 601)
DIGEST: Final = r"sha256:[0-9a-f]{64}"

Result = ProbeResult | SampleResult | FinalizeResult


@dataclass(frozen=True, slots=True)
class Heading:
    """What of a request is repeated in the answer.

    Attributes:
        request_id: a fixed word unless the request has one of the right form.
        action: None unless it is one of the three.
    """

    request_id: str = UNVALIDATED_REQUEST
    action: Action | None = None


@dataclass(frozen=True, slots=True)
class Envelope:
    """A request whose outside is right.

    Attributes:
        action: what is asked.
        payload: its fields, not judged yet.
        artifact_root: as given, not judged yet; None for a probe.
    """

    action: Action
    payload: Mapping[str, JsonValue] = field(repr=False)
    artifact_root: JsonValue = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class SampleTerms:
    """What a sample request asks for; the sample id alone is not judged yet, and empty if it is no text."""

    sample_id: str
    provider: str
    executable: Path
    model: str
    reviewer_family: str
    timeout_seconds: int
    runtime_manifest_hash: str


def read_request(data: bytes) -> JsonValue:
    """The JSON value of a request.

    Raises:
        CalibrationError: `request_too_large`, `invalid_json`.
    """
    try:
        return read_json(data, Profile.WIRE)
    except StrictError as error:
        large = error.code is StrictCode.TOO_LARGE
        code = CalibrationCode.REQUEST_TOO_LARGE if large else CalibrationCode.INVALID_JSON
        raise CalibrationError(
            code, f"The request is no strict JSON text ({error.code.value}); send one object in I-JSON."
        ) from error


def heading_of(value: JsonValue) -> Heading:
    """What can be repeated of a request, whatever else is wrong with it."""
    if not isinstance(value, dict):
        return Heading()
    return Heading(_text(REQUEST_ID, value.get("request_id")) or UNVALIDATED_REQUEST, _action(value))


def read_envelope(value: JsonValue) -> Envelope:
    """The outside of a request.

    Raises:
        CalibrationError: `invalid_request`, `protocol_mismatch`, `invalid_request_id`, `unsupported_action`.
    """
    common = {"schema", "request_id", "action", "payload"}
    if not isinstance(value, dict):
        _refuse(CalibrationCode.INVALID_REQUEST, "A request is one JSON object.")
    action = _action(value)
    # An unknown action may or may not come with a root; that it is unknown is told in its own place.
    surplus = {"artifact_root"} if action is None else set()
    needed = common if action in (None, Action.PROBE) else common | {"artifact_root"}
    if not needed <= value.keys() <= needed | surplus:
        _refuse(
            CalibrationCode.INVALID_REQUEST,
            "A request has schema, request_id, action, payload and, unless it probes, artifact_root.",
        )
    payload = value["payload"]
    if not isinstance(payload, dict):
        _refuse(CalibrationCode.INVALID_REQUEST, "The payload of a request is a JSON object.")
    if value["schema"] != REQUEST_SCHEMA:
        _refuse(CalibrationCode.PROTOCOL_MISMATCH, f"This door speaks {REQUEST_SCHEMA} alone.")
    if _text(REQUEST_ID, value["request_id"]) is None:
        _refuse(
            CalibrationCode.INVALID_REQUEST_ID,
            "A request id has 1 to 128 letters, digits, dots, dashes and underscores.",
        )
    if action is None:
        _refuse(CalibrationCode.UNSUPPORTED_ACTION, "The actions are probe, sample and finalize.")
    return Envelope(action, payload, value.get("artifact_root"))


def read_probe(payload: Mapping[str, JsonValue]) -> None:
    """Demand the payload of a probe, which is empty; CalibrationError `invalid_payload` otherwise."""
    _demand_fields(payload, ProbePayload)


def read_sample(payload: Mapping[str, JsonValue], resolves: Callable[[Path], bool]) -> SampleTerms:
    """The payload of a sample request.

    Args:
        payload: as it came.
        resolves: whether a path leads to a program that may be executed.

    Raises:
        CalibrationError: `invalid_payload`, `unsupported_provider`, `invalid_executable`,
            `invalid_provider_configuration`, `invalid_field` (the family), `invalid_timeout`,
            `invalid_cost_policy`.
    """
    _demand_fields(payload, SamplePayload)
    manifest_hash = _manifest_hash(payload)
    provider = _text("|".join(map(re.escape, CONTROLLED)), payload["provider"])
    if provider is None:
        _refuse(CalibrationCode.UNSUPPORTED_PROVIDER, f"Samples are taken of {', '.join(CONTROLLED)} alone.")
    executable = _text(r"/.*", payload["executable"])
    if executable is None:
        _refuse(CalibrationCode.INVALID_EXECUTABLE, "Name the reviewer's program by its absolute path.")
    if not resolves(Path(executable)):
        _refuse(
            CalibrationCode.INVALID_PROVIDER_CONFIGURATION,
            "The path of the reviewer's program leads to no file that may be executed; correct it.",
        )
    model = _text(MODEL_NAME, payload["model"])
    if model is None:
        _refuse(
            CalibrationCode.INVALID_PROVIDER_CONFIGURATION,
            "A model id has 1 to 128 letters, digits and . _ : / - and begins with a letter or digit.",
        )
    family = _text(FAMILY_NAME, payload["reviewer_family"])
    if family is None:
        _refuse(
            CalibrationCode.INVALID_FIELD,
            "A reviewer family has 1 to 64 letters, digits and . _ - and begins with a letter or digit.",
        )
    return SampleTerms(
        sample_id=_text(".*", payload["sample_id"]) or "",
        provider=provider,
        executable=Path(executable),
        model=model,
        reviewer_family=family,
        timeout_seconds=_timeout(payload),
        runtime_manifest_hash=manifest_hash,
    )


def read_finalize(payload: Mapping[str, JsonValue]) -> str:
    """The manifest hash of a finalize request; CalibrationError `invalid_payload` if the payload has none."""
    _demand_fields(payload, FinalizePayload)
    return _manifest_hash(payload)


def read_sample_ids(payload: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """The ids of a finalize request, in its order; CalibrationError `invalid_sample_set`."""
    given = payload["sample_ids"]
    texts = [_text(SAMPLE_ID, each) for each in given] if isinstance(given, list) else []
    ids = tuple(dict.fromkeys(text for text in texts if text is not None))
    if len(ids) != len(texts) or len(ids) not in SAMPLES_PER_SET:
        _refuse(CalibrationCode.INVALID_SAMPLE_SET, "A calibration takes 2 to 5 different sample ids.")
    return ids


def answer_line(heading: Heading, result: Result) -> bytes:
    """The line that answers a request which was carried out."""
    common = {"schema": RESPONSE_SCHEMA, "request_id": heading.request_id, "status": Status.OK}
    return _line(_ANSWERS[type(result)].model_validate(common | {"action": heading.action, "result": result}))


def refusal_line(heading: Heading, code: CalibrationCode) -> bytes:
    """The line that answers any other request."""
    common = {"schema": RESPONSE_SCHEMA, "request_id": heading.request_id, "status": code.status}
    action = {} if heading.action is None else {"action": heading.action}
    return _line(RefusalAnswer.model_validate(common | action | {"reason_code": code}))


def probe_result(manifest: Mapping[str, object]) -> ProbeResult:
    """What a probe is told."""
    current = validate(RuntimeManifest, dict(manifest))
    return ProbeResult(
        protocol_revision=CALIBRATION_REVISION,
        supported_actions=tuple(Action),
        supported_providers=CONTROLLED,
        reason_codes=tuple(CalibrationCode),
        runtime_manifest=current,
        runtime_manifest_hash=current.manifest_hash,
        sample_model_call_limit=1,
        finalize_model_call_count=0,
    )


_ANSWERS: Final[Mapping[type[Result], type[ProbeAnswer | SampleAnswer | FinalizeAnswer]]] = {
    ProbeResult: ProbeAnswer,
    SampleResult: SampleAnswer,
    FinalizeResult: FinalizeAnswer,
}


def _line(answer: Record) -> bytes:
    return dump_line(answer.model_dump(mode="json", by_alias=True, exclude_none=True))


def _action(request: Mapping[str, JsonValue]) -> Action | None:
    return next((action for action in Action if action.value == request.get("action")), None)


def _text(pattern: str, value: JsonValue) -> str | None:
    """The value if it is a text that the pattern fits as a whole."""
    fits = isinstance(value, str) and re.fullmatch(pattern, value, re.DOTALL)
    return str(value) if fits else None


def _timeout(payload: Mapping[str, JsonValue]) -> int:
    """The timeout, once the call limit that stands behind it is judged as well."""
    seconds = payload["timeout_seconds"]
    # `true` and `1.0` are equal to 1, and are not the integer token.
    if not isinstance(seconds, int) or isinstance(seconds, bool) or seconds not in TIMEOUT_SECONDS:
        _refuse(CalibrationCode.INVALID_TIMEOUT, "A call may take 1 to 600 seconds, given as a whole number.")
    calls = payload["max_model_calls"]
    if type(calls) is not int or calls != 1:
        _refuse(CalibrationCode.INVALID_COST_POLICY, "A sample is one model call: max_model_calls is 1.")
    return seconds


def _demand_fields(payload: Mapping[str, JsonValue], model: type[Record]) -> None:
    names = list(model.model_fields)
    if payload.keys() != set(names):
        told = f"exactly {', '.join(names)}" if names else "no field"
        _refuse(CalibrationCode.INVALID_PAYLOAD, f"The payload of this action has {told}.")


def _manifest_hash(payload: Mapping[str, JsonValue]) -> str:
    given = _text(DIGEST, payload["runtime_manifest_hash"])
    if given is None:
        _refuse(
            CalibrationCode.INVALID_PAYLOAD, "runtime_manifest_hash is sha256: and 64 lowercase hex digits."
        )
    return given


def _refuse(code: CalibrationCode, sentence: str) -> NoReturn:
    raise CalibrationError(code, sentence)
