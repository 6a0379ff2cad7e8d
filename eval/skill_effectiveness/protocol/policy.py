"""The frozen policy under which a calibration becomes a licence (calibration.md sections 8 and 9)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final, Self

from pydantic import Field, model_validator

from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.documents import RuleBroken
from skill_effectiveness.protocol.document import Count, DigestText, FrozenModel, One, Rate, read_document
from skill_effectiveness.protocol.words import ProbeKind, Seat

if TYPE_CHECKING:
    from skill_effectiveness.evidence.fsops import FileSystem

POLICY_FILE: Final = "fixtures/licence-policy.json"

OpenRate = Annotated[float, Field(gt=0, lt=1)]
"""A share strictly between 0 and 1."""


class ProbeExpectation(StrEnum):
    """What a sound reviewer answers to a kind of probe."""

    TIE = "tie"
    SAME_CANDIDATE = "same_candidate"
    SOUND_TEXT = "sound_text"


class ProbeRequirement(StrEnum):
    """How the answers of all samples decide whether a kind of probe is passed."""

    TIE_IN_EVERY_SAMPLE = "tie_in_every_sample"
    BOTH_RIGHT_IN_EVERY_SAMPLE = "both_right_in_every_sample"
    RIGHT_IN_EVERY_SAMPLE = "right_in_every_sample"
    FAVOURED_SIDE_WINS_AT_MOST = "favoured_side_wins_at_most"


_EXPECTATION: Final = {
    ProbeRequirement.TIE_IN_EVERY_SAMPLE: ProbeExpectation.TIE,
    ProbeRequirement.BOTH_RIGHT_IN_EVERY_SAMPLE: ProbeExpectation.SAME_CANDIDATE,
    ProbeRequirement.RIGHT_IN_EVERY_SAMPLE: ProbeExpectation.SOUND_TEXT,
    ProbeRequirement.FAVOURED_SIDE_WINS_AT_MOST: ProbeExpectation.TIE,
}


class FavouredSide(FrozenModel):
    """The text a biased reviewer prefers, in bank orientation, and the largest share of wins it may have."""

    seat: Seat
    win_share_max: Rate


class ProbeRule(FrozenModel):
    """One row of the probe table; `favoured` is null unless the requirement speaks of a favoured side."""

    kind: ProbeKind
    expected: ProbeExpectation
    requirement: ProbeRequirement
    favoured: FavouredSide | None

    @model_validator(mode="after")
    def _columns_agree(self) -> Self:
        if self.expected is not _EXPECTATION[self.requirement]:
            raise RuleBroken("The requirement does not fit what is expected.")
        limited = self.requirement is ProbeRequirement.FAVOURED_SIDE_WINS_AT_MOST
        if limited is not (self.favoured is not None):
            raise RuleBroken("A favoured side belongs to its requirement and to no other.")
        return self


class LicenceDays(FrozenModel):
    """How long a licence may live, in days."""

    min: Count
    max: Count
    default: Count

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.min <= self.default <= self.max:
            raise RuleBroken("The default lies between the least and the most days.")
        return self


class CanaryRule(FrozenModel):
    """How votes are watched after the licence is given.

    A share `rate` of votes has a known answer. The evidence starts at 1 and is multiplied by p1/p0 for a
    right and by (1 - p1)/(1 - p0) for a wrong one: the likelihood ratio of a reviewer that is right with
    probability p1 against p0. At `limit` the licence is revoked; by Ville's inequality a reviewer at p0 gets
    there with probability at most 1/limit.
    """

    rate: OpenRate
    p0: OpenRate
    p1: OpenRate
    limit: Annotated[float, Field(gt=1)]

    @model_validator(mode="after")
    def _alternative_is_worse(self) -> Self:
        if not self.p1 < self.p0:
            raise RuleBroken("The accuracy that revokes, p1, must lie below p0.")
        return self


class LicencePolicy(FrozenModel):
    """The whole policy file."""

    schema_version: One
    accuracy_wilson_low_min: Rate
    usable_answer_rate_min: Rate
    flip_rate_max: Rate
    flip_cases_covered_min: Count
    repeats_min: Count
    days: LicenceDays
    probe_rules: tuple[ProbeRule, ...]
    canary_rule: CanaryRule
    bias_probe_fixture_hash: DigestText
    bias_probe_case_fixture_hash: DigestText

    @model_validator(mode="after")
    def _one_rule_per_kind(self) -> Self:
        if [rule.kind for rule in self.probe_rules] != list(ProbeKind):
            raise RuleBroken("Every kind of probe has one rule, in the order of the table.")
        return self

    def rule_of(self, kind: ProbeKind) -> ProbeRule:
        """The row of the probe table for a kind."""
        return next(rule for rule in self.probe_rules if rule.kind is kind)


def load_policy(fs: FileSystem) -> LicencePolicy:
    """The frozen licence policy of this installation.

    Raises:
        ProtocolError: `fixture_invalid`.
    """
    return read_document(fs, POLICY_FILE, LicencePolicy)


def policy_hash(policy: LicencePolicy) -> str:
    """The object digest of the policy, which every licence names."""
    return digest_object(policy.model_dump(mode="json"))
