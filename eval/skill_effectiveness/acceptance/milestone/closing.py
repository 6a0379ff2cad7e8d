"""The close: gate, crosscheck, the one correction, audit, and the row that closes the milestone.

Source: milestone.md, sections 1, 8 to 10 and 12. The order is the guarantee. Whatever stops a close becomes a
row before the verb ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.acceptance.milestone.alignment import AlignmentFacts, NodeLanding, judge_alignment
from skill_effectiveness.acceptance.milestone.auditing import audit_rows
from skill_effectiveness.acceptance.milestone.closing_rule import CloseEvidence, judge_close
from skill_effectiveness.acceptance.milestone.correcting import Correction, pending, standing_verdict
from skill_effectiveness.acceptance.milestone.correction import escalation_id
from skill_effectiveness.acceptance.milestone.crosschecking import Crosscheck, RoundOrder
from skill_effectiveness.acceptance.milestone.errors import (
    MilestoneCode,
    MilestoneError,
    Stop,
    StopCode,
    Stopped,
    escalated,
)
from skill_effectiveness.acceptance.milestone.gating import (
    ROUNDS,
    judge,
    make_evidence,
    newest_gate,
    settle,
    target_tip,
)
from skill_effectiveness.acceptance.milestone.prior import Prior
from skill_effectiveness.acceptance.milestone.run import Run, open_run, required
from skill_effectiveness.acceptance.milestone.store import MilestoneStore
from skill_effectiveness.acceptance.milestone.verdict import Verdict
from skill_effectiveness.acceptance.milestone.words import (
    PRODUCER,
    AuditWord,
    GateState,
    Outcome,
    RowType,
    Word,
)
from skill_effectiveness.evidence.crash import version
from skill_effectiveness.evidence.documents import validate

if TYPE_CHECKING:
    from skill_effectiveness.acceptance.milestone.gate import GateJudgement
    from skill_effectiveness.acceptance.milestone.run import Site

CLOSE_CALL: Final = "close"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a verb that drives a run ended.

    Attributes:
        outcome: the closed word.
        stop: what stopped it; `None` when it closed.
        value: what machines are told; plain JSON values.
    """

    outcome: Outcome
    stop: Stop | None
    value: dict[str, Any] = field(default_factory=dict)


def close(site: Site, name: str, *, recorded: bool = False) -> Ended:
    """Close the milestone of a run.

    Args:
        site: where.
        name: the run.
        recorded: close on the evidence that stands, and make none.

    Raises:
        MilestoneError: `run_ended`; those of `open_run`; `git_failed`, `row_not_written`.
        Stopped: `close_unverified`: what stands does not let it close, and nothing is recorded.
    """
    with open_run(site, name, "close the milestone") as run:
        _demand_open(run)
        closing = Closing(run)
        if recorded:
            closing.demand_standing()
        return _ended(run, closing.record_standing if recorded else closing.close)


def resume(site: Site, name: str) -> Ended:
    """Continue a close that was held or cut off.

    Raises:
        MilestoneError: `run_ended`, `row_required`: there is nothing to continue; as `close`.
    """
    with open_run(site, name, "resume the close") as run:
        if not run.rows.ended and run.rows.newest(RowType.FINAL_GATE) is None:
            raise required(RowType.HOLD)
        _demand_unfinished(run)
        return _ended(run, Closing(run).close)


def gate(site: Site, name: str, *, make: bool = False) -> GateJudgement:
    """Judge what stands on the head now.

    Args:
        site: where.
        name: the run.
        make: first make, once, what the gate lacks; the gate itself makes nothing.

    Raises:
        MilestoneError: as `close`.
        Stopped: the hold `verify_unavailable`, or that of an engine of QA; its row is written.
    """
    with open_run(site, name, "judge the gate") as run:
        _demand_unfinished(run)
        judged = judge(run, target_tip(run))
        if not make or judged.state is not GateState.PENDING:
            return judged
        try:
            make_evidence(run, judged)
        except Stopped as stopped:
            _stopped(run, stopped.stop)
            raise
        return judge(run, target_tip(run))


def crosscheck(site: Site, name: str) -> Ended:
    """Run round 1 over the newest passed gate; its V is a row, and a stop is one too.

    Raises:
        MilestoneError: `row_required`: no gate passed at the present head; as `close`.
    """
    with open_run(site, name, "run the crosscheck") as run:
        _demand_unfinished(run)
        judged = newest_gate(run)
        if judged is None or judged.state is not GateState.PASS or judged.head != target_tip(run):
            raise required(RowType.FINAL_GATE)
        return _ended(run, lambda: _crosschecked(run, judged))


def _crosschecked(run: Run, judged: GateJudgement) -> Ended:
    verdict = Closing(run).first_round(judged)
    value = {"crosscheck": verdict.plain(), "outcome": verdict.word.value}
    return Ended(Outcome.CLOSED if verdict.word is Word.VERIFIED else Outcome.ESCALATED, None, value)


def _demand_open(run: Run) -> None:
    if run.rows.ended and run.rows.finished is None:
        told = "The run is held; continue it with `milestone resume`."
        raise MilestoneError(MilestoneCode.RUN_ENDED, run.facts.run, told)
    _demand_unfinished(run)


def _demand_unfinished(run: Run) -> None:
    """Refuse a run that is over; one that is held goes on."""
    if run.rows.finished is not None:
        raise _over(run)
    if run.rows.ended:
        run.note(RowType.STARTED, resumed=True, run=run.facts.run)


def _over(run: Run) -> MilestoneError:
    return MilestoneError(MilestoneCode.RUN_ENDED, run.facts.run, "The run is over; start a new one.")


def _ended(run: Run, drive: Any) -> Ended:  # noqa: ANN401 - a callable without arguments
    try:
        ended: Ended = drive()
    except Stopped as stopped:
        return _stopped(run, stopped.stop)
    return ended


def _stopped(run: Run, stop: Stop) -> Ended:
    """Write the rows of a stop."""
    told = {"ask": stop.ask, "code": stop.code.value, "reason": stop.reason}
    if stop.outcome is Outcome.HELD:
        run.note(RowType.HOLD, **{**stop.carries, **told})
        run.note(RowType.PAUSED, code=stop.code.value)
        return Ended(stop.outcome, stop, {**stop.carries, "outcome": stop.outcome.value, **told})
    evidence = stop.carries.get("verdict", {**stop.carries, **told})
    name = escalation_id(run.facts.run, CLOSE_CALL, evidence)
    value = {**stop.carries, "call": CLOSE_CALL, "id": name, "outcome": stop.outcome.value, **told}
    run.note(RowType.ESCALATION, **value)
    run.note(RowType.FINISHED, code=stop.code.value, escalation=name, outcome=stop.outcome.value)
    if "verdict" in stop.carries:
        value |= {"crosscheck": stop.carries["verdict"]}
    return Ended(stop.outcome, stop, value)


def _refused(reason: str) -> Stopped:
    told = f"Nothing was closed: {reason}."
    return Stopped(Stop(Outcome.REFUSED, StopCode.CLOSE_UNVERIFIED, told, carries={"why": reason}))


class Closing:
    """One close of an open run."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def close(self) -> Ended:
        """Make the evidence, judge it and close; a target that moves is judged again.

        Raises:
            Stopped: whatever keeps the milestone open.
            MilestoneError: `git_failed`, `row_not_written`, `commit_unresolved`, `worktree_foreign`.
        """
        for _ in range(ROUNDS):
            judged = settle(self._run, lambda: target_tip(self._run))
            verdict = self.first_round(judged)
            if verdict.word is not Word.VERIFIED:
                corrected = Correction(self._run, judged, verdict).correct()
                judged, verdict = corrected.gate, corrected.verdict
            ended = self._record(judged, verdict)
            if ended is not None:
                return ended
        told = "The target moved before the close was recorded, three times; let it rest."
        raise escalated(StopCode.CLOSE_UNVERIFIED, told)

    def demand_standing(self) -> None:
        """Return only if the newest gate and V let the milestone close now.

        Raises:
            Stopped: `close_unverified`.
        """
        reason = self._unverified(newest_gate(self._run), self._newest_verdict(), target_tip(self._run))
        if reason is not None:
            raise _refused(reason)

    def record_standing(self) -> Ended:
        """Close on the newest gate and V; nothing is made.

        Raises:
            Stopped: `close_unverified`, `audit_mismatch`.
        """
        ended = self._record(newest_gate(self._run), self._newest_verdict())
        if ended is None:
            raise _refused("the target moved before the close was recorded")
        return ended

    def _newest_verdict(self) -> Verdict | None:
        row = self._run.rows.newest(RowType.CROSSCHECK)
        return None if row is None else validate(Verdict, row.body["verdict"])

    def first_round(self, judged: GateJudgement) -> Verdict:
        """V of the gate's range: the one that stands, else that of round 1.

        Raises:
            Stopped: as `Crosscheck.round`; `crosscheck_pending`: round 2 was not verified before.
        """
        second = standing_verdict(self._run, judged, 2)
        if second is not None:
            if second.word is not Word.VERIFIED:
                raise pending(self._run, second)
            return second
        verdict = standing_verdict(self._run, judged, 1)
        if verdict is not None:
            return verdict
        return Crosscheck(self._run).round(RoundOrder(judged, 1, self._prior()))

    def _prior(self) -> Prior | None:
        told = self._run.facts.started.body.get("prior")
        return None if told is None else Prior(validate(Verdict, told["verdict"]), rerun=True)

    def _record(self, judged: GateJudgement | None, verdict: Verdict | None) -> Ended | None:
        """Write the close, or say why there is none; `None`: the target moved, and nothing was recorded."""
        run = self._run
        tip = target_tip(run)
        if judged is not None and judged.head != tip:
            return None
        reason = self._unverified(judged, verdict, tip)
        if reason is not None or judged is None:
            told = f"Nothing was closed: {reason}."
            raise escalated(StopCode.CLOSE_UNVERIFIED, told, why=reason)
        self._audit()
        body: dict[str, Any] = {
            "alignment": self._alignment(judged),
            "base": judged.base,
            "crosscheck": None if verdict is None else verdict.digest,
            "gate": self._seq(RowType.FINAL_GATE),
            "head": tip,
            "milestone": run.milestone,
            "plan": run.facts.given.plan,
            "producer": {"name": PRODUCER, "version": version()},
        }
        deferred = run.facts.criteria.deferred
        if deferred:
            listed = [entry.model_dump(mode="json", exclude_none=True) for entry in deferred]
            body["delivery"] = {"criteria": listed, "head": tip, "state": "pending"}
        # The last thing that is looked at: the audit takes its time.
        if target_tip(run) != tip:
            return None
        run.note(RowType.CLOSE, **body)
        run.note(RowType.FINISHED, outcome=Outcome.CLOSED.value)
        value = {"outcome": Outcome.CLOSED.value, **body}
        value["crosscheck"] = None if verdict is None else verdict.plain()
        return Ended(Outcome.CLOSED, None, value)

    def _unverified(self, judged: GateJudgement | None, verdict: Verdict | None, tip: str) -> str | None:
        """Why this evidence does not let the milestone close at a tip."""
        run = self._run
        final = run.rows.newest(RowType.REVIEWER_FINAL)
        evidence = CloseEvidence(
            run.milestone,
            judged,
            verdict,
            imported=run.facts.started.body.get("imported") is True,
            reviewer_final=None if final is None else final.body,
        )
        return judge_close(evidence, tip)

    def _seq(self, kind: RowType) -> int | None:
        row = self._run.rows.newest(kind)
        return None if row is None else row.seq

    def _audit(self) -> None:
        run = self._run
        with MilestoneStore.open(run.site.store, run.site.around) as store:
            results = audit_rows(store, run.folder, run.rows, run.facts.given)
        call = f"audit_{run.site.around.entropy(8).hex()}"
        told = [each.plain() for each in results]
        run.note(RowType.AUDIT, call=call, results=told)
        if any(each.word is AuditWord.MISMATCH for each in results):
            sentence = "An acceptance is not what it rests on; see the audit, and start a new run."
            raise escalated(StopCode.AUDIT_MISMATCH, sentence, results=told)

    def _alignment(self, judged: GateJudgement) -> str:
        run = self._run
        landings = []
        for node in run.facts.given.nodes:
            reuse = run.rows.newest(RowType.REUSE, node=node.id)
            row = run.rows.newest(RowType.INTEGRATION, node=node.id) or reuse
            landings.append(self._landing(node.id, None if row is None else row.body, judged))
        commits = [row.body["commit"] for row in run.rows.all(RowType.CORRECTION, state="committed")]
        facts = AlignmentFacts(
            commits=run.repository.commits(judged.base, judged.head),
            nodes=landings,
            correction=commits,
        )
        return judge_alignment(facts)

    def _landing(self, node: str, landed: dict[str, Any] | None, judged: GateJudgement) -> NodeLanding:
        run = self._run
        if landed is None:
            return NodeLanding(node, landed=False, commits=())
        head, batch = str(landed["head"]), str(landed["batch"])
        accepted = run.rows.newest(RowType.ACCEPTANCE, node=node, head=head)
        base = landed.get("base") or (accepted.body.get("base") if accepted else None)
        base = None if base is None else run.repository.git.commit(str(base))
        commits = None if base is None else run.repository.commits(base, head)
        contained = run.repository.contains(judged.head, batch) is True
        owned = None if commits is None else (*commits, batch)
        return NodeLanding(node, landed=contained, commits=owned)
