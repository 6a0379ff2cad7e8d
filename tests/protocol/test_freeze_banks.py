from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.protocol.resources import frozen_folder
from tools import freeze_banks

if TYPE_CHECKING:
    from pathlib import Path

PROBES = "fixtures/reviewer-bias-probes.json"
ANSWERS = "fixtures/reviewer-bias-probe-answers.json"
POLICY = "fixtures/licence-policy.json"
GATES = "fixtures/pilot-gates.json"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    shutil.copytree(frozen_folder() / "fixtures", tmp_path / "fixtures")
    return tmp_path


def files(tree: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (tree / "fixtures").iterdir()}


def change(tree: Path, name: str, before: str, after: str) -> None:
    text = (tree / name).read_text(encoding="utf-8")
    assert before in text
    (tree / name).write_text(text.replace(before, after, 1), encoding="utf-8", newline="")


def test_the_committed_banks_are_frozen(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(tree)
    assert freeze_banks.main(["--check"], root=tree) == 0
    assert freeze_banks.main([], root=tree) == 0
    assert files(tree) == before
    assert "wrote" not in capsys.readouterr().out


def test_a_changed_bank_is_stale_until_frozen_again(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    committed = files(tree)
    change(tree, PROBES, "Style does not count.", "Style counts for nothing.")
    before = files(tree)
    assert freeze_banks.main(["--check"], root=tree) == 1
    assert files(tree) == before
    assert f"stale digest in {POLICY}" in capsys.readouterr().out
    assert freeze_banks.main([], root=tree) == 0
    assert freeze_banks.main(["--check"], root=tree) == 0
    changed = {name for name, data in files(tree).items() if data != before[name]}
    assert changed == {"licence-policy.json"}
    old, new = (json.loads(data["licence-policy.json"]) for data in (committed, files(tree)))
    assert {member for member in old if old[member] != new[member]} == {"bias_probe_case_fixture_hash"}


def test_a_wrong_digest_in_any_of_the_places_is_put_right(tree: Path) -> None:
    for name, member in (
        (GATES, "reviewer_calibration_fixture_hash"),
        (GATES, "reviewer_calibration_case_fixture_hash"),
        (POLICY, "bias_probe_fixture_hash"),
        (POLICY, "bias_probe_case_fixture_hash"),
        (PROBES, "known_answer_fixture_hash"),
        ("fixtures/reviewer-calibration-cases.json", "known_answer_fixture_hash"),
    ):
        committed = files(tree)
        document = json.loads((tree / name).read_bytes()) | {member: "sha256:" + 64 * "0"}
        (tree / name).write_text(json.dumps(document), encoding="utf-8")
        assert freeze_banks.main(["--check"], root=tree) == 1
        assert freeze_banks.main([], root=tree) == 0
        assert files(tree) == committed


def test_a_bank_that_breaks_a_rule_is_not_frozen(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(tree, PROBES, "Style does not count.", "Style is off.")
    before = files(tree)
    assert freeze_banks.main([], root=tree) == 1
    assert files(tree) == before
    assert "arm_word: identical-01/rubric" in capsys.readouterr().out


def test_a_missing_and_a_malformed_bank_are_named(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "fixtures/reviewer-calibration-cases.json").unlink()
    (tree / ANSWERS).write_text("{}")
    assert freeze_banks.main(["--check"], root=tree) == 1
    told = capsys.readouterr().out
    assert "judged: not there yet: fixtures/reviewer-calibration-cases.json" in told
    assert f"bias-probe: {ANSWERS}" in told


@pytest.mark.parametrize("damage", ["missing", "malformed"])
def test_an_unusable_place_for_the_digests_is_named(
    tree: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / GATES).write_text('{"thresholds": ')
    if damage == "missing":
        (tree / GATES).unlink()
    assert freeze_banks.main([], root=tree) == 1
    assert capsys.readouterr().out.count("judged: ") == 2
