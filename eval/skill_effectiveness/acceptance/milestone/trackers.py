"""Where issues and tracking milestones are read: `gh`, or a file of their states. Neither can write.

Source: milestone.md, section 11.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from skill_effectiveness.acceptance.milestone.delivery import Tracked
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.execution import Ended, Limits, run_process
from skill_effectiveness.execution.programs import find_tool

if TYPE_CHECKING:
    from skill_effectiveness.acceptance.milestone.configuration import TrackerSettings
    from skill_effectiveness.evidence.surroundings import Surroundings

SECONDS: Final = 60.0
FILE_BYTES: Final = 16_777_216
_ANSWER_BYTES: Final = 1_048_576
UNREAD: Final = Tracked(None)


class Tracker(Protocol):
    """What a tracker is asked; there is no verb that writes."""

    def issue(self, ref: str) -> Tracked:
        """The state of an issue `OWNER/NAME#N`, and the reason of a closed one."""

    def milestone(self, ref: str) -> Tracked:
        """The state of a tracking milestone `OWNER/NAME#N`."""


class FileTracker:
    """A file `{"issues": {"OWNER/NAME#N": {"state", "reason"?}}, "milestones": {…: {"state"}}}`."""

    def __init__(self, path: Path, around: Surroundings) -> None:
        self._path = path
        self._around = around

    def issue(self, ref: str) -> Tracked:
        """See `Tracker`."""
        return self._entry("issues", ref)

    def milestone(self, ref: str) -> Tracked:
        """See `Tracker`."""
        return self._entry("milestones", ref)

    def _entry(self, kind: str, ref: str) -> Tracked:
        try:
            value: Any = read_json(
                read_public(self._around.fs, self._path, FILE_BYTES), Profile.DOCUMENT, want_object=True
            )
        except EvidenceError:
            return UNREAD
        listed = value.get(kind)
        return _tracked(listed.get(ref) if isinstance(listed, dict) else None, "reason")


class GhTracker:
    """The command line `gh`, asked by GET alone."""

    def __init__(self, around: Surroundings, folder: Path) -> None:
        self._around = around
        self._folder = folder

    def issue(self, ref: str) -> Tracked:
        """See `Tracker`."""
        return self._get(ref, "issues")

    def milestone(self, ref: str) -> Tracked:
        """See `Tracker`."""
        return self._get(ref, "milestones")

    def _get(self, ref: str, kind: str) -> Tracked:
        program = find_tool("gh", self._around)
        if program is None:
            return UNREAD
        name, _, number = ref.partition("#")
        said: list[bytes] = []

        def keep(line: bytes) -> bool:
            said.append(line)
            return False

        result = run_process(
            [str(program), "api", "--method", "GET", f"repos/{name}/{kind}/{number}"],
            cwd=self._folder,
            env={**self._around.environ, "GH_PROMPT_DISABLED": "1", "NO_COLOR": "1"},
            stdin=b"",
            limits=Limits(SECONDS, line_bytes=_ANSWER_BYTES, stdout_bytes=_ANSWER_BYTES),
            on_line=keep,
            around=self._around,
        )
        if result.ended is not Ended.EXITED or result.exit_code != 0:
            return UNREAD
        try:
            value = read_json(b"\n".join((*said, result.unterminated)), Profile.DOCUMENT, want_object=True)
        except EvidenceError:
            return UNREAD
        return _tracked(value, "state_reason")


def _tracked(value: object, reason: str) -> Tracked:
    state = value.get("state") if isinstance(value, dict) else None
    if not isinstance(value, dict) or state not in ("open", "closed"):
        return UNREAD
    why = value.get(reason)
    return Tracked(str(state), why if isinstance(why, str) else None)


def tracker_of(settings: TrackerSettings, around: Surroundings, folder: Path) -> Tracker:
    """The tracker of a configuration.

    Args:
        settings: of the configuration.
        around: the surroundings.
        folder: where `gh` runs, absolute.
    """
    if settings.kind == "file" and settings.path is not None:
        return FileTracker(Path(settings.path), around)
    return GhTracker(around, folder)
