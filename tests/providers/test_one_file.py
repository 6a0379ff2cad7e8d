"""A vendor's words stand in its adapter and nowhere else in the code."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

import skill_effectiveness

PACKAGE = Path(next(iter(skill_effectiveness.__path__)))
TEXTS = {
    path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))
}
WORDS: Final = {
    "codex": (
        "CODEX_HOME",
        "CODEX_API_KEY",
        "codex exec",
        "--ephemeral",
        "--ignore-user-config",
        "--skip-git-repo-check",
        "--output-schema",
        "workspace-write",
        "analytics.enabled",
        "project_root_markers",
        "thread.started",
        '"turn.completed"',
        "item.completed",
        "agent_message",
    ),
    "claude": (
        "CLAUDE_CONFIG_DIR",
        "ANTHROPIC_API_KEY",
        "--strict-mcp-config",
        "--setting-sources",
        "--plugin-dir",
        "StructuredOutput",
        "api_error_status",
    ),
    "opencode": ("OPENCODE_", '"--format"', "step_finish", "external_directory"),
    "kimi": (
        "KIMI_CODE_HOME",
        "--skills-dir",
        "max_attempts_per_step",
        "session.resume_hint",
        "provider.rate_limit",
    ),
}


@pytest.mark.parametrize(("vendor", "word"), [(vendor, word) for vendor in WORDS for word in WORDS[vendor]])
def test_a_vendors_words(vendor: str, word: str) -> None:
    """P1: arguments, variables, files and events, in the files of one adapter."""
    found = [path for path, text in TEXTS.items() if word in text]

    assert found
    assert [path for path in found if not path.startswith(f"providers/{vendor}")] == []
