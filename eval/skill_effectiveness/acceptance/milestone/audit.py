"""Whether an acceptance is what the journal says it rests on.

Source: milestone.md, section 10. `unobserved` is not a pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.acceptance.milestone.words import AuditWord, Role, Word
from skill_effectiveness.evidence.canonical import digest_text

if TYPE_CHECKING:
    from collections.abc import Sequence

UNIT_CHECK: Final = "unit_check"
REVIEW: Final = "review"


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What an audit says about one acceptance.

    Attributes:
        acceptance: its call.
        node: its node.
        word: the answer.
        reason: why it is not ok; empty when it is.
    """

    acceptance: str
    node: str
    word: AuditWord
    reason: str = ""

    def plain(self) -> dict[str, str]:
        """The result as plain JSON values."""
        return {
            "acceptance": self.acceptance,
            "node": self.node,
            "result": self.word.value,
            "reason": self.reason,
        }


def audit_unit_check(
    acceptance: dict[str, Any], check: dict[str, Any] | None, criteria_digest: str | None
) -> AuditResult:
    """Audit an acceptance on a unit check.

    Args:
        acceptance: body of its row.
        check: body of the completed `crw.unitCheck` row that it names; `None`: there is no such row.
        criteria_digest: of the node's criteria as planned; `None`: the node is not planned.
    """
    if check is None:
        return _result(acceptance, AuditWord.MISMATCH, "the unit check that it names is not there")
    expected = {
        "role": Role.UNIT_CHECK.value,
        "state": "ok",
        "verdict": Word.VERIFIED.value,
        "node": acceptance.get("node"),
        "head": acceptance.get("head"),
        "criteria_digest": criteria_digest,
    }
    wrong = [name for name, value in expected.items() if value is None or check.get(name) != value]
    if not wrong and acceptance.get("criteria_digest") != criteria_digest:
        wrong = ["criteria_digest"]
    if wrong:
        return _result(acceptance, AuditWord.MISMATCH, f"its unit check differs in {', '.join(wrong)}")
    return _result(acceptance, AuditWord.OK)


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """One turn of a reviewer's stored transcript."""

    id: str
    completed: bool
    packet: str | None
    last_message: str | None


@dataclass(frozen=True, slots=True)
class Transcript:
    """A stored transcript: its thread, its turns, and the executors whose pair was read back.

    Attributes:
        thread: its id.
        turns: in their order; `None`: they cannot be read.
        pairs: the executor calls whose model and role were read back.
    """

    thread: str
    turns: Sequence[StoredTurn] | None
    pairs: frozenset[str]


def audit_review(
    acceptance: dict[str, Any], transcript: Transcript | None, writers: Sequence[str]
) -> AuditResult:
    """Audit an acceptance of an imported journal, which rests on a reviewer's thread.

    Args:
        acceptance: body of its row.
        transcript: what is stored of the thread; `None`: nothing can be read.
        writers: the executor calls that wrote the head, without attempts that never started or completed,
            each as the call that it continues.
    """
    recorded = [acceptance.get(name) for name in ("thread", "turn", "result_digest")]
    if not all(isinstance(value, str) and value for value in recorded):
        return _result(acceptance, AuditWord.MISMATCH, "the journal lacks thread, turn or result digest")
    if transcript is None or transcript.turns is None:
        return _result(acceptance, AuditWord.UNOBSERVED, "the transcript is not there")
    if transcript.thread != acceptance["thread"]:
        return _result(acceptance, AuditWord.MISMATCH, "the transcript is of another thread")
    turn = next((each for each in transcript.turns if each.id == acceptance["turn"]), None)
    if turn is None or turn.last_message is None:
        return _result(acceptance, AuditWord.UNOBSERVED, "the transcript does not hold the turn")
    if not turn.completed or digest_text(turn.last_message) != acceptance["result_digest"]:
        return _result(acceptance, AuditWord.MISMATCH, "the turn is not completed with that result")
    return _packet_and_pairs(acceptance, transcript, writers)


def _packet_and_pairs(
    acceptance: dict[str, Any], transcript: Transcript, writers: Sequence[str]
) -> AuditResult:
    packet = next((turn.packet for turn in transcript.turns or () if turn.packet is not None), None)
    if packet is None:
        return _result(acceptance, AuditWord.UNOBSERVED, "the packet is not in the transcript")
    named = {f"HEAD: {acceptance.get('head')}", f"CRITERIA DIGEST: {acceptance.get('criteria_digest')}"}
    if not named <= {line.strip() for line in packet.splitlines()}:
        return _result(acceptance, AuditWord.MISMATCH, "the packet names another head or criteria digest")
    unread = [call for call in writers if call not in transcript.pairs]
    if unread:
        return _result(acceptance, AuditWord.UNOBSERVED, f"the pair of {unread[0]} was not read back")
    return _result(acceptance, AuditWord.OK)


def _result(acceptance: dict[str, Any], word: AuditWord, reason: str = "") -> AuditResult:
    return AuditResult(str(acceptance.get("call")), str(acceptance.get("node")), word, reason)


def archives(results: Sequence[AuditResult], acceptance: str, archived: Sequence[str]) -> bool:
    """Whether a reviewer's thread may be archived: the newest audit says ok, and it was not before."""
    newest = next((each for each in reversed(results) if each.acceptance == acceptance), None)
    return newest is not None and newest.word is AuditWord.OK and acceptance not in archived
