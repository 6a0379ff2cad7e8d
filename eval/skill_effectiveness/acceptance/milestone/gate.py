"""The final gate: what stands on the pinned head, judged piece by piece.

Source: milestone.md, section 5. The gate makes no evidence; what it lacks is said in `need_tests` and
`need_qa`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from skill_effectiveness.acceptance.milestone.identity import Comparison, Identity, compare
from skill_effectiveness.acceptance.milestone.words import CLOSED, GateState, PieceState, QaWord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.acceptance.milestone.verification import VerificationRecord


class GatePiece(BaseModel):
    """One piece of evidence as the gate saw it; `passes` is null unless the piece is fresh."""

    model_config = CLOSED

    kind: str
    argv: tuple[str, ...] | None
    state: PieceState
    passes: bool | None
    word: str | None
    row: int | None
    warnings: tuple[str, ...]


class GateWarning(BaseModel):
    """A warning of a piece, repeated where a reader of the gate sees it."""

    model_config = CLOSED

    code: str
    argv: tuple[str, ...]


class GateJudgement(BaseModel):
    """What a `crw.finalGate` row says."""

    model_config = CLOSED

    milestone: str
    head: str
    tree: str | None
    base: str
    state: GateState
    pieces: tuple[GatePiece, ...]
    need_tests: tuple[tuple[str, ...], ...]
    need_qa: bool
    warnings: tuple[GateWarning, ...]

    def plain(self) -> dict[str, Any]:
        """The judgement as plain JSON values."""
        return self.model_dump(mode="json")

    @property
    def failed_tests(self) -> tuple[GatePiece, ...]:
        """The fresh verifications that did not pass."""
        return tuple(each for each in self.pieces if each.kind == "verification" and each.passes is False)

    @property
    def failed_qa(self) -> QaWord | None:
        """What a fresh receipt says that does not pass."""
        words = (each.word for each in self.pieces if each.kind == "qa" and each.passes is False)
        return next((QaWord(word) for word in words if word is not None), None)


@dataclass(frozen=True, slots=True)
class StoredVerification:
    """The newest record of one command, and its row."""

    row: int
    record: VerificationRecord


@dataclass(frozen=True, slots=True)
class StoredReceipt:
    """The newest QA receipt.

    Attributes:
        row: its row.
        word: what it says.
        made_for: the clean identity that was pinned when it was made.
        source: the identity that its capture ended in.
    """

    row: int
    word: QaWord
    made_for: Identity
    source: Identity


@dataclass(frozen=True, slots=True)
class GateQuestion:
    """Everything that the gate judges.

    Attributes:
        milestone: its id.
        pinned: the clean identity of the head.
        head: full commit id.
        base: of the range.
        required: the commands.
        records: the newest record of each command that has one.
        needs_qa: whether a criterion has a surface that QA looks at.
        receipt: the newest receipt.
    """

    milestone: str
    pinned: Identity
    head: str
    base: str
    required: Sequence[tuple[str, ...]]
    records: Sequence[StoredVerification]
    needs_qa: bool
    receipt: StoredReceipt | None = None


def judge_gate(question: GateQuestion) -> GateJudgement:
    """Judge what stands on the pinned head."""
    pieces = [_verification_piece(argv, question) for argv in question.required]
    if question.needs_qa:
        pieces.append(_qa_piece(question))
    return GateJudgement(
        milestone=question.milestone,
        head=question.head,
        tree=question.pinned.tree,
        base=question.base,
        state=_state(pieces),
        pieces=tuple(pieces),
        need_tests=tuple(
            each.argv for each in pieces if each.argv is not None and each.state is not PieceState.FRESH
        ),
        need_qa=any(each.kind == "qa" and each.state is not PieceState.FRESH for each in pieces),
        warnings=tuple(
            GateWarning(code=code, argv=each.argv or ()) for each in pieces for code in each.warnings
        ),
    )


def _state(pieces: Sequence[GatePiece]) -> GateState:
    # Waiting for what is missing cannot make a failure pass.
    if any(each.passes is False for each in pieces):
        return GateState.FAILED
    fresh = all(each.state is PieceState.FRESH for each in pieces)
    return GateState.PASS if pieces and fresh else GateState.PENDING


def _verification_piece(argv: tuple[str, ...], question: GateQuestion) -> GatePiece:
    stored = next((each for each in question.records if each.record.argv == argv), None)
    if stored is None:
        return _piece("verification", argv, PieceState.MISSING)
    record = stored.record
    stands = all(compare(question.pinned, each) is Comparison.SAME for each in (record.before, record.after))
    return GatePiece(
        kind="verification",
        argv=argv,
        state=PieceState.FRESH if stands else PieceState.STALE,
        passes=record.passed if stands else None,
        word=None,
        row=stored.row,
        warnings=record.warnings,
    )


def _qa_piece(question: GateQuestion) -> GatePiece:
    receipt = question.receipt
    if receipt is None:
        return _piece("qa", None, PieceState.MISSING)
    # One that says that nothing could be concluded about this head says it about no other; a PASS counts only
    # over what was really exercised.
    passing = receipt.word is QaWord.PASS
    seen = (receipt.made_for, receipt.source) if passing else (receipt.made_for,)
    stands = all(compare(question.pinned, each) is Comparison.SAME for each in seen)
    return GatePiece(
        kind="qa",
        argv=None,
        state=PieceState.FRESH if stands else PieceState.STALE,
        passes=passing if stands else None,
        word=receipt.word.value,
        row=receipt.row,
        warnings=(),
    )


def _piece(kind: str, argv: tuple[str, ...] | None, state: PieceState) -> GatePiece:
    return GatePiece(kind=kind, argv=argv, state=state, passes=None, word=None, row=None, warnings=())
