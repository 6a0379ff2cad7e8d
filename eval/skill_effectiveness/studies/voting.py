"""Votes: in which order they are asked, what each is kept as, and what it counts for (studies.md section 5).

One vote is one call with one pair, asked in the very words the reviewer was examined with. All of a licence's
votes stand on one ballot, pairs in an order drawn from the plan's seed and canaries among them. A vote has an
id of its own, drawn too, and is started once: a showing that brought no answer at all (the provider failed,
or the process died in the middle) may be asked again, as another vote. Whatever a reviewer did answer stands.

| state | the call |
|---|---|
| `valid` | one of the three verdicts |
| `no_verdict` | no answer, an answer without a verdict or cut off before it |
| `invalid` | another word, more than was asked, text around it; a tool was used; another model answered |
| `refused` | the vendor's own refusal |
| `provider_error` | everything else: no answer was to be had |

`void` is a vote that was taken back because its reviewer's canaries failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from skill_effectiveness.calibration.answers import AnswerCode, AnswerError, read_answer
from skill_effectiveness.evidence.canonical import digest_bytes, dump_line
from skill_effectiveness.evidence.documents import Canonical, RuleBroken, parse
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One, to_json, told
from skill_effectiveness.protocol.words import Verdict
from skill_effectiveness.providers import Ending
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.plan import LicenceId, TimeText, Version
from skill_effectiveness.studies.rows import PairId, Usage, VoteId
from skill_effectiveness.studies.study_file import Model

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from skill_effectiveness.calibration.canary import Canary
    from skill_effectiveness.calibration.orientation import Presentation
    from skill_effectiveness.providers import CallOutcome
    from skill_effectiveness.studies.chance import Chance
    from skill_effectiveness.studies.pairing import ShownPair
    from skill_effectiveness.studies.state import VoteState

VOTE_CONTRACT: Final = "skill-effectiveness-study-vote-v1"
VOTES: Final = "votes"
UNANSWERED: Final = "provider_error"
"""The state after which a showing may be asked again, as another vote."""

_ID_DIGITS: Final = 32

VoteWord = Literal["valid", "no_verdict", "invalid", "refused", "provider_error"]
Count = Annotated[int, Field(ge=0)]


class AskedCanary(FrozenModel):
    """Which known answer a vote was; `swapped` when the bank's first text was shown as B."""

    case_id: Annotated[str, Field(min_length=1, max_length=128)]
    swapped: bool
    truth: Verdict


class VoteUsage(FrozenModel):
    """What the call used, each null when it was not told."""

    input_tokens: Count | None
    cached_tokens: Count | None
    output_tokens: Count | None
    reasoning_tokens: Count | None
    cost_units: Annotated[float, Field(ge=0)] | None
    latency_ms: Count | None

    def as_journalled(self) -> Usage:
        """The same as the row of the vote's end has it."""
        return Usage(
            input_tokens=self.input_tokens,
            cached_tokens=self.cached_tokens,
            output_tokens=self.output_tokens,
            reasoning_tokens=self.reasoning_tokens,
            cost_units=self.cost_units,
            wall_seconds=None if self.latency_ms is None else self.latency_ms / 1_000,
        )


class VoteDocument(FrozenModel):
    """`votes/<vote_id>.json`, for the controller alone.

    Attributes:
        pair_id: of the showing.
        position: of the showing.
        canary: null for a vote on a pair.
        prompt_sha256: of everything that was sent.
        chars_a, chars_b: code points of the two texts.
        ending: of the call, in the providers' word.
        verdict: about the seats as shown; null unless the vote is valid.
        program: what answered: digest and version of its executable, and the model it was asked for.
        voted_at: when the answer was there.
    """

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-study-vote-v1"]
    vote_id: VoteId
    licence_id: LicenceId
    pair_id: PairId
    position: Annotated[int, Field(ge=0, le=1)]
    canary: AskedCanary | None
    prompt_sha256: DigestText
    chars_a: Count
    chars_b: Count
    ending: Ending
    state: VoteWord
    verdict: Verdict | None
    executable_hash: DigestText
    cli_version: Version
    model: Model
    usage: VoteUsage
    voted_at: TimeText

    @model_validator(mode="after")
    def _only_valid_votes_say_something(self) -> Self:
        if (self.state == "valid") is (self.verdict is None):
            raise RuleBroken("A verdict belongs to a valid vote, and to no other.")
        return self

    def __repr_args__(self) -> list[tuple[str | None, object]]:
        """The id only: no trace may tell a canary or a verdict."""
        return [("vote_id", self.vote_id)]

    @property
    def right(self) -> bool | None:
        """Whether a canary was answered rightly; None where nothing is known."""
        if self.canary is None or self.verdict is None:
            return None
        return self.verdict is self.canary.truth


def vote_line(vote: VoteDocument) -> bytes:
    """The bytes of a vote's file."""
    return dump_line(to_json(vote))


def vote_hash(vote: VoteDocument) -> str:
    """The digest of a vote's file."""
    return digest_bytes(vote_line(vote))


def vote_name(vote_id: str) -> str:
    """The name of a vote's file."""
    return f"{vote_id}.json"


def read_vote(data: bytes, vote_id: str) -> VoteDocument:
    """A vote out of its file.

    Raises:
        StudyError: `vote_invalid`: not of its form, or another vote than its name says.
    """
    where = f"{VOTES}/{vote_name(vote_id)}"
    try:
        vote = parse(VoteDocument, data, Profile.DOCUMENT, canonical=Canonical.LINE)
    except EvidenceError as error:
        sentence = f"this is no vote as it was written; restore the study's folder. Found: {told(error)}"
        raise StudyError(StudyCode.VOTE_INVALID, where, sentence) from error
    if vote.vote_id != vote_id:
        sentence = "this vote is another than its name says; it was moved. Restore the study's folder."
        raise StudyError(StudyCode.VOTE_INVALID, where, sentence)
    return vote


# The ballot.


@dataclass(frozen=True, slots=True)
class Asked:
    """One line of a ballot: a pair, or a canary in its form."""

    shown: ShownPair
    canary: Canary | None = None


def ballot(
    chance: Chance, licence_id: str, shown: Iterable[ShownPair], canaries: Mapping[int, ShownCanary]
) -> tuple[Asked, ...]:
    """Everything that a licence is asked, in order.

    Args:
        chance: of the plan.
        licence_id: whose ballot it is; each has an order of its own.
        shown: every showing.
        canaries: by place, see `canaries.drawn_canaries`; those behind the last pair are left out.
    """
    waiting = sorted(
        shown,
        key=lambda one: chance.key({"use": "vote", "licence_id": licence_id, "pair_id": one.pair_id}),
    )
    lines: list[Asked] = []
    rest = iter(waiting)
    left = len(waiting)
    while left:
        known = canaries.get(len(lines))
        if known is not None:
            lines.append(Asked(known.shown, known.canary))
        else:
            lines.append(Asked(next(rest)))
            left -= 1
    return tuple(lines)


@dataclass(frozen=True, slots=True)
class ShownCanary:
    """A canary and the pair it looks like."""

    canary: Canary
    shown: ShownPair


def vote_id_of(chance: Chance, licence_id: str, pair_id: str, attempt: int) -> str:
    """The id of a vote; without the seed it tells nothing.

    Args:
        chance: of the plan.
        licence_id: whose vote it is.
        pair_id: of the showing.
        attempt: how many votes of this licence on this showing there were before.
    """
    named = {"use": "vote-id", "licence_id": licence_id, "pair_id": pair_id, "attempt": attempt}
    return f"vote-{chance.key(named).hex()[:_ID_DIGITS]}"


def unanswered(lines: Sequence[Asked], votes: Iterable[VoteState]) -> Iterator[tuple[Asked, int]]:
    """The lines of a ballot that brought no answer yet, each with the number of votes on it so far.

    Args:
        lines: the ballot.
        votes: of this licence, all ended.
    """
    asked: dict[str, list[str | None]] = {}
    for vote in votes:
        asked.setdefault(vote.pair_id, []).append(vote.state)
    for line in lines:
        states = asked.get(line.shown.pair_id, [])
        if all(state == UNANSWERED for state in states):
            yield line, len(states)


# What an answer counts for.


def judged(
    outcome: CallOutcome, presentation: Presentation, *, json_fence: bool
) -> tuple[VoteWord, Verdict | None]:
    """The state of a vote and its verdict, of what came back from its call.

    Args:
        outcome: of the call.
        presentation: what was asked.
        json_fence: whether the provider may wrap its answer in one fence.
    """
    if outcome.answer is None:
        return _UNREAD.get(outcome.ending, UNANSWERED), None
    try:
        verdicts = read_answer(outcome.answer, presentation, json_fence=json_fence)
    except AnswerError as error:
        return _unread(error, outcome.answer), None
    return "valid", verdicts[0]


_UNREAD: Final[Mapping[Ending, VoteWord]] = {
    Ending.NO_ANSWER: "no_verdict",
    Ending.ANSWER_INVALID: "invalid",
    Ending.REFUSED: "refused",
    Ending.TOOL_ACTIVITY: "invalid",
    Ending.MODEL_MISMATCH: "invalid",
}


def _unread(error: AnswerError, answer: str) -> VoteWord:
    """No verdict where the answer never came to one; a wrong or doubtful one is invalid."""
    if error.code is AnswerCode.CASE_MISSING:
        return "no_verdict"
    unsaid = error.code in {AnswerCode.WRONG_SHAPE, AnswerCode.NOT_JSON} and '"verdict"' not in answer
    return "no_verdict" if unsaid else "invalid"
