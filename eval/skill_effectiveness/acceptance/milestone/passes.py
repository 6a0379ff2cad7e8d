"""What became of a pass, and what a round of two passes comes to.

Source: milestone.md, section 7, the table of pass states; providers.md, the table of endings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.milestone.errors import Reason, StopCode
from skill_effectiveness.acceptance.milestone.words import PassName, PassState
from skill_effectiveness.providers import Ending, ProviderErrorKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skill_effectiveness.acceptance.milestone.answers import Answer
    from skill_effectiveness.providers import CallOutcome

_ENDINGS: Final = {
    Ending.SUCCESS: PassState.VALID,
    Ending.NO_ANSWER: PassState.NO_ANSWER,
    Ending.ANSWER_INVALID: PassState.INVALID,
    Ending.REFUSED: PassState.NO_ANSWER,
    Ending.TIMEOUT: PassState.NO_ANSWER,
    Ending.UNSTARTABLE: PassState.UNAVAILABLE,
}
_ERRORS: Final = {
    ProviderErrorKind.QUOTA_UNAVAILABLE: PassState.QUOTA,
    ProviderErrorKind.RATE_LIMITED: PassState.QUOTA,
    ProviderErrorKind.SERVER_ERROR: PassState.NO_ANSWER,
    ProviderErrorKind.CONNECTION_LOST: PassState.NO_ANSWER,
}


def state_of_ending(outcome: CallOutcome) -> PassState:
    """The word for how a call ended, before its answer is read and its checkout looked at.

    An ending that has no rule is a failed tool.
    """
    if outcome.ending is Ending.PROVIDER_ERROR and outcome.error_kind is not None:
        return _ERRORS.get(outcome.error_kind, PassState.TOOL_FAILED)
    return _ENDINGS.get(outcome.ending, PassState.TOOL_FAILED)


@dataclass(frozen=True, slots=True)
class PassResult:
    """The last attempt of one pass.

    Attributes:
        name: the pass.
        state: what became of it.
        attempt: 1, or 2 after a void attempt.
        answer: exactly when it is valid.
    """

    name: PassName
    state: PassState
    attempt: int = 1
    answer: Answer | None = None


@dataclass(frozen=True, slots=True)
class RoundRuling:
    """What a round comes to; at most one of the members is set, and none means that there is a verdict.

    Attributes:
        failed: why the round failed.
        held: why it is held.
        no_verdict: nothing was read.
        again: the pass that alone runs once more.
        unavailable: an engine could not be started, so another profile has to judge.
    """

    failed: Reason | None = None
    held: StopCode | None = None
    no_verdict: bool = False
    again: PassName | None = None
    unavailable: bool = False


_FAILED: Final = {
    PassState.INVALID: Reason.PASS_INVALID,
    PassState.WORKTREE_CHANGED: Reason.PASS_WORKTREE_CHANGED,
    PassState.TOOL_FAILED: Reason.PASS_TOOL_FAILED,
}
_HELD: Final = {
    PassState.QUOTA: StopCode.ENGINE_QUOTA,
    PassState.NO_ANSWER: StopCode.ENGINE_NO_ANSWER,
}


def judge_round(results: Mapping[PassName, PassResult]) -> RoundRuling:
    """Judge the last attempts of both passes; failed outranks held, and held outranks void."""
    ordered: Sequence[PassResult] = [results[name] for name in PassName]
    failed = [_FAILED[each.state] for each in ordered if each.state in _FAILED]
    if failed:
        return RoundRuling(failed=failed[0])
    if any(each.state is PassState.UNAVAILABLE for each in ordered):
        return RoundRuling(unavailable=True)
    held = [_HELD[each.state] for each in ordered if each.state in _HELD]
    if held:
        return RoundRuling(held=held[0])
    void = [each for each in ordered if each.state is PassState.NOT_READ]
    if len(void) > 1 or any(each.attempt > 1 for each in void):
        return RoundRuling(no_verdict=True)
    return RoundRuling(again=void[0].name) if void else RoundRuling()
