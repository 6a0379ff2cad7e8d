"""What the store refuses, and how little a reader does."""

from __future__ import annotations

import errno
import json
import threading

import pytest
from pydantic import BaseModel

from skill_effectiveness.acceptance.outcome import store
from skill_effectiveness.acceptance.outcome.errors import OutcomeError
from skill_effectiveness.acceptance.outcome.store import reading, writing
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from tests.support.outcomes import Bench
from tests.support.private import content, imprint, wrong_modes


def refused(bench: Bench, *, write: bool) -> str:
    with pytest.raises(OutcomeError) as caught:
        (_write if write else _read)(bench)
    assert caught.value.undecidable
    return caught.value.message


def _write(bench: Bench) -> None:
    with bench.desk() as desk:
        desk.policy()


def _read(bench: Bench) -> None:
    reading(bench.store, bench.around, None)


class Foreign(BaseModel):
    """A body that is of no type of ours."""

    state: str = "x"


both = pytest.mark.parametrize("write", [True, False])


class TestReading:
    def test_nothing_there_is_nothing(self, bench: Bench) -> None:
        found = reading(bench.store, bench.around, None)
        assert (found.ledger.attempts, found.policy.repositories) == ({}, {})
        assert not bench.store.exists()

    def test_it_leaves_no_trace(self, bench: Bench) -> None:
        bench.good()
        before = imprint(bench.store)
        assert reading(bench.store, bench.around, None).ledger.attempts
        assert imprint(bench.store) == before
        assert wrong_modes(bench.store) == []

    def test_a_torn_line_is_ignored_and_then_set_aside(self, bench: Bench) -> None:
        bench.attempt()
        journal = bench.store / "outcome" / "journal" / "000001.jsonl"
        whole = journal.read_bytes()
        journal.write_bytes(whole + b'{"body":{"torn')
        assert list(bench.ledger().attempts) == ["attempt-1"]
        assert journal.read_bytes() != whole
        bench.attempt(attempt_id="attempt-2")
        assert list(bench.ledger().attempts) == ["attempt-1", "attempt-2"]
        assert len(list((bench.store / "outcome" / "journal" / "torn").iterdir())) == 1


class TestBroken:
    @both
    def test_a_changed_row(self, bench: Bench, write: bool) -> None:  # noqa: FBT001 - a case
        """O68: neither repaired nor read."""
        bench.attempt()
        journal = bench.store / "outcome" / "journal" / "000001.jsonl"
        journal.write_bytes(journal.read_bytes().replace(b"finished", b"failed"))
        before = journal.read_bytes()
        assert refused(bench, write=write) == "journal_broken at row 1"
        assert journal.read_bytes() == before

    @both
    def test_a_row_that_is_cut_off(self, bench: Bench, write: bool) -> None:  # noqa: FBT001 - a case
        bench.attempt()
        journal = bench.store / "outcome" / "journal" / "000001.jsonl"
        journal.write_bytes(journal.read_bytes().splitlines(keepends=True)[0])
        assert refused(bench, write=write).startswith("journal_broken at row ")

    @both
    @pytest.mark.parametrize("kind", ["attempt_recorded", "issue_closed", "else"])
    def test_a_row_that_is_none_of_ours(self, bench: Bench, kind: str, write: bool) -> None:  # noqa: FBT001 - a case
        """O68: whoever could write it."""
        bench.attempt()
        with bench.desk() as desk, pytest.raises(OutcomeError, match="journal_broken"):
            desk.append((kind, Foreign()))
        assert refused(bench, write=write).startswith("journal_broken at row 2")


class TestUnsafe:
    @both
    def test_in_a_checkout(self, bench: Bench, write: bool) -> None:  # noqa: FBT001 - a case
        """Whoever's checkout it is."""
        (bench.base / ".git").mkdir()
        assert refused(bench, write=write) == "store_unsafe"
        assert not bench.store.exists()

    @both
    def test_a_link_that_leads_into_a_checkout(self, bench: Bench, write: bool) -> None:  # noqa: FBT001 - a case
        """Whatever its path says: the work that is judged could reach it there."""
        inside = bench.base / "checkout" / "sub"
        inside.mkdir(parents=True)
        (bench.base / "checkout" / ".git").mkdir()
        (bench.base / "link").symlink_to(inside)
        bench.elsewhere = bench.base / "link" / "new" / "store"
        assert refused(bench, write=write) == "store_unsafe"
        assert list(inside.iterdir()) == []

    @both
    def test_open_to_others(self, bench: Bench, write: bool) -> None:  # noqa: FBT001 - a case
        bench.attempt()
        bench.store.chmod(0o750)
        assert refused(bench, write=write) == "store_unsafe"

    @both
    def test_a_link(self, bench: Bench, write: bool) -> None:  # noqa: FBT001 - a case
        bench.attempt()
        elsewhere = bench.base / "elsewhere"
        bench.store.rename(elsewhere)
        bench.store.symlink_to(elsewhere)
        assert refused(bench, write=write) == "store_unsafe"


class TestPolicy:
    @both
    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"{",
            b"[]",
            b'{"schema_version":2,"repositories":{}}',
            b'{"schema_version":1,"repositories":{"a/b":{"agents_enabled":1}}}',
            b'{"schema_version":1,"repositories":{"a/b":{"agents_enabld":true}}}',
            b'{"schema_version":1,"repositories":{"a/b":{},"a/b":{}}}',
            b'{"schema_version":1,"repositories":{"a b":{}}}',
        ],
    )
    def test_invalid(self, bench: Bench, data: bytes, write: bool) -> None:  # noqa: FBT001 - a case
        """O31: never read as "off"."""
        bench.policy_file(data)
        assert refused(bench, write=write).startswith("policy_unreadable at /")

    @both
    @pytest.mark.parametrize("mode", [0o644, 0o660, 0o640])
    def test_open_to_others(self, bench: Bench, mode: int, write: bool) -> None:  # noqa: FBT001 - a case
        bench.policy()
        (bench.store / "outcome" / "policy.json").chmod(mode)
        assert refused(bench, write=write) == "policy_unsafe"

    @both
    def test_a_link_into_a_checkout(self, bench: Bench, write: bool) -> None:  # noqa: FBT001 - a case
        bench.policy()
        policy = bench.store / "outcome" / "policy.json"
        inside = bench.base / "checkout"
        (inside / ".git").mkdir(parents=True)
        policy.rename(inside / "policy.json")
        policy.symlink_to(inside / "policy.json")
        assert refused(bench, write=write) == "policy_unsafe"

    @both
    def test_a_folder_and_an_error(self, bench: Bench, write: bool) -> None:  # noqa: FBT001 - a case
        bench.attempt()
        (bench.store / "outcome" / "policy.json").mkdir()
        assert refused(bench, write=write) == "policy_unsafe"

    def test_a_disk_that_does_not_answer(self, bench: Bench) -> None:
        bench.policy()
        broken = FaultFs(
            RealFs(), Injection("open_read", errno.EIO, about=lambda path: path.endswith("policy.json"))
        )
        with pytest.raises(OutcomeError, match="policy_unreadable"):
            reading(bench.store, Bench(bench.base, broken).around, None)


class TestWriting:
    def test_held_by_another(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        """O77: nothing is written."""
        bench.attempt()
        before = content(bench.store / "outcome" / "journal")
        monkeypatch.setattr(store, "LOCK_SECONDS", 0.05)
        held, done = threading.Event(), threading.Event()

        def hold() -> None:
            with bench.desk():
                held.set()
                done.wait(30)

        holder = threading.Thread(target=hold)
        holder.start()
        held.wait(30)
        assert refused(bench, write=True) == "store_locked"
        done.set()
        holder.join()
        assert content(bench.store / "outcome" / "journal") == before

    def test_ten_seconds(self) -> None:
        assert store.LOCK_SECONDS == 10.0

    @pytest.mark.parametrize("operation", ["write", "fsync", "open_update"])
    def test_a_full_disk(self, bench: Bench, operation: str) -> None:
        """O69: the row is not acknowledged, what was there stays, and the same call goes through later."""
        edge = bench.good()
        bench.submit(edge)
        before = bench.ledger()
        full = Injection(operation, errno.ENOSPC, about=lambda path: path.endswith("000001.jsonl"))
        broken = Bench(bench.base, FaultFs(RealFs(), full))
        with pytest.raises(OutcomeError) as caught:
            broken.submit(edge, false_greens=("x",))
        assert (caught.value.message, caught.value.undecidable) == ("claim_not_recorded", True)
        key = bench.row().key
        assert bench.ledger().gradings(key) == before.gradings(key)
        bench.submit(edge, false_greens=("x",))
        assert bench.row().state.value == "failed"

    @pytest.mark.parametrize("name", ["lock.holder", ".journal.lock.holder"])
    def test_a_disk_too_full_for_a_lock(self, bench: Bench, name: str) -> None:
        """O69: the store is as safe as it was, so nobody is told to take another."""
        edge = bench.good()
        full = Injection("write", errno.ENOSPC, about=lambda path: name in path.rsplit("/", 1)[-1])
        with pytest.raises(OutcomeError) as caught:
            Bench(bench.base, FaultFs(RealFs(), full)).submit(edge)
        assert caught.value.message == "claim_not_recorded"
        assert "--store" not in caught.value.sentence

    def test_an_edge_on_a_full_disk(self, bench: Bench) -> None:
        bench.attempt()
        broken = Bench(
            bench.base,
            FaultFs(
                RealFs(), Injection("write", errno.ENOSPC, about=lambda path: path.endswith("000001.jsonl"))
            ),
        )
        with pytest.raises(OutcomeError, match="record_not_stored"):
            broken.edge("build", "failed")
        assert bench.ledger().edges == {}

    def test_a_new_one(self, bench: Bench) -> None:
        with writing(bench.store, bench.around, None, "x") as desk:
            assert desk.ledger.attempts == {}
        kinds = [json.loads(line)["type"] for line in _lines(bench)]
        assert kinds == ["journal_open"]


def _lines(bench: Bench) -> list[str]:
    return (bench.store / "outcome" / "journal" / "000001.jsonl").read_text().splitlines()
