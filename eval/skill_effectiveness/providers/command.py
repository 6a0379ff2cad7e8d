"""The generic adapter: a program that has none of its own, asked by one argument and answering by a file.

Source: providers.md P14 and P13.

    settings = CommandSettings(("-m", "some-model", "{{prompt}}"), keys=("SOME_API_KEY",))
    provider = CommandProvider.configured(path, settings, around=around)

The words come from configuration, and exactly one of them is `{{prompt}}`. It is replaced by the prompt and a
paragraph that names the answer file, which lies in a private folder of the session. Whether there is an
answer is told by that file and by exit code 0; what the program prints is kept and never read.

Session, model, tools and usage are not observed, and nothing says otherwise: the outcome has no session id,
no model and unknown usage, and the labels are `not-observed`. The program runs in the user's real home, since
its login lives there, unless it is configured to have a private one; the outcome warns of the real one. A
read call runs in the sandbox of `execution` where there is one, and then the home can be read only, but for
the places that are configured. A work call runs as the user. What a program of which nothing is known would
make of an arm's skills and instructions is not known either, so it is given none.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Self

from skill_effectiveness.evidence.chunks import regular_file
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.fsops import closing, read_all
from skill_effectiveness.evidence.laying import lay_folder
from skill_effectiveness.providers.calls import (
    CallKind,
    CallWarning,
    ProviderErrorKind,
    SandboxKind,
    WarningCode,
)
from skill_effectiveness.providers.classification import ProviderVocabulary
from skill_effectiveness.providers.command_line import (
    Asked,
    CannotAskError,
    CommandLine,
    StreamReader,
    Told,
    prompt_argument,
)
from skill_effectiveness.providers.errors import ProviderCode, ProviderError
from skill_effectiveness.providers.events import AnswerInvalid, Event, Message, TurnCompleted, Unanswered
from skill_effectiveness.providers.usage import UNKNOWN_USAGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.execution import Executable
    from skill_effectiveness.providers.calls import ReadCall, WorkCall
    from skill_effectiveness.providers.command_line import Aftermath, CallSession

PROMPT_WORD: Final = "{{prompt}}"
ANSWER_BYTES: Final = 1_048_576
"""Largest answer file that is read."""

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OURS: Final = ("HOME", "TMPDIR")
_FOLDER: Final = "output"
_ANSWER: Final = "answer"


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """How a program without an adapter is called.

    Attributes:
        words: its arguments, exactly one of which is `{{prompt}}`; never a shell.
        keys: names of variables of the user's that it needs, passed on where they are set.
        private_home: whether it gets an empty home of the session's instead of the user's own.
        writable: what it must be able to write beside the session's folders when it is asked to read, such as
            a folder of its own in the home; absolute.

    Raises:
        ProviderError: `invalid_command`.
    """

    words: tuple[str, ...] = (PROMPT_WORD,)
    keys: tuple[str, ...] = ()
    private_home: bool = False
    writable: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        if self.words.count(PROMPT_WORD) != 1 or sum(PROMPT_WORD in word for word in self.words) != 1:
            raise _invalid(f"exactly one of its words must be {PROMPT_WORD}, and none may contain it.")
        if any("\0" in word for word in self.words):
            raise _invalid("one of its words holds a NUL, which no argument can.")
        if not all(_VARIABLE.fullmatch(name) and name not in _OURS for name in self.keys):
            raise _invalid(f"a variable to pass on has no name of a variable, or is {' or '.join(_OURS)}.")
        if not all(folder.is_absolute() for folder in self.writable):
            raise _invalid("a place that it may write is not named by an absolute path.")

    def argv(self, program: Path, prompt: str) -> list[str]:
        """The whole argument vector for one prompt."""
        return [str(program), *(prompt if word == PROMPT_WORD else word for word in self.words)]


def answer_request(file: Path, schema: bytes | None) -> str:
    """The paragraph behind a prompt that names the answer file, and the answer's form where it has one."""
    if schema is None:
        return f"\n\nWrite your answer as UTF-8 text to the file {file}. Nothing that you print is read.\n"
    return (
        f"\n\nWrite your answer to the file {file}, as one JSON object and nothing around it. "
        f"Nothing that you print is read. The object matches this JSON Schema:\n{schema.decode()}\n"
    )


def read_answer(fs: FileSystem, data: Path) -> list[Event]:
    """What the answer file in the session's data folder says, as events.

    No link is followed on the way, so that the answer is what lies in the session and nothing else.

    Raises:
        FileError: it may be there and cannot be read just now.
    """
    try:
        with ExitStack() as opened, reported(_ANSWER, reading=True):
            parent = opened.enter_context(closing(fs, fs.open_dir(None, str(data))))
            folder = opened.enter_context(closing(fs, fs.open_dir(parent, _FOLDER)))
            fd = opened.enter_context(regular_file(fs, folder, _ANSWER, _ANSWER))
            text = read_all(fs, fd, ANSWER_BYTES, _ANSWER).decode()
    except UnicodeDecodeError:
        return [AnswerInvalid("The answer file is not UTF-8.")]
    except FileError as error:
        if error.code is FileCode.MISSING:
            return [Unanswered("no answer file")]
        if error.code in _NO_ANSWER_FILE:
            return [AnswerInvalid(f"The answer file does not count ({error.code}).")]
        raise
    return [Message(text), TurnCompleted(UNKNOWN_USAGE)]


_NO_ANSWER_FILE: Final = frozenset(
    {FileCode.NOT_REGULAR, FileCode.FILE_SYMLINK, FileCode.NOT_READABLE, FileCode.FILE_SIZE}
)


class CommandProvider(CommandLine):
    """A program without an adapter, bound to its bytes and its version line.

    Attributes:
        settings: how it is called.
    """

    name: ClassVar[str] = "command"
    family: ClassVar[str | None] = None
    session_label: ClassVar[str] = "not-observed"
    tool_label: ClassVar[str] = "not-observed"
    json_fence: ClassVar[bool] = False
    confinable: ClassVar[bool] = False
    call_kinds: ClassVar[frozenset[CallKind]] = frozenset({CallKind.READ, CallKind.WORK})
    session_variables: ClassVar[Mapping[str, str]] = {"HOME": "{home}", "TMPDIR": "{tmp}"}
    own_keys: ClassVar[tuple[str, ...]] = ("USER", "LOGNAME")
    vocabulary: ClassVar[ProviderVocabulary] = ProviderVocabulary(
        error_kind=lambda _: ProviderErrorKind.OTHER, silent_kind=lambda _: None, by_file=True
    )

    def __init__(self, executable: Executable, settings: CommandSettings | None = None) -> None:
        super().__init__(executable)
        self.settings: Final = settings or CommandSettings()

    @classmethod
    def configured(cls, path: Path, settings: CommandSettings, *, around: Surroundings) -> Self:
        """Bind the program at an absolute path, as it is now, to how it is called.

        Raises:
            ExecutableError: see `identify`.
        """
        return cls(cls.at(path, around=around).executable, settings)

    def environment_keys(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        """See `Provider`."""
        return tuple(sorted({*super().environment_keys(environ), *self._own_variables(environ)}))

    def to_read(self, call: ReadCall, session: CallSession) -> Asked:
        """See `CommandLine`; the sandbox is all that keeps it from changing something."""
        prompt = call.prompt + self._answer_request(session, call.schema_bytes())
        return self._asked(prompt, call.checkout, session, writable=self.settings.writable)

    def to_work(self, call: WorkCall, session: CallSession) -> Asked:
        """See `CommandLine`."""
        if call.mount is not None and (call.mount.skills or call.mount.instructions is not None):
            sentence = "Nobody knows how this program could be given skills or instructions."
            raise CannotAskError(WarningCode.MOUNT_UNSUPPORTED, sentence)
        prompt = call.prompt + self._answer_request(session, call.schema_bytes())
        return self._asked(prompt, call.working_copy, session, writable=None)

    def told_after(self, after: Aftermath) -> Told:
        """See `CommandLine`: the answer file, if the program ended well."""
        home = after.asked.environment.get("HOME")
        warnings = () if home is None else (CallWarning(WarningCode.REAL_HOME),)
        if after.process.exit_code != 0:
            return Told(warnings=warnings)
        return Told(
            tuple(read_answer(after.session.around.fs, after.session.folders.data)), warnings=warnings
        )

    def _asked(
        self, prompt: str, folder: Path, session: CallSession, *, writable: tuple[Path, ...] | None
    ) -> Asked:
        return Asked(
            self.settings.argv(self.executable.path, prompt_argument(prompt)),
            folder,
            StreamReader(None),
            environment=self._own_variables(session.around.environ),
            sandbox=SandboxKind.UNCONFINED,
            writable=writable,
        )

    def _own_variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Variables of the user's that the configuration lets through."""
        passed = {name: environ[name] for name in self.settings.keys if environ.get(name)}
        home = "" if self.settings.private_home else environ.get("HOME", "")
        return passed | ({"HOME": home} if Path(home).is_absolute() else {})

    def _answer_request(self, session: CallSession, schema: bytes | None) -> str:
        folder = session.folders.data / _FOLDER
        lay_folder(session.around.fs, folder)
        return answer_request(folder / _ANSWER, schema)


def _invalid(reason: str) -> ProviderError:
    return ProviderError(ProviderCode.INVALID_COMMAND, f"This program cannot be called so: {reason}")
