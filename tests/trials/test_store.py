"""Where trials lie, and what is found there."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.canonical import digest_text
from skill_effectiveness.evidence.faults import LockError, RootCode, RootError
from skill_effectiveness.evidence.fsdoubles import RecordingFs
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.trials.checkpoint import checkpoint
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.models import TrialKey, document_line
from skill_effectiveness.trials.prepare import prepare
from skill_effectiveness.trials.replay import replay
from skill_effectiveness.trials.store import TrialStore, check_identity, parse_document, read_document
from tests.support.crash_images import fast_folder
from tests.support.private import imprint, listing, surroundings, wrong_modes
from tests.support.trials import (
    LIMITED,
    PROFILE,
    SAFE,
    Place,
    cursor,
    order,
    plan,
    put,
    put_lines,
    request,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.trials.models import TrialDocument

KEY = TrialKey("task-a", "profile-full", 1)


@pytest.fixture
def place() -> Iterator[Place]:
    with fast_folder() as folder:
        yield Place(folder)


def test_a_prepared_trial_has_exactly_this_form(place: Place) -> None:
    with place.open() as store:
        prepare(store, order())
    arm = place.root / "trials" / "task-a" / "profile-full"
    assert listing(place.root) == [".root.lock", "root.json", "trials"]
    assert listing(arm) == [".sample-001.prepare.lock", "sample-001"]
    trial = arm / "sample-001"
    found = [".trial.lock", "access-audit.jsonl", "events.jsonl", "outcome", "trial.json"]
    assert listing(trial) == found
    assert listing(trial / "outcome") == []
    assert (trial / "events.jsonl").read_bytes() == (trial / "access-audit.jsonl").read_bytes() == b""
    assert wrong_modes(place.root) == []


@pytest.mark.parametrize("mask", [0o000, 0o077, 0o177])
def test_modes_do_not_follow_the_umask(place: Place, mask: int) -> None:
    """T8: folders 0700 and files 0600 whatever the umask is."""
    before = os.umask(mask)
    try:
        with place.open() as store:
            prepare(store, order())
    finally:
        os.umask(before)
    assert stat.S_IMODE(place.root.stat().st_mode) == 0o700
    assert wrong_modes(place.root) == []


def test_a_bridge_root_may_be_readable_by_others(place: Place) -> None:
    place.root.mkdir(mode=0o755)
    around = surroundings()
    with TrialStore.open(place.root, around=around, checkout=None, kind=RootKind.STORE) as store:
        prepare(store, order())
    assert stat.S_IMODE((place.root / "trials").stat().st_mode) == 0o700


class TestIdentity:
    def test_is_made_once(self, place: Place) -> None:
        with place.open() as store:
            first = store.root_id
        with place.open() as store:
            assert store.root_id == first
            assert store.located_at == (str(place.root),)

    def test_is_only_read_where_it_is_known(self, place: Place) -> None:
        place.open().close()
        fs = RecordingFs(RealFs())
        with place.open(fs):
            pass
        assert fs.steps == []

    def test_notes_a_new_place(self, place: Place) -> None:
        place.open().close()
        first = str(place.root)
        place.root = place.root.rename(place.root.with_name("moved"))
        with place.open() as store:
            assert store.located_at == (first, str(place.root))

    def test_the_location_of_a_trial_names_no_path_of_the_machine(self, place: Place) -> None:
        with place.open() as store:
            prepare(store, order())
            by_path = digest_text(str(place.trial(KEY)))
            assert store.is_location(KEY, store.location(KEY))
            assert store.is_location(KEY, by_path)
            assert not store.is_location(KEY, digest_text("elsewhere"))
        assert place.document(KEY)["trial_location_hash"] != by_path

    def test_of_one_place_is_not_that_of_another(self, place: Place) -> None:
        with place.open() as store:
            other = TrialKey("task-a", "profile-full", 2)
            assert store.location(KEY) != store.location(other)


class TestLook:
    def test_reads_at_a_new_place_and_notes_nothing(self, place: Place) -> None:
        """T9: what replay needs is known all the same."""
        with place.open() as store:
            prepare(store, order())
        first = str(place.root)
        place.root = place.root.rename(place.root.with_name("moved"))
        before = imprint(place.root)
        fs = RecordingFs(RealFs())
        with TrialStore.look(place.root, around=surroundings(fs), checkout=None) as store:
            assert store.located_at == (first, str(place.root))
            with store.demand_trial(KEY) as trial:
                check_identity(store, KEY, read_document(trial))
        assert fs.steps == []
        assert imprint(place.root) == before

    def test_a_store_looked_at_locks_nothing(self, place: Place) -> None:
        with place.open() as store:
            prepare(store, order())
        before = imprint(place.root)
        with TrialStore.look(place.root, around=surroundings(), checkout=None) as store:
            for held in (store.holding(KEY), store.preparing(KEY)):
                with pytest.raises(ValueError, match="only looked at"), held:
                    pass
        assert imprint(place.root) == before

    def test_a_folder_that_is_no_store(self, place: Place) -> None:
        """T54: told by a sentence, and closed."""
        place.root.mkdir(mode=0o700)
        with pytest.raises(TrialError, match="no store of trials") as caught:
            TrialStore.look(place.root, around=surroundings(), checkout=None)
        assert caught.value.code is TrialCode.TRIAL_MISSING
        assert listing(place.root) == []


class TestKeys:
    def test_of_an_empty_store_there_are_none(self, place: Place) -> None:
        with place.open() as store:
            assert list(store.keys()) == []

    def test_come_in_order_and_pass_over_what_is_foreign(self, place: Place) -> None:
        with place.open() as store:
            for sample in (10, 2, 1):
                prepare(store, order(sample=sample))
            prepare(store, order(task_id="task-0"))
            prepare(store, order(arm="profile-off"))
            trials = place.root / "trials"
            put(trials / "note.txt", b"x")
            put(trials / "task-a" / "sample-001", b"x")
            (trials / "task-a" / "profile-full" / "old").mkdir(mode=0o700)
            assert [key.path for key in tuple(store.keys())] == [
                "task-0/profile-full/sample-001",
                "task-a/profile-full/sample-001",
                "task-a/profile-full/sample-002",
                "task-a/profile-full/sample-010",
                "task-a/profile-off/sample-001",
            ]

    def test_a_link_on_the_way_is_refused(self, place: Place) -> None:
        with place.open() as store:
            prepare(store, order())
            (place.root / "trials" / "linked").symlink_to(place.root / "trials" / "task-a")
            with pytest.raises(RootError) as caught:
                list(store.keys())
            assert caught.value.code is RootCode.ROOT_SYMLINK


class TestTrial:
    def test_is_found_or_not(self, place: Place) -> None:
        with place.open() as store:
            assert store.trial(KEY) is None
            with pytest.raises(TrialError) as caught:
                store.demand_trial(KEY)
            assert (caught.value.code, caught.value.where) == (TrialCode.TRIAL_MISSING, KEY.path)
            prepare(store, order())
            with store.demand_trial(KEY) as trial:
                assert read_document(trial).task.task_id == "task-a"

    @pytest.mark.parametrize("data", [None, b"", b"{", b"[]", b"{}", b'{"a":1,"a":2}', b"\xff"])
    def test_without_a_readable_document_is_no_evidence(self, place: Place, data: bytes | None) -> None:
        with place.open() as store:
            prepare(store, order())
            path = place.trial(KEY) / "trial.json"
            path.unlink()
            if data is not None:
                put(path, data)
            with store.demand_trial(KEY) as trial, pytest.raises(TrialError) as caught:
                read_document(trial)
            assert caught.value.code is TrialCode.EVIDENCE_INVALID

    def test_a_document_that_others_may_write_is_no_evidence(self, place: Place) -> None:
        with place.open() as store:
            prepare(store, order())
            (place.trial(KEY) / "trial.json").chmod(0o666)
            with store.demand_trial(KEY) as trial, pytest.raises(TrialError) as caught:
                read_document(trial)
            assert caught.value.code is TrialCode.EVIDENCE_INVALID

    def test_is_changed_by_one_at_a_time(self, place: Place) -> None:
        with place.open() as store, place.open() as other, ThreadPoolExecutor(1) as another:
            prepare(store, order())

            def second() -> None:
                with other.holding(KEY, 0):
                    pass

            with store.holding(KEY), pytest.raises(LockError, match=r"\.trial\.lock"):
                another.submit(second).result()
            another.submit(second).result()


class TestKnownDocuments:
    """A store does not judge again what it wrote itself, byte for byte."""

    @pytest.mark.parametrize("evidence", [SAFE, {"fresh_session": True}, None])
    def test_are_what_their_bytes_say(self, place: Place, evidence: object) -> None:
        """T23: at every step of a trial another process reads the same."""
        with place.open() as store:
            steps = [prepare(store, order(budget=LIMITED)).trial_path]
            seen = [self._seen(store, place)]
            checkpoint(store, KEY, request("running", resume_cursor=cursor(tokens=1.5, cost_units=1.0)))
            seen.append(self._seen(store, place))
            place.fill(KEY)
            done = place.completion(
                KEY, isolation_evidence=evidence, resume_cursor=cursor(tokens=2, cost_units=1.0)
            )
            checkpoint(store, KEY, done)
            seen.append(self._seen(store, place))
        assert steps == [KEY.path]
        assert [document.state_version for document in seen] == [0, 1, 2]

    def _seen(self, store: TrialStore, place: Place) -> TrialDocument:
        data = (place.trial(KEY) / "trial.json").read_bytes()
        known, read = store.read(data), parse_document(data)
        assert known == read
        assert known is store.read(data)
        assert document_line(known) == document_line(read) == data
        return known

    def test_changed_by_one_byte_are_not(self, place: Place) -> None:
        """T29: in the same process too."""
        with place.open() as store:
            prepare(store, order())
            place.fill(KEY)
            checkpoint(store, KEY, place.completion(KEY))
            replay(store, KEY)
            path = place.trial(KEY) / "trial.json"
            path.write_bytes(path.read_bytes().replace(b'"state_version":1', b'"state_version":2'))
            with pytest.raises(TrialError) as caught:
                replay(store, KEY)
        assert caught.value.code is TrialCode.BINDING_MISMATCH

    def test_are_few(self, place: Place) -> None:
        with place.open() as store:
            prepare(store, order())
            first = store.read((place.trial(KEY) / "trial.json").read_bytes())
            for number in range(2, 66):
                prepare(store, order(sample=number))
            again = store.read((place.trial(KEY) / "trial.json").read_bytes())
        assert again == first
        assert again is not first


class TestNames:
    @pytest.mark.parametrize("task_id", ["Task-A", "TASK-a"])
    def test_case_variants_collide(self, place: Place, task_id: str) -> None:
        """T58: on some file systems the two would be one folder."""
        with place.open() as store:
            prepare(store, order())
            with pytest.raises(TrialError, match="differs from the existing") as caught:
                prepare(store, order(task_id=task_id))
            assert caught.value.code is TrialCode.BAD_RECORD
        assert listing(place.root / "trials") == ["task-a"]


class TestPlan:
    def test_is_read_by_its_path(self, place: Place) -> None:
        with place.open() as store:
            store.root.child("plans", create=True).close()
            put_lines(place.root / "plans" / "p.json", [to_json(plan(PROFILE))])
            assert store.plan("plans/p.json") == plan(PROFILE)

    @pytest.mark.parametrize(
        "path", ["", "/etc/passwd", "../p.json", "plans/../p.json", "plans//p.json", "."]
    )
    def test_stays_below_the_store(self, place: Place, path: str) -> None:
        with place.open() as store, pytest.raises(TrialError) as caught:
            store.plan(path)
        assert caught.value.code is TrialCode.BAD_RECORD

    @pytest.mark.parametrize("path", ["p.json", "plans/p.json"])
    def test_that_is_not_there_is_missing(self, place: Place, path: str) -> None:
        with place.open() as store, pytest.raises(TrialError) as caught:
            store.plan(path)
        assert caught.value.code is TrialCode.PLAN_MISSING

    def test_that_was_edited_is_no_plan(self, place: Place) -> None:
        with place.open() as store:
            put_lines(place.root / "p.json", [to_json(plan(PROFILE)) | {"plan_hash": "sha256:" + "0" * 64}])
            with pytest.raises(TrialError) as caught:
                store.plan("p.json")
        assert caught.value.code is TrialCode.EVIDENCE_INVALID


def test_closes_its_root_when_its_identity_cannot_be_read(place: Place) -> None:
    place.root.mkdir(mode=0o700)
    put(place.root / "root.json", b"{}\n")
    with pytest.raises(Exception, match="field"):
        place.open()
    with PrivateRoot.open(place.root, RootKind.OUT, around=surroundings(), checkout=None) as root:
        assert root.read("root.json") == b"{}\n"
