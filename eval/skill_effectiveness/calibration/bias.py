"""Scoring the answers to the bias probes by the frozen probe table (calibration.md, section 8).

The sheet says for every probe and sample whether the answer was right, and holds no verdict: it goes into
licences, and what a licence shows must not help anybody to learn the answers.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration.figures import Share, at_most
from skill_effectiveness.protocol.cases import Bank, BankName, probe_kind_of
from skill_effectiveness.protocol.document import FrozenModel
from skill_effectiveness.protocol.policy import ProbeRequirement, ProbeRule
from skill_effectiveness.protocol.words import ProbeKind, Seat, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

_WIN_OF: Final = {Seat.CANDIDATE_A: Verdict.A_WIN, Seat.CANDIDATE_B: Verdict.B_WIN}


class ProbeScore(FrozenModel):
    """One probe over all samples.

    Attributes:
        case_id: the probe.
        right: per sample, whether the answer was the expected one.
        favoured_wins: samples in which the favoured side won; None for kinds without one.
    """

    case_id: str
    right: tuple[bool, ...]
    favoured_wins: Share | None


class KindScore(FrozenModel):
    """One row of the probe table over all samples.

    Attributes:
        kind: the kind of bias.
        requirement: the rule it was decided by.
        right: per sample, whether all probes of the kind were answered as expected.
        probes: in bank order.
        passed: whether the rule is met; a kind without a probe is not.
    """

    kind: ProbeKind
    requirement: ProbeRequirement
    right: tuple[bool, ...]
    probes: tuple[ProbeScore, ...]
    passed: bool


class BiasSheet(FrozenModel):
    """The whole probe table; `passed` when every kind is."""

    sample_count: int
    kinds: tuple[KindScore, ...]
    passed: bool


def bias_sheet(bank: Bank, rules: Sequence[ProbeRule], samples: Sequence[Sequence[Verdict]]) -> BiasSheet:
    """Score the samples of one reviewer.

    Args:
        bank: the probe bank.
        rules: the frozen table (`LicencePolicy.probe_rules`).
        samples: verdicts of each sample in bank order and orientation, at least one sample.

    Raises:
        ValueError: another bank, no rules, no samples, or a sample without exactly one verdict per probe.
    """
    if bank.name is not BankName.BIAS_PROBE or not rules or not samples:
        raise ValueError("the probe table is scored over at least one sample of the probe bank")
    if any(len(sample) != len(bank.cases) for sample in samples):
        raise ValueError("a sample has one verdict per probe")
    kinds = tuple(_kind(rule, bank, samples) for rule in rules)
    return BiasSheet(sample_count=len(samples), kinds=kinds, passed=all(kind.passed for kind in kinds))


def _kind(rule: ProbeRule, bank: Bank, samples: Sequence[Sequence[Verdict]]) -> KindScore:
    places = [place for place, case_id in enumerate(bank.case_ids) if probe_kind_of(case_id) is rule.kind]
    probes = tuple(
        _probe(rule, bank.case_ids[place], bank.truth[place], [sample[place] for sample in samples])
        for place in places
    )
    right = tuple(all(probe.right[number] for probe in probes) for number in range(len(samples)))
    return KindScore(
        kind=rule.kind,
        requirement=rule.requirement,
        right=right if probes else (False,) * len(samples),
        probes=probes,
        passed=bool(probes) and all(_passes(rule, probe) for probe in probes),
    )


def _probe(rule: ProbeRule, case_id: str, expected: Verdict, given: Sequence[Verdict]) -> ProbeScore:
    favoured = None
    if rule.favoured is not None:
        favoured = Share.of(given.count(_WIN_OF[rule.favoured.seat]), len(given))
    return ProbeScore(
        case_id=case_id,
        right=tuple(verdict is expected for verdict in given),
        favoured_wins=favoured,
    )


def _passes(rule: ProbeRule, probe: ProbeScore) -> bool:
    """One requirement bounds how often the favoured side won; the others want every answer right."""
    if rule.requirement is not ProbeRequirement.FAVOURED_SIDE_WINS_AT_MOST:
        return all(probe.right)
    if rule.favoured is None or probe.favoured_wins is None:
        return False
    return at_most(Fraction(probe.favoured_wins.part, probe.favoured_wins.whole), rule.favoured.win_share_max)
