"""`run.py smoke`: the synthetic run over a fixture, without any model call (trials.md, section 10).

Exit 3 is its own: everything was done as contracted and, by intent, nothing evaluated.
"""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skill_effectiveness.cli import crash, screen
from skill_effectiveness.cli.boundary import ExitCode
from skill_effectiveness.cli.door import absolute, checkout, surroundings
from skill_effectiveness.cli.named_files import naming
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.protocol.caller_gates import caller_gates
from skill_effectiveness.protocol.gates import load_gates
from skill_effectiveness.protocol.smoke_fixture import parse_smoke_fixture
from skill_effectiveness.trials.smoke import RESULT, run_smoke

if TYPE_CHECKING:
    from skill_effectiveness.protocol.gates import PilotGates
    from skill_effectiveness.trials.smoke import SmokeResult

NOT_EVALUATED: Final = 3
FILE_LIMIT: Final = 4_194_304


def smoke(
    fixture: Annotated[Path, typer.Option(help="The fixture, for example fixtures/e10-smoke.json.")],
    out: Annotated[Path, typer.Option(help="Private folder, outside any checkout.")],
    *,
    pilot_gates: Annotated[
        Path | None, typer.Option(help="Gates that differ from the frozen ones in tier and budgets at most.")
    ] = None,
) -> int:
    """Prepare, complete, replay and judge synthetic trials, to see that the machinery works here.

    Exit 3: complete, and by intent not evaluated. 1: incomplete or failed. 2: refused.
    """
    around = surroundings()
    read = parse_smoke_fixture(read_public(around.fs, absolute(fixture), FILE_LIMIT))
    gates = _gates(pilot_gates)
    with (
        PrivateRoot.create(absolute(out), RootKind.OUT, around=around, checkout=checkout()) as root,
        crash.kept_in(root),
    ):
        result = run_smoke(read, root, gates=gates)
    _show(result)
    return NOT_EVALUATED if result.is_contract_complete else ExitCode.NOT_PASSED


def _gates(given: Path | None) -> PilotGates:
    fs = surroundings().fs
    frozen = load_gates(fs)
    if given is None:
        return frozen
    with naming(given):
        return caller_gates(frozen, read_json(read_public(fs, absolute(given), FILE_LIMIT), Profile.DOCUMENT))


def _show(result: SmokeResult) -> None:
    gate = result.pilot_gate
    screen.line(f"execution_status={result.execution_status}")
    screen.line(f"pilot_gate_status={gate.status}")
    screen.line(f"trials={result.schedule_count} live_model_calls=false enforcement={result.enforcement}")
    screen.line(f"result={RESULT}")
    for failure in gate.failures:
        screen.complain(f"failed: {failure}")
    for arm, errors in result.manifest_errors.items():
        screen.complain(f"{arm}: {', '.join(errors)}")
