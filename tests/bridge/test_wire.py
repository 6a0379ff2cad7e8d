"""Whatever comes in, one typed line goes out."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.bridge.messages import Request
from skill_effectiveness.bridge.words import Action, ReasonCode, Status
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.trials.models import TrialKey
from tests.support.bridge import (
    ISOLATED,
    SCHEMA,
    UNREAD,
    Bridge,
    Json,
    Reply,
    Stream,
    put_at,
    response_schema,
    spots,
)
from tests.support.pilots import Pilot
from tests.support.private import REPOSITORY
from tests.support.trials import CONTENT, LIMITED, PROFILE, SAFE, cursor

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


KEY = TrialKey("task-a", "profile-full", 1)
OTHERS: tuple[Json, ...] = (5, 1.5, "x", True, None, [], {}, [[]], [{}])


def mismatched(reply: Reply) -> None:
    assert reply.word == "protocol_mismatch", reply
    assert reply.document["status"] == "error"
    assert reply.document["request_id"] == UNREAD


# The envelope.


@pytest.mark.parametrize(
    ("member", "wrong"),
    [
        ("schema", [SCHEMA.replace("v1", "v2"), "", 1, None, [SCHEMA]]),
        ("request_id", ["", "a" * 129, "a b", "a/b", "é", "a\n", 1, None, ["r"]]),
        ("action", ["", "Probe", "sample", 1, None, ["probe"]]),
        ("payload", [None, [], "x", 1]),
    ],
)
def test_a_wrong_member_of_the_envelope(stream: Stream, member: str, wrong: list[Json]) -> None:
    """B1: each member with values that it never has."""
    for value in wrong:
        mismatched(stream.ask(stream.bridge.prepare() | {member: value}))


@pytest.mark.parametrize("member", ["schema", "request_id", "action", "artifact_root", "payload"])
def test_a_missing_member_of_the_envelope(stream: Stream, member: str) -> None:
    """B1: exactly five members."""
    request = stream.bridge.prepare()
    del request[member]
    mismatched(stream.ask(request))


def test_a_member_too_many(stream: Stream) -> None:
    """B1: exactly five members, in the envelope and in each payload."""
    mismatched(stream.ask(stream.bridge.prepare() | {"extra": None}))
    mismatched(stream.ask(stream.bridge.prepare(extra=None)))
    mismatched(stream.ask(stream.bridge.checkpoint(KEY, "running", evidence_tier=None)))
    mismatched(stream.ask(stream.bridge.request("probe", {"phase": "manifest", "extra": 1})))


@pytest.mark.parametrize(
    "root", [None, 1, "", "relative/root", "/no/such/root", ["/"], "/", "/a/../b", "\u0000"]
)
def test_a_root_that_is_none(stream: Stream, root: Json) -> None:
    """B1: a wrong root is evidence, not protocol."""
    reply = stream.ask(stream.bridge.prepare() | {"artifact_root": root})
    assert reply.word == "evidence_invalid"
    assert reply.document["request_id"] == "r-1"


def test_a_probe_with_a_root(stream: Stream) -> None:
    """B1: a probe has none."""
    request = stream.bridge.request("probe", {"phase": "manifest"})
    mismatched(stream.ask(request | {"artifact_root": str(stream.bridge.root)}))


@pytest.mark.parametrize("root", ["link", "open", "checkout", "file"])
def test_an_unsafe_root(bridge: Bridge, stream: Stream, root: str, tmp_path: Path) -> None:
    """B1: a link, a folder that others may write, the checkout, a file."""
    (tmp_path / "link").symlink_to(bridge.root)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "file").write_text("")
    place = stream.bridge.checkout / "fixtures" if root == "checkout" else tmp_path / root
    assert stream.ask(bridge.prepare() | {"artifact_root": str(place)}).word == "evidence_invalid"


def test_a_root_in_the_state_folder(bridge: Bridge) -> None:
    """B1: what is kept there may be thrown away."""
    bridge.state = bridge.folder / "state"
    with bridge.stream() as stream:
        assert stream.ask(bridge.prepare("first")).word == "ok"
        # Read when what was compiled has been kept.
        assert stream.ask(bridge.prepare("first")).replayed
        state = bridge.state / "skill-effectiveness"
        for place in (state, state / "code"):
            before = sorted(place.iterdir())
            assert stream.ask(bridge.prepare() | {"artifact_root": str(place)}).word == "evidence_invalid"
            assert sorted(place.iterdir()) == before
        (bridge.state / "skill-effectiveness-too").mkdir(mode=0o700)
        beside = bridge.prepare() | {"artifact_root": str(bridge.state / "skill-effectiveness-too")}
        assert stream.ask(beside).word == "ok"


# Bytes.

HOSTILE = {
    "blank": b"   ",
    "half an object": b"{",
    "a list": b"[]",
    "a text": b'"x"',
    "UTF-16": "{}".encode("utf-16"),
    "BOM": b"\xef\xbb\xbf{}",
    "no UTF-8": b'{"a":"\xff"}',
    "too large": b" " * 1_048_577,
    "twice the same member": b'{"a":1,"a":2}',
    "escaped twice": b'{"a":1,"\\u0061":2}',
    "NaN": b'{"a":NaN}',
    "infinite": b'{"a":1e999}',
    "half a pair": b'{"a":"\\ud800"}',
    "deep": b"[" * 100_000,
    "deep and whole": b"[" * 65 + b"]" * 65,
    "2^53": b'{"a":9007199254740992}',
    "two values": b"{} {}",
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_bytes(stream: Stream, data: bytes) -> None:
    """B24 F54: no JSON, or more than JSON."""
    mismatched(stream.send(data))


@pytest.mark.parametrize("name", ["too large", "deep", "NaN", "twice the same member"])
def test_hostile_bytes_in_a_process_of_their_own(bridge: Bridge, name: str) -> None:
    """B2 F54: exit 2, one line, no traceback, whatever launch makes of it before."""
    done = bridge.raw(HOSTILE[name])
    reply = Reply.of(done.stdout, done.returncode, done.stderr.decode())
    assert done.returncode == 2
    mismatched(reply)
    assert done.stderr.decode().startswith("protocol_mismatch: ")
    assert done.stderr.count(b"\n") == 1


def test_no_request_at_all(bridge: Bridge) -> None:
    """B2 F54: an empty stdin."""
    done = bridge.raw(b"")
    assert done.returncode == 2
    mismatched(Reply.of(done.stdout, done.returncode))


@pytest.mark.parametrize("arguments", [("x",), ("--stream", "--stream"), ("--help",)])
def test_arguments(bridge: Bridge, arguments: tuple[str, ...]) -> None:
    """B1: none, or --stream alone."""
    done = bridge.raw(b"", *arguments)
    assert done.returncode == 2
    mismatched(Reply.of(done.stdout, done.returncode))


def test_white_space_around_a_request_is_none_of_it(stream: Stream) -> None:
    """F54: a line may end with CR LF."""
    assert stream.send(json.dumps(stream.bridge.prepare("crlf")).encode() + b" \t\r").word == "ok"


@pytest.mark.parametrize("switches", [ISOLATED, ()], ids=["isolated", "replaced"])
def test_a_process_without_a_stderr(bridge: Bridge, switches: tuple[str, ...]) -> None:
    """B2 B41: what is told goes nowhere, and answer and exit code are the same."""

    def alone(data: bytes, *arguments: str) -> Reply:
        closed: dict[str, Json] = {"preexec_fn": lambda: os.close(2), "stderr": None, "switches": switches}
        process = bridge.start(*arguments, **closed)
        out, _ = process.communicate(data, timeout=60)
        return Reply.of(out, process.returncode)

    missing = json.dumps(bridge.checkpoint(KEY, "failed")).encode()
    assert alone(b"{").exit_code == 2
    assert (alone(missing).word, alone(missing).exit_code) == ("artifact_missing", 3)
    assert alone(json.dumps(bridge.prepare()).encode() + b"\n", "--stream").exit_code == 0


# Types at every depth.

NULLABLE = {"tokens", "wall_time_seconds", "tool_calls", "cost_units"}
EVIDENCE = set(SAFE)


def kind(value: Json) -> str:
    return "number" if type(value) in (int, float) else type(value).__name__


def allowed(place: tuple[str | int, ...], old: Json, new: Json) -> bool:
    """Whether a place takes another type than the one it has."""
    name = place[-1] if place else ""
    if kind(old) == kind(new):
        # A fraction is no integer, and a list of lists no list of texts.
        amount = "budget" in place or "consumed_budget" in place
        return not (type(old) is int and type(new) is float and not amount)
    if name in NULLABLE and ("budget" in place or "consumed_budget" in place):
        return (new is None or kind(new) == "number") and "consumed_budget" not in place
    if name in EVIDENCE:
        return new is None or (isinstance(new, str) or (isinstance(old, bool) and isinstance(new, bool)))
    if name in {"expected_isolation_evidence", "resume_cursor", "stop_reason", "isolation_evidence"}:
        return new is None
    return name == "expected_state_version" and new is None


def fuzzed(stream: Stream, request: dict[str, Any], skipped: frozenset[str] = frozenset()) -> int:
    """Put every other type at every place of a payload; how many requests that were."""
    asked = 0
    for place in spots(request["payload"]):
        old: Json = request["payload"]
        for step in place:
            old = old[step]
        if place and place[0] in skipped:
            continue
        for new in OTHERS:
            if allowed(place, old, new) or (isinstance(old, list | dict) and kind(old) == kind(new)):
                continue
            reply = stream.ask(request | {"payload": put_at(request["payload"], place, new)})
            assert reply.word == "protocol_mismatch", (place, new, reply)
            asked += 1
    return asked


@pytest.mark.parametrize("registry", [PROFILE, CONTENT])
def test_types_in_prepare(stream: Stream, registry: Any) -> None:  # noqa: ANN401 - an enum of the product
    """B24: no value of another type is taken, at any depth."""
    from tests.support.bridge import prepare_payload  # noqa: PLC0415 - beside what it is for

    payload = prepare_payload(registry) | {
        "budget": dict(LIMITED),
        "expected_isolation_evidence": dict(SAFE),
        "expected_read_allow_roots": ["/a"],
        "expected_write_allow_roots": ["/b"],
        "registry_plan_path": "plan.json",
    }
    assert fuzzed(stream, stream.bridge.request("prepare", payload)) > 200


def test_types_in_checkpoint(stream: Stream) -> None:
    """B24: likewise; the two declarations are judged later."""
    request = stream.bridge.completion(
        KEY, resume_cursor=cursor(), stop_reason="done", expected_state_version=0
    )
    declarations = frozenset({"access_audit_complete", "access_roots_enforced"})
    assert fuzzed(stream, request, declarations) > 100


def test_types_in_evaluate(stream: Stream, tmp_path: Path) -> None:
    """B24: likewise, down to the plan rows."""
    pilot = Pilot(tmp_path, samples=1)
    gates = json.loads((REPOSITORY / "fixtures" / "pilot-gates.json").read_bytes())
    payload = {
        "registry_schema": "paired-profile",
        "evidence_path": "bundle",
        "config": gates,
        "expected_tasks": pilot.expected.tasks[:1],
        "expected_manifests": list(pilot.expected.manifests)[:1],
        "expected_trials": pilot.rows[:1],
    }
    skipped = frozenset({"config", "expected_trials"})
    assert fuzzed(stream, stream.bridge.request("evaluate", payload), skipped) > 100
    for name in ("tasks", "manifests", "trials"):
        for new in (5, "x", None, {}, [5], ["x"], [None], [[]]):
            mismatched(stream.ask(stream.bridge.request("evaluate", payload | {f"expected_{name}": new})))
    row = pilot.rows[0]
    for member in row:
        wrong = "x" if not isinstance(row[member], str) else 5
        rows = [row | {member: wrong}]
        mismatched(stream.ask(stream.bridge.request("evaluate", payload | {"expected_trials": rows})))
    for member in gates:
        wrong = "x" if not isinstance(gates[member], str) else 5
        changed = payload | {"config": gates | {member: wrong}}
        mismatched(stream.ask(stream.bridge.request("evaluate", changed)))


@pytest.mark.parametrize(
    "changes",
    [
        {"config": ...},
        {"config_path": "c.json"},
        {"config": ..., "config_path": "c.json"},
        {"config": ..., "config_sha256": "sha256:" + "0" * 64},
        {"config": ..., "config_path": "c.json", "config_sha256": "0" * 64},
        {"evaluation_kind": "reviewer-calibration"},
        {"calibration": {}},
        {"evidence_tier": "causal"},
    ],
)
def test_members_of_evaluate(stream: Stream, changes: dict[str, Json]) -> None:
    """B31: each value once, and nothing of calibrations; no file comes into being."""
    from tests.support.bridge import changed  # noqa: PLC0415 - beside what it is for

    payload: dict[str, Json] = {
        "registry_schema": "paired-profile",
        "evidence_path": "bundle",
        "config": {},
        "expected_tasks": [],
        "expected_manifests": [],
        "expected_trials": [],
    }
    request = stream.bridge.request("evaluate", changed(payload, changes), "e-none")
    before = sorted(stream.bridge.root.rglob("*"))
    mismatched(stream.ask(request))
    assert sorted(stream.bridge.root.rglob("*")) == before


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"phase": "third"},
        {"phase": "full"},
        {"phase": "full", "pinned_manifest": None},
        {"phase": "full", "pinned_manifest": {"schema_version": "1", "entries": [], "manifest_hash": "x"}},
        {"phase": "full", "pinned_manifest": {"schema_version": 1, "entries": {}, "manifest_hash": "x"}},
        {"phase": "manifest", "pinned_manifest": {}},
    ],
)
def test_payloads_of_a_probe(stream: Stream, payload: dict[str, Json]) -> None:
    """B9: a pin in phase full, of the right types, and in no other phase."""
    mismatched(stream.ask(stream.bridge.request("probe", payload)))


# What never comes out.


def test_nothing_of_a_request_comes_back(bridge: Bridge) -> None:
    """B5 B46: a canary in every text of a payload, and in the path of the root."""
    canary = "zq7canary"
    root = bridge.folder / f"root-{canary}"
    root.mkdir(mode=0o700)
    key = TrialKey(f"task-{canary}", "profile-full", 1)
    requests = [
        bridge.prepare("r-1", registry_plan_path=f"plans/{canary}.json"),
        bridge.prepare("r-1", task=bridge.prepare()["payload"]["task"] | {canary: canary}),
        bridge.prepare("r-1", runtime={"provider": canary}),
        bridge.prepare("r-1", registry_schema=canary),
        bridge.checkpoint(key, "running", "r-1", resume_cursor=cursor()),
        bridge.checkpoint(key, "running", "r-1", stop_reason=canary, resume_cursor={canary: canary}),
        bridge.checkpoint(key, canary, "r-1"),
        bridge.checkpoint(key, "failed", "r-1", **{canary: canary}),
        bridge.request("evaluate", {canary: canary}, "r-1"),
        bridge.request(canary, {}, "r-1"),
        bridge.prepare("r-1"),
    ]
    data = b"".join(json.dumps(one | {"artifact_root": str(root)}).encode() + b"\n" for one in requests)
    done = bridge.raw(data, "--stream")
    assert done.returncode == 0
    assert done.stdout.count(b"\n") == len(requests)
    assert canary.encode() not in done.stdout
    assert canary.encode() not in done.stderr
    assert b"Traceback" not in done.stderr


# The closed words.


def test_schemas_models_and_code_name_the_same_words() -> None:
    """B3: actions, statuses and reason codes."""
    definitions = response_schema().schema["$defs"]
    assert definitions["Action"]["enum"] == [action.value for action in Action]
    assert definitions["ReasonCode"]["enum"] == [code.value for code in ReasonCode]
    assert len(ReasonCode) == 18
    assert [status.value for status in Status] == ["ok", "blocked", "error"]
    request = json.loads((REPOSITORY / "schemas" / "bridge-request.schema.json").read_bytes())
    assert set(request["discriminator"]["mapping"]) == {action.value for action in Action}


def test_what_is_asked_here_is_what_the_schema_asks_for(bridge: Bridge) -> None:
    """B3: requests that are answered fit the published model."""
    for request in (
        bridge.request("probe", {"phase": "manifest"}),
        bridge.prepare(),
        bridge.checkpoint(KEY, "running", resume_cursor=cursor()),
        bridge.completion(KEY),
    ):
        assert validate(Request, request) is not None
