"""Children for tests of processes: small programs, who of them is alive, and a listener that keeps lines."""

from __future__ import annotations

import platform
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

import skill_effectiveness
from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.execution import Limits, ProcessResult, run_process

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 10.0
# For PYTHONPATH: where a process of its own finds the package and these helpers.
IMPORTS = f"{Path(skill_effectiveness.__file__).parents[1]}:{Path(__file__).resolve().parents[2]}"
PATH = {"PATH": "/usr/bin:/bin"}
# The number of exit(2), which ends one thread.
EXIT_CALL = {"x86_64": 60, "aarch64": 93}.get(platform.machine())

# Put before a program's own lines: `note("name")` leaves the pid of the process that calls it.
PREAMBLE = """
import os, sys, time, signal
def note(name, folder=sys.argv[1]):
    path = os.path.join(folder, name)
    with open(path + ".part", "w") as file:
        file.write(str(os.getpid()))
    os.rename(path + ".part", path)
def spawn(work):
    if os.fork() == 0:
        try:
            work()
        finally:
            os._exit(0)
def wait_for(*names, folder=sys.argv[1]):
    while not all(os.path.exists(os.path.join(folder, name)) for name in names):
        time.sleep(0.005)
def say(text):
    os.write(1, text.encode() + b"\\n")
"""


class Lines(list[bytes]):
    """Keeps every line; the terminal marker, a line that equals `marker`, stands until a line `again`."""

    def __init__(self, marker: bytes | None = None) -> None:
        super().__init__()
        self.marker = marker
        self.stands = False

    def __call__(self, line: bytes) -> bool:
        self.append(line)
        self.stands = line == self.marker or (self.stands and line != b"again")
        return self.stands


def python(source: str, *arguments: object) -> list[str]:
    """The argument vector of a bare interpreter that runs a source."""
    return [sys.executable, "-I", "-S", "-c", source, *map(str, arguments)]


def family(source: str, pids: Path) -> list[str]:
    """The same with the preamble; its processes note themselves in the folder `pids`."""
    pids.mkdir(exist_ok=True)
    return python(PREAMBLE + source, pids)


def call(
    argv: list[str],
    *,
    stdin: bytes = b"",
    on_line: Callable[[bytes], bool] | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    env: dict[str, str] | None = None,
    cwd: Path = Path("/"),
    limits: Limits | None = None,
) -> ProcessResult:
    """`run_process` in the real surroundings, with ten seconds and no listener unless told otherwise."""
    return run_process(
        argv,
        cwd=cwd,
        env=PATH if env is None else env,
        stdin=stdin,
        limits=limits or Limits(wall_seconds=PATIENCE),
        on_line=Lines() if on_line is None else on_line,
        cancelled=cancelled,
        around=Surroundings.real(),
    )


def noted(pids: Path, name: str) -> int:
    """The pid that a process noted, once it has."""
    path = pids / name
    assert wait_until(path.exists), f"{name} never came up"
    return int(path.read_text())


def all_noted(pids: Path) -> list[int]:
    """Every pid noted so far."""
    return [int(path.read_text()) for path in sorted(pids.iterdir()) if path.suffix != ".part"]


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def all_dead(pids: Path) -> bool:
    """Whether everything that noted itself is gone, and something had."""
    found = all_noted(pids)
    return bool(found) and not any(alive(pid) for pid in found)


def wait_until(condition: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Whether a condition comes true in time."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True
