"""`run.py smoke`: exits and lines of trials.md, section 10."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.commands import no_traceback, run
from tests.support.private import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.commands import Said
    from tests.support.pilots import Anything

FIXTURE = REPOSITORY / "fixtures" / "e10-smoke.json"
LINES = (
    "execution_status=complete\n"
    "pilot_gate_status=not_evaluated_synthetic\n"
    "trials=18 live_model_calls=false enforcement=advisory\n"
    "result=smoke-result.json\n"
)


def fixture(folder: Path, change: Callable[[Anything], object]) -> Path:
    document = json.loads(FIXTURE.read_bytes())
    changed = change(document)
    path = folder / "fixture.json"
    path.write_text(json.dumps(changed if isinstance(changed, list) else document), encoding="utf-8")
    return path


def test_exit_three_twice_in_one_folder(home: Path) -> None:
    """T50 T54 T56: complete and by intent not evaluated, in a process of its own, and again by replay."""
    for _ in range(2):
        said = run(home, "smoke", "--fixture", FIXTURE, "--out", "out")
        assert (said.code, said.out, said.err) == (3, LINES, "")
    assert len(list((home / "out" / "history").iterdir())) == 1


def test_an_injected_violation_exits_one(command: Callable[..., Said], home: Path) -> None:
    """T51 T54: and a rerun over contaminated trials is refused."""
    event = {"actor": "tested-agent", "operation": "read", "path": "/etc/passwd"}
    path = fixture(home, lambda document: document["synthetic_extra_access_events"].append(event))
    said = command("smoke", "--fixture", path, "--out", "out")
    assert said.code == 1
    assert said.out.splitlines()[:2] == ["execution_status=failed", "pilot_gate_status=fail"]
    assert "failed: total_contamination_rate" in said.err
    again = command("smoke", "--fixture", path, "--out", "out")
    assert "ended without completing" in again.refusal


def test_a_mutated_outcome_exits_two(command: Callable[..., Said], home: Path) -> None:
    """T51: the sentence names the field, and no result stays that could be taken for this run's."""
    command("smoke", "--fixture", FIXTURE, "--out", "out")
    path = next((home / "out" / "trials").glob("*/*/sample-*/outcome/result.json"))
    path.write_bytes(b'{"synthetic":true}')
    assert "does not count as completed" in command("smoke", "--fixture", FIXTURE, "--out", "out").refusal
    assert not (home / "out" / "smoke-result.json").exists()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda _document: [], "object"),
        (lambda document: document.update(extra=1), "/extra"),
        (lambda document: document.update(samples=0), "/samples"),
        (lambda document: document.update(live_model_calls=True), "/live_model_calls"),
        (lambda document: document["capability_matrix"][0].update(provider="codex"), "/capability_matrix/0"),
    ],
)
def test_a_fixture_that_is_none(
    command: Callable[..., Said], home: Path, change: Callable[[Anything], object], told: str
) -> None:
    """T50: a sentence with the pointer, and nothing is written."""
    said = command("smoke", "--fixture", fixture(home, change), "--out", "out")
    assert told in said.refusal
    assert no_traceback(said)
    assert not (home / "out").exists()


@pytest.mark.parametrize("text", [b"", b"{", b'{"samples": NaN}', b'{"a":1,"a":2}', b"[" * 100_000])
def test_bytes_that_are_no_fixture(command: Callable[..., Said], home: Path, text: bytes) -> None:
    (home / "fixture.json").write_bytes(text)
    said = command("smoke", "--fixture", "fixture.json", "--out", "out")
    assert said.refusal
    assert not (home / "out").exists()


class TestGates:
    def test_tier_and_budgets_are_the_callers(self, command: Callable[..., Said], home: Path) -> None:
        """T7 T64: the tier of the caller's gates is the one that is taken out."""
        gates = json.loads((REPOSITORY / "fixtures" / "pilot-gates.json").read_bytes())
        gates["evidence_tier"] = {"schema_version": 1, "requested_tier": "causal", "waived_items": []}
        gates["budgets"]["tokens"] = 1000
        (home / "gates.json").write_text(json.dumps(gates), encoding="utf-8")
        said = command("smoke", "--fixture", FIXTURE, "--out", "out", "--pilot-gates", "gates.json")
        assert (said.code, said.out) == (3, LINES)
        gate = json.loads((home / "out" / "smoke-result.json").read_bytes())["pilot_gate"]
        assert gate["evidence_tier_overridden_from"] == gates["evidence_tier"]

    def test_a_threshold_is_not(self, command: Callable[..., Said], home: Path) -> None:
        """T7: refused by pointer, and nothing is written."""
        gates = json.loads((REPOSITORY / "fixtures" / "pilot-gates.json").read_bytes())
        gates["thresholds"]["samples_per_task_arm_min"] = 1
        (home / "gates.json").write_text(json.dumps(gates), encoding="utf-8")
        said = command("smoke", "--fixture", FIXTURE, "--out", "out", "--pilot-gates", "gates.json")
        assert "/thresholds/samples_per_task_arm_min" in said.refusal
        assert not (home / "out").exists()


def test_an_out_folder_that_cannot_be_one(command: Callable[..., Said], home: Path) -> None:
    (home / "open").mkdir(mode=0o755)
    (home / "open").chmod(0o755)
    assert command("smoke", "--fixture", FIXTURE, "--out", "open").refusal
    assert list((home / "open").iterdir()) == []
    assert command("smoke", "--fixture", FIXTURE, "--out", REPOSITORY / "smoke").refusal
    assert not (REPOSITORY / "smoke").exists()
