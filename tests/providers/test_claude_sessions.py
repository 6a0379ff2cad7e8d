"""How claude is started, and what it sees: arguments, environment, folders, mount and login of a session."""

from __future__ import annotations

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.faults import FileError
from skill_effectiveness.execution import Executable
from skill_effectiveness.providers import CallKind, Ending, Mount, ReadCall, SandboxKind
from skill_effectiveness.providers.claude import (
    ClaudeProvider,
    judge_argv,
    read_argv,
    skill_identity,
    work_argv,
)
from tests.support.claude_streams import init, result
from tests.support.fake_claude import WORK_TOOLS, call_of, put, write_claude
from tests.support.logins import BAD, CODES, spoil
from tests.support.provider_calls import SCHEMA, surroundings

if TYPE_CHECKING:
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.providers import CallOutcome

PROGRAM = Path("/opt/bin/claude")
SESSION = [
    "/opt/bin/claude",
    "-p",
    "--output-format",
    "stream-json",
    "--verbose",
    "--no-session-persistence",
    "--model",
    "claude-fake-1",
    "--strict-mcp-config",
    "--mcp-config",
    '{"mcpServers":{}}',
    "--setting-sources",
]
NO_PLUGINS = (
    '{"enabledPlugins": {"cc-plugin-agents-md@builtin": false, "cc-plugin-privacy@builtin": false, '
    '"cc-plugin-plugin-authoring@builtin": false}}'
)


class TestArguments:
    """Written by hand from providers.md, section 3 and the table of P13."""

    def test_of_a_judge_call(self) -> None:
        """P4 P9 P12: no tool, no command, no setting, no server; the prompt is not among them."""
        assert judge_argv(PROGRAM, "claude-fake-1", b"{}") == [
            *SESSION,
            "",
            "--tools",
            "",
            "--disable-slash-commands",
            "--json-schema",
            "{}",
        ]

    def test_of_a_read_call(self) -> None:
        """P13: four tools that read, and rules for those uses that need one."""
        argv = [
            *SESSION,
            "",
            "--settings",
            NO_PLUGINS,
            "--permission-mode",
            "default",
            "--disable-slash-commands",
            "--tools",
            "Bash,Read,Grep,Glob",
            "--allowedTools",
            "Read,Grep,Glob,Bash(git diff:*),Bash(git log:*),Bash(git show:*)",
        ]
        assert read_argv(PROGRAM, "claude-fake-1", None) == argv
        assert read_argv(PROGRAM, "claude-fake-1", b"{}") == [*argv, "--json-schema", "{}"]

    def test_of_a_work_call(self) -> None:
        """P13 F33: with a skill or without, the treatment is the only difference."""
        bare = work_argv(PROGRAM, "claude-fake-1", None, None)
        treated = work_argv(PROGRAM, "claude-fake-1", None, Path("/s/data/local"))

        assert bare == [
            *SESSION,
            "user",
            "--settings",
            NO_PLUGINS,
            "--permission-mode",
            "acceptEdits",
            "--tools",
            "Bash,Read,Grep,Glob,Edit,Write",
            "--allowedTools",
            "Bash,Read,Grep,Glob,Edit,Write",
        ]
        assert treated == [
            *bare[:-3],
            "Bash,Read,Grep,Glob,Edit,Write,Skill",
            "--allowedTools",
            "Bash,Read,Grep,Glob,Edit,Write,Skill",
            "--plugin-dir",
            "/s/data/local",
        ]
        assert work_argv(PROGRAM, "claude-fake-1", b"{}", None) == [*bare, "--json-schema", "{}"]

    def test_no_way_around_permissions_is_ever_asked_for(self) -> None:
        """P13: what is not allowed is denied, and nobody is asked."""
        for argv in (
            judge_argv(PROGRAM, "m", b"{}"),
            read_argv(PROGRAM, "m", b"{}"),
            work_argv(PROGRAM, "m", b"{}", Path("/x")),
        ):
            assert not any("danger" in word or "bypass" in word or "add-dir" in word for word in argv)
            assert argv.count("--no-session-persistence") == 1


TELL = (
    "given = open('/proc/self/environ').read().rstrip('\\0').split('\\0')\n"
    "env = dict(one.split('=', 1) for one in given)\n"
    "def tree(top):\n"
    "    return {os.path.relpath(os.path.join(at, name), top): open(os.path.join(at, name)).read()\n"
    "            for at, _, names in os.walk(top) for name in names}\n"
    "parent = os.path.dirname(env['HOME'])\n"
    "plugin = sys.argv[sys.argv.index('--plugin-dir') + 1] if '--plugin-dir' in sys.argv else None\n"
    "say({'type': 'told', 'env': env, 'argv': sys.argv, 'cwd': os.getcwd(),\n"
    "    'config': tree(env['CLAUDE_CONFIG_DIR']),\n"
    "    'home': tree(env['HOME']), 'work': os.listdir('.'), 'plugin': tree(plugin) if plugin else None,\n"
    "    'modes': [os.stat(os.path.join(parent, n)).st_mode for n in ('.', *os.listdir(parent))\n"
    "              if n != 'session-owner.json']})\n"
)


def told(
    tmp_path: Path, around: Surroundings, kind: CallKind = CallKind.JUDGE, mount: Mount | None = None
) -> dict[str, Any]:
    """What a program sees in a call of one kind."""
    skills = [] if mount is None else [f"local:{name}" for name in mount.skill_names]
    working = init(
        tools=[*WORK_TOOLS, *(["Skill"] if skills else [])], permissionMode="acceptEdits", skills=skills
    )
    says = {CallKind.JUDGE: "say(*good)", CallKind.READ: "say(reading, done)"}.get(
        kind,
        "mounted = {'name': 'local', 'path': plugin, 'source': 'local@inline'}\n"
        "working['plugins'] = [mounted] if plugin else []\n"
        "say(working, done)",
    )
    folder = tmp_path / "copy"
    folder.mkdir(exist_ok=True)
    (folder / "file.txt").touch()
    program = write_claude(tmp_path, TELL + says, working=working)
    provider = ClaudeProvider.at(program, around=around)
    outcome = put(provider, call_of(kind, folder, mount=mount), around)
    assert outcome.ending is Ending.SUCCESS, outcome.warnings
    assert outcome.recording is not None
    found: dict[str, Any] = json.loads(outcome.recording.lines[0])
    # Bubblewrap, where it is there, names the working folder.
    found["env"].pop("PWD", None)
    assert set(found["env"]) == {*provider.environment_keys(around.environ), "SKILL_EFFECTIVENESS_CALL"}
    assert sorted(os.listdir(folder)) == ["file.txt"]  # noqa: PTH208 - names are all that is asked for
    return found


class TestPrivateSession:
    @pytest.mark.parametrize("kind", CallKind)
    def test_the_environment_is_the_allowlist(self, tmp_path: Path, kind: CallKind) -> None:
        """P3: own keys in, everything else out; the recorded names are the real ones."""
        around = surroundings(
            tmp_path,
            ANTHROPIC_API_KEY="own-key",
            USER="somebody",
            OPENAI_API_KEY="foreign-canary",
            CODEX_API_KEY="foreign-canary",
            KIMI_API_KEY="foreign-canary",
            AWS_SECRET_ACCESS_KEY="foreign-canary",
            ANTHROPIC_MODEL="foreign-canary",
            ANTHROPIC_SMALL_FAST_MODEL="foreign-canary",
            CLAUDE_CODE_USE_BEDROCK="foreign-canary",
            CLAUDE_CODE_PLUGIN_DIRS="foreign-canary",
            CLAUDE_CODE_SIMPLE="foreign-canary",
            NODE_OPTIONS="foreign-canary",
            PYTHONPATH="foreign-canary",
            XDG_CONFIG_HOME="foreign-canary",
            LANG="C.UTF-8",
            https_proxy="http://proxy:3128",
        )
        seen = told(tmp_path, around, kind)

        assert "canary" not in json.dumps(seen)
        assert seen["env"]["ANTHROPIC_API_KEY"] == "own-key"
        assert seen["env"]["USER"] == "somebody"
        given = {name for name in seen["env"] if not name.startswith(("CLAUDE_CODE_", "DISABLE_"))}
        assert given == {
            "ANTHROPIC_API_KEY",
            "CLAUDE_CONFIG_DIR",
            "CLAUDE_SECURESTORAGE_CONFIG_DIR",
            "HOME",
            "LANG",
            "MAX_STRUCTURED_OUTPUT_RETRIES",
            "PATH",
            "SKILL_EFFECTIVENESS_CALL",
            "TMPDIR",
            "USER",
            "https_proxy",
        }

    def test_what_the_program_does_by_itself_is_switched_off(self, tmp_path: Path) -> None:
        """P3 P11: traffic, updates, memory, skills of its own, other models; one retry."""
        env = told(tmp_path, surroundings(tmp_path))["env"]

        assert env["CLAUDE_CODE_MAX_RETRIES"] == "1"
        assert env["MAX_STRUCTURED_OUTPUT_RETRIES"] == "1"
        for name in (
            "DISABLE_AUTOUPDATER",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
            "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS",
            "CLAUDE_CODE_DISABLE_CLAUDE_MDS",
            "CLAUDE_CODE_DISABLE_FILE_MENTIONS",
            "CLAUDE_CODE_DISABLE_ATTACHMENTS",
            "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS",
            "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK",
            "CLAUDE_CODE_DISABLE_REFUSAL_FALLBACK",
            "CLAUDE_CODE_NO_MODEL_FALLBACK",
        ):
            assert env[name] == "1"

    @pytest.mark.parametrize(("kind", "beside"), [(CallKind.READ, "1"), (CallKind.WORK, "0")])
    def test_no_words_of_a_prompt_are_a_file(self, tmp_path: Path, kind: CallKind, beside: str) -> None:
        """P9 F33: in every kind of call; workers are told of skills, whether their arm has any or none."""
        env = told(tmp_path, surroundings(tmp_path), kind)["env"]

        assert env["CLAUDE_CODE_DISABLE_FILE_MENTIONS"] == "1"
        assert env["CLAUDE_CODE_DISABLE_ATTACHMENTS"] == beside

    def test_its_folders_are_private_and_its_own(self, tmp_path: Path) -> None:
        """P3: 0700 each, beside each other, gone afterwards."""
        around = surroundings(tmp_path)
        seen = told(tmp_path, around)

        places = [seen["env"][name] for name in ("HOME", "CLAUDE_CONFIG_DIR", "TMPDIR")] + [seen["cwd"]]
        assert len(set(places)) == 4
        assert len({Path(place).parent for place in places}) == 1
        assert all(place.startswith(around.environ["TMPDIR"] + "/") for place in places)
        assert {stat.S_IMODE(mode) for mode in seen["modes"]} == {0o700}
        assert (seen["home"], seen["config"], seen["work"]) == ({}, {}, [])

    def test_a_schema_is_an_argument(self, tmp_path: Path) -> None:
        """P12: canonical, and the one that was asked for."""
        argv = told(tmp_path, surroundings(tmp_path))["argv"]
        assert json.loads(argv[argv.index("--json-schema") + 1]) == SCHEMA

    @pytest.mark.parametrize("kind", [CallKind.READ, CallKind.WORK])
    def test_readers_and_workers_run_in_the_folder_they_were_given(
        self, tmp_path: Path, kind: CallKind
    ) -> None:
        """P13: and nothing of ours is laid into it."""
        seen = told(tmp_path, surroundings(tmp_path), kind)

        assert seen["cwd"] == str(tmp_path / "copy")
        assert (seen["home"], seen["config"], seen["plugin"]) == ({}, {}, None)

    def test_parallel_sessions_share_nothing(self, tmp_path: Path) -> None:
        """F41: each call has its own configuration folder, also at the same time."""
        around = surroundings(tmp_path)
        body = (
            "mine = os.environ['CLAUDE_CONFIG_DIR'] + '/.claude.json'\n"
            "open(mine, 'x').write(prompt.decode())\n"
            "time.sleep(0.5)\n"
            "done['result'] = open(mine).read()\n"
            "say(reading, done)"
        )
        provider = ClaudeProvider.at(write_claude(tmp_path, body), around=around)

        def ask(number: int) -> str | None:
            call = ReadCall(f"question {number}", tmp_path, "claude-fake-1", 20)
            return provider.read(call, around=around).answer

        with ThreadPoolExecutor(3) as pool:
            assert list(pool.map(ask, range(3))) == ["question 0", "question 1", "question 2"]


@pytest.fixture
def mount(tmp_path: Path) -> Mount:
    """One skill with a script, and instructions."""
    skill = tmp_path / "arm" / "review-work"
    (skill / "scripts").mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: review-work\ndescription: d\n---\nBody\n")
    (skill / "scripts" / "run.sh").write_text("#!/bin/sh\n")
    (skill / "scripts" / "run.sh").chmod(0o755)
    return Mount((skill,), "Always say please.")


class TestMounts:
    def test_a_skill_is_a_plugin_of_the_session(self, tmp_path: Path, mount: Mount) -> None:
        """P13 F31: under a name that says nothing of the arm, with everything it holds."""
        seen = told(tmp_path, surroundings(tmp_path), CallKind.WORK, mount)

        assert seen["plugin"] == {
            ".claude-plugin/plugin.json": '{"name": "local"}',
            "skills/review-work/SKILL.md": "---\nname: review-work\ndescription: d\n---\nBody\n",
            "skills/review-work/scripts/run.sh": "#!/bin/sh\n",
        }
        assert skill_identity("review-work") == "local:review-work"

    def test_instructions_stand_where_a_users_own_would(self, tmp_path: Path, mount: Mount) -> None:
        """P13 F32: in the session's own configuration folder, and they are let in."""
        seen = told(tmp_path, surroundings(tmp_path), CallKind.WORK, replace(mount, skills=()))

        assert seen["config"] == {"CLAUDE.md": "Always say please."}
        assert seen["env"]["CLAUDE_CODE_DISABLE_CLAUDE_MDS"] == "0"
        assert seen["plugin"] is None

    def test_two_arms_differ_in_what_they_were_given(self, tmp_path: Path, mount: Mount) -> None:
        """F33: names of variables, and values of all but one that lets the instructions in."""
        around = surroundings(tmp_path)
        bare = told(tmp_path, around, CallKind.WORK)
        given = told(tmp_path, around, CallKind.WORK, mount)
        private = {"HOME", "CLAUDE_CONFIG_DIR", "TMPDIR", "SKILL_EFFECTIVENESS_CALL"}
        differ = {name for name in bare["env"] if bare["env"][name] != given["env"].get(name)}

        assert set(bare["env"]) == set(given["env"])
        assert differ - private == {"CLAUDE_CODE_DISABLE_CLAUDE_MDS"}

    def test_a_skill_that_cannot_be_laid_starts_nothing(self, tmp_path: Path, mount: Mount) -> None:
        """P13 F48: a link in it is no file of the arm's."""
        (mount.skills[0] / "link").symlink_to("/etc/hostname")
        around = surroundings(tmp_path)
        provider = ClaudeProvider.at(
            write_claude(tmp_path, "open(folder + '/ran', 'w')\nsay(*good)"), around=around
        )
        outcome = put(provider, call_of(CallKind.WORK, tmp_path, mount=mount), around)

        assert outcome.ending is Ending.UNSTARTABLE
        assert not (tmp_path / "ran").exists()

    def test_a_session_without_the_skill_it_was_given(self, tmp_path: Path, mount: Mount) -> None:
        """F36 P9: a mount that does not show is no treatment."""
        around = surroundings(tmp_path)
        body = "working['tools'].append('Skill')\nsay(working, done)"
        provider = ClaudeProvider.at(write_claude(tmp_path, body), around=around)
        outcome = put(provider, call_of(CallKind.WORK, tmp_path, mount=mount), around)

        assert outcome.ending is Ending.STREAM_INVALID


class TestSandboxes:
    def outcome(self, tmp_path: Path, kind: CallKind) -> CallOutcome:
        around = surroundings(tmp_path)
        folder = tmp_path / "copy"
        folder.mkdir()
        says = (
            "say(*good)"
            if kind is CallKind.JUDGE
            else "say(reading if 'default' in sys.argv else working, done)"
        )
        provider = ClaudeProvider.at(write_claude(tmp_path, says, done=result(result="x")), around=around)
        return put(provider, call_of(kind, folder), around)

    @pytest.mark.parametrize("kind", [CallKind.READ, CallKind.WORK])
    def test_the_record_says_which_walls_there_were(self, tmp_path: Path, kind: CallKind) -> None:
        """P13: bubblewrap where it is there, the program's permissions else; never its own sandbox."""
        assert self.outcome(tmp_path, kind).sandbox in (SandboxKind.BUBBLEWRAP, SandboxKind.PERMISSIONS_ONLY)

    def test_without_bubblewrap_there_are_permissions_alone(self, tmp_path: Path) -> None:
        """P13: and the record says so."""
        around = surroundings(tmp_path, PATH=str(tmp_path))
        provider = ClaudeProvider.at(write_claude(tmp_path, "say(reading, done)"), around=around)
        outcome = put(provider, call_of(CallKind.READ, tmp_path), around)

        assert outcome.ending is Ending.SUCCESS
        assert outcome.sandbox is SandboxKind.PERMISSIONS_ONLY


class TestLogin:
    def home(self, tmp_path: Path) -> Path:
        real = tmp_path / "home" / ".claude"
        real.mkdir(parents=True)
        (real / ".credentials.json").write_text("the-login")
        for name in ("settings.json", "CLAUDE.md", "history.jsonl"):
            (real / name).write_text("canary")
        (tmp_path / "home" / ".claude.json").write_text("canary")
        return tmp_path / "home"

    @pytest.mark.parametrize("kind", CallKind)
    def test_the_program_is_told_where_the_login_is(self, tmp_path: Path, kind: CallKind) -> None:
        """F32 P3: where, and nothing else of the user's; no link to it, which a renewal would replace."""
        home = self.home(tmp_path)
        seen = told(tmp_path, surroundings(tmp_path, HOME=str(home)), kind)

        assert seen["env"]["CLAUDE_SECURESTORAGE_CONFIG_DIR"] == str(home / ".claude")
        assert (seen["home"], seen["config"]) == ({}, {})
        assert "canary" not in json.dumps(seen)

    def test_claude_config_dir_says_where_the_login_is(self, tmp_path: Path) -> None:
        """P3: as it does for the program, which keeps a keychain's entry by that name too."""
        elsewhere = str(tmp_path / "elsewhere")
        seen = told(tmp_path, surroundings(tmp_path, CLAUDE_CONFIG_DIR=elsewhere))

        assert seen["env"]["CLAUDE_SECURESTORAGE_CONFIG_DIR"] == elsewhere
        assert seen["env"]["CLAUDE_CONFIG_DIR"] != elsewhere

    @pytest.mark.parametrize("environ", [{}, {"HOME": "nowhere"}, {"CLAUDE_CONFIG_DIR": "nowhere"}])
    def test_without_a_file_there_is_a_keychain_or_nothing(
        self, tmp_path: Path, environ: dict[str, str]
    ) -> None:
        """P3: an empty name means the place that is used when none is named."""
        seen = told(tmp_path, surroundings(tmp_path, **environ))
        assert seen["env"]["CLAUDE_SECURESTORAGE_CONFIG_DIR"] == ""

    def test_a_renewed_login_is_kept(self, tmp_path: Path) -> None:
        """P3: put in the old one's place, as the program does it."""
        home = self.home(tmp_path)
        around = surroundings(tmp_path, HOME=str(home))
        body = (
            "place = os.environ['CLAUDE_SECURESTORAGE_CONFIG_DIR'] + '/.credentials.json'\n"
            "open(place + '.new', 'w').write('renewed')\n"
            "os.rename(place + '.new', place)\n"
            "say(*good)"
        )
        provider = ClaudeProvider.at(write_claude(tmp_path, body), around=around)
        outcome = put(provider, call_of(CallKind.JUDGE, tmp_path), around)

        assert outcome.ending is Ending.SUCCESS
        assert (home / ".claude" / ".credentials.json").read_text() == "renewed"

    @pytest.mark.parametrize("kind", BAD)
    def test_what_is_no_login_file_is_named_by_its_kind(self, tmp_path: Path, kind: str) -> None:
        """P3: before anything is spent, and without a path."""
        folder = tmp_path / "home" / ".claude"
        folder.mkdir(parents=True)
        fs = spoil(folder / ".credentials.json", kind)
        around = replace(surroundings(tmp_path, HOME=str(tmp_path / "home")), fs=fs)
        program = ClaudeProvider(Executable(tmp_path, tmp_path, "sha256:" + 64 * "0", "2.1.332"))
        with pytest.raises(FileError) as caught:
            program.check_login(around)

        assert caught.value.code is CODES[kind]
        assert str(caught.value).startswith("The login file .credentials.json of .claude in HOME ")
        assert str(tmp_path) not in str(caught.value)

    def test_what_is_not_there_is_no_fault(self, tmp_path: Path) -> None:
        """P3: a keychain, a key or a token may stand in for it."""
        program = ClaudeProvider(Executable(tmp_path, tmp_path, "sha256:" + 64 * "0", "2.1.332"))
        program.check_login(surroundings(tmp_path))
        program.check_login(surroundings(tmp_path, CLAUDE_CONFIG_DIR=str(tmp_path / "nowhere")))
        program.check_login(surroundings(tmp_path, HOME="relative"))


class TestDeclarations:
    def test_the_labels(self) -> None:
        """R32 P13: as the records have them; calls of every kind."""
        assert ClaudeProvider.name == "claude"
        assert ClaudeProvider.family == "claude"
        assert ClaudeProvider.session_label == "no-session-persistence"
        assert ClaudeProvider.tool_label == "verified-none"
        assert ClaudeProvider.json_fence is False
        assert ClaudeProvider.call_kinds == {CallKind.JUDGE, CallKind.READ, CallKind.WORK}

    def test_an_answer_in_a_fence_is_not_unwrapped(self, tmp_path: Path) -> None:
        """F25 P12: this provider's contract allows none."""
        around = surroundings(tmp_path)
        fenced = result(result='```json\n{"a":1}\n```')
        provider = ClaudeProvider.at(write_claude(tmp_path, "say(reading, done)", done=fenced), around=around)

        assert put(provider, call_of(CallKind.READ, tmp_path), around).answer == '```json\n{"a":1}\n```'

    def test_even_for_its_version_it_sees_no_real_home(self, tmp_path: Path) -> None:
        """F32 P3: `--version` runs in private folders and the same environment."""
        program = tmp_path / "claude"
        program.write_text('#!/bin/sh\nenv > "$0.env"\necho 2.1.332 "(Claude Code)"\n')
        program.chmod(0o755)
        around = surroundings(tmp_path, OPENAI_API_KEY="canary", HOME="/canary-home")
        bound = ClaudeProvider.at(program, around=around)

        assert bound.executable.version == "2.1.332 (Claude Code)"
        seen = (tmp_path / "claude.env").read_text()
        assert "canary" not in seen
        assert f"HOME={around.environ['TMPDIR']}/" in seen
