"""Claude: what a recording shows of skill calls (driver `claude-code`).

Source: controls.md section 8; providers.md section 7; field-failures.md F34.

A call is a content block `tool_use` named `Skill`, with the skill's namespaced name in `input.skill`, or
`Task`; whether it was completed says a `tool_result` block with the same id, wherever in the stream that
stands. The whole stream is scanned, whatever other tools come first. A prompt that begins with a skill's name
expands without any event, and no extractor can see that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.faults import StrictError
from skill_effectiveness.evidence.strict import read_json
from skill_effectiveness.providers.calls import CallKind
from skill_effectiveness.providers.skill_rows import SkillCall, TaskCall, skill_events_row
from skill_effectiveness.providers.stream import BOUNDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.protocol.event_rows import SkillEventsRow
    from skill_effectiveness.providers.recording import Recording
    from skill_effectiveness.providers.skill_rows import Call

DRIVER: Final = "claude-code"
SKILL_TOOL: Final = "Skill"
_TASK_TOOL: Final = "Task"


def skill_events(recording: Recording) -> SkillEventsRow:
    """The skill events of one recording; a line that cannot be read makes the row unverifiable."""
    scan = _Scan()
    for line in recording.lines:
        scan.take(line)
    half = not recording.stdout.endswith(b"\n") and recording.stdout != b""
    return skill_events_row(DRIVER, scan.calls(), gap=scan.gap or half)


class _Scan:
    """Calls in order of appearance and results by id, of a stream read to its end."""

    def __init__(self) -> None:
        self.gap = False
        self._calls: list[tuple[str, str | None, str | None]] = []
        self._seen: set[tuple[str, str]] = set()
        self._results: dict[str, bool] = {}

    def take(self, line: bytes) -> None:
        """Take in one line."""
        try:
            document = read_json(line, BOUNDS[CallKind.WORK].line, want_object=True)
        except StrictError:
            self.gap = True
            return
        if not isinstance(document, dict):
            return
        message = document.get("message")
        if not isinstance(message, dict):
            return
        for block in _blocks(message):
            if document.get("type") == "assistant":
                self._used(block, message.get("id"))
            elif document.get("type") == "user":
                self._answered(block, document.get("tool_use_result"))

    def _used(self, block: Mapping[str, JsonValue], message: JsonValue) -> None:
        name, call = block.get("name"), _text(block.get("id"))
        if block.get("type") != "tool_use" or name not in (SKILL_TOOL, _TASK_TOOL):
            return
        # A message is printed again as it grows; the same call in it is the same call.
        if isinstance(message, str) and call is not None:
            if (message, call) in self._seen:
                return
            self._seen.add((message, call))
        given = block.get("input")
        skill = _text(given.get("skill")) if isinstance(given, dict) else None
        self._calls.append((str(name), skill, call))

    def _answered(self, block: Mapping[str, JsonValue], told: JsonValue) -> None:
        call = block.get("tool_use_id")
        if block.get("type") != "tool_result" or not isinstance(call, str):
            return
        denied = isinstance(told, dict) and told.get("success") is False
        well = block.get("is_error", False) is False and not denied
        self._results[call] = self._results.get(call, True) and well

    def calls(self) -> Iterator[Call]:
        """Every call, with what came of it."""
        for name, skill, call in self._calls:
            if name == _TASK_TOOL:
                yield TaskCall()
            else:
                yield SkillCall(skill, call, self._results.get(call or "", False))


def _blocks(message: Mapping[str, JsonValue]) -> Iterator[Mapping[str, JsonValue]]:
    content = message.get("content")
    for block in content if isinstance(content, list) else []:
        if isinstance(block, Mapping):
            yield block


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None
