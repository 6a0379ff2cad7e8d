"""Whole calls against small programs that misbehave in one way each."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.providers import CallKind, Ending, WorkCall
from skill_effectiveness.providers.claude import ClaudeProvider
from tests.support.claude_streams import failed, init, result, said, text, used
from tests.support.fake_claude import asked, call_of, put, write_claude
from tests.support.provider_calls import ANSWER, codes, gone, left_behind, surroundings

if TYPE_CHECKING:
    from pathlib import Path


QUOTA = failed("Credit balance is too low", 400)


class TestGoodCalls:
    def test_an_answer_comes_back(self, tmp_path: Path) -> None:
        """P6 P8: form, cost, session, model, and the bytes it was read from."""
        outcome = asked(tmp_path, "say(*good)")

        assert (outcome.ending, outcome.answer) == (Ending.SUCCESS, ANSWER)
        assert outcome.usage.cost_units == 0.00472
        assert outcome.session_id == "ac07c37d-56f4-4dad-ab7e-5b73e64bb374"
        assert outcome.observed_model == "claude-fake-1"
        assert outcome.warnings == ()
        assert outcome.recording is not None
        assert len(outcome.recording.lines) == 3

    @pytest.mark.parametrize(("kind", "first"), [(CallKind.READ, "reading"), (CallKind.WORK, "working")])
    def test_readers_and_workers_may_use_tools(self, tmp_path: Path, kind: CallKind, first: str) -> None:
        """P13: a tool is what they are there for; free text is their answer."""
        outcome = asked(
            tmp_path, f"say({first}, tool, done)", kind=kind, tool=said(used("Bash", command="ls"))
        )

        assert (outcome.ending, outcome.answer) == (Ending.SUCCESS, "Done.")

    def test_the_prompt_arrives_whole_on_stdin_and_nowhere_else(self, tmp_path: Path) -> None:
        """P4 F7: above the size of a pipe, then end of file; never an argument, never a file."""
        prompt = "canary-prompt " + "é" * 100_000
        body = (
            "open(folder + '/got', 'wb').write(prompt)\n"
            "seen = ' '.join(sys.argv) + repr(dict(os.environ))\n"
            "open(folder + '/seen', 'w').write(seen)\n"
            "say(*good)"
        )
        around = surroundings(tmp_path)
        provider = ClaudeProvider.at(write_claude(tmp_path, body), around=around)
        outcome = put(provider, call_of(CallKind.JUDGE, tmp_path, prompt=prompt), around)

        assert outcome.ending is Ending.SUCCESS
        assert (tmp_path / "got").read_bytes() == prompt.encode()
        assert "canary-prompt" not in (tmp_path / "seen").read_text()

    def test_a_character_split_over_writes_stays_whole(self, tmp_path: Path) -> None:
        """F20: one character in two writes."""
        body = (
            "line = json.dumps(done, ensure_ascii=False).encode()\n"
            "cut = line.index('ü'.encode()) + 1\n"
            "say(reading); raw(line[:cut]); time.sleep(0.1); raw(line[cut:] + b'\\n')"
        )
        outcome = asked(tmp_path, body, kind=CallKind.READ, done=result(result="ü"))

        assert outcome.answer == "ü"

    def test_a_long_line_is_read(self, tmp_path: Path) -> None:
        """F17: 70,000 bytes."""
        outcome = asked(tmp_path, "say(reading, done)", kind=CallKind.READ, done=result(result="x" * 70_000))
        assert outcome.answer == "x" * 70_000

    def test_escape_sequences_in_an_answer_are_text(self, tmp_path: Path) -> None:
        """F28: kept as they came."""
        words = "\x1b[2J\x1b[31mpass\x07 [END DATA] {0.__class__} %s"
        outcome = asked(tmp_path, "say(reading, done)", kind=CallKind.READ, done=result(result=words))
        assert outcome.answer == words


class TestBadStreams:
    def test_exit_0_and_zero_bytes(self, tmp_path: Path) -> None:
        """F12: no_answer; never wrong, never right."""
        assert asked(tmp_path, "").ending is Ending.NO_ANSWER

    def test_exit_0_with_a_provider_error(self, tmp_path: Path) -> None:
        """F13: provider_error, with its kind."""
        outcome = asked(tmp_path, "say(good[0], failed)", failed=QUOTA)

        assert (outcome.ending, outcome.error_kind) == (Ending.PROVIDER_ERROR, "quota_unavailable")
        assert (outcome.retryable, outcome.exit_code) == (False, 0)

    def test_a_good_stream_with_a_bad_exit(self, tmp_path: Path) -> None:
        """P6: exit code 7 is no success."""
        outcome = asked(tmp_path, "say(*good)\nsys.exit(7)")
        assert (outcome.ending, outcome.exit_code) == (Ending.STREAM_INVALID, 7)

    def test_killed_by_a_signal(self, tmp_path: Path) -> None:
        """P6: so is a signal of anybody's."""
        assert asked(tmp_path, "say(*good)\nos.kill(os.getpid(), 9)").ending is Ending.STREAM_INVALID

    @pytest.mark.parametrize(
        "body",
        [
            "say(*good[:2]); raw(json.dumps(good[2]).encode())",
            "say(*good); raw(b'{')",
            "raw(b'Welcome!\\n'); say(*good)",
            "raw(b'Use the new release instead.\\n')",
            "say(*good); raw(b'\\n')",
            "say(good[0]); good[1]['session_id'] = 'other'; say(*good[1:])",
            "say(*good[1:])",
            "say(*good[:2])",
            'raw(b\'{"type":"x","message":"x","message":"y"}\\n\'); say(*good)',
            'raw(b\'{"type":"x","n":NaN}\\n\'); say(*good)',
            "raw(b'\\xff\\n'); say(*good)",
            'say(*good[:2]); raw(json.dumps({**good[2], "result": "\\ud83d"}).encode() + b"\\n")',
        ],
        ids=[
            "last line unterminated",
            "half a line more",
            "a greeting",
            "a notice alone",
            "an empty line",
            "two sessions",
            "no surface",
            "no terminal marker",
            "repeated member",
            "NaN",
            "not UTF-8",
            "half a surrogate pair",
        ],
    )
    def test_a_stream_that_cannot_be_trusted(self, tmp_path: Path, body: str) -> None:
        """P6 P5 F18: exit 0 all the same."""
        assert asked(tmp_path, body).ending is Ending.STREAM_INVALID

    def test_a_later_turn_that_never_ends(self, tmp_path: Path) -> None:
        """F15: incomplete although the exit code is 0 and an earlier turn was whole."""
        assert asked(tmp_path, "say(*good, good[1])").ending is Ending.STREAM_INVALID

    def test_a_result_without_text(self, tmp_path: Path) -> None:
        """F16: no answer, and none taken from a message."""
        words, empty = said(text("The answer.")), result(result="")
        outcome = asked(tmp_path, "say(reading, words, empty)", kind=CallKind.READ, words=words, empty=empty)

        assert outcome.ending is Ending.NO_ANSWER

    @pytest.mark.parametrize("kind", [CallKind.JUDGE, CallKind.WORK])
    def test_an_alias_that_was_resolved(self, tmp_path: Path, kind: CallKind) -> None:
        """F37 R31 P2: the asked model is not the one that answers."""
        first = "good[0]" if kind is CallKind.JUDGE else "working"
        outcome = asked(tmp_path, f"{first}['model'] = 'claude-other'\nsay({first}, *good[1:])", kind=kind)

        assert (outcome.ending, outcome.observed_model) == (Ending.MODEL_MISMATCH, "claude-fake-1")
        assert outcome.answer is None

    @pytest.mark.parametrize(
        ("words", "kind"),
        [
            ("error: unknown option '--no-session-persistence'", "unsupported_flag"),
            ("error: option '--permission-mode <mode>' argument 'x' is invalid.", "unsupported_flag"),
            ("Error: --json-schema is not a valid JSON Schema: data/type must be array", "invalid_schema"),
        ],
    )
    def test_what_this_version_does_not_take(self, tmp_path: Path, words: str, kind: str) -> None:
        """P7: told by exit code and stderr, without any event."""
        outcome = asked(tmp_path, "sys.stderr.write(words + '\\n')\nsys.exit(1)", words=words)

        assert (outcome.ending, outcome.error_kind) == (Ending.PROVIDER_ERROR, kind)
        assert codes(outcome) == ["stderr_output"]

    def test_a_crash_without_a_word(self, tmp_path: Path) -> None:
        """P6: nothing is guessed from an exit code."""
        assert asked(tmp_path, "sys.exit(1)").ending is Ending.STREAM_INVALID


class TestTools:
    @pytest.mark.parametrize("name", ["Bash", "Skill", "Task", "WebFetch", "mcp__x__y", "never_heard_of"])
    def test_any_tool_ends_a_judge_call(self, tmp_path: Path, name: str) -> None:
        """P9 R31: extra tools of any name."""
        outcome = asked(tmp_path, "say(good[0], tool, good[2])", tool=said(used(name)))
        assert (outcome.ending, outcome.answer) == (Ending.TOOL_ACTIVITY, None)

    def test_it_ends_at_once(self, tmp_path: Path) -> None:
        """P9 R31: the program has no time to go on to a second request."""
        body = "say(good[0], tool)\ntime.sleep(20)\nopen(folder + '/second-request', 'w')\nsay(*good[1:])"
        began = time.monotonic()
        outcome = asked(tmp_path, body, tool=said(used("Bash", command="ls")))

        assert outcome.ending is Ending.TOOL_ACTIVITY
        assert time.monotonic() - began < 15
        assert not (tmp_path / "second-request").exists()

    @pytest.mark.parametrize("kind", CallKind)
    def test_another_surface_ends_at_once_a_call_of_any_kind(self, tmp_path: Path, kind: CallKind) -> None:
        """P9 R31: before the model is asked, where the program tells it in time."""
        body = "say(first)\ntime.sleep(20)\nopen(folder + '/request', 'w')\nsay(*good[1:])"
        began = time.monotonic()
        outcome = asked(tmp_path, body, kind=kind, first=init(tools=["Read", "WebFetch"]))

        assert outcome.ending is Ending.STREAM_INVALID
        assert "surface_differs" in codes(outcome)
        assert time.monotonic() - began < 15
        assert not (tmp_path / "request").exists()


class TestTime:
    @pytest.mark.slow
    def test_a_program_that_has_answered_and_stays(self, tmp_path: Path) -> None:
        """F6: complete after a grace, its tree killed."""
        body = (
            "child = os.fork()\n"
            "if child == 0: time.sleep(60)\n"
            "open(folder + '/pids', 'w').write(f'{os.getpid()} {child}')\n"
            "say(*good)\n"
            "time.sleep(60)"
        )
        outcome = asked(tmp_path, body)

        assert (outcome.ending, outcome.answer) == (Ending.SUCCESS, ANSWER)
        assert "lingered" in codes(outcome)
        assert outcome.latency_ms < 8000
        assert all(gone(int(pid)) for pid in (tmp_path / "pids").read_text().split())

    @pytest.mark.slow
    def test_a_program_that_ends_on_a_tool_result_and_falls_silent(self, tmp_path: Path) -> None:
        """F6: no terminal marker, so the wall limit ends it."""
        outcome = asked(tmp_path, "say(*good[:2])\ntime.sleep(60)", seconds=1)

        assert outcome.ending is Ending.TIMEOUT
        assert outcome.latency_ms < 3000

    @pytest.mark.slow
    def test_a_failed_program_that_stays(self, tmp_path: Path) -> None:
        """F6 F13: the provider's error is not lost to a timeout."""
        outcome = asked(tmp_path, "say(good[0], failed)\ntime.sleep(60)", failed=QUOTA)

        assert outcome.ending is Ending.PROVIDER_ERROR
        assert outcome.latency_ms < 8000

    def test_our_own_stop(self, tmp_path: Path) -> None:
        """P6: cancelled, never a success of the moment."""
        around = surroundings(tmp_path)
        provider = ClaudeProvider.at(write_claude(tmp_path, "say(*good)\ntime.sleep(60)"), around=around)
        call = WorkCall("Work.", tmp_path, "claude-fake-1", 20)
        outcome = provider.work(call, around=around, cancelled=lambda: True)

        assert (outcome.ending, outcome.answer) == (Ending.CANCELLED, None)
        assert left_behind(around) == []


class TestFloods:
    def test_a_line_of_32_mib(self, tmp_path: Path) -> None:
        """F17: refused by a named limit; the reader lives and the child is not blocked for ever."""
        outcome = asked(tmp_path, "say(*good[:2])\nfor _ in range(32): raw(b'x' * 1048576)\nraw(b'\\n')")
        assert (outcome.ending, outcome.limit) == (Ending.LIMIT, "line_bytes")

    @pytest.mark.parametrize("line", ["", "{}", '{"type":"x"}'])
    def test_short_lines_without_end(self, tmp_path: Path, line: str) -> None:
        """P5: a limit on lines, so that a flood costs neither time nor memory."""
        outcome = asked(tmp_path, "say(good[0])\nwhile True: raw((line + '\\n').encode() * 9999)", line=line)
        assert (outcome.ending, outcome.limit) == (Ending.LIMIT, "lines")


class TestTrees:
    def test_what_a_program_leaves_is_dead_when_the_answer_counts(self, tmp_path: Path) -> None:
        """P10: a double fork in a session of its own, after a normal exit."""
        body = (
            "if os.fork() == 0:\n"
            "    os.setsid()\n"
            "    if os.fork(): sys.exit()\n"
            "    os.closerange(0, 3)\n"
            "    with open(folder + '/pid.part', 'w') as file: file.write(str(os.getpid()))\n"
            "    os.rename(folder + '/pid.part', folder + '/pid')\n"
            "    time.sleep(60)\n"
            "while not os.path.exists(folder + '/pid'): time.sleep(0.01)\n"
            "say(*good)"
        )
        outcome = asked(tmp_path, body)

        assert outcome.ending is Ending.SUCCESS
        assert outcome.survivors >= 1
        assert gone(int((tmp_path / "pid").read_text()))
