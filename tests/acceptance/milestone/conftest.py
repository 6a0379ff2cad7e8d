"""A milestone for every test that wants one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.cli import door
from tests.support.milestones import Case, Hall

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def hall() -> Hall:
    """Scripted engines."""
    return Hall()


@pytest.fixture
def case(
    tmp_path: Path, hall: Hall, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Case]:
    """A repository with a milestone, and the commands."""
    yield Case(tmp_path / "case", hall, monkeypatch, capsys)
    door.surroundings.cache_clear()
