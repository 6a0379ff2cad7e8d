"""Finding the real programs, and the reasons for doing without them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.support.model_server import ModelServer

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKOUT = Path(__file__).parents[2]
INSTALLED = {
    "codex": "@openai/codex/vendor/*/bin/codex",
    "claude": "@anthropic-ai/claude-code-*/claude",
    "opencode": "opencode-*/bin/opencode",
    "kimi": "@moonshot-ai/kimi-code/dist/main.mjs",
    "node": "node-linux-*/bin/node",
}
"""Where tools/install_clis puts each program, below its folder of modules."""


@pytest.fixture(scope="session")
def loopback_only() -> None:
    """Real programs run where nothing can leave the machine, or not at all."""
    others = sorted(name for name, state in psutil.net_if_stats().items() if state.isup and name != "lo")
    if others:
        pytest.skip(f"the network is up ({', '.join(others)}): run tools/contract")


def _program(name: str) -> Path:
    """A real program: named by SKILL_EFFECTIVENESS_CODEX and the like, or installed by tools/install_clis."""
    variable = f"SKILL_EFFECTIVENESS_{name.upper()}"
    named = os.environ.get(variable, "")
    if named:
        return Path(named)
    installed = sorted((CHECKOUT / ".clis" / "node_modules").glob(INSTALLED[name]))
    if not installed:
        pytest.skip(f"no real {name}: run tools/install_clis, or name it in {variable}")
    return installed[0]


@pytest.fixture(scope="session")
def codex_program(loopback_only: None) -> Path:
    """The real codex."""
    del loopback_only
    return _program("codex")


@pytest.fixture(scope="session")
def claude_program(loopback_only: None) -> Path:
    """The real claude."""
    del loopback_only
    return _program("claude")


@pytest.fixture(scope="session")
def opencode_program(loopback_only: None) -> Path:
    """The real opencode, which needs ripgrep on PATH."""
    del loopback_only
    if shutil.which("rg") is None:
        pytest.skip("opencode needs ripgrep (rg) on PATH")
    return _program("opencode")


@pytest.fixture(scope="session")
def kimi_script(loopback_only: None) -> Path:
    """The script of the real kimi."""
    del loopback_only
    return _program("kimi")


@pytest.fixture(scope="session")
def node_program(loopback_only: None) -> Path:
    """The interpreter for it."""
    del loopback_only
    return _program("node")


@pytest.fixture(scope="session")
def model_server() -> Iterator[ModelServer]:
    """One model server for the whole folder."""
    with ModelServer() as server:
        yield server
