"""What a session of Kimi gets by kind of call, and what is frozen for several of them."""

from __future__ import annotations

import json
import stat
import subprocess
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import skill_effectiveness
from skill_effectiveness.evidence.faults import FileError
from skill_effectiveness.providers import (
    CallKind,
    Ending,
    JudgeCall,
    ProviderError,
    ReadCall,
    WorkCall,
)
from skill_effectiveness.providers.calls import SandboxKind
from skill_effectiveness.providers.kimi import KimiProvider, agent_file, argv_of
from skill_effectiveness.providers.mount import Mount
from tests.support.fake_program import VERSION
from tests.support.kimi import (
    TELL,
    configured,
    judged_by,
    message,
    told,
    tool,
    write_kimi,
)
from tests.support.provider_calls import ANSWER, SCHEMA, left_behind, question, surroundings

if TYPE_CHECKING:
    from collections.abc import Callable

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.providers import CallOutcome


@pytest.fixture
def around(tmp_path: Path) -> Surroundings:
    return configured(tmp_path)


@pytest.fixture
def judged(tmp_path: Path) -> Callable[..., CallOutcome]:
    return partial(judged_by, tmp_path)


class TestSessions:
    def test_what_a_judge_sees(
        self, judged: Callable[..., CallOutcome], around: Surroundings, tmp_path: Path
    ) -> None:
        """P3 P9: private folders, the two tables, an agent without tools, no skill, nothing of the user's."""
        user = tmp_path / "home" / ".kimi-code"
        for name in ("AGENTS.md", "mcp.json", "skills/x/SKILL.md", "agents/x.md", "tui.toml"):
            (user / name).parent.mkdir(parents=True, exist_ok=True)
            (user / name).write_text("canary")
        assert judged(TELL).ending is Ending.SUCCESS
        seen = told(tmp_path)

        assert list(seen["config"]) == ["config.toml"]
        assert "foreign-canary" not in json.dumps(seen)
        config = tomllib.loads(seen["config"]["config.toml"])
        assert list(config["models"]) == ["fake-model"]
        assert list(config["providers"]) == ["loop"]
        assert config["permission"] == {"rules": [{"decision": "deny", "scope": "user", "pattern": "*"}]}
        assert config["tools"] == {"enabled": ["none"]}
        assert seen["skills"] == {}
        assert seen["work"] == []
        assert seen["home"] == []
        assert seen["links"] == {}
        assert seen["argv"][:6] == [
            "--model", "fake-model", "--output-format", "stream-json", "--skills-dir", seen["argv"][5],
        ]  # fmt: skip
        assert seen["argv"][6] == "--agent-file"
        assert stat.S_IMODE(seen["modes"].pop("session-owner.json")) == 0o600
        assert stat.S_IMODE(seen["modes"].pop("config/config.toml")) == 0o600
        assert {stat.S_IMODE(mode) for mode in seen["modes"].values()} == {0o700}
        assert left_behind(around) == []

    def test_its_agent(self, judged: Callable[..., CallOutcome], tmp_path: Path) -> None:
        """P9 P12: no tools; the form of the answer is asked for in words."""
        judged(TELL)
        (text,) = told(tmp_path)["agent"].values()

        assert "\ntools: []\n---\n" in text
        assert json.loads(text.splitlines()[-1]) == SCHEMA

    def test_the_environment_is_the_allowlist(self, tmp_path: Path, around: Surroundings) -> None:
        """P3 R33: no credential of anybody's, and the recorded names are the real ones."""
        foreign = dict.fromkeys(
            (
                "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "KIMI_API_KEY", "MOONSHOT_API_KEY", "KIMI_MODEL_NAME",
                "KIMI_CODE_BASE_URL", "AWS_SECRET_ACCESS_KEY", "XDG_CONFIG_HOME", "NODE_OPTIONS", "USER",
                "PYTHONPATH", "LD_LIBRARY_PATH",
            ),
            "foreign-canary",
        )  # fmt: skip
        mine = replace(around, environ={**around.environ, **foreign, "LANG": "C.UTF-8"})
        provider = KimiProvider.at(write_kimi(tmp_path, TELL), around=mine)
        provider.judge(question(), around=mine)
        seen = told(tmp_path)

        assert sorted(seen["env"]) == [
            "HOME", "KIMI_CODE_HOME", "KIMI_CODE_NO_AUTO_UPDATE", "KIMI_DISABLE_TELEMETRY", "LANG", "PATH",
            "SKILL_EFFECTIVENESS_CALL", "TMPDIR",
        ]  # fmt: skip
        assert {*seen["env"]} == {*provider.environment_keys(mine.environ), "SKILL_EFFECTIVENESS_CALL"}
        assert "foreign-canary" not in json.dumps(seen)

    def test_the_login_is_linked(
        self, judged: Callable[..., CallOutcome], around: Surroundings, tmp_path: Path
    ) -> None:
        """P3: tokens, locks and the device; a token that is renewed is not lost with the session."""
        user = tmp_path / "home" / ".kimi-code"
        (user / "credentials").mkdir()
        (user / "oauth").mkdir()
        (user / "credentials" / "kimi-code.json").write_text("old")
        (user / "device_id").write_text("device")
        renew = (
            "place = os.environ['KIMI_CODE_HOME'] + '/credentials/kimi-code.json'\n"
            "open(place + '.tmp', 'w').write('renewed'); os.rename(place + '.tmp', place)\n"
        )
        assert judged(renew + TELL).ending is Ending.SUCCESS

        assert told(tmp_path)["links"] == {
            "credentials": str(user / "credentials"),
            "oauth": str(user / "oauth"),
            "device_id": str(user / "device_id"),
        }
        assert [path.name for path in (user / "credentials").iterdir()] == ["kimi-code.json"]
        assert (user / "credentials" / "kimi-code.json").read_text() == "renewed"
        KimiProvider.at(tmp_path / "kimi", around=around).check_login(around)

    def test_a_login_that_can_be_none(self, around: Surroundings, tmp_path: Path) -> None:
        """P3: said before anything is spent."""
        (tmp_path / "home" / ".kimi-code" / "credentials").write_text("x")
        provider = KimiProvider.at(write_kimi(tmp_path, TELL), around=around)

        with pytest.raises(FileError, match=r"credentials of \.kimi-code in HOME"):
            provider.check_login(around)

    @pytest.mark.slow
    def test_parallel_sessions_share_nothing(self, tmp_path: Path, around: Surroundings) -> None:
        """F41 P3: each call has a home of its own, also at the same time."""
        body = (
            "mine = os.environ['KIMI_CODE_HOME'] + '/mine'\n"
            "open(mine, 'x').write(prompt)\ntime.sleep(0.5)\n"
            "good[1]['content'] = open(mine).read()\nsay(*good)"
        )
        provider = KimiProvider.at(write_kimi(tmp_path, body), around=around)

        with ThreadPoolExecutor(3) as pool:
            answers = pool.map(lambda n: provider.judge(question(f"q {n}"), around=around).answer, range(3))
            assert list(answers) == ["q 0", "q 1", "q 2"]


class TestFrozenModel:
    def test_the_configuration_is_read_once(self, tmp_path: Path, around: Surroundings) -> None:
        """R34 F37: editing it between repeats changes no session and nothing that is sealed."""
        provider = KimiProvider.at(write_kimi(tmp_path, TELL), around=around)
        assert provider.binding is None
        frozen = provider.for_model("fake-model", around)
        before = frozen.binding
        place = tmp_path / "home" / ".kimi-code" / "config.toml"
        place.write_text(place.read_text().replace("underlying-model", "another-model"))

        assert frozen.judge(question(), around=around).ending is Ending.SUCCESS
        assert "underlying-model" in told(tmp_path)["config"]["config.toml"]
        assert frozen.binding == before
        assert before is not None
        assert before.underlying_model == "underlying-model"
        assert provider.for_model("fake-model", around).binding != before
        place.unlink()
        assert frozen.judge(question(), around=around).ending is Ending.SUCCESS

    def test_another_model_than_the_frozen_one(self, tmp_path: Path, around: Surroundings) -> None:
        """P2: nothing is started."""
        frozen = KimiProvider.at(write_kimi(tmp_path, TELL), around=around).for_model("fake-model", around)
        outcome = frozen.judge(question(model="other"), around=around)

        assert outcome.ending is Ending.UNSTARTABLE
        assert "frozen for 'fake-model'" in outcome.warnings[0].text
        assert not (tmp_path / "told.json").exists()

    def test_a_model_that_is_not_configured(self, tmp_path: Path, around: Surroundings) -> None:
        """P2: refused before anything is spent, and again if it is asked for all the same."""
        provider = KimiProvider.at(write_kimi(tmp_path, TELL), around=around)
        with pytest.raises(ProviderError, match="have no table 'unknown'"):
            provider.for_model("unknown", around)
        outcome = provider.judge(question(model="unknown"), around=around)

        assert outcome.ending is Ending.UNSTARTABLE
        assert [warning.code.value for warning in outcome.warnings] == ["session_unavailable"]
        assert not (tmp_path / "told.json").exists()

    def test_without_a_configuration(self, tmp_path: Path) -> None:
        """P2: it can be bound, and not asked."""
        around = surroundings(tmp_path)
        provider = KimiProvider.at(write_kimi(tmp_path, TELL), around=around)

        assert provider.executable.version == VERSION
        assert provider.judge(question(), around=around).ending is Ending.UNSTARTABLE


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)  # noqa: S603, S607 - fixed words
    (folder / "AGENTS.md").write_text("instruction-canary")
    return folder


class TestReading:
    def read(
        self, tmp_path: Path, around: Surroundings, checkout: Path, body: str = TELL, **given: object
    ) -> CallOutcome:
        provider = KimiProvider.at(write_kimi(tmp_path, body, **given), around=around)
        call = ReadCall("Read it.", checkout, "fake-model", 20, SCHEMA)
        outcome = provider.read(call, around=around)
        assert left_behind(around) == []
        return outcome

    def test_what_a_reader_gets(self, tmp_path: Path, around: Surroundings, checkout: Path) -> None:
        """P13: the checkout as its folder, four tools, an agent in the place of everything it says."""
        outcome = self.read(tmp_path, around, checkout)
        seen = told(tmp_path)

        assert (outcome.ending, outcome.answer) == (Ending.SUCCESS, ANSWER)
        assert outcome.sandbox is SandboxKind.PERMISSIONS_ONLY
        assert seen["cwd"] == str(checkout)
        assert seen["work"] == [".git", "AGENTS.md"]
        (agent,) = seen["agent"].values()
        assert '\ntools: ["Read", "Grep", "Glob", "Bash"]\n---\n' in agent
        config = tomllib.loads(seen["config"]["config.toml"])
        assert config["tools"] == {"enabled": ["Read", "Grep", "Glob", "Bash"]}
        assert [rule["pattern"] for rule in config["permission"]["rules"]] == [
            "Read", "Grep", "Glob", "Bash", "*",
        ]  # fmt: skip
        assert config["permission"]["rules"][-1]["decision"] == "deny"

    def test_tools_are_no_violation(self, tmp_path: Path, around: Surroundings, checkout: Path) -> None:
        """P13: the answer is the text after the last of them."""
        body = "say(good[0], early, *used, *good[1:])"
        outcome = self.read(tmp_path, around, checkout, body, used=tool(), early=message("Let me see."))

        assert (outcome.ending, outcome.answer) == (Ending.SUCCESS, ANSWER)

    def test_a_text_before_a_tool_is_no_answer(
        self, tmp_path: Path, around: Surroundings, checkout: Path
    ) -> None:
        """F6 P6: it ended on a tool's result."""
        outcome = self.read(tmp_path, around, checkout, "say(*good[:2], *used, good[2])", used=tool())

        assert outcome.ending is Ending.NO_ANSWER

    def test_another_model_is_recorded_and_no_error(
        self, tmp_path: Path, around: Surroundings, checkout: Path
    ) -> None:
        """P13 F37: told, and no error in a read call."""
        body = "keep({'type': 'llm.request', 'modelAlias': 'other'})\nsay(*good)"
        outcome = self.read(tmp_path, around, checkout, body)

        assert (outcome.ending, outcome.observed_model) == (Ending.SUCCESS, "other")


class TestWorking:
    def work(
        self,
        tmp_path: Path,
        around: Surroundings,
        checkout: Path,
        *,
        mount: Mount | None = None,
        schema: dict[str, object] | None = None,
        body: str = TELL,
    ) -> CallOutcome:
        provider = KimiProvider.at(write_kimi(tmp_path, body, used=tool("Write")), around=around)
        call = WorkCall("Do it.", checkout, "fake-model", 20, schema, mount)
        outcome = provider.work(call, around=around)
        assert left_behind(around) == []
        return outcome

    def test_without_a_mount(self, tmp_path: Path, around: Surroundings, checkout: Path) -> None:
        """P13: the program's own agent, no skill, no instruction, nothing written by us; no web."""
        assert self.work(tmp_path, around, checkout).ending is Ending.SUCCESS
        seen = told(tmp_path)

        assert seen["cwd"] == str(checkout)
        assert seen["work"] == [".git", "AGENTS.md"]
        assert "--agent-file" not in seen["argv"]
        assert seen["argv"][-1] == "Do it."
        assert seen["skills"] == {}
        assert list(seen["config"]) == ["config.toml"]
        config = tomllib.loads(seen["config"]["config.toml"])
        assert config["tools"] == {"disabled": ["WebSearch", "FetchURL"]}
        assert [(rule["decision"], rule["pattern"]) for rule in config["permission"]["rules"]] == [
            ("deny", "WebSearch"),
            ("deny", "FetchURL"),
            ("allow", "*"),
        ]

    def test_with_a_mount(self, tmp_path: Path, around: Surroundings, checkout: Path) -> None:
        """P13 F33: its skills and its instructions, in the session's folders alone."""
        skill = tmp_path / "skills" / "review-work"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text("skill-text")
        mount = Mount((skill,), "arm-instructions")
        self.work(tmp_path, around, checkout, mount=mount)
        seen = told(tmp_path)

        assert seen["skills"] == {"review-work/SKILL.md": "skill-text"}
        assert seen["config"].pop("AGENTS.md") == "arm-instructions"
        assert list(seen["config"]) == ["config.toml"]
        assert seen["work"] == [".git", "AGENTS.md"]

    def test_a_form_for_the_answer(self, tmp_path: Path, around: Surroundings, checkout: Path) -> None:
        """P12: asked for at the end of the prompt."""
        self.work(tmp_path, around, checkout, schema=SCHEMA)
        *first, last = told(tmp_path)["argv"][-1].splitlines()

        assert first[0] == "Do it."
        assert json.loads(last) == SCHEMA

    def test_it_may_change_things(self, tmp_path: Path, around: Surroundings, checkout: Path) -> None:
        """P13: tools are what it is for."""
        body = "open('made', 'w').write('x')\nsay(good[0], *used, *good[1:])"
        outcome = self.work(tmp_path, around, checkout, body=body)

        assert (outcome.ending, outcome.answer) == (Ending.SUCCESS, ANSWER)
        assert (checkout / "made").read_text() == "x"

    def test_a_skill_that_is_none(self, tmp_path: Path, around: Surroundings, checkout: Path) -> None:
        """P13: nothing is started with half an arm."""
        (tmp_path / "empty").mkdir()
        outcome = self.work(tmp_path, around, checkout, mount=Mount((tmp_path / "empty",)))

        assert outcome.ending is Ending.UNSTARTABLE
        assert not (tmp_path / "told.json").exists()


PACKAGE = Path(next(iter(skill_effectiveness.__path__)))


class TestDeclarations:
    @pytest.mark.parametrize(
        "word",
        [
            "KIMI_CODE_HOME",
            "KIMI_DISABLE_TELEMETRY",
            "device_id",
            "--agent-file",
            "--skills-dir",
            "max_attempts_per_step",
            "session.resume_hint",
            "usage.record",
            "provider.rate_limit",
        ],
    )
    def test_its_words_stand_in_its_files_alone(self, word: str) -> None:
        """P1: arguments, variables, files and events."""
        found = {path.name for path in PACKAGE.rglob("*.py") if word in path.read_text("utf-8")}

        assert found
        assert found <= {"kimi.py", "kimi_config.py", "kimi_events.py"}

    def test_labels(self) -> None:
        """P9 R32 P13: what is known of its sessions and tools, and the calls it holds."""
        assert KimiProvider.name == "kimi"
        assert KimiProvider.family == "moonshot"
        assert KimiProvider.session_label == "private-kimi-home-explicit-model-stream"
        assert KimiProvider.tool_label == "config-denied-stream-audited-detection-only"
        assert KimiProvider.call_kinds == {CallKind.JUDGE, CallKind.READ, CallKind.WORK}

    def test_words_of_a_schema_are_not_filled_in(self) -> None:
        """P12: the program would put values of its own into `${name}`."""
        schema = JudgeCall("x", {"const": "${cwd}"}, "m", 1).schema_bytes()
        text = agent_file("reviewer", "Answer.", (), schema).decode()

        assert "${" not in text
        assert json.loads(text.splitlines()[-1]) == {"const": "${cwd}"}

    def test_the_arguments(self, tmp_path: Path) -> None:
        """P4: the model, the surface, and the prompt last."""
        assert argv_of(tmp_path / "kimi", "m", "Do it.", tmp_path / "s", None) == [
            str(tmp_path / "kimi"), "--model", "m", "--output-format", "stream-json",
            "--skills-dir", str(tmp_path / "s"), "-p", "Do it.",
        ]  # fmt: skip
