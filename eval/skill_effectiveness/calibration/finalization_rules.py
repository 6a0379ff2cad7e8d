"""What a finalization does about what it finds: the table of calibration.md, section 6, and nothing else.

`next_step` is asked again after every step, so finishing what a crash left and doing it for the first time is
one walk: begin, claim, publish, confirm.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from skill_effectiveness.calibration.errors import CalibrationCode, CalibrationError

if TYPE_CHECKING:
    from collections.abc import Mapping


class IntentFound(Enum):
    """What has the name of the finalization intent."""

    ABSENT = auto()
    LINK = auto()
    OTHER = auto()
    """Unreadable, not private, without a valid token, or for other ids or hashes."""
    STARTED = auto()
    CLAIMED = auto()
    COMPLETED = auto()


class FolderFound(Enum):
    """What has the name of the folder of the publication."""

    ABSENT = auto()
    PRIVATE = auto()
    UNSAFE = auto()
    """A link, no folder, or of another owner or mode."""


class ClaimFound(Enum):
    """What has the name of the publication's lock."""

    ABSENT = auto()
    OURS = auto()
    FOREIGN = auto()
    """Unreadable, not private, or with another token than the intent."""


class FileFound(Enum):
    """What has the name of a file of the publication."""

    ABSENT = auto()
    EQUAL = auto()
    DIFFERENT = auto()
    UNSAFE = auto()
    """Not a regular file of ours with mode 0600, or no JSON text."""


@dataclass(frozen=True, slots=True)
class Found:
    """What lies in a root that is to be finalized.

    Attributes:
        intent: the finalization intent, held against this request.
        folder: the folder of the publication.
        claim: its lock; absent when the folder is not private.
        canonical: the two files of the pair by root-relative name, held against what the samples give.
        staged: the same for the names under which they wait.
        sheet: the sheet of figures, which is derived and made anew at will.
    """

    intent: IntentFound
    folder: FolderFound
    claim: ClaimFound
    canonical: Mapping[str, FileFound]
    staged: Mapping[str, FileFound]
    sheet: Mapping[str, FileFound]

    @property
    def files(self) -> Mapping[str, FileFound]:
        """All files of the publication."""
        return {**self.canonical, **self.staged, **self.sheet}


class Step(Enum):
    """What is done next."""

    BEGIN = auto()
    """Make the folder, draw a token, publish the intent: this closes the root."""
    CLAIM = auto()
    """Put the token into the folder, then advance the intent to `output_claimed`."""
    PUBLISH = auto()
    """Put the token back if it is missing, then publish the pair."""
    CONFIRM = auto()
    """Put the token back, drop leftovers, write the sheet, complete the intent; the pair stays as it is."""


def next_step(found: Found) -> Step:
    """The step that what was found asks for.

    Raises:
        CalibrationError: `artifact_root_quarantined`, `finalize_already_started` or
            `finalization_recovery_required`: no step; everything stays as it is.
    """
    match found.intent:
        case IntentFound.LINK:
            raise CalibrationError(
                CalibrationCode.ARTIFACT_ROOT_QUARANTINED,
                "The finalization intent is a link, which nothing of ours makes; start again in a new root.",
            )
        case IntentFound.OTHER:
            raise _started("Another finalization was begun here, or its intent cannot be believed")
        case IntentFound.COMPLETED:
            raise _started("This root was finalized; its pair lies in the folder calibration")
        case IntentFound.ABSENT:
            _demand_folder(found)
            return Step.BEGIN
        case IntentFound.STARTED:
            _demand_folder(found)
            return _after_started(found)
        case IntentFound.CLAIMED:
            _demand_folder(found)
            return _after_claimed(found)


def _after_started(found: Found) -> Step:
    """Before the claim nothing of ours has written a file of the publication."""
    present = [name for name, file in found.files.items() if file is not FileFound.ABSENT]
    if present:
        raise _recovery(f"{present[0]} is there, although nothing was published yet", present[0])
    _demand_claim(found)
    return Step.CLAIM


def _after_claimed(found: Found) -> Step:
    unsafe = [name for name, file in found.files.items() if file is FileFound.UNSAFE]
    if unsafe:
        raise _recovery(f"{unsafe[0]} cannot be taken for a file of this publication", unsafe[0])
    _demand_claim(found)
    if FileFound.ABSENT in found.canonical.values():
        return Step.PUBLISH
    if FileFound.DIFFERENT in found.canonical.values():
        raise _started("A pair is published here that these samples do not give")
    differing = [name for name, file in found.staged.items() if file is FileFound.DIFFERENT]
    if differing:
        raise _recovery(f"{differing[0]} is not what the published pair says", differing[0])
    return Step.CONFIRM


def _demand_folder(found: Found) -> None:
    if found.folder is FolderFound.UNSAFE:
        raise _recovery("The folder calibration is a link, or not a private folder of ours", "it")


def _demand_claim(found: Found) -> None:
    if found.claim is ClaimFound.FOREIGN:
        raise _recovery("The lock of the publication is not the one of this finalization", "it")


def _recovery(told: str, what: str) -> CalibrationError:
    return CalibrationError(
        CalibrationCode.FINALIZATION_RECOVERY_REQUIRED,
        f"{told}, and was left as it is; repair or remove exactly {what}, then send the same request again.",
    )


def _started(told: str) -> CalibrationError:
    return CalibrationError(
        CalibrationCode.FINALIZE_ALREADY_STARTED,
        f"{told}; a different calibration needs new samples in a new root.",
    )
