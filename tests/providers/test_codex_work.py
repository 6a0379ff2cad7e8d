"""Work calls of codex: the working copy to work in, what an arm gives in its own configuration folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.providers import CodexProvider, Ending, Mount, SandboxKind, WorkCall
from skill_effectiveness.providers.codex import read_event, work_argv
from skill_effectiveness.providers.events import SkillRead, ToolActivity, Unreadable
from tests.support.fake_program import READ_PROMPT, write_codex
from tests.support.leavings import digest, nothing_left
from tests.support.provider_calls import ANSWER, SCHEMA, surroundings

if TYPE_CHECKING:
    from skill_effectiveness.providers import CallOutcome

SEE = (
    "config = os.environ['CODEX_HOME']\n"
    "seen = {'cwd': os.getcwd(), 'prompt': prompt.decode(), 'argv': sys.argv[1:], 'config': {}}\n"
    "for at, _, names in os.walk(config):\n"
    "    for name in names:\n"
    "        path = os.path.join(at, name)\n"
    "        seen['config'][os.path.relpath(path, config)] = open(path).read()\n"
    "seen['schema'] = open(sys.argv[sys.argv.index('--output-schema') + 1]).read()"
    " if '--output-schema' in sys.argv else None\n"
    "json.dump(seen, open(folder + '/seen', 'w'))\n"
    "say(*good)"
)


class Place:
    def __init__(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path
        self.copy = tmp_path / "copy"
        self.copy.mkdir()
        self.skill = tmp_path / "arm" / "given"
        self.skill.mkdir(parents=True)
        (self.skill / "SKILL.md").write_text("Use it.\n")

    def work(self, body: str, **given: Any) -> CallOutcome:  # noqa: ANN401 - fields of a call
        around = surroundings(self.tmp_path)
        provider = CodexProvider.at(write_codex(self.tmp_path, READ_PROMPT + body), around=around)
        call = WorkCall("Mend it.", self.copy, "fake-model", 20, **given)
        outcome = provider.work(call, around=around)
        nothing_left(around)
        return outcome

    def seen(self, **given: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a call
        outcome = self.work(SEE, **given)
        assert (outcome.ending, outcome.answer) == (Ending.SUCCESS, ANSWER)
        assert outcome.sandbox is SandboxKind.PROGRAM
        found: dict[str, Any] = json.loads((self.tmp_path / "seen").read_text())
        return found


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


class TestAsking:
    def test_the_arguments(self) -> None:
        """P4 P9 P13: a sandbox in which the working copy can be written, the prompt on stdin, no web."""
        assert work_argv(Path("/bin/codex"), "gpt-5.5", Path("/s.json")) == [
            "/bin/codex", "exec", "--json", "--ephemeral", "--ignore-user-config", "--skip-git-repo-check",
            "--sandbox", "workspace-write", "--color", "never", "--model", "gpt-5.5",
            "--output-schema", "/s.json", "-c", "analytics.enabled=false",
            "-c", "features.apps=false", "-c", "features.plugins=false", "-c", "features.remote_plugin=false",
            "-c", "project_root_markers=[]", "-c", "skills.bundled.enabled=false",
            "-c", "project_doc_max_bytes=1048576", "-c", "sandbox_workspace_write.exclude_slash_tmp=true",
            "-c", 'web_search="disabled"', "-",
        ]  # fmt: skip

    @pytest.mark.parametrize("schema", [None, SCHEMA])
    def test_the_working_copy_is_where_it_works(self, place: Place, schema: dict[str, object] | None) -> None:
        """P13: and nothing of ours is in it."""
        seen = place.seen(answer_schema=schema)

        assert (seen["cwd"], seen["prompt"], seen["config"]) == (str(place.copy), "Mend it.", {})
        assert (None if seen["schema"] is None else json.loads(seen["schema"])) == schema
        assert list(place.copy.iterdir()) == []

    def test_a_mount_lies_in_the_private_configuration(self, place: Place) -> None:
        """P13 P3: and nowhere else; two arms have the same arguments."""
        before = digest(place.copy)
        given = place.seen(mount=Mount((place.skill,), "Be good."))
        nothing = place.seen(mount=Mount())

        assert given["config"] == {"skills/given/SKILL.md": "Use it.\n", "AGENTS.md": "Be good."}
        assert nothing["config"] == {}
        assert given["argv"] == nothing["argv"]
        assert digest(place.copy) == before

    def test_tools_are_what_a_worker_has(self, place: Place) -> None:
        """P13: seen, and no reason to end."""
        item = {"id": "i", "type": "command_execution", "command": "ls", "status": "completed"}
        outcome = place.work(f"say(*good[:2], {{'type': 'item.completed', 'item': {item!r}}}, *good[2:])")

        assert outcome.ending is Ending.SUCCESS
        assert ToolActivity("command_execution") in outcome.events


def test_the_whole_stream_is_looked_through_for_skills(place: Place) -> None:
    """F34 F38: after other tools and after an answer of an earlier turn, and each command counts once."""
    body = (
        "def ran(command):\n"
        "    item = {'id': 'i', 'type': 'command_execution', 'command': command}\n"
        "    return [{'type': f'item.{step}', 'item': item} for step in ('started', 'completed')]\n"
        "say(*good[:2], *ran('ls'), *good[2:], good[1], *ran('cat skills/late/SKILL.md'), *good[2:])"
    )
    outcome = place.work(body)

    assert outcome.ending is Ending.SUCCESS
    assert [event for event in outcome.events if isinstance(event, SkillRead)] == [SkillRead("late")]


class TestSkillsThatCommandsRead:
    def events(self, command: object, kind: str = "item.completed") -> list[object]:
        item = {"id": "i", "type": "command_execution", "command": command, "status": "completed"}
        return list(read_event({"type": kind, "item": item}, b""))  # type: ignore[dict-item] # any value

    @pytest.mark.parametrize(
        ("command", "names"),
        [
            ("/bin/bash -lc 'cat .agents/skills/sk-wd-agents/SKILL.md'", ["sk-wd-agents"]),
            ('sed -n 1,5p "/a b/skills/one/SKILL.md" /x/two/SKILL.md /x/two/SKILL.md', ["one", "two"]),
            ("cat SKILL.md skills/one/SKILL.mdx skills/one/MYSKILL.md", []),
            ("ls skills/one", []),
            (None, []),
            (["cat", "skills/one/SKILL.md"], []),
        ],
    )
    def test_their_names_are_observed(self, command: object, names: list[str]) -> None:
        """P13: an event beside the tool's own, and nothing but a name."""
        assert self.events(command) == [
            ToolActivity("command_execution"),
            *(SkillRead(name) for name in names),
        ]

    @pytest.mark.parametrize("kind", ["item.started", "item.updated"])
    def test_once_for_a_command(self, kind: str) -> None:
        assert self.events("cat skills/one/SKILL.md", kind) == [ToolActivity("command_execution")]

    def test_an_item_of_another_kind_reads_nothing(self) -> None:
        item = {"id": "i", "type": "agent_message", "text": 3, "command": "cat skills/one/SKILL.md"}
        found = read_event({"type": "item.completed", "item": item}, b"line")  # type: ignore[dict-item]

        assert found == [Unreadable(b"line", "shape")]
