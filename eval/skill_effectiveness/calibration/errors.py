"""Closed codes of the calibration room and the errors that carry them.

Three doors, three sets of words: `CalibrationCode` is what one artifact root answers (calibration.md, section
3), `RefusalCode` what the multi-repeat command answers (section 7), `PairFault` why a published pair does not
load (section 6). A sentence is written for people; machine output prints the code alone. No error of this
room carries a path, a prompt, a judgement, model output or a credential.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skill_effectiveness.calibration.models import Usage


class CalibrationCode(StrEnum):
    """What one artifact root answers when it gives no sample that counts (calibration.md, section 3)."""

    INVALID_FIELD = "invalid_field"
    RUNTIME_DRIFT = "runtime_drift"
    SAMPLE_LOCK_UNAVAILABLE = "sample_lock_unavailable"
    ARTIFACT_ROOT_QUARANTINED = "artifact_root_quarantined"
    FINALIZE_ALREADY_STARTED = "finalize_already_started"
    SAMPLE_ALREADY_EXISTS = "sample_already_exists"
    SAMPLE_SET_MISMATCH = "sample_set_mismatch"
    PROVIDER_IDENTITY_UNAVAILABLE = "provider_identity_unavailable"
    MODEL_CALL_UNRESOLVED = "model_call_unresolved"
    SAMPLE_PUBLICATION_FAILED = "sample_publication_failed"
    SAMPLE_INVALID = "sample_invalid"
    SAMPLE_FINALITY_UNKNOWN = "sample_finality_unknown"
    SAMPLE_INTENT_MISMATCH = "sample_intent_mismatch"
    ARTIFACT_ROOT_MISMATCH = "artifact_root_mismatch"
    FIXTURE_INVALID = "fixture_invalid"
    RUNTIME_MANIFEST_UNAVAILABLE = "runtime_manifest_unavailable"


class CalibrationError(Exception):
    """One artifact root refuses, or what it holds does not count.

    Attributes:
        code: the closed word for machines.
        sentence: one sentence for people that says what to do next.
    """

    def __init__(self, code: CalibrationCode, sentence: str) -> None:
        self.code = code
        self.sentence = sentence[:1].upper() + sentence[1:]
        super().__init__(self.sentence)


class CallFailed(CalibrationError):  # noqa: N818 - named after what happened, as the ending words are
    """The one model call of a sample was made and gave nothing that may count; its id is spent.

    Attributes:
        ending: the provider's word for how the call ended (`success` when the answer came and something
            changed under it).
        detail: the kind of provider error, the named limit, the fault of the answer or what changed; None
            when the ending says all.
        usage: what the call cost all the same.
    """

    def __init__(self, ending: str, detail: str | None, sentence: str, usage: Usage) -> None:
        self.ending = ending
        self.detail = detail
        self.usage = usage
        super().__init__(CalibrationCode.MODEL_CALL_UNRESOLVED, sentence)


class RefusalCode(StrEnum):
    """Why the multi-repeat command, or sealing what it published, was refused or stopped (section 7)."""

    INVALID_REPEATS = "invalid_repeats"
    INVALID_TIMEOUT = "invalid_timeout"
    INVALID_MODEL = "invalid_model"
    INVALID_REVIEWER_FAMILY = "invalid_reviewer_family"
    INVALID_SIMULATION = "invalid_simulation"
    FIXTURE_INVALID = "fixture_invalid"
    RUNTIME_MANIFEST_UNAVAILABLE = "runtime_manifest_unavailable"
    PROVIDER_IDENTITY_UNAVAILABLE = "provider_identity_unavailable"
    CANCELLED = "cancelled"
    FOLDER_BUSY = "folder_busy"
    FOLDER_UNUSABLE = "folder_unusable"
    ALREADY_CLAIMED = "already_claimed"
    CLAIM_INVALID = "claim_invalid"
    BINDING_INVALID = "binding_invalid"
    BINDING_DIFFERS = "binding_differs"
    REPEAT_FAILED = "repeat_failed"
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    SAMPLES_INVALID = "samples_invalid"
    PUBLICATION_BLOCKED = "publication_blocked"
    PUBLICATION_DIFFERS = "publication_differs"
    TARGET_OCCUPIED = "target_occupied"


class ExaminationRefused(Exception):  # noqa: N818 - a refusal is an answer, not a defect
    """The multi-repeat command refused before it spent anything, or stopped after a repeat that failed.

    Attributes:
        code: the closed word.
        sentence: one sentence for people that says what to do next.
        field: the field of the binding that differs, the repeat's state or the file's name; None when the
            code says all.
    """

    def __init__(self, code: RefusalCode, sentence: str, *, field: str | None = None) -> None:
        self.code = code
        self.sentence = sentence
        self.field = field
        super().__init__(sentence)


class PairFault(StrEnum):
    """Why two documents are no published calibration."""

    DOCUMENT = "document_invalid"
    DIFFERS = "value_differs"


class PairRefused(Exception):  # noqa: N818 - a refusal is an answer, not a defect
    """A pair does not load: a document is malformed, or a value is not what re-deriving it gives.

    Attributes:
        code: the closed word.
        field: the field, as `<file>:<JSON pointer>`.
        sentence: one sentence for people.
    """

    def __init__(self, code: PairFault, field: str, sentence: str) -> None:
        self.code = code
        self.field = field
        self.sentence = sentence
        super().__init__(sentence)
