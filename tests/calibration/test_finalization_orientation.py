from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.calibration.errors import CalibrationCode, CalibrationError
from skill_effectiveness.calibration.finalization import derive_again
from skill_effectiveness.calibration.orientation import draw_seats, key_commitment
from skill_effectiveness.protocol.words import BankName, Verdict
from tests.support.controller import INTENT, METRICS, Controller
from tests.support.examinations import Scripted, always, open_out

if TYPE_CHECKING:
    from pathlib import Path


def line(value: object) -> bytes:
    """Canonical JSON of a document with ASCII texts and whole numbers, and LF."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode() + b"\n"


@pytest.fixture
def controller(tmp_path: Path) -> Controller:
    return Controller(tmp_path).sampled()


def turned_over(path: Path) -> None:
    """Every case of an observation the other way round, with the verdict that then gives the same."""
    observation = json.loads(path.read_bytes())
    for shown in observation["shown"]:
        shown["orientation"] = 1 - shown["orientation"]
        shown["verdict"] = {"A win": "B win", "B win": "A win"}.get(shown["verdict"], "tie")
    path.write_bytes(line(observation))


def redrawn(root: Path) -> None:
    """Another key, and observations that it draws and that give the same judgements."""
    key = bytes(range(32))
    (root / ".orientation.key").write_bytes(key)
    for path in (root / "observations").iterdir():
        observation = json.loads(path.read_bytes())
        sample = json.loads((root / "samples" / path.name).read_bytes())
        bank = {each["case_id"]: Verdict(each["verdict"]) for each in sample["judgments"]}
        seats = draw_seats(observation["case_fixture_hash"], bank, observation["sample_id"], key)
        observation["shown"] = [
            {
                "case_id": case_id,
                "orientation": int(swapped),
                "verdict": (bank[case_id].turned() if swapped else bank[case_id]).value,
            }
            for case_id, swapped in seats
        ]
        observation["orientation_key_hash"] = key_commitment(key)
        path.write_bytes(line(observation))


class TestOrientation:
    """What was shown how follows from the key that lies beside it, and from nothing else."""

    def test_an_observation_turned_over_as_a_whole(self, tmp_path: Path) -> None:
        """R4 R16: bits and verdicts together."""
        controller = Controller(tmp_path, Scripted(always("A win"))).sampled()
        turned_over(controller.root / "observations/s-2.json")
        assert controller.finalize().word == "sample_invalid"
        assert not (controller.root / INTENT).exists()
        assert controller.sample("s-3").word == "artifact_root_quarantined"
        assert controller.calls == 2

    def test_an_observation_in_another_order(self, controller: Controller) -> None:
        path = controller.root / "observations/s-1.json"
        observation = json.loads(path.read_bytes())
        observation["shown"].reverse()
        path.write_bytes(line(observation))
        assert controller.finalize().word == "sample_invalid"

    def test_a_replaced_key(self, controller: Controller) -> None:
        """R4: whatever it draws, the samples were drawn with another."""
        (controller.root / ".orientation.key").write_bytes(bytes(32))
        assert controller.finalize().word == "sample_invalid"
        assert controller.sample("s-3").word == "artifact_root_quarantined"

    def test_a_key_that_is_gone(self, controller: Controller) -> None:
        """R4: a new one is not made beside samples that it did not draw."""
        (controller.root / ".orientation.key").unlink()
        assert controller.finalize().word == "sample_invalid"
        assert controller.sample("s-3").word == "artifact_root_quarantined"
        assert not (controller.root / ".orientation.key").exists()

    def test_a_key_that_is_not_private(self, controller: Controller) -> None:
        (controller.root / ".orientation.key").chmod(0o644)
        assert controller.finalize().word == "artifact_root_quarantined"

    def test_keys_and_observations_replaced_after_the_publication(
        self, controller: Controller, tmp_path: Path
    ) -> None:
        """R4: an opened key is checked against the commitment that was published."""
        controller.finalize()
        with open_out(tmp_path, name="root") as root:
            assert derive_again(root).calibration.bank is BankName.JUDGED
        redrawn(controller.root)
        with open_out(tmp_path, name="root") as root, pytest.raises(CalibrationError) as caught:
            derive_again(root)
        assert caught.value.code is CalibrationCode.SAMPLE_INVALID
        assert METRICS in caught.value.sentence
        controller.file(METRICS).unlink()
        with open_out(tmp_path, name="root") as root:
            assert derive_again(root).sheet.reviewers[0].orientation_key_hashes
