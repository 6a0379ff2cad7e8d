from __future__ import annotations

import copy
from typing import Any

import pytest

from skill_effectiveness.protocol.capability import CapabilityProbe, eligible, parse_probe, probe_of
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.protocol.errors import ProtocolCode, ProtocolError
from tests.support.frozen_documents import SAFE, probe

OBSERVED = [(probe, name) for probe, names in SAFE.items() for name in names]


def changed(place: str, member: str, value: object) -> dict[str, Any]:
    evidence = copy.deepcopy(probe()["entry"]["evidence"])
    if member == "status":
        evidence[place]["status"] = value
    else:
        evidence[place]["observations"][member] = value
    return probe(evidence)


def refused(value: object) -> str:
    with pytest.raises(ProtocolError) as caught:
        parse_probe(value)
    assert caught.value.code is ProtocolCode.CAPABILITY_INVALID
    return caught.value.where.removeprefix("capability-probe#")


class TestEligible:
    def test_everything_verified_and_safe(self) -> None:
        assert eligible(parse_probe(probe()).entry)

    def test_nobody_is_not_eligible(self) -> None:
        assert not eligible(parse_probe(probe(provider="none")).entry)

    @pytest.mark.parametrize("place", SAFE)
    @pytest.mark.parametrize("status", ["violated", "unverified"])
    def test_each_probe_must_be_verified(self, place: str, status: str) -> None:
        assert not eligible(parse_probe(changed(place, "status", status)).entry)

    @pytest.mark.parametrize(("place", "name"), OBSERVED)
    def test_each_observation_must_be_the_safe_one(self, place: str, name: str) -> None:
        for value in (not SAFE[place][name], None):
            assert not eligible(parse_probe(changed(place, name, value)).entry)


class TestReading:
    def test_a_probe_reads_as_itself(self) -> None:
        read = parse_probe(probe())
        assert isinstance(read, CapabilityProbe)
        assert to_json(read) == probe()
        assert probe_of(read.entry) == read

    def test_both_hashes_are_recomputed(self) -> None:
        assert refused(probe() | {"entry_hash": "sha256:" + 64 * "0"}) == ""
        assert refused(probe(evidence_hash="sha256:" + 64 * "0")) == "/entry"

    @pytest.mark.parametrize("place", SAFE)
    @pytest.mark.parametrize("status", ["isolated", "passing", "pass", None, True])
    def test_no_other_status(self, place: str, status: object) -> None:
        assert refused(changed(place, "status", status)).startswith(f"/entry/evidence/{place}")

    @pytest.mark.parametrize(("place", "name"), OBSERVED)
    def test_observations_are_exact(self, place: str, name: str) -> None:
        where = f"/entry/evidence/{place}/observations/{name}"
        for value in (1, "yes"):
            assert refused(changed(place, name, value)) == where
        evidence = copy.deepcopy(probe()["entry"]["evidence"])
        del evidence[place]["observations"][name]
        assert refused(probe(evidence)) == where

    @pytest.mark.parametrize(
        "row", [{"runner": "/opt/runner"}, {"provider": ""}, {"task_family": "writing"}, {"note": "x"}]
    )
    def test_a_row_is_exact(self, row: dict[str, object]) -> None:
        assert refused(probe(**row)) == f"/entry/{next(iter(row))}"

    @pytest.mark.parametrize("value", [None, [], {}, "probe"])
    def test_something_else_is_refused(self, value: object) -> None:
        refused(value)
