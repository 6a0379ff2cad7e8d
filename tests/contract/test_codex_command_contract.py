"""A real program through the adapter for programs without one: the prompt an argument, the answer a file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.execution import Sandbox
from skill_effectiveness.providers import (
    UNKNOWN_USAGE,
    CommandProvider,
    CommandSettings,
    Ending,
    ReadCall,
    SandboxKind,
    WorkCall,
)
from tests.support.codex_shim import custom_provider, write_shim
from tests.support.leavings import nothing_left
from tests.support.model_server import Refused
from tests.support.provider_calls import surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.model_server import ModelServer, Scenario
    from tests.support.model_wire import Asked, Reply, Wire

pytestmark = pytest.mark.realcli

WORDS = (
    "exec",
    "--skip-git-repo-check",
    "--sandbox",
    "danger-full-access",
    "--model",
    "fake-model",
    "{{prompt}}",
)


@dataclass(frozen=True)
class Writes:
    """A model that has a command write the answer file that the prompt names, and tries a file beside it."""

    answer_text: str

    def answer(self, wire: Wire, asked: Asked) -> Reply:
        if asked.tool_results:
            return wire.text(asked.model, "A verdict in words, which nobody reads.")
        file = re.search(r"to the file (\S+?)[.,] ", asked.prompt)
        assert file is not None
        return wire.tool_call(asked.model, f"printf {self.answer_text} > {file[1]}; touch touched; true")


class Place:
    """The real program with a home in which it may keep its own things."""

    def __init__(self, program: Path, server: ModelServer, tmp_path: Path) -> None:
        self.program = program
        self.server = server
        self.tmp_path = tmp_path
        self.home = tmp_path / "home"
        (self.home / ".codex").mkdir(parents=True)
        self.folder = tmp_path / "folder"
        self.folder.mkdir()
        self.around = surroundings(tmp_path, HOME=str(self.home), CODEX_API_KEY="key-canary")

    def provider(self, name: str, scenario: Scenario) -> CommandProvider:
        shim = write_shim(
            self.tmp_path / name, self.program, custom_provider(self.server.play(name, scenario))
        )
        settings = CommandSettings(WORDS, keys=("CODEX_API_KEY",), writable=(self.home / ".codex",))
        return CommandProvider.configured(shim, settings, around=self.around)


@pytest.fixture
def place(codex_program: Path, model_server: ModelServer, tmp_path: Path) -> Iterator[Place]:
    found = Place(codex_program, model_server, tmp_path)
    yield found
    nothing_left(found.around)


def test_a_worker_answers_by_its_file(place: Place) -> None:
    """P14 P13: what it prints is kept and decides nothing; its own things lie in the real home."""
    provider = place.provider("command-work", Writes("written"))
    call = WorkCall("Mend it.", place.folder, "fake-model", 30)
    outcome = provider.work(call, around=place.around)

    assert (outcome.ending, outcome.answer) == (Ending.SUCCESS, "written")
    assert outcome.sandbox is SandboxKind.UNCONFINED
    assert (outcome.session_id, outcome.observed_model, outcome.usage) == (None, None, UNKNOWN_USAGE)
    assert outcome.recording is not None
    assert b"A verdict in words" in outcome.recording.stdout
    assert (place.folder / "touched").exists()
    assert list((place.home / ".codex").iterdir())


def test_a_reader_is_kept_from_writing_by_the_sandbox_alone(place: Place) -> None:
    """P14 P13: the program was told to allow everything."""
    if Sandbox.found(place.around) is None:
        pytest.skip("bubblewrap is not installed, or may not be used here")
    provider = place.provider("command-read", Writes("read"))
    call = ReadCall("Look at it.", place.folder, "fake-model", 30)
    outcome = provider.read(call, around=place.around)

    assert (outcome.ending, outcome.answer) == (Ending.SUCCESS, "read")
    assert outcome.sandbox is SandboxKind.BUBBLEWRAP
    assert not (place.folder / "touched").exists()


def test_trouble_is_a_bad_end_and_no_more(place: Place) -> None:
    """P14 P6: nothing is read out of its words."""
    provider = place.provider(
        "command-refused", Refused(401, "invalid_api_key", "Incorrect API key provided")
    )
    outcome = provider.work(WorkCall("Mend it.", place.folder, "fake-model", 30), around=place.around)

    assert (outcome.ending, outcome.error_kind, outcome.exit_code) == (Ending.STREAM_INVALID, None, 1)
