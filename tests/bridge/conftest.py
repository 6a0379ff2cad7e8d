"""One door for the many requests of a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.bridge import Bridge, Stream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stream]:
    """A stream at a root that its module's tests share; each has samples and ids of its own."""
    with Bridge(tmp_path_factory.mktemp("shared")).stream() as served:
        yield served


@pytest.fixture
def bridge(tmp_path: Path) -> Bridge:
    """A place of its own."""
    return Bridge(tmp_path)
