"""Which variables are a task's to set."""

from __future__ import annotations

from pathlib import Path

import pytest

from skill_effectiveness.execution import Executable
from skill_effectiveness.providers import ADAPTERS, CommandProvider, CommandSettings
from skill_effectiveness.providers.command_line import CommandLine
from skill_effectiveness.providers.task_environment import refused_name

ALL = [adapter for adapter in ADAPTERS.values() if issubclass(adapter, CommandLine)]


@pytest.mark.parametrize(
    "name", ["DATABASE_URL", "TASK_WORD", "LANG", "PYTHONUNBUFFERED", "DEBUG", "TZ", "GIT_AUTHOR_NAME"]
)
def test_what_work_needs_is_given(name: str) -> None:
    """P3: a task's own words."""
    assert not refused_name(name)


@pytest.mark.parametrize(
    "name",
    [
     "HOME", "PATH", "TMPDIR", "USER", "HTTPS_PROXY",
     "https_proxy", "SSL_CERT_FILE", "LD_PRELOAD", "BASH_ENV", "NODE_OPTIONS",
     "XDG_CONFIG_HOME", "CODEX_HOME", "ANTHROPIC_BASE_URL", "CLAUDE_ANYTHING", "KIMI_X",
     "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "GIT_EXEC_PATH", "SSLKEYLOGFILE", "HOSTALIASES",
     "OPENSSL_CONF", "RIPGREP_CONFIG_PATH", "PYTHONWARNINGS", "BASH_FUNC_ls%%", "PERL5OPT",
     "AWS_BEARER_TOKEN_BEDROCK", "GOOGLE_APPLICATION_CREDENTIALS", "REQUESTS_CA_BUNDLE",
     "OPENCODE_CONFIG", "OTHER_API_KEY", "SERVICE_AUTH_TOKEN", "SKILL_EFFECTIVENESS_CALL",
    ],
)  # fmt: skip
def test_what_is_somebody_elses_is_not(name: str) -> None:
    """P3: the user, places, providers, and what is loaded into programs."""
    assert refused_name(name)


@pytest.mark.parametrize("adapter", ALL, ids=lambda adapter: adapter.name)
def test_no_variable_of_any_adapter_can_be_set(adapter: type[CommandLine]) -> None:
    """P3: each by its own list."""
    names = {*getattr(adapter, "session_variables", {}), *getattr(adapter, "own_keys", ())}
    held = object.__new__(adapter)
    assert [name for name in names if not refused_name(name, held)] == []


def test_what_a_configuration_lets_through_is_the_users() -> None:
    """P3 P14: the variables that a program without an adapter is configured to get are no task's either."""
    program = Executable(Path("/bin/agent"), Path("/bin/agent"), "sha256:" + "0" * 64, "agent 1")
    configured = CommandProvider(program, CommandSettings(keys=("SOME_LOGIN",)))
    assert not refused_name("SOME_LOGIN")
    assert not refused_name("SOME_LOGIN", CommandProvider(program))
    assert refused_name("SOME_LOGIN", configured)
