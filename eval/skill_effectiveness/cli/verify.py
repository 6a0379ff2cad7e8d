"""`run.py verify`: check a sealed folder offline, by number, with a public key (evidence.md, section 9).

Which kind of folder it is says the predicate type of its seal: an examination of a reviewer (calibration.md
section 7), the bundle of a study, or the proof of one of its trials (studies.md section 8). A seal that
cannot be read is judged as what its name says.
"""

from __future__ import annotations

import stat
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skill_effectiveness.calibration.sealing import SEAL, SEAL_LIMIT, SealPredicate, verify_folder
from skill_effectiveness.cli import screen
from skill_effectiveness.cli.boundary import ExitCode
from skill_effectiveness.cli.door import absolute, surroundings
from skill_effectiveness.cli.keys import AsJson, public_key
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.evidence.seal import PredicateType, unverified
from skill_effectiveness.studies.bundle_form import ENVELOPE, ENVELOPE_LIMIT, OPENINGS, PREDICATES
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.plan_seal import PLAN
from skill_effectiveness.studies.root import PRIVATE
from skill_effectiveness.studies.verification import verify_bundle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import BaseModel

    from skill_effectiveness.calibration.sealing import FolderVerification, NumberedCheck
    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.studies.verification import StudyVerification

_TYPES: Final[Mapping[PredicateType, type[BaseModel]]] = {
    PredicateType.CALIBRATION: SealPredicate,
    **PREDICATES,
}


def verify(
    folder: Annotated[Path, typer.Argument(help="Sealed folder: of an examination, a bundle, or a proof.")],
    pub: Annotated[Path, typer.Option(help="Public key file of the signer.")],
    *,
    as_json: AsJson = False,
) -> int:
    """Check a sealed folder: of an examination, of a study, or the proof of one trial.

    It needs no network. Exit 0: every check passed. 1: one failed. 2: no folder, seal or key to read, or a
    study that is not sealed.
    """
    around = surroundings()
    place, key = absolute(folder), public_key(pub, around)
    demand_sealed(place, around.fs)
    if is_of_a_study(place, around.fs):
        found = verify_bundle(place, key, fs=around.fs)
        told, passed, checks = study_values(found), found.passed, found.checks
    else:
        pair = verify_folder(place, key, fs=around.fs)
        told, passed, checks = values(pair), pair.passed, pair.checks
    show_checks(checks)
    screen.results(told, as_json=as_json)
    screen.complain(outcome_sentence(checks, passed=passed))
    return ExitCode.DONE if passed else ExitCode.NOT_PASSED


def demand_sealed(folder: Path, fs: FileSystem) -> None:
    """Refuse what a person easily names instead of a bundle: the study that it was made of, or any folder.

    Args:
        folder: as the person named it, absolute; one that is missing is told by whoever reads it.
        fs: file operations.

    Raises:
        StudyError: `bundle_invalid`.
    """
    # A bundle never holds the private folder, so one that lost its envelope still fails by its checks.
    if _exists(folder / ENVELOPE, fs) or _exists(folder / SEAL, fs):
        return
    if _exists(folder / PLAN, fs) and _exists(folder / PRIVATE, fs):
        sentence = "this is a study and no bundle; seal it first: run.py study seal R --out B."
        raise StudyError(StudyCode.BUNDLE_INVALID, folder.name, sentence)
    if _is_folder(folder, fs) and not any(_exists(folder / name, fs) for name in (OPENINGS, PLAN)):
        sentence = (
            f"there is neither {ENVELOPE} nor {SEAL} in this folder, so nothing was sealed here; name "
            "the folder that study seal or study prove wrote, or an examination after reviewers seal."
        )
        raise StudyError(StudyCode.BUNDLE_INVALID, folder.name, sentence)


def is_of_a_study(folder: Path, fs: FileSystem) -> bool:
    """Whether a folder is to be judged as a study's: by its seal, else by what lies there."""
    for name, limit in ((ENVELOPE, ENVELOPE_LIMIT), (SEAL, SEAL_LIMIT)):
        kind = _sealed_kind(folder / name, limit, fs)
        if kind is not None:
            return kind is PredicateType.BUNDLE
    if _exists(folder / SEAL, fs):
        return False
    return any(_exists(folder / name, fs) for name in (ENVELOPE, OPENINGS, PLAN))


def _sealed_kind(path: Path, limit: int, fs: FileSystem) -> PredicateType | None:
    """What a seal is about, whoever signed it; None where nothing can be read."""
    try:
        statement, _ = unverified(read_public(fs, path, limit), _TYPES)
    except EvidenceError:
        return None
    return statement.predicate_type


def _exists(path: Path, fs: FileSystem) -> bool:
    try:
        fs.lstat(None, str(path))
    except (OSError, ValueError):
        return False
    return True


def _is_folder(path: Path, fs: FileSystem) -> bool:
    try:
        return stat.S_ISDIR(fs.lstat(None, str(path)).st_mode)
    except (OSError, ValueError):
        return False


def show_checks(checks: tuple[NumberedCheck, ...]) -> None:
    """Every check on a line, for people."""
    for check in checks:
        screen.complain(f"{check.number:>2} {_word(check.passed):<7} {check.sentence}")


def outcome_sentence(checks: Sequence[NumberedCheck], *, passed: bool) -> str:
    """What a verification came to as a whole."""
    if passed:
        return "Every check that is to be made passed: this is what was signed with the key that you gave."
    failed = [str(check.number) for check in checks if check.passed is False]
    which = f"Check {failed[0]}" if len(failed) == 1 else f"Checks {', '.join(failed)}"
    return f"{which} failed: do not rely on this folder; what is above says why."


def study_values(found: StudyVerification) -> dict[str, object]:
    """The result lines of one bundle; what the study says only when everything passed."""
    lines: dict[str, object] = {"verify_status": "pass" if found.passed else "fail"}
    lines |= {f"check.{check.number}": _word(check.passed) for check in found.checks}
    if found.trial is not None:
        return lines | {"trial": found.trial or None}
    results = found.results
    return lines | {
        "verdict_tier": None if results is None else _text(results.verdict.verdict_tier),
        "conclusion": None if results is None else str(results.primary.conclusion),
    }


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


def _text(value: str | None) -> str | None:
    return None if value is None else str(value)


def _word(passed: bool | None) -> str:  # noqa: FBT001 - three states of one value
    return "not_run" if passed is None else "pass" if passed else "fail"
