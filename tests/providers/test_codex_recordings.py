"""What real codex streams come to; every expectation is written by hand from the recording."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from skill_effectiveness.execution import Ended, ProcessResult
from skill_effectiveness.providers import UNKNOWN_USAGE, CallOutcome, Usage
from skill_effectiveness.providers.classification import CallFacts, outcome_of
from skill_effectiveness.providers.codex import VOCABULARY, read_event, salvage
from skill_effectiveness.providers.stream import StreamReader
from tests.support.recorded_streams import ANSWER, KILLED, RECORDINGS, every_beginning, exited, taken

FOLDER = RECORDINGS / "codex"
ONE_REQUEST = Usage(input_tokens=1200, cached_input_tokens=200, output_tokens=34, reasoning_output_tokens=5)
TWO_REQUESTS = Usage(input_tokens=2400, cached_input_tokens=400, output_tokens=68, reasoning_output_tokens=10)


@dataclass(frozen=True)
class Expected:
    """What one recording comes to; `notices` counts the warnings, remarks on the model included."""

    session: str
    exit_code: int
    ending: str
    kind: str | None = None
    retryable: bool = False
    answer: str | None = None
    usage: Usage = UNKNOWN_USAGE
    notices: int = 1
    model: str = field(default="fake-model")


EXPECTED = {
    "text": Expected("01a22c7c-f2cd-7422-bb5a-3e3b795d623e", 0, "success", answer=ANSWER, usage=ONE_REQUEST),
    "schema": Expected(
        "01a22c67-64cd-7fe2-b0eb-12414102456b", 0, "success", answer=ANSWER, usage=ONE_REQUEST
    ),
    "reasoning": Expected(
        "01a22c67-66ba-7da0-bc0e-111e5a46ea56", 0, "success", answer=ANSWER, usage=ONE_REQUEST
    ),
    "skills_mention": Expected(
        "01a22c67-6053-77a3-a5e6-293a80e8f34d", 0, "success", answer=ANSWER, usage=ONE_REQUEST
    ),
    # The sandbox refused a command, and the stream does not show that there was one: the limit of the label.
    "shell_write_denied": Expected(
        "01a22c67-3ad5-7630-a0c6-c4de8fa3b1cd", 0, "success", answer=ANSWER, usage=TWO_REQUESTS
    ),
    "shell": Expected("01a22c67-3653-76d0-96ba-6fa8ca26ac87", 0, "tool_activity", usage=TWO_REQUESTS),
    "shell_fail": Expected("01a22c67-3877-7022-8960-98921315f91d", 0, "tool_activity", usage=TWO_REQUESTS),
    "skills_read": Expected("01a22c67-626d-7c23-9993-e4226659b9d2", 0, "tool_activity", usage=TWO_REQUESTS),
    "patch_known_model": Expected(
        "01a22c68-aa0f-7462-a957-f888c463641f", 0, "tool_activity", usage=TWO_REQUESTS, notices=0
    ),
    "fail401": Expected(
        "01a22c67-49ac-71a0-aa41-fb527cef530c", 1, "provider_error", "auth_unavailable", notices=3
    ),
    "fail429": Expected(
        "01a22c67-4158-7900-bbff-3ffa480953d7", 1, "provider_error", "rate_limited", retryable=True, notices=3
    ),
    "fail500": Expected(
        "01a22c67-3d0b-78f1-8710-bb3c714d795f", 1, "provider_error", "server_error", retryable=True, notices=3
    ),
    "quota": Expected(
        "01a22c67-479f-74c2-9a54-747e5c68eb43", 1, "provider_error", "quota_unavailable", notices=2
    ),
    "cut": Expected(
        "01a22c67-4f17-7e10-9157-503a84adda3b",
        1,
        "provider_error",
        "connection_lost",
        retryable=True,
        notices=3,
    ),
    "wrongmodel": Expected(
        "01a22c67-5a1e-71a0-b591-f02f8f93c7b0",
        1,
        "provider_error",
        "model_unavailable",
        notices=2,
        model="wrong-model",
    ),
}


def replay(
    name: str, process: ProcessResult, model: str = "fake-model", cut: int | None = None
) -> CallOutcome:
    log, whole = taken(FOLDER / f"{name}.jsonl", StreamReader(read_event, salvage), process, cut)
    return outcome_of(CallFacts(whole, log.events, model, 0), VOCABULARY)


def test_every_recording_has_an_expectation() -> None:
    """P5: no recorded stream goes unread."""
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == {*EXPECTED, "hang_killed"}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recording_comes_to_its_ending(name: str) -> None:
    """P2 P5 P6 P7 P8 P9 P11 F14: real streams, read to the end."""
    expected = EXPECTED[name]
    outcome = replay(name, exited(expected.exit_code), expected.model)

    assert outcome.ending == expected.ending
    assert outcome.error_kind == expected.kind
    assert outcome.retryable is expected.retryable
    assert outcome.answer == expected.answer
    assert outcome.usage == expected.usage
    assert outcome.session_id == expected.session
    assert outcome.exit_code == expected.exit_code
    assert outcome.observed_model is None
    assert [warning.code for warning in outcome.warnings] == ["provider_notice"] * expected.notices


def test_a_killed_hang_is_a_timeout() -> None:
    """P6: our own stop, not a fault of the stream."""
    outcome = replay("hang_killed", KILLED)

    assert outcome.ending == "timeout"
    assert outcome.session_id == "01a22c68-30c0-7223-9560-27b7cbb3d135"
    assert outcome.usage == UNKNOWN_USAGE


def test_the_same_stream_ended_by_anyone_else_is_invalid() -> None:
    """F6 P6: no terminal marker."""
    assert replay("hang_killed", ProcessResult(ended=Ended.EXITED, signal=15)).ending == "stream_invalid"
    assert replay("hang_killed", exited(0)).ending == "stream_invalid"


def test_no_beginning_of_a_good_stream_is_a_success() -> None:
    """P6 F15: cut anywhere, even at the end of a line, it does not count; whole it does."""
    every_beginning(FOLDER / "text.jsonl", lambda cut: replay("text", exited(0), cut=cut))


@pytest.mark.parametrize(
    "name", [name for name, expected in EXPECTED.items() if expected.ending == "success"]
)
def test_a_good_stream_with_another_exit_is_invalid(name: str) -> None:
    """P6: the exit code has to be 0."""
    assert replay(name, exited(1)).ending == "stream_invalid"
