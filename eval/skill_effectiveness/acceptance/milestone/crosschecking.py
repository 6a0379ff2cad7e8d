"""One round of the crosscheck: two passes, each in a checkout of its own, and what they come to.

Source: milestone.md, section 7. The order is: run directory, prior, profile, receipts, packets, checkouts;
only then is an engine started.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.acceptance.milestone.answers import (
    ANSWER_SCHEMA,
    AnswerInvalidError,
    Asked,
    read_answer,
)
from skill_effectiveness.acceptance.milestone.calls import CallDesk, CallDone, CallOrder
from skill_effectiveness.acceptance.milestone.checkouts import CheckoutName, Checkouts
from skill_effectiveness.acceptance.milestone.engines import EngineUnavailableError, available
from skill_effectiveness.acceptance.milestone.errors import Reason, StopCode, escalated, held
from skill_effectiveness.acceptance.milestone.floors import reading_of, shortfalls
from skill_effectiveness.acceptance.milestone.gating import evidence_round
from skill_effectiveness.acceptance.milestone.packets import PROMPT_BYTES, PacketFacts, pass_packet
from skill_effectiveness.acceptance.milestone.passes import (
    PassResult,
    RoundRuling,
    judge_round,
    state_of_ending,
)
from skill_effectiveness.acceptance.milestone.prior import Prior, RoundStart, is_valid_start
from skill_effectiveness.acceptance.milestone.probe import fitness
from skill_effectiveness.acceptance.milestone.receipt_files import authors_of, gather, write_receipts
from skill_effectiveness.acceptance.milestone.verdict import (
    AttemptRecord,
    AuthorRecord,
    RoundIdentity,
    Verdict,
    make_verdict,
)
from skill_effectiveness.acceptance.milestone.words import (
    NOT_OBSERVED,
    PassName,
    PassState,
    Purpose,
    Role,
    RowType,
)
from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.providers import CallKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from skill_effectiveness.acceptance.milestone.answers import Answer
    from skill_effectiveness.acceptance.milestone.configuration import EngineProfile
    from skill_effectiveness.acceptance.milestone.gate import GateJudgement
    from skill_effectiveness.acceptance.milestone.run import Run
    from skill_effectiveness.execution.worktree import PlacedWorktree
    from skill_effectiveness.providers import CallOutcome, Provider

STRICT_SCHEMA: Final = "answer.strict.json"
DIFFERS: Final = "observed_model_differs"
SAME_THREAD: Final = "same_thread"


@dataclass(frozen=True, slots=True)
class RoundOrder:
    """What a round is about.

    Attributes:
        gate: the passed gate.
        number: 1, or 2 after the correction.
        prior: what it continues.
        judged_head: the head of the round before it.
        answers: what an explorer found out.
        fixed_by: the executor that corrected the range.
    """

    gate: GateJudgement
    number: int = 1
    prior: Prior | None = None
    judged_head: str = ""
    answers: str = ""
    fixed_by: AuthorRecord | None = None


@dataclass(frozen=True, slots=True)
class _Engine:
    profile: EngineProfile
    provider: Provider


_Engines = dict[PassName, _Engine]


class Crosscheck:
    """Runs the rounds of a run.

    Args:
        run: the open run.
        run_dir: where it writes; the run's folder by default.
    """

    def __init__(self, run: Run, run_dir: Path | None = None) -> None:
        self._run = run
        self._run_dir = run.folder.path if run_dir is None else run_dir
        self._desk = CallDesk(run)
        self._checkouts = Checkouts(run)
        self._unavailable: list[str] = []

    def round(self, order: RoundOrder) -> Verdict:
        """Run one round; its V, and the row that holds it.

        Raises:
            Stopped: `crosscheck_refused`, `crosscheck_failed`, `crosscheck_no_verdict`, or a hold.
            MilestoneError: `git_failed`, `worktree_foreign`, `row_not_written`.
        """
        run, gate = self._run, order.gate
        if not self._run_dir.is_absolute():
            raise _failed(Reason.NO_RUN_DIR, "The run directory is not named by an absolute path.")
        if not is_valid_start(
            RoundStart(order.number, run.milestone, run.facts.run, order.judged_head, order.prior)
        ):
            told = "The verdict before this round does not describe its continuation."
            raise escalated(StopCode.CROSSCHECK_REFUSED, told, Reason.PRIOR_INVALID.value)
        choices = self._choices()
        first = next(choices, None)
        if first is None:
            raise _no_engine([], self._unavailable)
        handovers = gather(run)
        receipts = write_receipts(run, order.number, handovers)
        run.folder.replace(dump_line(ANSWER_SCHEMA), "crosscheck", STRICT_SCHEMA)
        facts = PacketFacts(
            base=gate.base,
            head=gate.head,
            criteria=run.facts.criteria.build,
            decisions=run.facts.given.decisions,
            receipts=receipts,
            prior=None if order.prior is None else order.prior.verdict,
            answers=order.answers,
        )
        packets = {name: pass_packet(name, facts) for name in PassName}
        if any(len(packet.encode()) > PROMPT_BYTES for packet in packets.values()):
            raise _failed(Reason.PROMPT_TOO_LARGE, "A packet is over 120 KiB; shorten criteria or decisions.")
        authors = authors_of(handovers) + ((order.fixed_by,) if order.fixed_by else ())
        about = RoundIdentity(
            round=order.number,
            milestone=run.milestone,
            plan=run.facts.given.plan,
            head=gate.head,
            base=gate.base,
            run=run.facts.run,
            authors=authors,
            receipts=receipts.nodes,
        )
        return self._judged(order, _Round(about, facts, packets), first, choices)

    def _choices(self) -> Iterator[_Engines]:
        """The sets of engines that can be asked now, in their order."""
        run = self._run
        for profiles in run.facts.configuration.sets_of_engines():
            try:
                yield {
                    name: _Engine(
                        profile, available(profile, CallKind.READ, run.site.binder, run.site.around)
                    )
                    for name, profile in profiles.items()
                }
            except EngineUnavailableError as error:
                self._unavailable.append(str(error))

    def _judged(
        self, order: RoundOrder, about: _Round, first: _Engines, others: Iterator[_Engines]
    ) -> Verdict:
        """Let the first fit engines judge; the row of V is written."""
        named = self._name(order)
        self._checkouts.sweep([named.of(name, 1) for name in PassName])
        engines: _Engines | None = first
        attempts: list[AttemptRecord] = []
        passing: PassState | None = None
        while engines is not None:
            trees = {name: self._checkouts.prepare(named.of(name, 1), order.gate.head) for name in PassName}
            unfit, trouble = self._unfit(engines)
            passing = passing or trouble
            if unfit:
                self._take_away(trees, order.gate.head)
            else:
                verdict = _Passes(self._run, self._desk, self._checkouts, about, named).judge(
                    engines, trees, attempts
                )
                if verdict is not None:
                    self._run.note(
                        RowType.CROSSCHECK,
                        base=verdict.base,
                        digest=verdict.digest,
                        head=verdict.head,
                        milestone=verdict.milestone,
                        round=verdict.round,
                        verdict=verdict.plain(),
                        word=verdict.word.value,
                    )
                    return verdict
            engines = next(others, None)
        if passing is not None:
            code = StopCode.ENGINE_QUOTA if passing is PassState.QUOTA else StopCode.ENGINE_NO_ANSWER
            raise held(code, "No engine could be probed; resume when one answers.")
        raise _no_engine(attempts, self._unavailable)

    def _unfit(self, engines: _Engines) -> tuple[bool, PassState | None]:
        for engine in {each.profile.name: each for each in engines.values()}.values():
            found = fitness(self._run, engine.profile, engine.provider)
            if not found.fit:
                return True, found.passing
        return False, None

    def _take_away(self, trees: Mapping[PassName, PlacedWorktree], head: str) -> None:
        for tree in trees.values():
            self._checkouts.remove(tree.path, head)

    def _name(self, order: RoundOrder) -> CheckoutName:
        run, head = self._run, order.gate.head
        return CheckoutName(run.milestone, order.number, evidence_round(run, head), head)


@dataclass(frozen=True, slots=True)
class _Round:
    """What both passes of a round are asked."""

    about: RoundIdentity
    facts: PacketFacts
    packets: Mapping[PassName, str]


class _Passes:
    """The passes of a round with one set of engines."""

    def __init__(
        self, run: Run, desk: CallDesk, checkouts: Checkouts, asked: _Round, named: CheckoutName
    ) -> None:
        self._run = run
        self._desk = desk
        self._checkouts = checkouts
        self._asked = asked
        self._named = named
        self._engines: _Engines = {}
        self._attempts: list[AttemptRecord] = []

    def judge(
        self, engines: _Engines, trees: Mapping[PassName, PlacedWorktree], attempts: list[AttemptRecord]
    ) -> Verdict | None:
        """V of these engines; `None`: one of them could not be started.

        Raises:
            Stopped: the round failed, is held, or gave no verdict.
        """
        self._engines, self._attempts = engines, attempts
        results = self._attempt(dict(trees), 1)
        ruling = judge_round(results)
        if ruling.again is not None:
            name, head = ruling.again, self._asked.about.head
            again = {name: self._checkouts.prepare(self._named.of(name, 2), head)}
            results |= self._attempt(again, 2)
            ruling = judge_round(results)
        if ruling.unavailable:
            return None
        self._demand_verdict(ruling)
        answers = {name: result.answer for name, result in results.items() if result.answer is not None}
        return make_verdict(self._asked.about, answers, attempts)

    def _demand_verdict(self, ruling: RoundRuling) -> None:
        attempts = [attempt.model_dump(mode="json") for attempt in self._attempts]
        if ruling.failed is not None:
            told = "A pass failed, so the round did; its calls are kept."
            raise _failed(ruling.failed, told, attempts=attempts)
        if ruling.held is not None:
            raise held(ruling.held, "An engine gave no judgement; resume when it can.", attempts=attempts)
        if ruling.no_verdict:
            told = "The passes read too little to judge; look at the engines and start a new run."
            raise escalated(StopCode.CROSSCHECK_NO_VERDICT, told, attempts=attempts)

    def _attempt(self, trees: Mapping[PassName, PlacedWorktree], attempt: int) -> dict[PassName, PassResult]:
        """One attempt of each of these passes, at the same time; an invalid answer is asked once more."""
        head = self._asked.about.head
        try:
            results = self._ask(trees, attempt, asked=1)
            again = {name: trees[name] for name, each in results.items() if each.state is PassState.INVALID}
            if again:
                results |= self._ask(again, attempt, asked=2)
        finally:
            for tree in trees.values():
                self._checkouts.remove(tree.path, head)
        return results

    def _ask(
        self, trees: Mapping[PassName, PlacedWorktree], attempt: int, asked: int
    ) -> dict[PassName, PassResult]:
        names = list(trees)
        done = self._desk.ask([self._order(name, trees[name], attempt, asked) for name in names])
        return {
            name: self._result(name, each, attempt, asked) for name, each in zip(names, done, strict=True)
        }

    def _order(self, name: PassName, tree: PlacedWorktree, attempt: int, asked: int) -> CallOrder:
        engine = self._engines[name]

        def after(_outcome: CallOutcome) -> dict[str, Any]:
            return {"worktree_changed": tree.head_moved() or tree.dirty()}

        return CallOrder(
            role=Role.REVIEWER,
            purpose=Purpose.CROSSCHECK,
            profile=engine.profile,
            provider=engine.provider,
            prompt=self._asked.packets[name],
            folder=tree.path,
            schema=ANSWER_SCHEMA,
            about={
                "asked": asked,
                "attempt": attempt,
                "checkout": str(tree.path),
                "head": self._asked.about.head,
                "pass": name.value,
                "round": self._asked.about.round,
            },
            after=after,
        )

    def _result(self, name: PassName, done: CallDone, attempt: int, asked: int) -> PassResult:
        state, reason, answer = self._state(name, done)
        profile = done.order.profile
        reading = reading_of(done.outcome, done.order.provider.tool_label)
        self._attempts.append(
            AttemptRecord(
                name=name,
                attempt=attempt,
                asked=asked,
                call=done.call,
                profile=profile.name,
                state=state,
                verdict=None if answer is None else answer.verdict,
                reason=reason,
                voided=state is PassState.NOT_READ,
                model=profile.model,
                family=profile.family,
                observed_model=done.outcome.observed_model or NOT_OBSERVED,
                commands=reading.commands,
                tokens=reading.tokens,
                milliseconds=done.outcome.latency_ms,
                unobserved_floors=profile.floors.unobserved,
                warnings=self._warnings(done),
            )
        )
        return PassResult(name, state, attempt, answer if state is PassState.VALID else None)

    def _state(self, name: PassName, done: CallDone) -> tuple[PassState, str, Answer | None]:
        """What became of an attempt, why, and its answer if it is one."""
        if done.body["worktree_changed"]:
            return PassState.WORKTREE_CHANGED, "the checkout is not what it was", None
        state = state_of_ending(done.outcome)
        if state is not PassState.VALID:
            return state, done.outcome.ending.value, None
        prior = self._asked.facts.prior
        ids = frozenset() if prior is None else frozenset(finding.id for finding in prior.findings)
        asked = Asked(name, self._asked.facts.refs, ids, done.order.provider.json_fence)
        try:
            answer = read_answer(done.outcome.answer or "", asked)
        except AnswerInvalidError as error:
            return PassState.INVALID, str(error), None
        reading = reading_of(done.outcome, done.order.provider.tool_label)
        short = shortfalls(reading, done.order.profile.floors)
        if short:
            return PassState.NOT_READ, f"under the floor of {', '.join(short)}", answer
        return PassState.VALID, "", answer

    def _warnings(self, done: CallDone) -> tuple[str, ...]:
        warnings = []
        if done.outcome.observed_model not in {None, done.order.profile.model}:
            warnings.append(DIFFERS)
        session = done.outcome.session_id
        others = (
            row.body.get("observed", {}).get("session")
            for row in self._run.rows.all(RowType.COMPLETED)
            if row.body.get("call") != done.call
        )
        if session is not None and session in others:
            warnings.append(SAME_THREAD)
        return tuple(warnings)


def _failed(reason: Reason, sentence: str, **carries: Any) -> Exception:  # noqa: ANN401 - plain JSON values
    return escalated(StopCode.CROSSCHECK_FAILED, sentence, reason.value, **carries)


def _no_engine(attempts: Sequence[AttemptRecord], unavailable: Sequence[str]) -> Exception:
    told = "No engine profile is configured, available and fit; see why, configure one and start a new run."
    records = [attempt.model_dump(mode="json") for attempt in attempts]
    reason = Reason.NO_ENGINE.value
    return escalated(
        StopCode.CROSSCHECK_REFUSED, told, reason, attempts=records, unavailable=list(unavailable)
    )
