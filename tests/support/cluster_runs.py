"""Runs on real workers: commands in processes of their own, schedulers, and what they leave behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psutil
from distributed.security import Security

from skill_effectiveness.studies.runtime import runtime_manifest_hash
from tests.support.private import REPOSITORY, surroundings
from tests.support.studies import bench, example

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from skill_effectiveness.studies.plan import StudyPlan

SETTINGS = "    effect: 0.4\n"


class Commands:
    """A planned study in R and commands on it; every process of theirs carries this place in its environment.

    Attributes:
        folder: of everything.
        environ: of the commands.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "XDG_STATE_HOME": str(folder),
            "PYTHONPATH": f"{REPOSITORY / 'eval'}:{REPOSITORY}",
            "CLUSTER_TEST": str(folder),
        }

    def plan(self, study: Path | None = None, edits: Mapping[str, str] | None = None) -> StudyPlan:
        """Plan a study, the example unless another is given."""
        with bench(self.folder, surroundings(environ=self.environ)) as held:
            plan = held.plan(study or example(self.folder, edits=edits), manifest=runtime_manifest_hash)
        (self.folder / "state").rename(self.folder / "skill-effectiveness")
        return plan

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A command that goes on; its group is its own."""
        return subprocess.Popen(  # noqa: S603 - our own command line
            [sys.executable, str(REPOSITORY / "run.py"), "study", "run", str(self.folder / "R"), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environ,
            start_new_session=True,
        )

    def run(self, *words: str, seconds: float = 60) -> tuple[int, str, str]:
        """A command from start to end."""
        started = self.start(*words)
        out, err = started.communicate(timeout=seconds)
        return started.returncode, out, err

    def processes(self) -> list[psutil.Process]:
        """Every process that was started here, by its environment."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("CLUSTER_TEST") == str(self.folder):
                    found.append(process)
            except psutil.Error:
                continue
        return [process for process in found if process.status() != psutil.STATUS_ZOMBIE]

    def workers(self) -> list[psutil.Process]:
        """Worker processes that a command started."""
        return [each for each in self.processes() if "spawn_main" in " ".join(each.cmdline())]

    def kept(self, kind: str) -> list[Path]:
        """What workers keep of the study: `started` or `done`."""
        return list((self.folder / "skill-effectiveness/workers").glob(f"root-*/{kind}/*"))

    def end(self) -> None:
        """End whatever is left."""
        for process in self.processes():
            process.kill()


def wait_until(told: Callable[[], object], seconds: float = 30.0) -> bool:
    """Whether something becomes true in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if told():
            return True
        time.sleep(0.05)
    return False


@contextmanager
def commands(folder: Path) -> Iterator[Commands]:
    """Commands in a folder; nothing of them outlives the block."""
    held = Commands(folder)
    try:
        yield held
    finally:
        held.end()


def certificates(folder: Path, name: str) -> dict[str, str]:
    """An authority with one key for everybody, as variables that configure all ends of a Dask cluster."""
    made = Security.temporary()  # type: ignore[no-untyped-call]
    place = folder / name
    place.mkdir(mode=0o700)
    (place / "cert.pem").write_text(made.tls_ca_file)
    (place / "key.pem").write_text(made.tls_client_key)
    tls = "DASK_DISTRIBUTED__COMM__TLS__"
    told = {f"{tls}CA_FILE": str(place / "cert.pem"), "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True"}
    for role in ("CLIENT", "SCHEDULER", "WORKER"):
        told |= {f"{tls}{role}__CERT": str(place / "cert.pem"), f"{tls}{role}__KEY": str(place / "key.pem")}
    return told


@contextmanager
def scheduler(
    held: Commands, port: int, workers: int, scheme: str = "tcp"
) -> Iterator[subprocess.Popen[bytes]]:
    """A scheduler and its workers as a person would start them, on loopback."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    own = ["--host", "127.0.0.1", "--no-dashboard"]
    python = [sys.executable, "-m"]
    address = f"{scheme}://127.0.0.1:{port}"
    own += [] if scheme == "tcp" else ["--protocol", scheme]
    started = [
        subprocess.Popen(  # noqa: S603 - Dask's own command line
            [
                *python,
                "distributed.cli.dask_scheduler",
                *own,
                "--port",
                str(port),
                "--dashboard-address",
                "127.0.0.1:0",
            ],
            env=held.environ,
            cwd=held.folder,
            **quiet,  # type: ignore[call-overload]
        )
    ]
    started += [
        subprocess.Popen(  # noqa: S603 - likewise
            [*python, "distributed.cli.dask_worker", address, *own, "--nthreads", "1", "--no-nanny"],
            env=held.environ,
            cwd=held.folder,
            **quiet,  # type: ignore[call-overload]
        )
        for _ in range(workers)
    ]
    try:
        yield started[0]
    finally:
        for process in reversed(started):
            process.send_signal(signal.SIGTERM)
        for process in started:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
