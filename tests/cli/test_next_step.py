"""The sentence that names the next command."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from skill_effectiveness.cli.next_step import tell_again, tell_checker, tell_next


def test_paths_are_quoted_for_a_shell(capsys: pytest.CaptureFixture[str]) -> None:
    """A path with blanks and quotes is one word of the line again."""
    tell_next("study", "plan", Path("it's mine/a b"), "--out", "R")
    said = capsys.readouterr()
    assert said.out == ""
    assert shlex.split(said.err) == ["Now:", "study", "plan", "it's mine/a b", "--out", "R"]


def test_after_something_to_mend(capsys: pytest.CaptureFixture[str]) -> None:
    tell_again("study", "check", "mine")
    assert capsys.readouterr().err == "Now: put right what is named above, then study check mine\n"


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("lab", "Now: keys export lab --out lab.pub, then verify B --pub lab.pub"),
        ("root/keys/lab.key", "Now: verify B --pub root/keys/lab.pub"),
    ],
)
def test_who_checks(capsys: pytest.CaptureFixture[str], key: str, said: str) -> None:
    """A key in the state folder is exported first; beside another lies its public part."""
    tell_checker(key, "verify", "B")
    assert capsys.readouterr().err == f"{said}\n"
