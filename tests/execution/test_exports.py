"""What the room offers, and what nobody else may do."""

from __future__ import annotations

import ast
from pathlib import Path

import skill_effectiveness
from skill_effectiveness import execution

PACKAGE = Path(skill_effectiveness.__file__).parent
STARTERS = {"subprocess", "multiprocessing", "pty"}
STARTING_CALLS = {"fork", "forkpty", "system", "popen", "posix_spawn", "posix_spawnp"}


class TestThePublicNames:
    def test_are_these(self) -> None:
        assert set(execution.__all__) == {
            "NOT_LOOKED_AT",
            "TEMPORARY_FOLDER",
            "Access",
            "Ended",
            "Executable",
            "ExecutableCode",
            "ExecutableError",
            "Leftover",
            "LimitName",
            "Limits",
            "Place",
            "ProcessResult",
            "Sandbox",
            "SessionFolders",
            "SessionSweep",
            "StartFault",
            "Trace",
            "Tracer",
            "View",
            "identify",
            "leftovers",
            "locate",
            "never",
            "read_trace",
            "run_process",
            "sweep_sessions",
            "unprepared",
        }


class TestStartingChildren:
    def test_is_done_here_alone(self) -> None:
        """P10: a child that nobody watches over cannot come from another room."""
        found = set()
        for path in PACKAGE.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                names: list[str] = []
                if isinstance(node, ast.Import):
                    names = [alias.name.partition(".")[0] for alias in node.names]
                elif isinstance(node, ast.ImportFrom):
                    names = [(node.module or "").partition(".")[0]]
                elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    starts = node.attr in STARTING_CALLS or node.attr.startswith("spawn")
                    names = ["subprocess"] if node.value.id == "os" and starts else []
                if STARTERS & set(names):
                    found.add(path.relative_to(PACKAGE).as_posix())
        assert found == {"execution/supervision.py", "execution/supervisor.py"}
