"""`run.py study judge`: exits and result lines."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.cli import door
from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.providers import CallOutcome, Ending
from skill_effectiveness.studies import benches, roster
from tests.support.judged_studies import planned, ready
from tests.support.private import surroundings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.commands import Said

    Command = Callable[..., Said]

KEYS = ["judge_status", "votes", "void", "canaries", "revoked"]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study that was run to its end, with a licence of the tests' time."""
    folder = tmp_path_factory.mktemp("ended")
    with ready(folder):
        return folder / "R"


@pytest.fixture
def study(ended: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it in the home of a command that runs at that time."""
    shutil.copytree(ended, home / "R")
    around = surroundings(environ=os.environ)
    monkeypatch.setattr(Surroundings, "real", lambda: around)
    door.surroundings.cache_clear()
    return home / "R"


def test_every_vote(command: Command, study: Path) -> None:
    """S1: exit 0 with every key, as lines and as JSON; the same line again changes nothing."""
    said = command("study", "judge", "R")
    assert said.code == 0
    assert list(said.values) == KEYS
    assert (said.values["judge_status"], said.values["votes"]) == ("complete", "4")
    assert "4 of 4 votes answered." in said.err
    assert said.err.splitlines()[-1] == "Now: run.py study report R"
    files = {path: path.read_bytes() for path in sorted((study / "votes").iterdir())}
    again = command("study", "judge", "R", "--json")
    assert (again.code, list(again.document)) == (0, sorted(KEYS))
    assert again.document == {
        "judge_status": "complete",
        "votes": 4,
        "void": 0,
        "canaries": int(said.values["canaries"]),
        "revoked": 0,
    }
    assert {path: path.read_bytes() for path in sorted((study / "votes").iterdir())} == files


def test_votes_missing(command: Command, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S1 S2: exit 1, and a sentence says what to do; never exit 3."""
    monkeypatch.setattr(
        benches._Simulated,
        "vote",
        lambda *_: CallOutcome(Ending.UNSTARTABLE),
    )
    said = command("study", "judge", study)
    assert (said.code, said.values["judge_status"]) == (1, "votes_missing")
    assert "Reviewer 0 was not asked to the end (unstartable)." in said.err
    assert "Votes missing: 4." in said.err


def test_pairs_that_are_not_shown(command: Command, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S1 S38: they are counted aloud, and no vote is missing because of them."""
    monkeypatch.setattr(roster, "_payload", lambda _data: "x" * 60_000)
    said = command("study", "judge", study)
    assert (said.code, said.values["votes"]) == (0, "0")
    assert "Pairs too large to be sent, not judged: 2." in said.err


def test_no_live_licence(command: Command, ended: Path, home: Path) -> None:
    """S1 S65: exit 2, the failing part is named, nothing was asked."""
    shutil.copytree(ended, home / "R")
    said = command("study", "judge", "R")
    assert "(expired)" in said.refusal
    assert not (home / "R" / "votes").exists() or list((home / "R" / "votes").iterdir()) == []
    assert command("study", "judge", "R", "--json").document["code"] == "licence_refused"


def test_open_slots(command: Command, home: Path, tmp_path: Path) -> None:
    """S1 S65: exit 2."""
    with planned(tmp_path):
        shutil.copytree(tmp_path / "R", home / "R")
    said = command("study", "judge", "R", "--json")
    assert (said.code, said.document["code"]) == (2, "slots_open")


def test_no_study(command: Command, home: Path) -> None:
    """S1: exit 2."""
    assert command("study", "judge", home / "none").code == 2
