"""A completed trial holds where it lies, where it is moved to, and not after the slightest change."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.canonical import digest_bytes, digest_object, digest_text
from skill_effectiveness.evidence.fsdoubles import RecordingFs
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.trials.binding import EvidenceDigests, completion_binding
from skill_effectiveness.trials.checkpoint import checkpoint
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.models import (
    ExpectedIsolation,
    IsolationEvidence,
    Mode,
    TrialDocument,
    TrialKey,
    read_record,
)
from skill_effectiveness.trials.prepare import prepare
from skill_effectiveness.trials.replay import replay, replay_folder
from skill_effectiveness.trials.store import TrialStore, read_document
from tests.support.crash_images import fast_folder
from tests.support.private import imprint, surroundings
from tests.support.trials import (
    CONTENT,
    LIMITED,
    PROFILE,
    SAFE,
    Json,
    Place,
    cursor,
    digest,
    order,
    put,
    put_lines,
)
from tests.trials.test_tiers import gates

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from skill_effectiveness.trials.replay import Replayed

KEY = TrialKey("task-a", "profile-full", 1)


def completed(folder: Path, registry: Json = PROFILE, **changes: Json) -> Place:
    place, wanted = Place(folder), order(registry, budget=LIMITED)
    with place.open() as store:
        prepare(store, wanted)
        place.fill(wanted.key)
        fields = {"resume_cursor": cursor(5, tokens=10)} | changes
        checkpoint(store, wanted.key, place.completion(wanted.key, **fields))
    return place


@pytest.fixture
def place() -> Iterator[Place]:
    with fast_folder() as folder:
        yield completed(folder / "first")


def replayed(place: Place, key: TrialKey = KEY, expected: Json = None, frozen: Json = None) -> Replayed:
    with place.open(gates=frozen) as store:
        return replay(store, key, expected=expected)


def refused(place: Place, code: TrialCode = TrialCode.BINDING_MISMATCH, **others: Json) -> TrialError:
    with pytest.raises(TrialError) as caught:
        replayed(place, **others)
    assert caught.value.code is code, caught.value
    return caught.value


def bound(place: Place, **changes: Json) -> None:
    """Change `trial.json` and bind it again, as only its owner could."""
    place.edit(KEY, **changes)
    with place.open() as store, store.demand_trial(KEY) as trial:
        document = read_document(trial)
        evidence = replayed_evidence(place)
    place.edit(KEY, completion_binding_hash=completion_binding(document, evidence))


def replayed_evidence(place: Place) -> Json:
    trial = place.trial(KEY)
    names = ("events.jsonl", "access-audit.jsonl", "outcome/result.json")
    return EvidenceDigests(*(digest_bytes((trial / name).read_bytes()) for name in names))


class TestHolds:
    def test_where_it_is(self, place: Place) -> None:
        found = replayed(place)
        assert (found.evidence_tier, found.coverage_limitations) == ("advisory-paired", ())
        assert found.document.status == "completed"

    def test_with_other_white_space(self, place: Place) -> None:
        """The document is a state file: what it says is bound, not how it is laid out."""
        path = place.trial(KEY) / "trial.json"
        put(path, json.dumps(json.loads(path.read_bytes()), indent=2).encode())
        replayed(place)

    def test_and_asks_for_no_audited_path(self, place: Place) -> None:
        """The checkout is gone and a link lies in its place: what completed stays completed."""
        shutil.rmtree(place.checkout)
        place.checkout.symlink_to("/etc")
        fs = RecordingFs(RealFs())
        with place.open(fs) as store:
            replay(store, KEY)
        assert not any("checkout" in step.path for step in fs.steps)

    def test_by_its_folder_alone(self, place: Place) -> None:
        """A sealed copy has no store around it."""
        shutil.copytree(place.trial(KEY), place.base / "sealed")
        (place.base / "sealed").chmod(0o700)
        around = surroundings()
        with PrivateRoot.open(place.base / "sealed", RootKind.OUT, around=around, checkout=None) as trial:
            assert replay_folder(trial, read_document(trial), gates()).evidence_tier == "advisory-paired"


class TestPlaces:
    def elsewhere(self, place: Place, *, keep: bool) -> Place:
        second = Place(place.base.parent / "second")
        if keep:
            shutil.copytree(place.root, second.root)
            shutil.copystat(place.root, second.root)
        else:
            place.root.rename(second.root)
        return second

    @pytest.mark.parametrize("keep", [False, True], ids=["moved", "copied"])
    def test_a_store_elsewhere(self, place: Place, *, keep: bool) -> None:
        """T9: it replays, is handed out against its roots as they are now, and takes new trials."""
        second = self.elsewhere(place, keep=keep)
        replayed(second)
        roots = {name: tuple(paths) for name, paths in second.roots(KEY).items()}
        roots["read_allow_roots"] = (str(place.checkout),)
        expected = ExpectedIsolation(read_record(IsolationEvidence, SAFE), **roots)
        with second.open() as store:
            found = prepare(store, order(budget=LIMITED, expected=expected))
            assert found.mode is Mode.COMPLETE
            assert prepare(store, order(sample=2)).mode is Mode.CREATED
        if keep:
            replayed(place)

    @pytest.mark.parametrize("keep", [False, True], ids=["moved", "copied"])
    def test_a_store_elsewhere_that_is_only_looked_at(self, place: Place, *, keep: bool) -> None:
        """T9: it replays against its roots as they are now, and the new place is noted nowhere."""
        second = self.elsewhere(place, keep=keep)
        roots = {name: tuple(paths) for name, paths in second.roots(KEY).items()}
        roots["read_allow_roots"] = (str(place.checkout),)
        expected = ExpectedIsolation(read_record(IsolationEvidence, SAFE), **roots)
        before = imprint(second.root)
        with TrialStore.look(second.root, around=surroundings(), checkout=None, gates=gates()) as store:
            replay(store, KEY, expected=expected)
        assert imprint(second.root) == before

    def test_roots_outside_the_store_do_not_move_with_it(self, place: Place) -> None:
        """T9: only roots under the store are seen from it."""
        second = self.elsewhere(place, keep=True)
        roots = {name: tuple(paths) for name, paths in second.roots(KEY).items()}
        expected = ExpectedIsolation(read_record(IsolationEvidence, SAFE), **roots)
        found = refused(second, expected=expected)
        assert found.field == "read_allow_roots"

    def test_roots_as_they_were_recorded(self, place: Place) -> None:
        roots = {name: tuple(paths) for name, paths in place.roots(KEY).items()}
        expected = ExpectedIsolation(read_record(IsolationEvidence, SAFE), **roots)
        replayed(place, expected=expected)
        replayed(self.elsewhere(place, keep=True), expected=expected)

    def test_an_absolute_location(self, place: Place) -> None:
        """T9: holds in place, and nowhere else."""
        bound(place, trial_location_hash=digest_text(str(place.trial(KEY))))
        replayed(place)
        found = refused(self.elsewhere(place, keep=True))
        assert found.field == "trial_location_hash"

    def test_another_sample_of_the_same_store(self, place: Place) -> None:
        """A trial copied to another index is not that trial."""
        other = TrialKey("task-a", "profile-full", 2)
        shutil.copytree(place.trial(KEY), place.trial(other))
        place.trial(other).chmod(0o700)
        assert refused(place, key=other).field == "sample_index"
        place.edit(other, sample_index=2)
        assert refused(place, key=other).field == "trial_location_hash"


class TestDrift:
    @pytest.mark.parametrize("name", ["events.jsonl", "access-audit.jsonl", "outcome/result.json"])
    def test_one_flipped_byte_of_each_file(self, place: Place, name: str) -> None:
        """T29: at every offset of every bound file."""
        path = place.trial(KEY) / name
        whole = path.read_bytes()
        for offset in range(len(whole)):
            put(path, whole[:offset] + bytes([whole[offset] ^ 1]) + whole[offset + 1 :])
            refused(place)
        put(path, whole)
        replayed(place)

    def test_one_flipped_byte_of_the_document(self, place: Place) -> None:
        """T29: at every offset a byte of `trial.json` that changes a bound field is found."""
        path = place.trial(KEY) / "trial.json"
        whole = path.read_bytes()
        before = json.loads(whole)
        bound_fields = (
            "trial_fingerprint", "status", "state_version", "completion_claim", "resume_cursor",
            "completion_isolation", "completion_binding_hash",
        )  # fmt: skip
        found = 0
        for offset in range(len(whole)):
            put(path, whole[:offset] + bytes([whole[offset] ^ 1]) + whole[offset + 1 :])
            try:
                after = json.loads(path.read_bytes())
            except ValueError:
                after = {}
            if any(after.get(name) != before[name] for name in bound_fields):
                found += 1
                with pytest.raises(TrialError):
                    replayed(place)
        assert found > 500

    @pytest.mark.parametrize(
        "changes",
        [
            {"trial_fingerprint": digest("e")},
            {"state_version": 2},
            {"resume_cursor": cursor(5, tokens=11)},
            {"resume_cursor": cursor(6, tokens=10)},
            {"completion_binding_hash": digest("e")},
        ],
        ids=lambda changes: next(iter(changes)),
    )
    def test_each_bound_field(self, place: Place, changes: Json) -> None:
        """T29: a bound field with another legal value."""
        place.edit(KEY, **changes)
        assert refused(place).field == "completion_binding_hash"

    @pytest.mark.parametrize(
        ("member", "value", "field"),
        [
            ("evidence_hash", digest("e"), "evidence_hash"),
            ("status", "advisory_limited", "status"),
            ("file_access_status", "unverified", "file_access_status"),
            ("memory_isolation_status", "unverified", "memory_isolation_status"),
            ("coverage_limitations", ["complete_access_audit"], "status"),
            ("coverage_limitations", ["memory_isolation_proof"], "coverage_limitations"),
            ("read_allow_roots", ["/elsewhere"], "completion_binding_hash"),
            ("write_allow_roots", ["/elsewhere"], "completion_binding_hash"),
        ],
    )
    def test_each_member_of_the_isolation_record(
        self, place: Place, member: str, value: object, field: str
    ) -> None:
        """T29 T25: a record that does not follow from its evidence, or is not what was bound."""
        record = place.document(KEY)["completion_isolation"] | {member: value}
        place.edit(KEY, completion_isolation=record)
        assert refused(place).field == field

    @pytest.mark.parametrize(
        "changes",
        [
            {"coverage_limitations": []},
            {"coverage_limitations": ["complete_access_audit", "memory_isolation_proof"][:1]},
            {"status": "ok", "coverage_limitations": [], "memory_isolation_status": "ok"},
        ],
    )
    def test_limitations_are_not_edited_away(self, changes: Json) -> None:
        """T25: also when the document is bound again."""
        with fast_folder() as folder:
            place = completed(folder, isolation_evidence=SAFE | {"fresh_session": None})
            record = place.document(KEY)["completion_isolation"] | changes
            bound(place, completion_isolation=record)
            refused(place)

    def test_a_completion_without_its_limitations(self, place: Place) -> None:
        """T25: it is no document."""
        record = place.document(KEY)["completion_isolation"]
        del record["coverage_limitations"]
        place.edit(KEY, completion_isolation=record)
        refused(place, TrialCode.EVIDENCE_INVALID)

    def test_an_emptied_audit(self, place: Place) -> None:
        put(place.trial(KEY) / "access-audit.jsonl", b"")
        bound(place)
        assert refused(place).field == "access-audit.jsonl"

    def test_a_malformed_audit_that_was_bound_again(self, place: Place) -> None:
        put_lines(place.trial(KEY) / "access-audit.jsonl", [{"actor": "controller"}])
        bound(place)
        refused(place)

    @pytest.mark.parametrize("used", [{"tokens": 1001}, {"cost_units": 2.5}])
    def test_more_than_the_budget(self, place: Place, used: Json) -> None:
        bound(place, resume_cursor=cursor(5, **used))
        assert refused(place).field == "resume_cursor"

    def test_no_account_under_a_limit(self, place: Place) -> None:
        bound(place, resume_cursor=None)
        assert refused(place).field == "resume_cursor"

    @pytest.mark.parametrize("name", ["events.jsonl", "access-audit.jsonl", "outcome/result.json"])
    def test_a_lost_file(self, place: Place, name: str) -> None:
        (place.trial(KEY) / name).unlink()
        refused(place)

    def test_a_trial_that_has_not_completed(self, place: Place) -> None:
        with place.open() as store:
            prepare(store, order(sample=2))
        assert refused(place, key=TrialKey("task-a", "profile-full", 2)).field == "status"


class TestBreach:
    def test_a_mark_beside_a_completion(self, place: Place) -> None:
        put(place.trial(KEY) / "breach.json", b"{}")
        refused(place, TrialCode.ISOLATION_BREACH)

    def test_recorded_evidence_that_shows_one(self, place: Place) -> None:
        """T18: bound again, and still no completion."""
        evidence = SAFE | {"canary_leak_detected": True}
        record = place.document(KEY)["completion_isolation"] | {
            "evidence": evidence,
            "evidence_hash": digest_object(evidence),
        }
        bound(place, completion_isolation=record)
        refused(place, TrialCode.ISOLATION_BREACH)


class TestTier:
    def test_of_the_stored_registry(self, place: Place) -> None:
        """T23: a recorded tier that says otherwise is refused, bound or not."""
        record = place.document(KEY)["completion_isolation"] | {"evidence_tier": "causal"}
        bound(place, completion_isolation=record)
        refused(place, TrialCode.REGISTRY_MISMATCH)

    @pytest.mark.parametrize(
        ("registry", "code"),
        [
            ("skill-content", TrialCode.REGISTRY_MISMATCH),
            ("another", TrialCode.EVIDENCE_INVALID),
            (..., TrialCode.REGISTRY_MISMATCH),
        ],
    )
    def test_of_another_stored_registry(self, place: Place, registry: object, code: TrialCode) -> None:
        """T23: the registry is what counts, whatever the isolation record says."""
        bound(place, registry_schema=registry)
        refused(place, code)

    def test_a_causal_record_with_a_gap(self) -> None:
        """T23 T24: nothing is waived for the causal tier, in replay neither."""
        key = TrialKey("task-a", "S2", 1)
        with fast_folder() as folder:
            place = completed(folder, CONTENT)
            record = place.document(key)["completion_isolation"] | {
                "status": "advisory_limited",
                "file_access_status": "unverified",
                "coverage_limitations": ["complete_access_audit"],
            }
            place.edit(key, completion_isolation=record)
            refused(place, TrialCode.PROOF_MISSING, key=key)

    def test_gates_without_the_tier(self, place: Place) -> None:
        """T28: an advisory trial counts no more."""
        without = gates(requested_tier="causal", waived_items=[])
        refused(place, TrialCode.REGISTRY_MISMATCH, frozen=without)


def test_the_binding_is_over_exactly_these(place: Place) -> None:
    """The preimage of trials.md section 2, put together by hand."""
    document = place.document(KEY)
    evidence = replayed_evidence(place)
    names = (
        "trial_fingerprint", "status", "state_version", "completion_claim", "resume_cursor",
        "completion_isolation",
    )  # fmt: skip
    assert document["completion_binding_hash"] == digest_object(
        {
            "artifact_contract": "skill-effectiveness-completion-binding-v1",
            **{name: document[name] for name in names},
            "evidence_files": {
                "events.jsonl": evidence.events,
                "access-audit.jsonl": evidence.audit,
                "outcome/result.json": evidence.outcome,
            },
        }
    )
    assert read_record(TrialDocument, document).completion_claim is True
