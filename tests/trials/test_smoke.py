from __future__ import annotations

import errno
import json
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.protocol.arm_errors import ArmError
from skill_effectiveness.protocol.gates import load_gates
from skill_effectiveness.protocol.smoke_fixture import load_smoke_fixture, parse_smoke_fixture
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.gate_words import GateStatus, NotEvaluated, TierStatus
from skill_effectiveness.trials.pilot_errors import PilotCode, PilotError
from skill_effectiveness.trials.smoke import RESULT, ExecutionStatus, SmokeResult, run_smoke
from tests.support.examinations import UnsyncedFs
from tests.support.killing_fs import Died, MortalFs
from tests.support.private import REPOSITORY, child_output, surroundings, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Callable

    from skill_effectiveness.evidence.fsops import FileSystem
    from tests.support.pilots import Anything

FIXTURE = load_smoke_fixture(RealFs())
GATES = load_gates(RealFs())
FILE = REPOSITORY / "fixtures" / "e10-smoke.json"


def smoke(
    folder: Path,
    change: Callable[[Anything], object] = lambda _fixture: None,
    *,
    fs: FileSystem | None = None,
) -> SmokeResult:
    """The committed fixture with a change, run in a folder."""
    document = json.loads(FILE.read_bytes())
    change(document)
    fixture = parse_smoke_fixture(json.dumps(document).encode())
    around = surroundings(fs or UnsyncedFs())
    with PrivateRoot.create(folder / "out", RootKind.OUT, around=around, checkout=None) as out:
        return run_smoke(fixture, out, gates=GATES)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("smoke")
    smoke(folder)
    return folder


@pytest.fixture
def done(finished: Path, tmp_path: Path) -> Path:
    """A finished run, free to be spoiled; the roots of its trials name another place."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return tmp_path


class TestACompleteRun:
    def test_what_it_says(self, finished: Path) -> None:
        """T50 T64: 18 trials, exactly these fields, ten names, and the tier that was taken out."""
        document = json.loads((finished / "out" / RESULT).read_bytes())
        assert set(document) == {
            "schema_version",
            "fixture",
            "enforcement",
            "live_model_calls",
            "manifest_hashes",
            "manifest_errors",
            "runner_hash",
            "experiment_plan_hash",
            "schedule_count",
            "capability_matrix",
            "pilot_gate",
            "execution_status",
            "conclusion_boundary",
        }
        assert (document["schedule_count"], document["live_model_calls"]) == (18, False)
        assert document["conclusion_boundary"] == "runner_validity_not_skill_effectiveness"
        assert document["execution_status"] == "complete"
        assert set(document["manifest_hashes"]) == {"S0", "S1", "S2"}
        assert document["manifest_errors"] == {}
        gate = document["pilot_gate"]
        assert gate["not_evaluated_checks"] == [
            "off_runtime_residual_evidence",
            "skill_event_verifiability",
            "matched_call_compliance",
            "blinding_leak",
            "deterministic_grader_replay",
            "contamination",
            "budget_complete",
            "trial_file_isolation",
            "cross_trial_memory_isolation",
            "provider_capability_matrix",
        ]
        assert gate["status"] == "not_evaluated_synthetic"
        assert gate["failures"] == []
        assert gate["evidence_tier"]["verdict_tier"] is None
        assert gate["evidence_tier"]["tier_status"] == TierStatus.SYNTHETIC_NOT_A_TIER
        assert (
            gate["evidence_tier_overridden_from"]
            == json.loads((REPOSITORY / "fixtures/pilot-gates.json").read_bytes())["evidence_tier"]
        )
        matrix = document["capability_matrix"]
        assert matrix["status"] == "not_evaluated_synthetic"
        assert matrix["synthetic_contract_status"] == "causal_core_unavailable"
        assert len(matrix["rows"]) == 2

    def test_every_trial_is_a_real_one(self, finished: Path) -> None:
        """T50: two tasks, three arms, three samples, each completed, private and with a task of its own."""
        trials = sorted((finished / "out" / "trials").glob("*/*/sample-*/trial.json"))
        assert len(trials) == 18
        for path in trials:
            document = json.loads(path.read_bytes())
            assert document["status"] == "completed"
            place = path.parent.relative_to(finished / "out" / "trials")
            task = json.loads((finished / "out" / "task-checkouts" / place / "task.json").read_bytes())
            assert task == document["task"]
            assert "expected_owners" not in task
        assert wrong_modes(finished / "out") == []

    def test_the_run_order_is_drawn_and_whole(self, finished: Path) -> None:
        """T50: every block holds each arm once, and not always in one order."""
        found = {}
        for path in (finished / "out" / "trials").glob("*/*/sample-*/trial.json"):
            document = json.loads(path.read_bytes())
            number = int(document["runtime"]["session_id"].removeprefix("smoke-"))
            found[number] = (document["task"]["task_id"], document["arm_id"], document["sample_index"])
        assert sorted(found) == list(range(1, 19))
        blocks = [[found[start + place] for place in range(3)] for start in range(1, 19, 3)]
        assert all(len({(task, sample) for task, _arm, sample in block}) == 1 for block in blocks)
        assert all({arm for _task, arm, _sample in block} == {"S0", "S1", "S2"} for block in blocks)
        assert len({tuple(arm for _task, arm, _sample in block) for block in blocks}) > 1

    def test_again_in_the_same_folder_everything_replays(self, tmp_path: Path) -> None:
        """T50: same result, the older one in history, no trial touched."""
        first = smoke(tmp_path)
        trials = {path: path.read_bytes() for path in (tmp_path / "out/trials").rglob("*") if path.is_file()}
        old = (tmp_path / "out" / RESULT).read_bytes()
        second = smoke(tmp_path)
        assert second == first
        assert second.is_contract_complete
        assert {path: path.read_bytes() for path in trials} == trials
        (kept,) = (tmp_path / "out" / "history").iterdir()
        assert kept.read_bytes() == old
        assert kept.name.startswith("smoke-result-")

    def test_after_a_kill_in_the_middle_it_goes_on(self, tmp_path: Path) -> None:
        """T50: a trial that had been started is brought to its end."""
        smoke(tmp_path)
        gone = sorted((tmp_path / "out" / "trials").glob("*/*/sample-*"))
        shutil.rmtree(gone[0])
        for path in gone[1].glob("**/*"):
            if path.name == "trial.json":
                path.unlink()
        (gone[1] / "events.jsonl").write_bytes(b"")
        (gone[1] / "access-audit.jsonl").write_bytes(b"")
        (gone[1] / "outcome" / "result.json").unlink()
        (tmp_path / "out" / RESULT).unlink()
        assert smoke(tmp_path).is_contract_complete


class TestViolations:
    @pytest.mark.parametrize(
        "change",
        [
            lambda fixture: fixture["synthetic_extra_access_events"].append(
                {"actor": "tested-agent", "operation": "read", "path": "/etc/passwd"}
            ),
            lambda fixture: fixture["synthetic_extra_access_events"].append(
                {"actor": "tested-agent", "operation": "write", "path": "/usr/bin/env"}
            ),
            lambda fixture: fixture["isolation_evidence"].update(canary_leak_detected=True),
            lambda fixture: fixture["isolation_evidence"].update(auto_memory_enabled=True),
            lambda fixture: fixture["isolation_evidence"].update(provider_persistence="enabled"),
            lambda fixture: fixture["isolation_evidence"].update(fresh_session=False),
        ],
    )
    def test_an_injected_violation_fails(self, change: Callable[[Anything], object], tmp_path: Path) -> None:
        """T51: every trial is contaminated, nothing is complete, and a rerun is refused."""
        result = smoke(tmp_path, change)
        assert result.execution_status is ExecutionStatus.FAILED
        assert result.pilot_gate.status is GateStatus.FAIL
        assert "total_contamination_rate" in result.pilot_gate.failures
        assert not result.is_contract_complete
        assert result.pilot_gate.not_evaluated_checks == tuple(NotEvaluated)
        with pytest.raises(TrialError) as caught:
            smoke(tmp_path, change)
        assert caught.value.code is TrialCode.TERMINAL

    @pytest.mark.parametrize(
        "change",
        [
            lambda fixture: fixture["isolation_evidence"].update(fresh_session=None),
            lambda fixture: fixture["isolation_evidence"].pop("provider_persistence"),
            lambda fixture: fixture["synthetic_extra_access_events"].append(
                {"actor": "somebody", "operation": "read", "path": "/etc/passwd"}
            ),
            lambda fixture: fixture["synthetic_extra_access_events"].append(
                {"actor": "tested-agent", "operation": "delete", "path": "/etc/passwd"}
            ),
        ],
    )
    def test_a_missing_proof_or_malformed_row_is_incomplete(
        self, change: Callable[[Anything], object], tmp_path: Path
    ) -> None:
        """T51: nothing that cannot be believed completes a trial."""
        result = smoke(tmp_path, change)
        assert result.execution_status in {ExecutionStatus.INCOMPLETE, ExecutionStatus.FAILED}
        assert result.pilot_gate.status is GateStatus.FAIL

    def test_a_mutated_outcome_is_refused(self, tmp_path: Path) -> None:
        """T51: a completed trial is what it was, or the run stops; no stale result stays."""
        smoke(tmp_path)
        path = next((tmp_path / "out" / "trials").glob("*/*/sample-*/outcome/result.json"))
        path.write_bytes(b'{"synthetic":true,"task_id":"another"}')
        with pytest.raises(TrialError) as caught:
            smoke(tmp_path)
        assert caught.value.code is TrialCode.BINDING_MISMATCH
        assert not (tmp_path / "out" / RESULT).exists()

    def test_another_fixture_in_the_same_folder_is_refused(self, done: Path) -> None:
        with pytest.raises(TrialError) as caught:
            smoke(done, lambda fixture: fixture.update(seed=7))
        assert caught.value.code is TrialCode.IDENTITY_MISMATCH


class TestFixtures:
    def test_an_arm_that_differs_where_it_must_not_fails(self, tmp_path: Path) -> None:
        """T3: the run goes on, and says so."""

        def widen(fixture: Anything) -> None:
            fixture["arms"][2]["components"]["system_prompt"] = "Another one."

        result = smoke(tmp_path, widen)
        assert result.manifest_errors == {"S2": ("unallowlisted_diff:system_prompt",)}
        assert result.pilot_gate.failures == ("manifest_allowlisted_diff",)
        assert not result.is_contract_complete

    def test_too_few_samples_are_no_plan(self, tmp_path: Path) -> None:
        with pytest.raises(PilotError) as caught:
            smoke(tmp_path, lambda fixture: fixture.update(samples=2))
        assert caught.value.code is PilotCode.PLAN_INVALID

    def test_arms_that_are_no_registry_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises((ArmError, PilotError)):
            smoke(tmp_path, lambda fixture: fixture["arms"].pop())

    def test_an_unknown_template_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ArmError):
            smoke(tmp_path, lambda fixture: fixture["arms"][0].update(template_ref="arms/S9.json"))


class TestEndings:
    STEPS = 24

    @pytest.mark.parametrize("part", range(STEPS))
    def test_killed_anywhere_then_run_again(self, part: int, tmp_path: Path) -> None:
        """T50: whatever a killed run leaves, the next one finishes, and its trials are the same ones."""
        nth = 1 + part * (mutations() // self.STEPS)
        with pytest.raises(Died):
            smoke(tmp_path, fs=MortalFs(UnsyncedFs(), nth))
        result = smoke(tmp_path)
        assert result.is_contract_complete
        assert wrong_modes(tmp_path / "out") == []
        left = {path.name for path in (tmp_path / "out").glob("*/*/*/sample-*/**/*.tmp")}
        assert left == set()

    def test_a_full_disk_is_an_error_and_no_result(self, tmp_path: Path) -> None:
        fs = FaultFs(UnsyncedFs(), Injection("write", errno.ENOSPC, nth=40))
        with pytest.raises(FileError) as caught:
            smoke(tmp_path, fs=fs)
        assert caught.value.code is FileCode.NO_SPACE
        assert not (tmp_path / "out" / RESULT).exists()
        assert smoke(tmp_path).is_contract_complete


@cache
def mutations() -> int:
    """How many steps of a run change something on disk."""
    with TemporaryDirectory() as folder:
        fs = FaultFs(UnsyncedFs(), counting := Injection("*", nth=0))
        smoke(Path(folder).resolve(), fs=fs)
    return counting.hits


WATCHED = """
import sys
from pathlib import Path

seen = []
ended = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.spawn", "urllib.")
sys.addaudithook(lambda event, _arguments: seen.append(event) if event.startswith(ended) else None)

from skill_effectiveness.cli.main import main

code = main(["smoke", "--fixture", sys.argv[1], "--out", sys.argv[2]])
print(code, sorted(set(seen)))
"""


def test_no_network_and_no_process(tmp_path: Path) -> None:
    """T52: what the interpreter reports of sockets and processes, from the first import to the last line."""
    said = child_output(WATCHED, FILE, tmp_path / "out")
    code, _, seen = said.splitlines()[-1].partition(" ")
    # The name of this host is asked for once, which opens no socket.
    assert code == "3"
    assert seen in {"[]", "['socket.gethostname']"}
