"""Whole judge calls against small programs that misbehave in one way each."""

from __future__ import annotations

import errno
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.execution import ExecutableCode, ExecutableError
from skill_effectiveness.providers import CodexProvider, Ending, ReplyError, one_json_object
from tests.support.fake_program import READ_PROMPT, VERSION, write_codex
from tests.support.provider_calls import (
    ANSWER,
    DONE,
    THREAD,
    TURN,
    codes,
    gone,
    left_behind,
    message,
    question,
    surroundings,
)
from tests.support.temporary_folders import UNUSABLE, temporary_folder

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.providers import CallOutcome

TOOL = {"type": "item.started", "item": {"id": "item_1", "type": "command_execution", "command": "ls"}}
FAILED = {"type": "turn.failed", "error": {"message": "Quota exceeded. Check your plan and billing details."}}


def asked(
    tmp_path: Path, body: str, *, seconds: float = 20, prompt: str = "Which is better?", **constants: object
) -> CallOutcome:
    around = surroundings(tmp_path)
    provider = CodexProvider.at(write_codex(tmp_path, READ_PROMPT + body, **constants), around=around)
    outcome = provider.judge(question(prompt, seconds=seconds), around=around)
    assert left_behind(around) == []
    return outcome


class TestGoodCalls:
    def test_an_answer_comes_back(self, tmp_path: Path) -> None:
        """P6 P8: text, usage, session, exit code."""
        outcome = asked(tmp_path, "say(*good)")

        assert outcome.ending is Ending.SUCCESS
        assert outcome.answer == ANSWER
        assert outcome.usage.input_tokens == 1200
        assert outcome.usage.cost_units is None
        assert outcome.session_id == "01a22c67-4f17-7e10-9157-503a84adda3b"
        assert outcome.exit_code == 0
        assert outcome.survivors == 0
        assert outcome.warnings == ()

    def test_latency_is_measured_on_the_given_clock(self, tmp_path: Path) -> None:
        """P8: durations are recorded; the clock is an argument."""
        around = surroundings(tmp_path)
        provider = CodexProvider.at(write_codex(tmp_path, "time.sleep(0.3)\nsay(*good)"), around=around)

        outcome = provider.judge(question(), around=around)
        assert 300 <= outcome.latency_ms < 3000

    def test_the_prompt_arrives_whole_on_stdin_and_nowhere_else(self, tmp_path: Path) -> None:
        """P4 F7: a prompt above the size of a pipe, then end of file; never an argument, never a file."""
        prompt = "canary-prompt " + "é" * 100_000
        body = (
            "open(folder + '/got', 'wb').write(prompt)\n"
            "seen = ' '.join(sys.argv) + repr(dict(os.environ))\n"
            "for base, _, files in os.walk(os.path.dirname(os.environ['HOME'])):\n"
            "    seen += ''.join(open(os.path.join(base, name)).read() for name in files)\n"
            "open(folder + '/seen', 'w').write(seen)\n"
            "say(*good)"
        )
        outcome = asked(tmp_path, body, prompt=prompt)

        assert outcome.ending is Ending.SUCCESS
        assert (tmp_path / "got").read_bytes() == prompt.encode()
        assert "answer-schema" in (tmp_path / "seen").read_text()
        assert "canary-prompt" not in (tmp_path / "seen").read_text()

    def test_a_fence_is_left_for_the_caller_to_refuse(self, tmp_path: Path) -> None:
        """F25 P12: its contract allows none, and nothing is taken out of anything."""
        fenced = f"```json\n{ANSWER}\n```"
        outcome = asked(tmp_path, "say(*good[:2], fenced, good[3])", fenced=message(fenced))

        assert outcome.answer == fenced
        with pytest.raises(ReplyError):
            one_json_object(fenced, allow_json_fence=CodexProvider.json_fence)

    def test_a_character_split_over_writes_stays_whole(self, tmp_path: Path) -> None:
        """F20: one character in two writes."""
        body = (
            "line = json.dumps(good[2], ensure_ascii=False).encode()\n"
            "cut = line.index('ü'.encode()) + 1\n"
            "say(*good[:2]); raw(line[:cut]); time.sleep(0.1); raw(line[cut:] + b'\\n'); say(good[3])"
        )
        outcome = asked(tmp_path, body.replace("good[2]", "text"), text=message("ü"))

        assert outcome.answer == "ü"

    def test_escape_sequences_in_an_answer_are_text(self, tmp_path: Path) -> None:
        """F28: kept as they came; nothing is interpreted, formatted or cut."""
        text = "\x1b[2J\x1b[31mpass\x07 [END DATA] {0.__class__} %s"
        outcome = asked(tmp_path, "say(*good[:2], text, good[3])", text=message(text))

        assert outcome.answer == text

    def test_a_long_line_is_read(self, tmp_path: Path) -> None:
        """F17: 70,000 bytes."""
        outcome = asked(tmp_path, "say(*good[:2], text, good[3])", text=message("x" * 70_000))

        assert outcome.answer == "x" * 70_000


class TestBadStreams:
    def test_exit_0_and_zero_bytes(self, tmp_path: Path) -> None:
        """F12: no_answer; never wrong, never right."""
        outcome = asked(tmp_path, "")

        assert outcome.ending is Ending.NO_ANSWER
        assert outcome.answer is None

    def test_exit_0_with_a_provider_error(self, tmp_path: Path) -> None:
        """F13: provider_error, with its kind."""
        outcome = asked(tmp_path, "say(*good[:2], failed)", failed=FAILED)

        assert outcome.ending is Ending.PROVIDER_ERROR
        assert outcome.error_kind == "quota_unavailable"
        assert not outcome.retryable
        assert outcome.exit_code == 0

    def test_a_good_stream_with_a_bad_exit(self, tmp_path: Path) -> None:
        """P6: exit code 7 is no success."""
        outcome = asked(tmp_path, "say(*good)\nsys.exit(7)")

        assert outcome.ending is Ending.STREAM_INVALID
        assert outcome.exit_code == 7

    def test_killed_by_a_signal(self, tmp_path: Path) -> None:
        """P6: so is a signal of anybody's."""
        outcome = asked(tmp_path, "say(*good)\nos.kill(os.getpid(), 9)")

        assert outcome.ending is Ending.STREAM_INVALID
        assert outcome.exit_code is None

    @pytest.mark.parametrize(
        "body",
        [
            "say(*good[:3]); raw(json.dumps(good[3]).encode())",
            "say(*good); raw(b'{')",
            "raw(b'Welcome!\\n'); say(*good)",
            "raw(b'Use the new release instead.\\n')",
            "say(*good); raw(b'\\n')",
            "say(good[0]); good[0]['thread_id'] = 'other'; say(*good)",
            "say(*good[1:])",
            "say(*good[:3])",
            'raw(b\'{"type":"error","message":"x","message":"y"}\\n\'); say(*good)',
            'raw(b\'{"type":"error","message":"x","n":NaN}\\n\'); say(*good)',
            "raw(b'\\xff\\n'); say(*good)",
        ],
        ids=[
            "last line unterminated",
            "half a line more",
            "a greeting",
            "a notice alone",
            "an empty line",
            "two threads",
            "no thread",
            "no terminal marker",
            "repeated member",
            "NaN",
            "not UTF-8",
        ],
    )
    def test_a_stream_that_cannot_be_trusted(self, tmp_path: Path, body: str) -> None:
        """P6 P5: half a line, no JSON, two sessions, no marker, no strict JSON; exit 0 all the same."""
        assert asked(tmp_path, body).ending is Ending.STREAM_INVALID

    def test_half_a_surrogate_pair_in_the_answer(self, tmp_path: Path) -> None:
        """F18: the call ends typed, the bytes are kept, what came after them was read."""
        line = '{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"\\ud83d"}}'
        outcome = asked(tmp_path, "say(*good[:2]); raw(line.encode() + b'\\n'); say(good[3])", line=line)

        assert outcome.ending is Ending.STREAM_INVALID
        assert outcome.usage.input_tokens == 1200
        assert [getattr(event, "data", None) for event in outcome.events] == [None, None, line.encode(), None]

    def test_a_later_turn_that_never_ends(self, tmp_path: Path) -> None:
        """F15: incomplete although the exit code is 0 and an earlier turn was whole."""
        assert asked(tmp_path, "say(*good, good[1])").ending is Ending.STREAM_INVALID

    def test_an_empty_answer(self, tmp_path: Path) -> None:
        """F16: no answer, and none taken from elsewhere."""
        body = "say(*good[:2], empty, good[3])"

        assert asked(tmp_path, body, empty=message("")).ending is Ending.NO_ANSWER

    def test_a_model_that_was_moved(self, tmp_path: Path) -> None:
        """F37 R31 P2: the asked model is not the one that answered."""
        moved = {
            "type": "item.completed",
            "item": {"id": "i", "type": "error", "message": "model rerouted: fake-model -> other (Reason)"},
        }
        outcome = asked(tmp_path, "say(*good[:2], moved, *good[2:])", moved=moved)

        assert outcome.ending is Ending.MODEL_MISMATCH
        assert outcome.observed_model == "other"
        assert outcome.answer is None

    def test_an_option_that_this_version_refuses(self, tmp_path: Path) -> None:
        """P7: told by exit code and stderr, without any event."""
        body = "sys.stderr.write(\"error: unexpected argument '--ephemeral' found\\n\")\nsys.exit(2)"
        outcome = asked(tmp_path, body)

        assert outcome.ending is Ending.PROVIDER_ERROR
        assert outcome.error_kind == "unsupported_flag"
        assert codes(outcome) == ["stderr_output"]


class TestTools:
    def test_a_tool_ends_the_call_at_once(self, tmp_path: Path) -> None:
        """P9 R31: the program has no time to go on to a second request."""
        body = "say(*good[:2], tool)\ntime.sleep(5.0)\nopen(folder + '/second-request', 'w')\nsay(*good[2:])"
        began = time.monotonic()
        outcome = asked(tmp_path, body, tool=TOOL)

        assert outcome.ending is Ending.TOOL_ACTIVITY
        assert outcome.answer is None
        assert time.monotonic() - began < 4.5
        assert not (tmp_path / "second-request").exists()

    def test_a_tool_in_a_line_that_is_not_strict_ends_it_too(self, tmp_path: Path) -> None:
        """P9: as the program writes web searches, with `id` twice."""
        line = '{"type":"item.started","item":{"id":"item_1","type":"web_search","id":"ws_1","query":"x"}}'
        outcome = asked(
            tmp_path, "say(*good[:2]); raw(line.encode() + b'\\n'); time.sleep(5); say(*good[2:])", line=line
        )

        assert outcome.ending is Ending.TOOL_ACTIVITY
        assert outcome.latency_ms < 4000

    @pytest.mark.parametrize("kind", ["file_change", "mcp_tool_call", "todo_list", "never_heard_of"])
    def test_every_item_that_is_not_known_to_be_none(self, tmp_path: Path, kind: str) -> None:
        """P9 R31: extra tools of any name."""
        outcome = asked(tmp_path, "say(*good[:3], tool, good[3])", tool={**TOOL, "item": {"type": kind}})

        assert outcome.ending is Ending.TOOL_ACTIVITY

    def test_a_refused_tool_call_shows_on_stderr_alone(self, tmp_path: Path) -> None:
        """P9: the stream is not a full record, so stderr is read too."""
        line = "2026-11-30T14:40:27Z ERROR codex_core::tools::router: error=unsupported call: x\\n"
        outcome = asked(tmp_path, f"say(*good[:2]); sys.stderr.write('{line}'); say(*good[2:])")

        assert outcome.ending is Ending.TOOL_ACTIVITY


class TestTime:
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

        assert outcome.ending is Ending.SUCCESS
        assert outcome.answer == ANSWER
        assert "lingered" in codes(outcome)
        assert outcome.latency_ms < 8000
        assert all(gone(int(pid)) for pid in (tmp_path / "pids").read_text().split())

    def test_a_program_that_begins_another_turn_after_its_marker(self, tmp_path: Path) -> None:
        """F6: a second turn may take longer than the grace; its answer is the answer."""
        body = "say(*good, good[1])\ntime.sleep(2)\nsay(second, good[3])"
        outcome = asked(tmp_path, body, second=message('{"second":1}'))

        assert (outcome.ending, outcome.answer) == (Ending.SUCCESS, '{"second":1}')
        assert codes(outcome) == []

    def test_a_program_that_falls_silent(self, tmp_path: Path) -> None:
        """F6: no terminal marker, so it is not done, and the wall limit ends it."""
        outcome = asked(tmp_path, "say(*good[:3])\ntime.sleep(60)", seconds=1)

        assert outcome.ending is Ending.TIMEOUT
        assert outcome.latency_ms < 1000 + 2000

    def test_a_failed_program_that_stays(self, tmp_path: Path) -> None:
        """F6 F13: the provider's error is not lost to a timeout."""
        outcome = asked(tmp_path, "say(*good[:2], failed)\ntime.sleep(60)", failed=FAILED)

        assert outcome.ending is Ending.PROVIDER_ERROR
        assert outcome.latency_ms < 8000

    def test_a_program_that_never_reads_its_stdin(self, tmp_path: Path) -> None:
        """R26 P10: over within its timeout plus two seconds, tree included."""
        around = surroundings(tmp_path)
        body = "open(folder + '/pid', 'w').write(str(os.getpid()))\ntime.sleep(60)"
        provider = CodexProvider.at(write_codex(tmp_path, body), around=around)
        outcome = provider.judge(question("x" * 300_000, seconds=1), around=around)

        assert outcome.ending is Ending.TIMEOUT
        assert outcome.latency_ms < 3000
        assert codes(outcome) == ["prompt_unread"]
        assert gone(int((tmp_path / "pid").read_text()))

    def test_an_answer_without_the_whole_question_is_told(self, tmp_path: Path) -> None:
        """P4: the record says that the prompt was not taken."""
        around = surroundings(tmp_path)
        provider = CodexProvider.at(write_codex(tmp_path, "say(*good)"), around=around)
        outcome = provider.judge(question("x" * 300_000), around=around)

        assert codes(outcome) == ["prompt_unread"]

    def test_our_own_stop(self, tmp_path: Path) -> None:
        """P6: cancelled, never a success of the moment."""
        around = surroundings(tmp_path)
        provider = CodexProvider.at(write_codex(tmp_path, "say(*good)\ntime.sleep(60)"), around=around)
        outcome = provider.judge(question(), around=around, cancelled=lambda: True)

        assert outcome.ending is Ending.CANCELLED
        assert outcome.answer is None


class TestFloods:
    def test_a_line_of_32_mib(self, tmp_path: Path) -> None:
        """F17: refused by a named limit; the reader lives and the child is not blocked for ever."""
        outcome = asked(tmp_path, "say(*good[:2])\nfor _ in range(32): raw(b'x' * 1048576)\nraw(b'\\n')")

        assert outcome.ending is Ending.LIMIT
        assert outcome.limit == "line_bytes"

    @pytest.mark.parametrize("line", ["", "{}", '{"type":"x"}'])
    def test_short_lines_without_end(self, tmp_path: Path, line: str) -> None:
        """P5: a limit on lines, so that a flood costs neither time nor memory."""
        outcome = asked(tmp_path, "say(good[0])\nwhile True: raw((line + '\\n').encode() * 9999)", line=line)

        assert outcome.ending is Ending.LIMIT
        assert outcome.limit == "lines"
        assert outcome.latency_ms < 4000

    def test_long_lines_without_end(self, tmp_path: Path) -> None:
        """P5: a limit in total."""
        outcome = asked(
            tmp_path,
            "say(good[0])\nwhile True: raw(line.encode())",
            line='{"type":"x"}' + " " * 1_000_000 + "\n",
        )

        assert outcome.ending is Ending.LIMIT
        assert outcome.limit == "stdout_bytes"

    def test_complaints_without_end(self, tmp_path: Path) -> None:
        """P5: a limit for stderr."""
        outcome = asked(tmp_path, "while True: sys.stderr.write('x' * 65536)")

        assert outcome.ending is Ending.LIMIT
        assert outcome.limit == "stderr_bytes"


class TestTrees:
    @pytest.mark.parametrize(
        "leave",
        [
            "if os.fork() == 0:\n    os.setsid(); note(); time.sleep(60)",
            "if os.fork() == 0:\n    os.setsid()\n    os.fork() or (note(), time.sleep(60))\n    sys.exit()",
        ],
        ids=["session leader", "double fork"],
    )
    def test_what_a_program_leaves_is_dead_when_the_answer_counts(self, tmp_path: Path, leave: str) -> None:
        """P10 R27: after a normal exit too, and it is told."""
        body = (
            "def note():\n"
            "    os.closerange(0, 3)\n"
            "    with open(folder + '/pid.part', 'w') as file: file.write(str(os.getpid()))\n"
            "    os.rename(folder + '/pid.part', folder + '/pid')\n"
            f"{leave}\n"
            "while not os.path.exists(folder + '/pid'): time.sleep(0.01)\n"
            "say(*good)"
        )
        outcome = asked(tmp_path, body)

        assert outcome.ending is Ending.SUCCESS
        assert outcome.survivors >= 1
        assert codes(outcome) == ["processes_left"]
        assert gone(int((tmp_path / "pid").read_text()))


class TestBinding:
    def test_a_program_is_bound_by_its_bytes_and_its_version(self, tmp_path: Path) -> None:
        """P2: absolute path, digest, one-line version."""
        path = write_codex(tmp_path, "")
        executable = CodexProvider.at(path, around=surroundings(tmp_path)).executable

        assert executable.path == path
        assert executable.version == VERSION
        assert executable.sha256.startswith("sha256:")

    def test_another_program_under_the_same_name_is_not_run(self, tmp_path: Path) -> None:
        """P2: bound to the bytes that were there; nothing is started, nothing is paid."""
        around = surroundings(tmp_path)
        provider = CodexProvider.at(write_codex(tmp_path, "say(*good)"), around=around)
        write_codex(tmp_path, "open(folder + '/ran', 'w'); say(*good)")
        outcome = provider.judge(question(), around=around)

        assert outcome.ending is Ending.UNSTARTABLE
        assert codes(outcome) == ["executable_changed"]
        assert not (tmp_path / "ran").exists()
        assert provider.identify(around) != provider.executable

    def test_a_program_that_is_gone(self, tmp_path: Path) -> None:
        """P6: unstartable, typed at the call and at the binding."""
        around = surroundings(tmp_path)
        path = write_codex(tmp_path, "say(*good)")
        provider = CodexProvider.at(path, around=around)
        path.unlink()

        assert provider.judge(question(), around=around).ending is Ending.UNSTARTABLE
        with pytest.raises(ExecutableError) as caught:
            provider.identify(around)
        assert caught.value.code is ExecutableCode.MISSING


class TestMachine:
    def judged(self, tmp_path: Path, around: Surroundings) -> CallOutcome:
        good = surroundings(tmp_path)
        path = write_codex(tmp_path, READ_PROMPT + "open(folder + '/ran', 'w'); say(*good)")
        return CodexProvider.at(path, around=good).judge(question(), around=around)

    def test_without_a_place_for_private_folders_nothing_starts(self, tmp_path: Path) -> None:
        """P3 P6: unstartable with the reason, and no call."""
        outcome = self.judged(tmp_path, surroundings(tmp_path, TMPDIR=str(tmp_path / "missing")))

        assert outcome.ending is Ending.UNSTARTABLE
        assert codes(outcome) == ["session_unavailable"]
        assert not (tmp_path / "ran").exists()

    @pytest.mark.parametrize("kind", UNUSABLE)
    def test_nor_can_a_program_be_bound(self, tmp_path: Path, kind: str) -> None:
        """P2 P3: its version is asked in private folders or not at all, which is no fault of the program."""
        around = temporary_folder(surroundings(tmp_path), tmp_path / "tmp", kind)

        with pytest.raises(ExecutableError, match="Set TMPDIR to the absolute path") as caught:
            CodexProvider.at(write_codex(tmp_path, ""), around=around)
        assert caught.value.code is ExecutableCode.NO_SESSION_FOLDERS

    @pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
    def test_nor_without_descriptors_or_memory(self, tmp_path: Path, number: int) -> None:
        """P2: what the machine lacks is no fault of the temporary folder either."""
        around = surroundings(tmp_path)
        around = replace(around, fs=FaultFs(around.fs, Injection("open_dir", number)))

        with pytest.raises(ExecutableError, match="no process, memory or descriptor") as caught:
            CodexProvider.at(write_codex(tmp_path, ""), around=around)
        assert caught.value.code is ExecutableCode.NO_RESOURCES

    def test_a_full_disk_before_the_call(self, tmp_path: Path) -> None:
        """P6: the schema cannot be written, so nothing is asked, and nothing is left."""
        around = surroundings(tmp_path)
        full = Injection("write", errno.ENOSPC, about=lambda path: "answer-schema" in path)
        outcome = self.judged(tmp_path, replace(around, fs=FaultFs(around.fs, full)))

        assert full.hits == 1
        assert outcome.ending is Ending.UNSTARTABLE
        assert codes(outcome) == ["session_unavailable"]
        assert not (tmp_path / "ran").exists()
        assert left_behind(around) == []

    def test_folders_that_cannot_be_removed_do_not_cost_the_answer(self, tmp_path: Path) -> None:
        """P3: the answer was paid for; the record says that something stayed."""
        around = surroundings(tmp_path)
        # The first removal is that of the folders in which the program's version was asked.
        stuck = Injection("rmdir", errno.EIO, nth=0, about=lambda path: path.endswith("/work"))
        outcome = self.judged(tmp_path, replace(around, fs=FaultFs(around.fs, stuck)))

        assert outcome.ending is Ending.SUCCESS
        assert codes(outcome) == ["session_left"]

    def test_a_login_that_is_no_file(self, tmp_path: Path) -> None:
        """P3: never followed, never guessed around."""
        (tmp_path / "home" / ".codex" / "auth.json").mkdir(parents=True)
        outcome = self.judged(tmp_path, surroundings(tmp_path, HOME=str(tmp_path / "home")))

        assert outcome.ending is Ending.UNSTARTABLE
        assert codes(outcome) == ["session_unavailable"]
        assert not (tmp_path / "ran").exists()


def test_a_failed_call_is_not_repeated(tmp_path: Path) -> None:
    """P11 P6: one call starts one program, whatever it says."""
    outcome = asked(
        tmp_path,
        "open(folder + '/starts', 'a').write('x')\nsay(thread, turn, busy, done)",
        thread=THREAD,
        turn=TURN,
        done=DONE,
        busy={"type": "turn.failed", "error": {"message": "exceeded retry limit, last status: 429 Too Many"}},
    )

    assert outcome.error_kind == "rate_limited"
    assert outcome.retryable
    assert (tmp_path / "starts").read_text() == "x"
