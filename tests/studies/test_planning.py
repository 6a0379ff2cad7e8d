"""Plans: what they pin, that they are made once, and who knows the run order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.studies.checks import CheckName, CheckReport, CheckResult, CheckStatus
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.plan import changed_field, plan_json, read_plan
from skill_effectiveness.studies.plan_seal import verify_plan_seal
from skill_effectiveness.studies.planning import plan_study
from skill_effectiveness.studies.runtime import runtime_manifest_hash
from skill_effectiveness.studies.state import Phase
from skill_effectiveness.trials.allocation import Slot, commitment
from tests.support.private import content, surroundings, wrong_modes
from tests.support.studies import Bench, bench, example, write

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Bench]:
    with bench(tmp_path) as made:
        yield made


def edited(folder: Path, edits: Mapping[str, str], files: Mapping[str, bytes]) -> Path:
    return write(example(folder, edits=edits), files)


def at(plan: object, pointer: str) -> object:
    """What stands at a pointer of a plan."""
    node: Any = plan
    for name in pointer.strip("/").split("/"):
        node = node[int(name)] if isinstance(node, list) else node[name]
    return node


FROZEN = [
    ({"Does the skill": "Does this skill"}, {}, "/question"),
    ({"effect: 0.4": "effect: 0.3"}, {}, "/driver/settings_hash"),
    ({"model: simulated-agent": "model: other"}, {}, "/driver/model"),
    ({"samples: 3": "samples: 2"}, {}, "/samples"),
    ({"samples: 3": "samples: 3\nattempts: 2"}, {}, "/attempts"),
    ({"wall_time_seconds: 600": "wall_time_seconds: 601"}, {}, "/budgets/trial/wall_time_seconds"),
    ({"audit: none": "audit: strace"}, {}, "/isolation/audit"),
    ({"minimum_effect: 0.3": "minimum_effect: 0.2"}, {}, "/outcome/minimum_effect"),
    ({"primary: reward": "primary: passed"}, {}, "/outcome/primary"),
    ({"alpha: 0.05": "alpha: 0.04"}, {}, "/analysis/alpha"),
    ({"stopping: fixed": "stopping: anytime"}, {}, "/analysis/stopping"),
    ({"stopping: fixed": "stopping: fixed\n  estimand: {timeout: graded}"}, {}, "/analysis/estimand/timeout"),
    ({}, {"skills/file-notes/SKILL.md": b"---\nname: file-notes\n---\nOther.\n"}, "/arms/1/manifest_hash"),
    ({}, {"skills/file-notes/extra.py": b"x = 1\n"}, "/arms/1/tree"),
    ({}, {"tasks/note-amber/instruction.md": b"Other.\n"}, "/tasks/0/task_hash"),
    ({}, {"tasks/note-amber/environment/more.txt": b""}, "/tasks/0/tree"),
    ({}, {"tasks/note-amber/tests/more.txt": b""}, "/tasks/0/grader_hash"),
]


FIELDS = """
schema_version artifact_contract name question registry tier scope synthetic created_at driver arms
arm_registry_plan_hash tasks samples attempts batch_slots budgets isolation reviewers outcome analysis power
gates_hash runtime_manifest_hash allocation plan_digest
"""


class TestDigest:
    @pytest.mark.parametrize(("edits", "files", "field"), FROZEN, ids=[row[2] for row in FROZEN])
    def test_every_frozen_byte(
        self, tmp_path: Path, place: Bench, edits: Mapping[str, str], files: Mapping[str, bytes], field: str
    ) -> None:
        """S16: another byte of anything frozen is another digest, and the field is known."""
        before = place.plan(example(tmp_path / "a"))
        after = place.plan(edited(tmp_path / "b", edits, files), "R2")
        assert before.plan_digest != after.plan_digest
        assert at(plan_json(before), field) != at(plan_json(after), field)
        assert changed_field(before, after) is not None

    def test_the_same_study_has_the_same_plan(self, tmp_path: Path, place: Bench) -> None:
        """S16: with the same seed and time, byte for byte."""
        study = example(tmp_path)
        assert place.plan(study) == place.plan(study, "R2")
        assert place.plan(study, "R3", seed=bytes(31) + b"\1").plan_digest != place.plan(study).plan_digest

    def test_exact_fields(self, tmp_path: Path, place: Bench) -> None:
        """S16: the plan holds these fields and no other."""
        place.plan(example(tmp_path))
        plan = json.loads((tmp_path / "R" / "plan.json").read_bytes())
        assert set(plan) == set(FIELDS.split())
        assert plan["artifact_contract"] == "skill-effectiveness-study-plan-v1"
        assert (plan["batch_slots"], plan["synthetic"]) == (50, True)
        assert [(arm["arm"], arm["arm_id"]) for arm in plan["arms"]] == [
            ("off", "profile-off"),
            ("full", "profile-full"),
        ]

    def test_an_edited_plan_is_refused(self, tmp_path: Path, place: Bench) -> None:
        """S16: a field that was changed afterwards is not that of the digest."""
        place.plan(example(tmp_path))
        data = (tmp_path / "R" / "plan.json").read_bytes().replace(b'"samples":3', b'"samples":2')
        with pytest.raises(StudyError) as caught:
            read_plan(data)
        assert caught.value.code is StudyCode.PLAN_INVALID


class TestOnce:
    def test_the_same_again_changes_nothing(self, tmp_path: Path, place: Bench) -> None:
        study = example(tmp_path)
        plan = place.plan(study)
        before = content(tmp_path / "R")
        assert place.plan(study, seed=None) == plan
        after = content(tmp_path / "R")
        assert {k: v for k, v in after.items() if ".lock" not in k} == {
            k: v for k, v in before.items() if ".lock" not in k
        }
        assert wrong_modes(tmp_path / "R") == []

    def test_other_code_is_another_plan(self, tmp_path: Path, place: Bench) -> None:
        """S16: the code that decides is frozen as well."""
        study = example(tmp_path)
        place.plan(study)
        with pytest.raises(StudyError) as caught:
            place.plan(study, manifest=runtime_manifest_hash)
        assert (caught.value.code, caught.value.where) == (StudyCode.PLAN_EXISTS, "/runtime_manifest_hash")

    def test_another_plan_is_refused(self, tmp_path: Path, place: Bench) -> None:
        """S16: the field that differs is named."""
        place.plan(example(tmp_path / "a"))
        with pytest.raises(StudyError) as caught:
            place.plan(example(tmp_path / "b", edits={"samples: 3": "samples: 4"}))
        assert (caught.value.code, caught.value.where) == (StudyCode.PLAN_EXISTS, "/samples")

    def test_a_failed_check_writes_nothing(self, tmp_path: Path, place: Bench) -> None:
        report = CheckReport((CheckResult(CheckName.FORGED, CheckStatus.FAIL, ("x",)),), oracle_needed=True)
        planned = plan_study(place.request(example(tmp_path), checked=report))
        assert planned.plan is None
        assert not (tmp_path / "R").exists()

    @pytest.mark.parametrize("nth", [1, 2, 3, 6, 9, 12, 15, 18, 21])
    def test_a_planning_that_was_cut_off_ends_the_same(self, tmp_path: Path, nth: int) -> None:
        """Whatever lies there after a fault, the next planning ends with the plan that was begun."""
        study = example(tmp_path, tasks=1)
        with bench(tmp_path) as good:
            broken = surroundings(FaultFs(RealFs(), Injection("link", 28, nth=nth)))
            with pytest.raises(EvidenceError):
                Bench(good.folder, broken, good.state, good.key).plan(study, seed=None)
            seed = tmp_path / "R" / "private" / "allocation.json"
            first = seed.read_bytes() if seed.exists() else None
            plan = good.plan(study, seed=None)
            assert first in {None, seed.read_bytes()}
            with good.open() as opened:
                opened.check_inputs()
                assert opened.plan == plan


class TestSeal:
    def test_plan_and_commitments_are_sealed(self, tmp_path: Path, place: Bench) -> None:
        place.plan(example(tmp_path))
        files = content(tmp_path / "R")
        found = verify_plan_seal(
            files["plan.dsse.json"],
            [place.key.public_key()],
            plan_file=files["plan.json"],
            commitments=files["commitments.jsonl"],
        )
        assert found.passed
        other = verify_plan_seal(
            files["plan.dsse.json"],
            [place.key.public_key()],
            plan_file=files["plan.json"],
            commitments=files["commitments.jsonl"] + b"x",
        )
        assert not other.passed


class TestAllocation:
    def test_known_answer(self, tmp_path: Path, place: Bench) -> None:
        """S17: the run order of a plan is the allocation of its tasks, arms and samples."""
        study = example(tmp_path, tasks=2, edits={"samples: 3": "samples: 2"})
        tasks = study / "tasks"
        (tasks / "note-amber").rename(tasks / "t1")
        (tasks / "note-basil").rename(tasks / "t2")
        place.plan(study)
        with place.open() as opened:
            order = [(slot.task_id, slot.arm) for slot in opened.slots()]
        assert order == [
            ("t1", "full"),
            ("t1", "off"),
            ("t2", "off"),
            ("t2", "full"),
            ("t2", "off"),
            ("t2", "full"),
            ("t1", "full"),
            ("t1", "off"),
        ]
        first = json.loads((tmp_path / "R" / "commitments.jsonl").read_bytes().splitlines()[0])
        assert first == {
            "slot": 1,
            "commitment": "sha256:b4978b5122924032edcdb5766cb87e7590abf6700f10de4b8916f88527bb71c2",
        }

    def test_only_private_tells_an_arm(self, tmp_path: Path, place: Bench) -> None:
        """S18: nothing outside `private/` opens a commitment or holds the seed."""
        seed = bytes(range(32))
        plan = place.plan(example(tmp_path), seed=seed)
        outside = {
            path: data for path, data in content(tmp_path / "R").items() if not path.startswith("private/")
        }
        assert not [path for path, data in outside.items() if seed.hex().encode() in data or seed in data]
        told = [json.loads(line) for line in outside["commitments.jsonl"].splitlines()]
        assert [sorted(row) for row in told] == 12 * [["commitment", "slot"]]
        # Without the salt, which follows from the seed, a commitment fits no guess.
        guesses = {
            commitment(Slot(1, task.task_id, arm, 1), salt)
            for task in plan.tasks
            for arm in plan.arm_names
            for salt in ("", "0" * 64, plan.allocation.seed_commitment.removeprefix("sha256:"))
        }
        assert told[0]["commitment"] not in guesses


class TestOpening:
    def test_status_of_a_new_plan(self, tmp_path: Path, place: Bench) -> None:
        """S19: the first row is the plan's."""
        plan = place.plan(example(tmp_path))
        with place.open() as opened, opened.journal(place.state) as journal:
            assert (journal.state.plan_digest, journal.state.seq) == (plan.plan_digest, 1)
            assert (opened.status().state, opened.status().slots) == (Phase.PLANNED, 12)

    @pytest.mark.parametrize(
        ("name", "code"),
        [
            ("plan.json", StudyCode.PLAN_INVALID),
            ("commitments.jsonl", StudyCode.PLAN_SEAL),
            ("plan.dsse.json", StudyCode.PLAN_SEAL),
        ],
    )
    def test_what_was_edited(self, tmp_path: Path, place: Bench, name: str, code: StudyCode) -> None:
        """S65: an edited plan is not opened."""
        place.plan(example(tmp_path))
        path = tmp_path / "R" / name
        path.write_bytes(path.read_bytes()[:-3] + b"x\n")
        with pytest.raises(StudyError) as caught:
            place.open()
        assert caught.value.code is code

    def test_no_plan(self, tmp_path: Path, place: Bench) -> None:
        (tmp_path / "R").mkdir(mode=0o700)
        with pytest.raises(StudyError) as caught:
            place.open()
        assert caught.value.code is StudyCode.PLAN_MISSING

    def test_an_edited_arm_or_task_is_named(self, tmp_path: Path, place: Bench) -> None:
        """S65: the field of the plan whose input changed."""
        plan = place.plan(example(tmp_path))
        with place.open() as opened:
            opened.check_inputs()
            entry = opened.task_files("note-basil", "tests").tree.files[0]
            path = tmp_path / "R" / "inputs" / str(entry.sha256).removeprefix("sha256:")
            path.write_bytes(b"echo 1\n")
            with pytest.raises(StudyError) as caught:
                opened.check_inputs()
            assert (caught.value.code, caught.value.where) == (StudyCode.PLAN_CHANGED, "/tasks/1/tree")
            path = tmp_path / "R" / "inputs" / plan.arms[1].tree.removeprefix("sha256:")
            path.unlink()
            with pytest.raises(StudyError) as caught:
                opened.check_inputs()
            assert caught.value.where == "/arms/1/tree"

    def test_frozen_records_are_held_against_the_plan(self, tmp_path: Path, place: Bench) -> None:
        place.plan(example(tmp_path / "a"))
        place.plan(example(tmp_path / "b", edits={"model: simulated-agent": "model: other"}), "R2")
        (tmp_path / "R" / "frozen.json").write_bytes((tmp_path / "R2" / "frozen.json").read_bytes())
        with place.open() as opened, pytest.raises(StudyError) as caught:
            opened.frozen()
        assert caught.value.where == "/arm_registry_plan_hash"

    def test_a_task_out_of_the_inputs(self, tmp_path: Path, place: Bench) -> None:
        """S13: what is laid down for an agent is the environment alone."""
        place.plan(example(tmp_path))
        with place.open() as opened:
            assert opened.task("note-amber").instruction.startswith(b"Write the word amber")
            target = tmp_path / "copy"
            target.mkdir()
            opened.task_files("note-amber", "environment").lay_down(RealFs(), target)
            assert content(target) == {"readme.txt": b"Notes go beside this file.\n"}
            paths = [entry.path for entry in opened.payload_files("full").tree.files]
            assert paths == ["skills/file-notes/SKILL.md"]
            assert opened.payload_files("off").tree.entries == ()
