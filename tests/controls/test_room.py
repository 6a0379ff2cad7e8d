"""What the room may know of its neighbours."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tests.support.private import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

ROOMS = REPOSITORY / "eval" / "skill_effectiveness"


def imported(page: Path) -> set[str]:
    """Every module that a page names in an import, those for annotations included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(page.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def of_room(room: str) -> dict[str, set[str]]:
    found = {page.name: imported(page) for page in (ROOMS / room).rglob("*.py")}
    assert len(found) > 5
    return found


def test_controls_and_trials_know_nothing_of_each_other() -> None:
    """A32: neither imports the other."""
    for room, other in (("controls", "trials"), ("trials", "controls")):
        for page, names in of_room(room).items():
            assert not [name for name in names if f"{name}.".startswith(f"skill_effectiveness.{other}.")], (
                page
            )


def test_both_reach_one_evaluator() -> None:
    """A32: `protocol.skill_events` holds it, and nobody else defines one."""
    evaluator = "skill_effectiveness.protocol.skill_events"
    assert any(f"{evaluator}.evaluate_matched_call" in names for names in of_room("controls").values())
    assert any(any(name.startswith(evaluator) for name in names) for names in of_room("trials").values())
    defined = [
        page.relative_to(ROOMS).as_posix()
        for page in ROOMS.rglob("*.py")
        if "def evaluate_matched_call" in page.read_text(encoding="utf-8")
    ]
    assert defined == ["protocol/skill_events.py"]


def test_the_room_has_no_effects_of_its_own() -> None:
    """A30: by its imports: no processes, no network, no models."""
    effects = {"subprocess", "socket", "multiprocessing", "asyncio", "os", "pathlib", "http", "urllib"}
    for page, names in of_room("controls").items():
        assert not {name.split(".")[0] for name in names} & effects, page
        assert not [name for name in names if ".execution" in name or ".providers" in name], page
