"""Whole studies on the real agent command lines: a person's home, small tasks, a model that obeys one skill.

The model is better in one case alone: when its request shows it the skill. A study has to find that, by
rewards that the tasks' own tests give.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support.codex_shim import custom_provider
from tests.support.codex_shim import write_shim as write_codex
from tests.support.kimi import write_configuration
from tests.support.opencode_shim import model_of
from tests.support.opencode_shim import write_shim as write_opencode
from tests.support.private import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.support.model_server import ModelServer
    from tests.support.model_wire import Asked, Reply, Wire

SKILL = "right-words"
MARKER = "home-marker-5f1c"
TASKS, SAMPLES = 6, 3
NONCE = re.compile(r"nonce-[0-9a-f]{32}")
MARK = re.compile(r"mark-[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Worker:
    """A model that does a task rightly where it is shown the skill, and obeys an exposure check.

    Attributes:
        sees_marks: whether it also tells what no agent should have been shown.
        obeys: whether it does what a skill says.
    """

    sees_marks: bool = False
    obeys: bool = True

    def answer(self, wire: Wire, asked: Asked) -> Reply:
        if asked.tool_results:
            return wire.text(asked.model, "done")
        if "exposure check" in asked.everything:
            return _command(wire, asked, self._exposed(asked.everything))
        word = "right" if SKILL in asked.everything else "wrong"
        return _command(wire, asked, f"printf {word} > answer.txt")

    def _exposed(self, shown: str) -> str:
        words = sorted(set(NONCE.findall(shown))) if self.obeys else []
        if self.sees_marks:
            words += ["mark-" + "0" * 32]
        return f"printf '%s\\n' {' '.join(words) or 'none'} > exposure.txt"


def _command(wire: Wire, asked: Asked, command: str) -> Reply:
    """A wish to run a command, by the name that the program gives its tool for that."""
    if "Bash" in asked.tools:
        return wire.named_call(asked.model, "Bash", {"command": command})
    return wire.tool_call(asked.model, command)


@dataclass(frozen=True, slots=True)
class Program:
    """One of the four, as a study names it.

    Attributes:
        provider: its name.
        path: of the program.
        model: that is asked for.
        environ: what it needs.
        shown: what the program that stands in front of the real one needs in a sandbox.
    """

    provider: str
    path: Path
    model: str
    environ: Mapping[str, str] = field(default_factory=dict)
    shown: tuple[Path, ...] = ()


def codex(tmp_path: Path, real: Path, address: str) -> Program:
    shim = write_codex(tmp_path / "codex", real, custom_provider(address))
    return Program("codex", shim, "fake-model", {"CODEX_API_KEY": "key-canary"}, (real,))


def claude(tmp_path: Path, real: Path, address: str) -> Program:
    script = tmp_path / "claude"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(str(real))} "$@"\n')
    script.chmod(0o755)
    environ = {"ANTHROPIC_BASE_URL": address.removesuffix("/v1"), "ANTHROPIC_API_KEY": "key-canary"}
    return Program("claude", script, "claude-sonnet-4-5-20250929", environ, (real,))


def opencode(tmp_path: Path, real: Path, address: str) -> Program:
    shim = write_opencode(tmp_path / "opencode", real, {"loop": address})
    return Program("opencode", shim, model_of("loop"), shown=(real, tmp_path / "opencode.json"))


def kimi(tmp_path: Path, real: Path, address: str) -> Program:
    write_configuration(tmp_path / "home", address)
    return Program("kimi", real, "fake-model")


MAKERS = {"codex": codex, "claude": claude, "opencode": opencode, "kimi": kimi}


def lay_tasks(folder: Path) -> Path:
    """Six small tasks: a word has to stand in a file."""
    for number in range(1, TASKS + 1):
        task = folder / f"task-{number}"
        for part in ("environment", "solution", "tests"):
            (task / part).mkdir(parents=True)
        (task / "task.toml").write_text('schema_version = "1.0"\n[agent]\ntimeout_sec = 60\n')
        (task / "instruction.md").write_text(f"Write the word of task {number} into answer.txt.\n")
        (task / "environment" / "start.txt").write_text(f"{number}\n")
        (task / "solution" / "solve.sh").write_text('printf right > "$TASK_DIR/answer.txt"\n')
        (task / "tests" / "test.sh").write_text(
            'grep -qx right "$TASK_DIR/answer.txt" 2>/dev/null && echo 1 > "$TASK_LOGS/reward.txt" '
            '|| echo 0 > "$TASK_LOGS/reward.txt"\n'
        )
    return folder


def lay_skill(folder: Path, name: str, words: str) -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {words}\n---\n{words}\n")
    return folder / name


class Studying:
    """A user with a home full of things that no agent may see, and the command line."""

    def __init__(self, tmp_path: Path, server: ModelServer) -> None:
        self.tmp_path = tmp_path
        self.server = server
        self.home = tmp_path / "home"
        self.temporary = tmp_path / "temporary"
        self.home.mkdir(exist_ok=True)
        self.temporary.mkdir(mode=0o700)
        for place in (".agents/skills", ".claude/skills", ".codex/skills", ".config/opencode/skills"):
            lay_skill(self.home / place, "marker", MARKER)
        for place in ("AGENTS.md", ".codex/AGENTS.md", ".claude/CLAUDE.md"):
            (self.home / place).write_text(f"{MARKER}\n")
        self.tasks = lay_tasks(tmp_path / "tasks")
        self.skill = lay_skill(tmp_path / "skills", SKILL, "How the words are chosen.")

    def environ(self, program: Program) -> dict[str, str]:
        """The environment of this user's commands."""
        return {
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "PATH": f"{program.path.parent}:/usr/bin:/bin",
            **program.environ,
        }

    def quick(self, program: Program, *words: str) -> tuple[int, dict[str, Any], str]:
        """`study quick`, as a person types it; exit, results and what was said."""
        shown = [word for path in program.shown for word in ("--read-only", str(path))]
        done = subprocess.run(  # noqa: S603 - our own door
            [
                sys.executable, str(REPOSITORY / "run.py"), "study", "quick",
                "--skill", str(self.skill), "--tasks", str(self.tasks),
                "--driver", program.provider, "--executable", str(program.path), "--model", program.model,
                "--out", str(self.tmp_path / "R"), "--samples", str(SAMPLES), "--jobs", "2", "--json",
                *shown, *words,
            ],
            env=self.environ(program),
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
        return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr
