"""The sentence that names the next command."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from skill_effectiveness.cli.next_step import tell_again, tell_checker, tell_next


def test_paths_are_quoted_for_a_shell(capsys: pytest.CaptureFixture[str]) -> None:
    """A path with blanks and quotes is one word of the line again."""
    tell_next("study", "plan", Path("it's mine/a b"), "--out", "R")
    said = capsys.readouterr()
    assert said.out == ""
    assert shlex.split(said.err) == ["Now:", "run.py", "study", "plan", "it's mine/a b", "--out", "R"]


def test_after_something_to_mend(capsys: pytest.CaptureFixture[str]) -> None:
    tell_again("study", "check", "mine")
    assert capsys.readouterr().err == "Now: put right what is named above, then run.py study check mine\n"


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("lab", "Now: run.py keys export lab --out lab.pub, then run.py verify B --pub lab.pub"),
        ("root/keys/lab.key", "Now: run.py verify B --pub root/keys/lab.pub"),
    ],
)
def test_who_checks(capsys: pytest.CaptureFixture[str], key: str, said: str) -> None:
    """A key in the state folder is exported first; beside another lies its public part."""
    tell_checker(key, "verify", "B")
    assert capsys.readouterr().err == f"{said}\n"


@pytest.mark.parametrize(
    ("started", "typed"),
    [
        ("run.py", "run.py"),
        ("../tools of mine/run.py", "'../tools of mine/run.py'"),
        ("/opt/venv/bin/skill-effectiveness", "skill-effectiveness"),
        ("/opt/venv/bin/pytest", "run.py"),
        ("", "run.py"),
    ],
)
def test_the_program_as_it_was_typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], started: str, typed: str
) -> None:
    """A shell hands on the whole path of an installed command; who started neither is told `run.py`."""
    monkeypatch.setattr(sys, "argv", [started])
    tell_next("study", "run", "R")
    assert capsys.readouterr().err == f"Now: {typed} study run R\n"
