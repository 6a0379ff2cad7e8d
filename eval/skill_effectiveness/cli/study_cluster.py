"""Where attempts are carried out: `--jobs`, `--cluster`, `--allow-plain-tcp` (studies.md section 3)."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skill_effectiveness.cli import screen
from skill_effectiveness.cli.refusals import CommandCode, Refusal
from skill_effectiveness.studies.agents import bound_agent
from skill_effectiveness.studies.cluster_address import read_cluster
from skill_effectiveness.studies.executors import MOST_JOBS, thread_executor
from skill_effectiveness.studies.runner import RunParts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.studies.cluster_address import ClusterAddress
    from skill_effectiveness.studies.halting import Halt
    from skill_effectiveness.studies.root import StudyRoot
    from skill_effectiveness.studies.runner import RunObserver

Jobs = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MOST_JOBS,
        help="Attempts at a time (default: 1; of a cluster one for each worker, and never more).",
        show_default=False,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        help="Carry attempts out on workers: local:N starts N of them here; tls://H:P or tcp://H:P names "
        "a Dask scheduler.",
        metavar="C",
        show_default=False,
    ),
]
PlainTcp = Annotated[
    bool,
    typer.Option(
        "--allow-plain-tcp",
        help="Let tcp:// leave this machine: prompts in clear, and code run by whoever reaches it.",
    ),
]
_ONE: Final = 1


@dataclass(frozen=True, slots=True)
class Crew:
    """Who carries a run's attempts out.

    Attributes:
        jobs: attempts at a time; None for as many as there are workers.
        cluster: where they are; None for threads here.
    """

    jobs: int | None
    cluster: ClusterAddress | None


def read_crew(jobs: int | None, cluster: str | None, *, plain: bool) -> Crew:
    """What a command line asks for, before anything is begun.

    Raises:
        StudyError: `cluster_address`, `cluster_plain`.
        Refusal: `usage`: a plain connection is allowed and none is named.
    """
    if cluster is None:
        if plain:
            raise Refusal(CommandCode.USAGE, "--allow-plain-tcp belongs to --cluster tcp://HOST:PORT.")
        return Crew(jobs, None)
    return Crew(jobs, read_cluster(cluster, plain=plain))


@contextmanager
def at_work(
    crew: Crew, study: StudyRoot, state: PrivateRoot, halt: Halt, observer: RunObserver
) -> Iterator[RunParts]:
    """Everything that a run works with; workers that were started here end with the block.

    Raises:
        StudyError: as `bound_agent` and `cluster_agent`.
    """
    agent = bound_agent(study)
    if crew.cluster is None:
        jobs = crew.jobs or _ONE
        with thread_executor(jobs) as executor:
            yield RunParts(study, state, agent, executor, jobs, halt, observer)
        return
    # What a cluster needs takes long to load, and most runs have none.
    from skill_effectiveness.studies.cluster import cluster_agent  # noqa: PLC0415 - see above

    jobs = crew.jobs or MOST_JOBS
    with (
        cluster_agent(crew.cluster, study, agent, state) as clustered,
        thread_executor(jobs) as executor,
    ):
        yield RunParts(study, state, clustered, executor, jobs, halt, observer, clustered)
        for worker, fault in clustered.refused():
            screen.complain(f"{worker} got no order: {fault}.")
