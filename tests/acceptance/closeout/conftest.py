"""A repository for every test that wants one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.closeout import Repository

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """An empty repository with a home and a store beside it."""
    return Repository(tmp_path)
