"""`run.py verify`: check a sealed folder offline, by number, with a public key (evidence.md, section 9)."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from skill_effectiveness.calibration.sealing import verify_folder
from skill_effectiveness.cli import screen
from skill_effectiveness.cli.boundary import ExitCode
from skill_effectiveness.cli.door import absolute, surroundings
from skill_effectiveness.cli.keys import AsJson, public_key

if TYPE_CHECKING:
    from skill_effectiveness.calibration.sealing import FolderVerification


def verify(
    folder: Annotated[Path, typer.Argument(help="Sealed folder.")],
    pub: Annotated[Path, typer.Option(help="Public key file of the signer.")],
    *,
    as_json: AsJson = False,
) -> int:
    """Check a sealed folder. Exit 0: every check passed. 1: one failed. 2: no folder, seal or key to read."""
    around = surroundings()
    found = verify_folder(absolute(folder), public_key(pub, around), fs=around.fs)
    for check in found.checks:
        screen.complain(f"{check.number:>2} {_word(check.passed):<7} {check.sentence}")
    screen.results(values(found), as_json=as_json)
    return ExitCode.DONE if found.passed else ExitCode.NOT_PASSED


def values(found: FolderVerification) -> dict[str, object]:
    """The result lines of one verification; what the pair says only when everything passed."""
    lines: dict[str, object] = {"verify_status": "pass" if found.passed else "fail"}
    lines |= {f"check.{check.number}": _word(check.passed) for check in found.checks}
    if found.passed and found.calibration is not None:
        result = found.calibration.result
        lines |= {
            "calibration_status": result.calibration_status,
            "provider": result.provider,
            "model": result.model,
            "reviewer_family": result.reviewer_family,
            "synthetic": found.calibration.synthetic,
        }
    return lines


def _word(passed: bool | None) -> str:  # noqa: FBT001 - three states of one value
    return "not_run" if passed is None else "pass" if passed else "fail"
