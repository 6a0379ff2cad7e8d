"""Claude: judge, read and work calls through `claude -p`.

Source: providers.md sections 1 and 3; calibration.md section 7.

How it is started and what its sessions may see is in this file, what a session must say of itself in
`claude_surface`, what its lines mean in `claude_events`, what they show of skills in `claude_skills`. Facts
were observed on claude 2.1.332.

What the label `verified-none` says, exactly: every beginning of a turn lists the tools of the session, and in
a judge call they are the one by which the answer is given and no other. A wish of the model for any other
tool shows in the stream and ends the call.

What a session sees: nothing of the user's but the login. Setting sources are none, or for a work call the
session's own configuration folder alone; the skills and plugins that the program brings along are switched
off, and so are its memory, its background tasks and every way to another model. Machine-wide managed settings
are read by the program whatever is asked.

The login stays where it is, and a variable of the program's says where; no link leads to it. Renewing a token
this program puts a new file in the old one's place, so a link would be replaced, the new token would go with
the session, and the old one, kept, would be worth nothing any more. Inside a sandbox that cannot write there
the program renews nothing, and a token that is too old ends the call as `auth_unavailable`; then any use of
the program outside helps, or a long-lived token or a key in the environment.

Other limits of this adapter:

- A write outside of the working copy is denied to a work call by the sandbox alone, not by the program, and
  the commands of a worker see the credentials in its environment.
- An answer's form is checked by the program, with one attempt; a model that does not use the tool for it is
  reminded once by the program and asked again, which no setting turns off.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.laying import lay_file, lay_folder
from skill_effectiveness.providers.calls import CallKind, ProviderErrorKind
from skill_effectiveness.providers.classification import ProviderVocabulary
from skill_effectiveness.providers.claude_events import ClaudeEvents, error_kind
from skill_effectiveness.providers.claude_skills import SKILL_TOOL
from skill_effectiveness.providers.claude_surface import ANSWER_TOOL, BUILT_IN_PLUGINS, Surface
from skill_effectiveness.providers.command_line import Asked, CommandLine
from skill_effectiveness.providers.launch import SESSION, Treatment
from skill_effectiveness.providers.login import Login
from skill_effectiveness.providers.mount import lay_skills
from skill_effectiveness.providers.stream import StreamReader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.execution import ProcessResult
    from skill_effectiveness.providers.calls import JudgeCall, ReadCall, WorkCall
    from skill_effectiveness.providers.command_line import CallSession
    from skill_effectiveness.providers.mount import Mount

READ_TOOLS: Final = ("Bash", "Read", "Grep", "Glob")
READ_RULES: Final = ("Read", "Grep", "Glob", "Bash(git diff:*)", "Bash(git log:*)", "Bash(git show:*)")
"""Which uses of them need no further permission; the program lets plain reading commands through besides."""
WORK_TOOLS: Final = (*READ_TOOLS, "Edit", "Write")

NO_SERVERS: Final = '{"mcpServers":{}}'
NO_PLUGINS: Final = json.dumps({"enabledPlugins": {f"{name}@builtin": False for name in BUILT_IN_PLUGINS}})
"""Settings that switch off what the program brings along, so that an arm's skills are the only ones."""

PLUGIN: Final = "local"
"""The name of the plugin that carries an arm's skills; it says nothing of the arm."""

_MANIFEST: Final = ".claude-plugin/plugin.json"
_MANIFEST_TEXT: Final = json.dumps({"name": PLUGIN}).encode()


def skill_identity(name: str) -> str:
    """What a mounted skill is called in a session, and so in its skill events."""
    return f"{PLUGIN}:{name}"


def judge_argv(program: Path, model: str, schema: bytes) -> list[str]:
    """The arguments of a judge call; the prompt goes to stdin and is not among them."""
    surface = ["--tools", "", "--disable-slash-commands", "--json-schema", schema.decode()]
    return [*_session_argv(program, model, ""), *surface]


def read_argv(program: Path, model: str, schema: bytes | None) -> list[str]:
    """The arguments of a read call, whose working folder is the checkout; free text without a schema."""
    surface = ["--settings", NO_PLUGINS, "--permission-mode", "default", "--disable-slash-commands"]
    return [
        *_session_argv(program, model, ""),
        *surface,
        *_tools_argv(READ_TOOLS, READ_RULES),
        *_form_argv(schema),
    ]


def work_argv(program: Path, model: str, schema: bytes | None, plugin: Path | None) -> list[str]:
    """The arguments of a work call; `plugin` is the folder with the arm's skills, `None` without any."""
    surface = ["--settings", NO_PLUGINS, "--permission-mode", "acceptEdits"]
    tools = WORK_TOOLS if plugin is None else (*WORK_TOOLS, SKILL_TOOL)
    mounted = [] if plugin is None else ["--plugin-dir", str(plugin)]
    return [
        *_session_argv(program, model, "user"),
        *surface,
        *_tools_argv(tools, tools),
        *mounted,
        *_form_argv(schema),
    ]


def _session_argv(program: Path, model: str, sources: str) -> list[str]:
    session = ["-p", "--output-format", "stream-json", "--verbose", "--no-session-persistence"]
    closed = ["--strict-mcp-config", "--mcp-config", NO_SERVERS, "--setting-sources", sources]
    return [str(program), *session, "--model", model, *closed]


def _tools_argv(tools: Sequence[str], rules: Sequence[str]) -> list[str]:
    return ["--tools", ",".join(tools), "--allowedTools", ",".join(rules)]


def _form_argv(schema: bytes | None) -> list[str]:
    return [] if schema is None else ["--json-schema", schema.decode()]


_BAD_OPTION: Final = re.compile(rb"^error: (?:unknown option|option .* (?:is invalid|missing))", re.MULTILINE)
_BAD_SCHEMA: Final = re.compile(rb"^Error: --json-schema is not ", re.MULTILINE)


def silent_kind(process: ProcessResult) -> ProviderErrorKind | None:
    """What it meant by ending without a word on stdout: an option or a schema that it does not take."""
    if _BAD_OPTION.search(process.stderr):
        return ProviderErrorKind.UNSUPPORTED_FLAG
    return ProviderErrorKind.INVALID_SCHEMA if _BAD_SCHEMA.search(process.stderr) else None


_ON: Final = "1"
_OFF: Final = "0"
_CONFIG: Final = "CLAUDE_CONFIG_DIR"
_NO_INSTRUCTIONS: Final = "CLAUDE_CODE_DISABLE_CLAUDE_MDS"
_NO_ATTACHMENTS: Final = "CLAUDE_CODE_DISABLE_ATTACHMENTS"
"""Nothing is put beside a prompt, as the list of skills is."""
_TOLD_OF_SKILLS: Final = {_NO_ATTACHMENTS: _OFF}
"""In work calls of every arm alike, with skills or without any."""
_LOGIN_FILE: Final = ".credentials.json"
_LOGIN_FOLDER: Final = "CLAUDE_SECURESTORAGE_CONFIG_DIR"
_INSTRUCTIONS: Final = "CLAUDE.md"


def login_folder(environ: Mapping[str, str]) -> Path | None:
    """Where the user's login would be: CLAUDE_CONFIG_DIR, else below HOME; None without an absolute path."""
    named = environ.get(_CONFIG, "")
    folder = Path(named) if named else Path(environ.get("HOME", ""), ".claude")
    return folder if folder.is_absolute() else None


class ClaudeProvider(CommandLine):
    """Claude, bound to one program. `ClaudeProvider.at(path, around=around)` binds what is there now."""

    name: ClassVar[str] = "claude"
    family: ClassVar[str | None] = "claude"
    session_label: ClassVar[str] = "no-session-persistence"
    tool_label: ClassVar[str] = "verified-none"
    json_fence: ClassVar[bool] = False
    call_kinds: ClassVar[frozenset[CallKind]] = frozenset(CallKind)
    vocabulary: ClassVar[ProviderVocabulary] = ProviderVocabulary(error_kind, silent_kind)
    session_variables: ClassVar[Mapping[str, str]] = {
        "HOME": "{home}",
        _CONFIG: "{config}",
        "TMPDIR": "{tmp}",
        _LOGIN_FOLDER: "",
        "DISABLE_AUTOUPDATER": _ON,
        "DISABLE_TELEMETRY": _ON,
        "DISABLE_ERROR_REPORTING": _ON,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": _ON,
        "CLAUDE_CODE_DISABLE_AUTO_MEMORY": _ON,
        "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": _ON,
        # What goes on in the background after a result would be cut off by its grace.
        "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": _ON,
        _NO_INSTRUCTIONS: _ON,
        # A prompt may hold words of anybody's; `@path` in it would send that file along, without any event.
        "CLAUDE_CODE_DISABLE_FILE_MENTIONS": _ON,
        _NO_ATTACHMENTS: _ON,
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "MAX_STRUCTURED_OUTPUT_RETRIES": "1",
        # A broken stream would be asked for again in one piece, and again with its own retries.
        "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": _ON,
        "CLAUDE_CODE_DISABLE_REFUSAL_RETRY": _ON,
        "CLAUDE_CODE_DISABLE_REFUSAL_FALLBACK": _ON,
        "CLAUDE_CODE_DISABLE_MODEL_ACCESS_FALLBACK": _ON,
        "CLAUDE_CODE_NO_MODEL_FALLBACK": _ON,
    }
    own_keys: ClassVar[tuple[str, ...]] = (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
        "CLAUDE_CODE_OAUTH_TOKEN",
        # A keychain keeps a login under the user's name.
        "USER",
        "LOGNAME",
    )

    login_variables: ClassVar[frozenset[str]] = frozenset({_LOGIN_FOLDER})

    @classmethod
    def logins_in_place(cls, environ: Mapping[str, str]) -> tuple[Login, ...]:
        """See `CommandLine`; links are followed, as the program follows them."""
        folder = login_folder(environ)
        named = _CONFIG if environ.get(_CONFIG) else ".claude in HOME"
        return () if folder is None else (Login(folder / _LOGIN_FILE, f"{_LOGIN_FILE} of {named}"),)

    def to_judge(self, call: JudgeCall, session: CallSession) -> Asked:
        """See `CommandLine`."""
        argv = judge_argv(self.executable.path, call.model, call.schema_bytes())
        surface = Surface(call.model, frozenset({ANSWER_TOOL}), "default", str(session.folders.config))
        return Asked(
            argv,
            session.folders.work,
            _reader(surface, formed=True),
            stdin=call.prompt.encode(),
            environment=_login(session.around),
        )

    def to_read(self, call: ReadCall, session: CallSession) -> Asked:
        """See `CommandLine`."""
        schema = call.schema_bytes()
        tools = _offered(READ_TOOLS, formed=schema is not None)
        surface = Surface(call.model, tools, "default", str(session.folders.config))
        return Asked(
            read_argv(self.executable.path, call.model, schema),
            call.checkout,
            _reader(surface, formed=schema is not None),
            stdin=call.prompt.encode(),
            environment=_login(session.around),
            writable=(),
        )

    def to_work(self, call: WorkCall, session: CallSession) -> Asked:
        """See `CommandLine`; what is mounted lies in the session's folders, never in the working copy."""
        schema = call.schema_bytes()
        plugin = _lay_plugin(call.mount, session)
        skills = call.mount.skill_names if call.mount else ()
        offered = WORK_TOOLS if plugin is None else (*WORK_TOOLS, SKILL_TOOL)
        surface = Surface(
            call.model,
            _offered(offered, formed=schema is not None),
            "acceptEdits",
            str(session.folders.config),
            plugin=None if plugin is None else (PLUGIN, str(plugin)),
            skills=frozenset(map(skill_identity, skills)),
        )
        return Asked(
            work_argv(self.executable.path, call.model, schema, plugin),
            call.working_copy,
            _reader(surface, formed=schema is not None),
            stdin=call.prompt.encode(),
            environment=_login(session.around) | _lay_instructions(call.mount, session) | _TOLD_OF_SKILLS,
            writable=(call.working_copy,),
        )

    def treatment(self, model: str, *, skills: bool, instructions: bool) -> Treatment:
        """See `CommandLine`: a plugin and the one tool that it needs; what lets instructions be read."""
        del model
        plugin = f"{SESSION}/data/{PLUGIN}"
        without = ",".join(WORK_TOOLS)
        with_skills = f"{without},{SKILL_TOOL}"
        options = {
            "--tools": (without, with_skills),
            "--allowedTools": (without, with_skills),
            "--plugin-dir": (None, plugin),
        }
        manifest = {f"{plugin}/{_MANIFEST}": (None, _MANIFEST_TEXT)}
        return Treatment(
            skills=f"{plugin}/skills",
            instructions=f"{SESSION}/config/{_INSTRUCTIONS}",
            options=options if skills else {},
            environment={_NO_INSTRUCTIONS: (_ON, _OFF)} if instructions else {},
            files=manifest if skills else {},
        )


def _login(around: Surroundings) -> dict[str, str]:
    """The variable that says where the login is.

    Where no file is, in the folder that is used when none is named, it stays empty, which is how the program
    knows the login in a keychain.
    """
    folder = login_folder(around.environ)
    if folder is None:
        return {}
    try:
        with reported(_LOGIN_FILE, reading=True):
            around.fs.lstat(None, str(folder / _LOGIN_FILE))
    except FileError as error:
        if error.code is FileCode.MISSING and not around.environ.get(_CONFIG):
            return {}
    return {_LOGIN_FOLDER: str(folder)}


def _offered(tools: Sequence[str], *, formed: bool) -> frozenset[str]:
    return frozenset((*tools, ANSWER_TOOL) if formed else tools)


def _reader(surface: Surface, *, formed: bool) -> StreamReader:
    events = ClaudeEvents(surface, formed=formed)
    return StreamReader(events.read, events.salvage)


def _lay_plugin(mount: Mount | None, session: CallSession) -> Path | None:
    """Lay the skills of a mount as a plugin; its folder, or `None` where there are no skills."""
    if mount is None or not mount.skills:
        return None
    fs = session.around.fs
    plugin = session.folders.data / PLUGIN
    for folder in (plugin, (plugin / _MANIFEST).parent, plugin / "skills"):
        lay_folder(fs, folder)
    lay_file(fs, plugin / _MANIFEST, _MANIFEST_TEXT)
    lay_skills(fs, mount, plugin / "skills")
    return plugin


def _lay_instructions(mount: Mount | None, session: CallSession) -> dict[str, str]:
    """Lay the instructions of a mount where a user's own would be; the variables that let them be read."""
    if mount is None or mount.instructions is None:
        return {}
    lay_file(session.around.fs, session.folders.config / _INSTRUCTIONS, mount.instructions.encode())
    return {_NO_INSTRUCTIONS: _OFF}
