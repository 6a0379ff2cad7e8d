"""The countable part of the authoring rules of a case bank (calibration.md section 1).

`check_bank` is for whoever writes cases and for the tests that hold the committed banks to it; loading a bank
does not need it, because a frozen digest already says that nothing changed. What cannot be counted (the
answer follows from task and rubric alone, two independent settlements) stays with people. No kind of case is
exempt from a rule about texts: a probe that tries to sway the judge does so without a verdict word.

A verdict word is `A win`, `B win` (or `wins`) or `tie`, an arm word is the name of a treatment or the id of a
committed arm; both count as whole words only, the arm ids in their own spelling, everything else in any case.
Ordinary English shares some of these words, so authors choose others.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import dump
from skill_effectiveness.protocol.cases import family_of
from skill_effectiveness.protocol.findings import AuthoringRule, Finding
from skill_effectiveness.protocol.probe_pairs import check_probes
from skill_effectiveness.protocol.words import BankName, ProbeKind, TaskFamily, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.protocol.cases import Bank, Case

TEXT_BYTES_MAX: Final = 16_384
RENDERED_BYTES_MAX: Final = 98_304
JUDGED_CASES_MIN: Final = 24
VERDICT_CASES_MIN: Final = 8
TEXT_FIELDS: Final = ("task", "rubric", "candidate_a", "candidate_b")

_VERDICT_WORD: Final = re.compile(r"\b[AB]\s+wins?\b|\btie\b", re.IGNORECASE)
_ARM_WORD: Final = re.compile(
    r"(?i:\b(?:off|full|reference|oracle|control|placebo|active_control|treatment[ _-]arm)\b)|\b[SM][012g]\b"
)
_SKILL_NAME: Final = re.compile(
    r"\bccl-[a-z]|\bSKILL\.md\b|(?<![\w\[/.:-])[a-z][a-z0-9]*(?:-[a-z0-9]+)*:[a-z][a-z0-9]*(?:-[a-z0-9]+)+(?![\w/:-])",
)
_CASE_ID: Final = re.compile(
    rf"(?<![\w-])(?:{'|'.join([*TaskFamily, *ProbeKind])})-[0-9]{{2}}(?![0-9])", re.IGNORECASE
)

_FORBIDDEN: Final = (
    (AuthoringRule.VERDICT_WORD, _VERDICT_WORD, "is a verdict word"),
    (AuthoringRule.ARM_WORD, _ARM_WORD, "is the name of an arm"),
    (AuthoringRule.SKILL_NAME, _SKILL_NAME, "looks like the name of a skill"),
    (AuthoringRule.CASE_ID, _CASE_ID, "is a case id"),
)


def check_bank(bank: Bank) -> list[Finding]:
    """Every countable authoring rule that the bank breaks; empty for a good one."""
    findings = [*_check_texts(bank), *_check_rendered(bank)]
    if bank.name is BankName.JUDGED:
        findings += [*_check_counts(bank), *_check_grid(bank), *_check_lengths(bank), *_check_ties(bank)]
    else:
        findings += check_probes(bank)
    return findings


def rendered_bytes(bank: Bank) -> int:
    """Size of what a reviewer is shown of the bank: canonical JSON of all texts without ids, in bytes.

    Its quoting and escapes take more room than the frame a prompt puts around the same texts.
    """
    return len(dump([{field: getattr(case, field) for field in TEXT_FIELDS} for case in bank.cases]))


def _texts(case: Case) -> Iterator[tuple[str, str]]:
    for field in TEXT_FIELDS:
        yield f"{case.case_id}/{field}", getattr(case, field)


def _check_texts(bank: Bank) -> Iterator[Finding]:
    for case in bank.cases:
        for where, text in _texts(case):
            if (size := len(text.encode())) > TEXT_BYTES_MAX:
                yield Finding(
                    AuthoringRule.TEXT_SIZE, where, f"{size} bytes; at most {TEXT_BYTES_MAX} are allowed."
                )
            for rule, pattern, why in _FORBIDDEN:
                for match in pattern.finditer(text):
                    yield Finding(
                        rule, where, f"{match[0]!r} at character {match.start()} {why}; choose another word."
                    )


def _check_rendered(bank: Bank) -> Iterator[Finding]:
    if (size := rendered_bytes(bank)) > RENDERED_BYTES_MAX:
        yield Finding(
            AuthoringRule.RENDERED_SIZE, "", f"{size} bytes in all; at most {RENDERED_BYTES_MAX} are allowed."
        )


def _check_counts(bank: Bank) -> Iterator[Finding]:
    if (number := len(bank.cases)) < JUDGED_CASES_MIN:
        yield Finding(
            AuthoringRule.CASE_COUNT, "", f"{number} cases; at least {JUDGED_CASES_MIN} are needed."
        )
    counts = Counter(bank.truth)
    if min(counts[verdict] for verdict in Verdict) < VERDICT_CASES_MIN or len(set(counts.values())) > 1:
        told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)
        yield Finding(
            AuthoringRule.VERDICT_BALANCE,
            "",
            f"{told}; each verdict needs the same number, at least {VERDICT_CASES_MIN}.",
        )


def _check_grid(bank: Bank) -> Iterator[Finding]:
    seen = {(family_of(case.case_id), verdict) for case, verdict in zip(bank.cases, bank.truth, strict=True)}
    for family in TaskFamily:
        for verdict in Verdict:
            if (family, verdict) not in seen:
                yield Finding(
                    AuthoringRule.FAMILY_GRID,
                    "",
                    f"the family {family} has no case whose answer is {verdict}.",
                )


def _check_lengths(bank: Bank) -> Iterator[Finding]:
    """Neither "take the longer" nor "take the shorter" may be worth anything: exactly half each way."""
    decided = longer = 0
    for case, verdict in zip(bank.cases, bank.truth, strict=True):
        if verdict is Verdict.TIE:
            continue
        decided += 1
        winner, loser = (case.candidate_a, case.candidate_b)[:: 1 if verdict is Verdict.A_WIN else -1]
        if len(winner) == len(loser):
            yield Finding(
                AuthoringRule.LENGTH_BALANCE,
                case.case_id,
                "both texts have the same length; make one longer.",
            )
        longer += len(winner) > len(loser)
    if 2 * longer != decided:
        yield Finding(
            AuthoringRule.LENGTH_BALANCE,
            "",
            f"the better text is the longer one in {longer} of {decided} decided cases; half is needed.",
        )


def _check_ties(bank: Bank) -> Iterator[Finding]:
    for case, verdict in zip(bank.cases, bank.truth, strict=True):
        if verdict is Verdict.TIE and case.candidate_a == case.candidate_b:
            yield Finding(
                AuthoringRule.TIE_TEXTS,
                case.case_id,
                "the two texts are equal; an even case needs two different ones.",
            )
