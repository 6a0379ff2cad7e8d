"""What two arms of one study are to a model server: the four real programs differ in the treatment alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.providers import ADAPTERS, Ending, Mount, WorkCall
from skill_effectiveness.providers.driving import tells_tool_calls, tool_calls_of
from skill_effectiveness.providers.events import ToolActivity
from tests.support.provider_calls import left_behind, surroundings
from tests.support.real_studies import MAKERS
from tests.support.request_lines import request_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.providers import CallOutcome, LaunchShape
    from tests.support.model_server import ModelServer, Scenario
    from tests.support.model_wire import Asked, Reply, Wire

pytestmark = pytest.mark.realcli

PROMPT = "Do the task."
TREATMENT = {
    "codex": [
        "<skills_instructions>", "## Skills", "A skill is a set of local instructions to follow that is",
        "### Skill roots", "- `r0` = `SESSION/config/skills`", "### Available skills",
        "- right-words: skill-canary (file: r0/right-words/SKILL.md)", "</skills_instructions>",
        "# AGENTS.md instructions", "<INSTRUCTIONS>", "rules-canary", "</INSTRUCTIONS>",
        "input_text", "input_text",
    ],
    "claude": [
        "<system-reminder>", "The following skills are available for use with the Skill tool:",
        "- local:right-words: skill-canary", "</system-reminder>",
        "<system-reminder>", "Codebase and user instructions are shown below.",
        "Contents of SESSION/config/CLAUDE.md", "rules-canary", "</system-reminder>", "text", "text",
        "# Session-specific guidance", " - When the user types `/<skill-name>`, invoke it via Skill.",
        'tool {"description": "Invoke a skill.',
    ],
    "opencode": [
        "Instructions from: SESSION/config/call/opencode/AGENTS.md", "rules-canary",
        "Skills provide specialized instructions", "Use the skill tool to load a skill",
        "<available_skills>", "  <skill>", "    <name>right-words</name>",
        "    <description>skill-canary</description>",
        "    <location>SESSION/data/skills/right-words/SKILL.md</location>", "  </skill>",
        "</available_skills>", 'tool {"function": {"description": "Load a specialized skill',
    ],
    "kimi": [
        "<!-- From: SESSION/config/AGENTS.md -->", "rules-canary", "### User", "- right-words: skill-canary",
        "  Path: SESSION/data/skills/right-words/SKILL.md",
    ],
}  # fmt: skip
"""How every line begins that the arm full has and off has not, by hand."""


@dataclass(frozen=True)
class Done:
    """A model that has nothing to do."""

    def answer(self, wire: Wire, asked: Asked) -> Reply:
        return wire.text(asked.model, "done")


@dataclass(frozen=True)
class Commands:
    """A model that runs commands, one after the other."""

    commands: Sequence[str]

    def answer(self, wire: Wire, asked: Asked) -> Reply:
        if asked.tool_results >= len(self.commands):
            return wire.text(asked.model, "done")
        command = self.commands[asked.tool_results]
        if "Bash" in asked.tools:
            given = {"command": command, "description": "x"}
            return wire.named_call(asked.model, "Bash", given)
        return wire.tool_call(asked.model, command)


class Arms:
    """One real program, asked to work for the arms of a study."""

    def __init__(self, provider: str, real: Path, tmp_path: Path, server: ModelServer) -> None:
        self.name = provider
        self.real = real
        self.tmp_path = tmp_path
        self.server = server
        self.skill = tmp_path / "arm" / "right-words"
        self.skill.mkdir(parents=True)
        (self.skill / "SKILL.md").write_text(
            "---\nname: right-words\ndescription: skill-canary\n---\nskill-body\n"
        )
        self.copy = tmp_path / "copy"
        self.copy.mkdir()
        (self.copy / "start.txt").write_text("start\n")
        (tmp_path / "home").mkdir()

    @property
    def full(self) -> Mount:
        return Mount((self.skill,), "rules-canary\n")

    def work(self, scenario: Scenario, mount: Mount | None = None) -> tuple[CallOutcome, LaunchShape]:
        """One call, and what was shown of it before."""
        address = self.server.play(self.key, scenario)
        program = MAKERS[self.name](self.tmp_path, self.real, address)
        around = surroundings(
            self.tmp_path,
            HOME=str(self.tmp_path / "home"),
            PATH=f"{program.path.parent}:/usr/bin:/bin",
            **program.environ,
        )
        provider = ADAPTERS[self.name].at(program.path, around=around).for_model(program.model, around)
        promised = provider.launch(
            WorkCall(PROMPT, self.copy, program.model, 60, mount=mount), around=around
        ).shape(PROMPT)
        call = WorkCall(
            PROMPT, self.copy, program.model, 60, mount=mount,
            approve=lambda launch: launch.shape(PROMPT) == promised,
        )  # fmt: skip
        outcome = provider.work(call, around=around)
        assert left_behind(around) == []
        return outcome, promised

    @property
    def key(self) -> str:
        return f"arms-{self.name}-{self.tmp_path.name}"

    def asked(self) -> Counter[str]:
        """The lines of everything that the server was asked in the last call."""
        total: Counter[str] = Counter()
        for request in self.server.requests(self.key):
            total += request_lines(request.body)
        return total


@pytest.fixture(params=sorted(MAKERS))
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def arms(provider: str, request: pytest.FixtureRequest, tmp_path: Path, model_server: ModelServer) -> Arms:
    if provider != "kimi":
        real = Path(request.getfixturevalue(f"{provider}_program"))
    else:
        folder = tmp_path / "installed"
        folder.mkdir()
        (folder / "kimi").symlink_to(request.getfixturevalue("kimi_script"))
        (folder / "node").symlink_to(request.getfixturevalue("node_program"))
        real = folder / "kimi"
    return Arms(provider, real, tmp_path, model_server)


def test_the_server_is_asked_the_same_but_for_the_treatment(provider: str, arms: Arms) -> None:
    """S35 F33: nothing that off has is missing, nothing but skills and instructions is there besides.

    The program was started as was told before, or it would not have been started.
    """
    outcome, _ = arms.work(Done())
    off = arms.asked()
    assert outcome.ending is Ending.SUCCESS
    outcome, _ = arms.work(Done(), arms.full)
    full = arms.asked()
    assert outcome.ending is Ending.SUCCESS
    assert off - full == Counter()
    wanted, missing = list(TREATMENT[provider]), []
    unexpected = list((full - off).elements())
    for start in wanted:
        found = next((line for line in unexpected if line.startswith(start)), None)
        if found is None:
            missing.append(start)
        else:
            unexpected.remove(found)
    assert (missing, unexpected) == ([], [])


def test_two_calls_of_one_arm_are_asked_the_same(arms: Arms) -> None:
    """S35: what differs each time is named, so that nothing else could hide behind it."""
    arms.work(Done(), arms.full)
    once = arms.asked()
    arms.work(Done(), arms.full)
    assert arms.asked() == once


def test_tools_are_counted_and_their_ends_told(provider: str, arms: Arms) -> None:
    """P9 F38: one command that ran, one that failed; codex tells of ends, and shows not every call."""
    outcome, _ = arms.work(Commands(["cat start.txt", "exit 3"]))
    assert outcome.ending is Ending.SUCCESS
    ends = [event.succeeded for event in outcome.events if isinstance(event, ToolActivity)]
    assert [end for end in ends if end is not None] == [True, False]
    count = tool_calls_of(provider, outcome.recording)
    assert count == (2 if tells_tool_calls(provider) else None)
