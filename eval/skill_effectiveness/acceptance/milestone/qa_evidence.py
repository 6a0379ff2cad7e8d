"""Making QA evidence at a head: capture, two passes where the grade asks for them, receipt.

Source: milestone.md, section 6. What the capture edits is discarded: nothing of it is committed, and the
worktree stays with the run for whoever looks at the artifacts.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.acceptance.milestone.calls import CallDesk, CallDone, CallOrder
from skill_effectiveness.acceptance.milestone.engines import first_available
from skill_effectiveness.acceptance.milestone.errors import MilestoneCode, MilestoneError, StopCode, held
from skill_effectiveness.acceptance.milestone.identity import UNAVAILABLE, Identity
from skill_effectiveness.acceptance.milestone.packets import continued
from skill_effectiveness.acceptance.milestone.qa import (
    CAPTURE_SCHEMA,
    PASS_SCHEMA,
    RECEIPT_SCHEMA,
    CaptureEvidence,
    PassEvidence,
    QaCapture,
    QaEvidence,
    QaPass,
    QaReceipt,
    QaSynthesis,
    ReceiptEvidence,
    artifact_place,
    capture_fault,
    judge_receipt,
    passes_fault,
)
from skill_effectiveness.acceptance.milestone.repository import PRIVATE_FOLDER
from skill_effectiveness.acceptance.milestone.store import not_written
from skill_effectiveness.acceptance.milestone.verifying import run_command
from skill_effectiveness.acceptance.milestone.words import SHORT_GRADE, PassName, Purpose, Role, RowType
from skill_effectiveness.evidence.canonical import dump
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.execution import Ended
from skill_effectiveness.execution.git import Git
from skill_effectiveness.execution.worktree import PlacedWorktree, WorktreeError
from skill_effectiveness.providers import CallKind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skill_effectiveness.acceptance.milestone.configuration import EngineProfile
    from skill_effectiveness.acceptance.milestone.run import Run
    from skill_effectiveness.execution.worktree import DetachedWorktree
    from skill_effectiveness.providers import Provider

FOLDER: Final = "qa-wt"

_CAPTURE: Final = """\
Your working folder is a scratch checkout of {head}; whatever you edit there is thrown away. Drive the product
through the scenarios that its criteria name, and capture what each shows: screens, output, recordings. Put
artifacts below .crw/evidence/ in the working folder and leave every other file as it is. Start no helper.

CRITERIA
{criteria}

Answer one JSON object: `captures` (path relative to the working folder, kind, shows), `scenarios` (id,
result), `teardown`.
"""
_LENSES: Final = {
    PassName.A: "the design and the functional integrity",
    PassName.B: "the visual fidelity and the precision of CJK text",
}
_REVIEW: Final = """\
You review captures of a product; your working folder is a checkout of {head}. This is QA pass {name}: judge
{lens}. Change nothing.

CAPTURE
{capture}

ARTIFACTS
{artifacts}

Answer one JSON object: `pass` ("{name}"), `verdict` (PASS, REVISE, FAIL or INCONCLUSIVE), `findings`
(severity P0 to P3, text). PASS over a P0 or P1 is no valid answer.
"""
_RECEIPT: Final = """\
Draw the receipt over your capture of {head}.

ARTIFACTS
{artifacts}

{passes}
Answer one JSON object: `verdict` (PASS, REVISE, FAIL or INCONCLUSIVE) and `findings` (severity P0 to P3,
text).
PASS over a P0 or P1 is no valid answer.
"""


@dataclass(frozen=True, slots=True)
class _Engine:
    profile: EngineProfile
    provider: Provider


def make_qa_evidence(run: Run, head: str) -> QaReceipt:
    """Make the QA evidence of a head; its rows are written, and the receipt comes back.

    Raises:
        Stopped: the hold `executor_unavailable` or `explorer_unavailable`: nobody can be asked.
        MilestoneError: `git_failed`, `row_not_written`.
    """
    return _QaDesk(run, head).make()


class _QaDesk:
    def __init__(self, run: Run, head: str) -> None:
        self._run = run
        self._head = head
        self._pinned = run.repository.identity_at(head)
        self._desk = CallDesk(run)
        self._executor = _bound(run, run.facts.configuration.executor, CallKind.WORK)

    def make(self) -> QaReceipt:
        capture, artifacts = self._capture()
        evidence = QaEvidence(self._pinned, capture)
        if capture_fault(evidence) is not None:
            return self._written(evidence)
        if self._run.facts.given.read_grade != SHORT_GRADE:
            evidence = QaEvidence(self._pinned, capture, self._passes(capture, artifacts))
            if passes_fault(evidence) is not None:
                return self._written(evidence)
        receipt = self._receipt(evidence, artifacts)
        return self._written(QaEvidence(self._pinned, capture, evidence.passes, receipt))

    def _written(self, evidence: QaEvidence) -> QaReceipt:
        receipt = judge_receipt(evidence)
        source = evidence.capture.source or UNAVAILABLE
        self._run.note(
            RowType.QA_RECEIPT,
            capture=evidence.capture.call,
            head=self._head,
            made_for=self._pinned.model_dump(mode="json"),
            passes={name.value: each.call for name, each in (evidence.passes or {}).items()},
            reason=receipt.reason,
            receipt=None if evidence.receipt is None else evidence.receipt.call,
            source=source.model_dump(mode="json"),
            word=receipt.word.value,
        )
        return receipt

    # The capture.

    def _capture(self) -> tuple[CaptureEvidence, list[str]]:
        run = self._run
        worktree = self._placed()
        set_up = self._set_up(worktree.path)
        admin = Git(worktree.path, run.site.around).ask("rev-parse", "--absolute-git-dir").out.strip()
        run.note(RowType.SPAWN, code="SP-QA-1", head=self._head, spawn="none")
        criteria = "\n".join(f"{each.id}: {each.text}" for each in run.facts.criteria.build)
        (done,) = self._desk.ask(
            [
                CallOrder(
                    role=Role.EXECUTOR,
                    purpose=Purpose.QA_CAPTURE,
                    profile=self._executor.profile,
                    provider=self._executor.provider,
                    prompt=_CAPTURE.format(head=self._head, criteria=criteria),
                    folder=worktree.path,
                    schema=CAPTURE_SCHEMA,
                    about={"head": self._head, "worktree": worktree.path.name},
                    qa=True,
                    after=lambda _outcome: self._source(worktree, admin.decode(errors="surrogateescape")),
                )
            ]
        )
        answer = done.answer(QaCapture) if set_up else None
        evidence, places = self._looked_at(done, answer, worktree.path)
        run.note(
            RowType.QA_CAPTURE,
            answer=None if answer is None else answer.model_dump(mode="json"),
            artifacts=places,
            call=done.call,
            head=self._head,
            missing=list(evidence.missing),
            outside=list(evidence.outside),
        )
        return evidence, places

    def _placed(self) -> PlacedWorktree:
        """A worktree of its own, which stays with the run."""
        run = self._run
        try:
            run.folder.root.child(FOLDER, create=True).close()
        except EvidenceError as error:
            raise not_written(error) from error
        number = len(run.rows.all(RowType.PREPARED, purpose=Purpose.QA_CAPTURE.value)) + 1
        name = f"{run.milestone}-{number}-{run.site.around.entropy(4).hex()}"
        worktree = PlacedWorktree(
            run.repository.git, run.folder.path / FOLDER / name, self._head, run.site.around
        )
        try:
            worktree.make()
        except WorktreeError as error:
            raise MilestoneError(MilestoneCode.GIT_FAILED, name, error.sentence) from error
        return worktree

    def _set_up(self, folder: Path) -> bool:
        """Run what the input wants to run there first; whether it ended well."""
        order = self._run.facts.given.qa
        if order is None:
            return True
        result, log = run_command(self._run, order.argv, folder)
        self._run.folder.replace(log, "calls", "qa-setup", "log.txt")
        return result.ended is Ended.EXITED and result.exit_code == 0

    def _source(self, worktree: PlacedWorktree, admin: str) -> dict[str, Any]:
        """The identity of the directory that the call ended in, the call's own folder left out."""
        inside = Git(worktree.path, self._run.site.around)
        where = (f"--git-dir={admin}", f"--work-tree={worktree.path}")
        left_out = ("--", ".", f":(exclude,top){PRIVATE_FOLDER}")
        status = inside.ask(*where, "status", "--porcelain", "--untracked-files=all", *left_out)
        if not status.good or not admin:
            return {"qa_source_error": "git does not say"}
        if worktree.head_moved():
            moved = inside.ask(*where, "rev-parse", "--verify", "--quiet", "HEAD").out.strip().decode()
            found = Identity.at(moved, self._run.repository.tree(moved), dirty=bool(status.out))
        else:
            found = Identity.at(self._head, self._pinned.tree, dirty=bool(status.out))
        return {"qa_source": found.model_dump(mode="json")}

    def _looked_at(
        self, done: CallDone, answer: QaCapture | None, worktree: Path
    ) -> tuple[CaptureEvidence, list[str]]:
        told = done.body.get("qa_source")
        source = None if told is None else Identity.model_validate(told, strict=True)
        places: list[str] = []
        missing: list[str] = []
        outside: list[str] = []
        for capture in () if answer is None else answer.captures:
            relative = artifact_place(capture.path)
            found = None if relative is None else self._resolved(worktree, relative)
            if relative is None or found == "":
                outside.append(capture.path)
            elif found is None:
                missing.append(capture.path)
            else:
                places.append(found)
        return (
            CaptureEvidence(
                done.call, answer, source, root=True, missing=tuple(missing), outside=tuple(outside)
            ),
            places,
        )

    def _resolved(self, worktree: Path, relative: str) -> str | None:
        """Where an artifact really is; empty: outside the worktree, `None`: nowhere."""
        fs = self._run.site.around.fs
        try:
            with reported("an artifact", reading=True):
                place = fs.resolve(str(worktree / relative))
                top = fs.resolve(str(worktree))
        except EvidenceError:
            return None
        return place if place.startswith(f"{top}/") else ""

    # The passes and the receipt.

    def _passes(self, capture: CaptureEvidence, artifacts: Sequence[str]) -> dict[PassName, PassEvidence]:
        run = self._run
        explorer = _bound(run, run.facts.configuration.explorer, CallKind.READ)
        shown = dump({} if capture.answer is None else capture.answer.model_dump(mode="json")).decode()
        with ExitStack() as stack:
            orders = []
            for name in PassName:
                run.note(RowType.SPAWN, code="SP-QA-2", head=self._head, spawn=name.value)
                tree = stack.enter_context(run.repository.scratch(self._head))
                prompt = _REVIEW.format(
                    head=self._head,
                    name=name,
                    lens=_LENSES[name],
                    capture=shown,
                    artifacts="\n".join(artifacts),
                )
                orders.append(self._read_order(explorer, prompt, tree, name))
            done = self._desk.ask(orders)
        return {
            name: PassEvidence(each.call, str(each.body["role"]), _pass_answer(each))
            for name, each in zip(PassName, done, strict=True)
        }

    def _read_order(
        self, explorer: _Engine, prompt: str, tree: DetachedWorktree, name: PassName
    ) -> CallOrder:
        return CallOrder(
            role=Role.EXPLORER,
            purpose=Purpose.QA_PASS,
            profile=explorer.profile,
            provider=explorer.provider,
            prompt=prompt,
            folder=tree.path,
            schema=PASS_SCHEMA,
            about={"head": self._head, "pass": name.value},
            qa=True,
            after=lambda _outcome: {"worktree_changed": tree.dirty() or tree.head_moved()},
        )

    def _receipt(self, evidence: QaEvidence, artifacts: Sequence[str]) -> ReceiptEvidence:
        run, capture = self._run, evidence.capture
        packet, answer = self._desk.files_of(capture.call)
        told = "\n".join(
            f"QA PASS {name}: {dump(each.answer.model_dump(mode='json', by_alias=True)).decode()}"
            for name, each in (evidence.passes or {}).items()
            if each.answer is not None
        )
        asked = _RECEIPT.format(head=self._head, artifacts="\n".join(artifacts), passes=told)
        with run.repository.scratch(self._head) as tree:
            (done,) = self._desk.ask(
                [
                    CallOrder(
                        role=Role.EXECUTOR,
                        purpose=Purpose.QA_RECEIPT,
                        profile=self._executor.profile,
                        provider=self._executor.provider,
                        prompt=continued(asked, packet, answer),
                        folder=tree.path,
                        schema=RECEIPT_SCHEMA,
                        about={"head": self._head},
                        resume_of=capture.call,
                        qa=True,
                        reads=True,
                    )
                ]
            )
        return ReceiptEvidence(done.call, done.body.get("resume_of"), done.answer(QaSynthesis))


def _pass_answer(done: CallDone) -> QaPass | None:
    return None if done.body["worktree_changed"] else done.answer(QaPass)


def _bound(run: Run, name: str | None, kind: CallKind) -> _Engine:
    """The engine that serves a role."""
    profiles = run.facts.configuration.serving(name)
    found = first_available(profiles, kind, run.site.binder, run.site.around)
    if found is None:
        code = StopCode.EXECUTOR_UNAVAILABLE if kind is CallKind.WORK else StopCode.EXPLORER_UNAVAILABLE
        raise held(code, "No configured engine can be asked; resume when one can.")
    return _Engine(*found)
