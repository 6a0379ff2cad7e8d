"""`run.py study demo`: a study with a known answer, from the question to a verified bundle (studies.md)."""

from __future__ import annotations

import signal
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from skill_effectiveness.cli import crash, screen
from skill_effectiveness.cli.boundary import ExitCode
from skill_effectiveness.cli.door import absolute, checkout, surroundings
from skill_effectiveness.cli.interruption import told_how_to_go_on
from skill_effectiveness.cli.keys import AsJson  # noqa: TC001 - likewise
from skill_effectiveness.cli.study_progress import StudyProgress
from skill_effectiveness.cli.study_report import exit_of, report_values, tell_sentences
from skill_effectiveness.cli.study_run import draining
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.studies.bundle_form import ENVELOPE
from skill_effectiveness.studies.demonstration import (
    BUNDLE,
    PLANTED,
    RUN,
    Demonstrated,
    DrainedError,
    demonstrate,
)
from skill_effectiveness.studies.halting import Halt
from skill_effectiveness.studies.report_files import PAGE, REPORT
from skill_effectiveness.studies.reporting import RESULTS_PATH

if TYPE_CHECKING:
    from skill_effectiveness.studies.results import Results

_DRAINED = 128 + signal.SIGINT
_EVERY = 50


class _Watch:
    """Sentences and bars on stderr."""

    def step(self, sentence: str) -> None:
        """See `DemoWatch`."""
        screen.complain(sentence)

    def running(self, name: str, slots: int) -> StudyProgress:
        """See `DemoWatch`."""
        return StudyProgress(name, slots)

    def votes(self, done: int, of: int) -> None:
        """See `DemoWatch`."""
        if done == of or done % _EVERY == 0:
            screen.complain(f"{done} of {of} votes answered.")


def demo(
    out: Annotated[Path, typer.Option(help="Private folder, outside any checkout.")],
    *,
    as_json: AsJson = False,
) -> int:
    """See a whole study once: simulated agents and reviewers, a planted effect, a bundle that verifies.

    No model, no credentials, no network. Run again in the same folder, it finds everything done. Exit 0: the
    bundle verifies. 1: it does not.
    """
    around, halt = surroundings(), Halt()
    with (
        told_how_to_go_on(screen.complain, lambda: "the same line goes on."),
        PrivateRoot.create(absolute(out), RootKind.OUT, around=around, checkout=checkout()) as root,
        crash.kept_in(root),
        draining(halt),
    ):
        try:
            found = demonstrate(root, halt, _Watch(), checkout=checkout())
        except DrainedError:
            screen.complain("Drained; the same line goes on.")
            return _DRAINED
        place = root.path
    return _told(found, place, as_json=as_json)


def _told(found: Demonstrated, place: Path, *, as_json: bool) -> int:
    results, verified = found.results, found.verified
    _table(results)
    for check in verified.checks:
        if check.passed is not True:
            screen.complain(check.sentence)
    passed = sum(check.passed is True for check in verified.checks)
    screen.complain(f"The bundle of {found.sealed.predicate.tree_size} files: {passed} of 14 checks passed.")
    screen.results(
        {
            "planted": PLANTED,
            "bundle": f"{BUNDLE}/{ENVELOPE}",
            "report_exit": int(exit_of(results, None)),
            **report_values(results, f"{RUN}/{RESULTS_PATH}", as_json=as_json),
        },
        as_json=as_json,
    )
    tell_sentences(results)
    screen.complain(f"look at {place / RUN / REPORT / PAGE}")
    return ExitCode.DONE if verified.passed else ExitCode.NOT_PASSED


def _table(results: Results) -> None:
    """Planted and found, side by side."""
    rows = []
    for one in (results.primary, *results.secondary):
        ends = "unknown" if one.interval is None else f"{one.interval.low:+.2f} to {one.interval.high:+.2f}"
        effect = "unknown" if one.effect is None else f"{one.effect:+.2f}"
        chance = "unknown" if one.p is None else f"{one.p:.4f}"
        planted = f"{PLANTED:+.2f}" if one is results.primary else ""
        name = f"{one.comparison} ({one.outcome})"
        rows.append((name, planted, effect, ends, chance, str(one.tasks), str(one.conclusion)))
    columns = ("comparison", "planted", "found", "interval", "p", "tasks", "conclusion")
    screen.table("planted and found", columns, rows, stderr=True)
