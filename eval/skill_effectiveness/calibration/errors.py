"""Closed codes of the calibration room and the errors that carry them.

Three doors, three sets of words: `CalibrationCode` is what one artifact root answers (calibration.md, section
3), `RefusalCode` what the multi-repeat command answers (section 7), `PairFault` why a published pair does not
load (section 6). A sentence is written for people; machine output prints the code alone. No error of this
room carries a path, a prompt, a judgement, model output or a credential.
"""

from __future__ import annotations

import errno
from enum import StrEnum
from typing import TYPE_CHECKING, Self

from skill_effectiveness.evidence.faults import Fault, FileCode, FileError

if TYPE_CHECKING:
    from skill_effectiveness.calibration.models import Usage
    from skill_effectiveness.evidence.faults import EvidenceError


class Status(StrEnum):
    """How the wire answers; each has its exit code (calibration.md, section 3)."""

    exit_code: int

    def __new__(cls, word: str, exit_code: int) -> Self:
        """A word and its exit code."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.exit_code = exit_code
        return member

    OK = "ok", 0
    INVALID = "invalid", 2
    BLOCKED = "blocked", 3
    ERROR = "error", 4


class CalibrationCode(StrEnum):
    """Every reason that the wire gives, each with its status: the table of calibration.md, section 3.

    `INVALID`: the request is not one. `BLOCKED`: the root, the reviewer or the moment does not allow it.
    `ERROR`: this installation, or the program itself.
    """

    status: Status

    def __new__(cls, word: str, status: Status) -> Self:
        """A word and its status."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.status = status
        return member

    INVALID_JSON = "invalid_json", Status.INVALID
    REQUEST_TOO_LARGE = "request_too_large", Status.INVALID
    INVALID_REQUEST = "invalid_request", Status.INVALID
    PROTOCOL_MISMATCH = "protocol_mismatch", Status.INVALID
    INVALID_REQUEST_ID = "invalid_request_id", Status.INVALID
    UNSUPPORTED_ACTION = "unsupported_action", Status.INVALID
    INVALID_PAYLOAD = "invalid_payload", Status.INVALID
    UNSUPPORTED_PROVIDER = "unsupported_provider", Status.INVALID
    INVALID_EXECUTABLE = "invalid_executable", Status.INVALID
    INVALID_PROVIDER_CONFIGURATION = "invalid_provider_configuration", Status.INVALID
    INVALID_FIELD = "invalid_field", Status.INVALID
    INVALID_TIMEOUT = "invalid_timeout", Status.INVALID
    INVALID_COST_POLICY = "invalid_cost_policy", Status.INVALID
    INVALID_ARTIFACT_ROOT = "invalid_artifact_root", Status.INVALID
    INVALID_SAMPLE_SET = "invalid_sample_set", Status.INVALID
    RUNTIME_DRIFT = "runtime_drift", Status.BLOCKED
    SAMPLE_LOCK_UNAVAILABLE = "sample_lock_unavailable", Status.BLOCKED
    ARTIFACT_ROOT_QUARANTINED = "artifact_root_quarantined", Status.BLOCKED
    FINALIZE_ALREADY_STARTED = "finalize_already_started", Status.BLOCKED
    SAMPLE_ALREADY_EXISTS = "sample_already_exists", Status.BLOCKED
    SAMPLE_SET_MISMATCH = "sample_set_mismatch", Status.BLOCKED
    PROVIDER_IDENTITY_UNAVAILABLE = "provider_identity_unavailable", Status.BLOCKED
    MODEL_CALL_UNRESOLVED = "model_call_unresolved", Status.BLOCKED
    SAMPLE_PUBLICATION_FAILED = "sample_publication_failed", Status.BLOCKED
    SAMPLE_INVALID = "sample_invalid", Status.BLOCKED
    SAMPLE_FINALITY_UNKNOWN = "sample_finality_unknown", Status.BLOCKED
    SAMPLE_INTENT_MISMATCH = "sample_intent_mismatch", Status.BLOCKED
    SAMPLE_BINDING_MISMATCH = "sample_binding_mismatch", Status.BLOCKED
    ARTIFACT_ROOT_MISMATCH = "artifact_root_mismatch", Status.BLOCKED
    FIXTURE_DRIFT = "fixture_drift", Status.BLOCKED
    FINALIZATION_RECOVERY_REQUIRED = "finalization_recovery_required", Status.BLOCKED
    RUNTIME_MANIFEST_UNAVAILABLE = "runtime_manifest_unavailable", Status.ERROR
    FIXTURE_INVALID = "fixture_invalid", Status.ERROR
    INTERNAL_ERROR = "internal_error", Status.ERROR


class CalibrationError(Exception):
    """One artifact root refuses, or what it holds does not count.

    Attributes:
        code: the closed word for machines.
        sentence: one sentence for people that says what to do next.
    """

    def __init__(self, code: CalibrationCode, sentence: str) -> None:
        self.code = code
        self.sentence = sentence
        super().__init__(sentence)


class SpentEnding(StrEnum):
    """How an id was spent for nothing, where no provider has a word for it.

    `never_called`: the record that stands before a call was written, or may have been, and the call was not
    made. `binding_changed`: an answer came, and the program, its version, our own code or the artifact root
    had changed under it. `unconfirmed`: an answer came, and the machine did not let us look whether anything
    had. `not_stored`: an answer came and its records could not be completed.
    """

    NEVER_CALLED = "never_called"
    BINDING_CHANGED = "binding_changed"
    UNCONFIRMED = "unconfirmed"
    NOT_STORED = "not_stored"


class CallFailed(CalibrationError):  # noqa: N818 - named after what happened, as the ending words are
    """The one model call of a sample is spent and gave nothing that may count.

    Attributes:
        ending: the provider's word for how the call ended, or a `SpentEnding`.
        detail: the kind of provider error, the named limit, the fault of the answer, what changed or why
            nothing was written; None when the ending says all.
        usage: what the call cost all the same; all unknown where none was made.
    """

    def __init__(
        self,
        ending: str,
        detail: str | None,
        sentence: str,
        usage: Usage,
        code: CalibrationCode = CalibrationCode.MODEL_CALL_UNRESOLVED,
    ) -> None:
        self.ending = ending
        self.detail = detail
        self.usage = usage
        super().__init__(code, sentence)


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
    SESSION_REUSED = "session_reused"
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


def passing(error: EvidenceError) -> bool:
    """Whether a read may well succeed when it is tried again, so that nothing may be concluded from it.

    Too many open files, no memory, a storage that does not answer: what the file is, nobody has seen.
    """
    return error.code is FileCode.IO_ERROR


def demand_seen(error: EvidenceError) -> None:
    """Return only if an error tells something about the file that could not be read.

    Raises:
        FileError: it may pass; the sentence says so, and nothing about starting anew.
    """
    if not passing(error):
        return
    cause, where = error.__cause__, error.faults[0].where
    number = cause.errno if isinstance(cause, OSError) and cause.errno else 0
    told = f"{where} could not be read just now ({errno.errorcode.get(number, error.code)}); try again."
    raise FileError(Fault(FileCode.IO_ERROR, where, told)) from error
