"""The pages that people read when something is odd."""

from __future__ import annotations

import json

from skill_effectiveness.acceptance.loop.config import read_config
from tests.support.private import REPOSITORY


def test_the_troubleshooting_page() -> None:
    """L86 L3: warnings of agents, and the npm of Windows."""
    page = (REPOSITORY / "docs" / "troubleshooting.md").read_text()
    for words in (
        "usually harmless",
        "exit code and the outcome decide",
        "`which npm`",
        "`/mnt/c/`",
        "`/usr/`",
    ):
        assert words in page
    assert "install Node and npm inside Linux" in page


def test_the_example_of_the_page_is_one() -> None:
    """L6: what the page shows is read."""
    page = (REPOSITORY / "docs" / "closedloop.md").read_text()
    shown = page.partition("```json\n")[2].partition("```")[0]
    assert [job.name for job in read_config(json.dumps(json.loads(shown)).encode()).jobs] == [
        "expiry",
        "docs",
    ]
