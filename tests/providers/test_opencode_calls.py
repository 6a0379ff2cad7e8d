"""Whole calls against a small program that prints and exports what opencode would, and errs in one way."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.providers import (
    CallKind,
    CallOutcome,
    Ending,
    Mount,
    ReadCall,
    SandboxKind,
    Usage,
    WorkCall,
)
from skill_effectiveness.providers.opencode import OpenCodeProvider
from tests.support.opencode_fake import (
    GOOD_PARTS,
    MODEL,
    REVIEWER,
    SESSION,
    exported,
    failed,
    line,
    part,
    starts,
    step_finish,
    step_start,
    stream,
    text,
    tool,
    with_ripgrep,
    write_opencode,
)
from tests.support.provider_calls import ANSWER, codes, left_behind, question, surroundings

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings

FINISHED = step_finish("tool-calls")


def asked(
    tmp_path: Path,
    body: str = "say(*good)",
    *,
    model: str = MODEL,
    prompt: str = "Which is better?",
    around: Surroundings | None = None,
    export: dict[str, Any] | str | None = None,
    **constants: object,
) -> CallOutcome:
    """One judge call of the fake."""
    around = around or with_ripgrep(tmp_path)
    provider = OpenCodeProvider.at(write_opencode(tmp_path, body, export=export, **constants), around=around)
    outcome = provider.judge(question(prompt, model=model), around=around)
    assert left_behind(around) == []
    return outcome


def starts_so_far(tmp_path: Path) -> list[dict[str, Any]]:
    """How the fake was started, none before its first start."""
    return starts(tmp_path) if (tmp_path / "starts.jsonl").exists() else []


def printed(tmp_path: Path, *parts: dict[str, Any]) -> CallOutcome:
    """One judge call of a program that prints these parts and exports the same ones."""
    return asked(tmp_path, "say(*lines)", lines=stream(*parts), export=exported(*parts))


def worked(
    tmp_path: Path, *, mount: Mount | None = None, schema: dict[str, Any] | None = None
) -> CallOutcome:
    """One work call, whose program keeps what lies in its folders in the test's own."""
    copy = tmp_path / "copy"
    copy.mkdir()
    around = with_ripgrep(tmp_path)
    body = (
        "import shutil\n"
        "shutil.copytree(os.environ['XDG_CONFIG_HOME'], folder + '/config')\n"
        "shutil.copytree(os.environ['XDG_DATA_HOME'], folder + '/data')\n"
        "say(*good)"
    )
    program = write_opencode(tmp_path, body, export=exported(*GOOD_PARTS, agent="worker"))
    provider = OpenCodeProvider.at(program, around=around)
    call = WorkCall("Do it.", copy, MODEL, 20, answer_schema=schema, mount=mount)
    outcome = provider.work(call, around=around)
    assert [*copy.iterdir()] == []
    assert left_behind(around) == []
    return outcome


class TestGoodCalls:
    def test_an_answer_comes_back(self, tmp_path: Path) -> None:
        """P2 P6 P8: text, usage, session, model, exit code, and both recordings."""
        outcome = asked(tmp_path)

        assert outcome.ending is Ending.SUCCESS
        assert outcome.answer == ANSWER
        assert outcome.usage == Usage(1200, 200, 34, 5, None)
        assert outcome.session_id == SESSION
        assert outcome.observed_model == MODEL
        assert outcome.exit_code == 0
        assert outcome.warnings == ()
        assert outcome.recording is not None
        assert outcome.recording.stdout == b"".join(
            json.dumps(document).encode() + b"\n" for document in stream(*GOOD_PARTS)
        )
        assert json.loads(outcome.recording.export or b"") == exported(*GOOD_PARTS)

    def test_the_prompt_arrives_on_stdin_and_nowhere_else(self, tmp_path: Path) -> None:
        """P4: above the size of a pipe; no argument, no variable."""
        prompt = "canary-prompt " + "é" * 100_000
        outcome = asked(tmp_path, "open(folder + '/got', 'w').write(prompt)\nsay(*good)", prompt=prompt)

        assert outcome.ending is Ending.SUCCESS
        assert (tmp_path / "got").read_text() == prompt
        assert "canary-prompt" not in (tmp_path / "starts.jsonl").read_text()

    def test_the_arguments(self, tmp_path: Path) -> None:
        """P2 P13: an explicit model, an agent of our own, a title, so that no model is asked for one."""
        asked(tmp_path)

        ran, export = [start["argv"] for start in starts(tmp_path)]
        assert ran == [
            "run", "--format", "json", "--model", MODEL, "--agent", REVIEWER, "--title", "session",
        ]  # fmt: skip
        assert export == ["export", SESSION]

    def test_a_long_line_and_a_split_character(self, tmp_path: Path) -> None:
        """F17 F20: 70,000 bytes; one character in two writes."""
        answer = "ü" + "x" * 70_000
        parts = [step_start(), text(answer), step_finish()]
        body = (
            "line = json.dumps(lines[1], ensure_ascii=False).encode()\n"
            "cut = line.index('ü'.encode()) + 1\n"
            "say(lines[0]); raw(line[:cut]); time.sleep(0.1); raw(line[cut:] + b'\\n'); say(lines[2])"
        )
        outcome = asked(tmp_path, body, lines=stream(*parts), export=exported(*parts))

        assert outcome.answer == answer

    def test_what_the_agent_of_a_judge_is(self, tmp_path: Path) -> None:
        """P9 R32: every tool denied, in the agent and for every other; the form is asked for in words."""
        body = (
            "place = os.environ['XDG_CONFIG_HOME'] + '/opencode/'\n"
            "open(folder + '/agent.md', 'w').write(open(place + 'agent/reviewer-calibration.md').read())\n"
            "open(folder + '/config.json', 'w').write(open(place + 'opencode.json').read())\n"
            "assert sorted(os.listdir(place)) == ['agent', 'opencode.json']\n"
            "assert os.path.isfile('.git/HEAD')\n"
            "say(*good)"
        )
        outcome = asked(tmp_path, body)

        assert outcome.ending is Ending.SUCCESS
        _, head, words = (tmp_path / "agent.md").read_text().split("---\n")
        assert head == 'description: "reviewer-calibration"\nmode: "primary"\npermission: {"*": "deny"}\n'
        assert '"enum":["A win","B win","tie"]' in words
        settings = json.loads((tmp_path / "config.json").read_text())
        assert settings == {
            "autoupdate": False,
            "compaction": {"auto": False},
            "enabled_providers": ["fake"],
            "formatter": False,
            "lsp": False,
            "permission": {"*": "deny"},
            "share": "disabled",
            "small_model": MODEL,
            "snapshot": False,
        }

    def test_the_labels(self) -> None:
        """P9 P13 R32: what is known of sessions and tools, and the kinds that are held."""
        assert OpenCodeProvider.session_label == "private-xdg-explicit-model-export"
        assert OpenCodeProvider.tool_label == "agent-disabled-observed-none"
        assert OpenCodeProvider.call_kinds == {CallKind.JUDGE, CallKind.READ, CallKind.WORK}
        assert not OpenCodeProvider.json_fence


class TestBadStreams:
    def test_exit_0_and_zero_bytes(self, tmp_path: Path) -> None:
        """F12: no_answer; nothing is exported, for there is no session."""
        outcome = asked(tmp_path, "")

        assert outcome.ending is Ending.NO_ANSWER
        assert len(starts(tmp_path)) == 1

    def test_exit_0_with_a_provider_error(self, tmp_path: Path) -> None:
        """F13: provider_error, retryable."""
        error = failed(message="slow", statusCode=429, isRetryable=True)
        outcome = asked(tmp_path, "say(*good, error)", error=error)

        assert outcome.ending is Ending.PROVIDER_ERROR
        assert outcome.error_kind == "rate_limited"
        assert outcome.retryable

    def test_a_good_stream_with_a_bad_exit(self, tmp_path: Path) -> None:
        """P6: exit code 7 is no success."""
        assert asked(tmp_path, "say(*good)\nsys.exit(7)").ending is Ending.STREAM_INVALID

    def test_an_answer_without_a_word(self, tmp_path: Path) -> None:
        """F16: the terminal marker, and nothing said."""
        assert printed(tmp_path, step_start(), text(" \n"), step_finish()).ending is Ending.NO_ANSWER

    @pytest.mark.parametrize("reason", ["length", "tool-calls"])
    def test_another_reason_than_stop_is_no_answer(self, tmp_path: Path, reason: str) -> None:
        """P6: half an answer is none, and is not searched for one."""
        outcome = printed(tmp_path, step_start(), text(), step_finish(reason))

        assert outcome.ending is Ending.NO_ANSWER
        assert outcome.usage == Usage(1200, 200, 34, 5, None)

    def test_a_step_without_an_end(self, tmp_path: Path) -> None:
        """F15 P6: no terminal marker although the exit code is 0."""
        assert printed(tmp_path, step_start(), text()).ending is Ending.STREAM_INVALID

    def test_a_later_step_takes_the_terminal_marker_back(self, tmp_path: Path) -> None:
        """F15: what was whole before the model was asked again no longer is."""
        again = step_start("5")

        assert printed(tmp_path, *GOOD_PARTS, again).ending is Ending.STREAM_INVALID

    def test_half_a_line_at_the_end(self, tmp_path: Path) -> None:
        """P5 P6: cut in the middle."""
        assert asked(tmp_path, "say(*good); raw(b'{')").ending is Ending.STREAM_INVALID

    def test_half_a_character_in_an_answer(self, tmp_path: Path) -> None:
        """F18: kept without loss, and the call does not count."""
        outcome = printed(tmp_path, step_start(), text("x\ud800"), step_finish())

        assert outcome.ending is Ending.STREAM_INVALID
        assert outcome.recording is not None
        assert b'"x\\ud800"' in outcome.recording.stdout

    def test_two_sessions_in_one_stream(self, tmp_path: Path) -> None:
        """P6: nobody can tell which one answered."""
        other = line("step_start", part("9", "step-start") | {"sessionID": "ses_other"}, session="ses_other")
        outcome = asked(tmp_path, "say(other, *good)", other=other)

        assert outcome.ending is Ending.STREAM_INVALID
        assert outcome.session_id is None

    def test_an_event_that_nobody_knows_is_recorded(self, tmp_path: Path) -> None:
        """P5: typed as unknown, never dropped."""
        outcome = asked(tmp_path, "say(news, *good)", news=line("news", part("9", "news")))

        assert outcome.ending is Ending.SUCCESS
        assert [(warning.code, warning.text) for warning in outcome.warnings] == [("unknown_event", "news")]

    def test_a_server_that_counts_nothing(self, tmp_path: Path) -> None:
        """F40: zeros are not a price, and not a count."""
        nothing = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
        outcome = printed(tmp_path, step_start(), text(), step_finish(tokens=nothing))

        assert outcome.ending is Ending.SUCCESS
        assert outcome.usage == Usage()

    @pytest.mark.slow
    def test_a_program_that_does_not_exit(self, tmp_path: Path) -> None:
        """F6: whole, so it counts; the tree is killed and the export is still asked for."""
        outcome = asked(tmp_path, "say(*good); time.sleep(600)")

        assert outcome.ending is Ending.SUCCESS
        assert codes(outcome) == ["lingered"]
        assert outcome.observed_model == MODEL

    @pytest.mark.slow
    def test_a_program_that_goes_silent_behind_a_tool(self, tmp_path: Path) -> None:
        """F6 F11: no terminal marker; the wall limit ends it, and nothing else does."""
        lines = stream(step_start(), tool(), FINISHED)
        around = with_ripgrep(tmp_path)
        program = write_opencode(tmp_path, "say(*lines); time.sleep(600)", lines=lines)
        provider = OpenCodeProvider.at(program, around=around)
        checkout = tmp_path / "checkout"
        checkout.mkdir()
        outcome = provider.read(ReadCall("Read.", checkout, MODEL, 3), around=around)

        assert outcome.ending is Ending.TIMEOUT
        assert left_behind(around) == []


class TestTheExport:
    """A stream that looks well says nothing about who answered."""

    def test_another_agent_is_seen(self, tmp_path: Path) -> None:
        """P2 P6 R31: the program falls back silently, with exit code 0."""
        outcome = asked(tmp_path, export=exported(*GOOD_PARTS, agent="build"))

        assert outcome.ending is Ending.STREAM_INVALID
        assert set(codes(outcome)) == {"surface_differs"}
        assert "'build', not 'reviewer-calibration'" in outcome.warnings[0].text

    def test_another_model_is_seen(self, tmp_path: Path) -> None:
        """P2 F37 R31: the session was kept under another one."""
        outcome = asked(tmp_path, export=exported(*GOOD_PARTS, model="fake/other"))

        assert outcome.ending is Ending.MODEL_MISMATCH
        assert outcome.observed_model == "fake/other"

    def test_a_tool_that_was_never_printed_is_seen(self, tmp_path: Path) -> None:
        """P9 R31: the stream alone is not a full record."""
        outcome = asked(tmp_path, export=exported(*GOOD_PARTS, tool("bash", "completed", "7")))

        assert outcome.ending is Ending.TOOL_ACTIVITY

    def test_another_text_is_seen(self, tmp_path: Path) -> None:
        """P6: an export that disagrees."""
        outcome = asked(tmp_path, export=exported(step_start(), text("{}"), step_finish()))

        assert outcome.ending is Ending.STREAM_INVALID

    def test_our_stop_while_it_is_exported(self, tmp_path: Path) -> None:
        """P6: cancelled; what could not be looked at for that reason is nothing that the program did."""
        around = with_ripgrep(tmp_path)
        provider = OpenCodeProvider.at(write_opencode(tmp_path, hang=30), around=around)
        outcome = provider.judge(
            question(model=MODEL), around=around, cancelled=lambda: len(starts_so_far(tmp_path)) > 1
        )

        assert (outcome.ending, outcome.answer) == (Ending.CANCELLED, None)
        assert codes(outcome) == []
        assert left_behind(around) == []

    @pytest.mark.slow
    def test_no_time_is_left_to_export_it(self, tmp_path: Path) -> None:
        """P6: timeout, whichever child of the call was at work when its time was over."""
        around = with_ripgrep(tmp_path)
        provider = OpenCodeProvider.at(write_opencode(tmp_path, hang=30), around=around)
        outcome = provider.judge(question(model=MODEL, seconds=1.5), around=around)

        assert len(starts(tmp_path)) == 2
        assert (outcome.ending, outcome.answer) == (Ending.TIMEOUT, None)
        assert left_behind(around) == []

    @pytest.mark.parametrize("export", ["", '{"info": {}, "messages": [1]}'])
    def test_an_export_that_is_none(self, tmp_path: Path, export: str) -> None:
        """P6: without one nobody knows who answered."""
        outcome = asked(tmp_path, export=export)

        assert outcome.ending is Ending.STREAM_INVALID
        assert codes(outcome) == ["surface_differs"]

    def test_it_does_not_come_through_a_pipe(self, tmp_path: Path) -> None:
        """P6 F17: the program would end before a pipe has taken more than 64 KiB."""
        parts = [step_start(), text("x" * 200_000), step_finish()]
        outcome = printed(tmp_path, *parts)

        assert outcome.ending is Ending.SUCCESS
        assert outcome.recording is not None
        assert json.loads(outcome.recording.export or b"") == exported(*parts)
        assert [start["into_a_file"] for start in starts(tmp_path)] == [False, True]

    def test_a_session_id_is_never_an_option(self, tmp_path: Path) -> None:
        """P2: nothing is exported under a name of another form."""
        lines = [{**one, "sessionID": "--help"} for one in stream(*GOOD_PARTS)]
        lines = [{**one, "part": {**one["part"], "sessionID": "--help"}} for one in lines]
        outcome = asked(tmp_path, "say(*lines)", lines=lines)

        assert outcome.ending is Ending.STREAM_INVALID
        assert len(starts(tmp_path)) == 1

    def test_a_model_that_the_program_does_not_have(self, tmp_path: Path) -> None:
        """P7: it says only that it failed; its own list says why."""
        export = exported(model="fake/nope")
        export["messages"].pop()
        error = failed("UnknownError", message="Unexpected server error.", ref="err_1")
        outcome = asked(tmp_path, "say(error)\nsys.exit(1)", error=error, export=export, model="fake/nope")

        assert outcome.ending is Ending.PROVIDER_ERROR
        assert outcome.error_kind == "model_unavailable"
        assert [start["argv"] for start in starts(tmp_path)][2] == ["models", "fake"]

    def test_the_same_failure_of_a_model_that_it_has(self, tmp_path: Path) -> None:
        """P7: then nothing is known of the reason."""
        export = exported()
        export["messages"].pop()
        error = failed("UnknownError", message="Unexpected server error.", ref="err_1")
        outcome = asked(tmp_path, "say(error)\nsys.exit(1)", error=error, export=export)

        assert outcome.error_kind == "other"


class TestTools:
    def test_a_tool_ends_a_judge_call(self, tmp_path: Path) -> None:
        """P9 P10: at its first sign, whatever would have followed."""
        body = "say(*lines); time.sleep(600)"
        outcome = asked(tmp_path, body, lines=stream(step_start(), tool()))

        assert outcome.ending is Ending.TOOL_ACTIVITY
        assert len(starts(tmp_path)) == 1

    def test_a_tool_in_a_line_that_cannot_be_read(self, tmp_path: Path) -> None:
        """F18 P9: half a character in what the tool was given hides nothing."""
        lines = stream(step_start(), tool(command="\ud800"), FINISHED, *GOOD_PARTS)
        outcome = asked(tmp_path, "say(*lines)", lines=lines)

        assert outcome.ending is Ending.TOOL_ACTIVITY

    def test_a_reader_may_use_some(self, tmp_path: Path) -> None:
        """P13: the working folder is the checkout, and the whole stream is read."""
        checkout = tmp_path / "checkout"
        checkout.mkdir()
        parts = [step_start(), tool(), FINISHED, step_start("5"), text("Fine.", "6"), step_finish(name="7")]
        around = with_ripgrep(tmp_path)
        program = write_opencode(
            tmp_path, "say(*lines)", lines=stream(*parts), export=exported(*parts, agent="reader")
        )
        provider = OpenCodeProvider.at(program, around=around)
        outcome = provider.read(ReadCall("Read.", checkout, MODEL, 20), around=around)

        assert outcome.ending is Ending.SUCCESS
        assert outcome.answer == "Fine."
        assert outcome.usage == Usage(2400, 400, 68, 10, None)
        assert outcome.sandbox is SandboxKind.PERMISSIONS_ONLY
        assert {start["cwd"] for start in starts(tmp_path)} == {str(checkout)}
        assert starts(tmp_path)[0]["argv"][6] == "reader"


class TestWork:
    def test_without_a_mount_there_is_nothing_of_anybodys(self, tmp_path: Path) -> None:
        """P13 F31: no skill, not even the program's own, no instructions, nothing in the working copy."""
        outcome = worked(tmp_path)

        assert outcome.ending is Ending.SUCCESS
        head = (tmp_path / "config/opencode/agent/worker.md").read_text().split("---\n")[1]
        rules = json.loads(head.split("permission: ")[1])
        assert rules == {
            "*": "allow",
            "webfetch": "deny",
            "websearch": "deny",
            "external_directory": "deny",
            "question": "deny",
            "skill": "deny",
        }
        settings = json.loads((tmp_path / "config/opencode/opencode.json").read_text())
        assert settings["permission"] == rules
        assert "skills" not in settings
        assert "instructions" not in settings
        assert not (tmp_path / "config/opencode/AGENTS.md").exists()

    def test_a_mount_is_laid_into_the_session(self, tmp_path: Path) -> None:
        """P13 F33: its skills and its instructions, and no other difference."""
        skill = tmp_path / "arm" / "review-work"
        (skill / "scripts").mkdir(parents=True)
        (skill / "SKILL.md").write_text("---\nname: review-work\ndescription: d\n---\nBody\n")
        (skill / "scripts" / "run").write_text("#!/bin/sh\n")
        (skill / "scripts" / "run").chmod(0o755)
        outcome = worked(tmp_path, mount=Mount((skill,), "Be thorough."))

        assert outcome.ending is Ending.SUCCESS
        laid = tmp_path / "data/skills/review-work"
        assert (laid / "SKILL.md").read_text() == (skill / "SKILL.md").read_text()
        assert (laid / "scripts/run").stat().st_mode & 0o100
        assert (tmp_path / "config/opencode/AGENTS.md").read_text() == "Be thorough."
        settings = json.loads((tmp_path / "config/opencode/opencode.json").read_text())
        (place,) = settings["skills"]["paths"]
        assert settings["permission"]["skill"] == {"*": "allow", "customize-opencode": "deny"}
        assert settings["permission"]["external_directory"] == {"*": "deny", f"{place}/*": "allow"}
        assert place.startswith(starts(tmp_path)[0]["environ"]["XDG_DATA_HOME"])

    def test_a_worker_keeps_the_programs_own_words(self, tmp_path: Path) -> None:
        """P13: the form of its answer is an instruction beside them."""
        outcome = worked(tmp_path, schema={"type": "object"})

        assert outcome.ending is Ending.SUCCESS
        assert (tmp_path / "config/opencode/agent/worker.md").read_text().endswith("---\n\n")
        settings = json.loads((tmp_path / "config/opencode/opencode.json").read_text())
        assert [place.rsplit("/", 1)[1] for place in settings["instructions"]] == ["answer-form.md"]
        assert '{"type":"object"}' in (tmp_path / "data/answer-form.md").read_text()


class TestSurroundings:
    def test_the_environment_is_an_allowlist(self, tmp_path: Path) -> None:
        """P3 R33: no credential of another provider, no folder of the user's."""
        around = with_ripgrep(
            tmp_path,
            ANTHROPIC_API_KEY="foreign",
            CODEX_API_KEY="foreign",
            KIMI_API_KEY="foreign",
            OPENAI_API_KEY="foreign",
            OPENCODE_CONFIG="/nowhere",
            OPENCODE_PERMISSION="{}",
            PWD="/nowhere",
            OPENCODE_API_KEY="own",
        )
        outcome = asked(tmp_path, around=around)

        assert outcome.ending is Ending.SUCCESS
        for start in starts(tmp_path):
            environ = start["environ"]
            assert "foreign" not in environ.values()
            assert environ["OPENCODE_API_KEY"] == "own"
            assert not {"OPENCODE_CONFIG", "OPENCODE_PERMISSION"} & set(environ)
            assert "/nowhere" not in environ.values()
            for name in (
                "HOME",
                "TMPDIR",
                "XDG_CACHE_HOME",
                "XDG_CONFIG_HOME",
                "XDG_DATA_HOME",
                "XDG_STATE_HOME",
            ):
                assert environ[name].startswith(around.environ["TMPDIR"])

    def test_the_names_are_those_of_the_record(self, tmp_path: Path) -> None:
        """P3: what is recorded is what was passed."""
        around = with_ripgrep(tmp_path)
        provider = OpenCodeProvider.at(write_opencode(tmp_path), around=around)
        provider.judge(question(model=MODEL), around=around)

        names = {*provider.environment_keys(around.environ)}
        # The mark of our children, what the interpreter of the fake sets for itself, and what a shell does.
        others = {"SKILL_EFFECTIVENESS_CALL", "LC_CTYPE", "PWD", "OLDPWD", "SHLVL", "_"}
        assert [set(start["environ"]) - others for start in starts(tmp_path)] == [names, names]

    def test_only_the_login_file_is_linked(self, tmp_path: Path) -> None:
        """P3 F32: the file itself, so that renewed tokens are kept, and nothing beside it."""
        login = tmp_path / "home/.local/share/opencode/auth.json"
        login.parent.mkdir(parents=True)
        login.write_text("{}")
        (login.parent / "other.json").write_text("{}")
        body = (
            "place = os.environ['XDG_DATA_HOME'] + '/opencode'\n"
            "seen = [os.listdir(place), os.readlink(place + '/auth.json')]\n"
            "open(folder + '/seen', 'w').write(json.dumps(seen))\n"
            "say(*good)"
        )
        outcome = asked(tmp_path, body, around=with_ripgrep(tmp_path, HOME=str(tmp_path / "home")))

        assert outcome.ending is Ending.SUCCESS
        assert json.loads((tmp_path / "seen").read_text()) == [["auth.json"], str(login)]

    def test_the_place_of_the_login_can_be_named(self) -> None:
        """P3: XDG_DATA_HOME goes before HOME, as it does for the program."""
        (login,) = OpenCodeProvider.logins({"XDG_DATA_HOME": "/data", "HOME": "/home"})
        (other,) = OpenCodeProvider.logins({"HOME": "/home"})

        assert str(login.source) == "/data/opencode/auth.json"
        assert str(other.source) == "/home/.local/share/opencode/auth.json"
        assert OpenCodeProvider.logins({}) == ()
        assert OpenCodeProvider.logins({"XDG_DATA_HOME": "relative"}) == ()

    def test_without_ripgrep_nothing_is_started(self, tmp_path: Path) -> None:
        """P6: unstartable with the reason; the program would try to download it."""
        empty = tmp_path / "empty"
        empty.mkdir()
        outcome = asked(tmp_path, around=surroundings(tmp_path, PATH=str(empty)))

        assert outcome.ending is Ending.UNSTARTABLE
        assert codes(outcome) == ["requisite_missing"]
        assert "rg" in outcome.warnings[0].text
        assert not (tmp_path / "starts.jsonl").exists()

    @pytest.mark.parametrize("model", ["fake-model", "fake/"])
    def test_a_model_has_a_provider(self, tmp_path: Path, model: str) -> None:
        """P2: an exact model, or nothing is started."""
        outcome = asked(tmp_path, model=model)

        assert outcome.ending is Ending.UNSTARTABLE
        assert not (tmp_path / "starts.jsonl").exists()
