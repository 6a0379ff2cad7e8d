"""One command: no shell, a bounded log, and nothing of it left afterwards."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import psutil
import pytest

from skill_effectiveness.acceptance.closeout.command import CommandRun, run_command, signal_name
from skill_effectiveness.acceptance.closeout.errors import CloseoutCode, CloseoutError
from skill_effectiveness.acceptance.closeout.policy_models import ResolvedCommand
from skill_effectiveness.acceptance.closeout.site import candidate_worktree
from skill_effectiveness.execution.git import Git
from skill_effectiveness.execution.programs import find_program
from skill_effectiveness.execution.worktree import DetachedWorktree

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.closeout import Repository


def carried_out(repository: Repository, *argv: str, seconds: int = 20) -> CommandRun:
    commit = repository.commit(value="v")
    around = repository.around
    with DetachedWorktree(Git(repository.root, around), commit, around) as worktree:
        return run_command(ResolvedCommand("check", "beforePR", argv, seconds), worktree, around)


def alive(path: Path) -> list[int]:
    """Processes that were told this path."""
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if any(str(path) in word for word in process.info["cmdline"] or [])
    ]


def test_words_are_words(repository: Repository) -> None:
    """C43: no shell reads them."""
    words = [
        "$(touch x)",
        "`touch y`",
        "; touch z",
        "&& false",
        "| cat",
        "> out",
        "*",
        "'",
        '"',
        "\\",
        "$HOME",
        "a\nb",
        "",
    ]
    ran = carried_out(repository, "/usr/bin/env", "printf", "%s|", *words)
    assert ran.execution.exitCode == 0
    assert ran.execution.argv == ("/usr/bin/env", "printf", "%s|", *words)
    assert ran.log == b"STDOUT\n" + "".join(f"{word}|" for word in words).encode() + b"\nSTDERR\n"
    assert not ran.execution.dirty


def test_stdin_is_empty(repository: Repository) -> None:
    """C43: nobody answers a question."""
    assert carried_out(repository, "cat").log == b"STDOUT\n\nSTDERR\n"


@pytest.mark.parametrize("size", [262_144, 262_145, 3_000_000])
def test_output_is_cut_and_flagged(repository: Repository, size: int) -> None:
    """C44: each stream on its own, without a line end; what is more is drained, so that the command ends."""
    text = f"head -c {size} /dev/zero | tr '\\0' a; head -c {size} /dev/zero | tr '\\0' b >&2"
    ran = carried_out(repository, "sh", "-c", text)
    kept = min(size, 262_144)
    assert ran.log == b"STDOUT\n" + b"a" * kept + b"\nSTDERR\n" + b"b" * kept
    assert ran.execution.truncated is (size > kept)
    assert ran.execution.exitCode == 0


def test_many_lines_are_cut_at_the_same_place(repository: Repository) -> None:
    """C44: bytes count, not lines."""
    ran = carried_out(repository, "sh", "-c", "yes | head -n 400000")
    assert ran.log == b"STDOUT\n" + b"y\n" * 131_072 + b"\nSTDERR\n"
    assert ran.execution.truncated


def test_a_timeout_kills_the_whole_group(repository: Repository) -> None:
    """C40: children, grandchildren in sessions of their own, and those that ignore TERM."""
    mark = repository.base / "mark"
    text = f"trap '' TERM; setsid sh -c 'sleep 60; : {mark}' & sh -c 'sleep 60; : {mark}'"
    began = time.monotonic()
    ran = carried_out(repository, "sh", "-c", text, seconds=1)
    assert time.monotonic() - began < 15
    assert ran.execution.timedOut
    assert ran.execution.exitCode is None
    assert ran.execution.signal == ""
    assert ran.execution.durationMs >= 1000
    assert alive(mark) == []


def test_a_grandchild_that_keeps_a_pipe_open(repository: Repository) -> None:
    """C55: after a normal exit it is killed, and delays nothing beyond the drain bound."""
    mark = repository.base / "mark"
    began = time.monotonic()
    ran = carried_out(repository, "sh", "-c", f"echo said; setsid sh -c 'sleep 60; : {mark}' & exit 0")
    assert time.monotonic() - began < 10
    assert ran.execution.exitCode == 0
    assert ran.log.startswith(b"STDOUT\nsaid\n")
    assert alive(mark) == []


def test_a_signal_death_is_named(repository: Repository) -> None:
    """C53: by its name, or by its number where it has none."""
    assert carried_out(repository, "sh", "-c", "kill -KILL $$").execution.signal == "SIGKILL"
    assert carried_out(repository, "sh", "-c", "kill -40 $$").execution.signal == "SIG40"
    assert signal_name(11) == "SIGSEGV"


@pytest.mark.parametrize("program", ["no-such-program", "./value", "/nowhere/x", "value", "", "."])
def test_a_program_that_cannot_start(repository: Repository, program: str) -> None:
    """C25: missing, not executable, a folder."""
    ran = carried_out(repository, program, "x")
    assert ran.execution.exitCode is None
    assert not ran.execution.timedOut
    assert ran.log == b"STDOUT\n\nSTDERR\n"


def test_a_program_of_the_repository(repository: Repository) -> None:
    """C29: a path with a slash starts at the worktree."""
    repository.write("bin/check", "#!/bin/sh\npwd\n")
    (repository.root / "bin/check").chmod(0o755)
    ran = carried_out(repository, "bin/check")
    assert ran.execution.exitCode == 0
    assert b"skill-effectiveness-" in ran.log


def test_names_are_looked_up_in_path(repository: Repository) -> None:
    """C25: the first executable file of the name; relative entries start at the working folder."""
    for folder in ("one", "two"):
        repository.write(f"{folder}/tool", "#!/bin/sh\n")
    (repository.root / "two/tool").chmod(0o755)
    repository.environ = {"PATH": "one:two:/usr/bin"}
    around = repository.around
    assert find_program("tool", repository.root, around) == repository.root / "two/tool"
    assert find_program("a\0b", repository.root, around) is None


class TestWorktrees:
    def test_one_that_cannot_be_made(self, repository: Repository) -> None:
        """C41: a code of its own, and nothing of it stays."""
        commit = repository.commit(value="v")
        around = repository.around
        for wanted, change in (("0" * 40, None), (commit, (repository.temporary, 0o777))):
            if change:
                change[0].chmod(change[1])
            made = candidate_worktree(Git(repository.root, around), wanted, around)
            with pytest.raises(CloseoutError) as caught:
                made.__enter__()
            assert caught.value.code is CloseoutCode.WORKTREE_UNAVAILABLE
            assert caught.value.message == "could not create a worktree at the candidate commit"
        assert list(repository.temporary.iterdir()) == []
        assert len(repository.git("worktree", "list").splitlines()) == 1
