"""What the command line itself refuses, and every refusal that the rooms below it raise.

| code | refused because |
|---|---|
| `usage` | the words on the command line are not those of a command |
| `provider_not_examined` | this version has no adapter for the provider |
| `program_mismatch` | not exactly the one program path of the provider |
| `family_mismatch` | reviewers of the provider belong to one family, and another was named |
| `settings_mismatch` | settings of a simulation for a real provider, or none for a simulated one |
| `key_exists` | the name has a key already |
| `key_form` | neither the name of a key nor the path of one |
| `passphrase_source` | the passphrase comes from two places, or from none that can be read |
| `nothing_entered` | a question was left without an answer |
| `table_invalid` | a table of verdicts has faults; each was named before |
| `working_folder_missing` | relative paths mean nothing, because the working folder is gone |
| `path_too_long` | a path is longer than the system takes |
| `stdout_unwritable` | results cannot be printed; what the command made stays |
"""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias, cast

if TYPE_CHECKING:
    from typer import TyperException

    from skill_effectiveness.calibration.errors import CalibrationError, ExaminationRefused, PairRefused
    from skill_effectiveness.calibration.licence import LicenceRefused
    from skill_effectiveness.controls.errors import ControlError
    from skill_effectiveness.evidence.faults import EvidenceError
    from skill_effectiveness.execution import ExecutableError
    from skill_effectiveness.protocol.arm_errors import ArmError
    from skill_effectiveness.protocol.errors import ProtocolError
    from skill_effectiveness.protocol.tasks import TaskError
    from skill_effectiveness.providers import ProviderError
    from skill_effectiveness.providers.canary import ProbeRefused
    from skill_effectiveness.studies.errors import StudyError
    from skill_effectiveness.trials.blinding import BlindingRefused
    from skill_effectiveness.trials.faults import TrialError
    from skill_effectiveness.trials.pilot_errors import PilotError


class CommandCode(StrEnum):
    """Why the command line refuses; see the table above."""

    USAGE = "usage"
    PROVIDER_NOT_EXAMINED = "provider_not_examined"
    PROGRAM_MISMATCH = "program_mismatch"
    FAMILY_MISMATCH = "family_mismatch"
    SETTINGS_MISMATCH = "settings_mismatch"
    KEY_EXISTS = "key_exists"
    KEY_FORM = "key_form"
    PASSPHRASE_SOURCE = "passphrase_source"  # noqa: S105 - a word, no password
    NOTHING_ENTERED = "nothing_entered"
    TABLE_INVALID = "table_invalid"
    WORKING_FOLDER_MISSING = "working_folder_missing"
    PATH_TOO_LONG = "path_too_long"
    STDOUT_UNWRITABLE = "stdout_unwritable"


class Refusal(Exception):  # noqa: N818 - a refusal is an answer, not a defect
    """A command cannot be carried out as asked.

    Attributes:
        code: the closed word.
    """

    def __init__(self, code: CommandCode, sentence: str) -> None:
        self.code = code
        super().__init__(sentence)


class Withheld(Exception):  # noqa: N818 - likewise
    """A refusal told without what only a controller may know; its code stays.

    Attributes:
        code: the closed word of the refusal behind it.
    """

    def __init__(self, refused: Refused, sentence: str) -> None:
        self.code: StrEnum = refused.code
        super().__init__(sentence)


Refused: TypeAlias = (
    "Refusal | ArmError | BlindingRefused | CalibrationError | ControlError | EvidenceError"
    "| ExaminationRefused | ExecutableError | LicenceRefused | PairRefused | PilotError | ProtocolError"
    "| ProbeRefused | ProviderError | StudyError | TaskError | TrialError | Withheld"
)
"""Everything that has a closed `code` and a sentence for people as its text."""

_EXAMINATION: Final = ("calibration.errors", "ExaminationRefused")
RAISED_BY: Final = (
    ("calibration.errors", "CalibrationError"),
    _EXAMINATION,
    ("calibration.errors", "PairRefused"),
    ("calibration.licence", "LicenceRefused"),
    ("cli.refusals", "Refusal"),
    ("cli.refusals", "Withheld"),
    ("controls.errors", "ControlError"),
    ("evidence.faults", "EvidenceError"),
    ("execution.executable", "ExecutableError"),
    ("protocol.arm_errors", "ArmError"),
    ("protocol.errors", "ProtocolError"),
    ("protocol.tasks", "TaskError"),
    ("providers.canary", "ProbeRefused"),
    ("providers.errors", "ProviderError"),
    ("studies.errors", "StudyError"),
    ("trials.blinding", "BlindingRefused"),
    ("trials.faults", "TrialError"),
    ("trials.pilot_errors", "PilotError"),
)
"""Module and name of every class in `Refused`."""


def refusals() -> tuple[type[Refused], ...]:
    """Every class of `Refused` whose module is loaded: nothing else can have been raised.

    So a command loads no room but those that it needs.
    """
    found = (_loaded(*place) for place in RAISED_BY)
    return tuple(cast("type[Refused]", one) for one in found if one is not None)


def _loaded(module: str, name: str) -> type[Exception] | None:
    # A module that is being loaded may not have the class yet.
    return getattr(sys.modules.get(f"skill_effectiveness.{module}"), name, None)


def usage_of(wrong: TyperException) -> str:
    """What the framework says of a wrong command line, as one sentence or two, each with its mark."""
    # Its validator names the Python class of its error before what is wrong.
    told = wrong.format_message().replace(": Value error, ", ": ", 1).rstrip(".")
    return told if told.endswith("?") else f"{told}."


def answer(refused: Refused) -> dict[str, object]:
    """What machines are told: the closed code, and of an examination the field it is about.

    A field that could be taken for a path is left out.
    """
    told: dict[str, object] = {"status": "refused", "code": refused.code.value}
    examination = _loaded(*_EXAMINATION)
    if examination is not None and isinstance(refused, examination):
        field = cast("ExaminationRefused", refused).field
        if field and "/" not in field:
            told["field"] = field
    return told
