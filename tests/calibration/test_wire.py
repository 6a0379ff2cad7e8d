from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skill_effectiveness.calibration import wire
from skill_effectiveness.calibration.actions import BINDERS
from skill_effectiveness.calibration.errors import CalibrationCode, CalibrationError
from skill_effectiveness.calibration.messages import Action, Request, Response, SampleResult
from skill_effectiveness.calibration.reviewer import CONTROLLED
from skill_effectiveness.calibration.wire import (
    Heading,
    answer_line,
    heading_of,
    probe_result,
    read_envelope,
    read_finalize,
    read_probe,
    read_request,
    read_sample,
    read_sample_ids,
    refusal_line,
)
from skill_effectiveness.evidence.documents import parse
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile
from tests.support.controller import (
    RESPONSE,
    RUNTIME,
    UNREAD,
    changed,
    finalize_request,
    probe_request,
    sample_request,
    without,
)
from tests.support.examinations import MANIFEST, Anything
from tests.support.json_values import json_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"
PROBE, SAMPLE, FINALIZE = probe_request(), sample_request("/root"), finalize_request("/root")


def code_of(reading: Callable[[], object]) -> str:
    try:
        reading()
    except CalibrationError as error:
        return error.code.value
    return "ok"


def read(request: Mapping[str, Any], *, resolves: bool = True) -> object:
    """Everything that the wire alone can judge of a request, in its order."""
    envelope = read_envelope(read_request(json.dumps(request).encode()))
    if envelope.action is Action.PROBE:
        return read_probe(envelope.payload)
    if envelope.action is Action.SAMPLE:
        return read_sample(envelope.payload, lambda _path: resolves)
    return read_finalize(envelope.payload), read_sample_ids(envelope.payload)


def answer(request: Mapping[str, Any], *, resolves: bool = True) -> str:
    return code_of(lambda: read(request, resolves=resolves))


class TestBytes:
    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"  \n",
            b"{",
            b'{"a":1',
            b"{}{}",
            b'{"a":NaN}',
            b'{"a":1e999}',
            b'{"a":1,"a":2}',
            b'{"a":1,"\\u0061":2}',
            b'{"a":"\\ud800"}',
            b'{"a":9007199254740992}',
            b"\xef\xbb\xbf{}",
            b'{"a":"\xff"}',
            b"[" * 100_000,
            b"\x00",
        ],
        ids=range(15),
    )
    def test_that_are_no_strict_json(self, data: bytes) -> None:
        """R6 F54 F22: an empty request, half a one, a BOM, deep nesting, doubled members."""
        assert code_of(lambda: read_request(data)) == "invalid_json"

    def test_at_the_limit_and_one_more(self) -> None:
        """R6: 1,048,576 bytes are read; what is too large is said whatever else is wrong."""
        room = wire.REQUEST_LIMIT
        assert read_request(b'"' + b"a" * (room - 2) + b'"') == "a" * (room - 2)
        assert code_of(lambda: read_request(b'"' + b"a" * (room - 1) + b'"')) == "request_too_large"
        assert code_of(lambda: read_request(b"[" * (room + 1))) == "request_too_large"

    def test_white_space_and_crlf_around_a_request_are_no_fault(self) -> None:
        """F54: I-JSON allows them."""
        assert read_request(b"\r\n {} \r\n") == {}


class TestEnvelope:
    @pytest.mark.parametrize("value", [[], "probe", 1, None, True])
    def test_is_an_object(self, value: object) -> None:
        assert code_of(lambda: read_envelope(json.loads(json.dumps(value)))) == "invalid_request"

    @pytest.mark.parametrize("request_", [PROBE, SAMPLE, FINALIZE], ids=["probe", "sample", "finalize"])
    def test_has_exactly_its_fields(self, request_: dict[str, Any]) -> None:
        assert answer(request_) == "ok"
        for name in request_:
            assert answer(without(request_, name)) == "invalid_request"
        assert answer({**request_, "comment": ""}) == "invalid_request"

    def test_a_root_belongs_to_sample_and_finalize_alone(self) -> None:
        assert answer({**PROBE, "artifact_root": "/root"}) == "invalid_request"
        assert answer({**PROBE, "artifact_root": None}) == "invalid_request"

    @pytest.mark.parametrize("payload", [[], "", None, 1])
    def test_has_an_object_as_payload(self, payload: object) -> None:
        assert answer({**SAMPLE, "payload": payload}) == "invalid_request"

    @pytest.mark.parametrize(
        "schema", ["", None, 1, "skill-effectiveness.reviewer-calibration.request.v2", RESPONSE]
    )
    def test_names_this_protocol(self, schema: object) -> None:
        assert answer({**PROBE, "schema": schema}) == "protocol_mismatch"

    @pytest.mark.parametrize("request_id", ["", "a" * 129, "a b", "a/b", "é", "a\n", None, 1, ["a"]])
    def test_has_an_id(self, request_id: object) -> None:
        assert answer({**PROBE, "request_id": request_id}) == "invalid_request_id"

    @pytest.mark.parametrize("request_id", ["a", "a" * 128, "..", "-A_0.z"])
    def test_ids_that_fit(self, request_id: str) -> None:
        assert answer({**PROBE, "request_id": request_id}) == "ok"

    @pytest.mark.parametrize("action", ["", "Probe", "seal", None, 1, ["probe"], {"a": 1}])
    def test_has_a_known_action(self, action: object) -> None:
        """R6: with or without a root, since nobody can say whether it needs one."""
        assert answer({**PROBE, "action": action}) == "unsupported_action"
        assert answer({**SAMPLE, "action": action}) == "unsupported_action"


class TestPayload:
    @pytest.mark.parametrize("request_", [PROBE, SAMPLE, FINALIZE], ids=["probe", "sample", "finalize"])
    def test_has_exactly_its_fields(self, request_: dict[str, Any]) -> None:
        for name in request_["payload"]:
            assert answer(without(request_, f"payload.{name}")) == "invalid_payload"
        assert answer(changed(request_, "payload.more", 1)) == "invalid_payload"

    @pytest.mark.parametrize("request_", [SAMPLE, FINALIZE], ids=["sample", "finalize"])
    @pytest.mark.parametrize(
        "digest", [None, 1, "", "a" * 64, "sha256:" + 64 * "A", "sha256:" + 63 * "a", MANIFEST + "\n"]
    )
    def test_names_a_manifest_by_digest(self, request_: dict[str, Any], digest: object) -> None:
        assert answer(changed(request_, "payload.runtime_manifest_hash", digest)) == "invalid_payload"

    @pytest.mark.parametrize("provider", ["", "Codex", "codex ", "codex\n", "claude", "simulated", None, 1])
    def test_a_provider_that_no_controller_samples(self, provider: object) -> None:
        assert answer(changed(SAMPLE, "payload.provider", provider)) == "unsupported_provider"

    @pytest.mark.parametrize("path", ["", "codex", "./codex", "~/codex", " /codex", None, 1, ["/codex"]])
    def test_a_program_without_an_absolute_path(self, path: object) -> None:
        assert answer(changed(SAMPLE, "payload.executable", path)) == "invalid_executable"

    def test_a_program_that_does_not_resolve(self) -> None:
        assert answer(SAMPLE, resolves=False) == "invalid_provider_configuration"

    @pytest.mark.parametrize("model", ["", "a b", "-a", "a" * 129, "a\n", "é", None, 1])
    def test_a_model_of_another_form(self, model: object) -> None:
        assert answer(changed(SAMPLE, "payload.model", model)) == "invalid_provider_configuration"

    @pytest.mark.parametrize("family", ["", "a b", "-a", "a" * 65, "a/b", "a\n", None, 1])
    def test_a_family_of_another_form(self, family: object) -> None:
        assert answer(changed(SAMPLE, "payload.reviewer_family", family)) == "invalid_field"

    @pytest.mark.parametrize("seconds", [0, -1, 601, True, 1.0, 1.5, "1", None, [1]])
    def test_a_timeout_that_is_no_integer_of_1_to_600(self, seconds: object) -> None:
        assert answer(changed(SAMPLE, "payload.timeout_seconds", seconds)) == "invalid_timeout"

    @pytest.mark.parametrize("seconds", [1, 600])
    def test_a_timeout_at_the_ends(self, seconds: int) -> None:
        assert answer(changed(SAMPLE, "payload.timeout_seconds", seconds)) == "ok"

    @pytest.mark.parametrize("calls", [0, 2, -1, True, False, 1.0, "1", None, [1]])
    def test_a_call_limit_other_than_the_token_1(self, calls: object) -> None:
        """R7: `true`, `1.0` and `"1"` are not the number of one call."""
        assert answer(changed(SAMPLE, "payload.max_model_calls", calls)) == "invalid_cost_policy"

    def test_a_call_limit_spelled_as_a_fraction(self) -> None:
        """R7 E6: the token decides, not the value."""
        text = json.dumps(SAMPLE).replace('"max_model_calls": 1', '"max_model_calls": 1e0')
        envelope = read_envelope(read_request(text.encode()))
        assert code_of(lambda: read_sample(envelope.payload, lambda _path: True)) == "invalid_cost_policy"

    @pytest.mark.parametrize(
        "ids",
        [
            [],
            ["s-1"],
            ["s-1", "s-1"],
            ["s-1", "s-2", "s-1"],
            [f"s-{n}" for n in range(6)],
            ["s-1", ""],
            ["s-1", "-a"],
            ["s-1", "a/b"],
            ["s-1", 2],
            ["s-1", "s-2", None],
            "s-1",
            {"s-1": 1, "s-2": 2},
            None,
        ],
        ids=str,
    )
    def test_a_set_that_is_none(self, ids: object) -> None:
        assert answer(changed(FINALIZE, "payload.sample_ids", ids)) == "invalid_sample_set"

    def test_a_sample_id_is_left_to_its_place_under_the_lock(self) -> None:
        """R8: whatever it is, nothing before the lock refuses it."""
        for sample_id in ("", "a/b", None, 7, ["s-1"]):
            assert answer(changed(SAMPLE, "payload.sample_id", sample_id)) == "ok"

    def test_every_provider_that_a_controller_samples_can_be_bound(self) -> None:
        assert set(BINDERS) == set(CONTROLLED) == {"codex"}


# One fault per check, in the order of the section; each makes every request wrong in one way more.
FAULTS: list[tuple[str, str, object]] = [
    ("invalid_request", "surplus", 1),
    ("protocol_mismatch", "schema", "another"),
    ("invalid_request_id", "request_id", "a b"),
    ("unsupported_action", "action", "seal"),
    ("invalid_payload", "payload.surplus", 1),
    ("unsupported_provider", "payload.provider", "none"),
    ("invalid_executable", "payload.executable", "codex"),
    ("invalid_provider_configuration", "payload.model", "a b"),
    ("invalid_field", "payload.reviewer_family", "a b"),
    ("invalid_timeout", "payload.timeout_seconds", 601),
    ("invalid_cost_policy", "payload.max_model_calls", 2),
]


@pytest.mark.parametrize("first", range(len(FAULTS)))
@pytest.mark.parametrize("second", range(len(FAULTS)))
def test_the_earlier_of_two_faults_answers(first: int, second: int) -> None:
    """R8: for each two of the checks that the wire alone can make."""
    if first >= second:
        return
    request = SAMPLE
    for _, path, value in (FAULTS[first], FAULTS[second]):
        request = changed(request, path, value)
    assert answer(request) == FAULTS[first][0]


def test_a_program_that_does_not_resolve_is_told_before_the_family() -> None:
    """R8: the one check between them that looks at the disk."""
    request = changed(SAMPLE, "payload.reviewer_family", "a b")
    assert answer(request, resolves=False) == "invalid_provider_configuration"
    request = changed(SAMPLE, "payload.executable", "codex")
    assert answer(request, resolves=False) == "invalid_executable"


class TestHeading:
    def test_repeats_what_can_be_repeated(self) -> None:
        assert heading_of(SAMPLE) == Heading("r-1", Action.SAMPLE)
        assert heading_of({"request_id": "r-1", "action": "seal"}) == Heading("r-1", None)
        assert heading_of({"request_id": "a b", "action": "probe"}) == Heading(UNREAD, Action.PROBE)
        for value in ([], "x", None, {}, {"request_id": ["r-1"], "action": ["probe"]}):
            assert heading_of(value) == Heading(UNREAD, None)


class TestAnswers:
    def test_a_refusal_is_one_canonical_line(self) -> None:
        """R39: nothing but these words."""
        line = refusal_line(Heading("r-1", Action.SAMPLE), CalibrationCode.INVALID_TIMEOUT)
        assert line == (
            b'{"action":"sample","reason_code":"invalid_timeout","request_id":"r-1",'
            b'"schema":"skill-effectiveness.reviewer-calibration.response.v1","status":"invalid"}\n'
        )

    def test_an_action_that_is_not_known_is_left_out(self) -> None:
        line = refusal_line(Heading(), CalibrationCode.INVALID_JSON)
        assert "action" not in json.loads(line)
        assert json.loads(line)["request_id"] == UNREAD

    def test_a_result(self) -> None:
        result = SampleResult(
            sample_id="s-1",
            sample_artifact="s-1.json",
            sample_hash=MANIFEST,
            runtime_manifest_hash=MANIFEST,
            model_call_count=1,
        )
        document = json.loads(answer_line(Heading("r-1", Action.SAMPLE), result))
        assert document == {
            "schema": RESPONSE,
            "request_id": "r-1",
            "status": "ok",
            "action": "sample",
            "result": {
                "sample_id": "s-1",
                "sample_artifact": "s-1.json",
                "sample_hash": MANIFEST,
                "runtime_manifest_hash": MANIFEST,
                "model_call_count": 1,
            },
        }

    def test_a_probe_tells_the_whole_contract(self) -> None:
        """R6: the 34 codes, the calls that each action makes, and what runs."""
        document = json.loads(answer_line(Heading("r-1", Action.PROBE), probe_result(RUNTIME)))
        result = document["result"]
        assert result.pop("runtime_manifest") == RUNTIME
        assert len(set(result.pop("reason_codes"))) == 34
        assert result == {
            "protocol_revision": "skill-effectiveness.reviewer-calibration.v1",
            "supported_actions": ["probe", "sample", "finalize"],
            "supported_providers": ["codex"],
            "runtime_manifest_hash": MANIFEST,
            "sample_model_call_limit": 1,
            "finalize_model_call_count": 0,
        }


def schema(name: str) -> jsonschema.Draft202012Validator:
    document = json.loads((SCHEMAS / f"reviewer-calibration-{name}.schema.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(document)


LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "schema": st.sampled_from(["skill-effectiveness.reviewer-calibration.request.v1", "x"]),
    "request_id": st.sampled_from(["r-1", "a b", 7]),
    "action": st.sampled_from(["probe", "sample", "finalize", "seal"]),
    "artifact_root": st.sampled_from(["/root", "root", None]),
    "payload": st.just({}),
    "payload.sample_id": st.sampled_from(["s-1", "", "a/b", 1]),
    "payload.provider": st.sampled_from(["codex", "claude"]),
    "payload.executable": st.sampled_from(["/x", "x", 1]),
    "payload.model": st.sampled_from(["m", "a b", None]),
    "payload.reviewer_family": st.sampled_from(["f", "a b"]),
    "payload.timeout_seconds": st.sampled_from([1, 600, 601, 1.0, True, "1"]),
    "payload.max_model_calls": st.sampled_from([1, 1.0, True, "1", 2]),
    "payload.runtime_manifest_hash": st.sampled_from([MANIFEST, "x", None]),
    "payload.sample_ids": st.sampled_from([["a", "b"], ["a"], ["a", "a"], ["a", 1], "ab"]),
    "surplus": st.just(1),
    "payload.surplus": st.just(1),
}


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """Requests that are right but for some of their fields."""
    request = draw(st.sampled_from([PROBE, SAMPLE, FINALIZE]))
    for path in draw(st.lists(st.sampled_from(sorted(LEAVES)), max_size=3, unique=True)):
        request = changed(request, path, draw(LEAVES[path]))
    for name in draw(st.lists(st.sampled_from(sorted(SAMPLE)), max_size=1)):
        request = {key: value for key, value in request.items() if key != name}
    return request


def accepted(request: dict[str, Any]) -> bool:
    """What the checks in their order say, those included that are made later."""
    later: list[str | None] = []
    if isinstance(request.get("payload"), dict) and "sample_id" in request["payload"]:
        later.append(wire._text(wire.SAMPLE_ID, request["payload"]["sample_id"]))
    if "artifact_root" in request:
        later.append(wire._text("/.*", request["artifact_root"]))
    return answer(request) == "ok" and None not in later


@settings(max_examples=300, deadline=None)
@given(requests() | json_values)
def test_the_checks_the_models_and_the_schemas_accept_the_same(request: Anything) -> None:
    """R6 E6: three ways to say what a request is; a schema cannot tell 1.0 from 1."""
    by_checks = isinstance(request, dict) and accepted(request)
    try:
        parse(Request, json.dumps(request).encode(), Profile.WIRE)
        by_model = True
    except EvidenceError:
        by_model = False
    assert by_checks == by_model
    if by_model:
        schema("request").validate(request)
    elif not any(isinstance(leaf, float) for leaf in _leaves(request)):
        assert not schema("request").is_valid(request)


def _leaves(value: Anything) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for inner in value.values() for leaf in _leaves(inner)]
    if isinstance(value, list):
        return [leaf for inner in value for leaf in _leaves(inner)]
    return [value]


@pytest.mark.parametrize("code", CalibrationCode)
def test_every_refusal_is_a_response(code: CalibrationCode) -> None:
    """R6: by its model and by its schema."""
    line = refusal_line(Heading("r-1", Action.FINALIZE), code)
    parse(Response, line, Profile.WIRE)
    schema("response").validate(json.loads(line))


def test_a_probe_is_a_response() -> None:
    """R6: by its model and by its schema."""
    line = answer_line(Heading("r-1", Action.PROBE), probe_result(RUNTIME))
    parse(Response, line, Profile.WIRE)
    schema("response").validate(json.loads(line))
    document = json.loads(line)
    document["result"]["finalize_model_call_count"] = False
    with pytest.raises(EvidenceError):
        parse(Response, json.dumps(document).encode(), Profile.WIRE)


def test_the_path_of_the_program_stays_as_it_was_named() -> None:
    terms = read_sample(sample_request("/root")["payload"], lambda _path: True)
    assert terms.executable == Path(sys.executable)
    assert (terms.sample_id, terms.model, terms.timeout_seconds) == ("s-1", "model-1", 220)
