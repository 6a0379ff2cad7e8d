"""Kimi's configuration: one model of one provider taken out of the user's own, and nothing else of it.

Source: providers.md section 5; calibration.md sections 6 and 7 (R34); field-failures.md F32, F37, F41.

The user's `config.toml` is read once, when a model of it is asked for by its alias. What is taken is the
table of that model and the table of its provider, as they stand there, without what leads beyond them: other
models, lists of models that are looked up, hooks, servers, permissions, agents, skills. Every session then
gets a file of its own that holds these two tables and what a kind of call allows.

Credentials belong to these tables, so they are in the session's file; they never enter a hash. A key that the
configuration takes from a variable of the environment is put into the session's file, so that the program
needs no such variable.

What was observed on version 2.1.0: the rules of `permission` are read and held against nothing, so they ask
for prevention and do not prevent. What does limit a session is the list of tools (`tools`), which is why
both are written.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import CanonicalError
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.providers.binding import ProviderBinding
from skill_effectiveness.providers.errors import ProviderCode, ProviderError
from skill_effectiveness.providers.login import Login

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.evidence.surroundings import Surroundings

HOME_VARIABLE: Final = "KIMI_CODE_HOME"
CONFIG_FILE: Final = "config.toml"
_HOME_BELOW_HOME: Final = ".kimi-code"
_CONFIG_BYTES: Final = 1_048_576
_BINDING_TYPE: Final = "kimi-selected-config-v1"

_LEADS_BEYOND_PROVIDER: Final = frozenset({"default_model", "model_source", "source"})
"""Members of a provider's table that name other models, or have the program look some up."""
_LEADS_BEYOND_MODEL: Final = frozenset({"aliases"})

_CREDENTIAL: Final = re.compile(r"(?:^|[_-])(?:api[_-]?key|token|secret|authorization)$", re.IGNORECASE)
"""Members whose value is a credential, wherever they stand in the two tables."""
_WITHHELD: Final = "credential"

ATTEMPTS: Final = 2
"""How often the program may ask for one step: as few as it takes, once and once more (P11)."""


@dataclass(frozen=True, slots=True)
class Permissions:
    """What a kind of call allows.

    Attributes:
        allowed: the tools that may be used; `None` for all that are not denied.
        denied: the tools that may not, where all others may.
    """

    allowed: tuple[str, ...] | None = None
    denied: tuple[str, ...] = ()

    def rules(self) -> list[JsonValue]:
        """The permission rules, of which the first that matches counts."""
        if self.allowed is not None:
            return [*(_rule("allow", tool) for tool in self.allowed), _rule("deny", "*")]
        return [*(_rule("deny", tool) for tool in self.denied), _rule("allow", "*")]

    def tools(self) -> dict[str, JsonValue]:
        """The list of tools. An empty one would allow all, so no tool at all is one that does not exist."""
        if self.allowed is not None:
            return {"enabled": [*self.allowed] or ["none"]}
        return {"disabled": [*self.denied]}


def _rule(decision: str, pattern: str) -> JsonValue:
    return {"decision": decision, "scope": "user", "pattern": pattern}


@dataclass(frozen=True, slots=True)
class Selection:
    """One model of one provider, as the user's configuration had them when it was read.

    Attributes:
        alias: what the model is called there, and what is asked for.
        provider_id: what its provider is called there.
        underlying_model: the model that the provider is asked for.
        model: the model's table.
        provider: the provider's table, credentials included.
    """

    alias: str
    provider_id: str
    underlying_model: str
    model: Mapping[str, JsonValue] = field(repr=False)
    provider: Mapping[str, JsonValue] = field(repr=False)

    def binding(self) -> ProviderBinding:
        """What a record says of it."""
        without = {name: _without_credentials(value) for name, value in self._tables().items()}
        return ProviderBinding(
            binding_type=_BINDING_TYPE,
            model_alias=self.alias,
            provider_id=self.provider_id,
            underlying_model=self.underlying_model,
            selected_config_hash=digest_object(without),
        )

    def file(self, permissions: Permissions) -> bytes:
        """The whole configuration file of a session."""
        whole: dict[str, JsonValue] = {
            **self._tables(),
            "telemetry": False,
            "builtin_product_skills": False,
            "permission": {"rules": permissions.rules()},
            "tools": permissions.tools(),
        }
        return "".join(f"{_key(name)} = {_toml(value)}\n" for name, value in whole.items()).encode()

    def _tables(self) -> dict[str, JsonValue]:
        return {
            "default_model": self.alias,
            "providers": {self.provider_id: dict(self.provider)},
            "models": {self.alias: dict(self.model)},
            "loop_control": {"max_attempts_per_step": ATTEMPTS},
        }


def users_home(environ: Mapping[str, str]) -> Path | None:
    """Where the program keeps what is the user's; `None` without an absolute path."""
    named = environ.get(HOME_VARIABLE, "")
    folder = Path(named) if named else Path(environ.get("HOME", ""), _HOME_BELOW_HOME)
    return folder if folder.is_absolute() else None


def logins(environ: Mapping[str, str]) -> tuple[Login, ...]:
    """The login state: tokens, the locks under which they are renewed, and the id of the device.

    Tokens and locks are whole folders, because the program renews a token by putting a new file in its place.
    """
    home = users_home(environ)
    if home is None:
        return ()
    whose = HOME_VARIABLE if environ.get(HOME_VARIABLE) else f"{_HOME_BELOW_HOME} in HOME"
    return (
        Login(home / "credentials", f"credentials of {whose}", folder=True),
        Login(home / "oauth", f"oauth of {whose}", folder=True),
        Login(home / "device_id", f"device_id of {whose}"),
    )


def select(alias: str, around: Surroundings) -> Selection:
    """Read the user's configuration and take one model out of it.

    Raises:
        ProviderError: `invalid_call`: there is no configuration, it is not TOML, or it does not say for this
            alias which model of which provider is meant.
        FileError: it is there and cannot be read.
    """
    document = _configuration(around)
    model = _table(document, "models", alias)
    provider_id = _one_name(model, "provider", "provider_id", whose=f"The model {alias!r}")
    underlying = _one_name(model, "model", "name", whose=f"The model {alias!r}")
    provider = _table(document, "providers", provider_id)
    selection = Selection(
        alias,
        provider_id,
        underlying,
        {name: value for name, value in model.items() if name not in _LEADS_BEYOND_MODEL},
        _keyed({n: v for n, v in provider.items() if n not in _LEADS_BEYOND_PROVIDER}, around.environ),
    )
    try:
        selection.binding()
    except CanonicalError as error:
        raise _unusable(f"its tables for {alias!r} have no exact form ({error.code})") from None
    return selection


def _configuration(around: Surroundings) -> dict[str, JsonValue]:
    home = users_home(around.environ)
    if home is None:
        raise _unusable(f"neither {HOME_VARIABLE} nor HOME is an absolute path")
    try:
        with reported(CONFIG_FILE, reading=True):
            target = Path(around.fs.resolve(str(home / CONFIG_FILE)))
        text = read_public(around.fs, target, _CONFIG_BYTES).decode()
        return _plain_table(tomllib.loads(text))
    except (ValueError, RecursionError):
        # Text that is none, a wrong form, a number of thousands of digits, thousands of brackets.
        raise _unusable("it is not TOML") from None


def _plain_table(value: Mapping[str, object]) -> dict[str, JsonValue]:
    return {name: _plain(member) for name, member in value.items()}


def _plain(value: object) -> JsonValue:
    """A value of TOML that JSON has too; times and numbers that are not finite have no place here."""
    match value:
        case str() | bool() | int():
            return value
        case float() if math.isfinite(value):
            return value
        case list():
            return [_plain(item) for item in value]
        case dict():
            return _plain_table(value)
        case _:
            raise _unusable("it holds a time or a number that is not finite")


def _table(document: Mapping[str, JsonValue], section: str, name: str) -> Mapping[str, JsonValue]:
    tables = document.get(section)
    table = tables.get(name) if isinstance(tables, dict) else None
    if not isinstance(table, dict):
        raise _unusable(f"its {section} have no table {name!r}")
    return table


def _one_name(table: Mapping[str, JsonValue], *members: str, whose: str) -> str:
    """The text that these members have, one or all of them; they must not contradict each other."""
    told = [value for member in members if (value := table.get(member)) is not None]
    name = told[0] if told and all(value == told[0] for value in told) else None
    if not isinstance(name, str) or not name.strip():
        raise _unusable(f"{whose} does not have exactly one {members[0]} there")
    return name


def _keyed(provider: dict[str, JsonValue], environ: Mapping[str, str]) -> dict[str, JsonValue]:
    """The provider's table with its key in the place of the name of a variable that holds it."""
    variable = provider.get("api_key_env")
    if not isinstance(variable, str) or "api_key" in provider or not environ.get(variable):
        return provider
    try:
        environ[variable].encode()
    except UnicodeEncodeError:
        raise _unusable(f"the key in the variable {variable!r} is not UTF-8") from None
    return {
        **{name: value for name, value in provider.items() if name != "api_key_env"},
        "api_key": environ[variable],
    }


def _without_credentials(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {
            name: _WITHHELD if _CREDENTIAL.search(name) else _without_credentials(member)
            for name, member in value.items()
        }
    return [_without_credentials(item) for item in value] if isinstance(value, list) else value


def _toml(value: JsonValue) -> str:
    """A value as TOML writes it, tables on one line."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _key(value)
        case int() | float():
            return repr(value)
        case list():
            return f"[{', '.join(map(_toml, value))}]"
        case dict():
            return f"{{{_members(value.items())}}}"
        case _:
            raise _unusable("it holds an empty value")


def _members(members: Iterable[tuple[str, JsonValue]]) -> str:
    return ", ".join(f"{_key(name)} = {_toml(member)}" for name, member in members)


def _key(text: str) -> str:
    """Text in quotation marks. TOML escapes as JSON does, and has DEL escaped as well."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _unusable(reason: str) -> ProviderError:
    return ProviderError(
        ProviderCode.INVALID_CALL,
        f"Kimi's {CONFIG_FILE} cannot be used: {reason}; name a model that it configures, or mend it.",
    )
