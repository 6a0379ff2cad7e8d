"""Supervisors that are not what they should be, in the place of the real one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skill_effectiveness.execution import supervision

if TYPE_CHECKING:
    import pytest

REAL = supervision.SOURCE


def replaced(monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    """Let another script stand in for the supervisor."""
    monkeypatch.setattr(supervision, "SOURCE", source.encode())


def crippled(monkeypatch: pytest.MonkeyPatch, changes: str) -> None:
    """The real supervisor, `real`, with some of its abilities taken away first.

    The changes may put `refuse` or `nothing` in the place of a function.
    """
    source = f"""
import os, signal, sys
real = {{"__name__": "crippled"}}
exec(compile({REAL!r}, "supervisor.py", "exec"), real)
def refuse(*_):
    raise PermissionError(1, "refused")
def nothing(*_):
    return None
{changes}
sys.exit(real["main"](sys.argv[1:5]))
"""
    replaced(monkeypatch, source)
