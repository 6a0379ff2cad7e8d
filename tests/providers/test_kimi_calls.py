"""Whole calls of Kimi against small programs that behave as it does, or misbehave in one way each."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.providers import (
    UNKNOWN_USAGE,
    Ending,
    ProviderError,
    Usage,
    one_json_object,
)
from skill_effectiveness.providers.kimi import KimiProvider
from tests.support.kimi import (
    SESSION,
    TELL,
    VERSION_LINE,
    configured,
    judged_by,
    message,
    told,
    tool,
    write_kimi,
)
from tests.support.provider_calls import ANSWER, question

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.providers import CallOutcome


@pytest.fixture
def around(tmp_path: Path) -> Surroundings:
    return configured(tmp_path)


@pytest.fixture
def judged(tmp_path: Path) -> Callable[..., CallOutcome]:
    return partial(judged_by, tmp_path)


class TestGoodCalls:
    def test_an_answer_comes_back(self, judged: Callable[..., CallOutcome]) -> None:
        """P2 P6 P8: text, usage of the wire file, session; the model is attributed to nobody."""
        outcome = judged("keep(usage, {'type': 'llm.request', 'modelAlias': 'fake-model'})\nsay(*good)")

        assert (outcome.ending, outcome.answer) == (Ending.SUCCESS, ANSWER)
        assert outcome.usage == Usage(input_tokens=1200, cached_input_tokens=200, output_tokens=34)
        assert outcome.session_id == SESSION
        assert outcome.observed_model is None
        assert (outcome.exit_code, outcome.survivors, outcome.warnings) == (0, 0, ())

    def test_what_is_kept_of_it(self, judged: Callable[..., CallOutcome]) -> None:
        """P7: the stream, stderr and the wire files, as they came, and none of it in a trace."""
        outcome = judged("keep(usage)\nsys.stderr.write('canary-stderr')\nsay(*good)")

        assert outcome.recording is not None
        assert outcome.recording.lines[0] == json.dumps(VERSION_LINE).encode()
        assert outcome.recording.stderr == b"canary-stderr"
        assert outcome.recording.export is not None
        assert b"usage.record" in outcome.recording.export
        assert "canary" not in repr(outcome)

    def test_without_a_wire_file_the_cost_is_unknown(self, judged: Callable[..., CallOutcome]) -> None:
        """F40 P8: not zero."""
        outcome = judged("say(*good)")

        assert outcome.ending is Ending.SUCCESS
        assert outcome.usage == UNKNOWN_USAGE
        assert outcome.recording is not None
        assert outcome.recording.export is None

    def test_usage_counts_once_across_the_files_of_all_agents(
        self, judged: Callable[..., CallOutcome]
    ) -> None:
        """F38 P8: a record that stands in two files is one."""
        other = "wire.replace('/main', '/agent-0')"
        body = (
            f"keep(usage)\nkeep(usage, {{**usage, 'agentId': 'agent-0'}}, place={other})\n"
            "keep(usage, place='sessions')\nsay(*good)"
        )
        assert judged(body).usage == Usage(2400, 400, 68)

    def test_one_json_fence_is_taken(self, judged: Callable[..., CallOutcome]) -> None:
        """P12 F25: exactly one, with nothing around it."""
        text = f"```json\n{ANSWER}\n```"
        outcome = judged("say(good[0], fenced, good[2])", fenced=message(text))

        assert outcome.answer == text
        assert KimiProvider.json_fence
        assert one_json_object(text, allow_json_fence=KimiProvider.json_fence) == json.loads(ANSWER)
        with pytest.raises(ProviderError):
            one_json_object(f"Here:\n{text}", allow_json_fence=KimiProvider.json_fence)

    def test_a_character_split_over_writes_stays_whole(self, judged: Callable[..., CallOutcome]) -> None:
        """F20: one character in two writes."""
        body = (
            "line = json.dumps(text, ensure_ascii=False).encode()\n"
            "cut = line.index('ü'.encode()) + 1\n"
            "say(good[0]); raw(line[:cut]); time.sleep(0.1); raw(line[cut:] + b'\\n'); say(good[2])"
        )
        assert judged(body, text=message("ü")).answer == "ü"

    def test_a_long_line_is_read(self, judged: Callable[..., CallOutcome]) -> None:
        """F17: 70,000 bytes."""
        assert judged("say(good[0], text, good[2])", text=message("x" * 70_000)).answer == "x" * 70_000

    def test_a_retry_is_told(self, judged: Callable[..., CallOutcome]) -> None:
        """F14 P11: not final by itself."""
        retry = {"role": "meta", "type": "turn.step.retrying", "error_message": "500 x"}
        outcome = judged("say(good[0], retry, *good[1:])", retry=retry)

        assert outcome.ending is Ending.SUCCESS
        assert [warning.text for warning in outcome.warnings] == ["500 x"]


class TestBadStreams:
    def test_exit_0_and_zero_bytes(self, judged: Callable[..., CallOutcome]) -> None:
        """F12: no answer; never wrong, never right."""
        assert judged("").ending is Ending.NO_ANSWER

    @pytest.mark.parametrize(
        "body",
        [
            "raw(b'Kimi has moved; install the new release.\\n')",
            "say(good[0])",
            "say(*good[:2])",
            "say(*good[:2]); raw(json.dumps(good[2]).encode())",
            "say(*good); raw(b'{')",
            "say(*good); raw(b'\\n')",
            "say(*good, good[1])",
            "say(*good); good[2]['session_id'] = 'session_other'; say(*good)",
            "keep(usage, place=wire.replace('session_', 'session_other-')); say(*good)",
            'raw(b\'{"role":"meta","role":"meta","type":"x"}\\n\'); say(*good)',
            "raw(b'\\xff\\n'); say(*good)",
            "say(*good); sys.exit(7)",
            "say(*good); os.kill(os.getpid(), 9)",
            "say(*good[:2]); os.kill(os.getpid(), 15)",
            "say(*good[:2]); fail('x', code=0)",
            "say(*good); sys.stderr.write('provider.rate_limit: 429'); sys.exit(1)",
        ],
        ids=[
            "a stub release",
            "nothing but a version",
            "no terminal marker",
            "last line unterminated",
            "half a line more",
            "an empty line",
            "a text after the end",
            "two sessions",
            "two sessions in the files",
            "repeated member",
            "not UTF-8",
            "exit 7",
            "killed at the end",
            "killed before",
            "words of an error and exit 0",
            "an error that is none of its own",
        ],
    )
    def test_a_stream_that_cannot_be_trusted(self, judged: Callable[..., CallOutcome], body: str) -> None:
        """P6 F6 F13: half answers, stubs, two sessions, other exits; with an answer in sight all the same."""
        outcome = judged(body)

        assert outcome.ending is Ending.STREAM_INVALID
        assert outcome.answer is None

    @pytest.mark.parametrize("text", ["", " \n"])
    def test_an_empty_answer(self, judged: Callable[..., CallOutcome], text: str) -> None:
        """F16: no answer, and none taken from elsewhere."""
        assert judged("say(good[0], text, good[2])", text=message(text)).ending is Ending.NO_ANSWER

    def test_half_a_surrogate_pair_in_the_answer(self, judged: Callable[..., CallOutcome]) -> None:
        """F18: typed, and the bytes are kept."""
        line = '{"role":"assistant","content":"\\ud83d"}'
        outcome = judged("say(good[0]); raw(line.encode() + b'\\n'); say(good[2])", line=line)

        assert outcome.ending is Ending.STREAM_INVALID
        assert outcome.recording is not None
        assert outcome.recording.lines[1] == line.encode()

    def test_another_model_in_the_wire_file(self, judged: Callable[..., CallOutcome]) -> None:
        """F37 P2: another alias was asked in the session."""
        outcome = judged("keep({'type': 'llm.request', 'modelAlias': 'other'})\nsay(*good)")

        assert outcome.ending is Ending.MODEL_MISMATCH
        assert outcome.observed_model == "other"

    @pytest.mark.parametrize("name", ["Bash", "Skill", "AnythingNew"])
    def test_a_tool_ends_a_judge_call(self, judged: Callable[..., CallOutcome], name: str) -> None:
        """P9 R31: at its first sign, and whatever comes after it."""
        body = "say(good[0], used[0])\ntime.sleep(20)"
        outcome = judged(body, used=tool(name))

        assert outcome.ending is Ending.TOOL_ACTIVITY
        assert outcome.latency_ms < 10_000

    def test_what_the_stream_flooded(self, judged: Callable[..., CallOutcome]) -> None:
        """P5: a limit with a name."""
        outcome = judged("say(good[0])\nfor _ in range(30000): say({'role': 'meta', 'type': 'x'})")

        assert (outcome.ending, outcome.limit) == (Ending.LIMIT, "lines")

    def test_links_in_its_folders_are_not_followed(self, judged: Callable[..., CallOutcome]) -> None:
        """P3: a session could point anywhere; what it cost is unknown then, and the answer stands."""
        body = (
            "place = os.path.join(os.environ['KIMI_CODE_HOME'], wire)\nos.makedirs(place)\n"
            "json.dump(usage, open(folder + '/elsewhere', 'w'))\n"
            "os.symlink(folder + '/elsewhere', place + '/wire.jsonl')\nsay(*good)"
        )
        outcome = judged(body)

        assert outcome.ending is Ending.SUCCESS
        assert outcome.usage == UNKNOWN_USAGE

    def test_more_wire_files_than_are_read(self, judged: Callable[..., CallOutcome]) -> None:
        """P5 P8: 64 MiB and a byte; what it cost is unknown, and the answer stands."""
        body = (
            "keep(usage)\n"
            "os.truncate(os.path.join(os.environ['KIMI_CODE_HOME'], wire, 'wire.jsonl'), 67_108_865)\n"
            "say(*good)"
        )
        outcome = judged(body)

        assert outcome.ending is Ending.SUCCESS
        assert outcome.usage == UNKNOWN_USAGE
        assert outcome.session_id == SESSION


class TestProviderErrors:
    @pytest.mark.parametrize(
        ("words", "kind"),
        [
            ("provider.auth_error: 401 Bad key", "auth_unavailable"),
            ("provider.rate_limit: 429 Slow down", "rate_limited"),
            ("provider.api_error: 429 You exceeded your current quota.", "quota_unavailable"),
            ("provider.api_error: 500 It broke", "server_error"),
            ("provider.connection_error: terminated", "connection_lost"),
            ('Model "x" is not configured in config.toml.', "model_unavailable"),
            ("Something new", "other"),
        ],
    )
    def test_what_stderr_says(self, judged: Callable[..., CallOutcome], words: str, kind: str) -> None:
        """P7 F13: half an answer before it is none."""
        outcome = judged("say(*good[:2]); fail(words)", words=words)

        assert (outcome.ending, outcome.error_kind) == (Ending.PROVIDER_ERROR, kind)
        assert outcome.answer is None
        assert outcome.retryable is (kind in {"rate_limited", "server_error", "connection_lost"})

    def test_the_session_of_a_failure(self, judged: Callable[..., CallOutcome]) -> None:
        """P2: told by its folder, although the stream did not get that far."""
        outcome = judged("keep(usage); say(good[0]); fail('provider.api_error: 500 x')")

        assert outcome.error_kind == "server_error"
        assert outcome.session_id == SESSION

    def test_a_provider_that_declines(self, judged: Callable[..., CallOutcome]) -> None:
        """P6: refused, in the program's own words."""
        body = "say(*good[:2]); keep(usage); fail('Provider safety policy blocked the response.')"

        assert judged(body).ending is Ending.REFUSED

    def test_an_option_it_does_not_take(self, judged: Callable[..., CallOutcome]) -> None:
        """P7: told before a word on stdout."""
        outcome = judged("sys.stderr.write(\"error: unknown option '--agent-file'\\n\"); sys.exit(1)")

        assert outcome.error_kind == "unsupported_flag"

    def test_a_failed_call_is_not_repeated(self, judged: Callable[..., CallOutcome], tmp_path: Path) -> None:
        """P11: one call starts one program."""
        judged("open(folder + '/starts', 'a').write('x'); say(good[0]); fail('provider.rate_limit: 429 x')")

        assert (tmp_path / "starts").read_text() == "x"


class TestEnds:
    @pytest.mark.slow
    def test_an_answer_and_no_exit(self, judged: Callable[..., CallOutcome]) -> None:
        """F6 P10: complete after the grace, and nothing is left."""
        outcome = judged("say(*good)\ntime.sleep(60)")

        assert outcome.ending is Ending.SUCCESS
        assert [warning.code.value for warning in outcome.warnings] == ["lingered"]

    @pytest.mark.slow
    def test_silence(self, judged: Callable[..., CallOutcome]) -> None:
        """F6 P10: over with its time, whatever stood there."""
        outcome = judged("say(*good[:2])\ntime.sleep(60)", seconds=1)

        assert outcome.ending is Ending.TIMEOUT
        assert outcome.answer is None
        assert outcome.latency_ms < 4000

    def test_our_own_stop(self, tmp_path: Path, around: Surroundings) -> None:
        """P6 P10: cancelled."""
        provider = KimiProvider.at(write_kimi(tmp_path, "time.sleep(60)"), around=around)
        outcome = provider.judge(question(), around=around, cancelled=lambda: True)

        assert outcome.ending is Ending.CANCELLED


class TestPrompts:
    def test_the_longest(self, judged: Callable[..., CallOutcome], tmp_path: Path) -> None:
        """P4: below 120 KiB it is one argument; stdin is empty."""
        prompt = "é" * 61_439 + "x"
        outcome = judged(TELL, prompt=prompt)

        assert outcome.ending is Ending.SUCCESS
        assert told(tmp_path)["argv"][-2:] == ["-p", prompt]
        assert told(tmp_path)["stdin"] == ""

    @pytest.mark.parametrize(
        ("prompt", "code"),
        [
            ("x" * 122_880, "prompt_too_long"),
            ("a\0b", "prompt_too_long"),
            ("/goal finish it", "session_unavailable"),
            (" \n/goal\nx", "session_unavailable"),
            ("/goal", "session_unavailable"),
        ],
    )
    def test_what_cannot_be_one(
        self, judged: Callable[..., CallOutcome], tmp_path: Path, prompt: str, code: str
    ) -> None:
        """P4: refused by a word, and nothing is started."""
        outcome = judged("open(folder + '/ran', 'w')", prompt=prompt)

        assert outcome.ending is Ending.UNSTARTABLE
        assert [warning.code.value for warning in outcome.warnings] == [code]
        assert not (tmp_path / "ran").exists()

    @pytest.mark.parametrize("prompt", ["--version", "-p", "--model", "/goals", "/help @x $HOME"])
    def test_what_looks_like_something_else(
        self, judged: Callable[..., CallOutcome], tmp_path: Path, prompt: str
    ) -> None:
        """P4: it is a prompt all the same."""
        assert judged(TELL, prompt=prompt).ending is Ending.SUCCESS
        assert told(tmp_path)["argv"][-2:] == ["-p", prompt]
