"""The connection to a cluster: everything that knows of Dask, in one place (studies.md section 3).

`distributed` is an extra and is imported here when a cluster is asked for, never before. Its loggers are
silent meanwhile: what a run has to say it says itself.

Of distributed 2026.8 it is known that it starts an unpinned task again elsewhere in spite of `retries=0`, and
leaves a pinned one pending for ever when its worker goes. So every order is pinned to one worker, and whoever
waits for it watches the workers.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from skill_effectiveness.studies.cluster_worker import AGENT_VARIABLE, Answer
from skill_effectiveness.studies.errors import StudyCode, StudyError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from skill_effectiveness.studies.cluster_address import ClusterAddress

CONNECT_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 10.0
"""How long a worker has to answer what is asked beside its work."""

RAISED: Final = b"worker_raised"
"""The word of a worker that answered with an exception, which none of this version does."""

_CLOSE_SECONDS: Final = 5.0
_TROUBLE: Final = (OSError, TimeoutError, RuntimeError, ValueError)
"""What the connection to a scheduler, or one to a worker, raises when it breaks."""

_LOGGERS: Final = ("distributed", "distributed.client", "distributed.gc", "tornado", "tornado.application")
_BEYOND_ALL: Final = logging.CRITICAL + 1
_OPTION: Final = "--cluster"


T = TypeVar("T")


class LinkLostError(Exception):
    """Nobody answers at the scheduler's any more."""


class WorkerGoneError(Exception):
    """An order came back without an answer, because its worker has gone or never had it."""


class Ticket(Protocol):
    """An order that is out."""

    def answer(self, seconds: float) -> Any:  # noqa: ANN401 - what the function answered
        """What it came to.

        Raises:
            TimeoutError: it is still out after so many seconds.
            WorkerGoneError: its worker has gone.
            LinkLostError: the scheduler has gone.
        """

    def drop(self) -> None:
        """Nobody waits for it any more."""


class Link(Protocol):
    """A cluster, as far as a coordinator needs one; safe to be used by several threads."""

    def workers(self) -> Mapping[str, str]:
        """The addresses of all workers that are there now, each with what differs from process to process.

        Raises:
            LinkLostError: the scheduler has gone.
        """

    def send(self, address: str, order: bytes, given: Sequence[bytes], digest: str) -> Ticket:
        """Have one worker carry out an order, and no other; errors as `Ticket.answer`."""

    def ask(
        self,
        addresses: Sequence[str],
        function: Callable[..., Any],
        *arguments: object,
        seconds: float = ANSWER_SECONDS,
    ) -> Mapping[str, Any]:
        """Have workers run a function beside their work; who does not answer in time is left out.

        Raises:
            LinkLostError: the scheduler has gone.
        """


class DaskLink:
    """A cluster behind a Dask scheduler.

    Args:
        client: connected; stays the caller's.
        carry_out: the function of `cluster_worker`, or another for tests.
    """

    def __init__(self, client: Any, carry_out: Callable[..., Any]) -> None:  # noqa: ANN401 - an extra's class
        self._client = client
        self._carry_out = carry_out

    def _demand(self) -> None:
        if self._client.status != "running":
            raise LinkLostError

    def _begin(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run something on the client's loop.

        The client's own way of waiting with a limit loses answers that come at the last moment, so limits are
        in the coroutines, and whoever waits waits for this future.
        """
        loop: asyncio.AbstractEventLoop = self._client.loop.asyncio_loop
        return asyncio.run_coroutine_threadsafe(coroutine, loop)

    def workers(self) -> Mapping[str, str]:
        """See `Link`."""
        self._demand()
        looked = self._begin(asyncio.wait_for(self._client.scheduler.identity(n_workers=-1), ANSWER_SECONDS))
        try:
            found = looked.result()["workers"]
        except _TROUBLE as error:
            raise LinkLostError from error
        # Every worker process makes a folder of its own, also where an address is fixed.
        return {address: str(told["local_directory"]) for address, told in found.items()}

    def send(self, address: str, order: bytes, given: Sequence[bytes], digest: str) -> DaskTicket:
        """See `Link`. Inputs are scattered to that very worker, so no order depends on another one."""
        self._demand()
        return DaskTicket(self._begin(self._carried_out(address, order, given, digest)), self._demand)

    async def _carried_out(self, address: str, order: bytes, given: Sequence[bytes], digest: str) -> object:
        from distributed.scheduler import KilledWorker  # noqa: PLC0415 - an extra

        client = self._client
        pinned = {"workers": [address], "allow_other_workers": False}
        inputs = []
        try:
            if given:
                inputs = await client.scatter(list(given), workers=[address], hash=False, asynchronous=True)
        except Exception as error:
            # The scheduler looks the address up in tables of its own: of one that has just gone it raises
            # whatever that comes to, a KeyError among others. Nothing was begun.
            raise WorkerGoneError from error
        future = client.submit(self._carry_out, order, inputs, digest, **pinned, pure=False, retries=0)
        try:
            return await client.gather(future, asynchronous=True)
        except asyncio.CancelledError:
            await client.cancel(future, asynchronous=True)
            raise
        except (OSError, CancelledError, KilledWorker) as error:
            raise WorkerGoneError from error
        except Exception:  # noqa: BLE001 - whatever a worker raises, of whatever class, is its answer
            return Answer.FAILED, RAISED
        finally:
            # Nothing refers to it any more, so the scheduler forgets it.
            future.release()

    def ask(
        self,
        addresses: Sequence[str],
        function: Callable[..., Any],
        *arguments: object,
        seconds: float = ANSWER_SECONDS,
    ) -> Mapping[str, Any]:
        """See `Link`."""
        self._demand()
        answers = self._begin(self._asked(addresses, function, arguments, seconds)).result()
        if not answers:
            self._demand()
        return answers

    async def _asked(
        self,
        addresses: Sequence[str],
        function: Callable[..., Any],
        arguments: tuple[object, ...],
        seconds: float,
    ) -> dict[str, Any]:
        """What each of them answers; one that has just gone holds up nobody but itself."""

        async def one(address: str) -> dict[str, Any]:
            asking = self._client.run(
                function, *arguments, workers=[address], on_error="return", asynchronous=True
            )
            try:
                found: dict[str, Any] = await asyncio.wait_for(asking, seconds)
            except Exception:  # noqa: BLE001 - whatever the scheduler makes of an address that has just gone
                return {}
            return found

        answered = await asyncio.gather(*map(one, addresses))
        told = {address: said for each in answered for address, said in each.items()}
        return {address: said for address, said in told.items() if not isinstance(said, BaseException)}


class DaskTicket:
    """An order that is out at a Dask worker.

    Args:
        waited_for: what it comes to.
        demand: raises where the scheduler has gone.
    """

    def __init__(self, waited_for: Future[Any], demand: Callable[[], None]) -> None:
        self._waited_for = waited_for
        self._demand = demand

    def answer(self, seconds: float) -> Any:  # noqa: ANN401 - see `Ticket`
        """See `Ticket`."""
        try:
            return self._waited_for.result(timeout=seconds)
        except TimeoutError:
            self._demand()
            raise
        except (CancelledError, WorkerGoneError) as error:
            self._demand()
            raise WorkerGoneError from error

    def drop(self) -> None:
        """See `Ticket`."""
        self._waited_for.cancel()


# Connecting.


@contextmanager
def dask_link(
    address: ClusterAddress, *, scratch: str, agent: str | None, carry_out: Callable[..., Any]
) -> Iterator[DaskLink]:
    """A connection to the cluster of an address, given up on every way out.

    Args:
        address: of workers to start here, or of a scheduler.
        scratch: absolute path of a private folder for what Dask writes beside workers that are started here.
        agent: absolute path of the agent's program for workers that are started here.
        carry_out: what a worker does with an order.

    Raises:
        StudyError: `cluster_missing`, `cluster_tls`, `cluster_unreachable`.
    """
    with _silent():
        try:
            import distributed  # noqa: PLC0415 - an extra
        except ImportError as error:
            sentence = "a cluster needs more than is installed: pip install 'skill-effectiveness[cluster]'."
            raise StudyError(StudyCode.CLUSTER_MISSING, _OPTION, sentence) from error
        _hush()
        if address.scheduler is None:
            # Loopback is everybody's: other users', and that of agents, whose sandbox leaves them the
            # network. Whoever is heard has a worker run code, so only who holds this run's key is heard.
            own = distributed.Security.temporary()  # type: ignore[no-untyped-call]
            with (
                _own_workers(address.workers, scratch, agent, own) as cluster,
                _client(cluster.scheduler_address, distributed, own) as client,
            ):
                yield DaskLink(client, carry_out)
        else:
            _demand_certificates(address, distributed)
            with _client(address.scheduler, distributed, None) as client:
                yield DaskLink(client, carry_out)


@contextmanager
def _own_workers(
    count: int,
    scratch: str,
    agent: str | None,
    security: Any,  # noqa: ANN401 - an extra's class
) -> Iterator[Any]:
    """Worker processes of this machine, which listen on loopback alone and end with this process.

    They speak to holders of one key alone, which is made for them and stays in their memory.
    """
    import dask  # noqa: PLC0415 - an extra
    from distributed import LocalCluster  # noqa: PLC0415 - an extra

    # Workers set their loggers up by the configuration that they are given.
    quiet = {"logging": dict.fromkeys(_LOGGERS, "critical")}
    # What Dask serves by HTTP has no key, so it serves nothing: no names, logs or stacks of what runs.
    mute: dict[str, list[str]] = {f"distributed.{part}.http.routes": [] for part in ("scheduler", "worker")}
    with dask.config.set(quiet | mute), _interrupts_ignored():
        cluster = LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=count,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            security=security,
            # Dask listens for HTTP in any case: on loopback, at ports that nobody else has.
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            worker_dashboard_address="127.0.0.1:0",
            silence_logs=_BEYOND_ALL,
            local_directory=scratch,
            env={} if agent is None else {AGENT_VARIABLE: agent},
            memory_limit=0,
        )
    try:
        yield cluster
    finally:
        cluster.close(timeout=_CLOSE_SECONDS)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Within it Ctrl-C is unheard, and so it is by processes that are started meanwhile."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)


@contextmanager
def _client(scheduler: str, distributed: Any, security: Any) -> Iterator[Any]:  # noqa: ANN401 - an extra
    try:
        client = distributed.Client(
            scheduler, timeout=CONNECT_SECONDS, set_as_default=False, security=security
        )
    except (OSError, TimeoutError, ValueError) as error:
        sentence = "nobody answers at this scheduler's address; start it, or put the address right."
        raise StudyError(StudyCode.CLUSTER_UNREACHABLE, _OPTION, sentence) from error
    try:
        yield client
    finally:
        with suppress(OSError, TimeoutError):
            # A scheduler that has gone cannot be told goodbye.
            client.close(timeout=_CLOSE_SECONDS)


def _demand_certificates(address: ClusterAddress, distributed: Any) -> None:  # noqa: ANN401 - an extra
    if not address.encrypted:
        return
    try:
        ready = distributed.Security().get_connection_args("client").get("ssl_context") is not None
    except (OSError, ValueError, TypeError) as error:
        raise _no_certificates() from error
    if not ready:
        raise _no_certificates()


def _no_certificates() -> StudyError:
    sentence = (
        "an encrypted connection needs the certificates of distributed: set distributed.comm.tls.ca-file and "
        "distributed.comm.tls.client.cert and .key in its configuration."
    )
    return StudyError(StudyCode.CLUSTER_TLS, _OPTION, sentence)


@contextmanager
def _silent() -> Iterator[None]:
    """Within it nothing that Dask logs reaches the screen; afterwards its loggers are as before."""
    held = [(logger, logger.handlers[:], logger.level, logger.propagate) for logger in _loggers()]
    _hush()
    try:
        yield
    finally:
        for logger, handlers, level, propagate in held:
            logger.handlers[:] = handlers
            logger.setLevel(level)
            logger.propagate = propagate


def _loggers() -> list[logging.Logger]:
    return [logging.getLogger(name) for name in _LOGGERS]


def _hush() -> None:
    """Again after Dask was imported, which sets its loggers up."""
    for logger in _loggers():
        logger.handlers[:] = [logging.NullHandler()]
        logger.setLevel(_BEYOND_ALL)
        logger.propagate = False
