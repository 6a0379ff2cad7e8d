"""Showing pairs to reviewers and keeping what they say (studies.md section 5).

For each vote, in this order: the licence is live; the row `vote_started` is durable; one call; the file of
the vote; the row `vote_ended`, with what a canary came to, and where a canary revokes the licence, the rows
that say so and take back the votes after the last right one, all in one append. Whoever is killed in between
is taken up by the next call: a vote whose file is there ends by it, one without ends as `provider_error`, and
no vote is started twice.

A reviewer whose provider is out of order is asked no more in this call; the others go on.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Self

from skill_effectiveness.calibration.canary import CanaryAnswer, watch
from skill_effectiveness.calibration.inputs import load_inputs
from skill_effectiveness.calibration.licence import write_time
from skill_effectiveness.calibration.prompt import render
from skill_effectiveness.evidence.canonical import digest_text
from skill_effectiveness.execution import never
from skill_effectiveness.protocol.words import BankName
from skill_effectiveness.providers import Ending
from skill_effectiveness.studies import rows
from skill_effectiveness.studies.benches import seat_reviewers
from skill_effectiveness.studies.canaries import as_pair, drawn_canaries, void_votes, votes_of, watched
from skill_effectiveness.studies.chance import Chance
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.evidence_reading import RootReader
from skill_effectiveness.studies.guesses import chosen
from skill_effectiveness.studies.roster import call_roster
from skill_effectiveness.studies.trial_rows import StudyEvidence, trial_rows
from skill_effectiveness.studies.voting import (
    UNANSWERED,
    VOTE_CONTRACT,
    VOTES,
    AskedCanary,
    ShownCanary,
    VoteDocument,
    VoteUsage,
    ballot,
    judged,
    read_vote,
    unanswered,
    vote_hash,
    vote_id_of,
    vote_line,
    vote_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skill_effectiveness.protocol.cases import Bank
    from skill_effectiveness.providers import CallOutcome
    from skill_effectiveness.studies.benches import Answering, Bench
    from skill_effectiveness.studies.pairing import PairStanding
    from skill_effectiveness.studies.root import StudyJournal, StudyRoot
    from skill_effectiveness.studies.roster import Roster
    from skill_effectiveness.studies.state import StudyState, VoteState
    from skill_effectiveness.studies.voting import Asked


class JudgeStatus(StrEnum):
    """What a call came to."""

    COMPLETE = "complete"
    VOTES_MISSING = "votes_missing"


@dataclass(frozen=True, slots=True)
class Judged:
    """What there is after a call, over all calls.

    Attributes:
        status: whether every reviewer has a valid vote that counts on every showing.
        votes: on pairs that ended.
        void: of them, taken back.
        canaries: asked.
        revoked: licences.
        missing: showings without a valid vote that counts, over all reviewers.
        pairs: by standing.
        idle: by place in the plan, why a reviewer was not asked to the end.
    """

    status: JudgeStatus
    votes: int
    void: int
    canaries: int
    revoked: int
    missing: int
    pairs: Mapping[PairStanding, int]
    idle: Mapping[int, str]


def judge_study(
    study: StudyRoot,
    journal: StudyJournal,
    *,
    cancelled: Callable[[], bool] = never,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> Judged:
    """Ask every reviewer whatever it has not answered yet, then for its guesses.

    Args:
        study: open, under its lock.
        journal: of the study, open.
        cancelled: asked during calls and between them; True ends them.
        progress: told after each vote that was answered: how many are, and of how many.

    Raises:
        StudyError: `slots_open`; `licence_refused`: nobody's licence is live while votes are missing;
            `plan_changed`, `vote_invalid`, `row_invalid`.
        ProtocolError: frozen inputs cannot be read.
        JournalError, LockError, EvidenceError: something cannot be read or written.
    """
    if not journal.state.complete(study.plan.allocation.slots):
        sentence = "slots have not ended yet; run the study to its end, then let it be judged."
        raise StudyError(StudyCode.SLOTS_OPEN, "/allocation/slots", sentence)
    chance, frozen = Chance(study.seed()), study.frozen()
    evidence = StudyEvidence(study.plan, frozen.tasks, study.slots(), journal.state, RootReader(study.root))
    rewards = {row.slot: row.value if row.reward is None else row.reward for row in trial_rows(evidence)}
    roster = call_roster(study, frozen, evidence, rewards)
    benches = seat_reviewers(study, journal.state, chance, roster.truths, cancelled)
    bank = load_inputs(study.around.fs, BankName.JUDGED).bank
    place = _Place(study, journal, chance, roster)
    stands = [_Stand.of(place, bench, bank) for bench in benches]
    return _judge(stands, journal, roster, cancelled, progress)


@dataclass(frozen=True, slots=True)
class _Place:
    """What all reviewers have in common."""

    study: StudyRoot
    journal: StudyJournal
    chance: Chance
    roster: Roster


def _judge(
    stands: Sequence[_Stand],
    journal: StudyJournal,
    roster: Roster,
    cancelled: Callable[[], bool],
    progress: Callable[[int, int], None],
) -> Judged:
    for stand in stands:
        stand.take_up()
    _demand_live(stands)
    idle: dict[int, str] = {}
    of = sum(len(stand.lines) for stand in stands)
    done = sum(stand.answered() for stand in stands)

    def told() -> None:
        nonlocal done
        done += 1
        progress(done, of)

    for stand in stands:
        reason = stand.ask_votes(cancelled, told) or stand.ask_guesses(cancelled)
        if reason is not None:
            idle[stand.bench.index] = reason
    return _summed(stands, journal.state, roster, idle)


def _demand_live(stands: Sequence[_Stand]) -> None:
    """Refuse when votes are missing and nobody can give one."""
    faults = [(stand.bench.index, stand.fault()) for stand in stands]
    if any(fault in {None, UNBLINDED} for _, fault in faults) or not any(stand.waiting() for stand in stands):
        return
    index, word = faults[0]
    sentence = f"no reviewer's licence is live ({word}); examine the reviewer again and plan anew."
    raise StudyError(StudyCode.LICENCE_REFUSED, f"/reviewers/{index}", sentence)


def _summed(stands: Sequence[_Stand], state: StudyState, roster: Roster, idle: Mapping[int, str]) -> Judged:
    missing = sum(stand.missing() for stand in stands)
    canaries = {pair_id for stand in stands for pair_id in stand.canaries}
    ended = [vote for vote in state.votes.values() if vote.state is not None]
    pairs = [vote for vote in ended if vote.pair_id not in canaries]
    return Judged(
        JudgeStatus.VOTES_MISSING if missing else JudgeStatus.COMPLETE,
        votes=len(pairs),
        void=sum(vote.void for vote in pairs),
        canaries=len(ended) - len(pairs),
        revoked=len(state.revoked),
        missing=missing,
        pairs=roster.standings,
        idle=idle,
    )


_NO_LONGER: Final = frozenset({Ending.UNSTARTABLE, Ending.CANCELLED})
_ROW_DELAY: Final = timedelta(seconds=2)
CANCELLED: Final = "cancelled"
UNBLINDED: Final = "unblinded"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stand:
    """One reviewer and its ballot.

    Attributes:
        lines: of the ballot.
        canaries: ids of the showings that are canaries.
    """

    study: StudyRoot
    journal: StudyJournal
    chance: Chance
    roster: Roster
    bench: Bench
    lines: tuple[Asked, ...]
    canaries: frozenset[str]

    @classmethod
    def of(cls, place: _Place, bench: Bench, bank: Bank) -> Self:
        """The stand of one reviewer, its ballot drawn."""
        chance, roster, rule = place.chance, place.roster, bench.licence.canary_rule
        drawn = drawn_canaries(bank, rule, chance, bench.licence_id, len(roster.shown))
        known = {
            number: ShownCanary(canary, as_pair(canary, roster.file_name)) for number, canary in drawn.items()
        }
        lines = ballot(chance, bench.licence_id, roster.shown, known)
        canaries = frozenset(line.shown.pair_id for line in lines if line.canary is not None)
        return cls(
            study=place.study,
            journal=place.journal,
            chance=chance,
            roster=roster,
            bench=bench,
            lines=lines,
            canaries=canaries,
        )

    # What there is.

    def _votes(self) -> tuple[VoteState, ...]:
        return votes_of(self.journal.state, self.bench.licence_id)

    def fault(self) -> str | None:
        """Why the reviewer cannot be asked now."""
        if self.journal.state.unblinded is not None:
            return UNBLINDED
        now, state = self.study.around.now(), self.journal.state
        # The row of a vote is a little later than this look, and its time is what counts.
        return self.bench.fault(now, state) or self.bench.fault(now + _ROW_DELAY, state)

    def waiting(self) -> bool:
        """Whether a line has no answer yet."""
        return next(unanswered(self.lines, self._votes()), None) is not None

    def answered(self) -> int:
        """How many lines have one."""
        return len(self.lines) - sum(1 for _ in unanswered(self.lines, self._votes()))

    def missing(self) -> int:
        """How many showings have no valid vote that counts."""
        valid = {vote.pair_id for vote in self._votes() if vote.state == "valid" and not vote.void}
        return sum(line.canary is None and line.shown.pair_id not in valid for line in self.lines)

    # What is done.

    def take_up(self) -> None:
        """End the votes that a killed call left behind."""
        for vote in self._votes():
            if vote.state is not None:
                continue
            with self.study.root.child(VOTES, create=True) as folder:
                name = vote_name(vote.vote_id)
                data = folder.read(name) if folder.exists(name) else None
            if data is None:
                self.journal.append(
                    rows.VoteEnded(vote_id=vote.vote_id, state=UNANSWERED, vote_hash=None, usage=rows.Usage())
                )
            else:
                self._end(read_vote(data, vote.vote_id))

    def ask_votes(self, cancelled: Callable[[], bool], told: Callable[[], None]) -> str | None:
        """Ask every line that brought no answer, once; answers why it stopped before the end."""
        for line, attempt in list(unanswered(self.lines, self._votes())):
            fault = CANCELLED if cancelled() else self.fault()
            answering = self.bench.answering
            if fault is not None or answering is None:
                return fault
            outcome, state = self._ask(line, attempt, answering)
            if state != UNANSWERED:
                told()
            if outcome.ending in _NO_LONGER:
                return str(outcome.ending)
            if outcome.error_kind is not None and not outcome.retryable:
                return str(outcome.error_kind)
        return None

    def _ask(self, line: Asked, attempt: int, answering: Answering) -> tuple[CallOutcome, str]:
        shown, licence_id = line.shown, self.bench.licence_id
        vote_id = vote_id_of(self.chance, licence_id, shown.pair_id, attempt)
        presentation = shown.presentation()
        self.journal.append(
            rows.VoteStarted(
                vote_id=vote_id, licence_id=licence_id, pair_id=shown.pair_id, position=shown.position
            )
        )
        outcome = answering.vote(line, presentation, vote_id)
        state, verdict = judged(outcome, presentation, json_fence=answering.json_fence)
        reviewer = self.bench.licence.reviewer
        vote = VoteDocument(
            schema_version=1,
            artifact_contract=VOTE_CONTRACT,
            vote_id=vote_id,
            licence_id=licence_id,
            pair_id=shown.pair_id,
            position=shown.position,
            canary=_asked_canary(line),
            prompt_sha256=digest_text(render(presentation)),
            chars_a=len(shown.shown_a),
            chars_b=len(shown.shown_b),
            ending=outcome.ending,
            state=state,
            verdict=verdict,
            executable_hash=reviewer.provider_executable_hash,
            cli_version=reviewer.provider_cli_version,
            model=reviewer.model,
            usage=_usage(outcome),
            voted_at=write_time(self.study.around.now()),
        )
        with self.study.root.child(VOTES, create=True) as folder:
            folder.publish(vote_name(vote_id), vote_line(vote))
        self._end(vote)
        return outcome, state

    def _end(self, vote: VoteDocument) -> None:
        """Every row that the end of a vote brings, in one append."""
        ended = rows.VoteEnded(
            vote_id=vote.vote_id,
            state=vote.state,
            vote_hash=vote_hash(vote),
            usage=vote.usage.as_journalled(),
        )
        self.journal.append(ended, *self._consequences(vote))

    def _consequences(self, vote: VoteDocument) -> list[rows.StudyRow]:
        """What the answer to a canary brings."""
        if vote.right is None:
            return []
        state, licence_id, rule = self.journal.state, self.bench.licence_id, self.bench.licence.canary_rule
        votes = self._votes()
        place = next(place for place, one in enumerate(votes) if one.vote_id == vote.vote_id)
        before = watched(state, licence_id, self.canaries, rule)
        seen = watch(rule, [CanaryAnswer(place, vote.right)], before)
        found: list[rows.StudyRow] = [
            rows.Canary(licence_id=licence_id, right=vote.right, e=float(seen.evidence))
        ]
        if seen.revoked and not before.revoked:
            found.append(rows.LicenceRevoked(licence_id=licence_id))
            found.append(
                rows.VotesVoid(licence_id=licence_id, vote_ids=void_votes(votes, seen, self.canaries))
            )
        return found

    def ask_guesses(self, cancelled: Callable[[], bool]) -> str | None:
        """Ask for the treated side, once every line has an answer; answers why it stopped before the end."""
        if self.waiting():
            return None
        state, licence_id = self.journal.state, self.bench.licence_id
        voted: dict[str, list[str]] = defaultdict(list)
        for vote in self._votes():
            if vote.state == "valid" and not vote.void and vote.pair_id in self.roster.pair_of:
                voted[self.roster.pair_of[vote.pair_id]].append(vote.pair_id)
        shown = {one.pair_id: one for one in self.roster.shown}
        for showing in chosen(self.chance, licence_id, voted):
            one = shown[showing]
            if (licence_id, showing, one.position) in state.guesses:
                continue
            fault = CANCELLED if cancelled() else self.fault()
            answering = self.bench.answering
            if fault is not None or answering is None:
                return fault
            said = answering.guess(one)
            if said is not None:
                self.journal.append(
                    rows.Guess(licence_id=licence_id, pair_id=showing, position=one.position, guess=said)
                )
        return None


def _asked_canary(line: Asked) -> AskedCanary | None:
    if line.canary is None:
        return None
    showing = line.canary.showing
    return AskedCanary(case_id=showing.case_id, swapped=showing.swapped, truth=line.canary.truth)


def _usage(outcome: CallOutcome) -> VoteUsage:
    used = outcome.usage
    return VoteUsage(
        input_tokens=used.input_tokens,
        cached_tokens=used.cached_input_tokens,
        output_tokens=used.output_tokens,
        reasoning_tokens=used.reasoning_output_tokens,
        cost_units=used.cost_units,
        latency_ms=outcome.latency_ms,
    )
