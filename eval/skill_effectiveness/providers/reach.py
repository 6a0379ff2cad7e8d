"""Where agent command lines look for skills and instructions besides where they are told to.

Source: providers.md sections 2 to 5; studies.md section 4; field-failures.md F31, F32. A study plants marks
in these places and then asks an agent what it sees: whoever sees one was not alone with its treatment.
"""

from __future__ import annotations

from typing import Final

HOME_SKILLS: Final = (
    ".agents/skills",
    ".claude/skills",
    ".codex/skills",
    ".config/opencode/skills",
    ".kimi-code/skills",
    ".kimi/skills",
    ".opencode/skills",
)
"""Folders of skills below a user's home."""

PROJECT_SKILLS: Final = (
    ".agents/skills",
    ".claude/skills",
    ".codex/skills",
    ".kimi-code/skills",
    ".kimi/skills",
    ".opencode/skills",
)
"""Folders of skills below a project, or any folder above the one that is worked in."""

PROJECT_INSTRUCTIONS: Final = ("AGENTS.md", "CLAUDE.md")
"""Files that are read as instructions there."""
