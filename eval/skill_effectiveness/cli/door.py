"""The one place where the command line takes its surroundings from the air."""

from __future__ import annotations

from functools import cache

from skill_effectiveness.evidence.surroundings import Surroundings


@cache
def surroundings() -> Surroundings:
    """The surroundings of this process; every command passes them on."""
    return Surroundings.real()
