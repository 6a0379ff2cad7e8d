"""The loop's own time for an attempt against the same git commands run bare (loop.md, section 14).

One job in a repository of 20,000 files: a worker that changes a file, one check, no reviewer; `limitCycle` is
off and `cleanChecks` false. The time of agent and check is taken off, as measured by the run. What a run costs
once, such as its worktree, cancels out: an attempt is the difference between a run of three and a run of one,
halved. The rival runs the git commands that the attempt ran, recorded once, with `subprocess` and no more.
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

FILES = 20_000
GOAL = 3
ROUNDS = 3
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


def own_seconds(top: Path, attempts: int, around: Surroundings) -> float:
    """Seconds of a run, agents and checks taken off."""
    others: list[float] = []

    def observe(event: dict[str, Any]) -> None:
        if event["type"] in {"worker_exited", "check_result"}:
            others.append(event["seconds"])

    began = time.perf_counter()
    summary = run_jobs(read_config(config(top, attempts)), around=around, observer=observe)
    took = time.perf_counter() - began
    assert (summary.exit, summary.attempts) == (2, attempts)
    return took - sum(others)


def recorded(top: Path, around: Surroundings) -> list[Command]:
    """The git commands of the second of two attempts, made to run in the repository itself."""
    seen: list[tuple[int, Command]] = []
    attempt = [0]
    supervised = git_room.run_process

    def record(argv: Any, **options: Any) -> Any:  # noqa: ANN401 - passed through
        seen.append((attempt[0], ([*argv], dict(options["env"]), options["cwd"])))
        return supervised(argv, **options)

    def observe(event: dict[str, Any]) -> None:
        attempt[0] = event["attempt"] or 0

    git_room.run_process = record
    try:
        run_jobs(read_config(config(top, 2)), around=around, keep=True, observer=observe)
    finally:
        git_room.run_process = supervised
    return [command for number, command in seen if number == 2]


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
        commands = recorded(top, around)
        index = base / "index"
        bare_seconds(commands, index)
        own, bare = [], []
        for _ in range(ROUNDS):
            own.append((own_seconds(top, 3, around) - own_seconds(top, 1, around)) / 2)
            bare.append(bare_seconds(commands, index))
    return report(Figure("loop_attempt", min(own) / min(bare), GOAL))


if __name__ == "__main__":
    sys.exit(main())
