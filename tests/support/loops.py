"""Repositories, fake agents and configurations for the tests of the loop."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skill_effectiveness.acceptance.loop.config import read_config
from skill_effectiveness.acceptance.loop.runner import run_jobs
from skill_effectiveness.execution import Ended, ProcessResult
from tests.support.repositories import PlainRepository

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from skill_effectiveness.acceptance.loop.summary import RunSummary

PREAMBLE = """\
import json, os, pathlib, re, signal, subprocess, sys, time
prompt = sys.argv[-1]
base = pathlib.Path({base!r})
inputs = pathlib.Path(re.search("inputs from this folder: (.*)", prompt)[1])
out = pathlib.Path(re.search("artifact into this folder, .*: (.*)", prompt)[1])
calls = base / ({name!r} + ".calls")
call = (int(calls.read_text()) if calls.exists() else 0) + 1
calls.write_text(str(call))
(base / f"{name}.prompt.{{call}}").write_text(prompt)
def verdict(word="pass", **members):
    (out / "verdict.json").write_text(json.dumps({{"verdict": word, **members}}))
"""


@dataclass
class LoopRepository(PlainRepository):
    """A repository with fake agents beside it."""

    seen: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.commit(value="v\n", **{".gitignore": "ignored\n"})

    @property
    def runs(self) -> Path:
        return self.root / ".git" / "closedloop" / "runs"

    def agent(self, name: str, body: str) -> list[str]:
        """A fake agent; its command and arguments. `call` counts its calls, `out` is its output folder."""
        place = self.base / f"{name}.py"
        place.write_text(PREAMBLE.format(base=str(self.base), name=name) + body)
        return [sys.executable, str(place), "{{prompt}}"]

    def keys(self, name: str, body: str) -> dict[str, Any]:
        """The same for a configuration."""
        command, *args = self.agent(name, body)
        return {"command": command, "args": args}

    def job(
        self,
        worker: str | dict[str, Any] = "",
        reviewer: str | None = None,
        **keys: Any,  # noqa: ANN401 - any JSON
    ) -> dict[str, Any]:
        """A job whose agents have these bodies."""
        name = keys.get("name", "job")
        made: dict[str, Any] = {"name": name, "task": "Do it.", "worker": worker}
        if isinstance(worker, str):
            made["worker"] = self.keys(f"{name}-worker", worker)
        if reviewer is not None:
            made["reviewer"] = self.keys(f"{name}-reviewer", reviewer)
        return made | keys

    def config(self, *jobs: dict[str, Any]) -> bytes:
        return json.dumps({"repo": str(self.root), "jobs": list(jobs)}).encode()

    def run(self, *jobs: dict[str, Any], keep: bool = False, path: Path | None = None) -> RunSummary:
        """Run jobs; the events are in `seen`."""
        self.seen.clear()
        configuration = read_config(self.config(*jobs), path)
        return run_jobs(configuration, around=self.around, keep=keep, observer=self.seen.append)

    def types(self) -> list[str]:
        return [event["type"] for event in self.seen]

    def of(self, *types: str) -> list[dict[str, Any]]:
        return [event for event in self.seen if event["type"] in types]

    def prompt(self, name: str, call: int = 1) -> str:
        return (self.base / f"{name}.prompt.{call}").read_text()

    def calls(self, name: str) -> int:
        place = self.base / f"{name}.calls"
        return int(place.read_text()) if place.exists() else 0

    def state(self) -> dict[str, Any]:
        """Everything about the user's side that a run with isolated jobs must leave alone."""
        index = (self.root / ".git" / "index").read_bytes()
        return {
            "head": (self.root / ".git" / "HEAD").read_bytes(),
            "index": index,
            "branches": self.git("for-each-ref", "refs/heads", "refs/tags", "refs/remotes"),
            "files": content_of(self.root, skip=(".git",)),
        }


def bare_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: dict[str, str],
    stdin: bytes,
    on_line: Callable[[bytes], bool],
    **_others: object,
) -> ProcessResult:
    """A program run without the supervisor of the product."""
    done = subprocess.run(  # noqa: S603 - the words of the product
        list(argv),
        cwd=cwd,
        env=env | {"SKILL_EFFECTIVENESS_CALL": "0"},
        input=stdin,
        capture_output=True,
        check=False,
    )
    *lines, last = done.stdout.split(b"\n")
    for line in lines:
        on_line(line)
    code = done.returncode
    return ProcessResult(
        Ended.EXITED,
        exit_code=code if code >= 0 else None,
        signal=None if code >= 0 else -code,
        stderr=done.stderr,
        unterminated=last,
    )


def content_of(folder: Path, skip: Sequence[str] = ()) -> dict[str, tuple[int, bytes]]:
    """Mode and bytes of every file below a folder."""
    found = {}
    for top, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in skip]
        for name in files:
            place = os.path.join(top, name)  # noqa: PTH118 - os.walk gives text
            status = os.lstat(place)
            with open(place, "rb") as file:  # noqa: PTH123 - as above
                found[os.path.relpath(place, folder)] = (status.st_mode, file.read())
    return found
