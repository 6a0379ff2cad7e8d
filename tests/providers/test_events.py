"""Typed events: nothing of a vendor in them, nothing of a text in a trace."""

from __future__ import annotations

import dataclasses
from typing import get_args

import pytest

from skill_effectiveness.providers import Usage
from skill_effectiveness.providers.events import (
    AnswerInvalid,
    Declined,
    Event,
    Flood,
    Message,
    ModelReported,
    Notice,
    NoticeKind,
    Progress,
    Reasoning,
    SessionStarted,
    SkillRead,
    SurfaceDiffers,
    ToolActivity,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
    Unanswered,
    Unknown,
    Unreadable,
)

EVERY: list[Event] = [
    SessionStarted("s-1"),
    TurnStarted(),
    TurnCompleted(Usage()),
    TurnFailed("canary"),
    Declined(),
    AnswerInvalid("canary"),
    SurfaceDiffers("canary"),
    Unanswered("reason"),
    Message("canary"),
    Reasoning("canary"),
    Notice(NoticeKind.RETRY, "canary"),
    ModelReported("model"),
    ToolActivity("kind"),
    SkillRead("name"),
    Progress("kind"),
    Unknown("kind"),
    Unreadable(b"canary", "shape"),
    Flood(),
]


def test_every_event_is_one_of_these() -> None:
    """P5: the union that classification reads is closed."""
    assert [type(event) for event in EVERY] == list(get_args(Event))


@pytest.mark.parametrize("event", EVERY, ids=lambda event: type(event).__name__)
def test_texts_of_models_and_servers_do_not_show_in_a_trace(event: Event) -> None:
    """P7: they are for the private log alone."""
    assert "canary" not in repr(event)


@pytest.mark.parametrize("event", EVERY, ids=lambda event: type(event).__name__)
def test_an_event_stays_what_it_was(event: Event) -> None:
    """P5: the record of a call cannot be changed afterwards."""
    assert event == dataclasses.replace(event)
    for field in dataclasses.fields(event):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(event, field.name, "other")


def test_the_grades_of_trouble_are_closed() -> None:
    """P11: a remark, a retry, or an error without a word about what follows."""
    assert [kind.value for kind in NoticeKind] == ["remark", "retry", "error"]
