"""What a study says about isolation is kept or refused by name; nothing is left out in silence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.providers import CodexProvider, CommandProvider
from skill_effectiveness.studies.isolation_checks import isolation_faults
from tests.support.fake_program import write_fake
from tests.support.private import surroundings
from tests.support.studies import loaded, write
from tests.support.working_studies import files

if TYPE_CHECKING:
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.providers import Provider

AS_IT_IS = "isolation: {sandbox: none, audit: none, network: provider}"
WORKDIR = 'version = "1.0"\n[environment]\nworkdir = "%s"\n'


class Checking:
    """The study of `working_studies`, on a machine with or without the tools."""

    def __init__(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path
        self.home = tmp_path / "home"
        self.home.mkdir()
        self.bin = tmp_path / "bin"
        self.bin.mkdir()
        self.program = write_fake(tmp_path / "codex", "")

    def with_tools(self, *names: str) -> Surroundings:
        for name in names:
            tool = self.bin / name
            tool.write_text("#!/bin/sh\nexit 0\n")
            tool.chmod(0o755)
        environ = {"HOME": str(self.home), "PATH": str(self.bin)}
        return replace(surroundings(), environ=environ)

    def faults(
        self, isolation: str, *tools: str, provider: Provider | None = None, **more: bytes
    ) -> list[str]:
        held = files(self.program, {AS_IT_IS: f"isolation: {{{isolation}}}"})
        held |= {name.replace("__", "/"): data for name, data in more.items()}
        study = loaded(write(self.tmp_path / "study", held))
        adapter = provider or CodexProvider.at(self.program, around=surroundings())
        return list(isolation_faults(study, adapter, self.with_tools(*tools)))


@pytest.fixture
def checking(tmp_path: Path) -> Checking:
    return Checking(tmp_path)


HELD = "sandbox: bubblewrap, audit: strace, network: provider"
BARE = "sandbox: none, audit: none, network: provider"


def test_what_can_be_kept_is_no_fault(checking: Checking) -> None:
    """S15: everything that is asked for is here; and nothing is asked of a bare machine."""
    assert checking.faults(HELD, "bwrap", "strace") == []
    assert checking.faults(BARE) == []


@pytest.mark.parametrize("isolation", [HELD, "sandbox: none, audit: strace, network: provider"])
def test_a_home_among_the_systems_folders(checking: Checking, isolation: str) -> None:
    """S15 S13: an agent would be shown all of it."""
    checking.home = Path("/usr/lib")
    (fault,) = checking.faults(isolation, "bwrap", "strace")
    assert fault.startswith("/isolation: your home lies in folders of the system")
    assert checking.faults(BARE) == []


@pytest.mark.parametrize(
    ("isolation", "tools", "told"),
    [
        (HELD, ("strace",), "/isolation/sandbox: bubblewrap is not here"),
        (HELD, ("bwrap",), "/isolation/audit: strace is not here"),
        ("sandbox: none, audit: none, network: none", (), "/isolation/network: a real agent"),
        (f"{BARE}, read_only: [/usr]", (), "/isolation/read_only: without a sandbox and an audit"),
        (
            f"{HELD}, read_only: [/not/there]",
            ("bwrap", "strace"),
            "/isolation/read_only/0: this is not there",
        ),
        (f"{HELD}, read_only: [/.]", ("bwrap", "strace"), "/isolation/read_only/0: this is everything"),
    ],
)
def test_what_cannot_be_kept(checking: Checking, isolation: str, tools: tuple[str, ...], told: str) -> None:
    """S15: one fault, by its place; never less in silence."""
    found = checking.faults(isolation, *tools)
    assert len(found) == 1
    assert found[0].startswith(told)


@pytest.mark.parametrize("name", ["study", "study/tasks", "study/tasks/task-1/tests", ""])
def test_places_that_no_agent_may_see(checking: Checking, name: str) -> None:
    """S13 S15: the study, its tests, what holds them; and a whole home."""
    (found,) = checking.faults(f"{HELD}, read_only: [{checking.tmp_path / name}]", "bwrap", "strace")
    assert found.startswith("/isolation/read_only/0: this ")


def test_a_link_to_the_tests_is_no_way_around(checking: Checking) -> None:
    """S13 S15: what it leads to counts."""
    link = checking.tmp_path / "link"
    link.symlink_to(checking.tmp_path / "study" / "tasks")
    (found,) = checking.faults(f"{HELD}, read_only: [{link}]", "bwrap", "strace")
    assert "no agent may see" in found


def test_an_agent_in_the_users_home(checking: Checking) -> None:
    """S15: a program without an adapter cannot be confined, and says so."""
    at_home = object.__new__(CommandProvider)
    (found,) = checking.faults(HELD, "bwrap", "strace", provider=at_home)
    assert found.startswith("/isolation/sandbox: command runs in the user's own home")


@pytest.mark.parametrize(
    ("isolation", "workdir", "told"),
    [
        (BARE, "/srv/task", "only a sandbox has the working copy there"),
        (HELD, "/opt/task", "the system's own folders"),
        (HELD, "/run/task", "the system's own folders"),
        (HELD, "/srv/task", None),
        (BARE, "/app", None),
    ],
)
def test_where_the_working_copy_lies(
    checking: Checking, isolation: str, workdir: str, told: str | None
) -> None:
    """S15: at the task's place, or the study is refused."""
    more: dict[str, Any] = {"tasks__task-1__task.toml": (WORKDIR % workdir).encode()}
    found = checking.faults(isolation, "bwrap", "strace", **more)
    assert len(found) == (told is not None)
    assert all(str(told) in one and one.startswith("task task-1: environment.workdir") for one in found)


def test_variables_of_a_task(checking: Checking) -> None:
    """S15: each name that is not the task's to set."""
    toml = b'version = "1.0"\n[environment]\nenv = {PATH = "x", WORD = "x", CODEX_HOME = "x"}\n'
    more: dict[str, Any] = {"tasks__task-1__task.toml": toml}
    found = checking.faults(BARE, **more)
    assert [one.split(" is ")[0] for one in found] == [
        "task task-1: environment.env: CODEX_HOME",
        "task task-1: environment.env: PATH",
    ]
