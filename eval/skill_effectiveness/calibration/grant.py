"""When a licence is given: what two examinations have to show, line by line (calibration.md, section 9).

Everything here is judgement over what was read: two examinations whose pairs were loaded and whose figures
were derived from their samples, the frozen policy, and the time, which is passed in.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.calibration.figures import at_least, at_most
from skill_effectiveness.calibration.intervals import share_of_cases
from skill_effectiveness.calibration.licence import (
    BankHashes,
    BothBanks,
    BothExaminations,
    DecidedVerdicts,
    DocumentHashes,
    LicenceCode,
    LicenceFault,
    LicenceMetrics,
    LicenceRefused,
    LicensedReviewer,
    named,
    write_time,
)
from skill_effectiveness.calibration.models import to_json
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.protocol.words import BankName, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from skill_effectiveness.calibration.licence import LicencePredicate
    from skill_effectiveness.calibration.loader import LoadedCalibration
    from skill_effectiveness.calibration.position import PositionSheet
    from skill_effectiveness.calibration.sheet import MetricsSheet, ReviewerSheet, VerdictSheet
    from skill_effectiveness.protocol.policy import LicencePolicy

DECIDED: Final = (Verdict.A_WIN, Verdict.B_WIN)


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
    "provider_binding_hash",
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
            provider_binding_hash=result.provider_binding_hash,
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
