"""What may be demanded around a call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skill_effectiveness.providers import ProviderCode, ProviderError
from skill_effectiveness.providers.confinement import Confinement, Observation, Touch


@pytest.mark.parametrize(
    "demand",
    [
        {},
        {"place": "/app"},
        {"place": "/work/of/a.task"},
        {"readable": (Path("/srv/models"),), "hidden": (Path("/root/study"),), "traced": True},
    ],
)
def test_what_can_be_demanded(demand: dict[str, Any]) -> None:
    """P13: a place of its own for the working copy, and absolute paths."""
    held = Confinement(**demand)
    assert {name: getattr(held, name) for name in demand} == demand


@pytest.mark.parametrize(
    "demand",
    [
        {"place": "app"},
        {"place": ""},
        {"place": "/"},
        {"place": "//"},
        {"place": "//app"},
        {"place": "/app/"},
        {"place": "/app/./work"},
        {"place": "/app/.."},
        {"place": "/app/../etc"},
        {"readable": (Path("models"),)},
        {"readable": (Path("/srv"), Path())},
        {"hidden": (Path("study"),)},
    ],
)
def test_what_cannot(demand: dict[str, Any]) -> None:
    """P13: refused when it is made, before anything is started; no path is told."""
    with pytest.raises(ProviderError) as raised:
        Confinement(**demand)
    assert raised.value.code is ProviderCode.INVALID_CALL
    assert "/" not in raised.value.sentence


def test_paths_stay_out_of_traces() -> None:
    """P7: what must be hidden is not told by a repr, nor is what a program touched."""
    touch = Touch("open", "read", "/home/somebody/secret")
    seen = Observation((), (), touched=(touch,), refused=(touch,))
    assert "secret" not in repr(Confinement(hidden=(Path("/home/somebody/secret"),))) + repr(seen)
    assert (seen.complete, seen.enforced, seen.faults) == (False, False, ())
