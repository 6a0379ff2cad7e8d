"""`run.py study`: from a question to evidence (studies.md).

Each command or group of commands has a module of its own, `study_<noun>.py`; this one only names them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import typer

from skill_effectiveness.cli.lazy import Card, LazyGroup

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Commands(LazyGroup):
    cards: ClassVar[Mapping[str, Card]] = {
        "init": Card("study_plan", "init", "Write an example study."),
        "check": Card("study_plan", "check", "Check a study and its tasks."),
        "plan": Card("study_plan", "plan", "Check, freeze and sign a plan."),
        "amend": Card("study_status", "amend", "Change a budget, or take out a reviewer."),
        "status": Card("study_status", "status", "Tell how far a study has come."),
        "run": Card("study_run", "run", "Run a study, or what is left of it."),
        "watch": Card("study_run", "watch", "Follow a study that runs."),
        "judge": Card("study_judge", "judge", "Show every pair to every reviewer."),
        "report": Card("study_report", "report", "Analyse, and write the report."),
        "seal": Card("study_seal", "seal", "Copy the evidence and sign it."),
        "prove": Card("study_seal", "prove", "Take one trial out of a bundle."),
        "import": Card("study_import", "app", "Take over tasks of another harness."),
        "export": Card("study_export", "app", "Write a study for another harness."),
        "demo": Card("study_demo", "demo", "See a whole study once, simulated."),
        "quick": Card("study_quick", "quick", "Check, plan, run, judge and report."),
    }


app = typer.Typer(
    cls=_Commands, add_completion=False, help="Plan, run, judge and report a study.", rich_markup_mode=None
)


@app.callback()
def _only_a_group() -> None:
    """Nothing: without commands of its own the framework would not take it for a group."""
