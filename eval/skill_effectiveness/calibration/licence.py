"""Reviewer licences: what one says, and why there is none (calibration.md, section 9).

When one is given is judged in `grant`, how one stands in `standing`; `licensing` reads, signs and writes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from skill_effectiveness.calibration.bias import BiasSheet
from skill_effectiveness.calibration.binding import SIMULATED
from skill_effectiveness.calibration.figures import Estimate
from skill_effectiveness.calibration.models import (
    Count,
    FamilyName,
    ModelName,
    OneLine,
    ProviderName,
    Record,
    RepeatCount,
    to_json,
)
from skill_effectiveness.calibration.position import PositionSheet
from skill_effectiveness.calibration.sheet import AttemptSheet, VerdictSheet
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.documents import RuleBroken
from skill_effectiveness.protocol.document import DigestText, One
from skill_effectiveness.protocol.policy import CanaryRule
from skill_effectiveness.protocol.words import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTRACT: Final = "skill-effectiveness-reviewer-licence-v1"
ID_DIGITS: Final = 32

_TIME: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"


class LicenceCode(StrEnum):
    """Why there is no licence, or why a file is none.

    `policy` tells the lines of the frozen policy from everything that is wrong with what was given.
    """

    policy: bool

    def __new__(cls, word: str, policy: bool = False) -> Self:  # noqa: FBT001, FBT002 - the second column of a table
        """A word, and whether it is a line of the policy."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.policy = policy
        return member

    CALIBRATION_FAILED = "calibration_failed"
    REVIEWER_DIFFERS = "reviewer_differs"
    PROMPT_CHANGED = "prompt_changed"
    REPEATS_TOO_FEW = "repeats_too_few", True
    ACCURACY_TOO_LOW = "accuracy_too_low", True
    USABLE_ANSWERS_TOO_FEW = "usable_answers_too_few", True
    FLIP_RATE_TOO_HIGH = "flip_rate_too_high", True
    FLIP_CASES_TOO_FEW = "flip_cases_too_few", True
    PROBE_FAILED = "probe_failed", True
    DAYS_OUT_OF_RANGE = "days_out_of_range", True
    LICENCE_UNREADABLE = "licence_unreadable"
    TIME_FORM = "time_form"
    SYNTHETIC_BESIDE_REAL = "synthetic_beside_real"


@dataclass(frozen=True, slots=True)
class LicenceFault:
    """One reason; `field` names the field, bank or kind of probe it is about, if the code does not."""

    code: LicenceCode
    sentence: str
    field: str | None = None


class LicenceRefused(Exception):  # noqa: N818 - a refusal is an answer, not a defect
    """There is no licence, for every reason in `faults`; the first gives `code`, `sentence` and `field`."""

    def __init__(self, *faults: LicenceFault) -> None:
        self.faults = faults
        self.code = faults[0].code
        self.sentence = faults[0].sentence
        self.field = faults[0].field
        super().__init__(self.sentence)


# What a licence says.


def write_time(time: datetime) -> str:
    """A time as licences write it: UTC, whole seconds."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_time(text: str) -> datetime:
    """A time as licences write it.

    Raises:
        LicenceRefused: `time_form`.
    """
    try:
        return _time(text)
    except ValueError:
        told = "A time is written in UTC and whole seconds, such as 2026-03-04T05:06:07Z."
        raise LicenceRefused(LicenceFault(LicenceCode.TIME_FORM, told)) from None


def _time(text: str) -> datetime:
    if not re.fullmatch(_TIME, text, re.ASCII):
        raise ValueError("another form")
    return datetime.fromisoformat(text)


def _a_time(text: str) -> str:
    try:
        _time(text)
    except ValueError:
        raise RuleBroken("There is no such time.") from None
    return text


TimeText = Annotated[str, Field(pattern=f"^{_TIME}$"), AfterValidator(_a_time)]
LicenceId = Annotated[str, Field(pattern=f"^[0-9a-f]{{{ID_DIGITS}}}$")]


class LicensedReviewer(Record):
    """Whose votes count; `provider_binding_hash` is null for a provider without a binding of its own."""

    provider: ProviderName
    provider_cli_version: OneLine
    provider_executable_hash: DigestText
    model: ModelName
    reviewer_family: FamilyName
    provider_binding_hash: DigestText | None


class BankHashes(Record):
    """One frozen bank."""

    known_answer_fixture_hash: DigestText
    case_fixture_hash: DigestText


class BothBanks(Record):
    """The banks the reviewer was examined with."""

    judged: BankHashes
    bias_probe: BankHashes


class DocumentHashes(Record):
    """Object digests of what one examination came to."""

    evidence: DigestText
    result: DigestText
    metrics: DigestText


class BothExaminations(Record):
    """What the licence was issued from."""

    judged: DocumentHashes
    bias_probe: DocumentHashes


class DecidedVerdicts(Record):
    """The two decided verdicts pooled, each against the other two.

    Attributes:
        hits: judgements with a decided verdict where it is the truth, over all runs, of n1 times runs.
        n1: cases with a decided truth.
        rejections: judgements that did not give a decided verdict where it is not the truth, over all runs
            and both verdicts, of n0 times runs.
        n0: cases where a decided verdict is not the truth, summed over both.
        sensitivity: hits ÷ (n1 times runs), its Wilson interval over n1 cases.
        specificity: rejections ÷ (n0 times runs), its Wilson interval over n0 cases.
    """

    hits: Count
    n1: Count
    rejections: Count
    n0: Count
    sensitivity: Estimate
    specificity: Estimate


class LicenceMetrics(Record):
    """The figures the policy judged, and those that correct votes for the errors of the reviewer."""

    case_count: Count
    repeat_count: RepeatCount
    accuracy: Estimate
    self_consistency: Estimate
    position: PositionSheet
    attempts: AttemptSheet
    probe_repeat_count: RepeatCount
    probe_attempts: AttemptSheet
    verdicts: dict[Verdict, VerdictSheet]
    decided: DecidedVerdicts


class LicencePredicate(Record):
    """The whole licence, as its seal holds it.

    Attributes:
        licence_id: the first 32 hex digits of the object digest of everything else.
        prompt_hash: `prompt.prompt_hash()` of the examinations.
        bias_sheet: the probe table; it holds no verdict.
        policy_hash: object digest of the policy it was issued under.
        issued_at: the first second in which it counts.
        expires_at: the first second in which it does not any more.
        synthetic: exactly when the reviewer is simulated.
    """

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-reviewer-licence-v1"]
    licence_id: LicenceId
    reviewer: LicensedReviewer
    prompt_hash: DigestText
    bank_hashes: BothBanks
    calibration_hashes: BothExaminations
    metrics: LicenceMetrics
    bias_sheet: BiasSheet
    policy_hash: DigestText
    issued_at: TimeText
    expires_at: TimeText
    canary_rule: CanaryRule
    synthetic: bool

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if self.synthetic is not (self.reviewer.provider == SIMULATED):
            raise RuleBroken("A licence is synthetic exactly when its reviewer is simulated.")
        if not self.issued_at < self.expires_at:
            raise RuleBroken("A licence expires after it was issued.")
        if self.licence_id != _licence_id(self):
            raise RuleBroken("The licence id is not that of this licence.")
        return self


def named(fields: Mapping[str, Any]) -> LicencePredicate:
    """The licence of these fields, with the id that belongs to them.

    Raises:
        ValueError: fields that no licence has (pydantic's error is one).
    """
    whole = {"schema_version": 1, "artifact_contract": CONTRACT, **fields}
    # Without judgement yet: the id is made of everything else.
    draft = LicencePredicate.model_construct(licence_id="", **whole)
    return LicencePredicate.model_validate(whole | {"licence_id": _licence_id(draft)})


def _licence_id(licence: LicencePredicate) -> str:
    said = to_json(licence)
    del said["licence_id"]
    return digest_object(said).removeprefix("sha256:")[:ID_DIGITS]
