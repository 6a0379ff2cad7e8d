from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from skill_effectiveness.calibration.licence import BankHashes, BothBanks, LicenceCode
from skill_effectiveness.calibration.standing import (
    LicenceStatus,
    Present,
    demand_one_world,
    judge_standing,
)
from tests.support.examinations import INPUTS, OTHER, PROBES, Anything
from tests.support.licences import NOW, granted, licence_of, refused
from tests.support.published import KIMI, REAL, SIMULATED

POLICY = INPUTS.policy


def now(**changes: Anything) -> Present:
    """This installation."""
    judged, probes = (
        BankHashes(
            known_answer_fixture_hash=inputs.bank.known_answer_fixture_hash,
            case_fixture_hash=inputs.bank.case_fixture_hash,
        )
        for inputs in (INPUTS, PROBES)
    )
    here = Present(
        prompt_hash=granted().prompt_hash,
        bank_hashes=BothBanks(judged=judged, bias_probe=probes),
        policy_hash=INPUTS.policy_hash,
        canary_rule=POLICY.canary_rule,
    )
    return replace(here, **changes)


NAMED = {
    "provider_executable_hash": "sha256:" + 64 * "e",
    "provider_cli_version": "tool 1.2.3",
    "model": "model-1",
}
ISSUED = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class TestStanding:
    def test_live(self) -> None:
        """R37: named or not, the same reviewer is the licensed one."""
        for present in (now(), now(**NAMED)):
            assert judge_standing(granted(), present, NOW).word == "live"

    @pytest.mark.parametrize(
        ("at", "word"),
        [
            (ISSUED - SECOND, "not_yet"),
            (ISSUED, "live"),
            (ISSUED + timedelta(days=30) - SECOND, "live"),
            (ISSUED + timedelta(days=30), "expired"),
            (ISSUED + timedelta(days=3000), "expired"),
        ],
    )
    def test_the_window(self, at: datetime, word: str) -> None:
        """R37: the first second counts, the last does not."""
        assert judge_standing(granted(), now(), at).word == word

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("provider_executable_hash", OTHER),
            ("provider_cli_version", "tool 1.2.4"),
            ("model", "model-2"),
            ("prompt_hash", OTHER),
            ("policy_hash", OTHER),
            ("canary_rule", POLICY.canary_rule.model_copy(update={"limit": 21.0})),
        ],
    )
    def test_drift_of_each_field(self, field: str, value: Anything) -> None:
        """R37: named."""
        found = judge_standing(granted(), now(**(NAMED | {field: value})), NOW)
        assert (found.status, found.word) == (LicenceStatus.DRIFT, f"drift:{field}")

    def test_drift_of_a_configuration(self) -> None:
        """R37 R34: what an alias means now; where nobody looked it cannot differ."""
        licence = licence_of(KIMI)
        held = licence.reviewer.provider_binding_hash
        for seen, word in ((held, "live"), (None, "live"), (OTHER, "drift:provider_binding_hash")):
            assert judge_standing(licence, now(provider_binding_hash=seen), NOW).word == word

    @pytest.mark.parametrize("bank", ["judged", "bias_probe"])
    @pytest.mark.parametrize("field", ["known_answer_fixture_hash", "case_fixture_hash"])
    def test_drift_of_each_bank(self, bank: str, field: str) -> None:
        """R37: either bank, either half."""
        held = now().bank_hashes
        changed = getattr(held, bank).model_copy(update={field: OTHER})
        present = now(bank_hashes=held.model_copy(update={bank: changed}))
        assert judge_standing(granted(), present, NOW).word == "drift:bank_hashes"

    def test_the_first_failing_part_is_named(self) -> None:
        """R37: signature, window, drift, revocation."""
        drifted, late = now(model="model-2"), ISSUED + timedelta(days=31)
        assert judge_standing(None, drifted, late, revoked=True).word == "signature"
        assert judge_standing(granted(), drifted, late, revoked=True).word == "expired"
        assert judge_standing(granted(), drifted, NOW, revoked=True).word == "drift:model"
        assert judge_standing(granted(), now(), NOW, revoked=True).word == "revoked"


class TestSynthetic:
    REAL = licence_of(REAL)
    SYNTHETIC = licence_of(SIMULATED)

    def test_a_licence_is_synthetic_exactly_when_its_reviewer_is_simulated(self) -> None:
        """R43: both ways."""
        assert (self.REAL.synthetic, self.SYNTHETIC.synthetic) == (False, True)

    def test_beside_one_real_part_a_synthetic_licence_is_refused(self) -> None:
        """R43: a real driver, or a real reviewer."""
        reason = [(LicenceCode.SYNTHETIC_BESIDE_REAL, self.SYNTHETIC.licence_id)]
        pair = [self.REAL, self.SYNTHETIC]
        assert refused(lambda: demand_one_world([self.SYNTHETIC], driver_simulated=False)) == reason
        assert refused(lambda: demand_one_world(pair, driver_simulated=True)) == reason
        assert refused(lambda: demand_one_world(pair, driver_simulated=False)) == reason

    def test_all_of_one_kind_is_not(self) -> None:
        """R43: nothing else is refused here."""
        demand_one_world([self.SYNTHETIC, self.SYNTHETIC], driver_simulated=True)
        demand_one_world([self.REAL], driver_simulated=False)
        demand_one_world([self.REAL], driver_simulated=True)
        demand_one_world([], driver_simulated=False)
