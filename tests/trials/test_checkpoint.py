"""Checkpoints: transitions, versions, cursors, breaches, evidence files, proofs; planned, then applied."""

from __future__ import annotations

import itertools
import json
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.canonical import digest_bytes, digest_object
from skill_effectiveness.evidence.faults import LockError
from skill_effectiveness.evidence.fsdoubles import RecordingFs
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.trials.checkpoint import apply, checkpoint, plan_checkpoint
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.models import TrialKey, TrialStatus
from skill_effectiveness.trials.prepare import prepare
from skill_effectiveness.trials.transitions import check_transition, read_request
from tests.support.crash_images import fast_folder
from tests.support.private import content, wrong_modes
from tests.support.trials import (
    ARM,
    CONTENT,
    LIMITED,
    PROFILE,
    SAFE,
    UNLIMITED,
    Json,
    Place,
    cursor,
    order,
    put,
    put_lines,
    request,
)
from tests.trials.test_isolation import BREACHES
from tests.trials.test_tiers import SIX, gates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.protocol.registries import RegistrySchema
    from skill_effectiveness.trials.models import Checkpointed, CheckpointRequest

KEY = TrialKey("task-a", "profile-full", 1)
STATES = [str(status) for status in TrialStatus]
ENDED = ("completed", "contaminated", "failed")


class CountingFs(RealFs):
    """Counts how often an absolute path is looked at."""

    def __init__(self) -> None:
        self.looked: Counter[str] = Counter()

    def lstat(self, parent: int | None, name: str) -> os.stat_result:
        self.looked[name] += parent is None
        return super().lstat(parent, name)


class Trial:
    """One trial in a store of its own."""

    def __init__(self, folder: Json, registry: RegistrySchema = PROFILE, **changes: Json) -> None:
        self.place = Place(folder)
        self.order = order(registry, **changes)
        self.key = self.order.key
        self.path = self.place.trial(self.key)
        with self.place.open() as store:
            prepare(store, self.order)

    @property
    def document(self) -> dict[str, Any]:
        return self.place.document(self.key)

    def go(self, status: str | CheckpointRequest, *, frozen: Json = None, **fields: Json) -> Checkpointed:
        wanted = request(status, **fields) if isinstance(status, str) else status
        with self.place.open(gates=frozen) as store:
            return checkpoint(store, self.key, wanted)

    def complete(self, *, frozen: Json = None, **changes: Json) -> Checkpointed:
        return self.go(self.place.completion(self.key, **changes), frozen=frozen)

    def refused(self, status: str | CheckpointRequest, *, frozen: Json = None, **fields: Json) -> TrialError:
        """The fault of a checkpoint that changes nothing but, perhaps, the breach mark."""
        before = content(self.path)
        with pytest.raises(TrialError) as caught:
            self.go(status, frozen=frozen, **fields)
        after = content(self.path)
        if caught.value.code is TrialCode.ISOLATION_BREACH:
            after.pop("breach.json")
            before.pop("breach.json", None)
        assert after == before
        assert wrong_modes(self.place.root) == []
        return caught.value

    def incomplete(self, *, frozen: Json = None, **changes: Json) -> TrialError:
        return self.refused(self.place.completion(self.key, **changes), frozen=frozen)


@pytest.fixture
def trial() -> Iterator[Trial]:
    with fast_folder() as folder:
        yield Trial(folder)


@pytest.fixture(params=[PROFILE, CONTENT], ids=str)
def ready(request: pytest.FixtureRequest) -> Iterator[Trial]:
    """A trial of either registry with its evidence files."""
    with fast_folder() as folder:
        made = Trial(folder, request.param)
        made.place.fill(made.key)
        yield made


class TestTransitions:
    @pytest.mark.parametrize(("before", "after"), list(itertools.product(STATES, STATES)))
    def test_every_pair(self, before: str, after: str) -> None:
        """T14: from prepared, running and interim to all but prepared; from the rest to nothing."""
        pair = TrialStatus(before), TrialStatus(after)
        if before not in ENDED and after != "prepared":
            check_transition(*pair)
            return
        with pytest.raises(TrialError) as caught:
            check_transition(*pair)
        assert caught.value.code is (TrialCode.TERMINAL if before in ENDED else TrialCode.BAD_RECORD)

    @pytest.mark.parametrize("first", [None, "running", "interim-budget-stop"])
    @pytest.mark.parametrize("then", STATES[1:])
    def test_every_legal_step_is_taken(self, trial: Trial, first: str | None, then: str) -> None:
        """T14: on disk, one version on each time."""
        trial.place.fill(KEY)
        if first is not None:
            trial.go(first, resume_cursor=cursor(1, tokens=1))
        version = 0 if first is None else 1
        done = (
            trial.complete()
            if then == "completed"
            else trial.go(then, resume_cursor=cursor(2, tokens=2), stop_reason="why not")
        )
        assert done.state_version == version + 1
        assert (trial.document["status"], trial.document["state_version"]) == (then, version + 1)

    @pytest.mark.parametrize("ended", ENDED)
    @pytest.mark.parametrize("then", STATES[1:])
    def test_nothing_follows_the_end(self, trial: Trial, ended: str, then: str) -> None:
        """T14: a terminal trial stays as it is."""
        trial.place.fill(KEY)
        trial.complete() if ended == "completed" else trial.go(ended)
        wanted = trial.place.completion(KEY) if then == "completed" else then
        assert trial.refused(wanted).code is TrialCode.TERMINAL

    def test_stop_reasons_are_kept_as_text(self, trial: Trial) -> None:
        trial.go("failed", stop_reason="the cat did it")
        assert trial.document["stop_reason"] == "the cat did it"


class TestRequest:
    @pytest.mark.parametrize(
        "changes",
        [
            {"status": "done"},
            {"status": ["completed"]},
            {"status": "running", "stop_reason": ""},
            {"status": "running", "read_allow_roots": [1]},
            {"status": "running", "read_allow_roots": []},
            {"status": "running", "write_allow_roots": ["relative"]},
            {"status": "running", "expected_state_version": -1},
            {"status": "running", "expected_state_version": True},
            {"status": "running", "access_audit_complete": "yes"},
            {"status": "running", "isolation_evidence": {"fresh_session": "no"}},
            {"status": "running", "isolation_evidence": {"other": True}},
            {"status": "running", "unknown": 1},
            {},
        ],
    )
    def test_malformed(self, changes: Json) -> None:
        with pytest.raises(TrialError) as caught:
            read_request(changes)
        assert caught.value.code is TrialCode.BAD_RECORD

    @pytest.mark.parametrize(
        "value", [{}, {"next_run_order": 1}, {"next_run_order": 0, "consumed_budget": {}}, [], "x"]
    )
    def test_malformed_cursor(self, value: object) -> None:
        with pytest.raises(TrialError) as caught:
            read_request({"status": "running", "resume_cursor": value})
        assert caught.value.code is TrialCode.CURSOR_INVALID

    def test_prepared_is_no_checkpoint(self, trial: Trial) -> None:
        assert trial.refused("prepared").code is TrialCode.BAD_RECORD

    @pytest.mark.parametrize("name", ["access_audit_complete", "access_roots_enforced"])
    @pytest.mark.parametrize("value", [..., None])
    def test_a_completion_states_both_declarations(self, ready: Trial, name: str, value: object) -> None:
        """T22: silence never means proven."""
        found = ready.incomplete(**{name: value})
        assert (found.code, found.field) == (TrialCode.BAD_RECORD, name)

    @pytest.mark.parametrize("name", ["read_allow_roots", "write_allow_roots"])
    def test_a_completion_needs_its_roots(self, ready: Trial, name: str) -> None:
        found = ready.incomplete(**{name: ...})
        assert (found.code, found.field) == (TrialCode.BAD_RECORD, name)

    def test_roots_may_not_reach_the_controller(self, ready: Trial) -> None:
        """T59: a completion under such roots is refused."""
        for name in ("", "grading", "breach.json", "trial.json"):
            found = ready.incomplete(write_allow_roots=[f"{ready.path}/{name}"])
            assert found.code is TrialCode.BAD_RECORD

    def test_roots_are_judged_after_links(self, ready: Trial) -> None:
        """T59: a link to the trial's folder is the trial's folder."""
        link = ready.place.base / "link"
        link.symlink_to(ready.path)
        assert ready.incomplete(write_allow_roots=[str(link)]).code is TrialCode.BAD_RECORD

    def test_home_is_no_root(self, ready: Trial) -> None:
        with ready.place.open(environ={"HOME": str(ready.place.checkout)}) as store:
            with pytest.raises(TrialError) as caught:
                checkpoint(store, ready.key, ready.place.completion(ready.key))
            assert caught.value.where == "/read_allow_roots/0"

    def test_a_home_that_leads_nowhere_is_no_reason_to_fail(self, ready: Trial) -> None:
        loop = ready.place.base / "loop"
        loop.symlink_to(loop)
        with ready.place.open(environ={"HOME": str(loop)}) as store:
            checkpoint(store, ready.key, ready.place.completion(ready.key))

    def test_a_root_that_leads_nowhere_is_none(self, ready: Trial) -> None:
        loop = ready.place.base / "loop"
        loop.symlink_to(loop)
        assert ready.incomplete(read_allow_roots=[str(loop)]).where == "/read_allow_roots/0"

    def test_there_is_no_such_trial(self, trial: Trial) -> None:
        with trial.place.open() as store, pytest.raises(TrialError) as caught:
            checkpoint(store, TrialKey("task-a", "profile-full", 2), request("failed"))
        assert caught.value.code is TrialCode.TRIAL_MISSING

    def test_a_document_from_another_place(self, trial: Trial) -> None:
        trial.place.edit(KEY, sample_index=2)
        found = trial.refused("failed")
        assert (found.code, found.field) == (TrialCode.IDENTITY_MISMATCH, "sample_index")


class TestVersion:
    def test_null_does_not_ask(self, trial: Trial) -> None:
        assert trial.go("running", resume_cursor=cursor(), expected_state_version=None).state_version == 1

    def test_zero_is_a_version(self, trial: Trial) -> None:
        assert trial.go("running", resume_cursor=cursor(), expected_state_version=0).state_version == 1
        assert trial.refused("running", expected_state_version=0).code is TrialCode.VERSION_CONFLICT
        assert trial.go("running", expected_state_version=1).state_version == 2

    def test_has_an_end(self, trial: Trial) -> None:
        trial.go("running", resume_cursor=cursor())
        trial.place.edit(KEY, state_version=2**53 - 1)
        assert trial.refused("running").code is TrialCode.EVIDENCE_INVALID

    def test_comes_before_the_state(self, trial: Trial) -> None:
        trial.go("failed")
        assert trial.refused("failed", expected_state_version=0).code is TrialCode.VERSION_CONFLICT
        assert trial.refused("failed", expected_state_version=1).code is TrialCode.TERMINAL

    def test_of_many_with_one_version_one_wins(self, trial: Trial) -> None:
        trial.go("running", resume_cursor=cursor())
        ended = []
        for _ in range(5):
            try:
                ended.append(trial.go("running", expected_state_version=1).state_version)
            except TrialError as error:
                ended.append(error.code)
        assert ended == [2, *[TrialCode.VERSION_CONFLICT] * 4]


class TestCursor:
    def test_is_needed_to_start(self, trial: Trial) -> None:
        assert trial.refused("running").code is TrialCode.CURSOR_INVALID

    def test_stays_when_it_is_omitted(self, trial: Trial) -> None:
        trial.go("running", resume_cursor=cursor(4, tokens=7))
        trial.go("running")
        assert trial.document["resume_cursor"] == cursor(4, tokens=7)

    def test_is_needed_at_every_interim_stop(self, trial: Trial) -> None:
        trial.go("running", resume_cursor=cursor())
        assert trial.refused("interim-budget-stop").code is TrialCode.CURSOR_INVALID

    def test_is_needed_to_complete_under_a_limit(self) -> None:
        with fast_folder() as folder:
            limited = Trial(folder, budget=UNLIMITED | {"cost_units": 3})
            limited.place.fill(KEY)
            limited.go("running", resume_cursor=cursor())
            assert limited.incomplete().code is TrialCode.CURSOR_INVALID
            limited.complete(resume_cursor=cursor(cost_units=3))

    def test_is_not_needed_to_complete_without_one(self, ready: Trial) -> None:
        ready.complete()
        assert ready.document["resume_cursor"] is None

    def test_falls_never(self, trial: Trial) -> None:
        """T15: neither run order nor any consumption, over any number of checkpoints."""
        trial.go("running", resume_cursor=cursor(3, tokens=5, cost_units=1))
        for worse in (cursor(2, tokens=9, cost_units=9), cursor(9, tokens=4.5, cost_units=1)):
            for status in ("running", "interim-budget-stop", "failed", "contaminated"):
                assert trial.refused(status, resume_cursor=worse).code is TrialCode.NO_PROGRESS
        trial.go("interim-budget-stop", resume_cursor=cursor(3, tokens=6, cost_units=1))
        stuck = trial.refused("interim-budget-stop", resume_cursor=cursor(3, tokens=6, cost_units=1))
        assert stuck.code is TrialCode.NO_PROGRESS

    def test_stays_within_the_budget(self) -> None:
        with fast_folder() as folder:
            limited = Trial(folder, budget=LIMITED)
            over = cursor(tokens=1001)
            for status in ("running", "interim-budget-stop"):
                found = limited.refused(status, resume_cursor=over)
                assert (found.code, found.field) == (TrialCode.BUDGET_EXCEEDED, "tokens")
            limited.place.fill(KEY)
            assert limited.incomplete(resume_cursor=over).code is TrialCode.BUDGET_EXCEEDED
            # The overrun itself is put on record.
            limited.go("failed", resume_cursor=over, stop_reason="limit")
            assert limited.document["resume_cursor"] == over


class TestBreach:
    @pytest.mark.parametrize("name", BREACHES)
    @pytest.mark.parametrize("status", ["running", "interim-budget-stop", "completed"])
    def test_observed_at_either_tier(self, ready: Trial, name: str, status: str) -> None:
        """T18: each field, both tiers, all six waived, nothing else proven."""
        value, kind, _ = BREACHES[name]
        evidence = {name: value}
        if status == "completed":
            found = ready.incomplete(
                isolation_evidence=evidence, access_audit_complete=False, access_roots_enforced=False
            )
        else:
            found = ready.refused(status, isolation_evidence=evidence, resume_cursor=cursor())
        assert (found.code, found.field) == (TrialCode.ISOLATION_BREACH, str(kind))
        mark = json.loads((ready.path / "breach.json").read_bytes())
        assert mark == {
            "schema_version": 1,
            "artifact_contract": "skill-effectiveness-trial-breach-v1",
            "trial_fingerprint": ready.document["trial_fingerprint"],
            "state_version": 0,
            "breaches": [str(kind)],
            "evidence_hash": digest_object(evidence),
            "access_audit_hash": digest_bytes((ready.path / "access-audit.jsonl").read_bytes())
            if status == "completed"
            else None,
        }

    def test_observed_in_the_audit(self, ready: Trial) -> None:
        """T18: a path outside the roots, whatever is declared."""
        outside = {"actor": "tested-agent", "operation": "read", "path": str(ready.path / "trial.json")}
        put_lines(ready.path / "access-audit.jsonl", [*ready.place.rows(ready.key), outside])
        found = ready.incomplete(access_audit_complete=False, access_roots_enforced=False)
        assert (found.code, found.field) == (TrialCode.ISOLATION_BREACH, "read_outside_roots")
        assert str(ready.path) not in (ready.path / "breach.json").read_text()

    def test_a_link_leads_out(self, ready: Trial) -> None:
        """T20: the row says a path of the checkout that is a link to the trial's grades."""
        (ready.place.checkout / "alias").symlink_to(ready.path)
        row = {
            "actor": "tested-agent",
            "operation": "read",
            "path": str(ready.place.checkout / "alias" / "grading" / "grade.json"),
        }
        put_lines(ready.path / "access-audit.jsonl", [*ready.place.rows(ready.key), row])
        assert ready.incomplete().code is TrialCode.ISOLATION_BREACH

    def test_is_looked_for_once_per_path(self, ready: Trial) -> None:
        """T21: a completion looks at each distinct audited path once, however many rows name it."""
        fs = CountingFs()
        rows = [
            {"actor": "tested-agent", "operation": "read", "path": f"{ready.place.checkout}/{number % 20}"}
            for number in range(1_000)
        ]
        ready.place.fill(ready.key, rows=rows)
        with ready.place.open(fs) as store:
            checkpoint(store, ready.key, ready.place.completion(ready.key))
        assert [fs.looked[f"{ready.place.checkout}/{number}"] for number in range(20)] == [1] * 20

    @pytest.mark.parametrize("ended", ["contaminated", "failed"])
    def test_is_never_washed_off(self, ready: Trial, ended: str) -> None:
        """T19: a cleaned audit and clean evidence complete nothing; only the two tainted ends remain."""
        put_lines(
            ready.path / "access-audit.jsonl",
            [{"actor": "tested-agent", "operation": "read", "path": "/etc/passwd"}],
        )
        assert ready.incomplete().code is TrialCode.ISOLATION_BREACH
        marked = (ready.path / "breach.json").read_bytes()
        ready.place.fill(ready.key)
        assert ready.incomplete().code is TrialCode.ISOLATION_BREACH
        for status in ("running", "interim-budget-stop"):
            found = ready.refused(status, resume_cursor=cursor(1, tokens=1))
            assert found.code is TrialCode.ISOLATION_BREACH
        assert (ready.path / "breach.json").read_bytes() == marked
        assert ready.go(ended).state_version == 1

    @pytest.mark.parametrize("ended", ["contaminated", "failed"])
    def test_may_be_reported_with_the_end(self, ready: Trial, ended: str) -> None:
        """T18: it is marked all the same, so that no failed or void trial hides it."""
        evidence = SAFE | {"canary_leak_detected": True}
        ready.go(ended, isolation_evidence=evidence, stop_reason="void")
        assert ready.document["status"] == ended
        mark = json.loads((ready.path / "breach.json").read_bytes())
        assert mark["breaches"] == ["canary_leak_detected"]
        assert mark["evidence_hash"] == digest_object(evidence)
        assert mark["access_audit_hash"] is None

    def test_is_marked_as_it_was_first_seen(self, ready: Trial) -> None:
        """T19: an end that tells of another breach changes no mark."""
        ready.incomplete(isolation_evidence=SAFE | {"auto_memory_enabled": True})
        marked = (ready.path / "breach.json").read_bytes()
        ready.go("failed", isolation_evidence=SAFE | {"canary_leak_detected": True})
        assert (ready.path / "breach.json").read_bytes() == marked

    def test_an_end_without_one_leaves_no_mark(self, ready: Trial) -> None:
        ready.go("failed", isolation_evidence=SAFE, stop_reason="timeout")
        assert not (ready.path / "breach.json").exists()

    def test_outranks_everything_behind_it(self, trial: Trial) -> None:
        """No evidence files, no proof, over budget: the breach is what is told."""
        found = trial.incomplete(
            isolation_evidence={"canary_leak_detected": True}, resume_cursor=cursor(tokens=10**9)
        )
        assert found.code is TrialCode.ISOLATION_BREACH

    def test_does_not_outrank_a_stale_version(self, trial: Trial) -> None:
        found = trial.refused(
            trial.place.completion(
                KEY, isolation_evidence={"canary_leak_detected": True}, expected_state_version=3
            )
        )
        assert found.code is TrialCode.VERSION_CONFLICT
        assert not (trial.path / "breach.json").exists()


class TestEvidence:
    @pytest.mark.parametrize("name", ["events.jsonl", "access-audit.jsonl", "outcome/result.json"])
    def test_missing_files(self, ready: Trial, name: str) -> None:
        """T30: completion without one of them is `evidence_missing`."""
        (ready.path / name).unlink()
        assert ready.incomplete().code is TrialCode.EVIDENCE_MISSING

    @pytest.mark.parametrize(
        ("name", "data"),
        [
            ("events.jsonl", b""),
            ("outcome/result.json", b""),
            ("outcome/result.json", b" \n"),
            ("outcome/result.json", b"{}"),
            ("access-audit.jsonl", b""),
        ],
    )
    def test_empty_files(self, ready: Trial, name: str, data: bytes) -> None:
        """T30: and so is one with nothing in it; an audit that is said to be complete is not empty."""
        put(ready.path / name, data)
        assert ready.incomplete().code is TrialCode.EVIDENCE_MISSING

    @pytest.mark.parametrize(
        ("name", "data"),
        [
            ("events.jsonl", b"{}\n"),
            ("events.jsonl", b'{"event_contract":1}\n'),
            ("events.jsonl", b'{"event_contract":""}\n'),
            ("events.jsonl", b'{"event_contract":"x"}\n[]\n'),
            ("events.jsonl", b'{"event_contract":"x"}\n\n'),
            ("events.jsonl", b'{"event_contract":"x"}'),
            ("events.jsonl", b'{"event_contract":"x","event_contract":"x"}\n'),
            ("access-audit.jsonl", b"{}\n"),
            ("access-audit.jsonl", b"\n"),
            ("access-audit.jsonl", b'{"actor":"tested-agent","operation":"read","path":"/x"'),
            ("outcome/result.json", b"[]"),
            ("outcome/result.json", b"{"),
            ("outcome/result.json", b'{"a":NaN}'),
        ],
    )
    def test_malformed_files(self, ready: Trial, name: str, data: bytes) -> None:
        put(ready.path / name, data)
        assert ready.incomplete().code is TrialCode.EVIDENCE_INVALID

    def test_a_last_row_that_was_cut_off(self, ready: Trial) -> None:
        audit = ready.path / "access-audit.jsonl"
        audit.write_bytes(audit.read_bytes()[:-1])
        assert ready.incomplete().code is TrialCode.EVIDENCE_INVALID

    @pytest.mark.parametrize("name", ["events.jsonl", "access-audit.jsonl", "outcome/result.json"])
    @pytest.mark.parametrize("how", ["mode", "link", "folder", "fifo"])
    def test_files_that_are_not_ours(self, ready: Trial, name: str, how: str) -> None:
        path = ready.path / name
        match how:
            case "mode":
                path.chmod(0o644)
            case "link":
                path.rename(ready.place.base / "moved")
                path.symlink_to(ready.place.base / "moved")
            case "folder":
                path.unlink()
                path.mkdir(mode=0o700)
            case "fifo":
                path.unlink()
                os.mkfifo(path, 0o600)
        with pytest.raises(TrialError) as caught:
            ready.complete()
        # The audit says that the agent wrote through the link.
        led_out = (how, name) == ("link", "outcome/result.json")
        assert caught.value.code is (TrialCode.ISOLATION_BREACH if led_out else TrialCode.EVIDENCE_INVALID)

    def test_an_audit_may_be_empty_where_that_is_waived(self) -> None:
        with fast_folder() as folder:
            advisory = Trial(folder)
            advisory.place.fill(KEY, rows=[])
            done = advisory.complete(access_audit_complete=False)
            assert done.coverage_limitations == ("complete_access_audit",)

    def test_and_nowhere_else(self) -> None:
        with fast_folder() as folder:
            causal = Trial(folder, CONTENT)
            causal.place.fill(causal.key, rows=[])
            found = causal.incomplete(access_audit_complete=False)
            assert (found.code, found.field) == (TrialCode.PROOF_MISSING, "complete_access_audit")


GAPS: dict[str, dict[str, Any]] = {
    "access_root_enforcement": {"access_roots_enforced": False},
    "complete_access_audit": {"access_audit_complete": False},
    "memory_isolation_proof": {"isolation_evidence": SAFE | {"session_recall_enabled": None}},
    "provider_side_persistence_proof": {"isolation_evidence": SAFE | {"provider_persistence": None}},
}


class TestProofs:
    def test_all_present(self, ready: Trial) -> None:
        """T23: both tiers complete, each under its own, derived from the registry."""
        done = ready.complete()
        tier = "advisory-paired" if ready.key.arm_id == ARM[PROFILE] else "causal"
        assert (done.evidence_tier, done.coverage_limitations) == (tier, ())
        isolation = ready.document["completion_isolation"]
        assert (isolation["status"], isolation["evidence_tier"]) == ("ok", tier)

    @pytest.mark.parametrize("item", GAPS)
    def test_one_absent(self, ready: Trial, item: str) -> None:
        """T24: a limitation of an advisory trial, the end of a causal completion."""
        if ready.key.arm_id == ARM[CONTENT]:
            found = ready.incomplete(**GAPS[item])
            assert (found.code, found.field) == (TrialCode.PROOF_MISSING, item)
            return
        assert ready.complete(**GAPS[item]).coverage_limitations == (item,)
        isolation = ready.document["completion_isolation"]
        assert (isolation["status"], isolation["coverage_limitations"]) == ("advisory_limited", [item])

    @pytest.mark.parametrize("item", GAPS)
    def test_a_caller_may_waive_less(self, trial: Trial, item: str) -> None:
        """T24: each waiver alone covers its own gap; the other five do not."""
        trial.place.fill(KEY)

        def tier(*items: str) -> dict[str, Any]:
            return {
                "schema_version": 1,
                "requested_tier": "advisory-paired",
                "waived_items": sorted(items),
            }

        found = trial.incomplete(**GAPS[item], evidence_tier=tier(*(SIX - {item})))
        assert (found.code, found.field) == (TrialCode.PROOF_MISSING, item)
        assert trial.complete(**GAPS[item], evidence_tier=tier(item)).coverage_limitations == (item,)

    def test_everything_absent(self, trial: Trial) -> None:
        trial.place.fill(KEY, rows=[])
        done = trial.complete(
            access_audit_complete=False, access_roots_enforced=False, isolation_evidence=None
        )
        assert done.coverage_limitations == tuple(GAPS)
        isolation = trial.document["completion_isolation"]
        assert (isolation["file_access_status"], isolation["memory_isolation_status"]) == ("unverified",) * 2

    @pytest.mark.parametrize(
        ("registry", "said"), [(PROFILE, "causal"), (CONTENT, "advisory-paired")], ids=str
    )
    @pytest.mark.parametrize("status", ["running", "completed"])
    def test_a_tier_cannot_be_chosen(self, registry: Json, said: str, status: str) -> None:
        """T23: a caller that says another tier is refused, at every checkpoint."""
        tier = {"schema_version": 1, "requested_tier": said, "waived_items": []}
        with fast_folder() as folder:
            trial = Trial(folder, registry)
            trial.place.fill(trial.key)
            found = (
                trial.incomplete(evidence_tier=tier)
                if status == "completed"
                else trial.refused(status, resume_cursor=cursor(), evidence_tier=tier)
            )
            assert found.code is TrialCode.REGISTRY_MISMATCH

    def test_no_stored_registry(self, ready: Trial) -> None:
        """T23: no tier before the end, and no completion."""
        ready.place.edit(ready.key, registry_schema=...)
        assert ready.go("running", resume_cursor=cursor()).evidence_tier is None
        assert ready.incomplete().code is TrialCode.REGISTRY_MISMATCH
        assert ready.go("failed").evidence_tier is None

    @pytest.mark.parametrize("status", ["running", "completed", "contaminated", "failed"])
    def test_an_unknown_registry(self, ready: Trial, status: str) -> None:
        """T23: refused always."""
        ready.place.edit(ready.key, registry_schema="profile-content")
        wanted = ready.place.completion(ready.key) if status == "completed" else status
        fields = {"resume_cursor": cursor()} if status == "running" else {}
        assert ready.refused(wanted, **fields).code is TrialCode.EVIDENCE_INVALID

    def test_gates_without_the_tier(self, ready: Trial) -> None:
        """T28: no advisory completion; a causal one goes through."""
        without = gates(requested_tier="causal", waived_items=[])
        if ready.key.arm_id == ARM[CONTENT]:
            ready.complete(frozen=without)
        else:
            assert ready.incomplete(frozen=without).code is TrialCode.REGISTRY_MISMATCH

    def test_proofs_come_before_the_budget(self) -> None:
        with fast_folder() as folder:
            causal = Trial(folder, CONTENT, budget=LIMITED)
            causal.place.fill(causal.key)
            found = causal.incomplete(isolation_evidence=None, resume_cursor=cursor(tokens=10**6))
            assert found.code is TrialCode.PROOF_MISSING


class TestPlanned:
    def test_is_a_value_with_both_digests(self, trial: Trial) -> None:
        with trial.place.open() as store:
            before = (trial.path / "trial.json").read_bytes()
            change = plan_checkpoint(store, KEY, request("running", resume_cursor=cursor()))
            assert (trial.path / "trial.json").read_bytes() == before
            assert change.before == digest_bytes(before)
            assert apply(store, change) == change.result
            after = (trial.path / "trial.json").read_bytes()
            assert (change.after, change.data) == (digest_bytes(after), after)
        fs = RecordingFs(RealFs())
        with trial.place.open(fs) as store:
            assert apply(store, change) == change.result
        assert (trial.path / "trial.json").read_bytes() == after
        # Whoever applied it first may have died before it was durable.
        assert ("fsync_dir", str(trial.path)) in [(step.operation, step.path) for step in fs.steps]

    def test_is_refused_when_the_trial_went_on(self, trial: Trial) -> None:
        with trial.place.open() as store:
            change = plan_checkpoint(store, KEY, request("running", resume_cursor=cursor()))
            checkpoint(store, KEY, request("failed"))
            with pytest.raises(TrialError) as caught:
                apply(store, change)
            assert caught.value.code is TrialCode.VERSION_CONFLICT

    def test_what_a_killed_one_left_goes_with_the_next(self, trial: Trial) -> None:
        put(trial.path / ".trial.json.0123456789abcdef.tmp", b"{")
        put(trial.path / ".events.jsonl.0123456789abcdef.tmp", b"{")
        trial.go("running", resume_cursor=cursor())
        names = {path.name for path in trial.path.iterdir()}
        assert ".trial.json.0123456789abcdef.tmp" not in names
        # A runner may be writing this one now.
        assert ".events.jsonl.0123456789abcdef.tmp" in names


def test_waits_for_the_trial_and_gives_up(trial: Trial) -> None:
    (trial.path / ".trial.lock").chmod(0o644)
    with trial.place.open() as store, pytest.raises(LockError):
        checkpoint(store, KEY, request("failed"))
    assert trial.document["status"] == "prepared"


def test_two_trials_are_independent(trial: Trial) -> None:
    with trial.place.open() as store:
        prepare(store, order(sample=2))
        trial.go("failed")
        other = TrialKey("task-a", "profile-full", 2)
        assert checkpoint(store, other, request("running", resume_cursor=cursor())).state_version == 1
