"""What programs, servers and files do that mean harm: to time, to records, to which program runs."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.execution import Sandbox
from skill_effectiveness.providers import (
    CallKind,
    Ending,
    ProviderError,
    SandboxKind,
    WarningCode,
    WorkCall,
)
from skill_effectiveness.providers.asking import CannotAskError
from skill_effectiveness.providers.codex import read_event
from skill_effectiveness.providers.events import SkillRead, TurnFailed
from skill_effectiveness.providers.kimi_config import select
from skill_effectiveness.providers.kimi_events import read_stderr
from skill_effectiveness.providers.kimi_project import demand_own_project
from tests.support.claude_streams import GOOD as CLAUDE_GOOD
from tests.support.claude_streams import MODEL, TOTALS, said
from tests.support.fake_claude import asked
from tests.support.fake_program import write_fake
from tests.support.kimi import configured
from tests.support.provider_calls import codes, left_behind
from tests.support.small_adapter import GOOD, Place, Small

if TYPE_CHECKING:
    from skill_effectiveness.execution import ProcessResult

MEGABYTE = 1024 * 1024
SOON = 5.0
"""Seconds within which a text of megabytes is read; read badly it would take hours."""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


class TestTime:
    """A line that is within every limit cannot keep us busy for longer than the call may take."""

    @pytest.mark.parametrize(
        "command",
        ["a" * (8 * MEGABYTE), "a/SKILL.md " * MEGABYTE, "/SKILL.md" * MEGABYTE, "SKILL.md/" * MEGABYTE],
        ids=["one word", "mentions", "mentions without a folder", "folders"],
    )
    def test_a_command_of_megabytes(self, command: str) -> None:
        """P5 F17: codex prints the whole command, and a model may make it as long as it likes."""
        item = {"id": "i", "type": "command_execution", "command": command}
        began = time.monotonic()
        events = read_event({"type": "item.completed", "item": cast("Any", item)}, b"")

        assert time.monotonic() - began < SOON
        assert len(events) <= 1001

    def test_as_many_skills_as_anybody_could_read(self) -> None:
        """P5: a line cannot become millions of events."""
        item = {"type": "command_execution", "command": " ".join(f"s{n}/SKILL.md" for n in range(5000))}
        events = read_event({"type": "item.completed", "item": cast("Any", item)}, b"")

        assert [event.skill for event in events if isinstance(event, SkillRead)] == [
            f"s{number}" for number in range(1000)
        ]

    @pytest.mark.parametrize("filling", ["\n", "error: failed to run prompt: ", "\nSee log: ", "x"])
    def test_a_failure_of_megabytes(self, filling: str) -> None:
        """P5 F17: kimi's stderr holds what its tools print too."""
        text = "error: failed to run prompt: " + filling * (MEGABYTE // len(filling)) + "x"
        process = cast("ProcessResult", SimpleNamespace(exit_code=1, stderr=text.encode()))
        began = time.monotonic()

        assert [type(event) for event in read_stderr(process)] == [TurnFailed]
        assert time.monotonic() - began < SOON

    @pytest.mark.parametrize(
        ("stderr", "message"),
        [
            ("error: failed to run prompt: a\nb\nSee log: /x\n\n", "a\nb"),
            ("error: failed to run prompt: a\nSee log: /x\nb\n", "a\nSee log: /x\nb"),
            ("x\nerror: failed to run prompt: one\nerror: failed to run prompt: two\n", "two"),
            ("error: failed to run prompt: See log: /x", "See log: /x"),
            ("error: failed to run prompt: a\n\nSee log: /x", "a"),
        ],
    )
    def test_the_last_failure_as_it_was_told(self, stderr: str, message: str) -> None:
        """P7: the last opening counts, and the pointer to a log at the very end is no part of it."""
        process = cast("ProcessResult", SimpleNamespace(exit_code=1, stderr=stderr.encode()))

        assert read_stderr(process) == [TurnFailed(message)]

    def test_an_opening_inside_a_line_is_none(self) -> None:
        process = cast(
            "ProcessResult", SimpleNamespace(exit_code=1, stderr=b"x error: failed to run prompt: a")
        )

        assert read_stderr(process) == []


TABLES = "[providers.p]\n[models.fake-model]\nprovider = 'p'\nmodel = 'm'\n"


class TestConfigurations:
    @pytest.mark.parametrize(
        "text",
        [
            "a = " + "9" * 5000,
            "a = " + "[" * 100_000,
            "a = [" * 2 + "1" + "]" * 2,
            "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
            "[models.fake-model]\nprovider = 1979-05-27\n",
            "[models.fake-model]\nprovider = 'p'\nmodel = 'm'\nx = "
            + "[" * 200
            + "]" * 200
            + "\n[providers.p]\n",
            "[models.fake-model]\nprovider = 'p'\nmodel = 'm'\nx = 0x" + "f" * 3000 + "\n[providers.p]\n",
        ],
        ids=["digits", "brackets", "form", "bytes", "time", "deep", "hexadecimal"],
    )
    def test_what_is_no_configuration(self, tmp_path: Path, text: str) -> None:
        """P2 F37: refused in one sentence, whatever is wrong with it."""
        around = configured(tmp_path)
        (tmp_path / "home" / ".kimi-code" / "config.toml").write_text(text, encoding="latin-1")

        with pytest.raises(ProviderError, match="cannot be used"):
            select("fake-model", around)

    def test_a_key_that_no_file_can_hold(self, tmp_path: Path) -> None:
        """P2 P7: refused as well, and not told."""
        around = configured(tmp_path)
        text = TABLES.replace("[providers.p]", "[providers.p]\napi_key_env = 'K'")
        (tmp_path / "home" / ".kimi-code" / "config.toml").write_text(text)
        around = replace(around, environ={**around.environ, "K": "secret\udcff"})

        with pytest.raises(ProviderError, match="cannot be used") as caught:
            select("fake-model", around)
        assert "secret" not in str(caught.value)


class TestRecords:
    """What a program or a server says about itself fits into the records, or is unknown."""

    @pytest.mark.parametrize(
        "model", ["", " ", "x" * 257, "a\nb", "\x1b[31m", "\u202e"], ids=["", "b", "long", "lf", "esc", "rtl"]
    )
    def test_a_model_whose_name_is_none(self, tmp_path: Path, model: str) -> None:
        """P2: another model, and a name that any record can hold."""
        body = "say(good[0], other, *good[1:])"
        outcome = asked(tmp_path, body, other=said({"type": "text", "text": "x"}, model=model))

        assert outcome.ending is Ending.MODEL_MISMATCH
        assert outcome.observed_model in {"unreadable", MODEL}

    def test_a_reader_is_told_that_much(self, tmp_path: Path) -> None:
        """P13: a difference is recorded there, under a name that can be recorded."""
        other = said({"type": "text", "text": "x"}, model="x" * 300)
        outcome = asked(tmp_path, "say(reading, other, done)", kind=CallKind.READ, other=other)

        assert (outcome.ending, outcome.observed_model) == (Ending.SUCCESS, "unreadable")

    @pytest.mark.parametrize(
        ("totals", "unknown"),
        [
            ({"inputTokens": 2**53 - 1}, {"input_tokens"}),
            (
                {"costUSD": 1, "outputTokens": 2**53 - 1, "thinkingTokens": 2**53 - 1},
                {"output_tokens", "reasoning_output_tokens"},
            ),
        ],
    )
    def test_counters_that_add_up_to_nonsense(
        self, tmp_path: Path, totals: dict[str, Any], unknown: set[str]
    ) -> None:
        """P8: what no session uses tells nothing of its kind, and the answer stands."""
        two = {"one": TOTALS | totals, "two": TOTALS | totals}
        last = {**CLAUDE_GOOD[-1], "modelUsage": two}
        outcome = asked(tmp_path, "say(*good[:-1], last)", last=last)

        assert outcome.ending is Ending.SUCCESS
        assert {name for name, value in asdict(outcome.usage).items() if value is None} >= unknown
        assert outcome.usage.cached_input_tokens == 2 * TOTALS["cacheReadInputTokens"]

    @pytest.mark.parametrize("cost", [-1.0, 2.0**60])
    def test_a_price_that_is_none(self, tmp_path: Path, cost: float) -> None:
        """P8: likewise."""
        last = {**CLAUDE_GOOD[-1], "total_cost_usd": cost}
        assert asked(tmp_path, "say(*good[:-1], last)", last=last).usage.cost_units is None


ASKED_FOR_VERSION = "    sys.exit(0)"


class TestWhichProgramRuns:
    """The bytes that were bound are the bytes that run, or nothing does."""

    def changing(self, place: Place, deed: str) -> Small:
        """A program, bound, that does something when it is asked for its version, once `now` is there."""
        path = place.small(GOOD + "open(folder + '/ran', 'w')").executable.path
        mark = str(place.tmp_path / "now")
        line = f"    os.path.exists({mark!r}) and {deed}\n{ASKED_FOR_VERSION}"
        path.write_text(path.read_text().replace(ASKED_FOR_VERSION, line, 1))
        small = Small.at(path, around=place.around)
        (place.tmp_path / "now").touch()
        return small

    @pytest.mark.parametrize(
        "deed",
        ["os.replace(__file__ + '.new', __file__)", "os.unlink(__file__)", "open(__file__, 'a').write('#')"],
        ids=["replaced", "removed", "changed"],
    )
    def test_one_that_becomes_another(self, place: Place, deed: str) -> None:
        """P2: between the look at its bytes and the call; such programs renew themselves when they start."""
        write_fake(place.tmp_path / "program.new", "open(folder + '/ran', 'w')", folder=str(place.tmp_path))
        outcome = place.ask(self.changing(place, deed))

        assert (outcome.ending, codes(outcome)) == (Ending.UNSTARTABLE, ["executable_changed"])
        assert not (place.tmp_path / "ran").exists()

    def test_the_same_bytes_in_another_file_are_the_same(self, place: Place) -> None:
        """P2: a program that was touched or linked meanwhile is still the one that was bound."""
        outcome = place.ask(self.changing(place, "os.utime(__file__)"))

        assert (outcome.ending, outcome.answer) == (Ending.SUCCESS, "yes")


class TestFolders:
    @pytest.mark.slow
    def test_a_working_copy_behind_a_link(self, tmp_path: Path) -> None:
        """P13: inside the sandbox it is where it is, whatever it was called."""
        place = Place(tmp_path)
        if Sandbox.found(place.around) is None:
            pytest.skip("bubblewrap is not here, or not allowed to work")
        link = tmp_path / "link"
        link.symlink_to(place.folder)
        small = place.small(GOOD + "open('made', 'w').write(os.getcwd())")
        small.writable = (link,)
        readable = (small.executable.path.parent, *_interpreter())
        call = WorkCall("Mend.", link, "fake-model", 20, read_roots=readable)
        outcome = small.work(call, around=place.around)

        assert outcome.sandbox is SandboxKind.BUBBLEWRAP
        assert outcome.ending is Ending.SUCCESS, outcome.warnings
        assert (place.folder / "made").read_text() == str(place.folder)
        assert left_behind(place.around) == []


def _interpreter() -> tuple[Path, ...]:
    return (Path(sys.executable).parents[1], Path(sys.executable).resolve().parents[1])


class TestKimisProjects:
    """A worker hears what its working copy says, and nobody whose repository that happens to lie in."""

    @pytest.fixture
    def copy(self, tmp_path: Path) -> Path:
        folder = tmp_path / "outer" / "between" / "copy"
        folder.mkdir(parents=True)
        return folder

    def refused(self, copy: Path) -> bool:
        with suppress(CannotAskError):
            demand_own_project(RealFs(), copy)
            return False
        return True

    def test_the_reason_names_no_path(self, copy: Path) -> None:
        """P7: it is told in one sentence."""
        (copy.parent / ".git").mkdir()
        (copy.parent / "AGENTS.md").touch()
        with pytest.raises(CannotAskError) as caught:
            demand_own_project(RealFs(), copy)
        assert caught.value.code is WarningCode.SESSION_UNAVAILABLE
        assert str(copy.parent) not in caught.value.sentence

    @pytest.mark.parametrize("what", [".kimi-code", ".agents", "AGENTS.md", "agents.md"])
    @pytest.mark.parametrize("where", ["outer", "outer/between"])
    def test_one_inside_of_a_repository_that_speaks(
        self, tmp_path: Path, copy: Path, what: str, where: str
    ) -> None:
        """F31 F32: refused before anything is started."""
        (tmp_path / "outer" / ".git").mkdir()
        (tmp_path / where / what).mkdir()

        assert self.refused(copy)

    @pytest.mark.parametrize("pointer", ["gitdir: /somewhere\n", "\n gitdir:x"])
    def test_a_repository_of_its_own(self, tmp_path: Path, copy: Path, pointer: str) -> None:
        """P13: what it says itself belongs to the task; a worktree is one too."""
        (tmp_path / "outer" / ".git").mkdir()
        (tmp_path / "outer" / "AGENTS.md").touch()
        (copy / ".git").write_text(pointer)
        assert not self.refused(copy)
        (copy / ".git").unlink()
        (copy / ".git").mkdir()
        assert not self.refused(copy)

    def test_what_only_looks_like_one(self, tmp_path: Path, copy: Path) -> None:
        """F32: the program looks further up then."""
        (tmp_path / "outer" / ".git").mkdir()
        (tmp_path / "outer" / "AGENTS.md").touch()
        (copy / ".git").write_text("nothing")
        assert self.refused(copy)
        (copy / ".git").unlink()
        (copy / ".git").symlink_to(tmp_path / "nowhere")
        assert self.refused(copy)

    def test_a_repository_that_says_nothing(self, tmp_path: Path, copy: Path) -> None:
        (tmp_path / "outer" / ".git").mkdir()
        assert not self.refused(copy)

    def test_instructions_above_without_a_repository(self, tmp_path: Path, copy: Path) -> None:
        """F32: the program does not look there."""
        (tmp_path / "outer" / "AGENTS.md").touch()
        assert not self.refused(copy)

    def test_one_that_is_reached_by_a_link(self, tmp_path: Path, copy: Path) -> None:
        """F32: where it really lies is what counts."""
        (tmp_path / "outer" / ".git").mkdir()
        (tmp_path / "outer" / "AGENTS.md").touch()
        (tmp_path / "link").symlink_to(copy)
        assert self.refused(tmp_path / "link")
