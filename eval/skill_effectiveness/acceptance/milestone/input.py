"""`milestone.json`: what is to be closed, as a person wrote it.

Source: milestone.md, section 2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

from pydantic import BaseModel, Field, model_validator

from skill_effectiveness.acceptance.milestone.errors import MilestoneCode, MilestoneError
from skill_effectiveness.acceptance.milestone.words import CLOSED, NO_NUL, QA_SURFACES, UNKNOWN_GRADE
from skill_effectiveness.evidence.canonical import digest_object, dump_line
from skill_effectiveness.evidence.documents import RuleBroken, validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile, read_json

if TYPE_CHECKING:
    from skill_effectiveness.evidence.faults import EvidenceError as AnyFault

_ID: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
_CRITERION: Final = re.compile(r"c[1-9][0-9]{0,3}")
_COMMIT: Final = r"^([0-9a-f]{40}|[0-9a-f]{64})$"

Identifier = Annotated[str, Field(pattern=_ID)]
Text = Annotated[str, Field(min_length=1, max_length=65_536, pattern=NO_NUL)]
Argv = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=4096)], ...], Field(min_length=1)]
CommitId = Annotated[str, Field(pattern=_COMMIT)]


class DeliveryCheck(BaseModel):
    """One check of a delivery annotation; what is wrong with it is a warning and never a refusal."""

    model_config = CLOSED

    kind: str
    ref: str | None = None


class DeliveryEntry(BaseModel):
    """An annotation that moves a criterion to the delivery check."""

    model_config = CLOSED

    id: str
    checks: tuple[DeliveryCheck, ...] = ()


class Decision(BaseModel):
    """One decision of the approved design."""

    model_config = CLOSED

    id: Identifier
    text: Text


class LandRelease(BaseModel):
    """What a release fixes about work that was landed as a head of its own."""

    model_config = CLOSED

    head: CommitId
    tree: CommitId
    base: CommitId
    slice: Text
    criteria: tuple[Text, ...]


class PlannedNode(BaseModel):
    """One unit of work with its own acceptance."""

    model_config = CLOSED

    id: Identifier
    issue: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    slice: Text
    criteria: tuple[Text, ...]
    design: str = ""
    decisions: tuple[Identifier, ...] = ()
    base: Annotated[str, Field(min_length=1, max_length=200)]
    land: LandRelease | None = None

    @property
    def criteria_digest(self) -> str:
        """The digest that an acceptance has to name."""
        return digest_object(list(self.criteria))


class QaOrder(BaseModel):
    """What is run in the capture's worktree before the capture begins."""

    model_config = CLOSED

    argv: Argv


class MilestoneInput(BaseModel):
    """The closed object of section 2."""

    model_config = CLOSED

    plan: Identifier
    id: Identifier
    repository: Annotated[str, Field(pattern=r"^/[^\u0000]*$", max_length=4000)]
    target: Annotated[str, Field(min_length=1, max_length=200)]
    base: Annotated[str, Field(min_length=1, max_length=200)]
    grade: Annotated[str, Field(pattern=r"^C[0-9]$")] | None = None
    criteria: tuple[Text, ...] = Field(min_length=1, max_length=512)
    surfaces: dict[str, Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]] = {}
    delivery_criteria: tuple[DeliveryEntry, ...] = ()
    decisions: tuple[Decision, ...] = ()
    required: tuple[Argv, ...] = ()
    nodes: tuple[PlannedNode, ...] = ()
    qa: QaOrder | None = None
    research_limit: int = Field(default=2, ge=0, le=100)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        decisions = {decision.id for decision in self.decisions}
        if len(decisions) != len(self.decisions):
            raise RuleBroken("Two decisions have one id.")
        if any(_CRITERION.fullmatch(each) for each in decisions):
            raise RuleBroken("A decision has an id of the form c1; such ids belong to criteria.")
        if len({node.id for node in self.nodes}) != len(self.nodes):
            raise RuleBroken("Two nodes have one id.")
        if any(not set(node.decisions) <= decisions for node in self.nodes):
            raise RuleBroken("A node refers to a decision that is not among the decisions.")
        if not set(self.surfaces) <= set(self.criterion_ids):
            raise RuleBroken("A surface is given for a criterion that does not exist.")
        if len(set(self.required)) != len(self.required):
            raise RuleBroken("A required command is named twice.")
        return self

    @property
    def criterion_ids(self) -> tuple[str, ...]:
        """`c1`, `c2`, … by position."""
        return tuple(f"c{number}" for number in range(1, len(self.criteria) + 1))

    @property
    def read_grade(self) -> str:
        """The grade, or how one that nobody gave is read."""
        return self.grade or UNKNOWN_GRADE

    @property
    def needs_qa(self) -> bool:
        """Whether a criterion has a surface that QA looks at."""
        return not QA_SURFACES.isdisjoint(self.surfaces.values())

    def node(self, node_id: str) -> PlannedNode | None:
        """The node of an id."""
        return next((node for node in self.nodes if node.id == node_id), None)


@dataclass(frozen=True, slots=True)
class PinnedInput:
    """An input and the digest that a run is bound to.

    Attributes:
        value: what it says.
        digest: of the document, however it was spaced.
        line: the bytes that the run keeps.
    """

    value: MilestoneInput
    digest: str
    line: bytes


def read_input(data: bytes) -> PinnedInput:
    """Read `milestone.json`.

    Raises:
        MilestoneError: `input_invalid`, with the first misfit's JSON pointer and reason.
    """
    try:
        value: Any = read_json(data, Profile.DOCUMENT, want_object=True)
        model = validate(MilestoneInput, value)
    except EvidenceError as error:
        raise MilestoneError(MilestoneCode.INPUT_INVALID, misfit(error)) from None
    return PinnedInput(model, digest_object(value), dump_line(value))


def misfit(error: AnyFault) -> str:
    """The pointer and the reason of the first fault, on one line."""
    first = error.faults[0]
    return f"{first.where or '/'} {first.sentence.rstrip('.')}"
