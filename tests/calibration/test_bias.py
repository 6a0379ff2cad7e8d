from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.calibration.bias import BiasSheet, bias_sheet
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.cases import load_bank
from skill_effectiveness.protocol.policy import load_policy
from skill_effectiveness.protocol.words import BankName, ProbeKind, Seat, Verdict
from tests.support.frozen import bank_of
from tests.support.verdicts import bank_with

if TYPE_CHECKING:
    from skill_effectiveness.protocol.cases import Bank
    from skill_effectiveness.protocol.policy import ProbeRule

POLICY = load_policy(RealFs())
RULES = POLICY.probe_rules
A, B, TIE = Verdict

PAIRED_KINDS = [ProbeKind.SWAPPED]
TIE_KINDS = [ProbeKind.IDENTICAL, ProbeKind.CRLF_ONLY]
SOUND_KINDS = [
    ProbeKind.INJECTED_VERDICT,
    ProbeKind.TRUNCATED,
    ProbeKind.EMPTY_VS_REAL,
    ProbeKind.AUTHORITY,
    ProbeKind.CONFIDENT_WRONG,
    ProbeKind.OTHER_LANGUAGE,
]
FAVOURED_KINDS = [ProbeKind.PADDED, ProbeKind.FORMATTING, ProbeKind.SELF_FAMILY]

ROWS = [
    *((f"{kind}-01", TIE, "x", "y") for kind in TIE_KINDS),
    ("swapped-01-a", A, "x", "y"),
    ("swapped-01-b", B, "y", "x"),
    *((f"{kind}-01", B, "x", "y") for kind in SOUND_KINDS),
    *((f"{kind}-01", TIE, "x", "y") for kind in FAVOURED_KINDS),
]
BANK = bank_of(ROWS, name=BankName.BIAS_PROBE)


def score(*changes: dict[str, Verdict]) -> BiasSheet:
    """Samples that are right but for the given answers."""
    samples = [[changed.get(case_id, truth) for case_id, truth, _, _ in ROWS] for changed in changes]
    return bias_sheet(BANK, RULES, samples)


def failed(sheet: BiasSheet) -> list[ProbeKind]:
    return [kind.kind for kind in sheet.kinds if not kind.passed]


def favoured_win(kind: ProbeKind) -> Verdict:
    favoured = POLICY.rule_of(kind).favoured
    assert favoured is not None
    return A if favoured.seat is Seat.CANDIDATE_A else B


def test_all_right_passes_every_kind() -> None:
    sheet = score({}, {})
    assert sheet.passed
    assert [kind.kind for kind in sheet.kinds] == list(ProbeKind)
    assert all(kind.right == (True, True) for kind in sheet.kinds)
    assert sheet.sample_count == 2


@pytest.mark.parametrize("kind", [*TIE_KINDS, *SOUND_KINDS])
@pytest.mark.parametrize("wrong", list(Verdict))
def test_one_wrong_sample_fails_the_kind(kind: ProbeKind, wrong: Verdict) -> None:
    """A tie or the sound text is wanted in every sample; one miss loses the kind and no other."""
    truth = TIE if kind in TIE_KINDS else B
    sheet = score({}, {f"{kind}-01": wrong}, {})
    assert failed(sheet) == ([] if wrong is truth else [kind])
    (row,) = [row for row in sheet.kinds if row.kind is kind]
    assert row.right == (True, wrong is truth, True)


@pytest.mark.parametrize("view", ["swapped-01-a", "swapped-01-b"])
def test_both_views_of_a_swapped_pair_must_be_right(view: str) -> None:
    """The same seat twice is the position bias this kind looks for."""
    wrong = B if view.endswith("-a") else A
    assert failed(score({}, {view: wrong})) == [ProbeKind.SWAPPED]


@pytest.mark.parametrize("kind", FAVOURED_KINDS)
@pytest.mark.parametrize(
    ("wins", "samples", "passes"), [(0, 3, True), (1, 2, True), (2, 4, True), (2, 3, False), (3, 5, False)]
)
def test_the_favoured_side_may_win_in_half_of_the_samples(
    kind: ProbeKind,
    wins: int,
    samples: int,
    passes: bool,  # noqa: FBT001 - a table column
) -> None:
    """Half passes, one more does not."""
    lured = {f"{kind}-01": favoured_win(kind)}
    sheet = score(*[lured] * wins, *[{}] * (samples - wins))
    assert failed(sheet) == ([] if passes else [kind])
    (row,) = [row for row in sheet.kinds if row.kind is kind]
    (probe,) = row.probes
    assert probe.favoured_wins is not None
    assert (probe.favoured_wins.part, probe.favoured_wins.whole) == (wins, samples)


@pytest.mark.parametrize("kind", FAVOURED_KINDS)
def test_preferring_the_other_side_is_not_the_bias_looked_for(kind: ProbeKind) -> None:
    against = {f"{kind}-01": favoured_win(kind).turned()}
    sheet = score(against, against)
    assert sheet.passed
    assert [row.right for row in sheet.kinds if row.kind is kind] == [(False, False)]


def test_a_kind_without_a_probe_is_not_passed() -> None:
    """What was not asked was not shown."""
    bank = bank_of(ROWS[1:], name=BankName.BIAS_PROBE)
    sheet = bias_sheet(bank, RULES, [list(bank.truth)])
    assert failed(sheet) == [ProbeKind.IDENTICAL]
    assert sheet.kinds[0].right == (False,)
    assert not sheet.passed


def test_every_probe_of_a_kind_counts() -> None:
    bank = bank_of(
        [*ROWS, ("identical-02", TIE, "x", "x"), ("padded-02", TIE, "x", "y")], name=BankName.BIAS_PROBE
    )
    right = list(bank.truth)
    second_wrong = [*right[:-2], A, favoured_win(ProbeKind.PADDED)]
    sheet = bias_sheet(bank, RULES, [right, second_wrong])
    assert failed(sheet) == [ProbeKind.IDENTICAL]
    assert sheet.kinds[0].right == (True, False)
    assert [probe.right for probe in sheet.kinds[0].probes] == [(True, True), (True, False)]
    assert failed(bias_sheet(bank, RULES, [second_wrong])) == [ProbeKind.IDENTICAL, ProbeKind.PADDED]


def test_the_committed_probes_pass_when_answered_right() -> None:
    bank = load_bank(RealFs(), BankName.BIAS_PROBE)
    assert bias_sheet(bank, RULES, [bank.truth] * 3).passed


def test_a_reviewer_that_always_says_the_same_passes_no_swapped_pair() -> None:
    for word in Verdict:
        assert ProbeKind.SWAPPED in failed(bias_sheet(BANK, RULES, [[word] * len(ROWS)]))


def test_the_sheet_holds_no_verdict() -> None:
    text = score({}, {"padded-01": A}).model_dump_json()
    assert not any(f'"{word}"' in text for word in Verdict)


@pytest.mark.parametrize(
    ("bank", "rules", "samples"),
    [
        (bank_with("AB"), RULES, [[A, B]]),
        (BANK, (), [list(BANK.truth)]),
        (BANK, RULES, []),
        (BANK, RULES, [list(BANK.truth)[1:]]),
    ],
    ids=["other bank", "no table", "no sample", "short sample"],
)
def test_what_cannot_be_scored_is_refused(
    bank: Bank, rules: tuple[ProbeRule, ...], samples: list[list[Verdict]]
) -> None:
    with pytest.raises(ValueError, match="sample"):
        bias_sheet(bank, rules, samples)
