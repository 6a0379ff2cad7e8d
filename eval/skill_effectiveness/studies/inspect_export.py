"""A reported study as Inspect logs, one for each arm (studies.md section 7)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from skill_effectiveness.evidence.crash import version
from skill_effectiveness.studies.bundle import demand_reported
from skill_effectiveness.studies.evidence_reading import RootReader
from skill_effectiveness.studies.inspect_log import LoggedStudy, inspect_log, log_name
from skill_effectiveness.studies.report_files import REPORT
from skill_effectiveness.studies.reporting import handed_in
from skill_effectiveness.studies.tables import COLUMNS, Tables

if TYPE_CHECKING:
    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.studies.root import StudyJournal, StudyRoot


def export_inspect(study: StudyRoot, journal: StudyJournal, target: PrivateRoot) -> tuple[str, ...]:
    """Write a log for each arm; the same study again changes nothing.

    Args:
        study: open, under its lock.
        journal: of the study, open.
        target: a private folder; what else lies in it stays.

    Returns:
        The names of the logs, in the order of the plan's arms.

    Raises:
        StudyError: `report_missing`, `report_changed`; `plan_changed`, `row_invalid`: what lies there is not
            what was written.
        RootError, FileError: something cannot be read or written; another file has the name of a log.
    """
    results = demand_reported(study, journal)
    with study.root.child(REPORT) as folder:
        held = {name: folder.read(f"{name}.csv") for name in COLUMNS}
    tables = Tables.of(**held, form="csv")
    reader = RootReader(study.root)
    closed = journal.state.closed
    logged = LoggedStudy(
        plan=study.plan,
        verdict=results.verdict,
        rows=tables.trials,
        abandoned=closed is not None and closed.reason == "abandoned",
        version=version(),
        instruction=cache(lambda task_id: study.task(task_id).instruction.decode("utf-8")),
        completion=lambda trial: handed_in(trial, reader) or "",
    )
    names = []
    for arm in study.plan.arms:
        name = str(arm.arm)
        names.append(log_name(study.plan, name))
        target.publish(names[-1], inspect_log(logged, name))
    return tuple(names)
