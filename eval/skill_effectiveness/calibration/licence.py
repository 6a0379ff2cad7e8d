"""Reviewer licences: what one says, when one is given, and whether one is live (calibration.md, section 9).

Everything here is judgement over what was read: two examinations whose pairs were loaded and whose figures
were derived from their samples, the frozen policy, and the time, which is passed in. `licensing` reads, signs
and writes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from skill_effectiveness.calibration.bias import BiasSheet
from skill_effectiveness.calibration.binding import SIMULATED
from skill_effectiveness.calibration.figures import Estimate, at_least, at_most
from skill_effectiveness.calibration.intervals import share_of_cases
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
from skill_effectiveness.calibration.sheet import AttemptSheet, MetricsSheet, ReviewerSheet, VerdictSheet
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.documents import RuleBroken
from skill_effectiveness.protocol.document import DigestText, One
from skill_effectiveness.protocol.policy import CanaryRule
from skill_effectiveness.protocol.words import BankName, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skill_effectiveness.calibration.loader import LoadedCalibration
    from skill_effectiveness.protocol.policy import LicencePolicy

CONTRACT: Final = "skill-effectiveness-reviewer-licence-v1"
ID_DIGITS: Final = 32
DECIDED: Final = (Verdict.A_WIN, Verdict.B_WIN)

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


def _licence_id(licence: LicencePredicate) -> str:
    said = to_json(licence)
    del said["licence_id"]
    return digest_object(said).removeprefix("sha256:")[:ID_DIGITS]


# When one is given.


@dataclass(frozen=True, slots=True)
class Examined:
    """One examination, read and derived again.

    Attributes:
        calibration: the loaded pair.
        sheet: the figures, derived from the samples; of exactly one family.
        prompt_hash: of what was asked; None when the records do not say it themselves, but only by the digest
            of the code.
    """

    calibration: LoadedCalibration
    sheet: MetricsSheet
    prompt_hash: str | None

    @property
    def reviewer(self) -> ReviewerSheet:
        """The figures of the one family."""
        (only,) = self.sheet.reviewers
        return only


_REVIEWER: Final = (
    "provider",
    "provider_cli_version",
    "provider_executable_hash",
    "model",
    "reviewer_family",
    "runtime_manifest_hash",
    "pilot_gates_hash",
    "simulation",
    "synthetic",
)
"""What both results have to agree in: who was examined, by which code, under which gates."""


def grant(
    judged: Examined,
    probes: Examined,
    policy: LicencePolicy,
    *,
    policy_hash: str,
    prompt_hash: str,
    days: int,
    now: datetime,
) -> LicencePredicate:
    """The licence that two examinations earn.

    Args:
        judged: the examination with the judged bank.
        probes: that with the bias probes.
        policy: the frozen policy.
        policy_hash: its object digest.
        prompt_hash: that of the prompt reviewers are asked with today.
        days: how long the licence lives.
        now: when it is issued; aware.

    Raises:
        LicenceRefused: with every reason; those that are no line of the policy come first and alone.
        ValueError: an examination with another bank, or figures of another examination.
    """
    for examined, bank in ((judged, BankName.JUDGED), (probes, BankName.BIAS_PROBE)):
        held = examined.calibration.result.calibration_evidence_hash
        same = examined.sheet.calibration_evidence_hash == held
        if not (examined.calibration.bank is examined.sheet.bank is bank and same):
            raise ValueError("a licence needs one examination of each bank, each with its own figures")
    faults = [*_pair_faults(judged, probes, prompt_hash)] or [*_policy_faults(judged, probes, policy, days)]
    if faults:
        raise LicenceRefused(*faults)
    bias = probes.reviewer.bias
    if bias is None:
        raise ValueError("figures of the probes hold their table")
    fields: dict[str, Any] = {
        "prompt_hash": prompt_hash,
        "bias_sheet": bias,
        "policy_hash": policy_hash,
        "issued_at": write_time(now),
        "expires_at": write_time(now + timedelta(days=days)),
        "canary_rule": policy.canary_rule,
    }
    return named(fields | _examined(judged, probes))


def _pair_faults(judged: Examined, probes: Examined, prompt_hash: str) -> Iterator[LicenceFault]:
    """What keeps the two from being one passing examination of one reviewer."""
    if judged.calibration.result.calibration_status != "pass":
        told = "The calibration did not pass its gates; only a passing one earns a licence."
        yield LicenceFault(LicenceCode.CALIBRATION_FAILED, told)
    for field in _REVIEWER:
        if getattr(judged.calibration.result, field) != getattr(probes.calibration.result, field):
            told = f"Calibration and probes have another {field} each; examine one reviewer with both banks."
            yield LicenceFault(LicenceCode.REVIEWER_DIFFERS, told, field)
            break
    asked = {judged.prompt_hash, probes.prompt_hash} - {None}
    if asked != {prompt_hash}:
        told = "The reviewer was examined with another prompt than it would be asked with; examine it again."
        yield LicenceFault(LicenceCode.PROMPT_CHANGED, told)


def _policy_faults(
    judged: Examined, probes: Examined, policy: LicencePolicy, days: int
) -> Iterator[LicenceFault]:
    """Every line of the policy that is not met."""
    for examined in (judged, probes):
        yield from _repeat_faults(examined, policy)
    low = judged.reviewer.accuracy.interval.low
    if not low >= policy.accuracy_wilson_low_min:
        told = f"The accuracy may be as low as {low:.4f}, below {policy.accuracy_wilson_low_min:g}."
        yield LicenceFault(LicenceCode.ACCURACY_TOO_LOW, told)
    yield from _position_faults(judged.reviewer.position, policy)
    if (bias := probes.reviewer.bias) is None or not bias.passed:
        failed = [kind.kind.value for kind in bias.kinds if not kind.passed] if bias else []
        told = f"Not every kind of bias probe was passed: {', '.join(failed) or 'none was asked'}."
        yield LicenceFault(LicenceCode.PROBE_FAILED, told, failed[0] if failed else None)
    if not policy.days.min <= days <= policy.days.max:
        told = f"A licence lives {policy.days.min} to {policy.days.max} days, not {days}."
        yield LicenceFault(LicenceCode.DAYS_OUT_OF_RANGE, told)


def _repeat_faults(examined: Examined, policy: LicencePolicy) -> Iterator[LicenceFault]:
    bank, found = examined.calibration.bank.value, examined.reviewer
    if found.repeat_count < policy.repeats_min:
        told = f"The bank {bank} was answered {found.repeat_count} times; {policy.repeats_min} are needed."
        yield LicenceFault(LicenceCode.REPEATS_TOO_FEW, told, bank)
    attempts = found.attempts.attempts
    usable = attempts - found.attempts.unusable_answers
    if not at_least(Fraction(usable, attempts), policy.usable_answer_rate_min):
        told = (
            f"With the bank {bank}, {usable} of {attempts} attempts gave a usable answer; "
            f"at least {policy.usable_answer_rate_min:.0%} have to."
        )
        yield LicenceFault(LicenceCode.USABLE_ANSWERS_TOO_FEW, told, bank)


def _position_faults(position: PositionSheet, policy: LicencePolicy) -> Iterator[LicenceFault]:
    if position.cases_covered < policy.flip_cases_covered_min:
        told = (
            f"{position.cases_covered} cases were seen both ways round; "
            f"{policy.flip_cases_covered_min} are needed."
        )
        yield LicenceFault(LicenceCode.FLIP_CASES_TOO_FEW, told)
    if position.flip_rate is not None and not at_most(position.flip_rate, policy.flip_rate_max):
        told = (
            f"{position.flips.part} of {position.flips.whole} verdicts changed with the seats, "
            f"more than {policy.flip_rate_max:.0%}."
        )
        yield LicenceFault(LicenceCode.FLIP_RATE_TOO_HIGH, told)


def named(fields: Mapping[str, Any]) -> LicencePredicate:
    """The licence of these fields, with the id that belongs to them.

    Raises:
        ValueError: fields that no licence has (pydantic's error is one).
    """
    whole = {"schema_version": 1, "artifact_contract": CONTRACT, **fields}
    # Without judgement yet: the id is made of everything else.
    draft = LicencePredicate.model_construct(licence_id="", **whole)
    return LicencePredicate.model_validate(whole | {"licence_id": _licence_id(draft)})


def _examined(judged: Examined, probes: Examined) -> dict[str, Any]:
    """The fields that the two examinations give."""
    result = judged.calibration.result
    return {
        "reviewer": LicensedReviewer(
            provider=result.provider,
            provider_cli_version=result.provider_cli_version,
            provider_executable_hash=result.provider_executable_hash,
            model=result.model,
            reviewer_family=result.reviewer_family,
            provider_binding_hash=None,
        ),
        "bank_hashes": BothBanks(judged=_bank(judged.sheet), bias_probe=_bank(probes.sheet)),
        "calibration_hashes": BothExaminations(judged=_documents(judged), bias_probe=_documents(probes)),
        "metrics": _metrics(judged, probes),
        "synthetic": judged.calibration.synthetic,
    }


def _bank(sheet: MetricsSheet) -> BankHashes:
    return BankHashes(
        known_answer_fixture_hash=sheet.known_answer_fixture_hash, case_fixture_hash=sheet.case_fixture_hash
    )


def _documents(examined: Examined) -> DocumentHashes:
    return DocumentHashes(
        evidence=digest_object(to_json(examined.calibration.evidence)),
        result=digest_object(to_json(examined.calibration.result)),
        metrics=digest_object(to_json(examined.sheet)),
    )


def _metrics(judged: Examined, probes: Examined) -> LicenceMetrics:
    found = judged.reviewer
    return LicenceMetrics(
        case_count=judged.sheet.case_count,
        repeat_count=found.repeat_count,
        accuracy=found.accuracy,
        self_consistency=found.self_consistency,
        position=found.position,
        attempts=found.attempts,
        probe_repeat_count=probes.reviewer.repeat_count,
        probe_attempts=probes.reviewer.attempts,
        verdicts={verdict: found.verdicts[verdict] for verdict in DECIDED},
        decided=pooled([found.verdicts[verdict] for verdict in DECIDED], found.repeat_count),
    )


def pooled(verdicts: Sequence[VerdictSheet], repeat_count: int) -> DecidedVerdicts:
    """Several verdicts as one: counts added up; intervals over cases, which repeats never narrow.

    Raises:
        ValueError: no case decides, or none does not.
    """
    hits, rejections = sum(each.hits for each in verdicts), sum(each.rejections for each in verdicts)
    n1 = sum(each.n1 for each in verdicts) // repeat_count
    n0 = sum(each.n0 for each in verdicts) // repeat_count
    sensitivity = share_of_cases(Fraction(hits, repeat_count), n1)
    specificity = share_of_cases(Fraction(rejections, repeat_count), n0)
    if sensitivity is None or specificity is None:
        raise ValueError("a bank holds cases with a decided truth and cases with another")
    return DecidedVerdicts(
        hits=hits, n1=n1, rejections=rejections, n0=n0, sensitivity=sensitivity, specificity=specificity
    )


# Whether one is live.


class LicenceStatus(StrEnum):
    """How a licence stands; the first failing part, in this order."""

    SIGNATURE = "signature"
    NOT_YET = "not_yet"
    EXPIRED = "expired"
    DRIFT = "drift"
    REVOKED = "revoked"
    LIVE = "live"


@dataclass(frozen=True, slots=True)
class Standing:
    """The status, and of a drift its field; `word` is what machines are told."""

    status: LicenceStatus
    field: str | None = None

    @property
    def word(self) -> str:
        """`live`, or the first failing part, such as `drift:model`."""
        return self.status.value if self.field is None else f"{self.status.value}:{self.field}"


@dataclass(frozen=True, slots=True)
class Present:
    """What a licence is held against: this installation, and the reviewer as far as it was named.

    Attributes:
        prompt_hash: of the prompt reviewers are asked with.
        bank_hashes: of the frozen banks.
        policy_hash: of the frozen policy.
        canary_rule: of the frozen policy.
        provider_executable_hash: of the program; None when none was named.
        provider_cli_version: of the program; None when none was named.
        model: None when none was named.
    """

    prompt_hash: str
    bank_hashes: BothBanks
    policy_hash: str
    canary_rule: CanaryRule
    provider_executable_hash: str | None = None
    provider_cli_version: str | None = None
    model: str | None = None


def judge_standing(
    licence: LicencePredicate | None, present: Present, at: datetime, *, revoked: bool = False
) -> Standing:
    """How a licence stands at a time.

    Args:
        licence: None when no trusted key has signed it; nothing it says is looked at then.
        present: what it is held against.
        at: aware.
        revoked: whether its canaries have revoked it (`canary.CanaryWatch.revoked`).
    """
    if licence is None:
        return Standing(LicenceStatus.SIGNATURE)
    if at < _time(licence.issued_at):
        return Standing(LicenceStatus.NOT_YET)
    if at >= _time(licence.expires_at):
        return Standing(LicenceStatus.EXPIRED)
    if (field := drifted_field(licence, present)) is not None:
        return Standing(LicenceStatus.DRIFT, field)
    return Standing(LicenceStatus.REVOKED if revoked else LicenceStatus.LIVE)


def drifted_field(licence: LicencePredicate, present: Present) -> str | None:
    """The first field in which the present is not what was licensed; what was not named cannot differ."""
    reviewer = licence.reviewer
    for field in ("provider_executable_hash", "provider_cli_version", "model"):
        now = getattr(present, field)
        if now is not None and now != getattr(reviewer, field):
            return field
    for field in ("prompt_hash", "bank_hashes", "policy_hash", "canary_rule"):
        if getattr(present, field) != getattr(licence, field):
            return field
    return None


def demand_one_world(licences: Sequence[LicencePredicate], *, driver_simulated: bool) -> None:
    """A synthetic licence counts only where the driver and every reviewer are simulated.

    Raises:
        LicenceRefused: `synthetic_beside_real`.
    """
    everything = driver_simulated and all(licence.synthetic for licence in licences)
    for licence in licences:
        if licence.synthetic and not everything:
            told = (
                "A licence of a simulated reviewer counts only where everything is simulated; leave it out."
            )
            fault = LicenceFault(LicenceCode.SYNTHETIC_BESIDE_REAL, told, licence.licence_id)
            raise LicenceRefused(fault)
