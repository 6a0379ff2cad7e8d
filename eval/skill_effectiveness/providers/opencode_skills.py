"""OpenCode: the skill events of a recording.

Source: controls.md section 8; providers.md sections 4 and 7.

A call and what came of it are one part, the same in the stream and in the export. The stream prints a part
when the tool has a result; the export also has those that never got one, in the order in which they were
asked for. So the export is read where there is one, and has to hold everything that was printed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from skill_effectiveness.evidence.faults import StrictError
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.providers.opencode_events import SUBAGENT_TOOL
from skill_effectiveness.providers.opencode_export import read_export
from skill_effectiveness.providers.skill_rows import SkillCall, TaskCall, skill_events_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.protocol.event_rows import SkillEventsRow
    from skill_effectiveness.providers.recording import Recording
    from skill_effectiveness.providers.skill_rows import Call
    from skill_effectiveness.providers.stream import Document

DRIVER: Final = "opencode"
_SKILL_TOOL: Final = "skill"
_COMPLETED: Final[Mapping[JsonValue, bool]] = {
    "completed": True,
    "error": False,
    # Asked for, and over before there was a result.
    "pending": False,
    "running": False,
}


def skill_events(recording: Recording) -> SkillEventsRow:
    """The row of one call's recording, whole or cut."""
    printed, gap = _printed(recording)
    if recording.export is None:
        return skill_events_row(DRIVER, calls_of(printed), gap=gap)
    export = read_export(recording.export)
    kept = [] if export is None else [part for message in export.messages for part in message.parts]
    missing = {_id(part) for part in printed} - {_id(part) for part in kept}
    return skill_events_row(DRIVER, calls_of(kept), gap=gap or export is None or bool(missing))


def calls_of(parts: Iterable[Document]) -> Iterator[Call]:
    """Skill calls and task calls among parts, in order."""
    for part in parts:
        if part.get("type") != "tool":
            continue
        if part.get("tool") == _SKILL_TOOL:
            yield _skill_call(part)
        elif part.get("tool") == SUBAGENT_TOOL:
            yield TaskCall()


def _skill_call(part: Document) -> SkillCall:
    told = part.get("state")
    state = told if isinstance(told, dict) else {}
    given = state.get("input")
    status = state.get("status")
    return SkillCall(
        skill=_text(given.get("name")) if isinstance(given, dict) else None,
        tool_use_id=_text(part.get("callID")),
        completed=_COMPLETED.get(status) if isinstance(status, str) else None,
    )


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None


def _printed(recording: Recording) -> tuple[list[Document], bool]:
    """The tools that a stream printed, and whether some of it cannot be read."""
    parts: list[Document] = []
    gap = not recording.stdout.endswith(b"\n") and bool(recording.stdout)
    for line in recording.lines:
        try:
            document = cast("Document", read_json(line, Profile.DOCUMENT, want_object=True))
        except StrictError:
            gap = True
            continue
        part = document.get("part")
        if document.get("type") == "tool_use":
            parts.append(part if isinstance(part, dict) else {})
            gap = gap or not isinstance(part, dict)
    return parts, gap


def _id(part: Document) -> str | None:
    return _text(part.get("id"))
