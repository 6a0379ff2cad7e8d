"""How a call ended: one classification for every provider, over typed events.

Source: providers.md section 1, P6, P10 and the table of endings; field-failures.md F6, F12 to F16, F37.

Whatever an adapter's stream looks like, it arrives here as the same events. The adapter adds two things that
only it can know: what kind of trouble a sentence of its provider means, and what a program meant that ended
without a word on stdout.

What was observed comes before what is missing: a tool, then another model, then another session than the one
that was asked for, then a flood of lines, count whatever else happened. Then, in this order: our own stop, a
stream that cannot be trusted, the provider's error, a model that declined, an answer that the program itself
refused, an unhappy or early end, no answer. What is left is a success.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.strict import LARGEST_INTEGER
from skill_effectiveness.execution import Ended
from skill_effectiveness.providers.calls import (
    CallKind,
    CallOutcome,
    CallWarning,
    Ending,
    ProviderErrorKind,
    StreamLimit,
    WarningCode,
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
from skill_effectiveness.providers.usage import UNKNOWN_USAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from skill_effectiveness.execution import LimitName, ProcessResult
    from skill_effectiveness.providers.usage import Usage


@dataclass(frozen=True, slots=True)
class CallFacts:
    """Everything that is known of a call once it is over.

    Attributes:
        process: how the program ended.
        events: what it said, in order.
        model: the model that was asked for.
        latency_ms: from the start of the call to its end.
        kind: what the call was allowed to do.
    """

    process: ProcessResult
    events: Sequence[Event]
    model: str
    latency_ms: int
    kind: CallKind = CallKind.JUDGE


@dataclass(frozen=True, slots=True)
class ProviderVocabulary:
    """What only an adapter knows of its provider's words.

    Attributes:
        error_kind: the kind of trouble in a sentence of the provider.
        silent_kind: the kind of trouble of a program that failed without a word on stdout; `None` when it
            gave no reason either.
        by_file: whether the answer comes by a file alone, and no stream is read, so that there is no session
            and no marker to look for in one.
    """

    error_kind: Callable[[str], ProviderErrorKind]
    silent_kind: Callable[[ProcessResult], ProviderErrorKind | None]
    by_file: bool = False


@dataclass(frozen=True, slots=True)
class Classification:
    """The ending of a call, with the error kind, the limit or the answer that belongs to it."""

    ending: Ending
    error_kind: ProviderErrorKind | None = None
    limit: LimitName | StreamLimit | None = None
    answer: str | None = None


def classify(facts: CallFacts, vocabulary: ProviderVocabulary) -> Classification:
    """The one word for how a call ended."""
    found = _by_violation(facts) or _by_process(facts.process)
    if found is None and not vocabulary.by_file:
        found = _by_silence(facts, vocabulary) or _by_stream(facts, vocabulary)
    return found or _by_word(facts.events) or _by_turn(facts, vocabulary)


def outcome_of(facts: CallFacts, vocabulary: ProviderVocabulary) -> CallOutcome:
    """The whole outcome of a call."""
    found = classify(facts, vocabulary)
    sessions = _sessions(facts.events)
    reported = [event.model for event in facts.events if isinstance(event, ModelReported)]
    return CallOutcome(
        ending=found.ending,
        error_kind=found.error_kind,
        limit=found.limit,
        answer=found.answer,
        usage=_told_usage(facts.events),
        session_id=next(iter(sessions)) if len(sessions) == 1 else None,
        observed_model=_model_name(reported[-1]) if reported else None,
        exit_code=facts.process.exit_code,
        warnings=(*_stream_warnings(facts.events), *_process_warnings(facts.process)),
        events=tuple(facts.events),
        latency_ms=facts.latency_ms,
        survivors=facts.process.survivors,
    )


def _by_violation(facts: CallFacts) -> Classification | None:
    """What a kind of call does not allow (P13): tools to a judge, another model to a judge or a worker.

    Another session than the one that was asked for is allowed to none.
    """
    tools = any(isinstance(event, ToolActivity) for event in facts.events)
    if tools and facts.kind is CallKind.JUDGE:
        return Classification(Ending.TOOL_ACTIVITY)
    other = any(isinstance(event, ModelReported) and event.model != facts.model for event in facts.events)
    if other and facts.kind is not CallKind.READ:
        return Classification(Ending.MODEL_MISMATCH)
    if any(isinstance(event, SurfaceDiffers) for event in facts.events):
        return Classification(Ending.STREAM_INVALID)
    if any(isinstance(event, Flood) for event in facts.events):
        return Classification(Ending.LIMIT, limit=StreamLimit.LINES)
    return None


_STOPPED: Final = {
    Ended.UNSTARTABLE: Ending.UNSTARTABLE,
    Ended.LIMIT: Ending.LIMIT,
    Ended.WALL_TIMEOUT: Ending.TIMEOUT,
    Ended.IDLE_TIMEOUT: Ending.TIMEOUT,
    Ended.CANCELLED: Ending.CANCELLED,
    # Nobody saw the end of the tree, or it has none: what was said until then proves nothing.
    Ended.SUPERVISOR_LOST: Ending.STREAM_INVALID,
    Ended.UNKILLED: Ending.STREAM_INVALID,
}


def _by_process(process: ProcessResult) -> Classification | None:
    ending = _STOPPED.get(process.ended)
    return None if ending is None else Classification(ending, limit=process.limit)


def _by_silence(facts: CallFacts, vocabulary: ProviderVocabulary) -> Classification | None:
    """A program that ended without a byte on stdout; with exit code 0 that is no answer, right or wrong."""
    if facts.events or facts.process.unterminated:
        return None
    if facts.process.exit_code == 0:
        return Classification(Ending.NO_ANSWER)
    kind = vocabulary.silent_kind(facts.process)
    return Classification(Ending.STREAM_INVALID) if kind is None else _provider_error(kind)


_WORDS: Final = ((Declined, Ending.REFUSED), (AnswerInvalid, Ending.ANSWER_INVALID))
"""Words of a program's own for why there is no answer."""


def _by_stream(facts: CallFacts, vocabulary: ProviderVocabulary) -> Classification | None:
    """A stream that cannot be trusted as a whole, or one that tells of the provider's error."""
    events = facts.events
    broken = facts.process.unterminated or any(isinstance(event, Unreadable) for event in events)
    failures = [event for event in events if isinstance(event, TurnFailed)]
    # A program that fails before it has a session to name says what failed all the same.
    fewest = 0 if failures else 1
    if broken or not fewest <= len(_sessions(events)) <= 1:
        return Classification(Ending.STREAM_INVALID)
    if failures:
        return _provider_error(failures[-1].kind or vocabulary.error_kind(failures[-1].message))
    return None


def _by_word(events: Sequence[Event]) -> Classification | None:
    for word, ending in _WORDS:
        if any(isinstance(event, word) for event in events):
            return Classification(ending)
    return None


def _by_turn(facts: CallFacts, vocabulary: ProviderVocabulary) -> Classification:
    turn = _last_turn(facts.events)
    # An error that was told is a warning, and final only where it alone explains a turn without a result.
    if turn.trouble is not None and not (turn.completed and turn.answered):
        return _provider_error(vocabulary.error_kind(turn.trouble))
    ended_well = facts.process.ended is Ended.LINGERED or facts.process.exit_code == 0
    if not ended_well or not turn.completed:
        return Classification(Ending.STREAM_INVALID)
    if not turn.answered:
        return Classification(Ending.NO_ANSWER)
    return Classification(Ending.SUCCESS, answer=turn.answer)


def _provider_error(kind: ProviderErrorKind) -> Classification:
    return Classification(Ending.PROVIDER_ERROR, error_kind=kind)


@dataclass(frozen=True, slots=True)
class _LastTurn:
    """The last turn: its last message, its last trouble, and whether its terminal marker stands."""

    completed: bool = False
    answer: str = ""
    trouble: str | None = None

    @property
    def answered(self) -> bool:
        return bool(self.answer.strip())


def _last_turn(events: Iterable[Event]) -> _LastTurn:
    """The last turn of a stream; a later start of a turn or a later message takes a terminal marker back."""
    turn = _LastTurn()
    for event in events:
        match event:
            case TurnStarted():
                turn = _LastTurn()
            case Message(text):
                turn = replace(turn, completed=False, answer=text)
            case Notice(NoticeKind.ERROR, message):
                turn = replace(turn, trouble=message)
            case TurnCompleted():
                turn = replace(turn, completed=True)
            case Unanswered():
                turn = replace(turn, completed=True, answer="")
            case _:
                continue
    return turn


def _sessions(events: Iterable[Event]) -> frozenset[str]:
    return frozenset(event.session_id for event in events if isinstance(event, SessionStarted))


_NO_NAME: Final = "unreadable"
_LONGEST_NAME: Final = 256


def _model_name(reported: str) -> str:
    """A reported model as records can hold it; what is no name is another model all the same."""
    whole = 0 < len(reported) <= _LONGEST_NAME and reported.isprintable()
    return reported if whole and reported.strip() else _NO_NAME


def _told_usage(events: Iterable[Event]) -> Usage:
    """The counters at the last terminal marker, unless the model was asked again after it.

    Numbers that no record can hold, such as a sum of absurd ones, tell nothing.
    """
    turns = [event for event in events if isinstance(event, TurnStarted | TurnCompleted | TurnFailed)]
    last = turns[-1] if turns else None
    usage = last.usage if isinstance(last, TurnCompleted) else UNKNOWN_USAGE
    told = [number for number in astuple(usage) if number is not None]
    return usage if all(0 <= number <= LARGEST_INTEGER for number in told) else UNKNOWN_USAGE


def _stream_warnings(events: Iterable[Event]) -> Iterator[CallWarning]:
    for event in events:
        if isinstance(event, Notice):
            yield CallWarning(WarningCode.PROVIDER_NOTICE, event.message)
        elif isinstance(event, Unknown):
            yield CallWarning(WarningCode.UNKNOWN_EVENT, event.kind)
        elif isinstance(event, SurfaceDiffers):
            yield CallWarning(WarningCode.SURFACE_DIFFERS, event.what)


_STDERR_KEPT: Final = 8192


def _process_warnings(process: ProcessResult) -> Iterator[CallWarning]:
    if process.ended is Ended.UNSTARTABLE:
        yield CallWarning(WarningCode.START_FAILED, str(process.start_fault))
    elif not process.stdin_complete:
        yield CallWarning(WarningCode.PROMPT_UNREAD)
    if process.stderr:
        yield CallWarning(WarningCode.STDERR_OUTPUT, process.stderr[-_STDERR_KEPT:].decode(errors="replace"))
    if process.ended is Ended.LINGERED:
        yield CallWarning(WarningCode.LINGERED)
    if process.ended is Ended.SUPERVISOR_LOST:
        yield CallWarning(WarningCode.WATCH_LOST)
    if process.survivors:
        yield CallWarning(WarningCode.PROCESSES_LEFT, str(process.survivors))
    if process.unkilled:
        yield CallWarning(WarningCode.PROCESSES_ALIVE, str(process.unkilled))
