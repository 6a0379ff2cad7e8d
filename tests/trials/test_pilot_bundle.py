from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.faults import RootError
from skill_effectiveness.trials.gate_words import GateStatus
from skill_effectiveness.trials.pilot_bundle import open_bundle
from skill_effectiveness.trials.pilot_errors import PilotCode, PilotError
from skill_effectiveness.trials.pilot_records import CLAIMS, read_record
from tests.support import trials
from tests.support.examinations import INPUTS, UnsyncedFs
from tests.support.killing_fs import Died, MortalFs
from tests.support.pilots import Pilot, pair_bytes, probe_file
from tests.support.private import content, wrong_modes
from tests.support.trials import put

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.pilots import Anything


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with everything that one can have."""
    folder = tmp_path_factory.mktemp("bundle")
    pilot = Pilot(folder)
    pilot.run()
    pilot.write(
        sealed=True,
        pairs=[pair_bytes("x"), pair_bytes("y")],
        probes=[probe_file("review", "codex"), probe_file("implementation", "codex")],
    )
    return folder


@pytest.fixture
def pilot(finished: Path, tmp_path: Path) -> Pilot:
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return Pilot(tmp_path)


def refused(pilot: Pilot) -> PilotError:
    with pilot.root() as root, pytest.raises(PilotError) as caught:
        open_bundle(root, INPUTS)
    assert str(pilot.bundle) not in str(caught.value)
    return caught.value


class TestWriting:
    def test_what_a_bundle_holds(self, pilot: Pilot) -> None:
        document = json.loads((pilot.bundle / "bundle.json").read_bytes())
        assert set(document) == {
            "schema_version",
            "artifact_contract",
            "records_hash",
            "record_count",
            "calibration_hash",
            "calibration_result_hash",
            "config_hash",
            "plan_binding_hash",
            "calibrations",
            "capability_probes",
            "trials_tree_hash",
            "bundle_hash",
        }
        assert document["artifact_contract"] == "skill-effectiveness-pilot-evidence-v1"
        assert document["record_count"] == 12
        assert wrong_modes(pilot.bundle) == []

    def test_rows_say_what_is_on_disk(self, pilot: Pilot) -> None:
        rows = [json.loads(line) for line in (pilot.bundle / "trial-records.jsonl").read_bytes().splitlines()]
        assert [row["run_order"] for row in rows] == list(range(1, 13))
        first = {name: rows[0][name] for name in CLAIMS if name in rows[0]}
        assert first == {
            "runner_completed": True,
            "manifest_diff_valid": True,
            "off_ccl_residual": False,
            "skill_events_verifiable": True,
            "blinding_leak": False,
            "deterministic_replay_match": True,
            "contaminated": False,
            "budget_complete": True,
            "access_audit_ok": True,
            "memory_isolation_ok": True,
        }

    def test_a_folder_that_holds_something_is_left_alone(self, pilot: Pilot) -> None:
        before = content(pilot.bundle)
        with pytest.raises(PilotError) as caught:
            pilot.write()
        assert caught.value.code is PilotCode.BUNDLE_OCCUPIED
        assert content(pilot.bundle) == before

    def test_copies_hold_the_evidence_and_no_lock(self, pilot: Pilot) -> None:
        key = pilot.trials()[0]
        copied = pilot.bundle / "trials" / key.path
        assert sorted(
            path.relative_to(copied).as_posix() for path in copied.rglob("*") if path.is_file()
        ) == [
            "access-audit.jsonl",
            "events.jsonl",
            "grading/grade-replay.json",
            "grading/grade.json",
            "outcome/result.json",
            "trial.json",
        ]


class TestInterrupted:
    STEPS = 12

    @pytest.mark.parametrize("part", range(STEPS))
    def test_half_a_bundle_is_none(self, pilot: Pilot, part: int) -> None:
        """Killed before its last step, a bundle has no document, and a later one needs an empty folder."""
        shutil.rmtree(pilot.bundle)
        pilot.fs = MortalFs(UnsyncedFs(), 1 + part * 8)
        with pytest.raises(Died):
            pilot.write(sealed=True)
        pilot.fs = UnsyncedFs()
        if pilot.bundle.exists():
            assert refused(pilot).code is PilotCode.BUNDLE_MISSING
            shutil.rmtree(pilot.bundle)
        pilot.write(sealed=True)
        assert pilot.evaluate(stored=False).result.status is GateStatus.PASS


class TestOpening:
    def test_what_comes_out(self, pilot: Pilot) -> None:
        with pilot.root() as root:
            found = open_bundle(root, INPUTS)
            assert [pair.standing.value for pair in found.pairs] == ["loaded", "loaded"]
            assert {probe.row.task_family.value for probe in found.probes} == {"review", "implementation"}
            assert sum(1 for _row in found.rows()) == 12

    @pytest.mark.parametrize(
        "name",
        [
            "bundle.json",
            "trial-records.jsonl",
            "reviewer-calibration.json",
            "reviewer-calibration-result.json",
            "calibrations/y/reviewer-calibration.json",
            "calibrations/y/reviewer-calibration-result.json",
            "calibrations/y",
            "capability",
            "trials",
        ],
    )
    def test_a_part_that_is_not_there(self, pilot: Pilot, name: str) -> None:
        path = pilot.bundle / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        found = refused(pilot)
        assert found.code is PilotCode.BUNDLE_MISSING
        assert found.where == name

    @pytest.mark.parametrize(
        "name",
        [
            "reviewer-calibration.json",
            "reviewer-calibration-result.json",
            "calibrations/y/reviewer-calibration.json",
            "calibrations/y/reviewer-calibration-result.json",
        ],
    )
    def test_a_document_with_another_digest(self, pilot: Pilot, name: str) -> None:
        changed = json.loads((pilot.bundle / name).read_bytes()) | {"more": 1}
        put(pilot.bundle / name, json.dumps(changed).encode())
        assert (refused(pilot).code, refused(pilot).where) == (PilotCode.BUNDLE_MISMATCH, name)

    @pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"a":NaN}'])
    def test_a_bundle_document_that_is_none(self, pilot: Pilot, data: bytes) -> None:
        put(pilot.bundle / "bundle.json", data)
        assert refused(pilot).code is PilotCode.BUNDLE_INVALID

    @pytest.mark.parametrize(
        "change",
        [
            {"records_hash": trials.digest("9")},
            {"record_count": 11},
            {"calibration_hash": trials.digest("9")},
            {"capability_probes": []},
            {"trials_tree_hash": trials.digest("9")},
        ],
    )
    def test_a_digest_that_binds_something_else(self, pilot: Pilot, change: dict[str, Anything]) -> None:
        pilot.edit_bundle(**change)
        assert refused(pilot).code is PilotCode.BUNDLE_MISMATCH

    def test_the_bundle_hash_is_over_the_rest(self, pilot: Pilot) -> None:
        document = json.loads((pilot.bundle / "bundle.json").read_bytes())
        put(pilot.bundle / "bundle.json", json.dumps(document | {"record_count": 13}).encode())
        assert (refused(pilot).code, refused(pilot).where) == (PilotCode.BUNDLE_MISMATCH, "bundle.json")

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            (lambda data: data[:-1], PilotCode.BUNDLE_INVALID),
            (lambda data: data + b"\n", PilotCode.BUNDLE_INVALID),
            (lambda data: data.replace(b"\n", b"", 1), PilotCode.BUNDLE_INVALID),
            (lambda data: data.replace(b"task-a", b"task-b", 1), PilotCode.BUNDLE_MISMATCH),
            (lambda data: data.split(b"\n", 1)[1], PilotCode.BUNDLE_MISMATCH),
        ],
    )
    def test_rows_that_were_changed(
        self, pilot: Pilot, change: Callable[[bytes], bytes], code: PilotCode
    ) -> None:
        path = pilot.bundle / "trial-records.jsonl"
        put(path, change(path.read_bytes()))
        assert refused(pilot).code is code

    def test_rows_that_change_while_they_are_judged(self, pilot: Pilot) -> None:
        with pilot.root() as root:
            found = open_bundle(root, INPUTS)
            path = pilot.bundle / "trial-records.jsonl"
            put(path, path.read_bytes().replace(b"true", b"null", 1))
            with pytest.raises(PilotError) as caught:
                list(found.rows())
            assert caught.value.code is PilotCode.BUNDLE_MISMATCH

    @pytest.mark.parametrize("data", [b"{", b"{}", b"[]"])
    def test_a_probe_that_is_none(self, pilot: Pilot, data: bytes) -> None:
        put(next((pilot.bundle / "capability").iterdir()), data)
        assert refused(pilot).code is PilotCode.BUNDLE_INVALID

    def test_one_byte_of_a_sealed_copy(self, pilot: Pilot) -> None:
        """T49: the tree of copies is bound."""
        path = pilot.bundle / "trials" / pilot.trials()[0].path / "events.jsonl"
        path.write_bytes(path.read_bytes().replace(b"clean", b"klean", 1))
        assert (refused(pilot).code, refused(pilot).where) == (PilotCode.BUNDLE_MISMATCH, "trials")

    def test_a_folder_of_everybody(self, pilot: Pilot) -> None:
        (pilot.bundle / "capability").chmod(0o755)
        with pilot.root() as root, pytest.raises(RootError):
            open_bundle(root, INPUTS)


class TestRecords:
    ROW: Anything = {  # noqa: RUF012 - read only
        "task_id": "task-a",
        "arm_id": "profile-off",
        "sample_index": 1,
        "run_order": 1,
        "task_family": "review",
        **dict.fromkeys(
            (
                "task_hash",
                "manifest_hash",
                "runtime_hash",
                "runner_hash",
                "experiment_plan_hash",
                "trial_fingerprint",
            ),
            trials.digest("1"),
        ),
    }

    def test_claims_may_be_absent_or_null(self) -> None:
        assert read_record(self.ROW) == read_record(self.ROW | dict.fromkeys(CLAIMS))

    @pytest.mark.parametrize(
        "change",
        [
            {"task_id": ""},
            {"task_id": "../x"},
            {"sample_index": 0},
            {"sample_index": 1.0},
            {"run_order": True},
            {"task_family": "poetry"},
            {"task_hash": "1"},
            {"runner_completed": 1},
            {"runner_completed": "true"},
            {"skill_event_shape": ""},
            {"more": 1},
        ],
    )
    def test_a_row_that_is_none(self, change: dict[str, Anything]) -> None:
        assert read_record(self.ROW | change) is None

    @pytest.mark.parametrize("row", [None, 1, [], {}, "row"])
    def test_something_else(self, row: Anything) -> None:
        assert read_record(row) is None
