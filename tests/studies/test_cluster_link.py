"""Studies on real Dask workers: killed, interrupted, lost, and the same tables as by threads."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from skill_effectiveness.studies.cluster import cluster_agent
from skill_effectiveness.studies.cluster_address import read_cluster
from skill_effectiveness.studies.cluster_link import WorkerGoneError, dask_link
from skill_effectiveness.studies.executors import thread_executor
from skill_effectiveness.studies.halting import Halt
from skill_effectiveness.studies.reporting import report_study
from skill_effectiveness.studies.runner import RunParts, RunStatus, run_study
from skill_effectiveness.studies.runtime import runtime_manifest_hash
from tests.support.cluster_runs import SETTINGS, Commands, certificates, commands, scheduler, wait_until
from tests.support.crash_images import fast_folder
from tests.support.studies import bench, example
from tests.support.study_runs import Watching, run, simulated, types_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.studies import Bench

pytestmark = pytest.mark.slow

ONE = {"samples: 3": "samples: 1"}


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder where durability costs nothing."""
    with fast_folder() as folder:
        yield folder


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Commands]:
    """Commands in a folder of their own."""
    with commands(tmp_path) as found:
        yield found


def sleeping(seconds: float) -> dict[str, str]:
    return ONE | {SETTINGS: f"{SETTINGS}    sleep_seconds: {seconds}\n"}


OF_THE_FOLDER = ("trial_fingerprint", "completion_binding_hash", "grade_hash")
"""Columns that differ between two folders of one plan, whoever carries its attempts out."""


def tables(held: Bench, out: str) -> list[list[dict[str, str]]]:
    with held.open(out) as study, study.journal(held.state) as journal:
        report_study(study, journal)
    found = []
    for name in ("trials.csv", "pairs.csv"):
        rows = csv.DictReader(io.StringIO((held.folder / out / "report" / name).read_text()))
        found.append([{key: row[key] for key in row if key not in OF_THE_FOLDER} for row in rows])
    return found


def test_threads_and_workers_make_the_same_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """S5 S30: one plan, by threads and by two worker processes: the same rows, and a silent screen."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    with bench(tmp_path) as held:
        study = example(tmp_path)
        for out in ("T", "R"):
            held.plan(study, out=out, manifest=runtime_manifest_hash)
        assert run(held, out="T").status is RunStatus.COMPLETE
        two = read_cluster("local:2", plain=False)
        with (
            held.open("R") as opened,
            cluster_agent(two, opened, simulated(opened), held.state) as agent,
            thread_executor(8) as executor,
        ):
            parts = RunParts(opened, held.state, agent, executor, 8, Halt(), Watching(), agent)
            assert run_study(parts).status is RunStatus.COMPLETE
        assert tables(held, "T") == tables(held, "R")
        assert types_of(held, "R").count("slot_started") == 12
    assert capfd.readouterr() == ("", "")


def test_a_killed_worker(held: Commands) -> None:
    """S31 S19: SIGKILL in the middle of an attempt: begun once, made anew, and the journal tells."""
    held.plan(edits=sleeping(1.5))
    started = held.start("--cluster", "local:2")
    assert wait_until(lambda: len(held.kept("started")) == 2)
    held.workers()[0].kill()
    out, err = started.communicate(timeout=60)
    assert started.returncode == 0, err
    assert "run_status=complete" in out
    assert "attempts=5" in out
    assert len(held.kept("started")) == 5
    assert held.kept("done") == []
    rows = [json.loads(line) for line in (held.folder / "R/journal/000001.jsonl").read_bytes().splitlines()]
    lost = next(row for row in rows if row["type"] == "worker_lost")["body"]["slots"]
    again = [
        row["body"]["slot"] for row in rows if row["type"] == "slot_started" and row["body"]["attempt"] == 2
    ]
    assert (len(lost), lost) == (1, again)
    assert "Traceback" not in err
    assert "distributed" not in err
    assert held.processes() == []


def test_a_killed_runner(held: Commands) -> None:
    """S23 S31: SIGKILL: no worker survives it, and the same line goes on."""
    held.plan(edits=sleeping(1.0))
    started = held.start("--cluster", "local:2")
    assert wait_until(lambda: len(held.kept("started")) == 2)
    started.send_signal(signal.SIGKILL)
    started.communicate(timeout=20)
    assert wait_until(lambda: held.processes() == [], 10)
    code, out, err = held.run("--cluster", "local:2")
    assert (code, "run_status=complete" in out) == (0, True), err
    assert held.processes() == []


def test_ctrl_c_twice(held: Commands) -> None:
    """S25 S31: as a terminal does it, to the whole group: once nothing, twice all agents end."""
    held.plan(edits=sleeping(30))
    started = held.start("--cluster", "local:2")
    assert wait_until(lambda: len(held.kept("started")) == 2)
    os.killpg(started.pid, signal.SIGINT)
    time.sleep(1)
    assert started.poll() is None
    assert len(held.workers()) == 2
    os.killpg(started.pid, signal.SIGINT)
    out, err = started.communicate(timeout=25)
    assert started.returncode == 130, err
    assert "run_status=drained" in out
    assert "Traceback" not in err
    assert (held.folder / "R/journal/000001.jsonl").read_text().count('"detail":"stopped"') == 2
    assert held.processes() == []


PRY = """
import asyncio, sys, urllib.request
from distributed.core import connect
from distributed.security import Security

async def heard(address, security):
    comm = await connect(address, timeout=1, **security.get_connection_args("client"))
    await comm.write({"op": "identity", "reply": True})
    return await comm.read()

def tried(about, call):
    try:
        print("HEARD", about, call())
    except Exception as error:
        print("refused", about, type(error).__name__)

for port in sys.argv[1:]:
    for scheme, security in (("tcp", Security()), ("tls", Security.temporary())):
        call = heard(f"{scheme}://127.0.0.1:{port}", security)
        tried(scheme, lambda: asyncio.run(asyncio.wait_for(call, 3)))
    for path in ("/", "/json/counts.json", "/info/main/workers.html", "/metrics", "/health"):
        place = f"http://127.0.0.1:{port}{path}"
        tried(path, lambda: urllib.request.urlopen(place, timeout=1).read())
"""
"""What anybody on this machine can try, an agent in its sandbox included: it has the network."""


def test_nobody_else_is_heard(held: Commands) -> None:
    """S13 S33: who is on loopback without this run's key reaches neither scheduler nor workers."""
    held.plan(edits=sleeping(60))
    started = held.start("--cluster", "local:2")
    assert wait_until(lambda: len(held.kept("started")) == 2)
    listening = {
        str(each.laddr.port)
        for process in held.processes()
        for each in process.net_connections()
        if each.status == psutil.CONN_LISTEN and each.laddr.ip == "127.0.0.1"
    }
    assert len(listening) >= 4
    words = [sys.executable, "-c", PRY, *sorted(listening)]
    tried = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603 - ours
    assert "HEARD" not in tried.stdout, tried.stdout
    assert tried.stdout.count("refused") == 7 * len(listening), tried.stderr
    assert started.poll() is None
    held.end()
    started.communicate(timeout=20)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def test_a_killed_scheduler(held: Commands) -> None:
    """S31 S23: the run is blocked by name, exit 1; another scheduler, and the same line goes on."""
    held.plan(edits=sleeping(1.5))
    port = free_port()
    line = ("--cluster", f"tcp://127.0.0.1:{port}")
    with scheduler(held, port, 2) as process:
        started = held.start(*line)
        assert wait_until(lambda: len(held.kept("started")) == 2)
        process.kill()
        out, err = started.communicate(timeout=30)
        assert started.returncode == 1, err
        assert "run_status=blocked" in out
        assert "cluster_lost" in err
        assert "Traceback" not in err
        assert "distributed" not in err
    with scheduler(held, port, 1):
        code, out, err = held.run(*line)
    assert (code, "run_status=complete" in out) == (0, True), err


def test_nobody_answers(held: Commands) -> None:
    """S33: a scheduler that is not there is refused in bounded time, in one sentence."""
    held.plan(edits=ONE)
    code, out, err = held.run("--cluster", f"tcp://127.0.0.1:{free_port()}", seconds=40)
    assert (code, out) == (2, "")
    assert "cluster_unreachable" in err or "nobody answers" in err
    assert "Traceback" not in err
    assert "distributed" not in err


def test_no_certificates(held: Commands) -> None:
    """S33: an encrypted connection without any is refused before anything is connected."""
    held.plan(edits=ONE)
    code, out, err = held.run("--cluster", "tls://127.0.0.1:8786", seconds=40)
    assert (code, out) == (2, "")
    assert "certificates" in err


def raising(_order: bytes, _given: object, _digest: str) -> object:
    raise LookupError("of a worker that is another program")


def test_a_worker_that_raises(tmp_path: Path) -> None:
    """S31: what it raises ends no run; it is an answer like any other that is none."""
    here = read_cluster("local:1", plain=False)
    with dask_link(here, scratch=str(tmp_path), agent=None, carry_out=raising) as link:
        assert wait_until(link.workers)
        (address,) = link.workers()
        ticket = link.send(address, b"{}", [], "sha256:" + "0" * 64)
        assert ticket.answer(10) == ("failed", b"worker_raised")


@pytest.mark.parametrize("given", [[b"input"], []])
def test_a_worker_that_nobody_knows_any_more(tmp_path: Path, given: list[bytes]) -> None:
    """S31: it has gone, whatever the scheduler makes of its address; no order to it is begun."""
    here = read_cluster("local:1", plain=False)
    with dask_link(here, scratch=str(tmp_path), agent=None, carry_out=raising) as link:
        assert wait_until(link.workers)
        nobody = next(iter(link.workers())).rpartition(":")[0] + ":1"
        assert link.ask([nobody], raising, b"", [], "") == {}
        ticket = link.send(nobody, b"", given, "")
        if given:
            with pytest.raises(WorkerGoneError):
                ticket.answer(20)
        else:
            # A pinned order waits for ever, as Dask has it: whoever watches the workers drops it.
            with pytest.raises(TimeoutError):
                ticket.answer(0.5)
            ticket.drop()


def test_an_encrypted_cluster(held: Commands) -> None:
    """S33 S30: with certificates of one authority it works; another authority's are not heard."""
    held.plan(edits=ONE)
    port = free_port()
    line = ("--cluster", f"tls://127.0.0.1:{port}")
    own, plain = certificates(held.folder, "own"), dict(held.environ)
    held.environ = plain | own
    with scheduler(held, port, 2, "tls"):
        held.environ = plain | certificates(held.folder, "other")
        code, out, err = held.run(*line)
        assert (code, out) == (2, ""), err
        assert "nobody answers" in err
        assert "Traceback" not in err
        held.environ = plain | own
        code, out, err = held.run(*line)
        assert (code, "run_status=complete" in out) == (0, True), err


def test_a_worker_that_stands_still(held: Commands) -> None:
    """S31 S25: SIGSTOP: the scheduler gives it up after its own time, and the attempt is made anew."""
    held.plan(edits=sleeping(1.5))
    held.environ["DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL"] = "3s"
    started = held.start("--cluster", "local:2")
    assert wait_until(lambda: len(held.kept("started")) == 2)
    still = held.workers()[0]
    still.send_signal(signal.SIGSTOP)
    out, err = started.communicate(timeout=80)
    assert (started.returncode, "run_status=complete" in out) == (0, True), err
    assert "Traceback" not in err
    rows = (held.folder / "R/journal/000001.jsonl").read_text()
    assert rows.count('"type":"worker_lost"') == 1
    assert held.processes() == []
