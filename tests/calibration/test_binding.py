from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.calibration.binding import (
    BINDING,
    CLAIM,
    bind_folder,
    differing_field,
    refuse_claimed,
    repeats_runner_contract,
    runner_hash,
    sample_runner_contract,
)
from skill_effectiveness.calibration.errors import ExaminationRefused, RefusalCode
from skill_effectiveness.calibration.models import Binding, Simulation
from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.protocol.words import BankName
from tests.support.examinations import MANIFEST, OTHER, Anything, open_out

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.root import PrivateRoot

PROPOSAL: dict[str, Any] = {
    "schema_version": 1,
    "artifact_contract": "skill-effectiveness-reviewer-calibration-binding-v1",
    "provider": "simulated",
    "provider_cli_version": "simulated-1",
    "provider_executable_hash": OTHER,
    "model": "sim-1",
    "reviewer_family": "simulated",
    "bank": BankName.JUDGED,
    "known_answer_fixture_hash": OTHER,
    "case_fixture_hash": OTHER,
    "pilot_gates_hash": OTHER,
    "licence_policy_hash": OTHER,
    "prompt_hash": OTHER,
    "repeat_count": 2,
    "timeout_seconds": 220,
    "runtime_manifest_hash": MANIFEST,
    "simulation": Simulation(accuracy=1.0, position_bias=0.0, flakiness=0.0, refusal_rate=0.0, seed=0),
    "synthetic": True,
}
TOKEN = 64 * "c"


@pytest.fixture
def out(tmp_path: Path) -> PrivateRoot:
    return open_out(tmp_path)


def bind(out: PrivateRoot, **changes: Anything) -> Binding:
    return bind_folder(out, {**PROPOSAL, **changes}, ("attempts", "reviewer-calibration.json"))


def refusal(out: PrivateRoot, **changes: Anything) -> tuple[RefusalCode, str | None]:
    with pytest.raises(ExaminationRefused) as caught:
        bind(out, **changes)
    return caught.value.code, caught.value.field


class TestFirstStart:
    def test_publishes_a_claim_and_a_binding_under_one_token(self, out: PrivateRoot) -> None:
        bound = bind(out)
        assert json.loads(out.read(CLAIM)) == {"claim_token": bound.claim_token}
        assert json.loads(out.read(BINDING))["claim_token"] == bound.claim_token
        assert json.loads(out.read(BINDING))["synthetic"] is True

    def test_two_folders_have_two_tokens(self, tmp_path: Path) -> None:
        tokens = {bind(open_out(tmp_path, name=name)).claim_token for name in ("one", "two")}
        assert len(tokens) == 2

    def test_is_refused_where_something_was_claimed(self, out: PrivateRoot) -> None:
        """R30: a claim is for once."""
        refuse_claimed(out)
        bind(out)
        with pytest.raises(ExaminationRefused, match="already claimed"):
            refuse_claimed(out)

    @pytest.mark.parametrize("name", ["attempts", "reviewer-calibration.json"])
    def test_is_refused_among_the_belongings_of_an_unknown_examination(
        self, out: PrivateRoot, name: str
    ) -> None:
        """R30: a pair without its claim is nobody's to continue."""
        out.publish(name, b"{}\n")
        assert refusal(out) == (RefusalCode.CLAIM_INVALID, CLAIM)


class TestTakingUp:
    def test_gives_what_lies_there(self, out: PrivateRoot) -> None:
        assert bind(out) == bind(out)

    def test_a_claim_alone_gets_its_binding(self, out: PrivateRoot) -> None:
        """A kill between the two leaves that."""
        out.publish(CLAIM, dump_line({"claim_token": TOKEN}))
        assert bind(out).claim_token == TOKEN
        assert out.exists(BINDING)

    def test_a_claim_alone_beside_attempts_is_refused(self, out: PrivateRoot) -> None:
        """No kill leaves that: a binding stands before the first attempt."""
        out.publish(CLAIM, dump_line({"claim_token": TOKEN}))
        out.publish("attempts", b"x")
        assert refusal(out) == (RefusalCode.BINDING_INVALID, BINDING)

    def test_a_missing_claim_is_made_again_from_the_binding(self, out: PrivateRoot) -> None:
        bound = bind(out)
        out.remove(CLAIM)
        assert bind(out) == bound
        assert json.loads(out.read(CLAIM)) == {"claim_token": bound.claim_token}

    def test_a_claim_with_another_token_is_left_as_it_is(self, out: PrivateRoot) -> None:
        bind(out)
        out.replace(CLAIM, dump_line({"claim_token": TOKEN}))
        assert refusal(out) == (RefusalCode.CLAIM_INVALID, CLAIM)
        assert json.loads(out.read(CLAIM)) == {"claim_token": TOKEN}

    @pytest.mark.parametrize("data", [b"", b"{}\n", b'{"claim_token":"x"}\n', b'{ "claim_token": "x" }'])
    def test_a_claim_that_cannot_be_read_is_refused(self, out: PrivateRoot, data: bytes) -> None:
        out.publish(CLAIM, data)
        assert refusal(out) == (RefusalCode.CLAIM_INVALID, CLAIM)

    def test_a_claim_that_others_can_read_is_refused(self, out: PrivateRoot, tmp_path: Path) -> None:
        bind(out)
        (tmp_path / "out" / CLAIM).chmod(0o644)
        assert refusal(out) == (RefusalCode.CLAIM_INVALID, CLAIM)

    @pytest.mark.parametrize("spoil", [b"", b"{}\n", b"[" * 1000])
    def test_a_binding_that_cannot_be_read_is_refused(self, out: PrivateRoot, spoil: bytes) -> None:
        bind(out)
        out.replace(BINDING, spoil)
        assert refusal(out) == (RefusalCode.BINDING_INVALID, BINDING)

    def test_a_difference_is_found_before_anything_is_written(self, out: PrivateRoot) -> None:
        """R29: not even the missing claim."""
        bind(out)
        out.remove(CLAIM)
        assert refusal(out, model="sim-2") == (RefusalCode.BINDING_DIFFERS, "model")
        assert not out.exists(CLAIM)


class TestDifferingField:
    @pytest.mark.parametrize("field", [name for name in Binding.model_fields if name != "simulation"])
    def test_each_field_is_named(self, field: str) -> None:
        """R29: whichever it is."""
        held = Binding.model_validate({**PROPOSAL, "claim_token": TOKEN})
        assert differing_field(held, held.model_copy(update={field: "other"})) == field

    def test_equal_bindings_have_none(self) -> None:
        held = Binding.model_validate({**PROPOSAL, "claim_token": TOKEN})
        assert differing_field(held, held.model_copy()) is None

    def test_a_missing_simulation_is_named_as_a_whole(self) -> None:
        held = Binding.model_validate({**PROPOSAL, "claim_token": TOKEN})
        assert differing_field(held, held.model_copy(update={"simulation": None})) == "simulation"


class TestContracts:
    def test_names(self) -> None:
        assert sample_runner_contract("codex") == "codex-cli-reviewer-calibration-single-sample-v1"
        assert repeats_runner_contract("kimi") == "kimi-cli-reviewer-calibration-v1"

    def test_the_hash_of_what_ran(self) -> None:
        """SHA-256 of the canonical text, which an independent tool gives."""
        assert runner_hash("x", "sha256:m", "sha256:e") == (
            "sha256:06321d519f5302871ebcacedacf07e632f8a86432b2597f628b051002d1a445c"
        )
