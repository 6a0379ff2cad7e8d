"""`run.py gate`: exits, lines and files of trials.md, section 9."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.faults import Fault, FileCode, FileError
from skill_effectiveness.evidence.root import PrivateRoot
from skill_effectiveness.trials.summary import machine_hash, parse_summary
from tests.support.commands import no_traceback, run, steers
from tests.support.pilots import Ending, Pilot, name_of
from tests.support.private import REPOSITORY, content, imprint, wrong_modes
from tests.support.trials import CONTENT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.commands import Said


def words(pilot: Pilot, *others: str | Path, stored: bool = True) -> list[str | Path]:
    """The command line over a pilot, its plan written beside it."""
    folder = pilot.place.base
    plan = pilot.expected
    (folder / "tasks.json").write_text(json.dumps(plan.tasks), encoding="utf-8")
    (folder / "manifests.json").write_text(json.dumps(plan.manifests), encoding="utf-8")
    rows = "".join(json.dumps(row) + "\n" for row in pilot.rows)
    (folder / "trials.jsonl").write_text(rows, encoding="utf-8")
    store: list[str | Path] = ["--store", pilot.place.root] if stored else []
    return [
        "gate",
        *("--bundle", pilot.bundle, "--tasks", folder / "tasks.json"),
        *("--manifests", folder / "manifests.json", "--trials", folder / "trials.jsonl"),
        *store,
        *("--out", "verdict"),
        *others,
    ]


@pytest.fixture
def pilot(home: Path) -> Pilot:
    folder = home / "pilot"
    folder.mkdir(mode=0o700)
    found = Pilot(folder)
    found.run()
    found.write(sealed=True)
    return found


def test_a_pass(command: Callable[..., Said], home: Path, pilot: Pilot) -> None:
    """T54 T56: exit 0, the lines, and two files that say it."""
    said = command(*words(pilot))
    assert said.code == 0
    assert said.out == (
        "gate_status=pass\n"
        "verdict_tier=advisory-paired\n"
        "trials=12\n"
        "failures=none\n"
        "not_evaluated=matched_call_compliance\n"
        "coverage_limitations=live_matched_call_gate,mount_evidence\n"
        "next_action=continue_automated_trial\n"
        "result=gate-result.json\n"
        "summary=verdict-summary.json\n"
    )
    assert "profile-full" in said.err
    result = json.loads((home / "verdict" / "gate-result.json").read_bytes())
    summary = parse_summary((home / "verdict" / "verdict-summary.json").read_bytes())
    assert result["status"] == summary.status == "pass"
    assert result["evidence_tier"]["coverage_limitations"] == list(summary.coverage_limitations)
    assert (summary.provider, summary.model, summary.trial_count) == ("codex", "model-1", 12)
    assert summary.synthetic is False
    assert wrong_modes(home / "verdict") == []


def test_it_says_the_same_without_the_store(command: Callable[..., Said], pilot: Pilot) -> None:
    """T49: over the sealed copies, in JSON."""
    shutil.rmtree(pilot.place.root)
    said = command(*words(pilot, "--json", stored=False))
    assert said.code == 0
    assert said.document["gate_status"] == "pass"
    assert said.document["failures"] == []
    assert said.document["coverage_limitations"] == ["live_matched_call_gate", "mount_evidence"]


def test_store_and_bundle_stay_as_they_are(command: Callable[..., Said], pilot: Pilot) -> None:
    """T9: judging only looks, also into a store at a place where it never was."""
    pilot.place.root = pilot.place.root.rename(pilot.place.base / "moved")
    line = words(pilot)
    before = imprint(pilot.place.root), imprint(pilot.bundle)
    assert command(*line).code == 0
    assert (imprint(pilot.place.root), imprint(pilot.bundle)) == before


def test_a_store_that_is_none(command: Callable[..., Said], home: Path, pilot: Pilot) -> None:
    """T54: refused, and it is not made one."""
    (home / "empty").mkdir(mode=0o700)
    assert "no store of trials" in command(*words(pilot, "--store", "empty")).refusal
    assert list((home / "empty").iterdir()) == []


def test_a_fail(command: Callable[..., Said], home: Path, pilot: Pilot) -> None:
    """T54 T56: exit 1, the words on stdout, a table and no traceback on stderr; a summary all the same."""
    (pilot.place.trial(pilot.trials()[0]) / "outcome" / "result.json").write_bytes(b'{"changed":true}')
    said = command(*words(pilot))
    assert said.code == 1
    assert said.values["gate_status"] == "fail"
    assert said.values["verdict_tier"] == "none"
    assert "trial_evidence_binding" in said.values["failures"].split(",")
    assert "completion differs" in said.err
    assert no_traceback(said)
    assert steers(said.err) == []
    summary = parse_summary((home / "verdict" / "verdict-summary.json").read_bytes())
    assert (summary.status, summary.verdict_tier) == ("fail", None)


def test_an_older_verdict_goes_to_history(command: Callable[..., Said], home: Path, pilot: Pilot) -> None:
    """T56: and a refused evaluation leaves none that could be taken for its own."""
    command(*words(pilot))
    before = (home / "verdict" / "gate-result.json").read_bytes()
    (pilot.bundle / "bundle.json").write_bytes(b"{}")
    assert command(*words(pilot)).code == 2
    assert sorted(path.name for path in (home / "verdict").iterdir()) == ["history"]
    kept = {path.read_bytes() for path in (home / "verdict" / "history").iterdir()}
    assert before in kept


def test_no_half_of_a_verdict_stays(
    command: Callable[..., Said], home: Path, pilot: Pilot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T56: a disk that is full once the result is written; exit 2 says that nothing was decided."""
    line = words(pilot)
    really = PrivateRoot.publish

    def publish(self: PrivateRoot, name: str, data: bytes) -> None:
        if name == "verdict-summary.json":
            raise FileError(Fault(FileCode.NO_SPACE, name, "There is no space left."))
        really(self, name, data)

    with monkeypatch.context() as full:
        full.setattr(PrivateRoot, "publish", publish)
        assert command(*line).refusal == "There is no space left."
    assert list((home / "verdict").iterdir()) == []
    assert command(*line).code == 0


def test_rows_without_trials_exit_one(command: Callable[..., Said], pilot: Pilot) -> None:
    """T41 T54: as section 12 says."""
    shutil.rmtree(pilot.place.root / "trials")
    assert command(*words(pilot)).code == 1


def test_contaminated_trials_whatever_their_rows_say(command: Callable[..., Said], home: Path) -> None:
    """T41 T44: rows that were washed clean and bound again contradict the folders, which decide."""
    folder = home / "contaminated"
    folder.mkdir(mode=0o700)
    pilot = Pilot(folder)
    pilot.run(**{name_of(key): Ending("contaminated") for key in pilot.trials()})
    pilot.write()
    clean = {"contaminated": False, "runner_completed": True}
    pilot.edit_records(lambda rows: [row | clean for row in rows])
    said = command(*words(pilot))
    assert (said.code, said.values["gate_status"], said.values["verdict_tier"]) == (1, "fail", "none")
    failures = said.values["failures"].split(",")
    assert {"total_contamination_rate", "trial_evidence_binding", "runner_completion_rate"} <= set(failures)


@pytest.mark.parametrize("gone", ["profile-off", "profile-full"])
def test_a_missing_arm(command: Callable[..., Said], home: Path, pilot: Pilot, gone: str) -> None:
    """T41: left out of plan and manifests nothing is compared; gone from the disk alone the gate fails."""
    line = words(pilot)
    planned = json.loads((pilot.place.base / "manifests.json").read_bytes())
    manifests = [arm for arm in planned if arm["arm_id"] != gone]
    kept = [row for row in pilot.rows if row["arm_id"] != gone]
    rows = [json.dumps(row | {"run_order": number}) for number, row in enumerate(kept, start=1)]
    (home / "few.json").write_text(json.dumps(manifests), encoding="utf-8")
    (home / "few.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    refused = command(*line, "--manifests", home / "few.json", "--trials", home / "few.jsonl")
    assert "without it nothing is compared" in refused.refusal
    shutil.rmtree(pilot.place.root / "trials" / "task-a" / gone)
    said = command(*line)
    assert (said.code, said.values["gate_status"]) == (1, "fail")
    assert "insufficient_task_arm_samples" in said.values["failures"].split(",")


def test_a_synthetic_run_has_no_summary(command: Callable[..., Said], home: Path) -> None:
    """T64: nothing terminal came of it."""
    folder = home / "synthetic"
    folder.mkdir(mode=0o700)
    pilot = Pilot(folder, provider="simulated")
    pilot.run()
    pilot.write()
    said = command(*words(pilot))
    assert (said.code, said.values["gate_status"]) == (1, "not_evaluated_synthetic")
    assert said.values["summary"] == "none"
    assert not (home / "verdict" / "verdict-summary.json").exists()


def test_a_causal_gate_says_what_it_lacks(command: Callable[..., Said], home: Path) -> None:
    """T46: exit 1, and the next step is to collect it."""
    folder = home / "causal"
    folder.mkdir(mode=0o700)
    pilot = Pilot(folder, CONTENT)
    pilot.run()
    pilot.write()
    said = command(*words(pilot))
    assert said.code == 1
    assert said.values["failures"] == "causal_core_unavailable,required_evidence_not_evaluated"
    assert said.values["next_action"] == "collect_live_evidence"


class TestRefusals:
    @pytest.mark.parametrize("option", ["--bundle", "--tasks", "--manifests", "--trials", "--out"])
    def test_a_missing_option(self, command: Callable[..., Said], pilot: Pilot, option: str) -> None:
        given = words(pilot)
        place = given.index(option)
        said = command(*given[:place], *given[place + 2 :])
        assert option in said.refusal

    @pytest.mark.parametrize(
        ("name", "data"),
        [
            ("tasks.json", b"{}"),
            ("tasks.json", b"[1]"),
            ("manifests.json", b"[]"),
            ("trials.jsonl", b""),
            ("trials.jsonl", b"[]\n"),
            ("trials.jsonl", b"{\n"),
        ],
    )
    def test_a_plan_that_is_none(
        self, command: Callable[..., Said], pilot: Pilot, name: str, data: bytes
    ) -> None:
        given = words(pilot)
        (pilot.place.base / name).write_bytes(data)
        said = command(*given)
        assert said.refusal
        assert no_traceback(said)

    def test_a_permissive_gate_file(self, command: Callable[..., Said], home: Path, pilot: Pilot) -> None:
        """T7 T41: refused by pointer, whatever the trials are like."""
        gates = json.loads((REPOSITORY / "fixtures" / "pilot-gates.json").read_bytes())
        gates["thresholds"]["contamination_rate_max"] = 1
        (home / "gates.json").write_text(json.dumps(gates), encoding="utf-8")
        said = command(*words(pilot, "--config", "gates.json"))
        assert "/thresholds/contamination_rate_max" in said.refusal

    def test_the_frozen_gates_are_the_default(
        self, command: Callable[..., Said], home: Path, pilot: Pilot
    ) -> None:
        """T7: naming them changes nothing, not even the digest that binds them."""
        bare = command(*words(pilot))
        shutil.copy(REPOSITORY / "fixtures" / "pilot-gates.json", home / "gates.json")
        assert command(*words(pilot, "--config", "gates.json")) == bare

    def test_no_bundle_there(self, command: Callable[..., Said], pilot: Pilot) -> None:
        given = words(pilot)
        shutil.rmtree(pilot.bundle)
        assert "no bundle" in command(*given).refusal

    def test_another_plan(self, command: Callable[..., Said], pilot: Pilot) -> None:
        pilot.rows = list(reversed(pilot.rows))
        assert "another plan" in command(*words(pilot)).refusal

    def test_no_path_of_the_machine_in_machine_text(self, command: Callable[..., Said], pilot: Pilot) -> None:
        pilot.rows = list(reversed(pilot.rows))
        said = command(*words(pilot, "--json"))
        assert said.document == {"status": "refused", "code": "plan_mismatch"}

    def test_the_bundle_is_never_written_to(self, command: Callable[..., Said], pilot: Pilot) -> None:
        before = content(pilot.bundle)
        command(*words(pilot))
        assert content(pilot.bundle) == before


def test_in_a_process_of_its_own(home: Path, pilot: Pilot) -> None:
    said = run(home, *words(pilot))
    assert said.code == 0
    assert no_traceback(said)


def test_a_void_trial_is_told(command: Callable[..., Said], home: Path) -> None:
    """T63: as a warning beside what it leaves."""
    folder = home / "void"
    folder.mkdir(mode=0o700)
    pilot = Pilot(folder)
    pilot.run(**{name_of(pilot.trials()[0]): Ending("failed", "void")})
    pilot.write()
    said = command(*words(pilot))
    assert said.values["failures"] == "insufficient_task_arm_samples"
    assert "void_trials_excluded" in said.err


def test_a_machine_without_an_id_is_null() -> None:
    assert machine_hash(None) is None
