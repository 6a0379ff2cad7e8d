"""A made-up study whose trials ended in chosen ways, as its logs know it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from skill_effectiveness.studies.inspect_log import LoggedStudy
from tests.support.study_results import ADVISORY, study_plan
from tests.support.study_tables import trials

if TYPE_CHECKING:
    from skill_effectiveness.studies.tables import TrialRow
    from tests.support.study_tables import Values

VALUES: Values = {
    "t1": {"off": [0.0, 1.0], "full": [1.0, None]},
    "t2": {"off": [0.5, 1.0], "full": [1.0, 1.0]},
}
ROWS = trials(VALUES)
PLAN = study_plan(VALUES)
STUDY = LoggedStudy(
    plan=PLAN,
    verdict=ADVISORY,
    rows=ROWS,
    abandoned=False,
    version="1.2.3",
    instruction=lambda task_id: f"Do {task_id}.\n",
    completion=lambda trial: f"left by {trial}",
)


def ended(end_class: str, counted: str = "failure", **others: object) -> LoggedStudy:
    """The study with the trial of t1, full, first sample ended otherwise."""
    fields: dict[str, Any] = {
        "end_class": end_class,
        "counted": counted,
        "reward": None,
        "passed": None,
        **others,
    }
    value = {"failure": 0.0, "missing": None, "value": fields["reward"]}[counted]
    rows: list[TrialRow] = [
        row._replace(value=value, **fields)
        if (row.task_id, row.arm, row.sample) == ("t1", "full", 1)
        else row
        for row in ROWS
    ]
    return replace(STUDY, rows=rows)
