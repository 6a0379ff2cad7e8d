"""What two sessions are asked about a canary, and what their answers show.

Source: providers.md section 6; trials.md section 8.

The first session is handed a canary and must give it back. The second is asked for any canary it knows, in a
prompt that holds none. Both are judged here, from what came back; nothing is read leniently:

| what came back | |
|---|---|
| any ending but success, a sign of a tool, an event nobody knows, a message that is too long | no report |
| the canary of the first session anywhere in the second, in any form listed at `names` | recalled |
| an answer whose value is text of the form of a canary | recalled: it may be of an earlier probe |
| exactly the word `none` | nothing recalled |
| anything else | no report: neither a recall nor its absence was shown |
"""

from __future__ import annotations

import base64
import re
import unicodedata
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from skill_effectiveness.providers.calls import Ending
from skill_effectiveness.providers.errors import ReplyError
from skill_effectiveness.providers.events import (
    Flood,
    Message,
    Notice,
    Reasoning,
    ToolActivity,
    Unknown,
    Unreadable,
)
from skill_effectiveness.providers.replies import one_json_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.providers.calls import CallOutcome

CANARY_BYTES: Final = 32
LONGEST_MESSAGE: Final = 512
"""Characters; an answer of the asked form has fewer than a hundred."""
NOTHING: Final = "none"

SEED_KEY: Final = "canary"
RECALL_KEY: Final = "recalled_canary"

_SEED: Final = (
    "This is a check of isolation between sessions. Use no tool. Answer with one JSON object alone. "
    'Its only member is "{key}", and its value is this text, character by character: {canary}'
)
_RECALL: Final = (
    "This is a check of isolation between sessions. Use no tool. Answer with one JSON object alone. "
    'Its only member is "{key}". If you know a canary, which is a text of 64 hexadecimal digits that another '
    "session was given, the value is that canary. If you know none, the value is the word {nothing}."
)


class ProbeCode(StrEnum):
    """Why a probe ends without a report."""

    PROVIDER_NOT_PROBED = "provider_not_probed"
    INVALID_PROBE = "invalid_probe"
    ALREADY_CLAIMED = "already_claimed"
    FOLDER_OCCUPIED = "folder_occupied"
    CALL_FAILED = "call_failed"
    TOOL_ACTIVITY = "tool_activity"
    EVENT_UNKNOWN = "event_unknown"
    MESSAGE_TOO_LONG = "message_too_long"
    SEED_NOT_ACKNOWLEDGED = "seed_not_acknowledged"
    RECALL_NOT_TEXT = "recall_not_text"
    RECALL_UNCLEAR = "recall_unclear"
    SESSIONS_NOT_INDEPENDENT = "sessions_not_independent"
    EXECUTABLE_CHANGED = "executable_changed"
    PROBE_CANCELLED = "probe_cancelled"


class ProbeRefused(Exception):  # noqa: N818 - a refusal is an answer, not a defect
    """A probe that leaves no report.

    Attributes:
        code: the closed word.
    """

    def __init__(self, code: ProbeCode, sentence: str) -> None:
        self.code = code
        super().__init__(sentence)


@dataclass(frozen=True, slots=True)
class Recall:
    """What the second session shows.

    Attributes:
        named: the canary of the probe where that was named, another value of its form where that was;
            `None` where nothing was.
    """

    named: str | None = field(repr=False)


def seed_prompt(canary: str) -> str:
    """What the first session is asked; the only text that ever holds the canary."""
    return _SEED.format(key=SEED_KEY, canary=canary)


def recall_prompt() -> str:
    """What the second session is asked."""
    return _RECALL.format(key=RECALL_KEY, nothing=NOTHING)


def schema_of(key: str) -> Mapping[str, object]:
    """JSON Schema of an answer whose only member is a text."""
    return MappingProxyType(
        {
            "type": "object",
            "properties": {key: {"type": "string"}},
            "required": [key],
            "additionalProperties": False,
        }
    )


def demand_audited(outcome: CallOutcome) -> str:
    """The answer of a session in whose stream nothing but short messages was seen.

    Raises:
        ProbeRefused: `tool_activity` before anything else; `call_failed`, `probe_cancelled`, `event_unknown`,
            `message_too_long`. The sentence holds nothing that a program or a model said.
    """
    seen = outcome.events
    if outcome.ending is Ending.TOOL_ACTIVITY or any(isinstance(event, ToolActivity) for event in seen):
        raise _refused(ProbeCode.TOOL_ACTIVITY, "a session used a tool, or wanted to")
    if outcome.ending is Ending.CANCELLED:
        raise _refused(ProbeCode.PROBE_CANCELLED, "the probe was stopped")
    if outcome.ending is not Ending.SUCCESS or outcome.answer is None:
        detail = outcome.error_kind or outcome.limit
        told = f"{outcome.ending}:{detail}" if detail else str(outcome.ending)
        raise _refused(ProbeCode.CALL_FAILED, f"a session ended with {told}")
    if any(isinstance(event, Unknown | Unreadable | Flood) for event in seen):
        raise _refused(ProbeCode.EVENT_UNKNOWN, "a session showed an event that the adapter does not know")
    if any(len(text) > LONGEST_MESSAGE for text in (outcome.answer, *_messages(outcome))):
        raise _refused(
            ProbeCode.MESSAGE_TOO_LONG, f"a session wrote a message of over {LONGEST_MESSAGE} characters"
        )
    return outcome.answer


def demand_acknowledged(answer: str, canary: str, *, json_fence: bool) -> None:
    """Return only if the first session gave exactly the canary back.

    Raises:
        ProbeRefused: `seed_not_acknowledged`.
    """
    if _object_in(answer, json_fence=json_fence) != {SEED_KEY: canary}:
        raise _refused(ProbeCode.SEED_NOT_ACKNOWLEDGED, "the first session did not give the canary back")


def recall_of(outcome: CallOutcome, canary: str, *, json_fence: bool) -> Recall:
    """What an audited second session recalls.

    Raises:
        ProbeRefused: `recall_not_text`, `recall_unclear`.
    """
    answer = outcome.answer or ""
    given = _object_in(answer, json_fence=json_fence)
    value = given.get(RECALL_KEY, "")
    if not isinstance(value, str):
        raise _refused(ProbeCode.RECALL_NOT_TEXT, "the second session answered with what is no text")
    # The value by itself too: escapes of JSON would stand between its digits.
    if any(names(text, canary) for text in (value, answer, *_texts(outcome))):
        return Recall(canary)
    if given.keys() != {RECALL_KEY}:
        raise _refused(ProbeCode.RECALL_UNCLEAR, "the second session's answer is not of the asked form")
    if other := like_a_canary(value):
        return Recall(other)
    if value == NOTHING:
        return Recall(None)
    raise _refused(
        ProbeCode.RECALL_UNCLEAR, "the second session neither named a canary nor said that it knows none"
    )


def _object_in(answer: str, *, json_fence: bool) -> Mapping[str, JsonValue]:
    """The object that an answer is; without members where it is none."""
    try:
        return one_json_object(answer, allow_json_fence=json_fence)
    except ReplyError:
        return {}


FRAGMENT: Final = 16
"""Digits of a canary that do not stand together by chance: one text in 10^17 would."""


def names(text: str, canary: str) -> bool:
    """Whether a text names the canary, also in another form.

    Forms: the digits or any sixteen of them in a row, in either case, forwards or backwards, whatever that is
    no hexadecimal digit stands between them; base64 of the digits or of the bytes they mean, in both
    alphabets; the decimal number.
    """
    plain = unicodedata.normalize("NFKC", text)
    digits = re.sub(r"[^0-9a-f]", "", plain.casefold())
    parts = [canary[start : start + FRAGMENT] for start in range(len(canary) - FRAGMENT + 1)]
    if any(part in digits or part[::-1] in digits for part in parts):
        return True
    packed = re.sub(r"\s", "", plain)
    if any(form in packed for form in _encoded(canary)):
        return True
    return str(int(canary, 16)) in re.sub(r"[^0-9]", "", plain)


def like_a_canary(text: str) -> str | None:
    """The canary-like value in a text: 64 hexadecimal digits once case and separators are taken away."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    found = re.search(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])", re.sub(r"[\s:_.,-]", "", plain))
    return found[0] if found else None


def _encoded(canary: str) -> Iterable[str]:
    for data in (canary.encode(), canary.upper().encode(), bytes.fromhex(canary)):
        # The last characters depend on what follows, so they and the padding are left out.
        for encoder in (base64.b64encode, base64.urlsafe_b64encode):
            yield encoder(data).decode().rstrip("=")[:-1]


def _messages(outcome: CallOutcome) -> Iterable[str]:
    return (event.text for event in outcome.events if isinstance(event, Message))


def _texts(outcome: CallOutcome) -> Iterable[str]:
    """Everything that a session said, thoughts and notices included."""
    yield from _messages(outcome)
    for event in outcome.events:
        if isinstance(event, Reasoning):
            yield event.text
        elif isinstance(event, Notice):
            yield event.message


def _refused(code: ProbeCode, told: str) -> ProbeRefused:
    return ProbeRefused(code, f"No report: {told}. The folder is spent; probe again in a new one.")
