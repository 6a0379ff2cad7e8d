"""The example, as a person runs it, with programs of these names that are fakes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.private import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.loops import LoopRepository

EXAMPLE = REPOSITORY / "examples" / "review_loop.py"


def fake(repository: LoopRepository, programs: Path, name: str, body: str) -> None:
    python, script, _ = repository.agent(name, body)
    place = programs / name
    place.write_text(f'#!/bin/sh\nexec "{python}" "{script}" "$@"\n')
    place.chmod(0o755)


def ran(repository: LoopRepository, programs: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environ = repository.variables() | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY / "eval"),
    }
    return subprocess.run(  # noqa: S603 - words of the test
        [sys.executable, str(EXAMPLE), *words],
        cwd=repository.root, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_the_review_loop(repository: LoopRepository, tmp_path: Path) -> None:
    """L39 L45: the task is the argument; 0 once the verdict passes, and only on a clean tree."""
    programs = tmp_path / "programs"
    programs.mkdir()
    fake(repository, programs, "codex", "pathlib.Path('value').write_text(str(call))\n")
    fake(repository, programs, "claude", "verdict('pass' if call == 2 else 'fail')\n")
    assert ran(repository, programs).returncode == 2
    done = ran(repository, programs, "Count to two.")
    assert done.returncode == 0, done.stderr
    assert "passed after 2 attempts" in done.stderr
    assert (repository.root / "value").read_text() == "2"
    assert "Count to two." in repository.prompt("claude")
    again = ran(repository, programs, "Again.")
    assert (again.returncode, again.stderr) == (
        2,
        "git working tree is dirty; commit or stash changes first\n",
    )
