"""The folder `report/`: results, page and tables of a study (studies.md sections 3 and 7).

`results.json` is written last, so whoever finds it finds all that its digests name. A report that comes out
the same changes nothing; one that differs moves the files it replaces to `history/`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skill_effectiveness.studies.report import render
from skill_effectiveness.studies.results import results_line
from skill_effectiveness.studies.results_making import table_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.studies.plan import StudyPlan
    from skill_effectiveness.studies.report import PairTexts, PlanSeal
    from skill_effectiveness.studies.results import Results
    from skill_effectiveness.studies.tables import Tables

REPORT: Final = "report"
RESULTS: Final = "results.json"
PAGE: Final = "report.html"


def report_files(
    results: Results,
    plan: StudyPlan,
    tables: Tables,
    texts: Mapping[str, PairTexts],
    seal: PlanSeal | None,
) -> dict[str, bytes]:
    """Every file of a report by name, `results.json` last; arguments as `report.render`.

    Raises:
        ValueError: results of another plan.
    """
    page = render(results, plan, tables, texts, seal)
    return table_files(tables) | {PAGE: page, RESULTS: results_line(results)}


def publish_report(root: PrivateRoot, files: Mapping[str, bytes]) -> None:
    """Write a report.

    Args:
        root: of the study.
        files: of `report_files`.

    Raises:
        RootError: the folder is not private.
        FileError: a file cannot be read or written.
    """
    with root.child(REPORT, create=True) as folder:
        changed = [
            name for name, data in files.items() if not folder.exists(name) or folder.read(name) != data
        ]
        if changed and folder.exists(RESULTS):
            # Until everything is there, nothing may name it.
            folder.archive(RESULTS, None)
            changed = list(dict.fromkeys([*changed, RESULTS]))
        for name in changed:
            if folder.exists(name):
                folder.archive(name, files[name])
            else:
                folder.publish(name, files[name])
