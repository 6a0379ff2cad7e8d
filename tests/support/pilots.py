"""Whole pilots on disk: a store of ended trials, their plan, and the bundle of it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from skill_effectiveness.calibration.documents import PAIR_NAMES
from skill_effectiveness.calibration.models import to_line
from skill_effectiveness.evidence.canonical import digest_bytes, digest_object, dump_line
from skill_effectiveness.evidence.fsops import RealFs, remove_tree
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.protocol.gates import gates_hash
from skill_effectiveness.protocol.words import BankName, TaskFamily
from skill_effectiveness.trials.binding import EvidenceDigests, completion_binding
from skill_effectiveness.trials.checkpoint import checkpoint
from skill_effectiveness.trials.gate_evidence import Evaluated, Expected, evaluate_bundle
from skill_effectiveness.trials.models import TrialBudget, TrialDocument, TrialKey, TrialRuntime, read_record
from skill_effectiveness.trials.pilot_plan import plan_row, read_design, read_plan
from skill_effectiveness.trials.pilot_writing import BundleContents, write_bundle
from skill_effectiveness.trials.prepare import prepare
from tests.support import gates, trials
from tests.support.examinations import INPUTS, UnsyncedFs
from tests.support.private import surroundings
from tests.support.trials import PROFILE, SAFE, UNLIMITED, Place, put

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.protocol.registries import RegistrySchema
    from skill_effectiveness.trials.pilot_records import BundleDocument
    from skill_effectiveness.trials.store import TrialStore

Anything: TypeAlias = Any
"""Of JSON documents that are spoiled on purpose."""

FAMILIES = {"task-a": TaskFamily.IMPLEMENTATION, "task-b": TaskFamily.REVIEW}
PAIR = PAIR_NAMES[BankName.JUDGED]
CLEAN = {"schema_version": 1, "event_contract": "host-residual-v1", "status": "clean", "layers": []}
RESIDUAL = CLEAN | {"status": "residual", "layers": ["ccl"]}


def skill_events(*calls: str, first_task_tool: int | None = None) -> dict[str, Anything]:
    """A row of these completed skill calls, before the first task tool unless said otherwise."""
    return {
        "schema_version": 1,
        "event_contract": "skill-events-v2",
        "driver": "claude-code",
        "unverifiable": None,
        "events": {
            "schema_version": 1,
            "event_contract_version": "skill-events-v2",
            "event_contract_status": "stable",
            "skill_events_available": True,
            "task_tool_events_available": True,
            "first_task_tool_event_index": len(calls) if first_task_tool is None else first_task_tool,
            "event_index_source": "fixture-modeled-single-monotonic-stream",
            "skills_invoked": [
                {
                    "skill": name,
                    "event_index": index,
                    "tool_use_id": f"call-{index}",
                    "matching_tool_result": True,
                    "completed": True,
                }
                for index, name in enumerate(calls)
            ],
        },
    }


UNVERIFIABLE = {
    "schema_version": 1,
    "event_contract": "skill-events-v2",
    "driver": "claude-code",
    "unverifiable": "driver_shape_unregistered",
    "events": None,
}
ORACLE = "oracle-owner-subagent"


@dataclass
class Ending:
    """How one trial ends and what it leaves; everything in order unless changed."""

    status: str = "completed"
    stop_reason: str | None = None
    events: list[Anything] | None = None
    outcome: Anything = field(default_factory=lambda: {"judge_payload": {"answer": "42"}})
    grades: tuple[Anything, Anything] | None = None
    isolation: dict[str, Anything] = field(default_factory=lambda: dict(SAFE))
    audited: bool = True
    enforced: bool = True


def grade(fingerprint: str, *, passed: bool = True, **changes: Anything) -> dict[str, Anything]:
    """A grade of one check."""
    return {
        "schema_version": 1,
        "artifact_contract": "skill-effectiveness-grade-v1",
        "trial_fingerprint": fingerprint,
        "grader_hash": trials.digest("d"),
        "checks": [{"check_id": "tests", "kind": "acceptance", "passed": passed}],
        "passed": passed,
        **changes,
    }


class Pilot:
    """A pilot in a folder: two tasks, the arms of one registry, three samples."""

    def __init__(
        self,
        folder: Path,
        registry: RegistrySchema = PROFILE,
        *,
        samples: int = 3,
        tasks: dict[str, TaskFamily] = FAMILIES,
        provider: str = "codex",
        fs: FileSystem | None = None,
    ) -> None:
        self.registry = registry
        self.provider = provider
        self.config: Anything = None
        self.samples = samples
        self.place = Place(folder)
        self.fs = fs or UnsyncedFs()
        self.tasks = {name: trials.task(name, task_family=family.value) for name, family in tasks.items()}
        self.manifests = trials.manifests(registry)
        self.bundle = folder / "bundle"
        with self.store() as store:
            self.rows = self._rows(store)

    def store(self) -> TrialStore:
        """The store, opened."""
        return self.place.open(self.fs)

    def trials(self) -> list[TrialKey]:
        """Every trial, in run order."""
        return [
            TrialKey(task, arm, sample)
            for sample in range(1, self.samples + 1)
            for task in self.tasks
            for arm in self.manifests
        ]

    def runtime(self, key: TrialKey) -> TrialRuntime:
        """What a trial runs in: every one in a session of its own."""
        return read_record(TrialRuntime, self._runtime(key))

    def _runtime(self, key: TrialKey) -> dict[str, Anything]:
        return trials.RUNTIME | {"provider": self.provider, "session_id": key.path}

    def rows_of(self, keys: Iterable[TrialKey]) -> list[Anything]:
        """The rows of a plan that has these trials, in this order."""
        with self.store() as store:
            return self._rows(store, keys)

    def _rows(self, store: TrialStore, keys: Iterable[TrialKey] = ()) -> list[Anything]:
        return [
            plan_row(
                task=self.tasks[key.task_id],
                manifest=self.manifests[key.arm_id],
                runtime=self.runtime(key),
                budget=read_record(TrialBudget, UNLIMITED),
                sample_index=key.sample_index,
                run_order=number,
                trial_location_hash=store.location(key),
            )
            for number, key in enumerate(keys or self.trials(), start=1)
        ]

    @property
    def expected(self) -> Expected:
        """The plan as a caller gives it."""
        return Expected(
            config=self.config,
            tasks=[to_json(task) for task in self.tasks.values()],
            manifests=[to_json(manifest) for manifest in self.manifests.values()],
            trials=self.rows,
        )

    def run(self, **endings: Ending) -> None:
        """Let every trial end well, but those named (`task_a__profile_off__1=Ending(…)`)."""
        with self.store() as store:
            for key in self.trials():
                self.end(store, key, endings.get(name_of(key), Ending()))

    def end(self, store: TrialStore, key: TrialKey, ending: Ending) -> None:
        """Prepare one trial and let it end."""
        order = trials.order(
            self.registry,
            task=self.tasks[key.task_id],
            manifest=self.manifests[key.arm_id],
            runtime=self._runtime(key),
            sample=key.sample_index,
            plan=trials.plan(self.registry),
        )
        prepare(store, order)
        checkpoint(store, key, trials.request("running", resume_cursor=trials.cursor()))
        rows = ending.events
        if rows is None:
            rows = [CLEAN, skill_events(*([ORACLE] if key.arm_id == "S1" else []))]
        self.place.fill(key, events=rows, outcome=ending.outcome)
        if ending.status != "completed":
            fields = {"stop_reason": ending.stop_reason, "isolation_evidence": ending.isolation}
            checkpoint(store, key, trials.request(ending.status, **fields))
            return
        completion = self.place.completion(
            key,
            isolation_evidence=ending.isolation,
            access_audit_complete=ending.audited,
            access_roots_enforced=ending.enforced,
        )
        checkpoint(store, key, completion)
        self.put_grades(key, ending.grades)

    def put_grades(self, key: TrialKey, grades_of: tuple[Anything, Anything] | None = None) -> None:
        """Write both grade files; two equal valid ones unless given."""
        folder = self.place.trial(key) / "grading"
        folder.mkdir(mode=0o700, exist_ok=True)
        stored = self.place.document(key)["trial_fingerprint"]
        one, two = grades_of or (grade(stored), grade(stored))
        for name, value in (("grade.json", one), ("grade-replay.json", two)):
            if value is not None:
                put(folder / name, json.dumps(value).encode())

    def write(
        self,
        *,
        sealed: bool = False,
        pairs: list[tuple[bytes, bytes]] | None = None,
        probes: list[bytes] | None = None,
    ) -> BundleDocument:
        """Write the bundle of the trials as they are."""
        contents = BundleContents(self.expected, pairs or [pair_bytes()], probes or [], sealed)
        with self.root(create=True) as root, self.store() as store:
            return write_bundle(root, contents, INPUTS, store)

    def root(self, *, create: bool = False) -> PrivateRoot:
        """The folder of the bundle, opened."""
        opening = PrivateRoot.create if create else PrivateRoot.open
        return opening(self.bundle, RootKind.OUT, around=surroundings(self.fs), checkout=None)

    def evaluate(self, *, stored: bool = True, **changes: Anything) -> Evaluated:
        """The verdict over the bundle; without the store over its sealed copies."""
        given = {name: getattr(self.expected, name) for name in ("config", "tasks", "manifests", "trials")}
        expected = Expected(**(given | changes))
        with self.root() as root:
            if not stored:
                return evaluate_bundle(root, expected, INPUTS)
            with self.store() as store:
                return evaluate_bundle(root, expected, INPUTS, store=store)

    def write_rows(self, records: list[Anything]) -> None:
        """A bundle of these rows and one examination."""
        evidence, result = pair_bytes()
        design = read_design(self.expected.tasks, self.expected.manifests)
        plan = read_plan(design, self.rows, config_hash=FROZEN_HASH, samples_min=1)
        self.bundle.mkdir(mode=0o700)
        put(self.bundle / "trial-records.jsonl", b"".join(dump_line(row) for row in records))
        put(self.bundle / PAIR.evidence, evidence)
        put(self.bundle / PAIR.result, result)
        document = {
            "schema_version": 1,
            "artifact_contract": "skill-effectiveness-pilot-evidence-v1",
            "records_hash": digest_object(records),
            "record_count": len(records),
            "calibration_hash": digest_object(json.loads(evidence)),
            "calibration_result_hash": digest_object(json.loads(result)),
            "config_hash": FROZEN_HASH,
            "plan_binding_hash": plan.binding_hash,
        }
        put(self.bundle / "bundle.json", dump_line(document | {"bundle_hash": digest_object(document)}))

    # Spoiling.

    def edit_records(self, change: Anything) -> None:
        """Change the rows and bind them again, as somebody would who owns the bundle."""
        rows = [json.loads(line) for line in (self.bundle / "trial-records.jsonl").read_bytes().splitlines()]
        rows = change(rows)
        put(self.bundle / "trial-records.jsonl", b"".join(json.dumps(row).encode() + b"\n" for row in rows))
        self.edit_bundle(records_hash=digest_object(rows), record_count=len(rows))

    def edit_bundle(self, **changes: Anything) -> None:
        """Change members of `bundle.json` and hash it again."""
        path = self.bundle / "bundle.json"
        document = json.loads(path.read_bytes()) | changes
        document = {name: value for name, value in document.items() if value is not ...}
        del document["bundle_hash"]
        put(path, json.dumps(document | {"bundle_hash": digest_object(document)}).encode())


def name_of(key: TrialKey) -> str:
    """A trial as the name of an argument."""
    return f"{key.task_id}__{key.arm_id}__{key.sample_index}".replace("-", "_")


@cache
def pair_bytes(family: str = "family-1") -> tuple[bytes, bytes]:
    """The two files of a passing examination."""
    loaded = gates.pair(family).calibration
    assert loaded is not None
    return to_line(loaded.evidence), to_line(loaded.result)


FROZEN = INPUTS.gates
FROZEN_HASH = gates_hash(FROZEN)


def probe_file(family: str, provider: str) -> bytes:
    """The file of a probe that saw everything and found nothing."""
    evidence = {
        "mount_boundary": {
            "probe_id": "p-1",
            "status": "verified",
            "observations": {"outside_read_denied": True, "outside_write_denied": True},
        },
        "access_audit": {
            "probe_id": "p-2",
            "status": "verified",
            "observations": {"all_accesses_recorded": True, "tamper_check_passed": True},
        },
        "memory_isolation": {
            "probe_id": "p-3",
            "status": "verified",
            "observations": {"fresh_session": True, "cross_session_recall_detected": False},
        },
    }
    entry = {
        "runner": "runner-1",
        "provider": provider,
        "task_family": family,
        "evidence": evidence,
        "evidence_hash": digest_object(evidence),
    }
    probe = {
        "schema_version": 1,
        "artifact_contract": "skill-effectiveness-capability-probe-v1",
        "entry": entry,
        "entry_hash": digest_object(entry),
    }
    return json.dumps(probe).encode()


def many(folder: Path, count: int) -> Pilot:
    """A pilot of `count` completed trials and its bundle, written without the way a runner goes.

    One trial of each arm is run; of every other one only the document differs, so it is written from that.
    """
    pilot = Pilot(folder, samples=1)
    pilot.run()
    models = {key.arm_id: pilot.place.document(key) for key in pilot.trials() if key.task_id == "task-a"}
    pilot.samples = count // (len(pilot.tasks) * len(pilot.manifests))
    with pilot.store() as store:
        pilot.rows = pilot._rows(store)
        for key, row in zip(pilot.trials(), pilot.rows, strict=True):
            if pilot.place.trial(key).exists():
                remove_tree(RealFs(), pilot.place.trial(key))
            _put_trial(pilot, key, row, models[key.arm_id])
    records = [_record(row) for row in pilot.rows]
    pilot.write_rows(records)
    return pilot


def _put_trial(pilot: Pilot, key: TrialKey, row: Anything, model: dict[str, Anything]) -> None:
    """One completed trial, as its files."""
    place = pilot.place.trial(key)
    for inner in (place, place / "outcome", place / "grading"):
        inner.mkdir(mode=0o700, parents=True, exist_ok=True)
    place.parent.chmod(0o700)
    place.parent.parent.chmod(0o700)
    files = {
        "events.jsonl": b"".join(dump_line(row) for row in (CLEAN, skill_events())),
        "access-audit.jsonl": b"".join(dump_line(row) for row in pilot.place.rows(key)),
        "outcome/result.json": dump_line({"judge_payload": {"answer": "42"}}),
    }
    digests = EvidenceDigests(*(digest_bytes(data) for data in files.values()))
    given = row["fingerprint_input"]
    document = model | {
        "task": row["task_reference"],
        "runtime": given["runtime"],
        "sample_index": key.sample_index,
        "trial_location_hash": given["trial_location_hash"],
        "trial_fingerprint": row["trial_fingerprint"],
    }
    bound = completion_binding(read_record(TrialDocument, document), digests)
    graded = dump_line(grade(row["trial_fingerprint"]))
    files |= {"grading/grade.json": graded, "grading/grade-replay.json": graded}
    files["trial.json"] = dump_line(document | {"completion_binding_hash": bound})
    for name, data in files.items():
        _write(place / name, data)


def _write(path: Path, data: bytes) -> None:
    """A new private file, in as few calls as possible."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)


def _record(row: Anything) -> Anything:
    names = ("task_id", "arm_id", "sample_index", "run_order", "task_hash", "manifest_hash", "runtime_hash")
    names += ("runner_hash", "experiment_plan_hash", "trial_fingerprint")
    said = {name: row[name] for name in names} | {"task_family": FAMILIES[row["task_id"]].value}
    return said | {"runner_completed": True, "contaminated": False, "blinding_leak": False}
