"""What belongs to a program: by links, packages and first lines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.execution.installation import Installation, installation

if TYPE_CHECKING:
    from pathlib import Path


def found(path: Path, *tools: str, search: str = "") -> Installation:
    return installation(path, tools, replace(Surroundings.real(), environ={"PATH": search}))


def executable(path: Path, text: str = "\x7fELF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_file_alone(tmp_path: Path) -> None:
    """P13: nothing beside it, not even its folder."""
    program = executable(tmp_path / "agent")
    assert found(program) == Installation((program,), ())


def test_a_link_to_a_package(tmp_path: Path) -> None:
    """P13: the outermost folder of packages, and the link as a link."""
    real = executable(
        tmp_path / "lib" / "node_modules" / "a" / "node_modules" / "b" / "main.mjs", "#!/bin/sh\n"
    )
    link = tmp_path / "agent"
    link.symlink_to(real)
    held = found(link)
    assert tmp_path / "lib" / "node_modules" in held.files
    assert (link, real) in held.links


def test_an_interpreter_from_the_path_comes_with_its_library(tmp_path: Path) -> None:
    """P13: bin and lib of its own, never the folder above, which may be a home."""
    node = executable(tmp_path / "home" / "bin" / "node")
    (tmp_path / "home" / "lib").mkdir()
    (tmp_path / "home" / "secret").mkdir()
    script = executable(tmp_path / "agent", "#!/usr/bin/env -S node --flag\n")
    held = found(script, search=str(node.parent))
    assert set(held.files) == {script, node, tmp_path / "home" / "bin", tmp_path / "home" / "lib"}


def test_tools_on_the_path(tmp_path: Path) -> None:
    """P13: those that are there."""
    program, tool = executable(tmp_path / "agent"), executable(tmp_path / "tools" / "rg")
    assert set(found(program, "rg", "other", search=str(tool.parent)).files) == {program, tool}


@pytest.mark.parametrize("text", ["#!\n", "#! relative\n", "#!/usr/bin/env\n", "#!/missing/program\n", ""])
def test_first_lines_that_lead_nowhere(tmp_path: Path, text: str) -> None:
    """P13: no error; the program says itself what it lacks."""
    program = executable(tmp_path / "agent", text)
    held = found(program)
    assert program in held.files


def test_scripts_that_name_each_other(tmp_path: Path) -> None:
    """P13: it ends."""
    first, second = tmp_path / "a", tmp_path / "b"
    executable(first, f"#!{second}\n")
    executable(second, f"#!{first}\n")
    assert set(found(first).files) == {first, second}
