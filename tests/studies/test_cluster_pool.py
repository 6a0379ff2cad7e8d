"""The workers of a cluster as a run sees them: who is met, who gets orders, who has gone and when."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.canonical import dump
from skill_effectiveness.studies.agent import AgentUnreachableError
from skill_effectiveness.studies.cluster_link import LinkLostError
from skill_effectiveness.studies.cluster_orders import Likeness
from skill_effectiveness.studies.cluster_pool import GONE, Seat, WorkerPool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64
WANTED = Likeness(executable_hash=A, cli_version="1.0", runtime_manifest_hash=A)
ONE, TWO = "tcp://one:1", "tcp://two:1"


def facts(host: str, pid: int = 7, **changes: object) -> bytes:
    told: dict[str, Any] = {
        "host": host,
        "pid": pid,
        "versions": {"python": "3.11"},
        "runtime_manifest_hash": A,
        "executable_hash": A,
        "cli_version": "1.0",
    }
    return dump(told | changes)


@dataclass
class FakeLink:
    """A scheduler that sees whoever it is told to.

    Attributes:
        here: addresses and lives.
        says: what a worker says of itself; who is not named does not answer.
        asked: names of functions, with whom they were asked.
        lost: whether the scheduler has gone.
    """

    here: dict[str, str] = field(default_factory=dict)
    says: dict[str, object] = field(default_factory=dict)
    asked: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    lost: bool = False

    def workers(self) -> Mapping[str, str]:
        if self.lost:
            raise LinkLostError
        return dict(self.here)

    def send(self, address: str, order: bytes, given: Sequence[bytes], digest: str) -> Any:  # noqa: ANN401
        raise NotImplementedError

    def ask(
        self, addresses: Sequence[str], function: Callable[..., Any], *_: object, seconds: float = 1.0
    ) -> Mapping[str, Any]:
        del seconds
        self.asked.append((function.__name__, tuple(addresses)))
        return {address: self.says[address] for address in addresses if address in self.says}

    def add(self, address: str, said: object = None, life: str = "1") -> None:
        self.here[address] = life
        self.says[address] = facts(address[6:9]) if said is None else said


class Clock:
    """Seconds that pass when somebody looks."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def pool_of(link: FakeLink, *, own: bool = False, look: float = 0.001) -> WorkerPool:
    """A pool that nobody watches: a test looks itself."""
    return WorkerPool(link, "codex", WANTED, own=own, monotonic=Clock(), look_seconds=look, meet_seconds=3.0)


def never() -> bool:
    return False


def taken(pool: WorkerPool, slot: int | None = None, host: str | None = None) -> Seat:
    seat = pool.take(slot, never, host)
    assert seat is not None
    return seat


@pytest.fixture
def link() -> FakeLink:
    found = FakeLink()
    found.add(ONE)
    found.add(TWO)
    return found


@pytest.fixture
def pool(link: FakeLink) -> WorkerPool:
    held = pool_of(link)
    held.look()
    return held


class TestMeeting:
    def test_like_workers_count(self, pool: WorkerPool) -> None:
        """S30: each that is what the plan froze, once it has said so."""
        assert (pool.capacity(), pool.hosts(), pool.refused()) == (2, ("one", "two"), ())
        assert pool.addresses() == (ONE, TWO)

    def test_everybody_is_asked_once(self, link: FakeLink, pool: WorkerPool) -> None:
        """S32: a worker says what it is like when it is met; it is not asked again while it lives."""
        pool.look()
        assert link.asked == [("describe", (ONE, TWO))]
        link.here[TWO] = "another process"
        pool.look()
        assert link.asked[1:] == [("describe", (TWO,))]

    @pytest.mark.parametrize(
        ("member", "value"),
        [
            ("runtime_manifest_hash", B),
            ("executable_hash", B),
            ("executable_hash", None),
            ("cli_version", "1.1"),
            ("cli_version", None),
        ],
    )
    def test_an_unlike_worker_gets_no_order(self, member: str, value: object) -> None:
        """S32: named by the field in which it differs."""
        link = FakeLink()
        link.add(ONE, facts("one", 7, **{member: value}))
        pool = pool_of(link)
        pool.look()
        assert pool.refused() == (("one/7", member),)
        with pytest.raises(AgentUnreachableError) as raised:
            pool.take(1, never)
        assert raised.value.reason == f"no_like_worker.{member}"

    @pytest.mark.parametrize(
        "said",
        [b"", b"{}", facts("one") + b"\n", facts("one", more=1), facts("a\n"), "text", RuntimeError("x"), 1],
    )
    def test_who_does_not_say_it_in_form_gets_no_order(self, said: object) -> None:
        """S32: what a worker says is parsed like anything from outside."""
        link = FakeLink()
        link.add(ONE, said)
        pool = pool_of(link)
        pool.look()
        assert (pool.capacity(), pool.refused()) == (0, (("a worker", "not_described"),))

    def test_who_does_not_answer_gets_no_order(self) -> None:
        """S32: silence is no likeness."""
        link = FakeLink(here={ONE: "1"})
        pool = pool_of(link)
        pool.look()
        assert pool.refused() == (("a worker", "not_described"),)

    def test_workers_of_our_own_leave_interrupts_to_us(self, link: FakeLink) -> None:
        """S25: before they are asked anything else; somebody else's workers are left as they are."""
        pool_of(link, own=True).look()
        assert [name for name, _ in link.asked] == ["shield_from_interrupts", "describe"]


class TestTaking:
    def test_one_order_at_a_time(self, pool: WorkerPool) -> None:
        """S31: two workers, two seats; a third waits until one comes back."""
        first, second = taken(pool, 1), taken(pool, 2)
        assert {first.address, second.address} == {ONE, TWO}
        asked = 0

        def impatient() -> bool:
            nonlocal asked
            asked += 1
            return asked > 5

        assert pool.take(3, impatient) is None
        pool.give_back(first)
        assert taken(pool, 3).address == first.address

    def test_a_busy_worker_is_waited_for(self, pool: WorkerPool) -> None:
        """S31: as long as it takes; nothing runs out while there is a like one."""
        first, _ = taken(pool, 1), taken(pool, 2)
        timer = threading.Timer(0.05, pool.give_back, [first])
        timer.start()
        assert taken(pool, 3).address == first.address
        timer.join()

    def test_on_one_host(self, pool: WorkerPool) -> None:
        """S34: an assay of a host is carried out there."""
        assert taken(pool, host="two").address == TWO

    def test_a_host_that_has_nobody_is_not_waited_for(self, link: FakeLink, pool: WorkerPool) -> None:
        """S31 S34: its worker may go between two looks, while others live on."""
        del link.here[TWO]
        pool.look()
        assert pool.take(None, never, "two") is None
        assert taken(pool).address == ONE

    def test_nobody_is_waited_for_a_while(self) -> None:
        """S31: a cluster without workers blocks the run, with a word."""
        with pytest.raises(AgentUnreachableError) as raised:
            pool_of(FakeLink()).take(1, never)
        assert raised.value.reason == "no_like_worker"

    def test_one_that_has_not_said_yet_is_waited_for(self) -> None:
        """S32: describing an agent's program takes as long as that program does."""
        link = FakeLink()
        link.add(ONE)
        met, asking = threading.Event(), threading.Event()
        told = link.ask

        def slow(*arguments: Any, **others: Any) -> Mapping[str, Any]:  # noqa: ANN401
            asking.set()
            assert met.wait(10)
            return told(*arguments, **others)

        link.ask = slow  # type: ignore[method-assign]
        pool = pool_of(link)
        looking = threading.Thread(target=pool.look)
        looking.start()
        assert asking.wait(10)
        threading.Timer(0.05, met.set).start()
        assert taken(pool, 1).address == ONE
        looking.join()

    def test_nobody_wants_one_any_more(self, pool: WorkerPool) -> None:
        """S25: a second Ctrl-C takes no worker."""
        assert pool.take(1, lambda: True) is None
        assert pool.losses() == ()

    def test_ready_takes_nobody(self, pool: WorkerPool) -> None:
        """S30: whoever asks whether there is a worker leaves all of them free."""
        pool.ready(never)
        assert {taken(pool).address, taken(pool).address} == {ONE, TWO}

    def test_ready_where_all_are_busy(self, pool: WorkerPool) -> None:
        """S30: a busy worker is a like one; nobody waits for it to become free."""
        taken(pool), taken(pool)
        pool.ready(never)


class TestGoing:
    def test_a_loss_names_the_worker_and_its_slot(self, link: FakeLink, pool: WorkerPool) -> None:
        """S31: once, and before anybody who waits can see that it has gone."""
        seat = taken(pool, 4)
        assert pool.left(seat) is False
        del link.here[seat.address]
        pool.look()
        assert pool.left(seat) is True
        (lost,) = pool.losses()
        assert (lost.worker, lost.slots) == (f"{seat.address[6:9]}/7", (4,))
        assert pool.losses() == ()

    def test_an_idle_worker_that_goes(self, link: FakeLink, pool: WorkerPool) -> None:
        """S31: it was at nothing."""
        link.here.clear()
        pool.look()
        assert [(lost.worker, lost.slots) for lost in pool.losses()] == [("one/7", ()), ("two/7", ())]

    def test_one_that_got_no_order_is_no_loss(self) -> None:
        """S32: nobody misses an unlike worker, or one that never said what it is."""
        link = FakeLink()
        link.add(ONE, facts("one", cli_version="2"))
        link.add(TWO, b"words")
        pool = pool_of(link)
        pool.look()
        link.here.clear()
        pool.look()
        assert pool.losses() == ()

    def test_another_process_at_the_same_address(self, link: FakeLink, pool: WorkerPool) -> None:
        """S31: what the former one was at is lost; a seat of it frees nothing of the new one."""
        seat = taken(pool, 4, "one")
        link.add(ONE, facts("one", 8), life="2")
        pool.look()
        assert pool.left(seat)
        assert [lost.slots for lost in pool.losses()] == [(4,)]
        again = taken(pool, 5, "one")
        assert (again.life, again.facts.pid) == ("2", 8)
        pool.give_back(seat)
        pool.exclude(seat, "answer_form", lost=True)
        assert (pool.losses(), pool.refused(), pool.left(again)) == ((), (), False)
        assert pool.take(6, iter((False, False, True)).__next__, "one") is None

    def test_a_lost_scheduler(self, link: FakeLink, pool: WorkerPool) -> None:
        """S31: whoever takes or waits learns it, with the word that blocks the run."""
        seat, _ = taken(pool, 1), taken(pool, 2)
        link.lost = True
        with pool:
            for ask in (lambda: pool.take(3, never), lambda: pool.left(seat)):
                with pytest.raises(AgentUnreachableError) as raised:
                    ask()
                assert raised.value.reason == "cluster_lost"

    def test_a_pool_that_nobody_watches_any_more(self, pool: WorkerPool) -> None:
        """S31: a worker's end would not be noticed, so nobody is let wait for one."""
        seat = taken(pool, 1)
        with pool:
            assert pool.left(seat) is False
        with pytest.raises(AgentUnreachableError):
            pool.left(seat)

    def test_the_longest_name_of_a_host(self) -> None:
        """S31: what a worker may call itself, the journal can hold, whatever its number."""
        link = FakeLink()
        link.add(ONE, facts("h" * 255, 2**53 - 1))
        pool = pool_of(link)
        pool.look()
        link.here.clear()
        pool.look()
        assert [lost.worker for lost in pool.losses()] == ["h" * 255 + "/9007199254740991"]


class TestExcluding:
    def test_one_that_broke_off_with_its_slot(self, pool: WorkerPool) -> None:
        """S31: it gets no order any more, and what it was at is lost with it, once."""
        seat = taken(pool, 4, "one")
        pool.exclude(seat, "parcel_tree", lost=True)
        pool.exclude(seat, "parcel_form", lost=True)
        assert [(lost.worker, lost.slots) for lost in pool.losses()] == [("one/7", (4,))]
        assert pool.refused() == (("one/7", "parcel_tree"),)
        assert (pool.capacity(), pool.hosts()) == (1, ("two",))
        # It is asked all the same for what it may have kept.
        assert pool.addresses() == (ONE, TWO)

    def test_one_that_did_not_begin(self, pool: WorkerPool) -> None:
        """S32: nothing is lost; its slot goes to another one."""
        pool.exclude(taken(pool, 4, "one"), "no_space", lost=False)
        assert (pool.losses(), pool.refused()) == ((), (("one/7", "no_space"),))
        assert taken(pool, 4).address == TWO

    def test_one_that_does_not_answer_any_more(self, link: FakeLink, pool: WorkerPool) -> None:
        """S31: nobody asks it for anything; when the scheduler notices too, that is no second loss."""
        pool.exclude(taken(pool, 4, "one"), GONE, lost=True)
        assert (pool.addresses(), pool.refused()) == ((TWO,), ())
        assert len(pool.losses()) == 1
        del link.here[ONE]
        pool.look()
        assert pool.losses() == ()

    def test_where_all_are_excluded(self, pool: WorkerPool) -> None:
        """S32: the run is blocked at once, by one of the reasons."""
        for host in ("one", "two"):
            pool.exclude(taken(pool, 1, host), "no_space", lost=False)
        with pytest.raises(AgentUnreachableError) as raised:
            pool.take(1, never)
        assert raised.value.reason == "no_like_worker.no_space"


def test_a_watched_pool_meets_who_comes_and_ends(link: FakeLink) -> None:
    """S30: within `with` somebody looks; afterwards nobody does, and no thread is left."""
    before = threading.active_count()
    with pool_of(link) as pool:
        assert taken(pool, host=None).address == ONE
        link.add("tcp://six:1")
        while pool.capacity() < 3:
            threading.Event().wait(0.001)
    assert threading.active_count() == before
