"""The tutorial: every command of `docs/does-my-skill-help.md`, as it stands there and in its order."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.private import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

PAGE = REPOSITORY / "docs" / "does-my-skill-help.md"
EXITS = {"quick": 3}
"""Where a command of the page does not end with 0: no licensed reviewer was asked."""


def commands() -> list[list[str]]:
    """The lines of the page that begin with a prompt."""
    text = PAGE.read_text(encoding="utf-8")
    return [shlex.split(line) for line in re.findall(r"^\$ run\.py (.*)$", text, re.MULTILINE)]


def test_every_command_does_what_the_page_says(tmp_path: Path) -> None:
    """S1 S5: from an example to a bundle that verifies."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    given = commands()
    assert [words[:2] for words in given] == [
        ["study", "init"], ["study", "check"], ["providers", "doctor"], ["study", "quick"],
        ["study", "seal"], ["keys", "export"], ["verify", "sealed"],
    ]  # fmt: skip
    for words in given:
        done = subprocess.run(  # noqa: S603 - our own door
            [sys.executable, str(REPOSITORY / "run.py"), *words],
            cwd=tmp_path,
            env={"HOME": str(home), "PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        expected = EXITS.get(words[1], 0) if words[0] == "study" else 0
        assert done.returncode == expected, (words, done.stderr)
    assert "verify_status=pass" in done.stdout
    assert (tmp_path / "answer" / "report" / "report.html").is_file()
