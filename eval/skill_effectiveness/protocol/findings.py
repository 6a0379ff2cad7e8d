"""What an author is told about a case bank that breaks a countable rule."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class AuthoringRule(StrEnum):
    """The countable authoring rules (calibration.md section 1, and section 8 for the probes)."""

    TEXT_SIZE = "text_size"
    RENDERED_SIZE = "rendered_size"
    CASE_COUNT = "case_count"
    VERDICT_BALANCE = "verdict_balance"
    FAMILY_GRID = "family_grid"
    LENGTH_BALANCE = "length_balance"
    TIE_TEXTS = "tie_texts"
    VERDICT_WORD = "verdict_word"
    ARM_WORD = "arm_word"
    SKILL_NAME = "skill_name"
    CASE_ID = "case_id"
    PROBE_KINDS = "probe_kinds"
    PROBE_VERDICT = "probe_verdict"
    PROBE_PAIR = "probe_pair"


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule.

    Attributes:
        rule: which.
        where: case id, with `/` and the field after it for a single text; empty for the bank as a whole.
        sentence: what to change, for the author.
    """

    rule: AuthoringRule
    where: str
    sentence: str
