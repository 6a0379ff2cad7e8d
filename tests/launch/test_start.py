"""What runs before anything can be verified."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import skill_effectiveness
from skill_effectiveness.launch.start import FirstFinder

PACKAGE = Path(skill_effectiveness.__file__).parent


class TestLaunch:
    @pytest.mark.parametrize("module", sorted(path.stem for path in (PACKAGE / "launch").glob("*.py")))
    def test_needs_the_standard_library_only(self, module: str) -> None:
        """B6: in an interpreter without site packages, and no other room is loaded."""
        name = "skill_effectiveness.launch" + ("" if module == "__init__" else f".{module}")
        source = (
            "import importlib, sys; sys.path.insert(0, sys.argv[1]); importlib.import_module(sys.argv[2])\n"
            "own = sorted(n for n in sys.modules if n.partition('.')[0] == 'skill_effectiveness')\n"
            "print(*own, *sorted({n.partition('.')[0] for n in sys.modules} - set(sys.stdlib_module_names)))"
        )
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-I", "-S", "-B", "-c", source, str(PACKAGE.parent), name],
            capture_output=True,
            check=True,
        )
        loaded = set(done.stdout.decode().split()) - {"skill_effectiveness", "__main__"}
        assert all(one.startswith("skill_effectiveness.launch") for one in loaded)

    @pytest.mark.parametrize("room", [".", "launch", "evidence", "protocol", "calibration"])
    def test_the_files_that_run_first_are_empty(self, room: str) -> None:
        """E64: on every pinned path."""
        assert (PACKAGE / room / "__init__.py").read_bytes() == b""

    def test_the_door_of_calibration_is_a_few_lines(self) -> None:
        """It compiles the first file from its bytes and hands over; what fails there gets the one line."""
        door = ast.parse((PACKAGE / "calibration" / "__main__.py").read_text(encoding="utf-8"))
        assert len([node for node in ast.walk(door) if isinstance(node, ast.stmt)]) <= 21
        calls = {ast.unparse(node.func) for node in ast.walk(door) if isinstance(node, ast.Call)}
        assert {"loader.get_data", "loader.source_to_code", "exec", "start.enter"} <= calls


class TestTheFirstFinder:
    @pytest.fixture
    def finder(self) -> FirstFinder:
        return FirstFinder(str(PACKAGE), b"")

    @pytest.mark.parametrize(
        ("name", "place"),
        [
            ("skill_effectiveness", "__init__.py"),
            ("skill_effectiveness.launch", "launch/__init__.py"),
            ("skill_effectiveness.launch.wire", "launch/wire.py"),
        ],
    )
    def test_finds_the_room_of_its_own_tree(self, finder: FirstFinder, name: str, place: str) -> None:
        spec = finder.find_spec(name)
        assert spec is not None
        assert spec.origin == str(PACKAGE / place)
        is_package = place.endswith("__init__.py")
        assert spec.submodule_search_locations == ([str((PACKAGE / place).parent)] if is_package else None)

    @pytest.mark.parametrize("name", ["skill_effectiveness.evidence", "skill_effectiveness.launcher"])
    def test_finds_no_other_room(self, finder: FirstFinder, name: str) -> None:
        with pytest.raises(ModuleNotFoundError):
            finder.find_spec(name)

    @pytest.mark.parametrize("name", ["json", "skill_effectiveness_more", "pydantic"])
    def test_leaves_other_names_to_others(self, finder: FirstFinder, name: str) -> None:
        assert finder.find_spec(name) is None
