"""A repository for every test that wants one, and processes without a supervisor for all that can do so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.loops import LoopRepository, bare_process

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def bare_processes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start git and agents barely: a run starts dozens, and how they are supervised is tested elsewhere."""
    if "supervised" not in request.fixturenames:
        for module in ("execution.git", "acceptance.loop.processes"):
            monkeypatch.setattr(f"skill_effectiveness.{module}.run_process", bare_process)


@pytest.fixture
def supervised() -> None:
    """Processes as the product starts them."""


@pytest.fixture
def repository(tmp_path: Path) -> LoopRepository:
    """A repository with one commit, and places for fake agents beside it."""
    return LoopRepository(tmp_path / "loop")
