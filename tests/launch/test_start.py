"""What runs before anything can be verified."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import skill_effectiveness

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
