"""The policy document as parsed, and the items it resolves to.

Source: closeout.md, sections 4 to 6. Two kinds of record: what a file says (`PolicyDocument`), and what is
required once imports are resolved (`Resolved…`, with qualified ids, in execution order).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from skill_effectiveness.acceptance.closeout.words import Severity

if TYPE_CHECKING:
    from pydantic.config import JsonDict

    from skill_effectiveness.evidence.strict import JsonValue

SLUG: Final = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$"
IMPORTS_MOST: Final = 64
ITEMS_MOST: Final = 128

Gate = Literal["beforePR"]
Edition = Literal["0.1"]
Slug = Annotated[str, Field(pattern=SLUG)]


def optional(schema: JsonDict) -> None:
    """Take the default out of a member's schema: absent is absent, and no value stands for it."""
    schema.pop("default", None)


class ClosedModel(BaseModel):
    """Base of the documents of this room: no unknown field, no conversion, no change after loading."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ImportEntry(ClosedModel):
    """One import: a file of the same repository, and the namespace of its requirements."""

    # The path rules have messages of their own (section 3) and are checked after the schema.
    path: str
    name: Slug = Field(alias="as")


class CommandItem(ClosedModel):
    """A program that has to exit with 0 at the candidate commit."""

    id: Slug
    kind: Literal["command"]
    gate: Gate
    exec: tuple[Annotated[str, Field(min_length=1, max_length=4096)], ...] = Field(
        min_length=1, max_length=32
    )
    timeoutSeconds: int = Field(ge=1, le=86_400)  # noqa: N815 - the document's own spelling


class Independence(ClosedModel):
    """What has to differ between reviewer and candidate."""

    differentSession: bool  # noqa: N815 - the document's own spelling
    differentModel: bool  # noqa: N815 - the document's own spelling


class ReviewItem(ClosedModel):
    """A review by a skill, whose findings must stay below a severity."""

    id: Slug
    kind: Literal["review"]
    gate: Gate
    skill: str
    independence: Independence
    failOn: Severity  # noqa: N815 - the document's own spelling


class PolicyDocument(ClosedModel):
    """One policy file."""

    specVersion: Edition  # noqa: N815 - the document's own spelling
    description: str = Field(default="", min_length=1, max_length=500, json_schema_extra=optional)
    imports: tuple[ImportEntry, ...] = Field(default=(), max_length=IMPORTS_MOST)
    items: tuple[Annotated[CommandItem | ReviewItem, Field(discriminator="kind")], ...] = Field(
        default=(), max_length=ITEMS_MOST
    )


@dataclass(frozen=True, slots=True)
class ResolvedCommand:
    """A required command under its qualified id; see `CommandItem`."""

    id: str
    gate: str
    exec: tuple[str, ...]
    timeout_seconds: int
    kind: str = "command"

    def identity(self) -> dict[str, JsonValue]:
        """The object that stands for it in the policy identity (section 6)."""
        return {
            "id": self.id,
            "kind": self.kind,
            "gate": self.gate,
            "exec": list(self.exec),
            "timeoutSeconds": self.timeout_seconds,
        }


@dataclass(frozen=True, slots=True)
class ResolvedReview:
    """A required review under its qualified id; see `ReviewItem`."""

    id: str
    gate: str
    skill: str
    different_session: bool
    different_model: bool
    fail_on: Severity
    kind: str = "review"

    def identity(self) -> dict[str, JsonValue]:
        """The object that stands for it in the policy identity (section 6)."""
        independence: dict[str, JsonValue] = {
            "differentSession": self.different_session,
            "differentModel": self.different_model,
        }
        return {
            "id": self.id,
            "kind": self.kind,
            "gate": self.gate,
            "skill": self.skill,
            "independence": independence,
            "failOn": self.fail_on.value,
        }


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A required item of a kind that this edition does not know; built in code only, and it blocks."""

    id: str
    gate: str
    kind: str

    def identity(self) -> dict[str, JsonValue]:
        """The object that stands for it in the policy identity (section 6)."""
        return {"id": self.id, "kind": self.kind, "gate": self.gate, "supported": False}


ResolvedItem: TypeAlias = ResolvedCommand | ResolvedReview | Unsupported


def resolved(item: CommandItem | ReviewItem, prefix: str) -> ResolvedCommand | ResolvedReview:
    """The item under its qualified id; an empty prefix is that of the entry file."""
    qualified = f"{prefix}/{item.id}" if prefix else item.id
    if isinstance(item, CommandItem):
        return ResolvedCommand(qualified, item.gate, item.exec, item.timeoutSeconds)
    wanted = item.independence
    return ResolvedReview(
        qualified, item.gate, item.skill, wanted.differentSession, wanted.differentModel, item.failOn
    )
