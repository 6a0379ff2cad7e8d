"""Preparing: every row of the table of trials.md, section 3, and who may prepare what."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.canonical import digest_object, digest_text
from skill_effectiveness.evidence.fsdoubles import RecordingFs
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.protocol.manifests import parse_manifest
from skill_effectiveness.protocol.registry_plan import parse_plan
from skill_effectiveness.protocol.tasks import parse_task
from skill_effectiveness.trials.binding import fingerprint
from skill_effectiveness.trials.checkpoint import checkpoint
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.models import (
    ExpectedIsolation,
    IsolationEvidence,
    Mode,
    TrialKey,
    read_record,
)
from skill_effectiveness.trials.prepare import PrepareOrder, apply_prepare, plan_prepare, prepare
from tests.support.crash_images import fast_folder
from tests.support.private import child_output, content, listing, wrong_modes
from tests.support.trials import (
    CONTENT,
    LIMITED,
    PROFILE,
    RUNTIME,
    SAFE,
    UNLIMITED,
    Json,
    Place,
    cursor,
    digest,
    manifests,
    order,
    plan,
    put,
    put_lines,
    request,
    task,
)
from tests.trials.test_tiers import gates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.trials.models import PreparedTrial

KEY = TrialKey("task-a", "profile-full", 1)


@pytest.fixture
def place() -> Iterator[Place]:
    with fast_folder() as folder:
        yield Place(folder)


def made(place: Place, wanted: PrepareOrder | None = None) -> PreparedTrial:
    with place.open() as store:
        return prepare(store, wanted or order())


def refused(place: Place, wanted: PrepareOrder | None = None) -> TrialError:
    with place.open() as store:
        before = content(place.root)
        with pytest.raises(TrialError) as caught:
            prepare(store, wanted or order())
    after = content(place.root)
    assert {name: data for name, data in after.items() if name in before} == before
    assert not any("trial.json" in name for name in after.keys() - before.keys())
    return caught.value


def moved(place: Place, status: str, **fields: Json) -> None:
    with place.open() as store:
        checkpoint(store, KEY, request(status, **fields))


def expected(place: Place, **changes: Json) -> ExpectedIsolation:
    fields = {"evidence": read_record(IsolationEvidence, SAFE)} | {
        name: tuple(roots) for name, roots in place.roots(KEY).items()
    }
    return ExpectedIsolation(**(fields | changes))


class TestTable:
    def test_nothing_there(self, place: Place) -> None:
        """T13: `created`, with the whole budget."""
        found = made(place, order(budget=LIMITED))
        assert (found.trial_path, found.mode, found.state_version) == (KEY.path, Mode.CREATED, 0)
        assert found.remaining_budget.model_dump() == LIMITED

    def test_a_leftover_of_a_build(self, place: Place) -> None:
        """T13: removed, then `created`; somebody else's folder of another name stays."""
        arm = place.root / "trials" / "task-a" / "profile-full"
        for name in (".sample-001.0123456789abcdef.new", ".sample-0010.0123456789abcdef.new"):
            (arm / name / "outcome").mkdir(parents=True)
            put(arm / name / "trial.json", b"{")
        for folder in (place.root, *place.root.rglob("*")):
            if folder.is_dir():
                folder.chmod(0o700)
        assert made(place).mode is Mode.CREATED
        left = [".sample-001.prepare.lock", ".sample-0010.0123456789abcdef.new", "sample-001"]
        assert listing(arm) == left

    @pytest.mark.parametrize("kept", [0, 1, 2, 3, 4])
    def test_an_interrupted_first_creation(self, place: Place, kept: int) -> None:
        """T13: finished in place, `created`."""
        made(place)
        whole = content(place.root)
        trial = place.trial(KEY)
        parts = [".trial.lock", "events.jsonl", "access-audit.jsonl", "outcome"]
        (trial / "trial.json").unlink()
        for name in parts[kept:]:
            path = trial / name
            path.rmdir() if path.is_dir() else path.unlink()
        put(trial / ".trial.json.0123456789abcdef.tmp", b'{"half"')
        assert made(place).mode is Mode.CREATED
        assert content(place.root) == whole
        assert (trial / "outcome").is_dir()
        assert wrong_modes(place.root) == []

    @pytest.mark.parametrize(
        ("name", "data"),
        [
            ("note.txt", b""),
            ("breach.json", b"{}"),
            ("events.jsonl", b"{}\n"),
            ("access-audit.jsonl", b"x"),
            ("outcome/result.json", b"{}"),
            ("grading/grade.json", b"{}"),
            (".other.0123456789abcdef.tmp", b""),
        ],
    )
    def test_foreign_content_without_a_document(self, place: Place, name: str, data: bytes) -> None:
        """T11 T13: `evidence_invalid`, and every byte stays."""
        made(place)
        trial = place.trial(KEY)
        (trial / "trial.json").unlink()
        (trial / name).parent.mkdir(mode=0o700, exist_ok=True)
        put(trial / name, data)
        before = content(trial)
        assert refused(place).code is TrialCode.EVIDENCE_INVALID
        assert content(trial) == before

    @pytest.mark.parametrize("name", ["events.jsonl", "outcome", "link"])
    def test_a_link_without_a_document_is_foreign(self, place: Place, name: str) -> None:
        """T11: nothing is read or written through it."""
        made(place)
        trial = place.trial(KEY)
        (trial / "trial.json").unlink()
        if (trial / name).exists():
            (trial / name).rmdir() if name == "outcome" else (trial / name).unlink()
        (trial / name).symlink_to(place.checkout)
        assert refused(place).code is TrialCode.EVIDENCE_INVALID
        assert (trial / name).is_symlink()

    @pytest.mark.parametrize(
        "lost", [("events.jsonl",), ("access-audit.jsonl",), ("events.jsonl", "access-audit.jsonl")]
    )
    def test_version_zero_without_logs(self, place: Place, lost: tuple[str, ...]) -> None:
        """T13: the logs are made, `resume`."""
        made(place)
        whole = content(place.root)
        for name in lost:
            (place.trial(KEY) / name).unlink()
        assert made(place).mode is Mode.RESUME
        assert content(place.root) == whole

    def test_a_started_trial_gets_no_new_logs(self, place: Place) -> None:
        made(place)
        moved(place, "running", resume_cursor=cursor())
        (place.trial(KEY) / "events.jsonl").unlink()
        assert made(place).mode is Mode.RESUME
        assert not (place.trial(KEY) / "events.jsonl").exists()

    @pytest.mark.parametrize("status", ["running", "interim-budget-stop"])
    def test_a_started_trial(self, place: Place, status: str) -> None:
        """T13: `resume` with what is left."""
        made(place, order(budget=LIMITED))
        moved(place, status, resume_cursor=cursor(tokens=400))
        found = made(place, order(budget=LIMITED))
        assert (found.mode, found.state_version) == (Mode.RESUME, 1)
        assert found.remaining_budget.model_dump() == LIMITED | {"tokens": 600}

    def test_nothing_left(self, place: Place) -> None:
        """T13: a dimension at 0 is `budget_exceeded`."""
        made(place, order(budget=LIMITED))
        moved(place, "interim-budget-stop", resume_cursor=cursor(wall_time_seconds=60.5))
        found = refused(place, order(budget=LIMITED))
        assert (found.code, found.field) == (TrialCode.BUDGET_EXCEEDED, "wall_time_seconds")

    def test_a_started_trial_without_its_cursor(self, place: Place) -> None:
        """T13: running and interim need their cursor."""
        made(place)
        moved(place, "running", resume_cursor=cursor())
        place.edit(KEY, resume_cursor=None)
        assert refused(place).code is TrialCode.CURSOR_INVALID

    @pytest.mark.parametrize("status", ["contaminated", "failed"])
    def test_an_ended_trial(self, place: Place, status: str) -> None:
        """T13: `terminal`."""
        made(place)
        moved(place, status, stop_reason="crashed")
        assert made(place).mode is Mode.TERMINAL

    def test_a_completed_trial(self, place: Place) -> None:
        """T13: `complete` against its evidence and both lists of roots, and not without them."""
        made(place)
        place.fill(KEY)
        with place.open() as store:
            checkpoint(store, KEY, place.completion(KEY))
        assert made(place, order(expected=expected(place))).mode is Mode.COMPLETE
        assert refused(place).code is TrialCode.BINDING_MISMATCH

    @pytest.mark.parametrize(
        "changes",
        [
            {"evidence": None},
            {"evidence": read_record(IsolationEvidence, SAFE | {"provider_persistence": None})},
            {"read_allow_roots": ("/elsewhere",)},
            {"write_allow_roots": ()},
        ],
        ids=["no evidence", "other evidence", "other read roots", "no write roots"],
    )
    def test_a_completed_trial_that_recorded_something_else(self, place: Place, changes: Json) -> None:
        """T13: one of the three differs."""
        made(place)
        place.fill(KEY)
        with place.open() as store:
            checkpoint(store, KEY, place.completion(KEY))
        wanted = order(expected=expected(place, **changes))
        assert refused(place, wanted).code is TrialCode.BINDING_MISMATCH

    def test_a_completed_trial_that_drifted(self, place: Place) -> None:
        """T13: it does not replay."""
        made(place)
        place.fill(KEY)
        with place.open() as store:
            checkpoint(store, KEY, place.completion(KEY))
        put_lines(place.trial(KEY) / "events.jsonl", [{"event_contract": "other"}])
        assert refused(place, order(expected=expected(place))).code is TrialCode.BINDING_MISMATCH

    def test_a_marked_trial_is_not_resumed(self, place: Place) -> None:
        made(place)
        put(place.trial(KEY) / "breach.json", b"{}")
        assert refused(place).code is TrialCode.ISOLATION_BREACH


class TestIdentity:
    @pytest.mark.parametrize(
        ("field", "changes"),
        [
            ("task", {"task": task(corpus_version="tests-2")}),
            ("task", {"task": task(expected_owners=["demo:other"])}),
            ("runtime", {"runtime": RUNTIME | {"model": "model-2"}}),
            ("runtime", {"runtime": RUNTIME | {"further": 1}}),
            ("budget", {"budget": UNLIMITED | {"tokens": 5}}),
            ("registry_plan_hash", {"plan": plan(PROFILE)}),
        ],
    )
    def test_names_the_field_that_differs(self, place: Place, field: str, changes: Json) -> None:
        """T13: a fixed field differs: `identity_mismatch`, the stored state stays."""
        made(place)
        found = refused(place, order(**changes))
        assert (found.code, found.field) == (TrialCode.IDENTITY_MISMATCH, field)

    def test_another_manifest_of_the_arm(self, place: Place) -> None:
        """T13: the manifest hash is fixed."""
        made(place)
        value = to_json(manifests(PROFILE)["profile-full"])
        value["component_hashes"]["profile_payload"] = digest("d")  # type: ignore[index,call-overload]
        del value["manifest_hash"]
        other = parse_manifest(value | {"manifest_hash": digest_object(value)})
        found = refused(place, order(manifest=other))
        assert (found.code, found.field) == (TrialCode.IDENTITY_MISMATCH, "manifest_hash")

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("registry_schema", "skill-content"),
            ("registry_schema", ...),
            ("arm_id", "profile-off"),
            ("sample_index", 2),
            ("trial_location_hash", digest("e")),
            ("trial_fingerprint", digest("e")),
        ],
    )
    def test_an_edited_document(self, place: Place, field: str, value: object) -> None:
        """T13: what was stored is not what this order makes."""
        made(place)
        place.edit(KEY, **{field: value})
        found = refused(place)
        assert (found.code, found.field) == (TrialCode.IDENTITY_MISMATCH, field)

    def test_numbers_are_equal_however_they_are_spelled(self, place: Place) -> None:
        made(place, order(budget=UNLIMITED | {"tokens": 5}))
        assert made(place, order(budget=UNLIMITED | {"tokens": 5.0})).mode is Mode.RESUME

    def test_an_absolute_location_is_accepted_in_place(self, place: Place) -> None:
        """T9: the digest of the absolute path is a location too."""
        wanted = order()
        made(place, wanted)
        by_path = digest_text(str(place.trial(KEY)))
        stored = fingerprint(
            task=wanted.task,
            manifest_hash=wanted.manifest.manifest_hash,
            runtime=wanted.runtime,
            budget=wanted.budget,
            sample_index=1,
            trial_location_hash=by_path,
        )
        place.edit(KEY, trial_location_hash=by_path, trial_fingerprint=stored)
        assert made(place, wanted).mode is Mode.RESUME
        elsewhere = Place(place.base / "copy")
        shutil.copytree(place.root, elsewhere.root)
        found = refused(elsewhere, wanted)
        assert (found.code, found.field) == (TrialCode.IDENTITY_MISMATCH, "trial_location_hash")


class TestOrder:
    def test_a_study_needs_its_plan(self, place: Place) -> None:
        """T16: `plan_missing`; nothing is written."""
        assert refused(place, order(study=True)).code is TrialCode.PLAN_MISSING
        assert not (place.root / "trials").exists()

    def test_a_manifest_outside_the_plan(self, place: Place) -> None:
        """T16: `plan_mismatch`."""
        value = to_json(plan(PROFILE))
        value["arm_manifest_hashes"] = value["arm_manifest_hashes"] | {"profile-full": digest("d")}  # type: ignore[operator]
        kept = ("schema_version", "registry_schema", "arm_manifest_hashes")
        value["arm_registry_hash"] = digest_object({name: value[name] for name in kept})
        del value["plan_hash"]
        foreign = parse_plan(value | {"plan_hash": digest_object(value)})
        found = refused(place, order(plan=foreign, study=True))
        assert found.code is TrialCode.PLAN_MISMATCH

    def test_the_plan_is_recorded(self, place: Place) -> None:
        """T16: with its hash; elsewhere it is optional."""
        made(place, order(plan=plan(PROFILE), study=True))
        assert place.document(KEY)["registry_plan_hash"] == plan(PROFILE).plan_hash
        made(place, order(sample=2))
        assert "registry_plan_hash" not in place.document(TrialKey("task-a", "profile-full", 2))

    @pytest.mark.parametrize(
        "changes",
        [
            {"plan": plan(CONTENT)},
            {"registry_schema": CONTENT},
            {"registry_schema": CONTENT, "plan": plan(PROFILE)},
        ],
    )
    def test_registries_do_not_mix(self, place: Place, changes: Json) -> None:
        assert refused(place, order(**changes)).code is TrialCode.REGISTRY_MISMATCH

    def test_the_registry_may_be_said(self, place: Place) -> None:
        assert made(place, order(registry_schema=PROFILE)).mode is Mode.CREATED

    @pytest.mark.parametrize("sample", [0, -1])
    def test_samples_begin_at_one(self, place: Place, sample: int) -> None:
        found = refused(place, order(sample=sample))
        assert (found.code, found.field) == (TrialCode.BAD_RECORD, "sample_index")

    def test_advisory_arms_need_gates_that_declare_the_tier(self, place: Place) -> None:
        """T28: nothing advisory is even prepared without; causal trials are."""
        without = gates(requested_tier="causal", waived_items=[])
        with place.open(gates=without) as store:
            with pytest.raises(TrialError) as caught:
                prepare(store, order())
            assert caught.value.code is TrialCode.REGISTRY_MISMATCH
            assert prepare(store, order(CONTENT)).mode is Mode.CREATED

    def test_a_held_out_task_is_stored_by_its_reference(self, place: Place) -> None:
        held_out = parse_task(
            to_json(task())
            | {
                "cohort": "held-out-generalization",
                "prompt_ref": "corpus://private/1",
                "frozen_at_sha": "a" * 40,
                "skill_content_cutoff": "2026-01-01",
                "curator_independent": True,
                "repo_snapshot": digest("f"),
                "should_invoke": True,
                "risk_tags": ["data-loss"],
                "graders": ["tests"],
                "negative_control": False,
            }
        )
        made(place, order(task=held_out))
        assert "demo:refactoring" not in (place.trial(KEY) / "trial.json").read_text()


class TestPlanned:
    def test_a_creation_is_a_value_first(self, place: Place) -> None:
        with place.open() as store:
            change = plan_prepare(store, order())
            assert (change.before, change.result.mode) == (None, Mode.CREATED)
            assert not (place.root / "trials").exists()
            assert apply_prepare(store, change) == change.result
            whole = content(place.root)
            assert apply_prepare(store, change) == change.result
            assert content(place.root) == whole
            again = plan_prepare(store, order())
            assert (again.before, again.after, again.data) == (change.after, change.after, None)

    def test_a_creation_that_somebody_else_made_differently(self, place: Place) -> None:
        with place.open() as store:
            change = plan_prepare(store, order())
            prepare(store, order(budget=LIMITED))
            with pytest.raises(TrialError) as caught:
                apply_prepare(store, change)
            assert caught.value.code is TrialCode.VERSION_CONFLICT

    def test_a_trial_that_is_gone(self, place: Place) -> None:
        made(place)
        with place.open() as store:
            change = plan_prepare(store, order())
            shutil.rmtree(place.trial(KEY))
            with pytest.raises(TrialError) as caught:
                apply_prepare(store, change)
            assert caught.value.code is TrialCode.VERSION_CONFLICT


class TestDurability:
    def test_what_was_found_is_made_durable_before_it_is_answered_for(self, place: Place) -> None:
        """T10: whoever made the trial may have been killed between its rename and its fsync."""
        made(place)
        fs = RecordingFs(RealFs())
        with place.open(fs) as store:
            assert prepare(store, order()).mode is Mode.RESUME
        synced = {step.path for step in fs.steps if step.operation == "fsync_dir"}
        assert {str(place.trial(KEY)), str(place.trial(KEY).parent)} <= synced


class TestRace:
    def test_of_sixteen_threads_one_creates(self, place: Place) -> None:
        """T12: the others resume, and nothing is left over."""
        made_by = []

        def run(_: int) -> Mode:
            return made(place).mode

        with ThreadPoolExecutor(16) as pool:
            made_by = list(pool.map(run, range(16)))
        assert sorted(made_by) == [Mode.CREATED, *[Mode.RESUME] * 15]
        assert wrong_modes(place.root) == []
        assert not list(place.root.rglob("*.new"))

    def test_of_sixteen_processes_one_creates(self, place: Place) -> None:
        """T12: also when they share nothing."""
        assert child_output(RACE, place.base) == "1 15"


RACE = """
import os, pathlib, sys
from skill_effectiveness.trials.prepare import prepare
from tests.support.trials import Place, order
place = Place(pathlib.Path(sys.argv[1]))
wanted = order()
ready, go = os.pipe()
children = []
for _ in range(16):
    pid = os.fork()
    if pid == 0:
        os.close(go)
        os.read(ready, 1)
        with place.open() as store:
            os._exit({"created": 0, "resume": 1}[prepare(store, wanted).mode])
    children.append(pid)
os.close(ready)
os.close(go)
codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
print(codes.count(0), codes.count(1))
"""
