"""Reading the evidence files of a trial: events, audit and outcome (trials.md, sections 5 and 6)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.faults import EvidenceError, FileCode, FileError, RootCode, RootError
from skill_effectiveness.evidence.row_files import row_file
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.trials.binding import EVENTS, OUTCOME
from skill_effectiveness.trials.faults import TrialCode, TrialError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.evidence.row_files import RowFile

_OUTCOME_FOLDER, _OUTCOME_NAME = OUTCOME.split("/")


def read_events(trial: PrivateRoot) -> str:
    """The digest of `events.jsonl`, which must hold objects, one of them at least with an event contract.

    Raises:
        TrialError: `evidence_missing`: no file or no row; `evidence_invalid`.
    """
    contracts = rows = 0
    with evidence_rows(trial, EVENTS) as file:
        for line in file.lines():
            rows += 1
            contracts += _has_contract(line, rows)
        _demand_whole(file, EVENTS)
    if not rows:
        raise _missing(EVENTS, "There are no events; write at least one, then complete the trial.")
    if not contracts:
        sentence = "No event names its event_contract; write what the runner observed."
        raise TrialError(TrialCode.EVIDENCE_INVALID, EVENTS, sentence)
    return file.digest


def _has_contract(line: bytes, number: int) -> bool:
    try:
        row = read_json(line, Profile.ROW, want_object=True)
    except EvidenceError as error:
        sentence = f"Row {number} of the events: {error}"
        raise TrialError(TrialCode.EVIDENCE_INVALID, f"{EVENTS}:{number}", sentence) from error
    contract = row.get("event_contract") if isinstance(row, dict) else None
    return isinstance(contract, str) and bool(contract)


def read_outcome(trial: PrivateRoot) -> str:
    """The digest of `outcome/result.json`, which must be an object with members.

    Raises:
        TrialError: `evidence_missing`: no file, or nothing in it; `evidence_invalid`.
    """
    data = _outcome_bytes(trial)
    if not data.strip():
        raise _missing(OUTCOME, "The outcome is empty; the trial has nothing to show.")
    try:
        value = read_json(data, Profile.DOCUMENT, want_object=True)
    except EvidenceError as error:
        raise TrialError(TrialCode.EVIDENCE_INVALID, OUTCOME, f"The outcome: {error}") from error
    if not value:
        raise _missing(OUTCOME, "The outcome is an empty object; the trial has nothing to show.")
    return digest_bytes(data)


def _outcome_bytes(trial: PrivateRoot) -> bytes:
    try:
        with trial.child(_OUTCOME_FOLDER) as folder:
            return folder.read(_OUTCOME_NAME)
    except (FileError, RootError) as error:
        raise _unusable(error, OUTCOME) from error


@contextmanager
def evidence_rows(trial: PrivateRoot, name: str) -> Iterator[RowFile]:
    """The rows of an evidence file.

    Raises:
        TrialError: `evidence_missing`: no such file; `evidence_invalid`: no private file of ours.
        FileError: the disk failed.
    """
    try:
        with row_file(trial, name) as file:
            yield file
    except FileError as error:
        raise _unusable(error, name) from error


def torn_fault(file: RowFile, name: str) -> TrialError | None:
    """What is wrong with the end of a file whose lines were all read."""
    if not file.torn:
        return None
    sentence = f"The last row of {name} does not end with a line feed; it may have been cut off."
    return TrialError(TrialCode.EVIDENCE_INVALID, name, sentence)


def _demand_whole(file: RowFile, name: str) -> None:
    fault = torn_fault(file, name)
    if fault is not None:
        raise fault


def _unusable(error: FileError | RootError, name: str) -> Exception:
    """What a file's fault means for the evidence."""
    if error.code in {FileCode.MISSING, RootCode.ROOT_MISSING}:
        return _missing(name, f"{name} is not there; write it, then complete the trial.")
    if error.code is FileCode.IO_ERROR:
        # The disk's own trouble is not the evidence's.
        return error
    return TrialError(TrialCode.EVIDENCE_INVALID, name, f"{name} cannot be believed: {error}")


def _missing(name: str, sentence: str) -> TrialError:
    return TrialError(TrialCode.EVIDENCE_MISSING, name, sentence)
