"""A bench for every test that wants one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.crash_images import fast_folder
from tests.support.outcomes import Bench

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def bench() -> Iterator[Bench]:
    """An empty store beside a forge, in memory where there is one: every row is made durable."""
    with fast_folder() as base:
        yield Bench(base)
