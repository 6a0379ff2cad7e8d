from __future__ import annotations

from dataclasses import replace

import pytest

from skill_effectiveness.calibration.grant import Examined, pooled
from skill_effectiveness.calibration.licence import LicenceCode
from skill_effectiveness.calibration.sheet import VerdictSheet
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.protocol.cases import probe_kind_of
from skill_effectiveness.protocol.words import ProbeKind, Seat, Verdict
from tests.support.examinations import INPUTS, OTHER, PROBES, Anything
from tests.support.licences import examined, granted, licence_of, other, refused, run
from tests.support.published import KIMI, REAL, SIMULATED, all_tie

POLICY = INPUTS.policy
IDS = INPUTS.bank.case_ids
TRUTH = dict(zip(IDS, INPUTS.bank.truth, strict=True))


def wrong_on(count: int) -> dict[str, Verdict]:
    """Another verdict than the truth for the first cases of the bank."""
    return {case: Verdict.TIE if TRUTH[case] is not Verdict.TIE else Verdict.A_WIN for case in IDS[:count]}


def flipping(flips: int, covered: int) -> Examined:
    """Sample 2 saw the first cases the other way round, and was wrong on some of them."""
    runs = (run(INPUTS), run(INPUTS, wrong_on(flips)), run(INPUTS))
    return examined(INPUTS, *runs, swapped=lambda number, place: number == 1 and place < covered)


class TestPolicy:
    """Each line alone refuses; every other line is met in each of these."""

    def test_a_good_reviewer_gets_a_licence(self) -> None:
        """R35: under the frozen policy."""
        licence = granted()
        assert (licence.issued_at, licence.expires_at) == ("2026-03-04T05:06:07Z", "2026-04-03T05:06:07Z")

    def test_two_repeats_of_the_calibration(self) -> None:
        """R35: at least three."""
        assert refused(lambda: granted(examined(INPUTS, *2 * (run(INPUTS),)))) == [
            (LicenceCode.REPEATS_TOO_FEW, "judged")
        ]

    def test_two_repeats_of_the_probes(self) -> None:
        """R35: at least three of both."""
        assert refused(lambda: granted(None, examined(PROBES, *2 * (run(PROBES),)))) == [
            (LicenceCode.REPEATS_TOO_FEW, "bias-probe")
        ]

    def test_accuracy(self) -> None:
        """R35: 19 of 24 has a Wilson low of 0.5953, below 0.6; 24 of 24 has 0.8620."""
        good = examined()
        interval = good.reviewer.accuracy.interval.model_copy(update={"low": 0.5953})
        accuracy = good.reviewer.accuracy.model_copy(update={"interval": interval})
        reviewer = good.reviewer.model_copy(update={"accuracy": accuracy})
        low = replace(good, sheet=good.sheet.model_copy(update={"reviewers": (reviewer,)}))
        assert refused(lambda: granted(low)) == [(LicenceCode.ACCURACY_TOO_LOW, None)]
        strict = POLICY.model_copy(update={"accuracy_wilson_low_min": 0.8621})
        assert refused(lambda: granted(policy=strict)) == [(LicenceCode.ACCURACY_TOO_LOW, None)]
        granted(policy=POLICY.model_copy(update={"accuracy_wilson_low_min": 0.862}))

    def test_accuracy_is_measured_over_cases(self) -> None:
        """R35: three repeats do not make 24 cases 72."""
        runs = 3 * (run(INPUTS, wrong_on(4)),)
        policy = POLICY.model_copy(update={"accuracy_wilson_low_min": 0.6416})
        assert refused(lambda: granted(examined(INPUTS, *runs), policy=policy)) == [
            (LicenceCode.ACCURACY_TOO_LOW, None)
        ]
        granted(examined(INPUTS, *runs))

    @pytest.mark.parametrize("inputs", [INPUTS, PROBES], ids=["judged", "probes"])
    def test_usable_answers(self, inputs: Anything) -> None:
        """R35: one attempt in vain of four is too many; a policy of 0.75 allows exactly that."""
        wasted = examined(inputs, attempts=4)
        both = (wasted, None) if inputs is INPUTS else (None, wasted)
        assert refused(lambda: granted(*both)) == [
            (LicenceCode.USABLE_ANSWERS_TOO_FEW, inputs.bank.name.value)
        ]
        granted(*both, policy=POLICY.model_copy(update={"usable_answer_rate_min": 0.75}))

    def test_flip_rate(self) -> None:
        """R35: three of eight flip; two of eight are exactly a quarter."""
        assert refused(lambda: granted(flipping(3, 8))) == [(LicenceCode.FLIP_RATE_TOO_HIGH, None)]
        granted(flipping(2, 8))

    @pytest.mark.parametrize("covered", [0, 7])
    def test_cases_covered(self, covered: int) -> None:
        """R35: no flip among too few cases says nothing."""
        assert refused(lambda: granted(flipping(0, covered))) == [(LicenceCode.FLIP_CASES_TOO_FEW, None)]
        granted(flipping(0, 8))

    @pytest.mark.parametrize("kind", ProbeKind)
    def test_each_kind_of_probe(self, kind: ProbeKind) -> None:
        """R35: one sample that answers it otherwise, or two of three in which the favoured side wins."""
        rule = POLICY.rule_of(kind)
        truth = dict(zip(PROBES.bank.case_ids, PROBES.bank.truth, strict=True))
        case = next(each for each in PROBES.bank.case_ids if probe_kind_of(each) is kind)
        otherwise = Verdict.A_WIN if truth[case] is Verdict.TIE else Verdict.TIE
        times = 1
        if rule.favoured is not None:
            otherwise = Verdict.A_WIN if rule.favoured.seat is Seat.CANDIDATE_A else Verdict.B_WIN
            times = 2
        bad = [run(PROBES, {case: otherwise}) for _ in range(times)]
        probes = examined(PROBES, *bad, *(3 - times) * (run(PROBES),))
        assert refused(lambda: granted(None, probes)) == [(LicenceCode.PROBE_FAILED, kind.value)]
        if rule.favoured is not None:
            granted(None, examined(PROBES, bad[0], *2 * (run(PROBES),)))

    @pytest.mark.parametrize("days", [-1, 0, 91])
    def test_days(self, days: int) -> None:
        """R35: 1 to 90."""
        assert refused(lambda: granted(days=days)) == [(LicenceCode.DAYS_OUT_OF_RANGE, None)]

    @pytest.mark.parametrize(("days", "last"), [(1, "2026-03-05T05:06:07Z"), (90, "2026-06-02T05:06:07Z")])
    def test_days_that_are_allowed(self, days: int, last: str) -> None:
        assert granted(days=days).expires_at == last

    def test_every_line_that_is_not_met_is_told(self) -> None:
        """R35: not only the first."""
        assert refused(lambda: granted(examined(INPUTS, *2 * (run(INPUTS),), attempts=3), days=91)) == [
            (LicenceCode.REPEATS_TOO_FEW, "judged"),
            (LicenceCode.USABLE_ANSWERS_TOO_FEW, "judged"),
            (LicenceCode.DAYS_OUT_OF_RANGE, None),
        ]

    def test_the_lines_of_the_policy_are_known_as_such(self) -> None:
        assert {code.value for code in LicenceCode if code.policy} == {
            "repeats_too_few",
            "accuracy_too_low",
            "usable_answers_too_few",
            "flip_rate_too_high",
            "flip_cases_too_few",
            "probe_failed",
            "days_out_of_range",
        }


class TestPair:
    def test_a_failed_calibration(self) -> None:
        """R35: that is no matter of the policy."""
        failed = examined(INPUTS, *3 * (all_tie(INPUTS),))
        assert refused(lambda: granted(failed)) == [(LicenceCode.CALIBRATION_FAILED, None)]

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("provider_cli_version", "tool 1.2.4"),
            ("provider_executable_hash", OTHER),
            ("model", "model-2"),
            ("reviewer_family", "family-2"),
            ("runtime_manifest_hash", OTHER),
        ],
    )
    def test_probes_of_another_reviewer(self, field: str, value: str) -> None:
        """R35: one binding."""
        probes = examined(PROBES, declared=other(REAL, **{field: value}))
        assert refused(lambda: granted(None, probes)) == [(LicenceCode.REVIEWER_DIFFERS, field)]

    def test_probes_under_another_configuration(self) -> None:
        """R34 R35: an alias that meant something else is another reviewer."""
        assert KIMI.provider_binding is not None
        moved = KIMI.provider_binding.model_copy(update={"underlying_model": "model-2"})
        probes = examined(PROBES, declared=other(KIMI, provider_binding=moved))
        assert refused(lambda: granted(examined(declared=KIMI), probes)) == [
            (LicenceCode.REVIEWER_DIFFERS, "provider_binding_hash")
        ]

    def test_the_configuration_is_licensed_by_its_hash(self) -> None:
        """R34 R35: of a provider that has one, and null of every other."""
        assert KIMI.provider_binding is not None
        bound = digest_object(KIMI.provider_binding.model_dump(mode="json"))
        assert licence_of(KIMI).reviewer.provider_binding_hash == bound
        assert granted().reviewer.provider_binding_hash is None

    def test_probes_of_a_simulated_reviewer(self) -> None:
        """R43: a real calibration and synthetic probes make no licence."""
        probes = examined(PROBES, declared=SIMULATED)
        assert refused(lambda: granted(None, probes)) == [(LicenceCode.REVIEWER_DIFFERS, "provider")]

    def test_another_simulation(self) -> None:
        """R43: another seed is another reviewer."""
        assert SIMULATED.simulation is not None
        seed = SIMULATED.simulation.model_copy(update={"seed": 8})
        probes = examined(PROBES, declared=other(SIMULATED, simulation=seed))
        assert refused(lambda: granted(examined(declared=SIMULATED), probes)) == [
            (LicenceCode.REVIEWER_DIFFERS, "simulation")
        ]

    def test_another_prompt(self) -> None:
        assert refused(lambda: granted(examined(asked=OTHER))) == [(LicenceCode.PROMPT_CHANGED, None)]
        assert refused(lambda: granted(prompt=OTHER)) == [(LicenceCode.PROMPT_CHANGED, None)]
        granted(examined(asked=None))

    def test_without_any_prompt_nobody_knows(self) -> None:
        assert refused(lambda: granted(examined(asked=None), examined(PROBES, asked=None))) == [
            (LicenceCode.PROMPT_CHANGED, None)
        ]

    def test_examinations_in_the_wrong_place_are_an_error_of_the_caller(self) -> None:
        with pytest.raises(ValueError, match="each bank"):
            granted(examined(PROBES), examined())
        with pytest.raises(ValueError, match="its own figures"):
            granted(replace(examined(), sheet=examined(INPUTS, *2 * (run(INPUTS),)).sheet))


class TestPooling:
    def test_pooled_counts_of_the_decided_verdicts(self) -> None:
        """Eight cases of each verdict, three runs; four decided cases are called ties in every run."""
        wins = [case for case in IDS if TRUTH[case] is Verdict.A_WIN][:4]
        runs = 3 * (run(INPUTS, dict.fromkeys(wins, Verdict.TIE)),)
        found = granted(examined(INPUTS, *runs)).metrics.decided
        assert (found.hits, found.n1, found.rejections, found.n0) == (36, 16, 96, 32)
        assert found.sensitivity.value == 0.75
        assert found.specificity.value == 1
        # statsmodels 0.14: proportion_confint(12, 16, method="wilson")
        assert found.sensitivity.interval.low == pytest.approx(0.50501683, abs=1e-8)

    def test_pooling_needs_both_kinds_of_cases(self) -> None:
        nothing = VerdictSheet(hits=0, n1=0, rejections=3, n0=3, sensitivity=None, specificity=None)
        with pytest.raises(ValueError, match="decided truth"):
            pooled([nothing], 3)
