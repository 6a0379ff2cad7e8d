"""One classification of endings, over typed events and the facts of a process."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.execution import Ended, LimitName, ProcessResult, StartFault
from skill_effectiveness.providers import UNKNOWN_USAGE, CallKind, Ending, ProviderErrorKind, Usage
from skill_effectiveness.providers.classification import (
    CallFacts,
    Classification,
    ProviderVocabulary,
    classify,
    outcome_of,
)
from skill_effectiveness.providers.events import (
    AnswerInvalid,
    Declined,
    Event,
    Flood,
    Message,
    ModelReported,
    Notice,
    NoticeKind,
    Progress,
    Reasoning,
    SessionStarted,
    SurfaceDiffers,
    ToolActivity,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
    Unanswered,
    Unknown,
    Unreadable,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

WELL = ProcessResult(ended=Ended.EXITED, exit_code=0, stdin_complete=True)
BADLY = replace(WELL, exit_code=1)
VOCABULARY = ProviderVocabulary(
    error_kind={
        "quota": ProviderErrorKind.QUOTA_UNAVAILABLE,
        "busy": ProviderErrorKind.SERVER_ERROR,
    }.__getitem__,
    silent_kind=lambda process: ProviderErrorKind.UNSUPPORTED_FLAG if process.stderr else None,
)
SESSION = SessionStarted("s-1")
DONE = TurnCompleted(Usage(input_tokens=10, output_tokens=2))
GOOD: list[Event] = [SESSION, TurnStarted(), Message("{}"), DONE]

REMARK = Notice(NoticeKind.REMARK, "quota")
RETRY = Notice(NoticeKind.RETRY, "quota")
ERROR = Notice(NoticeKind.ERROR, "quota")


def ending(events: Sequence[Event], process: ProcessResult = WELL) -> Classification:
    return classify(CallFacts(process, events, "model", 0), VOCABULARY)


class TestSuccess:
    def test_all_four_conditions_make_a_success(self) -> None:
        """P6: exit code 0, terminal marker, an answer, no fatal event."""
        assert ending(GOOD) == Classification(Ending.SUCCESS, answer="{}")

    @pytest.mark.parametrize(
        ("events", "process", "expected"),
        [
            (GOOD, BADLY, Ending.STREAM_INVALID),
            ([SESSION, TurnStarted(), Message("{}")], WELL, Ending.STREAM_INVALID),
            ([SESSION, TurnStarted(), DONE], WELL, Ending.NO_ANSWER),
            ([*GOOD, TurnFailed("busy")], WELL, Ending.PROVIDER_ERROR),
        ],
        ids=["exit code", "terminal marker", "answer", "fatal event"],
    )
    def test_each_condition_alone_can_spoil_it(
        self, events: list[Event], process: ProcessResult, expected: Ending
    ) -> None:
        """P6: none of the four is enough, and none can be missing."""
        assert ending(events, process).ending is expected

    def test_the_last_message_of_the_last_turn_is_the_answer(self) -> None:
        """P6: a preamble is not the answer."""
        said: list[Event] = [Message("Let me see."), Reasoning("hm"), Message('{"a":1}')]

        assert ending([SESSION, TurnStarted(), *said, DONE]).answer == '{"a":1}'

    @pytest.mark.parametrize("notice", [REMARK, RETRY, ERROR])
    def test_trouble_that_was_overcome_is_a_warning(self, notice: Notice) -> None:
        """F14 P11: a non-fatal error in a good run does not spoil it."""
        outcome = outcome_of(
            CallFacts(WELL, [SESSION, TurnStarted(), notice, Message("{}"), DONE], "model", 0), VOCABULARY
        )

        assert outcome.ending is Ending.SUCCESS
        assert [(warning.code, warning.text) for warning in outcome.warnings] == [
            ("provider_notice", "quota")
        ]

    def test_a_program_that_did_not_go_away_after_its_marker_has_answered(self) -> None:
        """F6: complete after the grace and a killed tree, with a warning."""
        lingered = replace(WELL, ended=Ended.LINGERED, exit_code=None, signal=15)
        outcome = outcome_of(CallFacts(lingered, GOOD, "model", 0), VOCABULARY)

        assert outcome.ending is Ending.SUCCESS
        assert [warning.code for warning in outcome.warnings] == ["lingered"]

    def test_lingering_excuses_nothing_else(self) -> None:
        """F6 P6: without an answer, or asked again, it is no success either."""
        lingered = replace(WELL, ended=Ended.LINGERED, exit_code=None, signal=15)

        assert ending([SESSION, TurnStarted(), DONE], lingered).ending is Ending.NO_ANSWER
        assert ending([*GOOD, TurnStarted()], lingered).ending is Ending.STREAM_INVALID
        assert ending([SESSION, TurnFailed("busy")], lingered).ending is Ending.PROVIDER_ERROR


class TestTurns:
    def test_a_later_turn_must_end_too(self) -> None:
        """F15: incomplete, although an earlier turn was complete and the exit code is 0."""
        assert ending([*GOOD, TurnStarted(), Message("more")]).ending is Ending.STREAM_INVALID

    def test_a_turn_may_be_whole_and_no_answer(self) -> None:
        """P6: whatever text it had; a later turn may still answer."""
        assert ending([*GOOD[:-1], Unanswered("length")]).ending is Ending.NO_ANSWER
        assert ending([*GOOD[:-1], Unanswered("length"), *GOOD[1:]]).ending is Ending.SUCCESS

    def test_the_answer_of_an_earlier_turn_is_not_the_answer(self) -> None:
        """F15 F16: the text is not taken from elsewhere."""
        assert ending([*GOOD, TurnStarted(), DONE]).ending is Ending.NO_ANSWER

    def test_a_message_behind_the_marker_makes_the_turn_incomplete(self) -> None:
        """F15: the marker has to be last."""
        assert ending([*GOOD, Message("one more")]).ending is Ending.STREAM_INVALID

    def test_the_counters_of_the_last_turn_hold_those_before(self) -> None:
        """F15 P8: cumulative counters are not summed."""
        later = TurnCompleted(Usage(input_tokens=25, output_tokens=5))
        outcome = outcome_of(
            CallFacts(WELL, [*GOOD, TurnStarted(), Message("{}"), later], "model", 7), VOCABULARY
        )

        assert outcome.usage == Usage(input_tokens=25, output_tokens=5)
        assert outcome.latency_ms == 7

    @pytest.mark.parametrize("after", [[TurnStarted()], [TurnStarted(), TurnFailed("busy")]])
    def test_what_a_cut_turn_cost_is_unknown(self, after: list[Event]) -> None:
        """F40 P8: earlier counters are no total when the model was asked again."""
        assert outcome_of(CallFacts(BADLY, [*GOOD, *after], "model", 0), VOCABULARY).usage == UNKNOWN_USAGE

    @pytest.mark.parametrize("text", ["", " ", "\n\t"])
    def test_an_empty_message_is_no_answer(self, text: str) -> None:
        """F16: a result without text."""
        assert ending([SESSION, TurnStarted(), Message(text), DONE]).ending is Ending.NO_ANSWER


class TestSilence:
    def test_exit_0_without_a_byte_is_no_answer(self) -> None:
        """F12: never wrong, never right."""
        assert ending([]) == Classification(Ending.NO_ANSWER)

    def test_another_exit_without_a_byte_proves_nothing(self) -> None:
        """P6: a crash before the first event."""
        assert ending([], BADLY) == Classification(Ending.STREAM_INVALID)
        assert ending([], replace(WELL, exit_code=None, signal=11)) == Classification(Ending.STREAM_INVALID)

    def test_the_adapter_may_know_the_reason(self) -> None:
        """P7: for example an option that this version refuses."""
        assert ending([], replace(BADLY, stderr=b"reason")) == Classification(
            Ending.PROVIDER_ERROR, ProviderErrorKind.UNSUPPORTED_FLAG
        )
        assert ending([], replace(WELL, stderr=b"reason")) == Classification(Ending.NO_ANSWER)

    def test_half_a_line_is_not_silence(self) -> None:
        assert ending([], replace(WELL, unterminated=b"{")).ending is Ending.STREAM_INVALID


class TestBrokenStreams:
    @pytest.mark.parametrize(
        ("events", "process"),
        [
            ([*GOOD, Unreadable(b"x", "syntax")], WELL),
            ([Unreadable(b"x", "shape"), *GOOD], WELL),
            (GOOD, replace(WELL, unterminated=b'{"type"')),
            ([SessionStarted("s-2"), *GOOD], WELL),
            (GOOD[1:], WELL),
            ([Progress("x")], WELL),
            ([SESSION], WELL),
            ([SESSION, TurnStarted(), Unknown("result")], WELL),
            (GOOD, replace(WELL, exit_code=None, signal=9)),
            ([SESSION, TurnFailed("busy"), Unreadable(b"x", "syntax")], BADLY),
        ],
    )
    def test_what_cannot_be_trusted_does_not_count(self, events: list[Event], process: ProcessResult) -> None:
        """P6: unreadable or half lines, no or two sessions, no terminal marker, killed by a signal."""
        assert ending(events, process) == Classification(Ending.STREAM_INVALID)

    def test_the_same_session_named_twice_is_one_session(self) -> None:
        assert ending([SESSION, *GOOD]).ending is Ending.SUCCESS

    def test_two_sessions_have_no_id(self) -> None:
        """R31: a session that is not one cannot be compared with others."""
        two = outcome_of(CallFacts(WELL, [SessionStarted("s-2"), *GOOD], "model", 0), VOCABULARY)
        one = outcome_of(CallFacts(WELL, GOOD, "model", 0), VOCABULARY)

        assert two.session_id is None
        assert one.session_id == "s-1"

    @pytest.mark.parametrize("ended", [Ended.SUPERVISOR_LOST, Ended.UNKILLED])
    def test_a_tree_whose_end_nobody_saw_does_not_count(self, ended: Ended) -> None:
        """P10: an answer counts only when everything it started is gone."""
        assert ending(GOOD, replace(WELL, ended=ended)).ending is Ending.STREAM_INVALID


class TestProviderErrors:
    @pytest.mark.parametrize("process", [WELL, BADLY])
    def test_a_failed_turn_is_one_whatever_the_exit(self, process: ProcessResult) -> None:
        """F13: exit 0 while the stream carries a provider error."""
        assert ending([SESSION, TurnStarted(), TurnFailed("quota")], process) == Classification(
            Ending.PROVIDER_ERROR, ProviderErrorKind.QUOTA_UNAVAILABLE
        )

    def test_a_turn_that_failed_is_fatal_even_if_a_later_one_did_not(self) -> None:
        """P6: no fatal event."""
        assert ending([SESSION, TurnFailed("busy"), *GOOD[1:]]).ending is Ending.PROVIDER_ERROR

    def test_the_last_failure_names_the_kind(self) -> None:
        assert ending(
            [SESSION, TurnFailed("busy"), TurnStarted(), TurnFailed("quota")], BADLY
        ).error_kind == ("quota_unavailable")

    @pytest.mark.parametrize(
        "events",
        [
            [SESSION, TurnStarted(), ERROR],
            [SESSION, TurnStarted(), ERROR, DONE],
            [SESSION, TurnStarted(), Message(" "), ERROR, DONE],
            [SESSION, TurnStarted(), Message("half"), ERROR],
        ],
    )
    @pytest.mark.parametrize("process", [WELL, BADLY])
    def test_an_error_explains_a_turn_that_came_to_nothing(
        self, events: list[Event], process: ProcessResult
    ) -> None:
        """F13: it carries the error, whatever the exit code."""
        assert ending(events, process) == Classification(
            Ending.PROVIDER_ERROR, ProviderErrorKind.QUOTA_UNAVAILABLE
        )

    @pytest.mark.parametrize("notice", [RETRY, REMARK])
    def test_a_retry_or_a_remark_explains_nothing(self, notice: Notice) -> None:
        """P11: retry events are never final by themselves."""
        assert ending([SESSION, TurnStarted(), notice], BADLY).ending is Ending.STREAM_INVALID

    def test_an_error_of_an_earlier_turn_explains_nothing(self) -> None:
        assert ending([SESSION, TurnStarted(), ERROR, TurnStarted(), DONE]).ending is Ending.NO_ANSWER

    def test_a_bad_exit_after_a_whole_turn_is_no_provider_error(self) -> None:
        assert (
            ending([SESSION, TurnStarted(), ERROR, Message("{}"), DONE], BADLY).ending
            is Ending.STREAM_INVALID
        )


class TestNoSession:
    """Programs that say nothing of a session, or fail before they have one."""

    def test_a_failure_before_a_session_is_the_providers(self) -> None:
        """P6 P7: it is told all the same, on stderr for example."""
        assert ending([Progress("version"), TurnFailed("quota")], BADLY).ending is Ending.PROVIDER_ERROR
        assert ending([Progress("version")], BADLY).ending is Ending.STREAM_INVALID

    BY_FILE = replace(VOCABULARY, by_file=True)

    @pytest.mark.parametrize(
        ("events", "process", "expected"),
        [
            ([Message("{}"), DONE], WELL, Ending.SUCCESS),
            ([Message("{}"), DONE], replace(WELL, unterminated=b"half"), Ending.SUCCESS),
            ([Message(" "), DONE], WELL, Ending.NO_ANSWER),
            ([Unanswered("no file")], WELL, Ending.NO_ANSWER),
            ([AnswerInvalid("a link")], WELL, Ending.ANSWER_INVALID),
            ([Message("{}"), DONE], BADLY, Ending.STREAM_INVALID),
            ([], BADLY, Ending.STREAM_INVALID),
            ([], WELL, Ending.STREAM_INVALID),
            ([Message("{}"), DONE, Flood()], WELL, Ending.LIMIT),
            ([Message("{}"), DONE], replace(WELL, ended=Ended.WALL_TIMEOUT), Ending.TIMEOUT),
            ([Message("{}"), DONE], replace(WELL, ended=Ended.CANCELLED), Ending.CANCELLED),
            ([Message("{}"), DONE], replace(WELL, ended=Ended.UNKILLED), Ending.STREAM_INVALID),
        ],
    )
    def test_by_file_alone_exit_and_answer_are_what_counts(
        self, events: list[Event], process: ProcessResult, expected: Ending
    ) -> None:
        """P14 P6: no marker and no session is looked for in a stream that nobody reads."""
        found = outcome_of(CallFacts(process, events, "model", 0, CallKind.WORK), self.BY_FILE)

        assert found.ending is expected
        assert found.session_id is None


class TestOwnWords:
    """What a provider says by a word of its own, beside any text."""

    def test_a_kind_that_is_told_needs_no_message(self) -> None:
        """P7: the provider's own code for its trouble comes before its sentence."""
        told = TurnFailed("no such sentence", ProviderErrorKind.RATE_LIMITED)

        assert ending([SESSION, TurnStarted(), told], BADLY) == Classification(
            Ending.PROVIDER_ERROR, ProviderErrorKind.RATE_LIMITED
        )

    @pytest.mark.parametrize("process", [WELL, BADLY])
    @pytest.mark.parametrize(
        ("word", "expected"),
        [(Declined(), Ending.REFUSED), (AnswerInvalid("quota"), Ending.ANSWER_INVALID)],
    )
    def test_a_word_for_no_answer_is_heard_whatever_the_exit(
        self, word: Event, expected: Ending, process: ProcessResult
    ) -> None:
        """P6 P12: refused, and an answer that the program itself refused; what it cost is known."""
        outcome = outcome_of(CallFacts(process, [*GOOD[:2], word, DONE], "model", 0), VOCABULARY)

        assert outcome.ending is expected
        assert outcome.answer is None
        assert outcome.usage == Usage(input_tokens=10, output_tokens=2)

    @pytest.mark.parametrize("word", [Declined(), AnswerInvalid("quota")])
    def test_the_provider_failing_comes_first(self, word: Event) -> None:
        """P6: a fatal event is what the call ended by."""
        assert ending([SESSION, word, TurnFailed("busy")]).ending is Ending.PROVIDER_ERROR
        assert ending([SESSION, word], replace(WELL, unterminated=b"{")).ending is Ending.STREAM_INVALID

    @pytest.mark.parametrize("kind", CallKind)
    @pytest.mark.parametrize("ended", [Ended.EXITED, Ended.CANCELLED, Ended.WALL_TIMEOUT])
    def test_another_session_than_was_asked_for_is_no_session(self, kind: CallKind, ended: Ended) -> None:
        """P9 R31: a surface that differs, in a call of any kind, however the program ended."""
        events = [*GOOD, SurfaceDiffers("tools")]
        outcome = outcome_of(CallFacts(replace(WELL, ended=ended), events, "model", 0, kind), VOCABULARY)

        assert outcome.ending is Ending.STREAM_INVALID
        assert [(warning.code, warning.text) for warning in outcome.warnings] == [
            ("surface_differs", "tools")
        ]


class TestViolations:
    TOOL = ToolActivity("command_execution")
    OTHER_MODEL = ModelReported("other")

    @pytest.mark.parametrize("ended", Ended)
    def test_a_tool_counts_however_the_program_ended(self, ended: Ended) -> None:
        """P9 R31: what was observed comes before what is missing."""
        process = replace(WELL, ended=ended, exit_code=None, limit=LimitName.LINE_BYTES)

        assert ending([*GOOD, self.TOOL], process) == Classification(Ending.TOOL_ACTIVITY)

    @pytest.mark.parametrize(
        "beside",
        [
            [ModelReported("other")],
            [Unreadable(b"", "syntax")],
            [TurnFailed("busy")],
            [SessionStarted("s-2")],
            [Flood()],
        ],
    )
    def test_a_tool_counts_whatever_else_happened(self, beside: list[Event]) -> None:
        """P9: in every company."""
        assert ending([*GOOD, *beside, self.TOOL]).ending is Ending.TOOL_ACTIVITY

    @pytest.mark.parametrize("ended", [Ended.EXITED, Ended.WALL_TIMEOUT, Ended.CANCELLED])
    def test_another_model_is_a_mismatch(self, ended: Ended) -> None:
        """F37 P2: requested and reported model are compared in every call."""
        process = replace(WELL, ended=ended)
        outcome = outcome_of(CallFacts(process, [*GOOD, self.OTHER_MODEL], "model", 0), VOCABULARY)

        assert outcome.ending is Ending.MODEL_MISMATCH
        assert outcome.observed_model == "other"
        assert outcome.answer is None

    def test_one_other_model_among_several_reports_is_enough(self) -> None:
        """F37: also when the asked one answered in the end."""
        assert ending([*GOOD, self.OTHER_MODEL, ModelReported("model")]).ending is Ending.MODEL_MISMATCH

    def test_the_asked_model_is_no_mismatch(self) -> None:
        outcome = outcome_of(CallFacts(WELL, [*GOOD, ModelReported("model")], "model", 0), VOCABULARY)

        assert outcome.ending is Ending.SUCCESS
        assert outcome.observed_model == "model"


class TestOurOwnStops:
    @pytest.mark.parametrize("ended", [Ended.CANCELLED, Ended.EXITED, Ended.WALL_TIMEOUT, Ended.LIMIT])
    def test_a_flood_is_a_limit_with_a_name(self, ended: Ended) -> None:
        """P5: however the program came to its end after that."""
        process = replace(WELL, ended=ended, limit=LimitName.STDOUT_BYTES if ended is Ended.LIMIT else None)
        outcome = outcome_of(CallFacts(process, [*GOOD, Flood()], "model", 0), VOCABULARY)

        assert outcome.ending is Ending.LIMIT
        assert outcome.limit == "lines"

    @pytest.mark.parametrize(
        ("ended", "expected"),
        [
            (Ended.WALL_TIMEOUT, Ending.TIMEOUT),
            (Ended.IDLE_TIMEOUT, Ending.TIMEOUT),
            (Ended.CANCELLED, Ending.CANCELLED),
        ],
    )
    @pytest.mark.parametrize("events", [[], GOOD, [SESSION, TurnFailed("busy")]])
    def test_they_have_their_own_words(self, ended: Ended, expected: Ending, events: list[Event]) -> None:
        """P6: a call that we ended is never a success, nor the provider's fault."""
        process = replace(WELL, ended=ended, exit_code=None, signal=15, unterminated=b"{")

        assert ending(events, process) == Classification(expected)

    @pytest.mark.parametrize("limit", LimitName)
    def test_a_limit_is_named(self, limit: LimitName) -> None:
        """P5 F17: the name of the limit that was crossed."""
        process = replace(WELL, ended=Ended.LIMIT, exit_code=None, signal=9, limit=limit)
        outcome = outcome_of(CallFacts(process, GOOD, "model", 0), VOCABULARY)

        assert outcome.ending is Ending.LIMIT
        assert outcome.limit is limit

    def test_a_program_that_did_not_start(self) -> None:
        """P6: the reason goes to the record."""
        process = ProcessResult(ended=Ended.UNSTARTABLE, start_fault=StartFault.MISSING)
        outcome = outcome_of(CallFacts(process, [], "model", 0), VOCABULARY)

        assert outcome.ending is Ending.UNSTARTABLE
        assert [(warning.code, warning.text) for warning in outcome.warnings] == [("start_failed", "missing")]


class TestRecord:
    def test_what_the_program_left_is_told(self) -> None:
        """P10: survivors and what could not be killed."""
        process = replace(WELL, ended=Ended.UNKILLED, survivors=3, unkilled=1, stdin_complete=False)
        outcome = outcome_of(CallFacts(process, GOOD, "model", 0), VOCABULARY)

        assert outcome.survivors == 3
        assert [(warning.code, warning.text) for warning in outcome.warnings] == [
            ("prompt_unread", ""),
            ("processes_left", "3"),
            ("processes_alive", "1"),
        ]

    def test_a_lost_watch_is_told(self) -> None:
        process = replace(WELL, ended=Ended.SUPERVISOR_LOST)

        assert [w.code for w in outcome_of(CallFacts(process, GOOD, "m", 0), VOCABULARY).warnings] == [
            "watch_lost"
        ]

    def test_what_it_wrote_to_stderr_is_kept_for_the_private_log(self) -> None:
        """P7: the end of it, whatever the bytes; the code alone is for machines."""
        process = replace(WELL, stderr=b"x" * 9000 + b"\xff end")
        (warning,) = outcome_of(CallFacts(process, GOOD, "m", 0), VOCABULARY).warnings

        assert warning.code == "stderr_output"
        assert warning.text == "x" * 8187 + "\ufffd end"
        assert "end" not in repr(warning)

    def test_unknown_events_are_told_and_kept(self) -> None:
        """P5: typed as unknown, never dropped silently."""
        events = [*GOOD, Unknown("turn.paused")]
        outcome = outcome_of(CallFacts(WELL, events, "model", 0), VOCABULARY)

        assert outcome.ending is Ending.SUCCESS
        assert [(warning.code, warning.text) for warning in outcome.warnings] == [
            ("unknown_event", "turn.paused")
        ]
        assert outcome.events == tuple(events)


class TestKindsOfCall:
    @pytest.mark.parametrize(
        ("kind", "tools", "other_model"),
        [
            (CallKind.JUDGE, Ending.TOOL_ACTIVITY, Ending.MODEL_MISMATCH),
            (CallKind.READ, Ending.SUCCESS, Ending.SUCCESS),
            (CallKind.WORK, Ending.SUCCESS, Ending.MODEL_MISMATCH),
        ],
    )
    def test_what_each_kind_allows(self, kind: CallKind, tools: Ending, other_model: Ending) -> None:
        """P13 P2: tools to readers and workers, another model to readers alone."""
        for event, expected in ((ToolActivity("ls"), tools), (ModelReported("other"), other_model)):
            facts = CallFacts(WELL, [SESSION, TurnStarted(), event, Message("{}"), DONE], "model", 0, kind)
            assert classify(facts, VOCABULARY).ending is expected
