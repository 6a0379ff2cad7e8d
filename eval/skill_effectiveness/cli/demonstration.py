"""`run.py reviewers demo`: two simulated reviewers from the first call to verified seals."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skill_effectiveness.calibration.inputs import load_inputs
from skill_effectiveness.calibration.repeats import ExaminationPlan, examine
from skill_effectiveness.calibration.reviewer import Reviewer
from skill_effectiveness.calibration.sealing import seal_pair, verify_folder
from skill_effectiveness.cli import crash, screen, sheets
from skill_effectiveness.cli.boundary import ExitCode
from skill_effectiveness.cli.door import absolute, checkout, surroundings
from skill_effectiveness.cli.interruption import told_how_to_go_on
from skill_effectiveness.cli.plots import reviewer_plot
from skill_effectiveness.cli.progress import ExaminationProgress
from skill_effectiveness.evidence.keys import load_public_key, load_signing_key, new_signing_key
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.protocol.words import BankName
from skill_effectiveness.providers import SimulatedSettings

if TYPE_CHECKING:
    from skill_effectiveness.calibration.inputs import FrozenInputs
    from skill_effectiveness.calibration.sheet import ReviewerSheet

REPEATS: Final = 3
KEY: Final = "demo"
PLOT: Final = "reviewers.svg"
FAMILY: Final = "simulated"
REVIEWERS: Final = {
    "good": SimulatedSettings(accuracy=0.97, position_bias=0.02, flakiness=0.1, seed=20),
    "careless": SimulatedSettings(accuracy=0.7, position_bias=0.3, flakiness=0.5, seed=20),
}


@dataclass(frozen=True, slots=True)
class Shown:
    """One reviewer at the end of the demonstration."""

    name: str
    status: str
    verified: bool
    sheet: ReviewerSheet


def demo(
    out: Annotated[Path, typer.Option(help="Private folder, outside any checkout.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of lines.")] = False,
) -> int:
    """Examine a good and a careless simulated reviewer, seal and verify both, and draw their figures.

    No model, no credentials, no network. Run again in the same folder, it finds everything done.
    """
    around = surroundings()
    inputs = load_inputs(around.fs, BankName.JUDGED)
    with (
        PrivateRoot.create(absolute(out), RootKind.OUT, around=around, checkout=checkout()) as root,
        crash.kept_in(root),
        told_how_to_go_on(screen.complain, lambda: "give the same command again to go on."),
    ):
        new_signing_key(root, KEY)
        shown = [_reviewer(root, name, settings, inputs) for name, settings in REVIEWERS.items()]
        gates = inputs.gates.thresholds
        panels = [sheets.panel(each.sheet, f"{each.name}: {each.status}", gates) for each in shown]
        root.replace(PLOT, reviewer_plot(panels))
        place = root.path
    sheets.show_rows(
        [sheets.row(each.sheet, each.status, name=each.name) for each in shown], len(inputs.bank.cases)
    )
    verified = all(each.verified for each in shown)
    values: dict[str, object] = {"demo_status": "verified" if verified else "not_verified"}
    values |= {each.name: each.status for each in shown}
    values |= {"synthetic": True, "plot": PLOT}
    screen.results(values, as_json=as_json)
    screen.complain(f"look at {place / PLOT}")
    return ExitCode.DONE if verified else ExitCode.NOT_PASSED


def _reviewer(root: PrivateRoot, name: str, settings: SimulatedSettings, inputs: FrozenInputs) -> Shown:
    """Examine, seal and verify one reviewer."""
    around = root.around
    plan = ExaminationPlan(model=f"{FAMILY}-{name}", reviewer_family=FAMILY, repeats=REPEATS)
    with (
        root.child(name, create=True) as folder,
        root.child(f"{name}-sealed", create=True) as sealed,
        ExaminationProgress(name, REPEATS) as progress,
    ):
        reviewer = Reviewer.simulated(settings, inputs.bank)
        found = examine(plan, reviewer, out=folder, resume=True, observer=progress)
        seal_pair(folder, load_signing_key(root, KEY), sealed)
        with root.child("keys") as keys:
            public = load_public_key(keys.read(f"{KEY}.pub"))
        checked = verify_folder(sealed.path, public, fs=around.fs)
        sheet = sheets.read_sheet(folder, found)
    passed = sum(check.passed is True for check in checked.checks)
    screen.complain(f"{name}: sealed; {passed} of {len(checked.checks)} checks passed")
    return Shown(name, found.calibration_status, checked.passed, sheet.reviewers[0])
