"""`providers doctor`: for people a table, for machines one object."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.commands import Said, no_traceback, steers
from tests.support.fake_program import write_fake

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def nowhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with one folder, which is empty, and the home."""
    (home / "bin").mkdir()
    monkeypatch.setenv("PATH", str(home / "bin"))
    for name in ("CODEX_HOME", "CODEX_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return home


class TestTable:
    def test_nothing_is_there(self, command: Callable[..., Said], nowhere: Path) -> None:
        """P13: exit 0, and how to name one."""
        del nowhere
        said = command("providers", "doctor")
        assert (said.code, said.out) == (0, "")
        assert said.err == (
            "Not on PATH: codex, claude, opencode, kimi. Name a program by its path, such as --codex-path.\n"
        )

    def test_one_on_path_and_one_named(self, command: Callable[..., Said], nowhere: Path) -> None:
        """P2 P9 P13: side by side, with what can be proved of each."""
        write_fake(nowhere / "bin" / "codex", "")
        named = write_fake(nowhere / "my-claude", "")
        (nowhere / ".codex").mkdir()
        (nowhere / ".codex" / "auth.json").write_text("{}")
        said = command("providers", "doctor", "--claude-path", named)
        assert said.code == 0
        for shown in (
            "fake-cli 9.9.9",
            "yes, by file",
            "none seen",
            "read-only-observed-none",
            "verified-none",
            "judge, read, work",
        ):
            assert shown in said.out
        assert "Not on PATH: opencode, kimi." in said.err

    def test_one_that_cannot_be_asked(self, command: Callable[..., Said], nowhere: Path) -> None:
        """P2: exit 0, with the word for what is wrong; its name paints nothing."""
        said = command("providers", "doctor", "--codex-path", nowhere / "\x1b[2Jcodex")
        assert said.code == 0
        assert "codex cannot be asked (missing)" in said.err
        assert steers(said.err) == []
        assert "\x1b" not in said.out
        assert no_traceback(said)

    def test_what_is_wrong_is_said(self, command: Callable[..., Said], nowhere: Path) -> None:
        """P2 P13: a folder, a text, two lines: each has its word, and what to do."""
        (nowhere / "text").write_text("#!/bin/sh\n")
        two = nowhere / "two"
        two.write_text("#!/bin/sh\necho a\necho b\n")
        two.chmod(0o755)
        for named, told in (
            (nowhere, "(not_regular): its path is that of a folder or device; name the program itself."),
            (nowhere / "text", "(not_executable): it may not be executed; name a program, or chmod +x it."),
            (two, "(no_version): asked for --version it did not print exactly one line and end well; "),
        ):
            assert (
                f"codex cannot be asked {told}" in command("providers", "doctor", "--codex-path", named).err
            )


class TestJson:
    def test_one_object_with_every_provider(self, command: Callable[..., Said], nowhere: Path) -> None:
        """P2 P9 P13: unknown is null, and no credential stands in it."""
        path = write_fake(nowhere / "bin" / "codex", "")
        said = command("providers", "doctor", "--json")
        assert said.code == 0
        found = {one["provider"]: one for one in said.document["providers"]}
        assert list(found) == ["codex", "claude", "opencode", "kimi"]
        codex = found["codex"]
        assert codex["sha256"].startswith("sha256:")
        assert codex | {"sha256": ""} == {
            "provider": "codex",
            "status": "ready",
            "fault": None,
            "path": str(path),
            "version": "fake-cli 9.9.9",
            "sha256": "",
            "login": "not_seen",
            "call_kinds": ["judge", "read", "work"],
            "requested_session_mode": "ephemeral",
            "tool_access": "read-only-observed-none",
        }
        assert (found["kimi"]["status"], found["kimi"]["path"], found["kimi"]["login"]) == (
            "not_found",
            None,
            None,
        )

    def test_a_relative_entry_of_path_is_not_searched(
        self, command: Callable[..., Said], nowhere: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """P2: or a repository could put its own program there."""
        write_fake(nowhere / "bin" / "codex", "")
        monkeypatch.setenv("PATH", "bin")
        said = command("providers", "doctor", "--json")
        assert {one["status"] for one in said.document["providers"]} == {"not_found"}

    def test_a_word_too_many(self, command: Callable[..., Said], nowhere: Path) -> None:
        """Exit 2, as everywhere."""
        del nowhere
        said = command("providers", "doctor", "more", "--json")
        assert (said.code, said.document["code"]) == (2, "usage")
