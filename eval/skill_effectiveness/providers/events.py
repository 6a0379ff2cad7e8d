"""What provider programs say, as typed events that name no vendor.

Source: providers.md P5.

Every line of a stream becomes at least one event: what an adapter does not know is `Unknown`, what cannot be
read is `Unreadable`, and where reading stopped there is a `Flood`. Texts that come from a model or a server
are kept out of `repr`, so that no trace shows them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from skill_effectiveness.providers.calls import ProviderErrorKind
    from skill_effectiveness.providers.usage import Usage


@dataclass(frozen=True, slots=True)
class SessionStarted:
    """A session has begun under an id of the provider's."""

    session_id: str


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The model is asked; whatever was complete before no longer is."""


@dataclass(frozen=True, slots=True)
class TurnCompleted:
    """The terminal marker: a turn is over and whole. Counters are those of the session so far."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """A turn is over without a result.

    Attributes:
        message: what the provider says of it.
        kind: the kind of trouble, where the provider tells it by a word or a number of its own beside the
            message; `None` leaves it to the message.
    """

    message: str = field(repr=False)
    kind: ProviderErrorKind | None = None


@dataclass(frozen=True, slots=True)
class Declined:
    """The model would not answer, by the provider's own word for that; never guessed from a text."""


@dataclass(frozen=True, slots=True)
class AnswerInvalid:
    """The program itself says that what the model gave as its answer is not of the asked form."""

    message: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SurfaceDiffers:
    """The session is not the one that was asked for: its tools, skills, agent, servers or permissions.

    Attributes:
        what: what differs, for the private log.
    """

    what: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A turn is over and whole, and whatever text it had is no answer (ending `no_answer`).

    Attributes:
        reason: the provider's word for why, such as the reason of its last step.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Message:
    """A finished message of the model."""

    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The model thought aloud."""

    text: str = field(repr=False)


class NoticeKind(StrEnum):
    """How grave trouble is that was told.

    `remark`: beside the work. `retry`: the program tries again. `error`: without a word about what follows.
    """

    REMARK = "remark"
    RETRY = "retry"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Notice:
    """Trouble that was told and is not final by itself (providers.md P11)."""

    kind: NoticeKind
    message: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ModelReported:
    """The provider names the model that answers."""

    model: str


@dataclass(frozen=True, slots=True)
class ToolActivity:
    """The model used a tool, or wanted to.

    Attributes:
        kind: the provider's word for the item.
        succeeded: whether it ran or read something and ended well; `None`: it is not over, or the provider
            does not tell. Two signs of one tool are the same sign, however it ended.
    """

    kind: str
    succeeded: bool | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class SkillRead:
    """A command named the file of a skill: an observation, never proof that the skill was used.

    Attributes:
        skill: the name of the folder that holds the file.
    """

    skill: str


@dataclass(frozen=True, slots=True)
class Progress:
    """A known event that changes nothing, such as the beginning of a message."""

    kind: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """An event of a type that the adapter does not know."""

    kind: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A line that is not what the provider's program prints.

    Attributes:
        data: the line as it came, without loss (field-failures.md F18).
        reason: a closed word: a code of `evidence.faults.StrictCode`, or `shape` when JSON lacks what its
            type promises.
    """

    data: bytes = field(repr=False)
    reason: str


@dataclass(frozen=True, slots=True)
class Flood:
    """The stream was given up here, because it has more lines than a call may print."""


Event: TypeAlias = (
    SessionStarted
    | TurnStarted
    | TurnCompleted
    | TurnFailed
    | Declined
    | AnswerInvalid
    | SurfaceDiffers
    | Unanswered
    | Message
    | Reasoning
    | Notice
    | ModelReported
    | ToolActivity
    | SkillRead
    | Progress
    | Unknown
    | Unreadable
    | Flood
)
