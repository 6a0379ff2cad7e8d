"""What a worker does: the functions that a coordinator has run elsewhere (studies.md section 3).

| function | runs | answers |
|---|---|---|
| `describe` | beside whatever the worker works on | `WorkerFacts` |
| `carry_out` | in the worker's one task thread | `(Answer, bytes)` |
| `ask` | beside | how far an order has come here, with its parcel where there is one |
| `acknowledge` | beside | nothing: parcels that the coordinator has are forgotten |
| `cancel` | beside | nothing: the order that runs here is to end |

Everything that an agent needs and an order does not hold is the worker's own: its state folder, the user's
login, and the agent's program, which `SKILL_EFFECTIVENESS_AGENT` names or which is on PATH under the
provider's name. This module is a door: it takes the surroundings of the worker's process.
"""

from __future__ import annotations

import asyncio
import platform
import signal
import threading
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_bytes, dump
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.execution import ExecutableError
from skill_effectiveness.execution.programs import find_tool
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.providers import ADAPTERS, ProviderError
from skill_effectiveness.studies.attempt_records import AttemptOrder
from skill_effectiveness.studies.chance import Chance
from skill_effectiveness.studies.cluster_keys import key_files, shows_a_key
from skill_effectiveness.studies.cluster_orders import GradeOrder, WorkerFacts, read_order, rewards_bytes
from skill_effectiveness.studies.drivers import SIMULATED_HASH, SIMULATED_VERSION
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.ordered_studies import (
    NO_SETTINGS,
    assay_study,
    attempt_study,
    files_of,
    grade_study,
)
from skill_effectiveness.studies.parcels import WORKER_PLACE, pack
from skill_effectiveness.studies.runtime import runtime_manifest_hash
from skill_effectiveness.studies.simulated_driver import SimulatedAgent
from skill_effectiveness.studies.words import SIMULATED, Sandbox
from skill_effectiveness.studies.worker_store import WorkerStore
from skill_effectiveness.studies.working_agent import WorkingAgent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from skill_effectiveness.providers import Provider
    from skill_effectiveness.studies.agent import AgentAtWork
    from skill_effectiveness.studies.cluster_orders import AssayOrder, Order
    from skill_effectiveness.studies.ordered_studies import OrderedStudy

AGENT_VARIABLE: Final = "SKILL_EFFECTIVENESS_AGENT"
"""Of a worker's environment: the absolute path of the agent's program there."""

_KEY_SHOWN: Final = b"cluster_key_shown"
_LIBRARIES: Final = ("distributed", "skill-effectiveness")


class Answer(StrEnum):
    """What an order came to, or how far it has come.

    `done`: the parcel, or what a grade or an assay came to, follows. `already_started`: it was begun before
    and its end is not known here. `running`: this very process is at it. `absent`: it was never begun here.
    `missing`: inputs have to be sent, their digests follow. `unfit`: this worker cannot and did not begin it;
    a word follows. `failed`: it was begun and broke off; a word follows.
    """

    DONE = "done"
    ALREADY_STARTED = "already_started"
    RUNNING = "running"
    ABSENT = "absent"
    MISSING = "missing"
    UNFIT = "unfit"
    FAILED = "failed"


Answered = tuple[str, bytes]
"""An `Answer` and what follows it."""


# The worker's own process.


class _Running:
    """The orders that this process is at."""

    def __init__(self) -> None:
        self._stops: dict[str, threading.Event] = {}
        self._lock = threading.Lock()

    @contextmanager
    def at(self, order_digest: str) -> Iterator[Callable[[], bool]]:
        """Within it an order runs here; gives what tells whether it is to end."""
        stop = threading.Event()
        with self._lock:
            self._stops[order_digest] = stop
        try:
            yield stop.is_set
        finally:
            with self._lock:
                del self._stops[order_digest]

    def holds(self, order_digest: str) -> bool:
        with self._lock:
            return order_digest in self._stops

    def stop(self, order_digest: str) -> None:
        with self._lock:
            if (stop := self._stops.get(order_digest)) is not None:
                stop.set()


_RUNNING: Final = _Running()
_SESSIONS: Final[set[str]] = set()
"""Ids of the sessions that this process has seen, over all orders."""


@cache
def _around() -> Surroundings:
    return Surroundings.real()


@cache
def _manifest() -> str:
    # The code that is loaded does not change any more; a worker is started anew for another version.
    return runtime_manifest_hash()


def shield_from_interrupts() -> None:
    """Let Ctrl-C at the coordinator's terminal reach the coordinator alone.

    For workers that the coordinator started: they get the signal too, and it decides what they do about it.
    Has to run in the main thread. What they start has the usual signals again.
    """
    signal.signal(signal.SIGINT, _unheard)


def _unheard(_number: int, _frame: object) -> None:
    """Ignored rather than `SIG_IGN`, which agents would inherit."""


# Describing.


async def describe(provider: str) -> bytes:
    """What this worker is like for an agent of a provider: canonical `WorkerFacts`."""
    return await asyncio.to_thread(_described, provider)


def _described(provider: str) -> bytes:
    # Asked when a coordinator meets this worker: what it has now counts, for all orders that follow.
    _bound.cache_clear()
    _facts.cache_clear()
    return dump(to_json(_facts(provider)))


@cache
def _bound(provider: str, environ_path: str | None) -> Provider | None:
    """The agent's program as this worker has it, bound once."""
    around = _around()
    adapter = ADAPTERS.get(provider)
    path = Path(environ_path) if environ_path else find_tool(provider, around)
    if adapter is None or path is None or not path.is_absolute():
        return None
    try:
        return adapter.at(path, around=around)
    except (ProviderError, ExecutableError, EvidenceError):
        # What it lacks shows as another hash than was frozen.
        return None


def _provider(provider: str, around: Surroundings) -> Provider | None:
    return _bound(provider, around.environ.get(AGENT_VARIABLE))


@cache
def _facts(provider: str) -> WorkerFacts:
    around = _around()
    executable_hash: str | None = None
    cli_version: str | None = None
    if provider == SIMULATED:
        executable_hash, cli_version = SIMULATED_HASH, SIMULATED_VERSION
    elif (bound := _provider(provider, around)) is not None:
        with suppress(ExecutableError):
            program = bound.identify(around)
            executable_hash, cli_version = program.sha256, program.version
    return WorkerFacts(
        host=around.host,
        pid=around.pid,
        versions={"python": platform.python_version(), **_versions()},
        runtime_manifest_hash=_manifest(),
        executable_hash=executable_hash,
        cli_version=cli_version,
    )


@cache
def _versions() -> Mapping[str, str]:
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            # A checkout that runs without being installed; the manifest says which code it is.
            found[name] = "unknown"
    return found


# Carrying out.


def carry_out(order: bytes, given: Sequence[bytes], digest: str) -> Answered:
    """Carry out one order; see `Answer`.

    Args:
        order: its canonical form.
        given: inputs that were not sent before.
        digest: by which the order is named.
    """
    try:
        held, found = read_order(order)
        if (unfit := _unfit(held, found == digest)) is not None:
            return Answer.UNFIT, unfit
        if isinstance(held, GradeOrder):
            return _grade(held, given, _around())
        if isinstance(held, AttemptOrder):
            return _attempt(held, digest, given, _around())
        return _assay(held, given, _around())
    except (StudyError, EvidenceError, ProviderError, ExecutableError) as error:
        return Answer.UNFIT, str(error.code).encode()


def _unfit(order: Order, named: bool) -> bytes | None:  # noqa: FBT001 - whether the order is the named one
    """Why this worker begins nothing for an order; None where it may."""
    if not named:
        return b"order_digest"
    if order.runtime_manifest_hash != _manifest():
        return b"runtime_manifest_hash"
    if isinstance(order, GradeOrder) or order.driver.get("provider") == SIMULATED:
        return None
    confined = order.isolation.sandbox is Sandbox.BUBBLEWRAP
    # An agent in its sandbox has the network, so with a key of the cluster it could have any code run.
    return (
        _KEY_SHOWN if confined and shows_a_key(key_files(), order.isolation.read_only, _around().fs) else None
    )


def _attempt(order: AttemptOrder, digest: str, given: Sequence[bytes], around: Surroundings) -> Answered:
    with WorkerStore.open(order.root_id, around) as store:
        if lacking := _lacking(store, order.inputs, given):
            return Answer.MISSING, dump(lacking)
        agent = _agent(attempt_study(order, store.read, around))
        if store.begin(digest):
            return _carried_out(order, digest, store, agent)
        parcel = store.done(digest)
        return (Answer.ALREADY_STARTED, b"") if parcel is None else (Answer.DONE, parcel)


def _carried_out(order: AttemptOrder, digest: str, store: WorkerStore, agent: AgentAtWork) -> Answered:
    """An order that was begun by this very call."""
    try:
        with _RUNNING.at(digest) as cancelled:
            result = agent.attempt(order, WORKER_PLACE, cancelled)
            parcel = pack(result, digest, _facts(str(order.driver["provider"])))
            with suppress(EvidenceError):
                # The call is paid, so its parcel goes out also where this worker's disk cannot keep it.
                store.finish(digest, parcel)
    except (StudyError, EvidenceError, ExecutableError) as error:
        return Answer.FAILED, str(error.code).encode()
    return Answer.DONE, parcel


def _lacking(store: WorkerStore, wanted: Sequence[str], given: Sequence[bytes]) -> list[str]:
    """The inputs that are not here yet, those of the trees that an order names included."""
    for data in given:
        store.keep(data)
    lacking = {digest for digest in wanted if not store.has(digest)}
    for digest in set(wanted) - lacking:
        lacking |= {each for each in files_of(store.read(digest)) if not store.has(each)}
    return sorted(lacking)


def _assay(order: AssayOrder, given: Sequence[bytes], around: Surroundings) -> Answered:
    with WorkerStore.open(order.root_id, around) as store:
        if lacking := _lacking(store, order.inputs, given):
            return Answer.MISSING, dump(lacking)
        agent = _agent(assay_study(order, store.read, around))
        return Answer.DONE, agent.assay(order.batch, order.phase, order.arm).encode()


def _grade(order: GradeOrder, given: Sequence[bytes], around: Surroundings) -> Answered:
    """Grade a tree; its files and the hidden tests stay in memory, but for the copies that are graded on."""
    held = {digest_bytes(data): data for data in given}
    lacking = {digest for digest in order.inputs if digest not in held}
    for digest in set(order.inputs) - lacking:
        lacking |= set(files_of(held[digest])) - set(held)
    if lacking:
        return Answer.MISSING, dump(sorted(lacking))
    study = grade_study(order, held.__getitem__, around)
    return Answer.DONE, rewards_bytes(_agent(study).grade(order.task, study.inputs.held(order.work)))


def _agent(study: OrderedStudy) -> AgentAtWork:
    """The agent of an order.

    Raises:
        StudyError: `driver_differs`: this worker has no program for it.
        ProviderError: the user's configuration does not say which model is meant.
    """
    driver = study.plan.driver
    if driver.provider == SIMULATED:
        return SimulatedAgent(study.plan, NO_SETTINGS, Chance(study.seed()), study.around)
    bound = _provider(driver.provider, study.around)
    if bound is None:
        sentence = f"a worker has no program for {driver.provider}; name it there in {AGENT_VARIABLE}."
        raise StudyError(StudyCode.DRIVER_DIFFERS, "/driver", sentence)
    provider = bound.for_model(driver.model, study.around)
    return WorkingAgent(study, provider, sessions=_SESSIONS)


# What is asked beside the work.


async def ask(root_id: str, order_digest: str) -> Answered:
    """How far an order has come here: `running`, `done` with its parcel, `already_started` or `absent`."""
    return await asyncio.to_thread(_asked, root_id, order_digest)


def _asked(root_id: str, order_digest: str) -> Answered:
    # Before the store is looked at: an order that ends in between has its parcel there.
    if _RUNNING.holds(order_digest):
        return Answer.RUNNING, b""
    try:
        with WorkerStore.open(root_id, _around()) as store:
            if (parcel := store.done(order_digest)) is not None:
                return Answer.DONE, parcel
            return (Answer.ALREADY_STARTED if store.has_begun(order_digest) else Answer.ABSENT), b""
    except EvidenceError as error:
        return Answer.UNFIT, str(error.code).encode()


async def acknowledge(root_id: str, order_digests: Sequence[str]) -> None:
    """Forget parcels that the coordinator has published."""
    await asyncio.to_thread(_acknowledged, root_id, order_digests)


def _acknowledged(root_id: str, order_digests: Sequence[str]) -> None:
    with suppress(EvidenceError), WorkerStore.open(root_id, _around()) as store:
        # Nothing depends on it: a parcel that stays is one too many, and is answered as before.
        for digest in order_digests:
            store.acknowledge(digest)


def cancel(order_digest: str) -> None:
    """Have an order that runs here end."""
    _RUNNING.stop(order_digest)
