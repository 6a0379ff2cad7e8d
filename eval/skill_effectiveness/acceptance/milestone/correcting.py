"""The one correction of a close.

Source: milestone.md, section 9. An explorer finds evidence at the same head, or one executor changes a
worktree of its own; the tool commits, and the target moves only when gate and crosscheck pass at the repaired
head. Everything is read back from the rows, so that a resume goes on where the correction was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.acceptance.milestone.calls import CALLS, CallDesk, CallDone, CallOrder, read_form
from skill_effectiveness.acceptance.milestone.correction import (
    CorrectionPlan,
    ExplorerAnswer,
    FixAnswer,
    fix_packet,
    plan_correction,
)
from skill_effectiveness.acceptance.milestone.crosschecking import Crosscheck, RoundOrder
from skill_effectiveness.acceptance.milestone.engines import first_available
from skill_effectiveness.acceptance.milestone.errors import (
    MilestoneCode,
    MilestoneError,
    StopCode,
    Stopped,
    escalated,
    held,
)
from skill_effectiveness.acceptance.milestone.gating import settle
from skill_effectiveness.acceptance.milestone.packets import (
    EXPLORER_SCHEMA,
    FIX_SCHEMA,
    continued,
    evidence_prompt,
    fix_prompt,
    research_prompt,
)
from skill_effectiveness.acceptance.milestone.passes import state_of_ending
from skill_effectiveness.acceptance.milestone.prior import Prior
from skill_effectiveness.acceptance.milestone.repository import PRIVATE_FOLDER
from skill_effectiveness.acceptance.milestone.store import not_written
from skill_effectiveness.acceptance.milestone.verdict import AuthorRecord, Verdict
from skill_effectiveness.acceptance.milestone.words import (
    NOT_OBSERVED,
    PassState,
    Purpose,
    Role,
    RowType,
    Word,
)
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import closing
from skill_effectiveness.evidence.laying import is_there, lay_file, lay_folder
from skill_effectiveness.execution import SessionFolders
from skill_effectiveness.execution.worktree import PlacedWorktree, WorktreeError
from skill_effectiveness.providers import CallKind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skill_effectiveness.acceptance.milestone.gate import GateJudgement
    from skill_effectiveness.acceptance.milestone.rows import JournalRow
    from skill_effectiveness.acceptance.milestone.run import Run

FOLDER: Final = "fix-wt"
_PLANNED: Final = "planned"
_COMMITTED: Final = "committed"
_PASSING: Final = frozenset({PassState.QUOTA, PassState.NO_ANSWER, PassState.UNAVAILABLE})


@dataclass(frozen=True, slots=True)
class Corrected:
    """What a correction came to: the gate and the verdict that let the milestone close."""

    gate: GateJudgement
    verdict: Verdict


def pending(run: Run, verdict: Verdict) -> Stopped:
    """The escalation of a range that the crosscheck does not verify."""
    told = "The crosscheck does not verify the range; see the fix packet, and start one new run."
    packet = fix_packet(verdict, run.facts.criteria.build)
    return escalated(StopCode.CROSSCHECK_PENDING, told, verdict=verdict.plain(), fix=packet)


def standing_verdict(run: Run, gate: GateJudgement, number: int) -> Verdict | None:
    """The verdict of a round that this run gave over the gate's range before."""
    row = run.rows.newest(
        RowType.CROSSCHECK, head=gate.head, base=gate.base, milestone=run.milestone, round=number
    )
    return None if row is None else validate(Verdict, row.body["verdict"])


class Correction:
    """The correction of one close."""

    def __init__(self, run: Run, gate: GateJudgement, verdict: Verdict) -> None:
        self._run = run
        self._gate = gate
        self._verdict = verdict
        self._desk = CallDesk(run)

    def correct(self) -> Corrected:
        """Correct once and judge again.

        Raises:
            Stopped: `crosscheck_pending`: it is not verified still, or the correction was used up;
                `blocked_scope`, `close_fix_failed`, `close_unverified`; those of gate and crosscheck; a hold.
            MilestoneError: `git_failed`, `row_not_written`.
        """
        plan = self._plan()
        if plan is CorrectionPlan.EXPLORER:
            return Corrected(self._gate, self._second(self._gate, answers=self._evidence()))
        head = self._fixed()
        gate = settle(self._run, lambda: head)
        verdict = self._second(gate, fixed_by=self._author())
        self._publish(head)
        return Corrected(gate, verdict)

    def _rows(self, state: str) -> list[JournalRow]:
        return self._run.rows.all(RowType.CORRECTION, state=state, verdict=self._verdict.digest)

    def _plan(self) -> CorrectionPlan:
        planned = self._rows(_PLANNED)
        if planned:
            return CorrectionPlan(planned[-1].body["plan"])
        if self._run.rows.newest(RowType.CORRECTION) is not None:
            # There is one per close, whatever it was for.
            raise pending(self._run, self._verdict)
        plan = plan_correction(self._verdict.findings)
        self._note(_PLANNED, plan=plan.value)
        return plan

    def _note(self, state: str, **body: Any) -> None:  # noqa: ANN401 - plain JSON values
        self._run.note(
            RowType.CORRECTION, head=self._gate.head, state=state, verdict=self._verdict.digest, **body
        )

    def _second(
        self, gate: GateJudgement, answers: str = "", fixed_by: AuthorRecord | None = None
    ) -> Verdict:
        """Round 2, which has to verify."""
        verdict = standing_verdict(self._run, gate, 2)
        if verdict is None:
            order = RoundOrder(gate, 2, Prior(self._verdict), self._gate.head, answers, fixed_by)
            verdict = Crosscheck(self._run).round(order)
        if verdict.word is not Word.VERIFIED:
            raise pending(self._run, verdict)
        return verdict

    # The explorer.

    def _evidence(self) -> str:
        done = self._completed(Purpose.EVIDENCE)
        if done is not None:
            return self._read(done, ExplorerAnswer).answer
        findings = self._verdict.findings
        return self._explore(Purpose.EVIDENCE, evidence_prompt(findings, self._gate.base, self._gate.head))

    def _explore(self, purpose: Purpose, prompt: str) -> str:
        """Let an explorer answer over a disposable checkout; a change there voids the answer."""
        run = self._run
        serving = run.facts.configuration.serving(run.facts.configuration.explorer)
        found = first_available(serving, CallKind.READ, run.site.binder, run.site.around)
        if found is None:
            raise _no_explorer()
        with run.repository.scratch(self._gate.head) as tree:
            (done,) = self._desk.ask(
                [
                    CallOrder(
                        role=Role.EXPLORER,
                        purpose=purpose,
                        profile=found[0],
                        provider=found[1],
                        prompt=prompt,
                        folder=tree.path,
                        schema=EXPLORER_SCHEMA,
                        about={"correction": self._verdict.digest},
                        after=lambda _outcome: {"worktree_changed": tree.dirty() or tree.head_moved()},
                    )
                ]
            )
        answer = None if done.body["worktree_changed"] else done.answer(ExplorerAnswer)
        if answer is None:
            raise _no_explorer()
        return answer.answer

    def _completed(self, purpose: Purpose) -> JournalRow | None:
        """The newest usable call of this correction for a purpose."""
        rows = self._run.rows.all(
            RowType.COMPLETED, purpose=purpose.value, correction=self._verdict.digest, ending="success"
        )
        usable = [row for row in rows if not row.body.get("worktree_changed")]
        return usable[-1] if usable else None

    def _read(self, row: JournalRow, model: type[ExplorerAnswer]) -> ExplorerAnswer:
        text = self._desk.answer_of(row.body["call"])
        # One fence is let pass here: when the call was made, its engine's own rule was applied.
        answer = None if text is None else read_form(text, model, json_fence=True)
        if answer is None:
            raise _no_explorer()
        return answer

    # The executor.

    def _fixed(self) -> str:
        """The repaired head: the executor's work, committed by us."""
        done = self._rows(_COMMITTED)
        if done:
            return str(done[-1].body["commit"])
        worktree = self._worktree()
        self._work(worktree)
        if worktree.head_moved():
            told = "The executor committed by itself; nothing of it is used."
            raise escalated(StopCode.CLOSE_FIX_FAILED, told)
        ids = " ".join(finding.id for finding in self._verdict.blocking)
        message = f"Correct the findings of the crosscheck of {self._run.milestone}\n\n{ids}\n"
        commit = self._commit(worktree, message)
        branch = f"milestone-fix/{self._run.milestone}-{self._run.facts.run}"
        if commit is None or not self._run.repository.set_branch(branch, commit):
            raise MilestoneError(MilestoneCode.GIT_FAILED, FOLDER, "git could not commit the correction.")
        self._note(_COMMITTED, branch=branch, commit=commit)
        worktree.remove()
        return commit

    def _commit(self, worktree: PlacedWorktree, message: str) -> str | None:
        """Commit what the executor left, by an index that nobody else can reach."""
        run = self._run
        try:
            with SessionFolders(run.site.around) as session:
                place = session.data / "index"
                return run.repository.commit_files(worktree.path, self._gate.head, place, message)
        except EvidenceError as error:
            raise not_written(error) from error

    def _worktree(self) -> PlacedWorktree:
        """The executor's own worktree, made or found again with its edits."""
        run = self._run
        try:
            run.folder.root.child(FOLDER, create=True).close()
        except EvidenceError as error:
            raise not_written(error) from error
        name = f"{run.milestone}-{self._verdict.digest.removeprefix('sha256:')[:12]}"
        path = run.folder.path / FOLDER / name
        worktree = PlacedWorktree(run.repository.git, path, self._gate.head, run.site.around)
        if not worktree.made:
            try:
                worktree.make()
            except WorktreeError as error:
                raise MilestoneError(MilestoneCode.GIT_FAILED, name, error.sentence) from error
        return worktree

    def _work(self, worktree: PlacedWorktree) -> None:
        """Let the executor work until it is ready; what it asks, an explorer answers."""
        row = self._completed(Purpose.CLOSE_FIX)
        call, answer = (None, None) if row is None else (row.body["call"], self._fix_answer(row))
        if answer is None:
            call, answer = self._ask_executor(worktree, self._fix_prompt(), None)
        while answer.state == "needs_research":
            told = self._research(answer.question)
            packet, earlier = self._handed_over(worktree, str(call))
            prompt = continued(self._fix_prompt(), packet, earlier, told)
            call, answer = self._ask_executor(worktree, prompt, call)

    def _handed_over(self, worktree: PlacedWorktree, call: str) -> tuple[Path, Path]:
        """Where the executor finds the packet and the answer of its earlier call.

        A confined one sees its worktree alone, so they are laid into the folder there that is never
        committed; where that is not a folder any more, they are read where they lie.
        """
        fs, originals = self._run.site.around.fs, self._desk.files_of(call)
        private = worktree.path / PRIVATE_FOLDER
        folder = private / f"earlier-{self._run.site.around.entropy(8).hex()}"
        try:
            if not is_there(fs, private):
                lay_folder(fs, private)
            with reported(PRIVATE_FOLDER), closing(fs, fs.open_dir(None, str(private))):
                lay_folder(fs, folder)
                for original in originals:
                    data = self._run.folder.read(CALLS, call, original.name)
                    lay_file(fs, folder / original.name, data or b"")
        except EvidenceError:
            return originals
        return folder / originals[0].name, folder / originals[1].name

    def _fix_answer(self, row: JournalRow) -> FixAnswer | None:
        text = self._desk.answer_of(row.body["call"])
        return None if text is None else read_form(text, FixAnswer, json_fence=True)

    def _fix_prompt(self) -> str:
        gate, criteria = self._gate, self._run.facts.criteria.build
        return fix_prompt(self._verdict.findings, gate.base, gate.head, criteria)

    def _ask_executor(
        self, worktree: PlacedWorktree, prompt: str, resume_of: str | None
    ) -> tuple[str, FixAnswer]:
        run = self._run
        serving = run.facts.configuration.serving(run.facts.configuration.executor)
        found = first_available(serving, CallKind.WORK, run.site.binder, run.site.around)
        if found is None:
            raise _no_executor()
        (done,) = self._desk.ask(
            [
                CallOrder(
                    role=Role.EXECUTOR,
                    purpose=Purpose.CLOSE_FIX,
                    profile=found[0],
                    provider=found[1],
                    prompt=prompt,
                    folder=worktree.path,
                    schema=FIX_SCHEMA,
                    about={"correction": self._verdict.digest},
                    resume_of=resume_of,
                )
            ]
        )
        return done.call, _answered(done)

    def _research(self, question: str) -> str:
        """What an explorer answers to the executor, within the limit."""
        limit = self._run.facts.given.research_limit
        calls = self._run.rows.all(
            RowType.COMPLETED, purpose=Purpose.RESEARCH.value, correction=self._verdict.digest
        )
        fixes = self._run.rows.all(
            RowType.COMPLETED, purpose=Purpose.CLOSE_FIX.value, correction=self._verdict.digest
        )
        answered = self._completed(Purpose.RESEARCH)
        if answered is not None and fixes and answered.seq > fixes[-1].seq:
            # It was answered before this process, and the executor has not heard of it.
            return self._read(answered, ExplorerAnswer).answer
        if len([row for row in calls if row.body.get("ending") == "success"]) >= limit:
            told = "The correction needs more research than its limit allows; plan it as work of its own."
            raise escalated(StopCode.BLOCKED_SCOPE, told, question=question)
        return self._explore(Purpose.RESEARCH, research_prompt(question))

    def _author(self) -> AuthorRecord | None:
        row = self._completed(Purpose.CLOSE_FIX)
        if row is None:
            return None
        observed = row.body.get("observed", {}).get("model", NOT_OBSERVED)
        prepared = self._run.rows.newest(RowType.PREPARED, call=row.body["call"])
        name = "" if prepared is None else str(prepared.body.get("profile"))
        profiles: Sequence[Any] = self._run.facts.configuration.profiles
        profile = next((each for each in profiles if each.name == name), None)
        return AuthorRecord(
            source="close_fix",
            name=name,
            model=observed if observed != NOT_OBSERVED else "",
            family=profile.family if profile else "",
        )

    def _publish(self, head: str) -> None:
        """Let the target follow, unless it is not where the correction began."""
        run, old = self._run, self._gate.head
        target = run.facts.given.target
        if run.repository.tip(target) == head:
            return
        if not run.repository.advance(target, old, head):
            told = (
                "The target moved while the range was corrected, or its checkout has local changes in the "
                "way; the correction stays on its branch."
            )
            raise escalated(StopCode.CLOSE_UNVERIFIED, told, commit=head)


def _answered(done: CallDone) -> FixAnswer:
    state = state_of_ending(done.outcome)
    if state in _PASSING:
        raise _no_executor()
    answer = done.answer(FixAnswer) if state is PassState.VALID else None
    if answer is None:
        told = "The executor gave no answer of the form; its worktree stays with the run."
        raise escalated(StopCode.CLOSE_FIX_FAILED, told, failed_call=done.call)
    return answer


def _no_explorer() -> Stopped:
    return held(StopCode.EXPLORER_UNAVAILABLE, "No explorer answered; resume when one can.")


def _no_executor() -> Stopped:
    return held(StopCode.EXECUTOR_UNAVAILABLE, "No executor could work; resume when one can.")
