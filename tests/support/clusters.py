"""A cluster in this process: workers that are threads, of hosts that are folders, and a link that keeps what
it shipped.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as StillOut
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from skill_effectiveness.studies import cluster_worker
from skill_effectiveness.studies.cluster import ClusterAgent
from skill_effectiveness.studies.cluster_link import LinkLostError, WorkerGoneError
from skill_effectiveness.studies.cluster_orders import likeness_of
from skill_effectiveness.studies.cluster_pool import WorkerPool
from skill_effectiveness.studies.executors import thread_executor
from skill_effectiveness.studies.halting import Halt
from skill_effectiveness.studies.runner import RunOutcome, RunParts, run_study
from tests.support.private import surroundings
from tests.support.studies import MANIFEST
from tests.support.study_runs import Watching, simulated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pytest

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.studies.agent import TestedAgent
    from skill_effectiveness.studies.root import StudyRoot
    from tests.support.studies import Bench

HERE: ContextVar[Surroundings] = ContextVar("HERE")
"""The surroundings of the worker that a thread plays."""


@dataclass
class Played:
    """A worker that a thread plays.

    Attributes:
        around: of its host.
        life: differs for another process at the same address.
        alive: whether the scheduler sees it.
        answers: instead of carrying an order out, the next of these is answered.
        hold: an order waits for this before it is carried out.
        silent: its answers never arrive.
        carried: digests of the orders that were delivered, in order.
    """

    around: Surroundings
    life: str = "1"
    alive: bool = True
    answers: list[Any] = field(default_factory=list)
    hold: threading.Event | None = None
    silent: bool = False
    carried: list[str] = field(default_factory=list)


@dataclass
class InlineLink:
    """A link to played workers, by address.

    Attributes:
        shipped: every order with its inputs, as bytes.
        asked: names of functions and what they were asked with.
        lost: whether the scheduler has gone.
    """

    players: dict[str, Played]
    shipped: list[tuple[str, bytes, tuple[bytes, ...]]] = field(default_factory=list)
    asked: list[tuple[str, tuple[object, ...]]] = field(default_factory=list)
    lost: bool = False

    def workers(self) -> Mapping[str, str]:
        if self.lost:
            raise LinkLostError
        return {address: each.life for address, each in self.players.items() if each.alive}

    def send(self, address: str, order: bytes, given: Sequence[bytes], digest: str) -> InlineTicket:
        if self.lost:
            raise LinkLostError
        played = self.players[address]
        if not played.alive:
            raise WorkerGoneError
        self.shipped.append((address, order, tuple(given)))
        played.carried.append(digest)
        future: Future[Any] = Future()

        def work() -> None:
            if played.answers:
                future.set_result(played.answers.pop(0))
                return
            HERE.set(played.around)
            if played.hold is not None:
                played.hold.wait(10)
            found = cluster_worker.carry_out(order, given, digest)
            if not played.silent:
                future.set_result(found)

        threading.Thread(target=copy_context().run, args=(work,), daemon=True).start()
        return InlineTicket(self, future)

    def ask(
        self,
        addresses: Sequence[str],
        function: Callable[..., Any],
        *arguments: object,
        seconds: float = 1.0,
    ) -> Mapping[str, Any]:
        del seconds
        if self.lost:
            raise LinkLostError
        self.asked.append((function.__name__, arguments))
        found = {}
        for address in addresses:
            played = self.players.get(address)
            if played is not None and played.alive:
                found[address] = copy_context().run(_asked, played, function, arguments)
        return found


@dataclass
class InlineTicket:
    link: InlineLink
    future: Future[Any]

    def answer(self, seconds: float) -> Any:  # noqa: ANN401 - what the function answered
        try:
            return self.future.result(timeout=min(seconds, 0.05))
        except StillOut:
            if self.link.lost:
                raise LinkLostError from None
            raise TimeoutError from None

    def drop(self) -> None:
        pass


def _asked(played: Played, function: Callable[..., Any], arguments: tuple[object, ...]) -> Any:  # noqa: ANN401
    HERE.set(played.around)
    if function is cluster_worker.shield_from_interrupts:
        return None
    answered = function(*arguments)
    return asyncio.run(answered) if inspect.iscoroutine(answered) else answered


def host_of(
    folder: Path, name: str, *, pid: int = 1, fs: FileSystem | None = None, **environ: str
) -> Surroundings:
    """The surroundings of a worker on a host, whose state lies in a folder of its own."""
    home = folder / f"host-{name}"
    home.mkdir(mode=0o700, exist_ok=True)
    known = surroundings(
        fs, environ={"XDG_STATE_HOME": str(home), "HOME": str(home), "PATH": "/usr/bin:/bin", **environ}
    )
    return replace(known, host=name, pid=pid)


def play_workers(patch: pytest.MonkeyPatch, manifest: str = MANIFEST) -> None:
    """Let worker functions take the surroundings of the worker that a thread plays."""
    patch.setattr(cluster_worker, "_around", HERE.get)
    patch.setattr(cluster_worker, "_manifest", lambda: manifest)
    for name in ("_facts", "_bound"):
        uncached = getattr(cluster_worker, name).__wrapped__
        patch.setattr(cluster_worker, name, lru_cache(maxsize=0)(uncached))


@contextmanager
def pooled(
    study: StudyRoot, link: InlineLink, agent: TestedAgent | None = None, *, apart: bool = True
) -> Iterator[tuple[ClusterAgent, WorkerPool]]:
    """The agent of a study on played workers."""
    provider = study.study().driver.provider
    with WorkerPool(
        link,
        provider,
        likeness_of(study.plan),
        own=False,
        monotonic=study.around.monotonic,
        look_seconds=0.02,
        meet_seconds=0.3,
    ) as pool:
        clustered = ClusterAgent(
            study, agent or simulated(study), link, pool, apart=apart, return_seconds=0.3, stop_seconds=0.5
        )
        yield clustered, pool
        clustered.close()


def run_on(
    bench: Bench,
    link: InlineLink,
    *,
    agent: Callable[[StudyRoot], TestedAgent] = simulated,
    jobs: int = 8,
    halt: Halt | None = None,
    watching: Watching | None = None,
    out: str = "R",
    apart: bool = True,
) -> RunOutcome:
    """Run a planned study on played workers."""
    with (
        bench.open(out) as study,
        thread_executor(jobs) as executor,
        pooled(study, link, agent(study), apart=apart) as (clustered, _),
    ):
        return run_study(
            RunParts(
                study,
                bench.state,
                clustered,
                executor,
                jobs,
                halt or Halt(),
                watching or Watching(),
                clustered,
            )
        )
