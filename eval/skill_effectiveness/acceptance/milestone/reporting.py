"""`milestone status` and `milestone report`: what a run says, for people and for whoever it reports up to.

Source: milestone.md, sections 4, 8, 10 and 12.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.acceptance.milestone.errors import MilestoneCode, MilestoneError
from skill_effectiveness.acceptance.milestone.prior import previous_crosscheck
from skill_effectiveness.acceptance.milestone.run import Site, facts_of, look_at, open_run, required
from skill_effectiveness.acceptance.milestone.store import JOURNAL, MilestoneStore
from skill_effectiveness.acceptance.milestone.verdict import Verdict
from skill_effectiveness.acceptance.milestone.words import NOT_JUDGED, RowType
from skill_effectiveness.evidence.documents import validate

if TYPE_CHECKING:
    from skill_effectiveness.acceptance.milestone.rows import JournalRow, RunRows
    from skill_effectiveness.acceptance.milestone.run import RunFacts

NOT_PROVED: Final = (
    "that a reviewer's session is what the journal says; independence is recorded only",
    "that the store was not rewritten as a whole by its owner",
)


def status(site: Site, name: str | None) -> list[dict[str, Any]]:
    """Where each run stands; nothing is written.

    Args:
        site: where.
        name: one run; `None`: every run of the store.

    Raises:
        MilestoneError: `store_unsafe`; for one run also `run_unknown`, `journal_broken`.
    """
    if name is not None:
        with look_at(site, name) as (folder, rows):
            return [_state(facts_of(folder, rows), rows)]
    found = []
    try:
        store = MilestoneStore.open(site.store, site.around)
    except MilestoneError as error:
        if error.code is MilestoneCode.RUN_UNKNOWN:
            return []
        raise
    with store:
        for each in store.names():
            with store.run(each) as folder:
                if folder.root.exists(JOURNAL):
                    rows = folder.rows()
                    found.append(_state(facts_of(folder, rows), rows))
    return sorted(found, key=lambda each: each["number"])


def _state(facts: RunFacts, rows: RunRows) -> dict[str, Any]:
    finished = rows.finished
    state = "open"
    if finished is not None:
        state = str(finished.body.get("outcome"))
    elif rows.ended:
        state = "held"
    hold = rows.newest(RowType.HOLD)
    code = finished.body.get("code") if finished is not None else None
    if state == "held" and hold is not None:
        code = hold.body.get("code")
    return {
        "accepted": sorted({str(row.body["node"]) for row in rows.all(RowType.ACCEPTANCE)}),
        "code": code,
        "milestone": facts.given.id,
        "number": int(facts.started.body.get("number", 0)),
        "open_calls": [row.body["call"] for row in rows.open_calls()],
        "plan": facts.given.plan,
        "reused": sorted(str(row.body["node"]) for row in rows.all(RowType.REUSE)),
        "run": facts.run,
        "state": state,
    }


def report(site: Site, name: str, *, report_up: bool) -> dict[str, Any]:
    """The report of a run.

    Args:
        site: where.
        name: the run.
        report_up: append `crw.reportUp`, once per close.

    Raises:
        MilestoneError: as `look_at`, and where a row is appended as `open_run`.
    """
    with look_at(site, name) as (folder, rows):
        facts = facts_of(folder, rows)
        told = _report(facts, rows)
        close = rows.newest(RowType.CLOSE)
    if report_up and close is not None:
        _report_up(site, name, close)
    return told


def _report_up(site: Site, name: str, close: JournalRow) -> None:
    with open_run(site, name, "report up") as run:
        if run.rows.newest(RowType.CLOSE) is None:
            raise required(RowType.CLOSE)
        if run.rows.newest(RowType.REPORT_UP, close=close.seq) is None:
            run.note(RowType.REPORT_UP, close=close.seq, head=close.body["head"])


def _report(facts: RunFacts, rows: RunRows) -> dict[str, Any]:
    close, gate = rows.newest(RowType.CLOSE), rows.newest(RowType.FINAL_GATE)
    checked, audit = rows.newest(RowType.CROSSCHECK), rows.newest(RowType.AUDIT)
    delivered = rows.newest(RowType.DELIVERY)
    escalation = rows.newest(RowType.ESCALATION) if rows.finished is not None else None
    return {
        **_state(facts, rows),
        "alignment": NOT_JUDGED if close is None else close.body["alignment"],
        "audit": [] if audit is None else audit.body["results"],
        "crosscheck": None if checked is None else _crosscheck(facts, checked),
        "delivery": None if close is None else close.body.get("delivery"),
        "delivery_checked": None if delivered is None else delivered.body,
        "escalation": None if escalation is None else escalation.body,
        "gate": None if gate is None else gate.body,
        "head": None if close is None else close.body["head"],
        "not_proved": list(NOT_PROVED),
        "warnings": facts.started.body.get("warnings", []),
    }


def _crosscheck(facts: RunFacts, checked: JournalRow) -> dict[str, Any]:
    told: dict[str, Any] = dict(checked.body["verdict"])
    prior = facts.started.body.get("prior")
    if prior is not None:
        before, now = validate(Verdict, prior["verdict"]), validate(Verdict, checked.body["verdict"])
        told["previous_crosscheck"] = {"run": prior["run"], **previous_crosscheck(before, now)}
    return told
