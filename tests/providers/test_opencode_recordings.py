"""What real opencode streams and exports come to; every expectation is written by hand from the recording."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from skill_effectiveness.execution import Ended, ProcessResult
from skill_effectiveness.providers import UNKNOWN_USAGE, CallKind, CallOutcome, Usage
from skill_effectiveness.providers.classification import CallFacts, outcome_of
from skill_effectiveness.providers.events import SessionStarted, TurnCompleted, TurnStarted
from skill_effectiveness.providers.opencode_events import VOCABULARY, Stream, salvage
from skill_effectiveness.providers.opencode_export import compare, read_export
from skill_effectiveness.providers.stream import StreamReader
from tests.support.recorded_streams import ANSWER, KILLED, RECORDINGS, every_beginning, exited, taken

FOLDER = RECORDINGS / "opencode"
# Per request: 1000 sent and 200 from a cache; 29 said and 5 reasoned. No price is known of the model.
ONE_REQUEST = Usage(input_tokens=1200, cached_input_tokens=200, output_tokens=34, reasoning_output_tokens=5)
TWO_REQUESTS = Usage(input_tokens=2400, cached_input_tokens=400, output_tokens=68, reasoning_output_tokens=10)


@dataclass(frozen=True)
class Expected:
    """What one recording comes to, for a worker."""

    session: str
    exit_code: int
    ending: str
    kind: str | None = None
    retryable: bool = False
    answer: str | None = None
    usage: Usage = UNKNOWN_USAGE
    model: str = "fake/fake-model"
    warnings: tuple[str, ...] = ()


EXPECTED = {
    "text": Expected("ses_dd39508f8ffePzG06kQP7nWN8i", 0, "success", answer=ANSWER, usage=ONE_REQUEST),
    "shell": Expected("ses_dd39469abffeafLZj5POP7Aqw1", 0, "success", answer=ANSWER, usage=TWO_REQUESTS),
    # A command that fails is a result like any other.
    "shell_fail": Expected("ses_dd3943bbeffen36NFYDT9Lk7ys", 0, "success", answer=ANSWER, usage=TWO_REQUESTS),
    "write": Expected("ses_dd393becfffe3P7nP6VntjhZDQ", 0, "success", answer=ANSWER, usage=TWO_REQUESTS),
    "skill_call": Expected("ses_dd38b6c79ffeeZRnzqW57n4IBY", 0, "success", answer=ANSWER, usage=TWO_REQUESTS),
    "skill_call_unknown": Expected(
        "ses_dd3928d6effeR7KL2aq1K22jwh", 0, "success", answer=ANSWER, usage=TWO_REQUESTS
    ),
    # A permission that would have to be asked for is refused, and the program ends as if all were well.
    "shell_ask": Expected("ses_dd393fafaffewvQN2W4cUi7UZn", 0, "no_answer", usage=ONE_REQUEST),
    "fail401": Expected("ses_dd39214bfffe37nBb66xjwT3qB", 1, "provider_error", "auth_unavailable"),
    "fail429": Expected(
        "ses_dd38fceccffe6MYe87TbymBWYw", 1, "provider_error", "rate_limited", retryable=True
    ),
    # Without a further look at its list of models the program says no more than that it failed.
    "wrongmodel_undeclared": Expected(
        "ses_dd393403cffe6mN2q4v6OYqfX4", 1, "provider_error", "other", model="fake/nope"
    ),
    # Exit code 0, an answer, and a line on stderr: the agent is another.
    "wrongagent": Expected(
        "ses_dd3931e5affe4grqCLFGRlrhk2",
        0,
        "stream_invalid",
        usage=ONE_REQUEST,
        warnings=("surface_differs", "surface_differs"),
    ),
}


def replay(
    name: str,
    process: ProcessResult,
    *,
    model: str = "fake/fake-model",
    kind: CallKind = CallKind.WORK,
    cut: int | None = None,
) -> CallOutcome:
    """A recording as the adapter reads it: the lines, then the export, then what is left to conclude."""
    stream = Stream()
    log, whole = taken(FOLDER / f"{name}.jsonl", StreamReader(stream.read, salvage), process, cut)
    events = [*log.events]
    sessions = {event.session_id for event in events if isinstance(event, SessionStarted)}
    if process.ended is Ended.EXITED and sessions:
        export = read_export((FOLDER / f"{name}.export.json").read_bytes())
        assert export is not None
        events += compare(export, session=sessions.pop(), agent="probe", model=model, stream=stream)
    events += [TurnStarted(), TurnCompleted(stream.usage)] if stream.unanswered else []
    return outcome_of(CallFacts(whole, events, model, 0, kind), VOCABULARY)


def test_every_recording_has_an_expectation() -> None:
    """P5: no recorded stream goes unread."""
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == {*EXPECTED, "cut", "hang_killed"}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recording_comes_to_its_ending(name: str) -> None:
    """P2 P5 P6 P7 P8 F13 F16: real streams and exports, read to the end."""
    expected = EXPECTED[name]
    outcome = replay(name, exited(expected.exit_code), model=expected.model)

    assert outcome.ending == expected.ending
    assert outcome.error_kind == expected.kind
    assert outcome.retryable is expected.retryable
    assert outcome.answer == expected.answer
    assert outcome.usage == expected.usage
    assert outcome.session_id == expected.session
    assert outcome.observed_model == expected.model
    assert tuple(warning.code for warning in outcome.warnings) == expected.warnings


@pytest.mark.parametrize("name", ["shell", "shell_fail", "write", "skill_call", "skill_call_unknown"])
def test_a_judge_may_use_no_tool(name: str) -> None:
    """P9 R31: a skill call is one too, and so is one that was refused."""
    assert replay(name, exited(0), kind=CallKind.JUDGE).ending == "tool_activity"


@pytest.mark.parametrize("name", ["cut", "hang_killed"])
def test_a_killed_recording_is_a_timeout(name: str) -> None:
    """P6: our own stop, not a fault of the stream; a cut stream is tried again in silence until then."""
    outcome = replay(name, KILLED)

    assert outcome.ending == "timeout"
    assert outcome.usage == UNKNOWN_USAGE


@pytest.mark.parametrize("name", ["cut", "hang_killed"])
def test_the_same_stream_ended_by_anyone_else_is_invalid(name: str) -> None:
    """F6 F15 P6: no terminal marker."""
    assert replay(name, ProcessResult(ended=Ended.EXITED, signal=15)).ending == "stream_invalid"
    assert replay(name, exited(0)).ending == "stream_invalid"


def test_no_beginning_of_a_good_stream_is_a_success() -> None:
    """P6 F15: cut anywhere, even at the end of a line, it does not count; whole it does."""
    every_beginning(FOLDER / "text.jsonl", lambda cut: replay("text", exited(0), cut=cut))


@pytest.mark.parametrize("name", [name for name, expected in EXPECTED.items() if expected.exit_code == 0])
def test_a_stream_without_an_error_and_with_another_exit_is_invalid(name: str) -> None:
    """P6: the exit code has to be 0."""
    assert replay(name, exited(1)).ending == "stream_invalid"


@pytest.mark.parametrize(
    "name", [name for name, expected in EXPECTED.items() if expected.ending == "success"]
)
def test_another_model_than_the_one_asked_for_is_seen(name: str) -> None:
    """P2 F37: an error for workers, a remark for readers."""
    worked = replay(name, exited(0), model="fake/other")
    read = replay(name, exited(0), model="fake/other", kind=CallKind.READ)

    assert worked.ending == "model_mismatch"
    assert worked.observed_model == "fake/fake-model"
    assert read.ending == "success"
    assert read.observed_model == "fake/fake-model"
