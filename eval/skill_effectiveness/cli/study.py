"""`run.py study`: from a question to evidence (studies.md).

Each command or group of commands has a module of its own, `study_<noun>.py`; this one only names them.
"""

from __future__ import annotations

import typer

from skill_effectiveness.cli import (
    study_demo,
    study_judge,
    study_plan,
    study_quick,
    study_report,
    study_run,
    study_seal,
    study_status,
)

app = typer.Typer(help="Plan, run, judge and report a study.", rich_markup_mode=None)

app.command("init")(study_plan.init)
app.command("check")(study_plan.check)
app.command("plan")(study_plan.plan)
app.command("amend")(study_status.amend)
app.command("status")(study_status.status)
app.command("run")(study_run.run)
app.command("watch")(study_run.watch)
app.command("judge")(study_judge.judge)
app.command("report")(study_report.report)
app.command("seal")(study_seal.seal)
app.command("prove")(study_seal.prove)
app.command("demo")(study_demo.demo)
app.command("quick")(study_quick.quick)
