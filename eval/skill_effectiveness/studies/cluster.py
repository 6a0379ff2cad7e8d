"""A tested agent that works on other machines, or in other processes (studies.md section 3, table "Dask").

`ClusterAgent` takes the place of the agent that it wraps: attempts, and of an agent program also assays
and grading, go out as orders, one at a time to each like worker; what comes back is checked whole before
anything of it counts. The threads that wait here are the run's executor; nothing else knows of a cluster.

| of an attempt's worker | then |
|---|---|
| it answered | its parcel is checked, published by the run, and acknowledged |
| it has gone | all are asked for what it left; nothing there: the attempt is lost, nobody saw its end |
| it cannot, and has not begun | it gets no order any more; another worker has this one |
| its answer is not what it should be | it gets no order any more; the attempt is lost |
| it is silent long after its time, or after it was told to end | likewise |

A host that was not there when a batch opened is assayed before it gets an attempt of that batch.
A scheduler that goes blocks the run. What was out stays as it is in the journal; the next run asks for it.
"""

from __future__ import annotations

import math
import re
import threading
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_bytes, mac
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.execution import never
from skill_effectiveness.protocol.event_rows import ResidualStatus
from skill_effectiveness.studies.agent import AgentUnreachableError, AttemptLostError
from skill_effectiveness.studies.attempt_records import brief_bytes, brief_of
from skill_effectiveness.studies.cluster_hosts import HostAssays
from skill_effectiveness.studies.cluster_link import LinkLostError, WorkerGoneError, dask_link
from skill_effectiveness.studies.cluster_orders import (
    AssayOrder,
    GradeOrder,
    likeness_of,
    order_bytes,
    read_rewards,
)
from skill_effectiveness.studies.cluster_pool import CLUSTER_LOST, GONE, WorkerPool
from skill_effectiveness.studies.cluster_waiting import Limit
from skill_effectiveness.studies.cluster_worker import Answer, acknowledge, ask, cancel, carry_out
from skill_effectiveness.studies.exposure import SECONDS
from skill_effectiveness.studies.ordered_studies import files_of
from skill_effectiveness.studies.parcels import Expected, ParcelError, put_in_place, unpack
from skill_effectiveness.studies.worker_store import WORKERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.studies.agent import AssayResult, AttemptResult, Cancelled, TestedAgent
    from skill_effectiveness.studies.attempt_records import AttemptOrder
    from skill_effectiveness.studies.cluster_address import ClusterAddress
    from skill_effectiveness.studies.cluster_link import Link
    from skill_effectiveness.studies.cluster_orders import Order
    from skill_effectiveness.studies.cluster_pool import Seat
    from skill_effectiveness.studies.file_trees import HeldTree
    from skill_effectiveness.studies.plan import PlanTask
    from skill_effectiveness.studies.rewards import Reward
    from skill_effectiveness.studies.root import StudyRoot
    from skill_effectiveness.studies.rows import WorkerLost
    from skill_effectiveness.studies.state import SlotState
    from skill_effectiveness.studies.task_folder import TaskFolder
    from skill_effectiveness.studies.words import Arm
    from skill_effectiveness.trials.allocation import Slot

RETURN_SECONDS: Final = 10.0
"""How long a host that lost its only worker has to bring another up before its attempt is given up."""

STOP_SECONDS: Final = 30.0
"""How long a worker that was told to end has to answer."""

LATE_SECONDS: Final = 3_600.0
"""How long after all limits of its order a worker has to answer: it reads logs, packs, waits its turn."""

_ASSAY: Final = "exposure_assay"
_LOOK: Final = 0.25
_ACKNOWLEDGED_AT_ONCE: Final = 16
_SENDINGS: Final = 3
"""An order, the trees that were removed from a worker's store meanwhile, and their files."""

_SCRATCH: Final = "scratch"
_PASSED: Final = b"passed"
_FOREIGN_ANSWER: Final = "answer_form"
_WORD: Final = re.compile(r"[a-z][a-z_]{0,63}")


@dataclass(frozen=True, slots=True)
class _Outgoing:
    """An order with what goes with it.

    Attributes:
        data: its canonical form, which `digest` is of.
        named: every digest that it names, files of its trees included.
        own: inputs that are not among the study's frozen ones, by digest.
        kept_there: whether a worker keeps its inputs for later orders; hidden tests are not kept.
        seconds: how long its program may take, by its limits.
    """

    data: bytes
    digest: str
    named: frozenset[str]
    own: Mapping[str, bytes]
    kept_there: bool
    seconds: float


class ClusterAgent:
    """A tested agent whose work is done by the workers of a cluster.

    Args:
        study: open and planned; stays the caller's.
        agent: that is wrapped; asked for all that is no work.
        link: to the cluster; stays the caller's.
        pool: its workers, watched.
        apart: whether agents cannot speak to the cluster; where they can, nothing holds them, whatever is
            around them, since a worker runs what it is told.
        return_seconds: see `RETURN_SECONDS`.
        stop_seconds: see `STOP_SECONDS`.
        late_seconds: see `LATE_SECONDS`.
    """

    def __init__(
        self,
        study: StudyRoot,
        agent: TestedAgent,
        link: Link,
        pool: WorkerPool,
        *,
        apart: bool,
        return_seconds: float = RETURN_SECONDS,
        stop_seconds: float = STOP_SECONDS,
        late_seconds: float = LATE_SECONDS,
    ) -> None:
        self._study = study
        self._plan = study.plan
        self._around = study.around
        self._agent = agent
        self._link = link
        self._pool = pool
        self._apart = apart
        self._return_seconds = return_seconds
        self._stop_seconds = stop_seconds
        self._late_seconds = late_seconds
        self._simulated = study.study().driver.simulated
        self._root_id = study.identity().root_id
        self._lock = threading.Lock()
        self._files: dict[str, list[str]] = {}
        self._tasks: dict[str, TaskFolder] = {}
        self._briefs: dict[tuple[str, Arm], dict[str, bytes]] = {}
        self._sent: dict[tuple[str, str], set[str]] = {}
        self._kept: list[str] = []
        self._assays = HostAssays(each.arm for each in self._plan.arms)

    # What is no work.

    def told(self, slot: Slot, before: SlotState) -> Mapping[str, JsonValue]:
        """As the agent that is wrapped: orders are the same wherever they are carried out."""
        return self._agent.told(slot, before)

    def wait_before(self, slot: SlotState) -> float:
        """As the agent that is wrapped."""
        return self._agent.wait_before(slot)

    # Attempts.

    def attempt(self, order: AttemptOrder, place: str, cancelled: Cancelled) -> AttemptResult:
        """One attempt, on a worker.

        Raises:
            AttemptLostError: nobody saw its end.
            AgentUnreachableError: the scheduler or all like workers have gone.
        """
        outgoing = self._outgoing(order, self._brief(order))
        while (seat := self._pool.take(order.slot, cancelled)) is not None:
            if not self._may_have(seat, order.slot, cancelled):
                continue
            answer, told = self._carried_out(seat, outgoing, cancelled)
            if answer is Answer.DONE:
                return self._opened(seat, told, outgoing.digest, place)
            if answer is Answer.UNFIT:
                self._pool.exclude(seat, _word(told), lost=False)
                continue
            if answer is Answer.FAILED:
                self._pool.exclude(seat, _word(told), lost=True)
                break
            if answer is None:
                self._pool.exclude(seat, GONE, lost=True)
            else:
                self._pool.give_back(seat)
            found = self._look_for(order, outgoing.digest, cancelled, seat.facts.host)
            if found is None:
                break
            return self._placed(found, place, seat.facts.host)
        raise AttemptLostError

    def _brief(self, order: AttemptOrder) -> dict[str, bytes]:
        about = (order.task_id, order.arm)
        if about not in self._briefs:
            task = self._task(order.task_id)
            payload = self._plan.arm(str(order.arm)).tree
            data = brief_bytes(brief_of(task, self._plan.registry, payload))
            self._briefs[about] = {digest_bytes(data): data}
        return self._briefs[about]

    def _task(self, task_id: str) -> TaskFolder:
        with self._lock:
            if task_id not in self._tasks:
                self._tasks[task_id] = self._study.task(task_id)
            return self._tasks[task_id]

    def _opened(self, seat: Seat, parcel: bytes, digest: str, place: str) -> AttemptResult:
        """The result in a worker's answer."""
        try:
            result = unpack(parcel, self._expected(digest))
        except ParcelError as error:
            self._pool.exclude(seat, str(error.code), lost=True)
            raise AttemptLostError from error
        self._pool.give_back(seat)
        return self._placed(result, place, seat.facts.host)

    def _expected(self, digest: str) -> Expected:
        # Whichever process of a like worker's host it is of: one of them may hand out what another kept.
        return Expected(digest, self._plan.runtime_manifest_hash)

    def _placed(self, result: AttemptResult, place: str, host: str | None) -> AttemptResult:
        """As if the attempt had run here; whether anything lay about, the assays of its host say."""
        residual, observed = result.residual, result.observed
        shown = host is not None and self._assays.clean(host)
        if shown and residual.status is ResidualStatus.UNVERIFIED:
            residual = residual.model_copy(update={"status": ResidualStatus.CLEAN})
        if not self._apart and not self._simulated:
            # An agent that has the network could have had anything done outside its walls, unseen.
            unseen = (
                ("over tcp an agent can have others work for it, unseen",) if observed.audit_complete else ()
            )
            faults = (*observed.audit_faults, *unseen)
            observed = replace(observed, roots_enforced=False, audit_complete=False, audit_faults=faults)
        return replace(put_in_place(replace(result, observed=observed), place), residual=residual)

    # What is known of an attempt that nobody waits for any more.

    def finished(self, order: AttemptOrder, place: str, cancelled: Cancelled) -> AttemptResult | None:
        """What an attempt of an earlier run came to, wherever it was; None where no worker has it.

        Raises:
            AgentUnreachableError: the scheduler has gone, or no like worker came in time.
        """
        self._pool.ready(cancelled)
        found = self._look_for(order, order.digest, cancelled, None)
        return None if found is None else self._placed(found, place, None)

    def _look_for(
        self, order: AttemptOrder, digest: str, cancelled: Cancelled, host: str | None
    ) -> AttemptResult | None:
        """What an order came to, wherever it was carried out; None where nobody has it.

        Args:
            order: of an attempt.
            digest: of the order.
            cancelled: asked now and then; an order that still runs is ended then.
            host: where it was sent to: a worker that comes up there again has what the former one kept.
        """
        until = self._around.monotonic() + self._return_seconds
        limit = self._limit(self._seconds(order))
        while True:
            told = self._asked(self._pool.addresses(), ask, self._root_id, digest)
            answers = {address: _answer(each) for address, each in told.items()}
            parcels = (parcel for answer, parcel in answers.values() if answer is Answer.DONE)
            if (found := self._first_sound(parcels, digest)) is not None:
                return found
            running = [address for address, (answer, _) in answers.items() if answer is Answer.RUNNING]
            if running and limit.over(cancelled):
                return None
            if running and limit.ending:
                self._asked(running, cancel, digest)
            coming = host is not None and host not in self._pool.hosts() and not cancelled()
            if not running and not (coming and self._around.monotonic() < until):
                return None
            self._around.sleep(_LOOK)

    def _first_sound(self, parcels: Iterable[bytes], digest: str) -> AttemptResult | None:
        for parcel in parcels:
            with suppress(ParcelError):
                # One that is not what it should be is as good as none; the attempt is lost then.
                return unpack(parcel, self._expected(digest))
        return None

    def kept(self, order: AttemptOrder) -> None:
        """An attempt was published, so no worker has to keep it any more."""
        with self._lock:
            self._kept.append(order.digest)
            due = self._kept[:] if len(self._kept) >= _ACKNOWLEDGED_AT_ONCE else []
            if due:
                self._kept.clear()
        self._acknowledge(due)

    def _acknowledge(self, digests: Sequence[str]) -> None:
        if digests:
            with suppress(LinkLostError):
                # What stays there is one file too many, and nothing is asked for it again.
                self._link.ask(self._pool.addresses(), acknowledge, self._root_id, list(digests))

    def close(self) -> None:
        """Tell the workers what they need not keep; closing again does nothing."""
        with self._lock:
            due, self._kept = self._kept, []
        self._acknowledge(due)

    # What the run asks of its workers.

    def ready(self, cancelled: Cancelled) -> None:
        """Return once there is a like worker; errors as `finished`."""
        self._pool.ready(cancelled)

    def capacity(self) -> int:
        """How many orders can be out."""
        return self._pool.capacity()

    def losses(self) -> tuple[WorkerLost, ...]:
        """Who has gone since this was last asked."""
        return self._pool.losses()

    def refused(self) -> tuple[tuple[str, str], ...]:
        """Who is there and gets no order: name and closed word."""
        return self._pool.refused()

    # Assays and grading.

    def assay(self, batch: int, phase: str, arm: Arm) -> AssayResult:
        """Whether an arm's agents are shown what they should be, on every host that has a like worker.

        Raises:
            AgentUnreachableError: the scheduler or all like workers have gone.
        """
        if self._simulated:
            return self._agent.assay(batch, phase, arm)
        self._pool.ready(never)
        outgoing = self._assay_order(batch, phase, arm)
        hosts = self._pool.hosts()
        if phase == "close":
            # One that came late and had no attempt of this batch says nothing about it.
            hosts = self._assays.admitted(batch, hosts) or hosts
        passed = {host: self._assayed(outgoing, host) == _PASSED for host in hosts}
        for host, clean in passed.items():
            self._assays.note(batch, host, arm, passed=clean)
        return "passed" if passed and all(passed.values()) else "failed"

    def _assay_order(self, batch: int, phase: str, arm: Arm) -> _Outgoing:
        about: JsonValue = {"use": "assay-order", "batch": batch, "phase": phase, "arm": str(arm)}
        order = AssayOrder(
            kind="assay",
            root_id=self._root_id,
            plan_digest=self._plan.plan_digest,
            batch=batch,
            phase="open" if phase == "open" else "close",
            arm=arm,
            salt=mac(self._study.seed(), about).hex(),
            driver=self._driver(),
            isolation=self._plan.isolation,
            inputs=(self._plan.arm(str(arm)).tree,),
            runtime_manifest_hash=self._plan.runtime_manifest_hash,
        )
        return self._outgoing(order, {})

    def _may_have(self, seat: Seat, slot: int, cancelled: Cancelled) -> bool:
        """Whether a worker may be given an attempt; one of a host that came late is assayed first."""
        if self._simulated:
            return True
        batch = 1 + (slot - 1) // self._plan.batch_slots
        host = seat.facts.host
        with self._assays.turn(host):
            for arm in self._assays.lacking(batch, host):
                answer, told = self._carried_out(seat, self._assay_order(batch, "open", arm), cancelled)
                if answer is not Answer.DONE:
                    self._put_aside(seat, answer, told)
                    return False
                self._assays.note(batch, host, arm, passed=told == _PASSED)
                if told != _PASSED:
                    self._pool.exclude(seat, _ASSAY, lost=False)
                    return False
        return True

    def _assayed(self, outgoing: _Outgoing, host: str) -> bytes:
        """What the assay came to on one host; one that no worker there can make has shown nothing."""
        while host in self._pool.hosts() and (seat := self._pool.take(None, never, host)) is not None:
            answer, told = self._carried_out(seat, outgoing, never)
            if answer is Answer.DONE:
                self._pool.give_back(seat)
                return told
            self._put_aside(seat, answer, told)
        return b"failed"

    def grade(self, task: PlanTask, files: HeldTree) -> tuple[Reward, Reward]:
        """Grade a tree twice on one worker; a simulated agent's needs none.

        Raises:
            AgentUnreachableError: the scheduler or all like workers have gone.
        """
        if self._simulated:
            return self._agent.grade(task, files)
        held = self._task(task.task_id)
        listing = files.tree.listing
        own = {digest_bytes(listing): listing}
        own |= {str(entry.sha256): files.blob(entry) for entry in files.tree.files}
        order = GradeOrder(
            kind="grade",
            root_id=self._root_id,
            plan_digest=self._plan.plan_digest,
            task=task,
            work=files.tree.digest,
            workdir=held.workdir,
            env={**held.environment_env, **held.verifier_env},
            driver=self._driver(),
            isolation=self._plan.isolation,
            inputs=tuple(sorted({files.tree.digest, task.grader_hash})),
            runtime_manifest_hash=self._plan.runtime_manifest_hash,
        )
        outgoing = self._outgoing(order, own)
        while (seat := self._pool.take(None, never)) is not None:
            answer, told = self._carried_out(seat, outgoing, never)
            if answer is Answer.DONE:
                try:
                    rewards = read_rewards(told)
                except EvidenceError:
                    answer, told = Answer.UNFIT, _FOREIGN_ANSWER.encode()
                else:
                    self._pool.give_back(seat)
                    return rewards
            self._put_aside(seat, answer, told)
        raise AgentUnreachableError(CLUSTER_LOST)

    def _put_aside(self, seat: Seat, answer: Answer | None, told: bytes) -> None:
        """A worker that did not do what may be done again gets no order any more."""
        gone = answer is None
        self._pool.exclude(seat, GONE if gone else _word(told), lost=gone)

    def _driver(self) -> dict[str, JsonValue]:
        frozen = self._plan.driver
        return {
            "provider": frozen.provider,
            "model": frozen.model,
            "executable_hash": frozen.executable_hash,
            "cli_version": frozen.cli_version,
        }

    # Sending.

    def _outgoing(self, order: Order, own: Mapping[str, bytes]) -> _Outgoing:
        data = order_bytes(order)
        named = {each for digest in order.inputs for each in (digest, *self._files_of(digest, own))}
        kept = order.kind != "grade"
        seconds = self._seconds(order)
        return _Outgoing(data, digest_bytes(data), frozenset(named), own, kept_there=kept, seconds=seconds)

    def _seconds(self, order: Order) -> float:
        """How long the program of an order may take; a simulated one only sleeps."""
        match order:
            case AssayOrder():
                return SECONDS
            case GradeOrder():
                return 2 * order.task.limits.verifier_seconds
            case _ if self._simulated:
                return math.inf
            case _:
                return self._task(order.task_id).limits.agent_seconds

    def _limit(self, seconds: float) -> Limit:
        until = self._around.monotonic() + seconds + self._late_seconds
        return Limit(self._around.monotonic, until, self._stop_seconds)

    def _files_of(self, digest: str, own: Mapping[str, bytes]) -> Sequence[str]:
        if digest in own:
            return files_of(own[digest])
        with self._lock:
            if digest not in self._files:
                self._files[digest] = files_of(self._study.inputs.read(digest))
            return self._files[digest]

    def _carried_out(
        self, seat: Seat, outgoing: _Outgoing, cancelled: Cancelled
    ) -> tuple[Answer | None, bytes]:
        """What one worker answers to an order; None where it has gone."""
        with self._lock:
            sent = self._sent.setdefault((seat.address, seat.life), set())
            # What a worker does not keep is sent every time.
            lacking = outgoing.named - sent if outgoing.kept_there else outgoing.named
        for _ in range(_SENDINGS):
            try:
                answer, told = self._waited_for(seat, outgoing, sorted(lacking), cancelled)
            except LinkLostError as error:
                raise AgentUnreachableError(CLUSTER_LOST) from error
            except WorkerGoneError:
                return None, b""
            if answer is not Answer.MISSING:
                if answer is Answer.DONE and outgoing.kept_there:
                    with self._lock:
                        sent |= lacking
                return answer, told
            wanted = _digests(told)
            if not wanted or not wanted <= outgoing.named or wanted <= lacking:
                break
            lacking = wanted
        # It asks for what is no part of its order, or again for what it was just given.
        return Answer.UNFIT, _FOREIGN_ANSWER.encode()

    def _waited_for(
        self, seat: Seat, outgoing: _Outgoing, given: Sequence[str], cancelled: Cancelled
    ) -> tuple[Answer, bytes]:
        frozen = self._study.inputs.read
        blobs = [outgoing.own[each] if each in outgoing.own else frozen(each) for each in given]
        ticket = self._link.send(seat.address, outgoing.data, blobs, outgoing.digest)
        limit = self._limit(outgoing.seconds)
        asked = False
        try:
            while True:
                try:
                    return _answer(ticket.answer(_LOOK))
                except TimeoutError:
                    if self._pool.left(seat) or limit.over(cancelled):
                        raise WorkerGoneError from None
                    if limit.ending and not asked:
                        asked = True
                        self._asked([seat.address], cancel, outgoing.digest)
        finally:
            ticket.drop()

    def _asked(
        self, addresses: Sequence[str], function: Callable[..., object], *arguments: object
    ) -> Mapping[str, object]:
        try:
            return self._link.ask(addresses, function, *arguments)
        except LinkLostError as error:
            raise AgentUnreachableError(CLUSTER_LOST) from error


# What workers say.


def _answer(told: object) -> tuple[Answer, bytes]:
    """An answer as it came; after anything else nobody knows whether the order was begun."""
    match told:
        case (str(word), bytes(data)) if word in set(Answer):
            return Answer(word), data
        case _:
            return Answer.FAILED, _FOREIGN_ANSWER.encode()


def _word(told: bytes) -> str:
    """The closed word that follows an answer."""
    text = told.decode("ascii", "replace")
    return text if _WORD.fullmatch(text) else _FOREIGN_ANSWER


def _digests(told: bytes) -> frozenset[str]:
    try:
        found = read_json(told, Profile.WIRE)
    except EvidenceError:
        return frozenset()
    return frozenset(map(str, found)) if isinstance(found, list) else frozenset()


@contextmanager
def cluster_agent(
    address: ClusterAddress, study: StudyRoot, agent: TestedAgent, state: PrivateRoot
) -> Iterator[ClusterAgent]:
    """The agent of a study on the cluster of an address; everything is given up on every way out.

    Args:
        address: of the cluster.
        study: open and planned.
        agent: as it is bound here.
        state: the product's own state folder.

    Raises:
        StudyError: `cluster_missing`, `cluster_tls`, `cluster_unreachable`.
    """
    driver = study.study().driver
    with state.child(WORKERS, _SCRATCH, create=True) as scratch:
        place = str(scratch.path)
    wanted, own, clock = likeness_of(study.plan), address.scheduler is None, study.around.monotonic
    with (
        dask_link(address, scratch=place, agent=driver.executable, carry_out=carry_out) as link,
        WorkerPool(link, driver.provider, wanted, own=own, monotonic=clock) as pool,
        closing(ClusterAgent(study, agent, link, pool, apart=own or address.encrypted)) as clustered,
    ):
        yield clustered
