"""A vendor's words stand in its adapter and nowhere else in the code."""

from __future__ import annotations

from pathlib import Path

import pytest

import skill_effectiveness

PACKAGE = Path(next(iter(skill_effectiveness.__path__)))


@pytest.mark.parametrize(
    "word",
    [
        "CODEX_HOME",
        "CODEX_API_KEY",
        "auth.json",
        "codex exec",
        "--ephemeral",
        "--ignore-user-config",
        "--skip-git-repo-check",
        "--output-schema",
        "analytics.enabled",
        "thread.started",
        '"turn.completed"',
        "item.completed",
        "agent_message",
    ],
)
def test_the_words_of_codex(word: str) -> None:
    """P1: arguments, variables, files and events."""
    found = {
        str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if word in path.read_text("utf-8")
    }

    assert found == {"providers/codex.py"}
