"""What real claude streams come to; every expectation is written by hand from the recording."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from skill_effectiveness.execution import Ended, ProcessResult
from skill_effectiveness.providers import UNKNOWN_USAGE, CallKind, CallOutcome, Usage
from skill_effectiveness.providers.classification import CallFacts, outcome_of
from skill_effectiveness.providers.claude import ClaudeProvider
from skill_effectiveness.providers.claude_events import ClaudeEvents
from skill_effectiveness.providers.claude_surface import Surface
from skill_effectiveness.providers.stream import StreamReader
from tests.support.recorded_streams import ANSWER, KILLED, RECORDINGS, exited, taken

FOLDER = RECORDINGS / "claude"
FORMED = '{"reason":"fake model says so","score":1,"verdict":"pass"}'
ONE_REQUEST = Usage(1200, 200, 34, 0, 0.00472)
TWO_REQUESTS = Usage(2400, 400, 68, 0, 0.00944)

ALL_TOOLS = frozenset(
    {
        "Task", "Bash", "CronCreate", "CronDelete", "CronList", "Edit", "EnterWorktree", "ExitWorktree",
        "ListAgents", "Monitor", "NotebookEdit", "Read", "ReportFindings", "ScheduleWakeup", "SendMessage",
        "Skill", "TaskStop", "ToolSearch", "WebFetch", "WebSearch", "Workflow", "Write",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Expected:
    """What one recording comes to in a call of its kind; `notices` counts the warnings."""

    session: str
    exit_code: int
    ending: str
    kind: str | None = None
    retryable: bool = False
    answer: str | None = None
    usage: Usage = UNKNOWN_USAGE
    notices: int = 0
    model: str = "claude-fake-1"
    observed: str = "claude-fake-1"
    tools: frozenset[str] = frozenset()
    skills: frozenset[str] = frozenset()
    call: CallKind = CallKind.JUDGE
    formed: bool = False


SHELL = frozenset({"Bash", "Read"})
EXPECTED = {
    "text": Expected("ac07c37d-56f4-4dad-ab7e-5b73e64bb374", 0, "success", answer=ANSWER, usage=ONE_REQUEST),
    "schema": Expected(
        "3c47617b-8ac3-4da5-b081-68c899c2a217",
        0,
        "success",
        answer=FORMED,
        usage=ONE_REQUEST,
        tools=frozenset({"StructuredOutput"}),
        formed=True,
    ),
    "skills_none": Expected(
        "ff640e68-e859-4dc1-93eb-0dea9ed58807",
        0,
        "success",
        answer=ANSWER,
        usage=ONE_REQUEST,
        tools=ALL_TOOLS,
    ),
    "shell": Expected(
        "d5da0859-7528-4dc4-a571-fb08cfc40439",
        0,
        "success",
        answer=ANSWER,
        usage=TWO_REQUESTS,
        tools=SHELL,
        call=CallKind.READ,
    ),
    "shell_fail": Expected(
        "2ff22db6-e7d0-4494-bddc-0e012034b71c",
        0,
        "success",
        answer=ANSWER,
        usage=TWO_REQUESTS,
        tools=SHELL,
        call=CallKind.READ,
    ),
    "write_denied": Expected(
        "b6353754-03eb-4280-b9e3-ec826a585c03",
        0,
        "success",
        answer=ANSWER,
        usage=TWO_REQUESTS,
        notices=1,
        tools=frozenset({"Read", "Write"}),
        call=CallKind.READ,
    ),
    "skill_call": Expected(
        "1632e196-5f5a-4031-8236-aaa964985c24",
        0,
        "success",
        answer=ANSWER,
        usage=TWO_REQUESTS,
        tools=frozenset({"Read", "Skill"}),
        skills=frozenset({"sk-wd-claude"}),
        call=CallKind.WORK,
    ),
    "skill_call_unknown": Expected(
        "1111afe2-9213-41d2-a6af-d9ecd57d88ae",
        0,
        "success",
        answer=ANSWER,
        usage=TWO_REQUESTS,
        tools=frozenset({"Skill"}),
        call=CallKind.WORK,
    ),
    "fail401": Expected(
        "8a137d34-520b-415a-8d64-626bf1fb0ea6", 1, "provider_error", "auth_unavailable", notices=2
    ),
    "fail429": Expected(
        "b6c2425f-88a7-493c-addf-ed4b56945642", 1, "provider_error", "rate_limited", retryable=True, notices=2
    ),
    "fail500": Expected(
        "b3fc742a-e62a-45e2-867a-6f48ce1b8912", 1, "provider_error", "server_error", retryable=True, notices=2
    ),
    # The totals by model tell of ten tokens where the counters of the last turn tell of one.
    "cut": Expected(
        "7917bfcf-db10-43ed-8184-785732b7b8af",
        1,
        "provider_error",
        "connection_lost",
        retryable=True,
        notices=2,
        usage=Usage(1200, 200, 10, 0, 0.00424),
    ),
    "wrongmodel": Expected(
        "a5269f51-d536-415d-89df-095760ea72b5",
        1,
        "provider_error",
        "model_unavailable",
        notices=1,
        model="claude-wrong-9",
        observed="claude-wrong-9",
    ),
    "model_alias": Expected(
        "259ad2b8-a04a-4bba-957d-3dc3e39e3ab8",
        0,
        "model_mismatch",
        usage=Usage(1200, 200, 34, 0, 0.00236),
        model="sonnet",
        observed="claude-sonnet-5-5",
    ),
}


def replay(
    name: str,
    process: ProcessResult,
    expected: Expected,
    *,
    cut: int | None = None,
    call: CallKind | None = None,
) -> CallOutcome:
    surface = Surface(expected.model, expected.tools, "default", "/workspace/config", skills=expected.skills)
    events = ClaudeEvents(surface, formed=expected.formed)
    log, whole = taken(FOLDER / f"{name}.jsonl", StreamReader(events.read, events.salvage), process, cut)
    facts = CallFacts(whole, log.events, expected.model, 0, call or expected.call)
    return outcome_of(facts, ClaudeProvider.vocabulary)


def test_every_recording_has_an_expectation() -> None:
    """P5: no recorded stream goes unread."""
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == {*EXPECTED, "hang_killed"}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recording_comes_to_its_ending(name: str) -> None:
    """P2 P5 P6 P7 P8 P11 F14 F38: real streams, read to the end; counters of messages are no totals."""
    expected = EXPECTED[name]
    outcome = replay(name, exited(expected.exit_code), expected)

    assert outcome.ending == expected.ending
    assert outcome.error_kind == expected.kind
    assert outcome.retryable is expected.retryable
    assert outcome.answer == expected.answer
    assert outcome.usage == expected.usage
    assert outcome.session_id == expected.session
    assert outcome.exit_code == expected.exit_code
    assert outcome.observed_model == expected.observed
    assert [warning.code for warning in outcome.warnings] == ["provider_notice"] * expected.notices


@pytest.mark.parametrize("name", ["shell", "shell_fail", "write_denied", "skill_call", "skill_call_unknown"])
def test_a_tool_in_a_judge_call(name: str) -> None:
    """P9 R31: of any name, done, failed or denied."""
    outcome = replay(name, exited(0), EXPECTED[name], call=CallKind.JUDGE)

    assert outcome.ending == "tool_activity"
    assert outcome.answer is None


@pytest.mark.parametrize("name", EXPECTED)
def test_the_surface_of_a_judge_call_is_demanded_of_every_stream(name: str) -> None:
    """P9 R31: what was not asked for, or lacks the tool for the answer, is another session."""
    expected = EXPECTED[name]
    judged = Expected(expected.session, 0, "", model=expected.model, tools=frozenset({"StructuredOutput"}))
    outcome = replay(name, exited(0), judged, call=CallKind.READ)

    differs = "surface_differs" in [warning.code for warning in outcome.warnings]
    assert differs is (name != "schema")
    assert outcome.ending == ("stream_invalid" if differs else "success")


def test_an_alias_is_told_in_a_read_call() -> None:
    """F37 P13: a warning in the record, which has the name that was observed."""
    outcome = replay("model_alias", exited(0), EXPECTED["model_alias"], call=CallKind.READ)

    assert (outcome.ending, outcome.observed_model) == ("success", "claude-sonnet-5-5")


def test_a_killed_hang_is_a_timeout() -> None:
    """P6: our own stop, not a fault of the stream."""
    outcome = replay("hang_killed", KILLED, EXPECTED["text"])

    assert outcome.ending == "timeout"
    assert outcome.session_id == "bc7029b6-111a-4c17-b5ad-0efeb4e64674"
    assert outcome.usage == UNKNOWN_USAGE


def test_the_same_stream_ended_by_anyone_else_is_invalid() -> None:
    """F6 P6: no terminal marker."""
    killed = ProcessResult(ended=Ended.EXITED, signal=15)
    assert replay("hang_killed", killed, EXPECTED["text"]).ending == "stream_invalid"
    assert replay("hang_killed", exited(0), EXPECTED["text"]).ending == "stream_invalid"


def test_no_beginning_of_a_good_stream_is_a_success() -> None:
    """P6 F15: cut anywhere, even at the end of a line, it does not count; whole it does."""
    data = (FOLDER / "schema.jsonl").read_bytes()
    ends = [index + 1 for index, byte in enumerate(data) if byte == ord("\n")]
    cuts = sorted({*range(0, len(data), 37), *ends, *(end - 1 for end in ends)})

    endings = [replay("schema", exited(0), EXPECTED["schema"], cut=cut).ending for cut in cuts]

    assert endings[0] == "no_answer"
    assert set(endings[1:-1]) == {"stream_invalid"}
    assert endings[-1] == "success"


@pytest.mark.parametrize(
    "name", [name for name, expected in EXPECTED.items() if expected.ending == "success"]
)
def test_a_good_stream_with_another_exit_is_invalid(name: str) -> None:
    """P6: the exit code has to be 0."""
    assert replay(name, exited(1), EXPECTED[name]).ending == "stream_invalid"
