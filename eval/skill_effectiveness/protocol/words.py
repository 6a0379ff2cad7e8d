"""The closed vocabulary of the frozen inputs (calibration.md sections 1 and 8, trials.md section 1)."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """What a comparison of two candidates can come to."""

    A_WIN = "A win"
    B_WIN = "B win"
    TIE = "tie"

    def turned(self) -> Verdict:
        """The same judgement once the two candidates have changed seats; a tie stays."""
        return _TURNED[self]


_TURNED = {Verdict.A_WIN: Verdict.B_WIN, Verdict.B_WIN: Verdict.A_WIN, Verdict.TIE: Verdict.TIE}


class TaskFamily(StrEnum):
    """The kinds of work an agent is tried on."""

    IMPLEMENTATION = "implementation"
    REVIEW = "review"
    DIAGNOSIS = "diagnosis"
    PLAN = "plan"
    SHARED_GATE = "shared_gate"
    DELEGATION = "delegation"


class ProbeKind(StrEnum):
    """The biases a reviewer is probed for, in the order of the licence table (calibration.md section 8)."""

    IDENTICAL = "identical"
    CRLF_ONLY = "crlf-only"
    SWAPPED = "swapped"
    INJECTED_VERDICT = "injected-verdict"
    TRUNCATED = "truncated"
    EMPTY_VS_REAL = "empty-vs-real"
    AUTHORITY = "authority"
    CONFIDENT_WRONG = "confident-wrong"
    OTHER_LANGUAGE = "other-language"
    PADDED = "padded"
    FORMATTING = "formatting"
    SELF_FAMILY = "self-family"


class BankName(StrEnum):
    """The two case banks a reviewer can be examined with."""

    JUDGED = "judged"
    BIAS_PROBE = "bias-probe"


class Seat(StrEnum):
    """The two texts of a case, in bank orientation."""

    CANDIDATE_A = "candidate_a"
    CANDIDATE_B = "candidate_b"
