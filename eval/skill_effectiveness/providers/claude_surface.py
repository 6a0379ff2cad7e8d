"""Claude: what a session must say of itself before anything in it counts.

Source: providers.md section 3; calibration.md section 8. Facts were observed on claude 2.1.332.

Every session begins each of its turns with one event that lists its surface: model, tools, servers,
plugins, skills, commands, agents and permission mode. This is the one validator of that event, for judge,
read and work calls alike; a call says what it asked for, and everything else has to be empty or one of the
pinned built-ins. What is not known fails closed: a list or an object under a new name that holds something,
and a new name that sounds of authority and is not false.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.providers.stream import Document

ANSWER_TOOL: Final = "StructuredOutput"
"""The tool by which an answer of a demanded form is given; it does nothing else."""

BUILT_IN_PLUGINS: Final = ("cc-plugin-agents-md", "cc-plugin-privacy", "cc-plugin-plugin-authoring")
_SKILLS: Final = frozenset(
    {
        "batch",
        "claude-api",
        "code-review",
        "dataviz",
        "debug",
        "deep-research",
        "doctor",
        "fewer-permission-prompts",
        "loop",
        "plugin-authoring",
        "run",
        "run-skill-generator",
        "simplify",
        "update-config",
        "verify",
        "workflow-authoring",
    }
)
_COMMANDS: Final = _SKILLS | frozenset(
    {
        "__remote-workflow",
        "agents",
        "auto-mode-setup",
        "autocompact",
        "clear",
        "color",
        "compact",
        "config",
        "context",
        "effort",
        "fast",
        "focus",
        "goal",
        "heapdump",
        "init",
        "insights",
        "list-agents",
        "mcp",
        "model",
        "output-style",
        "recap",
        "reload-plugins",
        "reload-skills",
        "rename",
        "security-review",
        "team-onboarding",
        "usage",
        "workflow-launch-exec",
    }
)
_AGENTS: Final = frozenset({"claude", "Explore", "general-purpose", "Plan", "statusline-setup"})
"""What the program brings along itself; the pinned lists of 2.1.332."""

_SCALARS: Final = frozenset(
    {
        "type",
        "subtype",
        "uuid",
        "session_id",
        "cwd",
        "original_cwd",
        "model",
        "permissionMode",
        "apiKeySource",
        "claude_code_version",
        "output_style",
        "analytics_disabled",
        "product_feedback_disabled",
        "served_by_anthropic",
        "sandbox_enabled",
        "messaging_socket_path",
        "fast_mode_state",
        "fast_mode_disabled_reason",
        "per_turn_effort_active",
        "ultrathink_available",
        "ultrathink_typed_raises",
        "view_mode",
    }
)
"""Members that hold one value each and say nothing of what the session may do, or are judged by name."""

_AUTHORITY: Final = re.compile(
    r"permi|allow|grant|trust|bypass|danger|auth|approv|elevat|privileg|sandbox|hook|tool|agent|skill|plugin"
    r"|server|memor|director|command|policy|rule",
    re.IGNORECASE,
)
"""What the name of a member sounds like that could widen what a session may do."""


@dataclass(frozen=True, slots=True)
class Surface:
    """What a call asks for.

    Attributes:
        model: exact model id.
        tools: the tools offered, all of them.
        mode: the permission mode.
        config: the session's configuration folder; memory kept anywhere else is somebody else's.
        plugin: name and folder of the plugin that carries the arm's skills; `None` for none.
        skills: the arm's skills as the program names them.
    """

    model: str
    tools: frozenset[str]
    mode: str
    config: str
    plugin: tuple[str, str] | None = None
    skills: frozenset[str] = frozenset()


def differences(init: Document, surface: Surface) -> list[str]:
    """What of a session is not as it was asked for, each as a few words for the private log."""
    faults = ((name, check(init.get(name), surface)) for name, check in _CHECKS.items())
    return [*(f"{name}: {fault}" for name, fault in faults if fault), *_unknown(init)]


def _unknown(init: Document) -> Iterator[str]:
    for name, value in init.items():
        if name in _SCALARS:
            if isinstance(value, list | dict):
                yield f"{name}: not one value"
        elif name not in _CHECKS and value and (isinstance(value, list | dict) or _AUTHORITY.search(name)):
            yield f"{name}: unknown and not empty"


def _names(value: JsonValue) -> frozenset[str] | None:
    """A list of different texts as a set; `None` for anything else."""
    if not isinstance(value, list):
        return None
    names = frozenset(name for name in value if isinstance(name, str))
    return names if len(names) == len(value) else None


def _model(value: JsonValue, _surface: Surface) -> str | None:
    # Which model it is, is compared where every report of a model is.
    return None if isinstance(value, str) and value else "missing"


def _mode(value: JsonValue, surface: Surface) -> str | None:
    return None if value == surface.mode else "not the one asked for"


def _tools(value: JsonValue, surface: Surface) -> str | None:
    return None if _names(value) == surface.tools else "not those asked for"


def _empty(value: JsonValue, _surface: Surface) -> str | None:
    return None if value == [] else "not empty"


def _skills(value: JsonValue, surface: Surface) -> str | None:
    names = _names(value)
    if names is None or not surface.skills <= names:
        return "lacks what was mounted"
    return _beyond(names, _SKILLS | surface.skills)


def _commands(value: JsonValue, surface: Surface) -> str | None:
    return _beyond(_names(value), _COMMANDS | surface.skills)


def _agents(value: JsonValue, _surface: Surface) -> str | None:
    return _beyond(_names(value), _AGENTS)


def _beyond(names: frozenset[str] | None, known: frozenset[str]) -> str | None:
    if names is None:
        return "no list of names"
    return f"{len(names - known)} more than the built-in ones" if names - known else None


def _plugins(value: JsonValue, surface: Surface) -> str | None:
    if not isinstance(value, list):
        return "no list"
    mounted = 0
    for plugin in value:
        origin = _origin(plugin)
        if surface.plugin is not None and origin == (*surface.plugin, "inline"):
            mounted += 1
        elif origin is None or origin[0] not in BUILT_IN_PLUGINS or origin[1:] != ("builtin", "builtin"):
            return "more than the built-in ones"
    return None if mounted == (surface.plugin is not None) else "lacks what was mounted"


def _origin(plugin: JsonValue) -> tuple[str, str, str] | None:
    """Name, folder and kind of a plugin."""
    if not isinstance(plugin, dict):
        return None
    name, path, source = plugin.get("name"), plugin.get("path"), plugin.get("source")
    if not (isinstance(name, str) and isinstance(path, str) and isinstance(source, str)):
        return None
    return (name, path, source.removeprefix(f"{name}@")) if source.startswith(f"{name}@") else None


def _memory(value: JsonValue, surface: Surface) -> str | None:
    paths = value.values() if isinstance(value, dict) else [value]
    inside = all(isinstance(path, str) and path.startswith(f"{surface.config}/") for path in paths)
    return None if value is None or inside else "outside of the session"


def _style(value: JsonValue, _surface: Surface) -> str | None:
    return None if value == "default" else "not the default"


def _protocol(value: JsonValue, _surface: Surface) -> str | None:
    # What the program's own stream can carry; words for whoever embeds it, not for the model.
    return None if value is None or _names(value) is not None else "no list of names"


def _terminal(value: JsonValue, _surface: Surface) -> str | None:
    return None if value is None else _beyond(_names(value), _COMMANDS)


_CHECKS: Final[Mapping[str, Callable[[JsonValue, Surface], str | None]]] = {
    "model": _model,
    "permissionMode": _mode,
    "tools": _tools,
    "mcp_servers": _empty,
    "additional_directories": _empty,
    "plugins": _plugins,
    "skills": _skills,
    "slash_commands": _commands,
    "terminal_slash_commands": _terminal,
    "agents": _agents,
    "output_style": _style,
    "memory_paths": _memory,
    "capabilities": _protocol,
}
"""Every member that says what a session may do, with what is wrong with its value."""
