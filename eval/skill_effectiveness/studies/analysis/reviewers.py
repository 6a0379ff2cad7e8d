"""How the reviewers of a study judged, alone and with each other (calibration.md section 8, over pairs).

A reviewer's answer to a pair is what its valid showings agree on; answers that differ are inconsistent, which
agrees with nothing and is no tie. Verdicts are turned to the treatment before reviewers are compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final, NamedTuple

from skill_effectiveness.calibration.agreement import alpha_agreement, pair_agreement
from skill_effectiveness.calibration.figures import Share
from skill_effectiveness.calibration.position import position_sheet
from skill_effectiveness.protocol.words import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skill_effectiveness.calibration.agreement import Answer, PairAgreement
    from skill_effectiveness.calibration.figures import Estimate
    from skill_effectiveness.calibration.position import PositionSheet
    from skill_effectiveness.studies.chance import Chance
    from skill_effectiveness.studies.tables import JudgementRow

_FOR: Final = {"win": Verdict.A_WIN, "loss": Verdict.B_WIN, "tie": Verdict.TIE}
_STATES: Final = ("valid", "no_verdict", "invalid", "refused", "provider_error", "void")


class Seen(NamedTuple):
    """One showing, in the form `position_sheet` reads: the treatment is candidate A."""

    case_id: str
    orientation: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ReviewerSheet:
    """One reviewer.

    Attributes:
        votes: single votes on pairs by state, every state named.
        pairs: pairs with a valid vote.
        inconsistent: of those, how many got different answers.
        position: flips and first seats over valid votes on pairs.
        longer: decided verdicts for the longer text; showings of equal length left out.
        canaries: right answers of valid votes on canaries.
        confusion: valid votes on canaries by truth (outer) and verdict (inner): A win, B win, tie.
    """

    reviewer: str
    votes: dict[str, int]
    pairs: int
    inconsistent: Share
    position: PositionSheet
    longer: Share
    canaries: Share
    confusion: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class TwoReviewers:
    """Two reviewers over the pairs that both have valid votes on."""

    first: str
    second: str
    pairs: int
    figures: PairAgreement


@dataclass(frozen=True, slots=True)
class ReviewersResult:
    """All reviewers, sorted by name.

    Attributes:
        alpha: over all reviewers and pairs, inconsistent and absent answers being missing; None with fewer
            than two reviewers or nothing to compare.
        bootstrap_seed: of the intervals of agreement.
    """

    sheets: tuple[ReviewerSheet, ...]
    agreement: tuple[TwoReviewers, ...]
    alpha: Estimate | None
    bootstrap_seed: int


def reviewers_result(judgements: Iterable[JudgementRow], chance: Chance) -> ReviewersResult:
    """The sheets of all reviewers; the order of the rows changes nothing.

    Args:
        judgements: consistent rows (`consistency.check_tables`).
        chance: the draws of the plan; the bootstrap's seed are the first four bytes of K({use: reviewers}).
    """
    held: dict[str, list[JudgementRow]] = defaultdict(list)
    for vote in sorted(judgements, key=lambda vote: vote.vote_id):
        held[vote.reviewer].append(vote)
    answers = {name: _answers(votes) for name, votes in sorted(held.items())}
    seed = int.from_bytes(chance.key({"use": "reviewers"})[:4], "little")
    return ReviewersResult(
        sheets=tuple(_sheet(name, held[name], answers[name]) for name in answers),
        agreement=tuple(
            found
            for first, second in combinations(answers, 2)
            if (found := _two(first, second, answers, seed)) is not None
        ),
        alpha=_alpha(list(answers.values()), seed),
        bootstrap_seed=seed,
    )


def _valid(votes: Iterable[JudgementRow], *, canary: bool) -> list[JudgementRow]:
    return [vote for vote in votes if vote.state == "valid" and vote.canary is canary]


def _answers(votes: Sequence[JudgementRow]) -> dict[str, Answer]:
    said: dict[str, set[Verdict]] = defaultdict(set)
    for vote in _valid(votes, canary=False):
        if vote.for_treatment is not None:
            said[vote.pair_id].add(_FOR[vote.for_treatment])
    return {pair: next(iter(words)) if len(words) == 1 else None for pair, words in sorted(said.items())}


def _sheet(name: str, votes: Sequence[JudgementRow], answers: dict[str, Answer]) -> ReviewerSheet:
    states = Counter(vote.state for vote in votes if not vote.canary)
    shown, canaries = _valid(votes, canary=False), _valid(votes, canary=True)
    inconsistent = sum(answer is None for answer in answers.values())
    right = sum(vote.verdict == vote.truth for vote in canaries)
    return ReviewerSheet(
        reviewer=name,
        votes={state: states[state] for state in _STATES},
        pairs=len(answers),
        inconsistent=Share.of(inconsistent, len(answers)),
        position=position_sheet(_samples(shown)),
        longer=_longer(shown),
        canaries=Share.of(right, len(canaries)),
        confusion=_confusion(canaries),
    )


def _samples(shown: Sequence[JudgementRow]) -> list[list[Seen]]:
    """The showings dealt out so that no sample holds a pair twice."""
    samples: list[list[Seen]] = []
    times: Counter[str] = Counter()
    for vote in shown:
        if times[vote.pair_id] == len(samples):
            samples.append([])
        verdict = Verdict(str(vote.verdict))
        samples[times[vote.pair_id]].append(Seen(vote.pair_id, vote.position, verdict))
        times[vote.pair_id] += 1
    return samples


def _longer(shown: Sequence[JudgementRow]) -> Share:
    decided = [vote for vote in shown if vote.verdict != Verdict.TIE and vote.chars_a != vote.chars_b]
    part = sum((vote.verdict == Verdict.A_WIN) is (vote.chars_a > vote.chars_b) for vote in decided)
    return Share.of(part, len(decided))


def _confusion(canaries: Sequence[JudgementRow]) -> tuple[tuple[int, int, int], ...]:
    counts = Counter((vote.truth, vote.verdict) for vote in canaries)
    a, b, tie = (str(word) for word in Verdict)
    return tuple((counts[truth, a], counts[truth, b], counts[truth, tie]) for truth in (a, b, tie))


def _two(first: str, second: str, answers: dict[str, dict[str, Answer]], seed: int) -> TwoReviewers | None:
    both = sorted(answers[first].keys() & answers[second].keys())
    if not both:
        return None
    mine, theirs = ([answers[name][pair] for pair in both] for name in (first, second))
    return TwoReviewers(first, second, len(both), pair_agreement(mine, theirs, seed))


def _alpha(answers: Sequence[dict[str, Answer]], seed: int) -> Estimate | None:
    pairs = sorted({pair for given in answers for pair in given})
    if len(answers) <= 1 or not pairs:
        return None
    return alpha_agreement([[given.get(pair) for pair in pairs] for given in answers], seed)
