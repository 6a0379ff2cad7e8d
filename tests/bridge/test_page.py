"""The page for authors of controllers says what the door does, and its controller works."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.bridge.messages import Request
from skill_effectiveness.bridge.words import BridgeError, ReasonCode
from skill_effectiveness.evidence.documents import parse
from skill_effectiveness.evidence.strict import Profile
from tests.support.bridge import Bridge, prepare_payload
from tests.support.private import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


PAGE = (REPOSITORY / "docs" / "bridge.md").read_text(encoding="utf-8")
CONTROLLER = REPOSITORY / "docs" / "bridge_controller.py"


def test_its_example_is_a_request() -> None:
    """B44: in the recorded form of the first version."""
    (example,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert parse(Request, example.encode(), Profile.WIRE) is not None


def test_its_codes_are_all_there_are_with_their_exits() -> None:
    """B3 B23: each of the 18 once, and only exits that it can have."""
    told: dict[str, set[int]] = {}
    for words, exits in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|([\d, ]*)\| .+ \|$", PAGE, re.MULTILINE):
        for word in re.findall(r"`(\w+)`", words):
            assert word not in told
            told[word] = {int(number) for number in re.findall(r"\d", exits)}
    codes = {code.value for code in ReasonCode}
    assert codes <= told.keys()
    assert told["cost_policy_required"] == told["cost_policy_exceeded"] == set()
    for code in codes - {"cost_policy_required", "cost_policy_exceeded"}:
        assert BridgeError(ReasonCode(code)).exit_code in told[code]


def test_its_controller(bridge: Bridge, tmp_path: Path) -> None:
    """B7 B44: standard library only, from the pin to a completed sample; run twice it finds its receipts."""
    plan = {name: prepare_payload()[name] for name in ("task", "manifest", "runtime", "budget")}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    root = tmp_path / "artifacts"
    root.mkdir(mode=0o700)
    command = [sys.executable, "-I", CONTROLLER, bridge.checkout / "bridge.py", root, tmp_path / "plan.json"]
    results = []
    for _ in range(2):
        done = subprocess.run(  # noqa: S603 - our own program
            command, capture_output=True, check=False, env=bridge.environment, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        results.append(json.loads(done.stdout))
    assert results[0] == {
        "state_version": 2,
        "evidence_tier": "advisory-paired",
        "coverage_limitations": [
            "access_root_enforcement",
            "complete_access_audit",
            "memory_isolation_proof",
            "provider_side_persistence_proof",
        ],
        "replayed_receipt": False,
    }
    assert results[1] == {**results[0], "replayed_receipt": True}
