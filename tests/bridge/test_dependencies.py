"""Which distributions the bridge binds: those that its code can come to, and no other."""

from __future__ import annotations

import ast
import re
import sys
from importlib import metadata
from typing import TYPE_CHECKING

from skill_effectiveness.launch.bridge_manifest import DEPENDENCIES, ROOMS
from tests.support.private import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CODE = REPOSITORY / "eval"
# The door loads the latter two by name.
ROOTS = ("bridge.door", "bridge.artifacts", "bridge.verdicts", "launch.bridge_entrance")
NEVER = frozenset({"skill_effectiveness.evidence.yaml12"})
# Intervals and alpha of a sheet of reviewers, which no verdict holds; imported in those functions alone.
FIGURES = {"numpy"}
# Loaded by one of the others.
WITHIN = {"pydantic-core", "annotated-types", "typing-inspection", "typing-extensions"}


def place_of(module: str) -> Path | None:
    """The source of a module of the package."""
    place = CODE.joinpath(*module.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


def imported(tree: ast.AST) -> Iterator[str]:
    """Every name that code imports when it runs, in functions too."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module
                yield from (f"{module}.{alias.name}" for alias in node.names)
            case _:
                yield from imported(node)


def reached() -> tuple[set[str], set[str]]:
    """The modules of the package that the bridge comes to, and other people's packages."""
    waiting = [f"skill_effectiveness.{root}" for root in ROOTS]
    ours: set[str] = set()
    others: set[str] = set()
    while waiting:
        name = waiting.pop()
        top = name.partition(".")[0]
        if top != "skill_effectiveness":
            others |= {top} - sys.stdlib_module_names
            continue
        place = place_of(name)
        if place is None or name in ours:
            continue
        ours.add(name)
        waiting.extend(imported(ast.parse(place.read_bytes())))
    return ours, others


def test_are_what_its_code_comes_to() -> None:
    """B13 B14: one more would be demanded for nothing, one less not be found."""
    ours, others = reached()
    assert {name.split(".")[1] for name in ours if "." in name} <= set(ROOMS)
    assert not ours & NEVER
    owners = metadata.packages_distributions()
    found = {re.sub(r"[-_.]+", "-", owner).lower() for top in others for owner in owners[top]}
    assert found - FIGURES <= set(DEPENDENCIES)
    assert set(DEPENDENCIES) - found <= WITHIN


def test_of_figures_only_that_are_not_asked_for() -> None:
    """B14: what else is imported is imported by functions that no other module of these asks for."""
    computing: set[str] = set()
    asked_for: set[str] = set()
    for name in reached()[0]:
        place = place_of(name)
        assert place is not None
        tree = ast.parse(place.read_bytes())
        found = {
            f"{name}.{node.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and FIGURES & set(imported(node))
        }
        assert bool(found) == bool(FIGURES & set(imported(tree))), name
        computing |= found
        if not found:
            asked_for |= set(imported(tree))
    assert {one.rpartition(".")[0] for one in computing} == {
        "skill_effectiveness.calibration.agreement",
        "skill_effectiveness.calibration.intervals",
    }
    assert not computing & asked_for


def test_are_there_with_what_they_need() -> None:
    """B13: the requirements of each, as it is installed, extras left out."""
    needed = {
        re.sub(r"[-_.]+", "-", re.split(r"[ (<>=!~;\[]", wanted, maxsplit=1)[0]).lower()
        for name in DEPENDENCIES
        for wanted in metadata.requires(name) or ()
        if "extra ==" not in wanted and "python_version" not in wanted
    }
    assert needed <= set(DEPENDENCIES)
