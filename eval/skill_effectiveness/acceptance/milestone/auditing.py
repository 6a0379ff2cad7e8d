"""`milestone audit`: every acceptance of a run against what it rests on.

Source: milestone.md, section 10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.acceptance.milestone.audit import (
    REVIEW,
    UNIT_CHECK,
    AuditResult,
    StoredTurn,
    Transcript,
    audit_review,
    audit_unit_check,
)
from skill_effectiveness.acceptance.milestone.errors import MilestoneCode, MilestoneError
from skill_effectiveness.acceptance.milestone.run import facts_of
from skill_effectiveness.acceptance.milestone.store import MilestoneStore, RunFolder
from skill_effectiveness.acceptance.milestone.words import AuditWord, RowType
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile, read_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.acceptance.milestone.input import MilestoneInput
    from skill_effectiveness.acceptance.milestone.rows import RunRows
    from skill_effectiveness.acceptance.milestone.run import Site

TRANSCRIPT: Final = "transcript.json"
_ID_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class AuditOrder:
    """What is to be audited: a run, or one acceptance wherever it is."""

    run: str | None = None
    acceptance: str | None = None
    milestone: str | None = None
    record: bool = True


@dataclass(frozen=True, slots=True)
class Audited:
    """What an audit found, and whether the journal got a row of it."""

    run: str
    results: tuple[AuditResult, ...]
    recorded: bool

    @property
    def passed(self) -> bool:
        """Whether every acceptance is ok."""
        return all(result.word is AuditWord.OK for result in self.results)


def audit(site: Site, order: AuditOrder) -> Audited:
    """Audit, and append the result when the run has ended and nobody holds it.

    Raises:
        MilestoneError: `store_unsafe`, `run_unknown`, `acceptance_unknown`, `journal_broken`, `row_required`.
    """
    with MilestoneStore.open(site.store, site.around) as store:
        name = order.run or _run_of(store, order.acceptance)
        with store.run(name) as folder:
            rows = folder.rows()
            facts = facts_of(folder, rows)
            if order.milestone not in {None, facts.given.id}:
                told = "The run is about another milestone."
                raise MilestoneError(MilestoneCode.RUN_UNKNOWN, name, told)
            results = audit_rows(store, folder, rows, facts.given)
            if order.acceptance is not None:
                results = tuple(each for each in results if each.acceptance == order.acceptance)
                if not results:
                    raise _unknown(order.acceptance)
            recorded = order.record and rows.ended and _record(folder, results, site)
    return Audited(name, results, recorded)


def _run_of(store: MilestoneStore, acceptance: str | None) -> str:
    """The run that holds an acceptance."""
    for name in store.names():
        with store.run(name) as folder:
            try:
                rows = folder.rows()
            except MilestoneError:
                continue  # what cannot be read holds nothing that could be audited
            if rows.newest(RowType.ACCEPTANCE, call=acceptance) is not None:
                return name
    raise _unknown(acceptance)


def _unknown(acceptance: str | None) -> MilestoneError:
    return MilestoneError(MilestoneCode.ACCEPTANCE_UNKNOWN, acceptance or "", "See `milestone status`.")


def _record(folder: RunFolder, results: Sequence[AuditResult], site: Site) -> bool:
    """Append the row under the run lock, the journal read again; False when it may not be appended."""
    try:
        with folder.locked("record an audit"), folder.journal() as journal:
            if not journal.rows.ended:
                return False
            call = f"audit_{site.around.entropy(_ID_BYTES).hex()}"
            journal.note(RowType.AUDIT, call=call, results=[each.plain() for each in results])
    except MilestoneError as error:
        if error.code is MilestoneCode.RUN_LOCKED:
            return False
        raise
    return True


def audit_rows(
    store: MilestoneStore, folder: RunFolder, rows: RunRows, given: MilestoneInput
) -> tuple[AuditResult, ...]:
    """Audit the acceptances of a run, and the original ones of the nodes that it reused."""
    results = [audit_one(row.body, rows, given, folder) for row in rows.all(RowType.ACCEPTANCE)]
    results += [_audit_reused(store, row.body) for row in rows.all(RowType.REUSE)]
    return tuple(results)


def _audit_reused(store: MilestoneStore, reuse: dict[str, Any]) -> AuditResult:
    subject = {"call": reuse.get("acceptance"), "node": reuse.get("node")}
    try:
        with store.run(str(reuse.get("source_run"))) as folder:
            rows = folder.rows()
            source = facts_of(folder, rows)
            row = rows.newest(RowType.ACCEPTANCE, call=reuse.get("acceptance"), node=reuse.get("node"))
            if row is None or row.body.get("head") != reuse.get("head"):
                reason = "the source run has no such acceptance"
                return AuditResult(str(subject["call"]), str(subject["node"]), AuditWord.MISMATCH, reason)
            return audit_one(row.body, rows, source.given, folder)
    except MilestoneError:
        reason = "the source run cannot be read"
        return AuditResult(str(subject["call"]), str(subject["node"]), AuditWord.UNOBSERVED, reason)


def audit_one(
    acceptance: dict[str, Any], rows: RunRows, given: MilestoneInput, folder: RunFolder | None
) -> AuditResult:
    """Audit one acceptance against the rows it stands in, or a stored transcript beside them."""
    if acceptance.get("basis") == REVIEW:
        stored = None if folder is None else _transcript(folder, str(acceptance.get("review")))
        return audit_review(acceptance, stored, _writers(rows, acceptance.get("node")))
    node = given.node(str(acceptance.get("node")))
    check = rows.newest(RowType.UNIT_CHECK, call=acceptance.get("unit_check"))
    if acceptance.get("basis") != UNIT_CHECK:
        check = None
    return audit_unit_check(
        acceptance, None if check is None else check.body, None if node is None else node.criteria_digest
    )


def _writers(rows: RunRows, node: object) -> list[str]:
    """The executor calls that wrote a node's head; one that continues another is judged as that one."""
    writers = []
    for row in rows.all(RowType.COMPLETED, role="executor", node=node):
        origin = row.body.get("resume_of") or row.body.get("call")
        if origin not in writers:
            writers.append(str(origin))
    return writers


def _transcript(folder: RunFolder, call: str) -> Transcript | None:
    """The stored transcript of a reviewer's call; `None` where there is none that can be read."""
    data = folder.read("calls", call, TRANSCRIPT)
    if data is None:
        return None
    try:
        value = read_json(data, Profile.DOCUMENT, want_object=True)
    except EvidenceError:
        return None
    return _read_transcript(value) if isinstance(value, dict) else None


def _read_transcript(value: dict[str, Any]) -> Transcript | None:
    thread, turns, pairs = value.get("thread"), value.get("turns"), value.get("pairs", [])
    if not isinstance(thread, str) or not isinstance(pairs, list):
        return None
    if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns):
        return Transcript(thread, None, frozenset())
    return Transcript(thread, [_turn(turn) for turn in turns], frozenset(str(pair) for pair in pairs))


def _turn(turn: dict[str, Any]) -> StoredTurn:
    def text(name: str) -> str | None:
        found = turn.get(name)
        return found if isinstance(found, str) else None

    return StoredTurn(
        text("id") or "", turn.get("status") == "completed", text("packet"), text("last_message")
    )
