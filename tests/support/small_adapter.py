"""The smallest adapter there is, of a fake program, and a place to ask it in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from skill_effectiveness.providers import CallKind, JudgeCall, ProviderErrorKind, ReadCall, WorkCall
from skill_effectiveness.providers.classification import ProviderVocabulary
from skill_effectiveness.providers.command_line import (
    Aftermath,
    Asked,
    CallSession,
    CannotAskError,
    CommandLine,
    Login,
    StreamReader,
    Told,
)
from skill_effectiveness.providers.events import (
    Message,
    SessionStarted,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
)
from skill_effectiveness.providers.usage import UNKNOWN_USAGE
from tests.support.fake_program import write_fake
from tests.support.leavings import nothing_left
from tests.support.provider_calls import question, surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from skill_effectiveness.providers import CallOutcome
    from skill_effectiveness.providers.events import Event
    from skill_effectiveness.providers.stream import Document

VOCABULARY = ProviderVocabulary(lambda _: ProviderErrorKind.OTHER, lambda _: None)
DECLARED: dict[str, Any] = {
    "name": "small",
    "family": None,
    "session_label": "s",
    "tool_label": "t",
    "json_fence": False,
    "call_kinds": frozenset({CallKind.JUDGE}),
    "session_variables": {"HOME": "{home}", "TMPDIR": "{tmp}"},
    "own_keys": (),
    "vocabulary": VOCABULARY,
}


def read_event(document: Document, line: bytes) -> list[Event]:
    """`{"answer": text}` is a whole good session."""
    del line
    if "fail" in document:
        return [TurnFailed("failed")]
    return [
        SessionStarted("s-1"),
        TurnStarted(),
        Message(str(document["answer"])),
        TurnCompleted(UNKNOWN_USAGE),
    ]


class Small(CommandLine):
    """An adapter of everything that the shell offers."""

    name: ClassVar[str] = "small"
    family: ClassVar[str | None] = None
    session_label: ClassVar[str] = "s"
    tool_label: ClassVar[str] = "t"
    json_fence: ClassVar[bool] = False
    call_kinds: ClassVar[frozenset[CallKind]] = frozenset(CallKind)
    session_variables: ClassVar[Mapping[str, str]] = {
        "HOME": "{home}",
        "SMALL_HOME": "{config}/small",
        "SMALL_DATA": "{data}",
        "TMPDIR": "{tmp}",
        "SMALL_SETTING": '{"on": 1}',
        "SMALL_MODE": "",
    }
    own_keys: ClassVar[tuple[str, ...]] = ("SMALL_API_KEY",)
    vocabulary: ClassVar[ProviderVocabulary] = VOCABULARY

    after: Callable[[Aftermath], Told] = staticmethod(lambda _: Told())
    writable: tuple[Path, ...] | None = None
    cannot: CannotAskError | None = None
    linked: tuple[Login, ...] = ()

    @classmethod
    def logins(cls, environ: Mapping[str, str]) -> tuple[Login, ...]:
        del environ
        return cls.linked

    def to_judge(self, call: JudgeCall, session: CallSession) -> Asked:
        if self.cannot is not None:
            raise self.cannot
        return self.asked(call.prompt, session.folders.work, "judge")

    def to_read(self, call: ReadCall, session: CallSession) -> Asked:
        del session
        return self.asked(call.prompt, call.checkout, "read")

    def to_work(self, call: WorkCall, session: CallSession) -> Asked:
        del session
        return self.asked(call.prompt, call.working_copy, "work")

    def asked(self, prompt: str, folder: Path, mode: str) -> Asked:
        return Asked(
            [str(self.executable.path), mode],
            folder,
            StreamReader(read_event),
            stdin=prompt.encode(),
            environment={"SMALL_MODE": mode},
            writable=self.writable,
        )

    def told_after(self, after: Aftermath) -> Told:
        return self.after(after)


GOOD = "prompt = sys.stdin.buffer.read()\nsay({'answer': 'yes'})\n"


class Place:
    """A program, its adapter and surroundings of the test's own."""

    def __init__(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path
        self.folder = tmp_path / "folder"
        self.folder.mkdir()
        self.around = surroundings(tmp_path, SMALL_API_KEY="own-key", OTHER_API_KEY="foreign-canary")

    def small(self, body: str = GOOD) -> Small:
        path = write_fake(self.tmp_path / "program", body, folder=str(self.tmp_path))
        return Small.at(path, around=self.around)

    def ask(self, small: Small, kind: CallKind = CallKind.JUDGE, *, seconds: float = 20) -> CallOutcome:
        match kind:
            case CallKind.JUDGE:
                outcome = small.judge(question(seconds=seconds), around=self.around)
            case CallKind.READ:
                outcome = small.read(
                    ReadCall("Look.", self.folder, "fake-model", seconds), around=self.around
                )
            case CallKind.WORK:
                outcome = small.work(
                    WorkCall("Mend.", self.folder, "fake-model", seconds), around=self.around
                )
        nothing_left(self.around)
        return outcome
