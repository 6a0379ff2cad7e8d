"""How a licence stands: live, or the first part of it that is not (calibration.md, section 9).

Everything here is judgement: the time and what the licence is held against are passed in. Whether canaries
have revoked one is known only to whoever holds the votes (`canary.CanaryWatch.revoked`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from skill_effectiveness.calibration.licence import LicenceCode, LicenceFault, LicenceRefused, read_time

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from skill_effectiveness.calibration.licence import BothBanks, LicencePredicate
    from skill_effectiveness.protocol.policy import CanaryRule


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
        provider_binding_hash: of the configuration that the reviewer would be asked with; None when none was
            looked at.
    """

    prompt_hash: str
    bank_hashes: BothBanks
    policy_hash: str
    canary_rule: CanaryRule
    provider_executable_hash: str | None = None
    provider_cli_version: str | None = None
    model: str | None = None
    provider_binding_hash: str | None = None


def judge_standing(
    licence: LicencePredicate | None, present: Present, at: datetime, *, revoked: bool = False
) -> Standing:
    """How a licence stands at a time.

    Args:
        licence: None when no trusted key has signed it; nothing it says is looked at then.
        present: what it is held against.
        at: aware.
        revoked: whether its canaries have revoked it; False where no votes are known.
    """
    if licence is None:
        return Standing(LicenceStatus.SIGNATURE)
    if at < read_time(licence.issued_at):
        return Standing(LicenceStatus.NOT_YET)
    if at >= read_time(licence.expires_at):
        return Standing(LicenceStatus.EXPIRED)
    if (field := drifted_field(licence, present)) is not None:
        return Standing(LicenceStatus.DRIFT, field)
    return Standing(LicenceStatus.REVOKED if revoked else LicenceStatus.LIVE)


def drifted_field(licence: LicencePredicate, present: Present) -> str | None:
    """The first field in which the present is not what was licensed; what was not named cannot differ."""
    reviewer = licence.reviewer
    for field in ("provider_executable_hash", "provider_cli_version", "model", "provider_binding_hash"):
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
