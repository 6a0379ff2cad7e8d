"""Finding the real programs, and the reasons for doing without them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.support.model_server import ModelServer

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKOUT = Path(__file__).parents[2]
CODEX_VARIABLE = "SKILL_EFFECTIVENESS_CODEX"
CODEX_INSTALLED = "node_modules/@openai/codex/vendor/*/bin/codex"


@pytest.fixture(scope="session")
def loopback_only() -> None:
    """Real programs run where nothing can leave the machine, or not at all."""
    others = sorted(name for name, state in psutil.net_if_stats().items() if state.isup and name != "lo")
    if others:
        pytest.skip(f"the network is up ({', '.join(others)}): run tools/contract")


@pytest.fixture(scope="session")
def codex_program(loopback_only: None) -> Path:
    """The real codex: named by the environment, or installed by tools/install_clis."""
    del loopback_only
    named = os.environ.get(CODEX_VARIABLE, "")
    if named:
        return Path(named)
    installed = sorted((CHECKOUT / ".clis").glob(CODEX_INSTALLED))
    if not installed:
        pytest.skip(f"no real codex: run tools/install_clis, or name it in {CODEX_VARIABLE}")
    return installed[0]


@pytest.fixture(scope="session")
def model_server() -> Iterator[ModelServer]:
    """One model server for the whole folder."""
    with ModelServer() as server:
        yield server
