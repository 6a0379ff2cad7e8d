"""Orders by their digests, workers by what they are like, rewards as they come back."""

from __future__ import annotations

import json

import pytest

from skill_effectiveness.evidence.canonical import digest_bytes, dump
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.studies.cluster_orders import (
    Likeness,
    WorkerFacts,
    order_bytes,
    read_order,
    read_rewards,
    rewards_bytes,
    unlike,
)
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.rewards import FAILED, INVALID, Reward
from skill_effectiveness.studies.words import GradeState

D = "sha256:" + "d" * 64
BUDGET = {"tokens": None, "wall_time_seconds": None, "tool_calls": None, "cost_units": None}
COMMON = {
    "root_id": "root-" + "0" * 32,
    "plan_digest": D,
    "driver": {"provider": "simulated", "model": "m"},
    "isolation": {"sandbox": "none", "audit": "none", "network": "none"},
    "inputs": [D],
    "runtime_manifest_hash": D,
}
ATTEMPT = {
    **COMMON,
    "kind": "attempt",
    "slot": 1,
    "attempt": 1,
    "task_id": "t",
    "arm": "off",
    "sample": 1,
    "salt": "0" * 64,
    "budget": BUDGET,
}
GRADE = {
    **COMMON,
    "kind": "grade",
    "task": {
        "task_id": "t",
        "task_hash": D,
        "tree": D,
        "grader_hash": D,
        "family": "implementation",
        "limits": {"agent_seconds": 1.0, "verifier_seconds": 1.0},
    },
    "work": D,
    "workdir": "/app",
    "env": {},
}
ASSAY = {**COMMON, "kind": "assay", "batch": 1, "phase": "open", "arm": "full", "salt": "0" * 64}


@pytest.mark.parametrize("order", [ATTEMPT, GRADE, ASSAY])
def test_an_order_is_named_by_its_bytes(order: dict[str, object]) -> None:
    """S30: read strictly; the same again has the same name."""
    data = dump(order)
    found, digest = read_order(data)
    assert digest == digest_bytes(data)
    assert order_bytes(found) == data
    assert found.kind == order["kind"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"kind":"attempt"}',
        dump(ATTEMPT | {"kind": "rm"}),
        dump(ATTEMPT | {"kind": ["attempt"]}),
        dump(ATTEMPT | {"root_id": "../../etc"}),
        dump(ATTEMPT | {"root_id": "root-a/b"}),
        dump(ATTEMPT | {"path": "/x"}),
        dump(ATTEMPT | {"inputs": ["../x"]}),
        dump(ATTEMPT) + b"\n",
        json.dumps(ATTEMPT).encode(),
        b'{"arm":"off",' + dump(ATTEMPT)[1:],
    ],
)
def test_orders_that_are_none(data: bytes) -> None:
    """S30: a worker takes nothing else from the network."""
    with pytest.raises(StudyError) as caught:
        read_order(data)
    assert caught.value.code is StudyCode.ORDER_INVALID


@pytest.mark.parametrize("field", ["runtime_manifest_hash", "executable_hash", "cli_version"])
@pytest.mark.parametrize("value", ["sha256:" + "0" * 64, None])
def test_an_unlike_worker(field: str, value: str | None) -> None:
    """S32: another manifest, program or version, or none that it knows of."""
    wanted = Likeness(executable_hash=D, cli_version="1", runtime_manifest_hash=D)
    like = WorkerFacts(
        host="h", pid=1, versions={}, runtime_manifest_hash=D, executable_hash=D, cli_version="1"
    )
    assert unlike(like, wanted) is None
    assert unlike(like.model_copy(update={field: value}), wanted) == field


def test_versions_of_libraries_do_not_count() -> None:
    """S32: the manifest pins what decides."""
    wanted = Likeness(executable_hash=D, cli_version="1", runtime_manifest_hash=D)
    other = WorkerFacts(
        host="h", pid=1, versions={"python": "4"}, runtime_manifest_hash=D, executable_hash=D, cli_version="1"
    )
    assert unlike(other, wanted) is None


@pytest.mark.parametrize(
    "rewards",
    [
        (FAILED, INVALID),
        (Reward(GradeState.VALID, 0.25, {"speed": 2.0}), Reward(GradeState.VALID, 1.0)),
    ],
)
def test_rewards_there_and_back(rewards: tuple[Reward, Reward]) -> None:
    """S30: both gradings, with what they measured besides."""
    assert read_rewards(rewards_bytes(rewards)) == rewards


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b'{"rewards":[]}',
        b'{"rewards":[{"state":"valid","reward":1,"secondary":{}}]}',
        b'{"rewards":[{"state":"valid","reward":1.5,"secondary":{}},{"state":"valid","reward":1,"secondary":{}}]}',
        b'{"rewards":[{"state":"valid","reward":null,"secondary":{}},{"state":"valid","reward":1,"secondary":{}}]}',
        b'{"rewards":[{"state":"grader_failed","reward":1,"secondary":{}},{"state":"grader_failed"}]}',
        dump({"rewards": [{"state": "grader_failed", "reward": 1, "secondary": {}}] * 2}),
        b'{"rewards":[{"state":"valid","reward":true,"secondary":{}},{"state":"valid","reward":1,"secondary":{}}]}',
    ],
)
def test_rewards_that_are_none(data: bytes) -> None:
    """S30 S41: a worker cannot hand in what no grader could have said."""
    with pytest.raises(EvidenceError):
        read_rewards(data)
