"""Watching a licensed reviewer by known answers among its votes (calibration.md, section 9).

A canary is a vote whose answer is known, indistinguishable in form. `draw` says which votes of a licence are
canaries and what they show; `watch` says what their answers come to. The evidence against the licence starts
at 1 and is multiplied by p1/p0 for a right and by (1 - p1)/(1 - p0) for a wrong answer; once it reaches the
limit the licence is revoked for ever, and the votes after the last right canary are void: nobody can say
since when the reviewer was no longer the one that was licensed. All arithmetic is exact.

What is drawn: a showing is a case of the judged bank in one of its two orientations. The reviewer has seen
every case in its examination, so "unused in that reviewer's examination order" (section 9) can only be about
showings: one that its examination did not use is drawn before one that it did, in an order drawn by the key
and not that of the bank or of any sample, and none a second time before every one had its turn. Where: each
1/rate votes, at the frozen rate twenty, hold exactly one canary, at a place drawn by the key, so the rate is
kept whatever the number of votes.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import count, takewhile
from math import ceil
from typing import TYPE_CHECKING, Final, NamedTuple

from skill_effectiveness.calibration.orientation import KEY_BYTES
from skill_effectiveness.evidence.canonical import mac
from skill_effectiveness.protocol.words import BankName

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from skill_effectiveness.calibration.models import ShownAnswer
    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.protocol.cases import Bank
    from skill_effectiveness.protocol.policy import CanaryRule
    from skill_effectiveness.protocol.words import Verdict

START: Final = Fraction(1)


@dataclass(frozen=True, slots=True)
class CanaryAnswer:
    """One known answer among the votes of one reviewer.

    Attributes:
        position: place of the vote among all votes of this licence, canaries included, from 0.
        right: whether the answer was the known one.
    """

    position: int
    right: bool


@dataclass(frozen=True, slots=True)
class CanaryWatch:
    """What the canaries of one licence say so far.

    Attributes:
        evidence: e; exact.
        last_right: position of the last right canary; None when there was none.
        revoked_at: position of the canary at which the licence was revoked; None while it stands.
    """

    evidence: Fraction = START
    last_right: int | None = None
    revoked_at: int | None = None

    @property
    def revoked(self) -> bool:
        """Whether the licence is revoked."""
        return self.revoked_at is not None

    def counts(self, position: int) -> bool:
        """Whether the vote at this position counts.

        All votes do while the licence stands. Once it is revoked, only those up to its last right canary do.
        """
        return not self.revoked or (self.last_right is not None and position <= self.last_right)


def factors(rule: CanaryRule) -> tuple[Fraction, Fraction]:
    """What a right and a wrong answer multiply the evidence by.

    A frozen number means the decimal that was written, as in `figures.at_least`.
    """
    p0, p1 = Fraction(repr(rule.p0)), Fraction(repr(rule.p1))
    return p1 / p0, (1 - p1) / (1 - p0)


def watch(rule: CanaryRule, answers: Iterable[CanaryAnswer], since: CanaryWatch | None = None) -> CanaryWatch:
    """Go through the canaries of one licence in the order of their votes.

    Args:
        rule: that of the licence.
        answers: canaries, positions ascending.
        since: what was known before; nothing by default. What comes after a revocation changes nothing.

    Raises:
        ValueError: positions that do not ascend from 0.
    """
    right, wrong = factors(rule)
    limit = Fraction(repr(rule.limit))
    state, last = since or CanaryWatch(), -1
    for answer in answers:
        if answer.position <= last:
            raise ValueError("canaries are given in the order of their votes, each once")
        last = answer.position
        if state.revoked:
            continue
        evidence = state.evidence * (right if answer.right else wrong)
        state = CanaryWatch(
            evidence,
            answer.position if answer.right else state.last_right,
            answer.position if evidence >= limit else None,
        )
    return state


# Drawing them.


class Showing(NamedTuple):
    """A case in one orientation; `swapped` when `candidate_a` is shown as B."""

    case_id: str
    swapped: bool


@dataclass(frozen=True, slots=True, repr=False)
class Canary:
    """One known answer in the form of a pair.

    Attributes:
        position: place of the vote among all votes of this licence, canaries included, from 0.
        pair_id: like those of blinded pairs (trials.md, section 7): `pair-` and 64 hex digits that tell
            nothing without the key.
        showing: what it is made of; never shown.
        task: the task.
        rubric: what to judge by.
        shown_a: the text in seat A.
        shown_b: the text in seat B.
        truth: the right verdict about what is shown; never shown.
    """

    position: int
    pair_id: str
    showing: Showing
    task: str
    rubric: str
    shown_a: str
    shown_b: str
    truth: Verdict

    def __repr__(self) -> str:
        """The place only: no trace may tell a canary's case or answer."""
        return f"<Canary at {self.position}>"

    def answered(self, verdict: Verdict) -> CanaryAnswer:
        """What a verdict about the pair as shown says of the reviewer."""
        return CanaryAnswer(self.position, verdict is self.truth)


def showings(samples: Iterable[Iterable[ShownAnswer]]) -> frozenset[Showing]:
    """What an examination has used, from how its samples were shown."""
    return frozenset(
        Showing(shown.case_id, bool(shown.orientation)) for sample in samples for shown in sample
    )


def draw(
    bank: Bank,
    rule: CanaryRule,
    *,
    key: bytes,
    licence_id: str,
    votes: int,
    examined: Collection[Showing],
) -> tuple[Canary, ...]:
    """The canaries among the first votes of a licence.

    The same for the same arguments, and more votes only add to it, so whoever goes on draws again.

    Args:
        bank: the judged bank.
        rule: that of the licence.
        key: secret, of whoever collects the votes; at least 32 bytes.
        licence_id: whose votes they are; each licence has draws of its own.
        votes: how many votes, canaries included.
        examined: what the licensed reviewer's examination has used; see `showings`.

    Returns:
        By position, ascending.

    Raises:
        ValueError: another bank, a short key, fewer than no votes, or a showing of another bank.
    """
    if bank.name is not BankName.JUDGED:
        raise ValueError("canaries are cases of the judged bank")
    if len(key) < KEY_BYTES:
        raise ValueError(f"a key has at least {KEY_BYTES} bytes")
    if votes < 0:
        raise ValueError("there are no fewer votes than none")
    if not {showing.case_id for showing in examined} <= set(bank.case_ids):
        raise ValueError("an examination with the judged bank used cases of it only")
    drawing = _Drawing(bank, key, licence_id)
    drawn = zip(drawing.positions(Fraction(repr(rule.rate))), drawing.showings(examined), strict=False)
    return tuple(
        drawing.canary(position, showing)
        for position, showing in takewhile(lambda each: each[0] < votes, drawn)
    )


class _Drawing:
    """Every draw for one licence, each from the key under a use of its own."""

    def __init__(self, bank: Bank, key: bytes, licence_id: str) -> None:
        self._key = key
        self._named: dict[str, JsonValue] = {"bank": bank.case_fixture_hash, "licence_id": licence_id}
        self._cases = {case.case_id: case for case in bank.cases}
        self._truth = dict(zip(bank.case_ids, bank.truth, strict=True))

    def positions(self, rate: Fraction) -> Iterator[int]:
        """Where canaries stand: one in each stretch of 1/rate votes, the borders rounded up."""
        for stretch in count():
            first, behind = ceil(stretch / rate), ceil((stretch + 1) / rate)
            drawn = int.from_bytes(self._mac("canary-place", stretch=stretch))
            # Of 256 bits, so that no place is favoured by more than one part in 2 to the 240.
            yield first + drawn % (behind - first)

    def showings(self, examined: Collection[Showing]) -> Iterator[Showing]:
        """What they show, for ever: in each round all showings, those of the examination last."""
        every = [Showing(case_id, swapped) for case_id in self._cases for swapped in (False, True)]
        for turn in count():
            yield from sorted(
                every,
                key=lambda showing: (
                    showing in examined,
                    self._mac(
                        "canary-showing", turn=turn, case_id=showing.case_id, swapped=int(showing.swapped)
                    ),
                ),
            )

    def canary(self, position: int, showing: Showing) -> Canary:
        """The pair."""
        case, truth = self._cases[showing.case_id], self._truth[showing.case_id]
        first, second = case.candidate_a, case.candidate_b
        if showing.swapped:
            first, second, truth = second, first, truth.turned()
        pair_id = f"pair-{self._mac('canary-pair', position=position).hex()}"
        return Canary(position, pair_id, showing, case.task, case.rubric, first, second, truth)

    def _mac(self, use: str, **named: JsonValue) -> bytes:
        return mac(self._key, {"use": use, **self._named, **named})
