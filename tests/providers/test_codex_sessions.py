"""What a program sees in a judge call: an environment and folders of its own, and the user's login."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from skill_effectiveness.providers import CodexProvider, Ending
from tests.support.fake_program import READ_PROMPT, write_codex
from tests.support.provider_calls import SCHEMA, left_behind, question, surroundings

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings


class TestPrivateSession:
    def told(self, tmp_path: Path, around: Surroundings) -> dict[str, Any]:
        """What a program sees of its surroundings in a judge call."""
        body = (
            "home = os.path.dirname(os.environ['HOME'])\n"
            "schema = sys.argv[sys.argv.index('--output-schema') + 1]\n"
            # What the program was given, before the interpreter adds to it.
            "given = open('/proc/self/environ').read().rstrip('\\0').split('\\0')\n"
            "json.dump({'env': dict(one.split('=', 1) for one in given), 'argv': sys.argv,\n"
            "    'cwd': os.getcwd(),\n"
            "    'work': os.listdir('.'), 'schema': open(schema).read(),\n"
            "    'schema_mode': os.lstat(schema).st_mode,\n"
            "    'config': {n: open(os.path.join(os.environ['CODEX_HOME'], n)).read()\n"
            "               for n in os.listdir(os.environ['CODEX_HOME'])},\n"
            "    'home': os.listdir(os.environ['HOME']),\n"
            "    'modes': {n: os.stat(os.path.join(home, n)).st_mode for n in [*os.listdir(home), '.']}},\n"
            "    open(folder + '/told.json', 'w'))\n"
            "say(*good)"
        )
        provider = CodexProvider.at(write_codex(tmp_path, READ_PROMPT + body), around=around)
        outcome = provider.judge(question(), around=around)
        assert outcome.ending is Ending.SUCCESS
        told: dict[str, Any] = json.loads((tmp_path / "told.json").read_text())
        recorded = provider.environment_keys(around.environ)
        assert set(told["env"]) == {*recorded, "SKILL_EFFECTIVENESS_CALL"}
        return told

    def test_the_environment_is_the_allowlist(self, tmp_path: Path) -> None:
        """P3: own key in, everything else out; the recorded names are the real ones."""
        around = surroundings(
            tmp_path,
            CODEX_API_KEY="own-key",
            OPENAI_API_KEY="foreign-canary",
            OPENAI_BASE_URL="foreign-canary",
            ANTHROPIC_API_KEY="foreign-canary",
            AWS_SECRET_ACCESS_KEY="foreign-canary",
            KIMI_API_KEY="foreign-canary",
            USER="foreign-canary",
            PYTHONPATH="foreign-canary",
            LD_LIBRARY_PATH="foreign-canary",
            RUST_LOG="foreign-canary",
            XDG_CONFIG_HOME="foreign-canary",
            CODEX_SQLITE_HOME="foreign-canary",
            LANG="C.UTF-8",
            https_proxy="http://proxy:3128",
        )
        told = self.told(tmp_path, around)

        assert sorted(told["env"]) == [
            "CODEX_API_KEY",
            "CODEX_HOME",
            "HOME",
            "LANG",
            "PATH",
            "SKILL_EFFECTIVENESS_CALL",
            "TMPDIR",
            "https_proxy",
        ]
        assert told["env"]["CODEX_API_KEY"] == "own-key"
        assert "canary" not in json.dumps(told)

    def test_its_folders_are_private_and_its_own(self, tmp_path: Path) -> None:
        """P3: home, configuration, temporary and working folder, 0700, TMPDIR above none of the others."""
        around = surroundings(tmp_path)
        told = self.told(tmp_path, around)

        home, config, tmp = (told["env"][name] for name in ("HOME", "CODEX_HOME", "TMPDIR"))
        assert len({home, config, tmp, told["cwd"]}) == 4
        assert all(path.startswith(around.environ["TMPDIR"] + "/") for path in (home, config, tmp))
        assert not any(path.startswith(tmp + "/") for path in (home, config, told["cwd"]))
        assert stat.S_IMODE(told["modes"].pop("session-owner.json")) == 0o600
        assert {stat.S_IMODE(mode) for mode in told["modes"].values()} == {0o700}
        assert told["work"] == []
        assert told["home"] == []
        assert told["config"] == {}
        assert left_behind(around) == []

    def test_the_answer_schema_is_a_file_of_the_session(self, tmp_path: Path) -> None:
        """P3 P12: what the program is given is what was asked for, and nobody else's to read."""
        told = self.told(tmp_path, surroundings(tmp_path))

        assert json.loads(told["schema"]) == SCHEMA
        assert stat.S_IMODE(told["schema_mode"]) == 0o600
        assert "analytics.enabled=false" in told["argv"]
        assert told["argv"][-1] == "-"

    def test_of_the_users_configuration_only_the_login_is_seen(self, tmp_path: Path) -> None:
        """F32 P3: markers in the real home do not reach the program, the login file does."""
        real = tmp_path / "home" / ".codex"
        real.mkdir(parents=True)
        (real / "auth.json").write_text("the-login")
        for name in ("config.toml", "AGENTS.md", "history.jsonl"):
            (real / name).write_text("canary")
        told = self.told(tmp_path, surroundings(tmp_path, HOME=str(tmp_path / "home")))

        assert told["config"] == {"auth.json": "the-login"}
        assert "canary" not in json.dumps(told)

    def test_codex_home_says_where_the_login_is(self, tmp_path: Path) -> None:
        real = tmp_path / "elsewhere"
        real.mkdir()
        (real / "auth.json").write_text("the-login")
        told = self.told(tmp_path, surroundings(tmp_path, CODEX_HOME=str(real)))

        assert told["config"] == {"auth.json": "the-login"}
        assert told["env"]["CODEX_HOME"] != str(real)

    def test_tokens_that_the_program_renews_are_kept(self, tmp_path: Path) -> None:
        """P3: the login is a link, so that a renewed token is not lost with the session."""
        real = tmp_path / "home" / ".codex"
        real.mkdir(parents=True)
        (real / "auth.json").write_text("old")
        around = surroundings(tmp_path, HOME=str(tmp_path / "home"))
        body = READ_PROMPT + "open(os.environ['CODEX_HOME'] + '/auth.json', 'w').write('renewed')\nsay(*good)"
        provider = CodexProvider.at(write_codex(tmp_path, body), around=around)

        assert provider.judge(question(), around=around).ending is Ending.SUCCESS
        assert (real / "auth.json").read_text() == "renewed"

    def test_parallel_sessions_share_nothing(self, tmp_path: Path) -> None:
        """F41: each call has its own configuration folder, also at the same time."""
        around = surroundings(tmp_path)
        body = READ_PROMPT + (
            "mine = os.environ['CODEX_HOME'] + '/config.toml'\n"
            "open(mine, 'x').write(prompt.decode())\n"
            "time.sleep(0.5)\n"
            "good[2]['item']['text'] = open(mine).read()\n"
            "say(*good)"
        )
        provider = CodexProvider.at(write_codex(tmp_path, body), around=around)

        with ThreadPoolExecutor(3) as pool:
            answers = pool.map(
                lambda n: provider.judge(question(f"question {n}"), around=around).answer, range(3)
            )
            assert list(answers) == ["question 0", "question 1", "question 2"]

    def test_even_for_its_version_it_sees_no_real_home(self, tmp_path: Path) -> None:
        """F32 P3: `--version` runs in private folders and the same environment."""
        program = tmp_path / "codex"
        program.write_text('#!/bin/sh\nenv > "$0.env"\necho codex-cli 1\n')
        program.chmod(0o755)
        around = surroundings(tmp_path, ANTHROPIC_API_KEY="canary", HOME="/canary-home")
        CodexProvider.at(program, around=around)

        seen = (tmp_path / "codex.env").read_text()
        assert "canary" not in seen
        assert f"HOME={around.environ['TMPDIR']}/" in seen
        assert left_behind(around) == []
