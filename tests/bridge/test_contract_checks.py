"""The checks that the contract names (bridge.md section 9): each is there under its name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.bridge_pilots import Evaluation
from tests.support.private import REPOSITORY
from tests.support.trials import CONTENT

pytestmark = pytest.mark.slow

TESTS = Path(REPOSITORY) / "tests"
NAMES = (
    "ProfileRegistryAndEvidenceTier",
    "SkillEventsV2Fixture",
    "provider_probe_persists_no_leak_evidence_without_false_promotion",
    "claude_reviewer_calibration_reuses_code_review_safety_contract",
    "opencode_reviewer_calibration_uses_native_session_evidence_without_review_parser",
    "kimi_reviewer_calibration_uses_private_native_stream_without_review_parser",
    "active_control_cli_prepares_finalizes_and_verifies_private_artifact",
)


# The ids must not hold the names, or this very test would be found under them.
@pytest.mark.parametrize("name", NAMES, ids=[str(number) for number in range(len(NAMES))])
def test_each_name_selects_a_test(name: str) -> None:
    """B48: `pytest -k NAME` finds it."""
    holding = [str(path) for path in TESTS.rglob("test_*.py") if name in path.read_text(encoding="utf-8")]
    assert holding
    told = subprocess.run(  # noqa: S603 - our own interpreter
        [
            sys.executable,
            "-m",
            "pytest",
            "--collect-only",
            "-q",
            "-n",
            "0",
            "-p",
            "no:cacheprovider",
            "-k",
            name,
            *holding,
        ],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line for line in told.stdout.splitlines() if "::" in line]


def test_the_smoke_of_the_contract_exits_with_3(tmp_path: Path) -> None:
    """B48: over the published fixture, into a new private folder."""
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [
            sys.executable,
            "run.py",
            "smoke",
            "--fixture",
            "fixtures/e10-smoke.json",
            "--out",
            str(tmp_path / "out"),
        ],
        cwd=REPOSITORY,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 3


class TestProfileRegistryAndEvidenceTier:
    """The second registry, and the path of a verdict that has a tier."""

    def test_the_paired_profile_is_advisory_and_says_what_it_lacks(self, tmp_path: Path) -> None:
        """B48: the six waivers by name, and no word of causal evidence."""
        evaluation = Evaluation(tmp_path)
        tier = evaluation.bridge.ask(evaluation.request()).result["verdict"]["evidence_tier"]
        assert (tier["registry_schema"], tier["verdict_tier"]) == ("paired-profile", "advisory-paired")
        assert tier["declared_waivers"] == [
            "access_root_enforcement",
            "complete_access_audit",
            "live_matched_call_gate",
            "memory_isolation_proof",
            "mount_evidence",
            "provider_side_persistence_proof",
        ]

    def test_the_skill_content_is_causal_and_waives_nothing(self, tmp_path: Path) -> None:
        """B48: the same path for the other registry."""
        evaluation = Evaluation(tmp_path, CONTENT)
        tier = evaluation.bridge.ask(evaluation.request()).result["verdict"]["evidence_tier"]
        assert (tier["registry_schema"], tier["verdict_tier"]) == ("skill-content", "causal")
        assert tier["declared_waivers"] == []
