"""The loop's own time for an attempt against the same git commands run bare (loop.md, section 14).

One job in a repository of 40,000 files: a worker that changes a file, one check, no reviewer; `limitCycle` is
off and `cleanChecks` false. An attempt is the time from the end of the one before to its own, the time of
agent and check taken off as measured by the run. The rival runs the git commands that an attempt ran, as they
were recorded, with `subprocess` and no more, over the same worktree.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.harness import Figure, report
from skill_effectiveness.acceptance.loop.config import read_config
from skill_effectiveness.acceptance.loop.runner import run_jobs
from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.execution import git as git_room

FILES = 40_000
GOAL = 3
ATTEMPTS = 6
WORKER = "import os, pathlib; pathlib.Path('changed').write_text(os.urandom(8).hex())"

Command = tuple[list[str], dict[str, str], Path]


def prepare(top: Path) -> None:
    """A repository with one commit."""
    for number in range(FILES):
        place = top / f"{number // 100:03d}" / f"{number}.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{number}\n")
    who = ["-c", "user.name=n", "-c", "user.email=n@example.invalid"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", "-C", str(top), *words], check=True)  # noqa: S603, S607 - fixed words


def config(top: Path, attempts: int) -> bytes:
    """One job that never passes."""
    return json.dumps(
        {
            "repo": str(top),
            "task": "Change it.",
            "worker": {"command": sys.executable, "args": ["-c", WORKER, "{{prompt}}"]},
            "checks": ["false"],
            "maxAttempts": attempts,
            "limitCycle": "off",
            "cleanChecks": False,
        }
    ).encode()


class Observed:
    """Seconds of each attempt but the first, agents and checks taken off, and the git commands of each."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.commands: list[Command] = []
        self.ended: float | None = None
        self.others = 0.0

    def hear(self, event: dict[str, Any]) -> None:
        if event["type"] in {"worker_exited", "check_result"}:
            self.others += event["seconds"]
        if event["type"] == "attempt_finished":
            now = time.perf_counter()
            if self.ended is not None:
                self.seconds.append(now - self.ended - self.others)
            self.ended, self.others = now, 0.0
            self.commands = self.commands if len(self.seconds) == ATTEMPTS - 1 else []


def observed(top: Path, around: Surroundings) -> Observed:
    """One run of several attempts; its worktree stays for the rival."""
    seen = Observed()
    supervised = git_room.run_process

    def record(argv: Any, **options: Any) -> Any:  # noqa: ANN401 - passed through
        if len(seen.seconds) < ATTEMPTS - 1:
            seen.commands.append(([*argv], dict(options["env"]), options["cwd"]))
        return supervised(argv, **options)

    git_room.run_process = record
    try:
        run_jobs(read_config(config(top, ATTEMPTS)), around=around, keep=True, observer=seen.hear)
    finally:
        git_room.run_process = supervised
    return seen


def bare_seconds(commands: list[Command], index: Path) -> float:
    """Seconds of the same commands, one after another; a file changes first, as a worker's would."""
    tree = commands[0][2]
    (tree / "changed").write_text(os.urandom(8).hex())
    began = time.perf_counter()
    for argv, env, cwd in commands:
        given = env | {"GIT_INDEX_FILE": str(index)} if "GIT_INDEX_FILE" in env else env
        subprocess.run(argv, env=given, cwd=cwd, check=True, capture_output=True)  # noqa: S603 - git, as recorded
    return time.perf_counter() - began


def main() -> int:
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary).resolve()
        top = base / "repo"
        top.mkdir()
        prepare(top)
        around = Surroundings.real()
        around = replace(around, environ={**around.environ, "HOME": str(base), "TMPDIR": str(base)})
        own = observed(top, around)
        index = base / "index"
        bare_seconds(own.commands, index)
        bare = [bare_seconds(own.commands, index) for _ in range(ATTEMPTS)]
    return report(Figure("loop_attempt", min(own.seconds) / min(bare), GOAL))


if __name__ == "__main__":
    sys.exit(main())
