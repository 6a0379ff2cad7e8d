"""The workers of a cluster as one run sees them: who is like what was frozen, who is busy, who has gone.

A watcher looks at the cluster twice a second. A worker that it meets is asked what it is like; a like one
gets orders, one at a time, until it goes or does something that it should not. What was lost is noted before
anybody who waits can find out, so that the journal tells it in that order.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.documents import Canonical, parse
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile
from skill_effectiveness.studies.agent import AgentUnreachableError
from skill_effectiveness.studies.cluster_link import LinkLostError
from skill_effectiveness.studies.cluster_orders import WorkerFacts, unlike
from skill_effectiveness.studies.cluster_worker import describe, shield_from_interrupts
from skill_effectiveness.studies.rows import WorkerLost

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from skill_effectiveness.studies.cluster_link import Link
    from skill_effectiveness.studies.cluster_orders import Likeness

CLUSTER_LOST: Final = "cluster_lost"
"""What blocks a run whose scheduler has gone."""

NO_WORKER: Final = "no_like_worker"
"""What blocks a run that no worker can carry on; behind a point follows what is wrong with one."""

LOOK_SECONDS: Final = 0.5
MEET_SECONDS: Final = 15.0
"""How long a run waits for a first worker, or for one to come back."""

_DESCRIBE_SECONDS: Final = 30.0
"""How long a worker has to say what it is like; it may have to ask its agent's program for a version."""

GONE: Final = "gone"
"""Why a worker gets no order that did not answer one, although the scheduler still has it."""

_NOT_DESCRIBED: Final = "not_described"


@dataclass(frozen=True, slots=True)
class Seat:
    """A worker that was taken for one order; `life` tells it from another process with its address."""

    address: str
    life: str
    facts: WorkerFacts


@dataclass(slots=True)
class _Known:
    """A worker that is there.

    Attributes:
        life: differs when another process has its address.
        facts: what it is like; None until it has said so.
        fault: why it gets no order; None for one that does.
        busy: whether an order is out at it.
        slot: of the attempt that it is at.
    """

    life: str
    facts: WorkerFacts | None = None
    fault: str | None = None
    busy: bool = False
    slot: int | None = None

    @property
    def usable(self) -> bool:
        return self.facts is not None and self.fault is None


class WorkerPool:
    """The workers of a link; within `with` they are watched.

    Args:
        link: to the cluster; stays the caller's.
        provider: of the agent.
        wanted: what a worker has to be like.
        own: whether the workers were started by this process.
        monotonic: seconds of a clock that never goes back.
        look_seconds: between two looks.
        meet_seconds: how long to wait where there is nobody.
    """

    def __init__(
        self,
        link: Link,
        provider: str,
        wanted: Likeness,
        *,
        own: bool,
        monotonic: Callable[[], float],
        look_seconds: float = LOOK_SECONDS,
        meet_seconds: float = MEET_SECONDS,
    ) -> None:
        self._link = link
        self._provider = provider
        self._wanted = wanted
        self._own = own
        self._monotonic = monotonic
        self._look_seconds = look_seconds
        self._meet_seconds = meet_seconds
        self._known: dict[str, _Known] = {}
        self._lost: deque[WorkerLost] = deque()
        self._changed = threading.Condition()
        self._over = threading.Event()
        self._link_lost = False
        self._watcher = threading.Thread(target=self._watch, name="cluster-watch", daemon=True)

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._watcher.join()

    # The watcher.

    def _watch(self) -> None:
        try:
            while not self._over.is_set():
                self.look()
                self._over.wait(self._look_seconds)
        except LinkLostError:
            # Whoever waits is told below.
            return
        finally:
            # However the watching ends, nobody may wait for what nobody would notice any more.
            with self._changed:
                self._link_lost = True
                self._changed.notify_all()

    def look(self) -> None:
        """Look once who is there.

        Raises:
            LinkLostError: the scheduler has gone.
        """
        here = self._link.workers()
        with self._changed:
            for address, known in list(self._known.items()):
                if here.get(address) != known.life:
                    self._forget(address)
            new = sorted(set(here) - set(self._known))
            for address in new:
                self._known[address] = _Known(here[address])
        if new:
            self._meet(new)

    def _meet(self, addresses: list[str]) -> None:
        if self._own:
            self._link.ask(addresses, shield_from_interrupts)
        told = self._link.ask(addresses, describe, self._provider, seconds=_DESCRIBE_SECONDS)
        with self._changed:
            for address in addresses:
                known = self._known.get(address)
                if known is not None:
                    known.facts, known.fault = self._judged(told.get(address))
            self._changed.notify_all()

    def _judged(self, told: object) -> tuple[WorkerFacts | None, str | None]:
        """What a worker said, and why it gets no order."""
        if not isinstance(told, bytes):
            return None, _NOT_DESCRIBED
        try:
            facts = parse(WorkerFacts, told, Profile.WIRE, canonical=Canonical.BARE)
        except EvidenceError:
            return None, _NOT_DESCRIBED
        return facts, unlike(facts, self._wanted)

    def _forget(self, address: str) -> None:
        known = self._known.pop(address)
        if known.facts is not None and known.fault is None:
            self._note_loss(known)
        self._changed.notify_all()

    def _note_loss(self, known: _Known) -> None:
        if known.facts is not None:
            worker = f"{known.facts.host}/{known.facts.pid}"
            slots = () if known.slot is None else (known.slot,)
            self._lost.append(WorkerLost(worker=worker, slots=slots))

    # Taking workers.

    def take(self, slot: int | None, cancelled: Callable[[], bool], host: str | None = None) -> Seat | None:
        """A like worker that has nothing to do; None when nobody wants one any more, or its host has none.

        Args:
            slot: of the attempt that it is to carry out.
            cancelled: asked now and then.
            host: that it has to be on; nobody waits for one to come there.

        Raises:
            AgentUnreachableError: the scheduler has gone, or no like worker came in time.
        """
        until: float | None = None
        with self._changed:
            while True:
                if self._link_lost:
                    raise AgentUnreachableError(CLUSTER_LOST)
                if cancelled() or (host is not None and host not in self.hosts()):
                    return None
                for address, known in self._known.items():
                    wanted = host is None or (known.facts is not None and known.facts.host == host)
                    if known.usable and known.facts is not None and not known.busy and wanted:
                        known.busy, known.slot = True, slot
                        return Seat(address, known.life, known.facts)
                until = self._until(until)
                if until is not None and self._monotonic() >= until:
                    raise AgentUnreachableError(self._why_none())
                self._changed.wait(self._look_seconds)

    def _until(self, until: float | None) -> float | None:
        """How long there is to wait for a worker that will do; None as long as there is no need to hurry."""
        known = self._known.values()
        if any(each.fault is None for each in known):
            # One that is like, or one that has not said yet.
            return None
        if known:
            return self._monotonic()
        return self._monotonic() + self._meet_seconds if until is None else until

    def _why_none(self) -> str:
        faults = sorted({known.fault for known in self._known.values() if known.fault is not None})
        return f"{NO_WORKER}.{faults[0]}" if faults else NO_WORKER

    def give_back(self, seat: Seat) -> None:
        """An order has come back; the worker may have the next one."""
        with self._changed:
            if (known := self._held(seat)) is not None:
                known.busy, known.slot = False, None
                self._changed.notify_all()

    def exclude(self, seat: Seat, fault: str, *, lost: bool) -> None:
        """Give a worker no order any more.

        Args:
            seat: the worker.
            fault: a closed word that says why.
            lost: whether what it was at is lost with it.
        """
        with self._changed:
            known = self._held(seat)
            if known is not None and known.fault is None:
                if lost:
                    self._note_loss(known)
                known.fault, known.busy, known.slot = fault, False, None
                self._changed.notify_all()

    def left(self, seat: Seat) -> bool:
        """Whether a worker has gone.

        Raises:
            AgentUnreachableError: the scheduler has gone.
        """
        with self._changed:
            if self._link_lost:
                raise AgentUnreachableError(CLUSTER_LOST)
            return self._held(seat) is None

    def _held(self, seat: Seat) -> _Known | None:
        known = self._known.get(seat.address)
        return known if known is not None and known.life == seat.life else None

    # What is known.

    def ready(self, cancelled: Callable[[], bool]) -> None:
        """Return once there is a like worker, or nobody wants one; errors as `take`."""
        if (seat := self.take(None, lambda: cancelled() or self.capacity() > 0)) is not None:
            self.give_back(seat)

    def capacity(self) -> int:
        """How many like workers there are."""
        with self._changed:
            return sum(known.usable for known in self._known.values())

    def addresses(self) -> tuple[str, ...]:
        """Of everybody who is there, like or not."""
        with self._changed:
            return tuple(address for address, known in self._known.items() if known.fault != GONE)

    def hosts(self) -> tuple[str, ...]:
        """Where like workers are, each once."""
        with self._changed:
            found = {known.facts.host for known in self._known.values() if known.facts and not known.fault}
            return tuple(sorted(found))

    def losses(self) -> tuple[WorkerLost, ...]:
        """Who has gone since this was last asked, with what they were at."""
        found = []
        with self._changed:
            while self._lost:
                found.append(self._lost.popleft())
        return tuple(found)

    def refused(self) -> tuple[tuple[str, str], ...]:
        """Who is there and gets no order, and why: name and closed word."""
        with self._changed:
            return tuple(
                sorted(
                    (f"{known.facts.host}/{known.facts.pid}" if known.facts else "a worker", known.fault)
                    for known in self._known.values()
                    if known.fault not in {None, GONE}
                )
            )
