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

app.command("init", short_help="Write an example study.")(study_plan.init)
app.command("check", short_help="Check a study and its tasks.")(study_plan.check)
app.command("plan", short_help="Check, freeze and sign a plan.")(study_plan.plan)
app.command("amend", short_help="Change a budget, or take out a reviewer.")(study_status.amend)
app.command("status", short_help="Tell how far a study has come.")(study_status.status)
app.command("run", short_help="Run a study, or what is left of it.")(study_run.run)
app.command("watch", short_help="Follow a study that runs.")(study_run.watch)
app.command("judge", short_help="Show every pair to every reviewer.")(study_judge.judge)
app.command("report", short_help="Analyse, and write the report.")(study_report.report)
app.command("seal", short_help="Copy the evidence and sign it.")(study_seal.seal)
app.command("prove", short_help="Take one trial out of a bundle.")(study_seal.prove)
app.command("demo", short_help="See a whole study once, simulated.")(study_demo.demo)
app.command("quick", short_help="Check, plan, run, judge and report.")(study_quick.quick)
