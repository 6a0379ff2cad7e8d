"""A cluster's price in the coordinator, and what four workers save (studies.md, section 9).

| figure | goal |
|---|---|
| `study_cluster_coordinator_ms` | milliseconds of processor that a cluster adds to a trial |
| `study_cluster_workers` | seconds of four workers against one, same study, sleeping agents |

The first is the processor time (user and system, all threads) of the process that runs a study, from the
start to the end of `run_study`, divided by its trials: on two workers behind a scheduler of its own, less the
same with two threads in the same measurement. Agents are simulated and sleep 20 milliseconds; the scheduler,
the workers, connecting and starting are no part of it, looking after the workers twice a second is. So it is
what shipping an order, waiting for it, and checking and unpacking its parcel cost. With `local:N` the
scheduler shares the process; that figure is printed without a goal.

The second is wall time of the same span on four workers against one, with agents that sleep two seconds.
`STUDY_CLUSTER_SLOTS` names another number of trials than 200 for the first.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Figure, report

if TYPE_CHECKING:
    from collections.abc import Iterator

SLOTS = int(os.environ.get("STUDY_CLUSTER_SLOTS", "200"))
COORDINATOR_MILLISECONDS, WORKERS_GOAL = 2.0, 0.3
SLEEP, LONG_SLEEP, LONG_SLOTS = 0.02, 2.0, 24

PLAN = """
import sys
from pathlib import Path
from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.studies.runtime import runtime_manifest_hash
from tests.support.studies import bench, example
folder, samples, sleep = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
edits = {"samples: 3": f"samples: {samples}",
         "    effect: 0.4\\n": f"    effect: 0.4\\n    sleep_seconds: {sleep}\\n"}
study = example(folder, edits=edits)
with bench(folder, Surroundings.real()) as held:
    for out in sys.argv[4:]:
        held.plan(study, out=out, manifest=runtime_manifest_hash)
"""
RUN = """
import json, sys, time
from contextlib import nullcontext
from pathlib import Path
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.studies.cluster import cluster_agent
from skill_effectiveness.studies.cluster_address import read_cluster
from skill_effectiveness.studies.executors import thread_executor
from skill_effectiveness.studies.halting import Halt
from skill_effectiveness.studies.root import StudyRoot
from skill_effectiveness.studies.runner import RunParts, run_study
from tests.support.study_runs import simulated

class Silent:
    def resumed(self, *_): pass
    def progressed(self, *_): pass
    def resting(self, *_): pass

if __name__ == "__main__":
    folder, out, where, jobs = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
    around = Surroundings.real()
    with (PrivateRoot.create(folder / "state", RootKind.STATE, around=around, checkout=None) as state,
          StudyRoot.open(folder / out, around=around, checkout=None) as study):
        agent = simulated(study)
        elsewhere = (nullcontext(None) if where == "threads"
                     else cluster_agent(read_cluster(where, plain=False), study, agent, state))
        with elsewhere as clustered, thread_executor(jobs) as executor:
            if clustered is not None:
                while clustered.capacity() < jobs:
                    time.sleep(0.05)
            parts = RunParts(study, state, clustered or agent, executor, jobs, Halt(), Silent(), clustered)
            start, used = time.perf_counter(), time.process_time()
            outcome = run_study(parts)
            used, seconds = time.process_time() - used, time.perf_counter() - start
    assert outcome.status == "complete", outcome
    print(json.dumps({"seconds": seconds, "used": used, "trials": outcome.counts.ended}))
"""


class Place:
    """A folder with plans of one study and commands on them, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700)
        checkout = Path(__file__).resolve().parents[1]
        self.environ = os.environ | {
            "PYTHONPATH": f"{checkout / 'eval'}:{checkout}",
            "XDG_STATE_HOME": str(folder / "xdg"),
        }
        (folder / "run.py").write_text(RUN)

    def plan(self, samples: int, sleep: float, *outs: str) -> None:
        words = [sys.executable, "-c", PLAN, str(self.folder), str(samples), str(sleep), *outs]
        subprocess.run(words, check=True, env=self.environ)  # noqa: S603 - our own code

    def run(self, out: str, where: str, jobs: int) -> dict[str, Any]:
        words = [sys.executable, str(self.folder / "run.py"), str(self.folder), out, where, str(jobs)]
        done = subprocess.run(words, check=True, env=self.environ, stdout=subprocess.PIPE, text=True)  # noqa: S603 - likewise
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found

    @contextmanager
    def scheduler(self, workers: int) -> Iterator[str]:
        """A scheduler and its workers on loopback; gives the address."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        address, own = f"tcp://127.0.0.1:{port}", ["--host", "127.0.0.1", "--no-dashboard"]
        lines = [
            [
                "distributed.cli.dask_scheduler",
                *own,
                "--port",
                str(port),
                "--dashboard-address",
                "127.0.0.1:0",
            ],
            *[["distributed.cli.dask_worker", address, *own, "--nthreads", "1", "--no-nanny"]] * workers,
        ]
        started = [
            subprocess.Popen(  # noqa: S603 - Dask's own command line
                [sys.executable, "-m", *line],
                env=self.environ,
                cwd=self.folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for line in lines
        ]
        try:
            yield address
        finally:
            for process in reversed(started):
                process.terminate()
            for process in started:
                process.wait()


def coordinator(base: Path) -> list[Figure]:
    place = Place(base / "coordinator")
    place.plan(max(1, SLOTS // 4), SLEEP, "threads", "cluster", "local")
    found = {"threads": place.run("threads", "threads", 2)}
    with place.scheduler(2) as address:
        found["cluster"] = place.run("cluster", address, 2)
    found["local"] = place.run("local", "local:2", 2)
    each = {name: told["used"] / told["trials"] * 1e3 for name, told in found.items()}
    print(
        f"study_cluster trials={found['cluster']['trials']} threads_ms={each['threads']:.2f} "
        f"cluster_ms={each['cluster']:.2f} local_ms={each['local']:.2f} of processor time a trial"
    )
    added = each["cluster"] - each["threads"]
    return [Figure("study_cluster_coordinator_ms", added, COORDINATOR_MILLISECONDS)]


def workers(base: Path) -> list[Figure]:
    place = Place(base / "workers")
    place.plan(LONG_SLOTS // 4, LONG_SLEEP, "one", "four")
    one = place.run("one", "local:1", 1)["seconds"]
    four = place.run("four", "local:4", 4)["seconds"]
    print(f"study_cluster trials={LONG_SLOTS} one_worker_s={one:.1f} four_workers_s={four:.1f}")
    return [Figure("study_cluster_workers", four / one, WORKERS_GOAL)]


def main() -> int:
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary).resolve()
        return report(*coordinator(base), *workers(base))


if __name__ == "__main__":
    sys.exit(main())
