"""A fake of claude that misbehaves on purpose, and calls of every kind to ask it with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skill_effectiveness.providers import CallKind, JudgeCall, Mount, ReadCall, WorkCall
from skill_effectiveness.providers.claude import ClaudeProvider
from tests.support.claude_streams import GOOD, MODEL, init, result
from tests.support.fake_program import write_fake
from tests.support.provider_calls import SCHEMA, left_behind, surroundings

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.providers import CallOutcome

READ_TOOLS = ["Bash", "Read", "Grep", "Glob"]
WORK_TOOLS = [*READ_TOOLS, "Edit", "Write"]


def write_claude(tmp_path: Path, body: str, **constants: object) -> Path:
    """A fake that reads its prompt first.

    It finds a good judge stream as `good` and the test's folder as `folder`; for other kinds of call the
    first event as `reading` and `working`, and a free text as `done`.
    """
    given: dict[str, object] = {
        "good": GOOD,
        "folder": str(tmp_path),
        "reading": init(tools=READ_TOOLS),
        "working": init(tools=WORK_TOOLS, permissionMode="acceptEdits"),
        "done": result(result="Done."),
    }
    reads = "prompt = sys.stdin.buffer.read()\n"
    return write_fake(tmp_path / "claude", reads + body, **(given | constants))


def call_of(
    kind: CallKind, folder: Path, *, prompt: str = "Which?", seconds: float = 20, mount: Mount | None = None
) -> JudgeCall | ReadCall | WorkCall:
    """A call of one kind; those that read or work do so in the folder, and want free text."""
    if kind is CallKind.JUDGE:
        return JudgeCall(prompt, SCHEMA, MODEL, seconds)
    if kind is CallKind.READ:
        return ReadCall(prompt, folder, MODEL, seconds)
    return WorkCall(prompt, folder, MODEL, seconds, mount=mount)


def put(provider: ClaudeProvider, call: JudgeCall | ReadCall | WorkCall, around: Surroundings) -> CallOutcome:
    """Put a call of any kind; nothing of its session is left afterwards."""
    if isinstance(call, JudgeCall):
        outcome = provider.judge(call, around=around)
    elif isinstance(call, ReadCall):
        outcome = provider.read(call, around=around)
    else:
        outcome = provider.work(call, around=around)
    assert left_behind(around) == []
    return outcome


def asked(
    tmp_path: Path, body: str, *, kind: CallKind = CallKind.JUDGE, seconds: float = 20, **constants: object
) -> CallOutcome:
    """One call of the fake from its start to its end."""
    around = surroundings(tmp_path)
    folder = tmp_path / "folder"
    folder.mkdir()
    provider = ClaudeProvider.at(write_claude(tmp_path, body, **constants), around=around)
    return put(provider, call_of(kind, folder, seconds=seconds), around)
