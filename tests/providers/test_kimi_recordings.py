"""What real Kimi streams come to; every expectation is written by hand from the recording."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from skill_effectiveness.execution import Ended, ProcessResult
from skill_effectiveness.providers import UNKNOWN_USAGE, CallKind, CallOutcome
from skill_effectiveness.providers.classification import CallFacts, outcome_of
from skill_effectiveness.providers.events import ToolActivity
from skill_effectiveness.providers.kimi_events import VOCABULARY, read_event, read_stderr, salvage
from skill_effectiveness.providers.stream import StreamReader
from tests.support.recorded_streams import ANSWER, KILLED, RECORDINGS, every_beginning, exited, taken

FOLDER = RECORDINGS / "kimi-code"


@dataclass(frozen=True)
class Expected:
    """What one recording comes to in a judge call and in a work call."""

    exit_code: int
    session: str | None = None
    judged: str = "provider_error"
    worked: str = "provider_error"
    kind: str | None = None
    retryable: bool = False
    tools: tuple[str, ...] = ()
    retries: int = 0
    stderr: int = 1


def used(session: str, tool: str, stderr: int = 0) -> Expected:
    """A session that used one tool and answered."""
    return Expected(0, session, "tool_activity", "success", tools=(tool, "tool"), stderr=stderr)


EXPECTED = {
    "text": Expected(0, "session_50eaee28-d900-4065-a9ab-98a13a9f223f", "success", "success", stderr=0),
    "shell": used("session_c86e4dc5-a265-4083-bc92-e1516e56c42b", "Bash", stderr=1),
    "shell_fail": used("session_eabbd84e-b5a1-495c-b203-7895a47a00cf", "Bash", stderr=1),
    "write": used("session_c4d331d6-40a3-486a-af16-9f245aa01ba8", "Write"),
    "skill_call": used("session_f6fe69f6-56b9-406b-9f2f-3692e4ded73d", "Skill"),
    "skill_call_unknown": used("session_66398404-9df3-4619-9e43-4e38d4c36880", "Skill"),
    "fail401": Expected(1, kind="auth_unavailable"),
    "fail429": Expected(1, kind="rate_limited", retryable=True, retries=9),
    "fail500_attempts2": Expected(1, kind="server_error", retryable=True, retries=1),
    "quota": Expected(1, kind="quota_unavailable"),
    # Half an answer stands in the stream as a whole line.
    "cut_attempts2": Expected(1, kind="connection_lost", retryable=True, retries=1),
    "wrongmodel_undeclared": Expected(1, kind="model_unavailable"),
}


def replay(
    name: str, process: ProcessResult, kind: CallKind = CallKind.JUDGE, cut: int | None = None
) -> CallOutcome:
    log, whole = taken(FOLDER / f"{name}.jsonl", StreamReader(read_event, salvage), process, cut, stderr=True)
    events = (*log.events, *read_stderr(whole))
    return outcome_of(CallFacts(whole, events, "fake-model", 0, kind), VOCABULARY)


def test_every_recording_has_an_expectation() -> None:
    """P5: no recorded stream goes unread."""
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == {*EXPECTED, "hang_killed"}
    assert {path.stem for path in FOLDER.glob("*.stderr")} == {
        name for name, expected in EXPECTED.items() if expected.stderr
    }


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recording_comes_to_its_ending(name: str) -> None:
    """P2 P5 P6 P7 P8 P9 P11 F13: real streams and what stderr says, read to the end."""
    expected = EXPECTED[name]
    judged = replay(name, exited(expected.exit_code))

    assert judged.ending == expected.judged
    assert judged.answer == (ANSWER if expected.judged == "success" else None)
    assert judged.error_kind == expected.kind
    assert judged.retryable is expected.retryable
    assert judged.session_id == expected.session
    assert judged.exit_code == expected.exit_code
    assert judged.observed_model is None
    assert judged.usage == UNKNOWN_USAGE
    tools = tuple(event.kind for event in judged.events if isinstance(event, ToolActivity))
    assert tools == expected.tools
    codes = [warning.code for warning in judged.warnings]
    assert codes == ["provider_notice"] * expected.retries + ["stderr_output"] * expected.stderr


@pytest.mark.parametrize("name", EXPECTED)
def test_a_worker_may_use_tools(name: str) -> None:
    """P13: the same streams of a work call; the answer is the text after the last tool."""
    expected = EXPECTED[name]
    worked = replay(name, exited(expected.exit_code), CallKind.WORK)

    assert worked.ending == expected.worked
    assert worked.answer == (ANSWER if expected.worked == "success" else None)


def test_half_an_answer_is_none() -> None:
    """P6 F6: a text before a cut looks as a whole one does."""
    for name in ("cut_attempts2", "hang_killed"):
        for process in (exited(0), exited(7), ProcessResult(ended=Ended.EXITED, signal=15)):
            assert replay(name, process).answer is None
    assert replay("hang_killed", exited(0)).ending == "stream_invalid"
    assert replay("hang_killed", exited(143)).ending == "stream_invalid"
    assert replay("hang_killed", ProcessResult(ended=Ended.EXITED, signal=15)).ending == "stream_invalid"


def test_a_killed_hang_is_a_timeout() -> None:
    """P6: our own stop, not a fault of the stream."""
    assert replay("hang_killed", KILLED).ending == "timeout"


def test_no_beginning_of_a_good_stream_is_a_success() -> None:
    """P6 F15: cut anywhere, even at the end of a line, it does not count; whole it does."""
    every_beginning(FOLDER / "text.jsonl", lambda cut: replay("text", exited(0), cut=cut))


def test_a_good_stream_with_another_exit_is_invalid() -> None:
    """P6: the exit code has to be 0."""
    assert replay("text", exited(1)).ending == "stream_invalid"
