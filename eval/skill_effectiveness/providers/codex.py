"""Codex: judge, read and work calls through `codex exec --json`.

Source: providers.md sections 1 and 2.

Everything the vendor decides is in this file: arguments, environment, private folders, what its events mean,
what its words for trouble are. Facts were observed on codex 0.171.0.

What the label `read-only-observed-none` says, exactly: a read-only sandbox was asked for, and no sign of a
tool was seen. Signs are every item that is not a message, reasoning or an error, and the program's own
complaints on stderr about tool calls it refused. Three things leave no sign: a command that the sandbox
refuses, an image that is looked at, and what a server does by itself.

In a work call the sandbox is asked for with the working copy and the session's temporary folder writable; the
program itself keeps `.git` in it from being written. What an arm gives lies in the private CODEX_HOME, which
commands can read and not change. Instructions and skills of the working copy itself belong to the task and
enter, those of folders around it do not.

What this adapter cannot do: turn down the program's own retries. They belong to the definition of a model
provider, and the built-in one cannot be overridden without replacing it (`model_providers contains reserved
built-in provider IDs`). Its retry events are recorded (P11); what bounds them is the wall limit. The model
that answers is not named in the stream either, except when the server reroutes the request to another one:
then the program says so, and the call ends with `model_mismatch`. Machine-wide configuration under /etc/codex
is read by the program whatever is asked.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from skill_effectiveness.evidence.faults import StrictError
from skill_effectiveness.evidence.laying import lay_file, lay_folder
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.providers.calls import CallKind, ProviderErrorKind, SandboxKind
from skill_effectiveness.providers.classification import ProviderVocabulary
from skill_effectiveness.providers.codex_project import without_skills
from skill_effectiveness.providers.command_line import Asked, CommandLine, Told
from skill_effectiveness.providers.events import (
    Event,
    Message,
    ModelReported,
    Notice,
    NoticeKind,
    Progress,
    Reasoning,
    SessionStarted,
    SkillRead,
    ToolActivity,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
    Unknown,
    Unreadable,
)
from skill_effectiveness.providers.launch import SESSION, Treatment
from skill_effectiveness.providers.login import Login
from skill_effectiveness.providers.loose import loose_members
from skill_effectiveness.providers.mount import SKILL_FILE, lay_skills
from skill_effectiveness.providers.stream import StreamReader
from skill_effectiveness.providers.usage import UNKNOWN_USAGE, Usage, counter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.execution import ProcessResult
    from skill_effectiveness.providers.calls import JudgeCall, ReadCall, WorkCall
    from skill_effectiveness.providers.command_line import Aftermath, CallSession
    from skill_effectiveness.providers.mount import Mount
    from skill_effectiveness.providers.stream import Document


# What its events mean.

_SILENT_ITEMS: Final = frozenset({"agent_message", "reasoning", "error"})
"""Item types that are no tool.

Every other one is, also one that was never heard of: a surface that cannot be read is not empty.
"""

_ITEM_EVENTS: Final = ("item.started", "item.updated", "item.completed")
_REROUTED: Final = re.compile(r"model rerouted:(?: \S+ -> (?P<used>\S+) \(.*\))?.*", re.DOTALL)
_RETRYING: Final = "Reconnecting..."
_LONGEST_ID: Final = 256


def read_event(document: Document, line: bytes) -> list[Event]:
    """The typed events of one line of the stream."""
    kind = document.get("type")
    if not isinstance(kind, str):
        return [Unreadable(line, "shape")]
    if "item" in document:
        return _item_events(kind, document["item"], line)
    event = _SESSION_EVENTS[kind](document) if kind in _SESSION_EVENTS else Unknown(kind)
    return [Unreadable(line, "shape") if event is None else event]


_SKILL_FILE: Final = re.compile(rf"/{re.escape(SKILL_FILE)}\b")
_PATH_ENDS: Final = re.compile(r"[\s/'\"]")
_LONGEST_SKILL: Final = 64
_MOST_MENTIONS: Final = 1000
"""How many mentions are looked at in one command."""


def _skills_read(item: Document) -> list[Event]:
    """The skills whose file a command names.

    The program has no skill tool, so this is all that can be observed of one, and it proves nothing: a skill
    that a prompt names reaches the model without any event.
    """
    command = item.get("command")
    named = _folders_named(command) if isinstance(command, str) else ()
    return [SkillRead(name) for name in dict.fromkeys(named)]


def _folders_named(command: str) -> Iterator[str]:
    """The folder in front of each mention of a skill's file.

    A command may be one word of megabytes, so it is looked at from each mention backwards, and not far.
    """
    for mention in islice(_SKILL_FILE.finditer(command), _MOST_MENTIONS):
        before = command[max(0, mention.start() - _LONGEST_SKILL - 1) : mention.start()]
        folder = _PATH_ENDS.split(before)[-1]
        if 0 < len(folder) <= _LONGEST_SKILL:
            yield folder


def _thread(document: Document) -> Event | None:
    thread = document.get("thread_id")
    return SessionStarted(thread) if isinstance(thread, str) and 0 < len(thread) <= _LONGEST_ID else None


def _turn_failed(document: Document) -> Event:
    # A failure without a reason is a failure all the same.
    error = document.get("error")
    message = error.get("message") if isinstance(error, dict) else None
    return TurnFailed(message if isinstance(message, str) else "")


def _error(document: Document) -> Event | None:
    message = document.get("message")
    if not isinstance(message, str):
        return None
    return Notice(NoticeKind.RETRY if message.startswith(_RETRYING) else NoticeKind.ERROR, message)


_SESSION_EVENTS: Final[Mapping[str, Callable[[Document], Event | None]]] = {
    "thread.started": _thread,
    "turn.started": lambda _: TurnStarted(),
    "turn.completed": lambda document: TurnCompleted(_usage(document.get("usage"))),
    "turn.failed": _turn_failed,
    "error": _error,
    **dict.fromkeys(_ITEM_EVENTS, lambda _: None),
}
"""Events without an item by type; None when a line lacks what its type promises."""


def _item_events(kind: str, item: JsonValue, line: bytes) -> list[Event]:
    shape: Event = Unreadable(line, "shape")
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        return [shape]
    item_type = str(item["type"])
    events: list[Event] = []
    if item_type not in _SILENT_ITEMS:
        events = [ToolActivity(item_type, _succeeded(kind, item))]
    if kind not in _ITEM_EVENTS:
        return [*events, Unknown(kind)]
    if events:
        return [*events, *_skills_read(item)] if kind == "item.completed" else events
    if kind != "item.completed":
        return [Progress(item_type)]
    text = item.get("message" if item_type == "error" else "text")
    return _finished_item(item_type, text) if isinstance(text, str) else [shape]


def _succeeded(kind: str, item: Document) -> bool | None:
    """Whether a tool ran or read something and ended well; only its last event can tell."""
    if kind != "item.completed":
        return None
    if item["type"] == "command_execution":
        code = item.get("exit_code")
        return item.get("status") == "completed" and code == 0 and not isinstance(code, bool)
    return item["type"] == "mcp_tool_call" and item.get("status") == "completed"


def _finished_item(item_type: str, text: str) -> list[Event]:
    if item_type == "agent_message":
        return [Message(text)]
    if item_type == "reasoning":
        return [Reasoning(text)]
    rerouted = _REROUTED.fullmatch(text)
    # A reroute whose target cannot be read is still no answer of the model that was asked.
    reported: list[Event] = [ModelReported(rerouted["used"] or "unknown")] if rerouted else []
    return [Notice(NoticeKind.REMARK, text), *reported]


def _usage(counters: JsonValue) -> Usage:
    """The counters of the session so far: the program adds up its requests, so the last event has them all.

    It also writes zeros when the server told it nothing, and no model call costs no tokens at all: such
    counters are not told.
    """
    told = counters if isinstance(counters, dict) else {}
    usage = Usage(
        input_tokens=counter(told.get("input_tokens")),
        cached_input_tokens=counter(told.get("cached_input_tokens")),
        output_tokens=counter(told.get("output_tokens")),
        reasoning_output_tokens=counter(told.get("reasoning_output_tokens")),
    )
    return usage if usage.input_tokens or usage.output_tokens else UNKNOWN_USAGE


def salvage(error: StrictError, line: bytes) -> list[Event]:
    """A tool item in a line that is not strict JSON.

    The program itself writes web searches with two members `id` in one object, so the strict reader alone
    would miss a tool.
    """
    document = loose_members(error, line)
    items = [] if document is None else document.objects("item")
    types = [str(kind) for item in items for kind in item.named("type")]
    return [ToolActivity(kind) for kind in types if kind not in _SILENT_ITEMS]


_TOOL_COMPLAINT: Final = re.compile(rb"^\S+ +ERROR codex_core::tools::router: ", re.MULTILINE)


def read_stderr(data: bytes) -> list[Event]:
    """What stderr shows and the stream does not: a tool call that the program refused."""
    return [ToolActivity("refused_call")] if _TOOL_COMPLAINT.search(data) else []


# How a call ended.

_STATUS: Final = re.compile(
    r"(?:unexpected status|exceeded retry limit, last status:) (?P<status>[0-9]{3})\b"
)
_STATUS_KINDS: Final = {
    401: ProviderErrorKind.AUTH_UNAVAILABLE,
    403: ProviderErrorKind.PERMISSION_DENIED,
    429: ProviderErrorKind.RATE_LIMITED,
}
_SERVER_STATUS: Final = range(500, 600)

_OPENINGS: Final = (
    ("Quota exceeded", ProviderErrorKind.QUOTA_UNAVAILABLE),
    ("You've hit your usage limit", ProviderErrorKind.QUOTA_UNAVAILABLE),
    ("rate limit exceeded", ProviderErrorKind.RATE_LIMITED),
    ("We're currently experiencing high demand", ProviderErrorKind.SERVER_ERROR),
    ("Selected model is at capacity", ProviderErrorKind.SERVER_ERROR),
    ("stream disconnected before completion", ProviderErrorKind.CONNECTION_LOST),
    ("Connection failed", ProviderErrorKind.CONNECTION_LOST),
    ("Your access token could not be refreshed", ProviderErrorKind.AUTH_UNAVAILABLE),
    ("Your authentication session could not be refreshed", ProviderErrorKind.AUTH_UNAVAILABLE),
)
"""How the program's own sentences begin, with straight apostrophes.

Only beginnings count: what follows may be a server's text, or quote the prompt.
"""

_NO_MODEL: Final = re.compile(r"The model `[^`]*` does not exist or you do not have access to it\.")
_SERVER_CODES: Final = {
    "invalid_json_schema": ProviderErrorKind.INVALID_SCHEMA,
    "model_not_found": ProviderErrorKind.MODEL_UNAVAILABLE,
}
_BAD_ARGUMENT: Final = re.compile(
    rb"^error: (?:unexpected argument|invalid value|unrecognized)", re.MULTILINE
)
_USAGE_EXIT: Final = 2


def error_kind(message: str) -> ProviderErrorKind:
    """The kind of trouble in the program's words."""
    sentence = message.replace("\u2019", "'")
    if match := _STATUS.match(sentence):
        return _status_kind(int(match["status"]))
    if _NO_MODEL.fullmatch(sentence):
        return ProviderErrorKind.MODEL_UNAVAILABLE
    openings = (kind for opening, kind in _OPENINGS if sentence.startswith(opening))
    return next(openings, None) or _server_code_kind(message)


def _status_kind(status: int) -> ProviderErrorKind:
    if status in _SERVER_STATUS:
        return ProviderErrorKind.SERVER_ERROR
    return _STATUS_KINDS.get(status, ProviderErrorKind.OTHER)


def _server_code_kind(message: str) -> ProviderErrorKind:
    """The kind by the code in a server's error document, which the program prints as it came."""
    try:
        document = read_json(message.encode(errors="replace"), Profile.WIRE)
    except StrictError:
        return ProviderErrorKind.OTHER
    error = document.get("error") if isinstance(document, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return next((kind for name, kind in _SERVER_CODES.items() if name == code), ProviderErrorKind.OTHER)


def silent_kind(process: ProcessResult) -> ProviderErrorKind | None:
    """What it meant by ending without a word on stdout: an option of ours that this version does not take."""
    refused = process.exit_code == _USAGE_EXIT and _BAD_ARGUMENT.search(process.stderr)
    return ProviderErrorKind.UNSUPPORTED_FLAG if refused else None


VOCABULARY: Final = ProviderVocabulary(error_kind=error_kind, silent_kind=silent_kind)


# What it is started with.

OWN_KEYS: Final = ("CODEX_API_KEY",)
"""Credentials that `codex exec` takes from its environment.

It reads neither OPENAI_API_KEY nor OPENAI_BASE_URL, so both stay out.
"""

_LOGIN_FILE: Final = "auth.json"
_SKILLS: Final = "skills"
_INSTRUCTIONS: Final = "AGENTS.md"
_SCHEMA_FILE: Final = "answer-schema.json"


def judge_argv(program: Path, model: str, schema: Path) -> list[str]:
    """The arguments of a judge call; the prompt goes to stdin and is not among them.

    The session's folders may lie in somebody's repository, whose instructions and skills would enter.
    """
    return _argv(program, model, schema, (*_NO_PROJECT, *_UNLED))


def read_argv(
    program: Path, model: str, schema: Path | None, switched_off: tuple[str, ...] = ()
) -> list[str]:
    """The arguments of a read call, whose working folder is the checkout; free text without a schema.

    What a checkout says about how to work in it is being read here and instructs nobody: its AGENTS.md and
    its skills stay out, of which `switched_off` has those of this checkout. The web is no part of a checkout.
    """
    return _argv(program, model, schema, (*_NO_PROJECT, *_UNLED, *switched_off, *_NO_WEB))


def work_argv(program: Path, model: str, schema: Path | None, *, confined: bool = False) -> list[str]:
    """The arguments of a work call, whose working folder is the working copy; free text without a schema.

    Instructions and skills are looked for in the private CODEX_HOME and in the working copy itself, never in
    the folders around it, and the program's own skills stay out. Commands may write the working copy and the
    session's temporary folder. Instructions arrive whole; the program would cut those of a working copy off
    at 32 KiB, and say nothing.
    """
    whole = ("-c", "project_doc_max_bytes=1048576")
    shut = ("-c", "sandbox_workspace_write.exclude_slash_tmp=true")
    sandbox = "danger-full-access" if confined else "workspace-write"
    return _argv(program, model, schema, (*_NO_PROJECT, *whole, *shut, *_NO_WEB), sandbox=sandbox)


_NO_WEB: Final = ("-c", 'web_search="disabled"')
_NO_ACCOUNT: Final = tuple(
    word for name in ("apps", "plugins", "remote_plugin") for word in ("-c", f"features.{name}=false")
)
"""What an account has installed elsewhere, tools and skills among it, comes with the login otherwise."""
_NO_PROJECT: Final = ("-c", "project_root_markers=[]", "-c", "skills.bundled.enabled=false")
"""Nothing above the working folder is looked at, and the program's own skills are not there."""
_UNLED: Final = ("-c", "project_doc_max_bytes=0", "-c", "skills.include_instructions=false")
"""Neither instructions nor skills are told to the model, wherever they come from."""


def _argv(
    program: Path, model: str, schema: Path | None, settings: tuple[str, ...], *, sandbox: str = "read-only"
) -> list[str]:
    session = ["--json", "--ephemeral", "--ignore-user-config", "--skip-git-repo-check"]
    surface = ["--sandbox", sandbox, "--color", "never"]
    asked = ["--model", model, *(("--output-schema", str(schema)) if schema else ())]
    # Without this the program waits five seconds at its end for a server that may not be reachable.
    quick = ["-c", "analytics.enabled=false"]
    return [str(program), "exec", *session, *surface, *asked, *quick, *_NO_ACCOUNT, *settings, "-"]


def login_file(environ: Mapping[str, str]) -> Path | None:
    """Where the user's login would be: in CODEX_HOME, else below HOME; None without an absolute path."""
    named = environ.get("CODEX_HOME", "")
    folder = Path(named) if named else Path(environ.get("HOME", ""), ".codex")
    return folder / _LOGIN_FILE if folder.is_absolute() else None


class CodexProvider(CommandLine):
    """Codex, bound to one program. `CodexProvider.at(path, around=around)` binds what is there now."""

    name: ClassVar[str] = "codex"
    family: ClassVar[str | None] = None
    session_label: ClassVar[str] = "ephemeral"
    tool_label: ClassVar[str] = "read-only-observed-none"
    json_fence: ClassVar[bool] = False
    call_kinds: ClassVar[frozenset[CallKind]] = frozenset(CallKind)
    session_variables: ClassVar[Mapping[str, str]] = {
        "HOME": "{home}",
        "CODEX_HOME": "{config}",
        "TMPDIR": "{tmp}",
    }
    own_keys: ClassVar[tuple[str, ...]] = OWN_KEYS
    vocabulary: ClassVar[ProviderVocabulary] = VOCABULARY

    @classmethod
    def logins(cls, environ: Mapping[str, str]) -> tuple[Login, ...]:
        """See `CommandLine`."""
        file = login_file(environ)
        where = f"{_LOGIN_FILE} of {'CODEX_HOME' if environ.get('CODEX_HOME') else '.codex in HOME'}"
        return () if file is None else (Login(file, where),)

    def to_judge(self, call: JudgeCall, session: CallSession) -> Asked:
        """See `CommandLine`."""
        schema = session.folders.publish(_SCHEMA_FILE, call.schema_bytes())
        argv = judge_argv(self.executable.path, call.model, schema)
        return _asked(argv, session.folders.work, call.prompt)

    def to_read(self, call: ReadCall, session: CallSession) -> Asked:
        """See `CommandLine`."""
        schema = call.schema_bytes()
        file = None if schema is None else session.folders.publish(_SCHEMA_FILE, schema)
        switched_off = without_skills(session.around.fs, call.checkout)
        argv = read_argv(self.executable.path, call.model, file, switched_off)
        return _asked(argv, call.checkout, call.prompt)

    def to_work(self, call: WorkCall, session: CallSession) -> Asked:
        """See `CommandLine`; what the mount gives lies in the private CODEX_HOME."""
        schema = call.schema_bytes()
        file = None if schema is None else session.folders.publish(_SCHEMA_FILE, schema)
        if call.mount is not None:
            _lay(call.mount, session)
        # Its own sandbox cannot be made inside another one: every command would be refused, without an event.
        confined = call.confinement is not None and call.confinement.place is not None
        argv = work_argv(self.executable.path, call.model, file, confined=confined)
        asked = _asked(argv, call.working_copy, call.prompt)
        return replace(asked, writable=(call.working_copy,)) if confined else asked

    def treatment(self, model: str, *, skills: bool, instructions: bool) -> Treatment:
        """See `CommandLine`; files alone."""
        del model, skills, instructions
        return Treatment(f"{SESSION}/config/{_SKILLS}", f"{SESSION}/config/{_INSTRUCTIONS}")

    def told_after(self, after: Aftermath) -> Told:
        """See `CommandLine`: what stderr shows and the stream does not."""
        return Told(tuple(read_stderr(after.process.stderr)))


def _lay(mount: Mount, session: CallSession) -> None:
    fs, config = session.around.fs, session.folders.config
    if mount.skills:
        lay_folder(fs, config / _SKILLS)
        lay_skills(fs, mount, config / _SKILLS)
    if mount.instructions is not None:
        lay_file(fs, config / _INSTRUCTIONS, mount.instructions.encode())


def _asked(argv: list[str], folder: Path, prompt: str) -> Asked:
    """The sandbox is the program's own in every kind of call."""
    reader = StreamReader(read_event, salvage)
    return Asked(argv, folder, reader, stdin=prompt.encode(), sandbox=SandboxKind.PROGRAM)
