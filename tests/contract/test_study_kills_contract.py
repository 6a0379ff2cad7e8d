"""kill -9 of a study on the real codex, fifty times: of its runner, a worker, the scheduler, an agent.

The moments are drawn at random, from a fixed seed. After each kill the journal has to hold every row that it
held before; in the end every slot has ended once, no order was given out twice, no agent was asked to begin
more often than the journal says, and what was sealed verifies. `STUDY_KILLS` says another number of kills.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tests.support.acknowledged import acknowledged, bodies
from tests.support.private import REPOSITORY
from tests.support.real_studies import Studying, Worker, codex

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.model_server import ModelServer
    from tests.support.real_studies import Program

pytestmark = pytest.mark.realcli

KILLS = int(os.environ.get("STUDY_KILLS", "50"))
NAME = "study-kills"
WORKERS = 2
PATIENCE = 120.0
LONGEST_ROUND = 5.0
AGAIN = {0, 1, -signal.SIGKILL}
"""How a run may end that something was killed under: complete, blocked, killed."""

NOBODY_THERE, UNREACHED = 2, "nobody answers at this scheduler's address"
"""How it ends when its scheduler was killed before it was reached, and what it says then."""


class Cluster:
    """A scheduler and its workers, each a process of its own; whoever is missing is started again.

    Args:
        studying: the user.
        program: the agent's.
    """

    def __init__(self, studying: Studying, program: Program) -> None:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{found.getsockname()[1]}"
        self._environ = studying.environ(program) | {"SKILL_EFFECTIVENESS_AGENT": str(program.path)}
        self._folder = studying.tmp_path
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []

    def complete(self) -> None:
        """Start what is missing."""
        if self.scheduler is None or self.scheduler.poll() is not None:
            port = self.address.rpartition(":")[2]
            self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard")
            self._end(self.workers)
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        while len(self.workers) < WORKERS:
            self.workers.append(
                self._start(
                    "worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard",
                    "--host", "127.0.0.1", "--local-directory", str(self._folder / "dask"),
                )
            )  # fmt: skip

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        with (self._folder / f"{words[0]}.log").open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - of this environment
                [sys.executable, "-m", "distributed.cli.dask_" + words[0], *words[1:]],
                env=self._environ,
                stdout=log,
                stderr=log,
            )

    @staticmethod
    def _end(started: list[subprocess.Popen[bytes]]) -> None:
        for process in started:
            process.kill()
        for process in started:
            process.wait()

    def end(self) -> None:
        """End all of them."""
        self._end([*self.workers, *([self.scheduler] if self.scheduler else [])])


@pytest.fixture
def studying(tmp_path: Path, model_server: ModelServer) -> Studying:
    return Studying(tmp_path, model_server)


@pytest.fixture
def program(studying: Studying, codex_program: Path) -> Program:
    return codex(studying.tmp_path, codex_program, studying.server.play(NAME, Worker()))


@pytest.fixture
def cluster(studying: Studying, program: Program) -> Iterator[Cluster]:
    made = Cluster(studying, program)
    try:
        yield made
    finally:
        made.end()


class Killing:
    """One study after another, killed and gone on with, until there were enough kills."""

    def __init__(self, studying: Studying, program: Program, cluster: Cluster) -> None:
        self._studying = studying
        self._program = program
        self._cluster = cluster
        self._chance = random.Random(20261201)  # noqa: S311 - moments
        self._rows: list[dict[str, Any]] = []
        self.killed: dict[str, int] = dict.fromkeys(("runner", "worker", "scheduler", "agent"), 0)
        self.studies: list[Path] = []

    def next_study(self) -> Path:
        """Plan one more."""
        folder = self._studying.tmp_path / f"R{len(self.studies)}"
        code, _, said = self._studying.quick(self._program, "--out", str(folder), "--dry-run")
        assert code == 0, said
        self.studies.append(folder)
        self._rows = []
        return folder

    def start(self, folder: Path) -> subprocess.Popen[bytes]:
        self._cluster.complete()
        with (self._studying.tmp_path / "runs.log").open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - our own door
                [
                    sys.executable, str(REPOSITORY / "run.py"), "study", "run", str(folder),
                    "--cluster", self._cluster.address, "--json",
                ],
                env=self._studying.environ(self._program),
                stdout=log,
                stderr=log,
            )  # fmt: skip

    def round(self, folder: Path) -> bool:
        """Run, kill something, and look at what is left; whether the study was complete before that."""
        run = self.start(folder)
        with suppress(subprocess.TimeoutExpired):
            if run.wait(self._chance.uniform(1.0, LONGEST_ROUND)) == 0:
                return True
        target = self._chance.choice(sorted(self.killed))
        self.killed[target] += self._kill(target, run)
        if target in {"runner", "scheduler"}:
            ended = run.wait(PATIENCE)
            assert ended in AGAIN or (ended == NOBODY_THERE and UNREACHED in self._said()), ended
        else:
            with suppress(subprocess.TimeoutExpired):
                run.wait(self._chance.uniform(0.5, LONGEST_ROUND))
            run.kill()
            assert run.wait(PATIENCE) in AGAIN
        self.look(folder)
        return False

    def _kill(self, target: str, run: subprocess.Popen[bytes]) -> bool:
        """Kill it; whether it was there to be killed."""
        if target == "runner":
            run.kill()
            return True
        if target == "agent":
            return self._kill_an_agent()
        victim = self._cluster.scheduler if target == "scheduler" else self._cluster.workers[0]
        assert victim is not None
        victim.kill()
        victim.wait()
        return True

    def _kill_an_agent(self) -> bool:
        agents = [
            child
            for worker in self._cluster.workers
            if worker.poll() is None
            for child in psutil.Process(worker.pid).children(recursive=True)
        ]
        for agent in agents[-1:]:
            with suppress(psutil.NoSuchProcess):
                agent.kill()
                return True
        return False

    def _said(self) -> str:
        """The last that runs have written."""
        return (self._studying.tmp_path / "runs.log").read_text()[-500:]

    def look(self, folder: Path) -> None:
        """Nothing that was acknowledged is lost or changed."""
        now = acknowledged(folder)
        assert now[: len(self._rows)] == self._rows
        self._rows = now

    def finish(self, folder: Path) -> list[dict[str, Any]]:
        """Bring a study to its end, report and seal it; its rows."""
        run = self.start(folder)
        assert run.wait(PATIENCE * 5) == 0, (self._studying.tmp_path / "runs.log").read_text()[-2000:]
        self.look(folder)
        return self._rows


def command(studying: Studying, program: Program, *words: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(  # noqa: S603 - our own door
        [sys.executable, str(REPOSITORY / "run.py"), *words, "--json"],
        env=studying.environ(program),
        capture_output=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout or b"{}")


def demand_once(rows: list[dict[str, Any]], slots: int) -> int:
    """Every slot ended once and every order was given out once; how many orders there were."""
    ended = [body["slot"] for body in bodies(rows, "slot_ended")]
    assert sorted(ended) == list(range(1, slots + 1))
    orders = [body["order_digest"] for body in bodies(rows, "slot_started")]
    assert len(set(orders)) == len(orders)
    attempts = [(body["slot"], body["attempt"]) for body in bodies(rows, "attempt_ended")]
    assert len(set(attempts)) == len(attempts)
    return len(orders)


def test_fifty_kills(
    studying: Studying, program: Program, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """S23 S31 F3 F4 F10: every acknowledged trial once, whoever of them is killed, and whenever."""
    killing = Killing(studying, program, cluster)
    folder, orders = killing.next_study(), 0
    while sum(killing.killed.values()) < KILLS:
        if killing.round(folder):
            orders += demand_once(killing.finish(folder), 36)
            folder = killing.next_study()
    orders += demand_once(killing.finish(folder), 36)
    with capsys.disabled():
        print(f"kills {killing.killed}, studies {len(killing.studies)}, orders {orders}")  # noqa: T201 - a figure
    asked = [request.asked for request in studying.server.requests(NAME)]
    begun = [
        each
        for each in asked
        if "into answer.txt" in each.everything
        and not each.tool_results
        and "exposure check" not in each.everything
    ]
    assert len(begun) <= orders
    for number, study in enumerate(killing.studies):
        bundle = studying.tmp_path / f"B{number}"
        assert command(studying, program, "study", "report", str(study))[0] == 3
        assert command(studying, program, "study", "seal", str(study), "--out", str(bundle))[0] == 0
        public = next(studying.home.rglob("study.pub"))
        code, told = command(studying, program, "verify", str(bundle), "--pub", str(public))
        assert (code, told["verify_status"]) == (0, "pass"), told
    time.sleep(1.0)
    assert not [each for each in psutil.process_iter() if _is_of(each, program.path)]


def _is_of(process: psutil.Process, program: Path) -> bool:
    with suppress(psutil.Error):
        return str(program) in process.cmdline()
    return False
