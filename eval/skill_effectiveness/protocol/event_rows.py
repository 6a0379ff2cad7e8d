"""The rows of a trial's `events.jsonl` that the gate reads (trials.md section 9).

Every row is an object with a text `event_contract`. The runner writes one row of each contract below; rows of
other contracts are evidence that nothing here interprets.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import ConfigDict, Field, model_validator

from skill_effectiveness.evidence.documents import RuleBroken, validate
from skill_effectiveness.protocol.document import FrozenModel, One
from skill_effectiveness.protocol.skill_events import EVENT_CONTRACT, EventStatus, SkillEvents

if TYPE_CHECKING:
    from collections.abc import Mapping

HOST_RESIDUAL_CONTRACT: Final = "host-residual-v1"

Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
"""A short name: lowercase letters, digits, underscores and hyphens."""

_UNIQUE: Final[dict[str, Any]] = {"uniqueItems": True}


class ResidualStatus(StrEnum):
    """What a look at the host showed before the agent started."""

    CLEAN = "clean"
    RESIDUAL = "residual"
    UNVERIFIED = "unverified"


class HostResidualRow(FrozenModel):
    """Whether anything of the treatment lay about on the host although the arm did not bring it.

    `layers` names what was found, sorted; it is empty unless the status is `residual`.
    """

    schema_version: One
    event_contract: Literal["host-residual-v1"]
    status: ResidualStatus
    layers: Annotated[tuple[Slug, ...], Field(max_length=64, json_schema_extra=_UNIQUE)]

    @model_validator(mode="after")
    def _columns_agree(self) -> Self:
        if list(self.layers) != sorted(set(self.layers)):
            raise RuleBroken("Layers must be sorted and named once.")
        if (self.status is ResidualStatus.RESIDUAL) is not bool(self.layers):
            raise RuleBroken("Layers belong to the status residual and to no other.")
        return self

    @property
    def residual(self) -> bool | None:
        """Whether something was found; `None` when nobody could tell."""
        return None if self.status is ResidualStatus.UNVERIFIED else bool(self.layers)


class Unverifiable(StrEnum):
    """Why a recording could not be turned into skill events (controls.md section 8)."""

    DRIVER_SHAPE_UNREGISTERED = "driver_shape_unregistered"
    MISSING_INVOCATION_FIELD = "missing_invocation_field"


class SkillEventsRow(FrozenModel):
    """The skill events of one trial, or why there are none.

    | `unverifiable` | `events` |
    |---|---|
    | null | stable |
    | `driver_shape_unregistered` | null: nothing is asserted about what the driver emits |
    | `missing_invocation_field` | degraded, without invocations |
    """

    schema_version: One
    event_contract: Literal["skill-events-v2"]
    driver: Slug
    unverifiable: Unverifiable | None
    events: SkillEvents | None

    @model_validator(mode="after")
    def _columns_agree(self) -> Self:
        match self.unverifiable:
            case None:
                agree = self.events is not None and self.events.event_contract_status is EventStatus.STABLE
            case Unverifiable.DRIVER_SHAPE_UNREGISTERED:
                agree = self.events is None
            case Unverifiable.MISSING_INVOCATION_FIELD:
                agree = (
                    self.events is not None
                    and self.events.event_contract_status is EventStatus.DEGRADED
                    and not self.events.skills_invoked
                )
        if not agree:
            raise RuleBroken("The events do not fit what is said about them.")
        return self

    @property
    def verifiable(self) -> bool:
        """Whether the recording gave events that can be relied on."""
        return self.unverifiable is None


EventRow: TypeAlias = HostResidualRow | SkillEventsRow

_ROWS: Final[Mapping[str, type[EventRow]]] = {
    HOST_RESIDUAL_CONTRACT: HostResidualRow,
    EVENT_CONTRACT: SkillEventsRow,
}


class _Heading(FrozenModel):
    """What every row has, whatever else it holds."""

    model_config = ConfigDict(extra="allow")

    event_contract: Annotated[str, Field(min_length=1)]


def read_event_row(value: object) -> EventRow | None:
    """One row of `events.jsonl` by its contract; `None` for a contract that is not of this page.

    Raises:
        DocumentError: the row is not an object, has no text `event_contract`, or does not fit its contract.
    """
    model = _ROWS.get(validate(_Heading, value).event_contract)
    return None if model is None else validate(model, value)
