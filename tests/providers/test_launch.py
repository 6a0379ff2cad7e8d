"""What a call would start, before it does: the four adapters, with programs that are never started."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.execution import SessionFolders
from skill_effectiveness.providers import (
    CommandProvider,
    Ending,
    LaunchShape,
    Mount,
    ProviderCode,
    ProviderError,
    SimulatedReviewer,
    SimulatedSettings,
    WorkCall,
)
from skill_effectiveness.providers.launch import Laying, file_word, names_of
from tests.support.fake_program import write_fake
from tests.support.launches import MODELS, PROGRAMS, PROMPT, bound, launched, mounted, user
from tests.support.provider_calls import codes, left_behind, surroundings
from tests.support.small_adapter import Place

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.providers import Launch

SKILL = ("right-words", "right-words/SKILL.md", "right-words/bin", "right-words/bin/run.sh")
PLACES = {
    "codex": ("{session}/config/skills", "{session}/config/AGENTS.md"),
    "claude": ("{session}/data/local/skills", "{session}/config/CLAUDE.md"),
    "opencode": ("{session}/data/skills", "{session}/config/call/opencode/AGENTS.md"),
    "kimi": ("{session}/data/skills", "{session}/config/AGENTS.md"),
}


def changed(off: LaunchShape, full: LaunchShape) -> set[str]:
    """The paths whose words differ."""
    return {path for path in off.tree.keys() | full.tree.keys() if off.tree.get(path) != full.tree.get(path)}


def variables(off: LaunchShape, full: LaunchShape) -> dict[str, tuple[str | None, str | None]]:
    names = off.environment.keys() | full.environment.keys()
    pairs = {name: (off.environment.get(name), full.environment.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@pytest.mark.parametrize("provider", PROGRAMS)
class TestEveryProgram:
    def test_it_is_told_without_a_start(self, provider: str, tmp_path: Path) -> None:
        """S35 F33: twice the same, whatever the folders of the session were called; no program ran."""
        one, two = (launched(provider, tmp_path, mounted(tmp_path)) for _ in range(2))
        assert one == two
        assert not (tmp_path / "started").exists()
        assert one.argv[0] == "{program}"
        assert one.folder == "{copy}"
        told = repr((one.argv, dict(one.environment), sorted(one.tree)))
        assert str(tmp_path / "temporary") not in told
        assert str(tmp_path / "copy") not in told

    def test_nothing_of_it_shows_in_a_trace(self, provider: str, tmp_path: Path) -> None:
        """P3: no value of a variable, no argument, no digest."""
        shape = launched(provider, tmp_path, mounted(tmp_path))
        assert "canary" not in repr(shape)
        assert "sha256" not in repr(shape)

    def test_what_a_mount_lays(self, provider: str, tmp_path: Path) -> None:
        """S35 F31: skills and instructions where the program looks for them, byte for byte, bits as well."""
        off, full = launched(provider, tmp_path), launched(provider, tmp_path, mounted(tmp_path))
        skills, instructions = PLACES[provider]
        assert {f"{skills}/{path}" for path in SKILL} | {instructions} <= changed(off, full)
        script = hashlib.sha256(b"true\n").hexdigest()
        assert full.tree[f"{skills}/right-words/bin/run.sh"] == f"program sha256:{script}"
        rules = hashlib.sha256(b"rules-canary\n").hexdigest()
        assert full.tree[instructions] == f"file sha256:{rules}"
        assert full.tree["{copy}/start.txt"] == off.tree["{copy}/start.txt"]

    def test_the_call_is_made_from_it(self, provider: str, tmp_path: Path) -> None:
        """S35 F33: argument for argument, variable for variable, file for file as was told before."""
        around, seen = user(tmp_path), []
        promised = launched(provider, tmp_path, mounted(tmp_path), around)
        body = (
            "given = open('/proc/self/environ', 'rb').read().rstrip(b'\\0').decode().split('\\0')\n"
            "env = dict(one.split('=', 1) for one in given)\n"
            "top = os.path.dirname(env['HOME'])\n"
            "files = [os.path.join(base, name) for base, _, names in os.walk(top) for name in names]\n"
            f"json.dump({{'argv': sys.argv, 'env': env, 'files': files, 'top': top}}, "
            f"open({str(tmp_path / 'told')!r}, 'w'))"
        )
        program = write_fake(tmp_path / provider, body)
        adapter = type(bound(provider, tmp_path, around))
        write_fake(program, body)
        real = adapter.at(program, around=around).for_model(MODELS[provider], around)

        def keep(launch: Launch) -> bool:
            seen.append(launch.shape(PROMPT))
            return True

        copy = tmp_path / "copy"
        real.work(
            WorkCall(PROMPT, copy, MODELS[provider], 20, mount=mounted(tmp_path), approve=keep),
            around=around,
        )
        told: dict[str, Any] = json.loads((tmp_path / "told").read_text())

        def named(text: str) -> str:
            return text.replace(told["top"], "{session}").replace(str(copy), "{copy}")

        assert seen == [promised]
        words = ["{prompt}" if word == PROMPT else named(word) for word in told["argv"][1:]]
        assert words == list(promised.argv[1:])
        mark = "SKILL_EFFECTIVENESS_CALL"
        assert {name: named(value) for name, value in told["env"].items() if name != mark} == dict(
            promised.environment
        )
        laid = {path for path, word in promised.tree.items() if word != "folder"}
        there = {named(path) for path in told["files"]}
        assert {path for path in laid if path.startswith("{session}")} <= there

    def test_one_that_is_not_approved_is_not_started(self, provider: str, tmp_path: Path) -> None:
        """S35 F33: a typed ending, and nothing is spent or left."""
        around = user(tmp_path)
        copy = tmp_path / "copy"
        copy.mkdir()
        call = WorkCall(PROMPT, copy, MODELS[provider], 20, approve=lambda _: False)
        outcome = bound(provider, tmp_path, around).work(call, around=around)
        assert (outcome.ending, codes(outcome)) == (Ending.UNSTARTABLE, ["launch_differs"])
        assert not (tmp_path / "started").exists()
        assert left_behind(around) == []

    def test_the_users_things_are_told_apart(self, provider: str, tmp_path: Path) -> None:
        """P3 S35: what a person may change between two runs: inherited values and where a login is."""
        shape = launched(provider, tmp_path)
        assert "PATH" in shape.users
        assert not {"HOME", "TMPDIR"} & shape.users
        logins = {
            "codex": {"{session}/config/auth.json"},
            "claude": set(),
            "opencode": {"{session}/data/opencode/auth.json"},
            "kimi": {f"{{session}}/config/{name}" for name in ("credentials", "oauth", "device_id")},
        }
        assert shape.logins == logins[provider]
        if provider == "claude":
            assert {"ANTHROPIC_API_KEY", "CLAUDE_SECURESTORAGE_CONFIG_DIR"} <= shape.users


def test_a_tasks_variables_are_not_the_adapters(tmp_path: Path) -> None:
    """S35: they are there, and told apart; one of the session's own stays as it is."""
    around = user(tmp_path)
    copy = tmp_path / "copy"
    copy.mkdir()
    given = {"TASK_WORD": "amber", "CODEX_HOME": "/elsewhere"}
    call = WorkCall(PROMPT, copy, MODELS["codex"], 20, environment=given)
    shape = bound("codex", tmp_path, around).launch(call, around=around).shape(PROMPT)
    assert shape.environment["TASK_WORD"] == "amber"
    assert shape.environment["CODEX_HOME"] == "{session}/config"
    assert "TASK_WORD" in shape.users
    assert "CODEX_HOME" not in shape.users


class TestTheTreatments:
    """Every place that a mount changes, written down by hand."""

    def test_codex(self, tmp_path: Path) -> None:
        """S35: files alone."""
        off, full = launched("codex", tmp_path), launched("codex", tmp_path, mounted(tmp_path))
        assert (off.argv, variables(off, full)) == (full.argv, {})
        folder, rules = PLACES["codex"]
        assert changed(off, full) == {folder, *(f"{folder}/{path}" for path in SKILL), rules}

    def test_claude(self, tmp_path: Path) -> None:
        """S35: the tool for skills, a plugin that holds them, and what lets instructions be read."""
        off, full = launched("claude", tmp_path), launched("claude", tmp_path, mounted(tmp_path))
        tools = "Bash,Read,Grep,Glob,Edit,Write"
        at = off.argv.index("--tools")
        assert off.argv[at:] == ("--tools", tools, "--allowedTools", tools)
        more = f"{tools},Skill"
        plugin = ("--plugin-dir", "{session}/data/local")
        assert full.argv == (*off.argv[:at], "--tools", more, "--allowedTools", more, *plugin)
        assert variables(off, full) == {"CLAUDE_CODE_DISABLE_CLAUDE_MDS": ("1", "0")}
        folder, rules = PLACES["claude"]
        of_the_plugin = {
            "{session}/data/local",
            "{session}/data/local/.claude-plugin",
            "{session}/data/local/.claude-plugin/plugin.json",
        }
        assert changed(off, full) == (
            {folder, *(f"{folder}/{path}" for path in SKILL), rules} | of_the_plugin
        )
        assert full.tree["{session}/data/local/.claude-plugin/plugin.json"] == file_word(b'{"name": "local"}')

    def test_opencode(self, tmp_path: Path) -> None:
        """S35: the rules for skills, twice, and the place of the skills."""
        off, full = launched("opencode", tmp_path), launched("opencode", tmp_path, mounted(tmp_path))
        assert (off.argv, variables(off, full)) == (full.argv, {})
        folder, rules = PLACES["opencode"]
        place = "{session}/config/call/opencode"
        own = {f"{place}/agent/worker.md", f"{place}/opencode.json"}
        assert changed(off, full) == {folder, *(f"{folder}/{path}" for path in SKILL), rules} | own
        base = {"*": "allow", "webfetch": "deny", "websearch": "deny"}
        bare = base | {"external_directory": "deny", "question": "deny", "skill": "deny"}
        given = base | {
            "external_directory": {"*": "deny", "{session}/data/skills/*": "allow"},
            "question": "deny",
            "skill": {"*": "allow", "customize-opencode": "deny"},
        }
        for shape, permission in ((off, bare), (full, given)):
            head = f'description: "worker"\nmode: "primary"\npermission: {json.dumps(permission)}\n'
            assert shape.tree[f"{place}/agent/worker.md"] == file_word(f"---\n{head}---\n\n".encode())

    def test_kimi(self, tmp_path: Path) -> None:
        """S35: files alone; there is a folder of skills in every arm."""
        off, full = launched("kimi", tmp_path), launched("kimi", tmp_path, mounted(tmp_path))
        assert (off.argv, variables(off, full)) == (full.argv, {})
        folder, rules = PLACES["kimi"]
        assert off.tree[folder] == "folder"
        assert changed(off, full) == {*(f"{folder}/{path}" for path in SKILL), rules}

    def test_kimis_key_is_in_no_word(self, tmp_path: Path) -> None:
        """S35 R34: another key is the same configuration, another model is not."""
        one = launched("kimi", tmp_path).tree["{session}/config/config.toml"]
        config = tmp_path / "home/.kimi-code/config.toml"
        text = config.read_text()
        config.write_text(text.replace("key-canary", "key-renewed"))
        known = surroundings(tmp_path, HOME=str(tmp_path / "home"), PATH=str(tmp_path / "bin"))
        assert launched("kimi", tmp_path, around=known).tree["{session}/config/config.toml"] == one
        config.write_text(text.replace("underlying-model", "another-model"))
        assert launched("kimi", tmp_path, around=known).tree["{session}/config/config.toml"] != one


class TestWhoCannot:
    def test_a_program_without_an_adapter(self, tmp_path: Path) -> None:
        """P14 S35: it can be given nothing, and says so."""
        around = surroundings(tmp_path)
        copy = tmp_path / "copy"
        copy.mkdir()
        provider = CommandProvider.at(write_fake(tmp_path / "program", ""), around=around)
        call = WorkCall("Mend.", copy, "m", 5)
        assert provider.launch(call, around=around).shape("Mend.").folder == "{copy}"
        with pytest.raises(ProviderError) as refused:
            provider.launch(replace(call, mount=mounted(tmp_path)), around=around)
        assert refused.value.code is ProviderCode.INVALID_CALL
        with pytest.raises(ProviderError) as unheld:
            provider.treatment("m", skills=True, instructions=False)
        assert unheld.value.code is ProviderCode.CALL_KIND_UNSUPPORTED

    def test_one_that_holds_no_work_calls(self, tmp_path: Path) -> None:
        """P13: refused by name."""
        settings = SimulatedSettings(accuracy=1, position_bias=0, flakiness=0, refusal_rate=0, seed=0)
        simulated = SimulatedReviewer(settings, (), repeat="1")
        with pytest.raises(ProviderError):
            simulated.launch(WorkCall("x", tmp_path, "m", 1), around=surroundings(tmp_path))
        with pytest.raises(ProviderError):
            simulated.treatment("m", skills=False, instructions=False)

    def test_a_launch_that_nobody_looked_at_has_no_shape(self, tmp_path: Path) -> None:
        """S35: missing is not the same as nothing."""
        small = Place(tmp_path).small()
        around = surroundings(tmp_path)
        call = WorkCall("Mend.", tmp_path / "folder", "fake-model", 5)
        launch = small.launch(call, around=around)
        assert launch.shape("Mend.").stdin == "{prompt}"
        with pytest.raises(ValueError, match="looked at"):
            replace(launch, laid=None).shape("Mend.")


class TestWhatIsLaid:
    def test_what_was_there_before_is_not(self) -> None:
        """S35: a file that the program left when it was asked for its version; one that changed counts."""
        before = Laying({"{session}/home/log": "file a", "{session}/data/x": "file a"})
        after = Laying({"{session}/home/log": "file a", "{session}/data/x": "file b", "{copy}/y": "file c"})
        assert after.since(before).tree == {"{session}/data/x": "file b", "{copy}/y": "file c"}
        assert after.since(after).tree == {"{copy}/y": "file c"}

    def test_paths_are_named_in_json_too(self, tmp_path: Path) -> None:
        """S35: a temporary folder whose name JSON spells otherwise is no difference."""
        strange = tmp_path / 'quote"é'
        strange.mkdir(mode=0o700)
        around = surroundings(tmp_path, TMPDIR=str(strange))
        with SessionFolders(around) as session:
            spelt = json.dumps(str(session.data / "x"))[1:-1]
            for text, name in names_of(session):
                spelt = spelt.replace(text, name)
        assert spelt == "{session}/data/x"

    def test_links_and_pipes_are_named_and_never_followed(self, tmp_path: Path) -> None:
        """S35 F48: in the working copy as well."""
        import os  # noqa: PLC0415 - for a FIFO alone

        around = user(tmp_path)
        copy = tmp_path / "copy"
        copy.mkdir()
        os.mkfifo(copy / "pipe")
        (copy / "link").symlink_to("/nowhere")
        shape = launched("codex", tmp_path, Mount(), around)
        assert shape.tree["{copy}/pipe"] == "no file"
        assert shape.tree["{copy}/link"] == "link /nowhere"
