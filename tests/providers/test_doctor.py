"""What is told of a program without asking any model."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.providers import ADAPTERS, CallKind
from skill_effectiveness.providers.doctor import LoginState, ProgramState, diagnose, programs
from tests.support.fake_program import write_fake
from tests.support.provider_calls import left_behind, surroundings

if TYPE_CHECKING:
    from pathlib import Path

CODEX = ADAPTERS["codex"]
CLAUDE = ADAPTERS["claude"]
# It would leave a mark if it were asked anything but its version.
SILENT = "open(folder + '/asked', 'w').write(' '.join(sys.argv))"


def program(tmp_path: Path, name: str = "codex") -> Path:
    return write_fake(tmp_path / name, SILENT, folder=str(tmp_path))


class TestProgram:
    def test_a_program_that_can_be_bound(self, tmp_path: Path) -> None:
        """P2 P13: path, version and digest as they are; kinds and labels as the adapter declares them."""
        path, around = program(tmp_path), surroundings(tmp_path)
        found = diagnose(CODEX, path, around)
        assert found.program is not None
        assert (found.provider, found.state, found.path, found.fault) == (
            "codex",
            ProgramState.READY,
            path,
            None,
        )
        assert found.program.version == "fake-cli 9.9.9"
        assert found.program.sha256 == f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
        assert set(found.kinds) == CODEX.call_kinds
        assert CallKind.JUDGE in found.kinds
        assert (found.session_label, found.tool_label) == ("ephemeral", "read-only-observed-none")
        assert not (tmp_path / "asked").exists()
        assert left_behind(around) == []

    @pytest.mark.parametrize(
        ("name", "fault"), [("nothing", "missing"), ("folder", "not_regular"), ("mute", "no_version")]
    )
    def test_one_that_cannot(self, tmp_path: Path, name: str, fault: str) -> None:
        """P2: why, in a closed word; nothing is raised."""
        (tmp_path / "folder").mkdir()
        (tmp_path / "mute").write_text("#!/bin/sh\n")
        (tmp_path / "mute").chmod(0o755)
        found = diagnose(CODEX, tmp_path / name, surroundings(tmp_path))
        assert (found.state, found.fault, found.program, found.login) == (
            ProgramState.UNUSABLE,
            fault,
            None,
            None,
        )

    def test_none_at_all(self, tmp_path: Path) -> None:
        found = diagnose(CODEX, None, surroundings(tmp_path))
        assert (found.state, found.path, found.fault) == (ProgramState.NOT_FOUND, None, None)

    def test_every_provider_with_a_program_of_its_name(self) -> None:
        """P13 P14: a program without an adapter has none, and a simulated reviewer no program."""
        assert list(programs()) == ["codex", "claude", "opencode", "kimi"]


class TestLogin:
    def state(self, tmp_path: Path, **environ: str) -> LoginState | None:
        return diagnose(CODEX, program(tmp_path), surroundings(tmp_path, **environ)).login

    def test_nothing_to_see(self, tmp_path: Path) -> None:
        assert self.state(tmp_path) is LoginState.NOT_SEEN

    def test_a_file(self, tmp_path: Path) -> None:
        """P3: that it is there; it is not read."""
        (tmp_path / "auth.json").write_text("not even JSON")
        assert self.state(tmp_path, CODEX_HOME=str(tmp_path)) is LoginState.FILE

    def test_a_variable(self, tmp_path: Path) -> None:
        """P3: set, and not empty."""
        assert self.state(tmp_path, CODEX_API_KEY="secret") is LoginState.VARIABLE
        assert self.state(tmp_path, CODEX_API_KEY="") is LoginState.NOT_SEEN

    def test_a_credential_of_another_provider_is_none(self, tmp_path: Path) -> None:
        """P3: it would not reach the program."""
        assert self.state(tmp_path, OPENAI_API_KEY="secret", ANTHROPIC_API_KEY="secret") is (
            LoginState.NOT_SEEN
        )

    def test_a_setting_is_none(self, tmp_path: Path) -> None:
        """P3: an address and a user's name log nobody in."""
        around = surroundings(tmp_path, ANTHROPIC_BASE_URL="http://127.0.0.1:9", USER="me", LOGNAME="me")
        path = program(tmp_path, "claude")
        assert diagnose(CLAUDE, path, around).login is LoginState.NOT_SEEN
        around.environ["CLAUDE_CODE_OAUTH_TOKEN"] = "secret"  # type: ignore[index]
        assert diagnose(CLAUDE, path, around).login is LoginState.VARIABLE

    def test_a_file_that_stays_where_it_is(self, tmp_path: Path) -> None:
        """P3: no session has a link to it, and a session uses it all the same."""
        path = program(tmp_path, "claude")
        around = surroundings(tmp_path, CLAUDE_CONFIG_DIR=str(tmp_path))
        (tmp_path / ".credentials.json").write_text("{}")
        assert diagnose(CLAUDE, path, around).login is LoginState.FILE
        (tmp_path / ".credentials.json").unlink()
        (tmp_path / ".credentials.json").mkdir()
        assert diagnose(CLAUDE, path, around).login is LoginState.UNUSABLE

    def test_something_else_in_its_place(self, tmp_path: Path) -> None:
        (tmp_path / "auth.json").mkdir()
        assert self.state(tmp_path, CODEX_HOME=str(tmp_path)) is LoginState.UNUSABLE
