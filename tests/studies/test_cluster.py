"""A study on a cluster, with workers that threads play: what is shipped, what is lost, what is asked for."""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.studies import cluster_worker
from skill_effectiveness.studies.halting import Halt
from skill_effectiveness.studies.runner import RunStatus
from skill_effectiveness.studies.simulated_driver import SimulatedAgent
from tests.support.clusters import InlineLink, Played, host_of, play_workers, run_on
from tests.support.crash_images import fast_folder
from tests.support.studies import bench, example
from tests.support.study_runs import Watching, outcomes, rows_of, run, state_of, types_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from skill_effectiveness.studies.agent import AttemptResult, Cancelled
    from skill_effectiveness.studies.attempt_records import AttemptOrder
    from tests.support.studies import Bench

ONE = {"samples: 3": "samples: 1"}


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder where durability costs nothing."""
    with fast_folder() as folder:
        yield folder


@pytest.fixture
def four(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A planned study of four slots, and workers that threads can play."""
    play_workers(monkeypatch)
    with bench(tmp_path) as held:
        held.plan(example(tmp_path, edits=ONE))
        yield held


def link_of(held: Bench, *names: str) -> InlineLink:
    """Workers on hosts of these names; the same name again is another process of that host."""
    return InlineLink(
        {
            f"tcp://{name}:{number}": Played(host_of(held.folder, name, pid=number))
            for number, name in enumerate(names, start=1)
        }
    )


def test_a_run_on_workers_comes_to_what_threads_come_to(four: Bench) -> None:
    """S30 S5: the same seed, by threads and by two workers: the same slots, classes and rewards."""
    link = link_of(four, "one", "two")
    ended = run_on(four, link)
    assert ended.status is RunStatus.COMPLETE
    four.plan(example(four.folder, name="again", edits=ONE), out="T")
    assert run(four, out="T").status is RunStatus.COMPLETE
    assert outcomes(four) == outcomes(four, "T")
    # Who has how many is chance: on a busy machine one worker may have them all.
    carried = [digest for played in link.players.values() for digest in played.carried]
    assert len(carried) == len(set(carried)) == ended.counts.attempts


def test_what_is_shipped(four: Bench) -> None:
    """S30: no hidden test, solution, seed, key, path, environment value or other slot in any byte."""
    link = link_of(four, "one")
    secret = {"OPENAI_API_KEY": "sk-secret-of-the-coordinator"}
    with bench(four.folder, replace(four.around, environ=secret)) as held:
        run_on(held, link)
    everything = b"\n".join(b"\n".join((order, *given)) for _, order, given in link.shipped)
    with four.open() as study:
        seed, plan = study.seed(), study.plan
        task = study.task(plan.tasks[0].task_id)
        held_files = [
            study.inputs.read(str(entry.sha256)) for entry in (*task.tests.files, *task.solution.files)
        ]
        slots = study.slots()
    for data in (*held_files, seed, seed.hex().encode(), str(four.folder).encode(), b"sk-secret", b"PRIVATE"):
        assert data not in everything
    salts = {json.loads(order)["salt"] for _, order, _ in link.shipped}
    for _, order, _ in link.shipped:
        told = json.loads(order)
        assert set(told) == {
            "kind", "root_id", "plan_digest", "slot", "attempt", "task_id", "arm", "sample", "salt", "driver",
            "budget", "isolation", "inputs", "runtime_manifest_hash",
        }  # fmt: skip
        assert told["kind"] == "attempt"
        assert sum(salt in order.decode() for salt in salts) == 1
        slot = slots[told["slot"] - 1]
        assert (told["task_id"], told["arm"], told["sample"]) == (slot.task_id, slot.arm, slot.sample)


def test_inputs_are_shipped_once(four: Bench) -> None:
    """S30: the second order of a task names what is there already."""
    link = link_of(four, "one")
    run_on(four, link)
    blobs = [blob for _, _, given in link.shipped for blob in given]
    assert len(blobs) == len(set(blobs))


def test_a_parcel_is_forgotten_once_it_is_published(four: Bench) -> None:
    """S30: done is kept until acknowledged, and what was begun is remembered."""
    link = link_of(four, "one")
    run_on(four, link)
    place = next((four.folder / "host-one").rglob("workers")).iterdir()
    kept = next(each for each in place if each.name.startswith("root-"))
    assert list((kept / "done").iterdir()) == []
    assert len(list((kept / "started").iterdir())) == 4


class Slow(SimulatedAgent):
    """An agent that tells that it has begun and then waits until it may end."""

    begun = threading.Event()
    may_end = threading.Event()
    calls: list[int] = []  # noqa: RUF012 - reset by the fixture

    def attempt(self, order: AttemptOrder, place: str, cancelled: Cancelled) -> AttemptResult:
        Slow.calls.append(order.slot)
        Slow.begun.set()
        while not Slow.may_end.is_set() and not cancelled():
            time.sleep(0.01)
        return super().attempt(order, place, cancelled)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Slow]]:
    monkeypatch.setattr(cluster_worker, "SimulatedAgent", Slow)
    Slow.begun, Slow.may_end, Slow.calls = threading.Event(), threading.Event(), []
    yield Slow
    Slow.may_end.set()


def started(held: Bench, link: InlineLink, halt: Halt | None = None) -> tuple[threading.Thread, list[object]]:
    """A run in a thread of its own, and what it comes to."""
    found: list[object] = []

    def go() -> None:
        found.append(run_on(held, link, halt=halt))

    thread = threading.Thread(target=go)
    thread.start()
    return thread, found


def test_a_lost_worker_loses_its_attempt_alone(four: Bench, slow: type[Slow]) -> None:
    """S31 S19: the journal tells who went before what that did; another worker makes a new attempt."""
    link = link_of(four, "one", "two")
    slow.may_end.set()
    link.players["tcp://one:1"].silent = True
    thread, _ = started(four, link)
    assert wait_until(lambda: bool(link.players["tcp://one:1"].carried))
    # It was paid and kept nothing that anybody could find.
    with suppress(StopIteration):
        link.players["tcp://one:1"].around = host_of(four.folder, "nowhere")
    link.players["tcp://one:1"].alive = False
    thread.join(20)
    rows = rows_of(four)
    lost = next(index for index, row in enumerate(rows) if row["type"] == "worker_lost")
    slot = rows[lost]["body"]["slots"][0]
    assert rows[lost]["body"]["worker"] == "one/1"
    after = [
        row["body"] for row in rows[lost:] if row["type"] == "attempt_ended" and row["body"]["slot"] == slot
    ]
    assert (after[0]["class"], after[0]["detail"], after[1]["class"]) == (
        "interrupted",
        "killed",
        "completed",
    )
    assert [each[0] for each in outcomes(four).values()] == ["completed"] * 4


def test_what_a_lost_worker_left_is_taken(four: Bench, slow: type[Slow]) -> None:
    """S31: killed after the call, before its answer: one start, one attempt, nothing paid twice."""
    link = link_of(four, "one", "one")
    slow.may_end.set()
    first, second = link.players.values()
    first.silent = True
    second.alive = False
    thread, found = started(four, link)
    assert wait_until(lambda: bool(first.carried) and bool(slow.calls))
    assert wait_until(lambda: done_of(four, "one") == 1)
    second.alive = True
    first.alive = False
    thread.join(20)
    assert found[0].status is RunStatus.COMPLETE  # type: ignore[attr-defined]
    assert sorted(slow.calls) == [1, 2, 3, 4]
    assert "worker_lost" in types_of(four)
    assert types_of(four).count("attempt_ended") == 4


def done_of(held: Bench, host: str) -> int:
    return len(list((held.folder / f"host-{host}").glob("**/done/*")))


def wait_until(told: object, seconds: float = 10.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if told():  # type: ignore[operator]
            return True
        time.sleep(0.01)
    return False


def test_a_second_delivery_starts_nothing(four: Bench, slow: type[Slow]) -> None:
    """S31: whoever gets an order again answers what it kept, or that it was begun."""
    slow.may_end.set()
    link = link_of(four, "one")
    run_on(four, link)
    before = list(slow.calls)
    address, order, given = link.shipped[0]
    digest = link.players[address].carried[0]
    ticket = link.send(address, order, given, digest)
    assert ticket.future.result(5) == ("already_started", b"")
    assert slow.calls == before


def test_an_unlike_worker_gets_no_order(four: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """S32: with another manifest it gets none; with no other the run is blocked, and says why."""
    link = link_of(four, "one")
    monkeypatch.setattr(cluster_worker, "_manifest", lambda: "sha256:" + "0" * 64)
    outcome = run_on(four, link)
    assert (outcome.status, outcome.reason) == (RunStatus.BLOCKED, "no_like_worker.runtime_manifest_hash")
    assert link.shipped == []
    assert "slot_started" not in types_of(four)


def test_nobody_there_blocks(four: Bench) -> None:
    """S32: a cluster without a worker, after a while."""
    outcome = run_on(four, InlineLink({}))
    assert (outcome.status, outcome.reason) == (RunStatus.BLOCKED, "no_like_worker")


def test_a_worker_whose_disk_is_full(four: Bench) -> None:
    """S31: it begins nothing and gets no order any more; another one has them all."""
    link = link_of(four, "one", "two")
    link.players["tcp://one:1"].answers = [("unfit", b"no_space")]
    assert run_on(four, link).status is RunStatus.COMPLETE
    assert len(link.players["tcp://one:1"].carried) == 1
    assert "worker_lost" not in types_of(four)
    assert types_of(four).count("slot_started") == 4


@pytest.mark.parametrize(
    "answer",
    [("done", b"no parcel"), ("failed", b"io_error"), "nothing", ("done", b""), ("missing", b"[]"), None],
)
def test_an_answer_that_is_none(four: Bench, answer: object) -> None:
    """S31: a hostile or broken worker loses its attempt and gets no order; the run goes on without it."""
    link = link_of(four, "one", "two")
    link.players["tcp://one:1"].answers = [answer]
    assert run_on(four, link).status is RunStatus.COMPLETE
    assert len(link.players["tcp://one:1"].carried) == 1
    assert [each[0] for each in outcomes(four).values()] == ["completed"] * 4


def test_a_worker_cannot_ask_for_what_its_order_does_not_name(four: Bench) -> None:
    """S30: the digest of a hidden test, asked for by a worker, ships nothing."""
    link = link_of(four, "one", "two")
    with four.open() as study:
        hidden = study.plan.tasks[0].grader_hash
        listing = study.inputs.read(hidden)
    link.players["tcp://one:1"].answers = [("missing", json.dumps([hidden]).encode())]
    assert run_on(four, link).status is RunStatus.COMPLETE
    assert all(listing not in given for _, _, given in link.shipped)


# The scheduler goes, the runner goes.


def test_a_lost_scheduler_blocks_and_the_same_line_goes_on(four: Bench, slow: type[Slow]) -> None:
    """S31 S23: what was out stays open in the journal; the next run finds it done and pays nobody twice."""
    link = link_of(four, "one")
    thread, found = started(four, link)
    assert slow.begun.wait(10)
    link.lost = True
    thread.join(20)
    assert (found[0].status, found[0].reason) == (RunStatus.BLOCKED, "cluster_lost")  # type: ignore[attr-defined]
    with state_of(four) as state:
        assert [slot.slot for slot in state.started_slots()] == [1]
    slow.may_end.set()
    assert wait_until(lambda: done_of(four, "one") == 1)
    link.lost, watching = False, Watching()
    assert run_on(four, link, watching=watching).status is RunStatus.COMPLETE
    assert watching.resumptions == [(0, 1, 0)]
    assert sorted(slow.calls) == [1, 2, 3, 4]
    assert outcomes(four)[1][0] == "completed"


def test_an_attempt_that_still_runs_is_waited_for(four: Bench, slow: type[Slow]) -> None:
    """S31 S23: a runner that starts again while a worker is at an attempt takes its end."""
    link = link_of(four, "one")
    thread, _ = started(four, link)
    assert slow.begun.wait(10)
    link.lost = True
    thread.join(20)
    link.lost = False
    thread, found = started(four, link)
    time.sleep(0.2)
    assert thread.is_alive()
    slow.may_end.set()
    thread.join(20)
    assert found[0].status is RunStatus.COMPLETE  # type: ignore[attr-defined]
    assert sorted(slow.calls) == [1, 2, 3, 4]


def test_an_attempt_that_nobody_has_is_made_anew(four: Bench, slow: type[Slow]) -> None:
    """S23 S31: a cluster that was started anew knows nothing; the attempt was interrupted."""
    link = link_of(four, "one")
    thread, _ = started(four, link)
    assert slow.begun.wait(10)
    link.lost = True
    thread.join(20)
    slow.may_end.set()
    other = link_of(four, "two")
    assert run_on(four, other).status is RunStatus.COMPLETE
    with state_of(four) as state:
        assert [attempt.ended for attempt in state.slots[1].attempts] == ["interrupted", "completed"]


def test_stopping_ends_what_runs_elsewhere(four: Bench, slow: type[Slow]) -> None:
    """S25 S31: a second Ctrl-C reaches the agents on workers."""
    link, halt = link_of(four, "one"), Halt()
    thread, found = started(four, link, halt)
    assert slow.begun.wait(10)
    halt.request()
    time.sleep(0.1)
    assert thread.is_alive()
    halt.request()
    thread.join(20)
    assert found[0].status is RunStatus.DRAINED  # type: ignore[attr-defined]
    with state_of(four) as state:
        assert [(each.ended, each.detail) for each in state.slots[1].attempts] == [("interrupted", "stopped")]


@pytest.mark.parametrize("silent", ["hangs", "lies"])
def test_a_worker_that_does_not_obey_holds_up_nobody(
    four: Bench, monkeypatch: pytest.MonkeyPatch, silent: str
) -> None:
    """S25 S31: after a second Ctrl-C a silent worker is waited for a while, not for ever."""
    link, halt = link_of(four, "one"), Halt()
    played = link.players["tcp://one:1"]
    played.silent = True
    if silent == "lies":
        monkeypatch.setattr(cluster_worker, "_asked", lambda *_: ("running", b""))
    thread, told = started(four, link, halt)
    while not played.carried:
        time.sleep(0.01)
    halt.stop()
    thread.join(10)
    assert [each.status for each in told] == [RunStatus.DRAINED]  # type: ignore[attr-defined]


def test_another_process_at_the_same_address_is_another_worker(four: Bench, slow: type[Slow]) -> None:
    """S31: between two looks a worker went and came back; its attempt went with it."""
    link = link_of(four, "one")
    played = link.players["tcp://one:1"]
    played.silent = True
    thread, found = started(four, link)
    assert slow.begun.wait(10)
    played.around = host_of(four.folder, "two")
    played.life, played.silent = "2", False
    slow.may_end.set()
    thread.join(20)
    assert found[0].status is RunStatus.COMPLETE  # type: ignore[attr-defined]
    assert "worker_lost" in types_of(four)


def test_orders_at_a_time(four: Bench, slow: type[Slow]) -> None:
    """S31: as many orders are out as there are like workers, and no more than are asked for."""
    link = link_of(four, "one", "two", "three")
    thread, _ = started(four, link)
    assert wait_until(lambda: len(slow.calls) == 3)
    time.sleep(0.1)
    assert types_of(four).count("slot_started") == 3
    slow.may_end.set()
    thread.join(20)
