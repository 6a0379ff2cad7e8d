"""The known answers of skill events: sanitised recordings and what every extractor must make of them.

Source: controls.md, section 8. The expected values were written by hand from the shapes in `driver_notes`,
never taken from what a parser printed; recordings hold identities, ids and their linkage, and nothing else.
Two questions about the contract stay open; the cases that hold them name them in `open_question`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import Field, JsonValue, model_validator

from skill_effectiveness.evidence.documents import RuleBroken
from skill_effectiveness.protocol.document import FrozenModel, read_document
from skill_effectiveness.protocol.event_rows import Slug, Unverifiable
from skill_effectiveness.protocol.skill_events import Decision, EventStatus, Reason, SkillEvents

if TYPE_CHECKING:
    from skill_effectiveness.evidence.fsops import FileSystem

EVENT_FIXTURES: Final = "fixtures/skill-event-fixtures-v2.json"

Sentence = Annotated[str, Field(min_length=1, max_length=400)]


class OpenQuestion(StrEnum):
    """What the contract has not decided, and nobody may decide in passing."""

    IDENTITIES = "skill-identities-namespaced-on-one-driver-bare-on-the-other"
    REPEATED_IDS = "short-literal-call-ids-repeat-across-sessions-against-global-uniqueness"


class ExpectedEvents(FrozenModel):
    """What an extractor makes of a recording, and what the evaluator says of that."""

    unverifiable: Unverifiable | None
    events: SkillEvents | None
    decision: Decision
    reason_code: Reason

    @model_validator(mode="after")
    def _columns_agree(self) -> Self:
        unregistered = self.unverifiable is Unverifiable.DRIVER_SHAPE_UNREGISTERED
        if unregistered is not (self.events is None):
            raise RuleBroken("There are events exactly where the driver is registered.")
        stable = self.events is not None and self.events.event_contract_status is EventStatus.STABLE
        if stable is not (self.unverifiable is None):
            raise RuleBroken("Events are stable exactly where nothing is unverifiable.")
        if self.unverifiable is not None and self.decision is not Decision.DENY:
            raise RuleBroken("What is unverifiable never passes.")
        return self


class EventCase(FrozenModel):
    """One recording of one driver."""

    case_id: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,96}$")]
    driver: Slug
    pins: Sentence
    open_question: OpenQuestion | None
    target_bundle_id: Annotated[str, Field(min_length=1, max_length=256)]
    transcript: tuple[dict[str, JsonValue], ...]
    expected: ExpectedEvents


class EventFixtures(FrozenModel):
    """The whole file."""

    event_contract_version: Literal["skill-events-v2"]
    known_answer_source: Literal["hand-authored-never-parser-output"]
    contract_boundary: Literal["manipulation-check-not-an-outcome-and-no-proof-that-a-skill-was-loaded"]
    registered_drivers: tuple[Slug, ...]
    driver_notes: dict[Slug, Sentence]
    unregistered_driver_semantics: Literal["invocation_unverifiable"]
    cases: Annotated[tuple[EventCase, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _drivers_are_grounded(self) -> Self:
        listed = self.registered_drivers
        if list(listed) != sorted(set(listed)) or set(self.driver_notes) != set(listed):
            raise RuleBroken("Registered drivers are sorted, named once, and each has a note.")
        shown = {case.driver for case in self.cases if case.expected.unverifiable is None}
        if shown != set(listed):
            raise RuleBroken("A driver is registered by a known answer, and only so.")
        names = [case.case_id for case in self.cases]
        if len(set(names)) != len(names):
            raise RuleBroken("Each case has an id of its own.")
        for case in self.cases:
            unregistered = case.expected.unverifiable is Unverifiable.DRIVER_SHAPE_UNREGISTERED
            if unregistered is (case.driver in listed):
                raise RuleBroken("The shape of a driver is unregistered exactly if the driver is.")
        return self


def load_event_fixtures(fs: FileSystem) -> EventFixtures:
    """The committed known answers of this installation.

    Raises:
        ProtocolError: `fixture_invalid`.
    """
    return read_document(fs, EVENT_FIXTURES, EventFixtures)
