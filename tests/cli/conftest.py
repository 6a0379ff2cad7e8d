"""A home of its own for every command line of a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.calibration.repeats import examine
from skill_effectiveness.cli import door
from skill_effectiveness.cli.main import main
from tests.support.commands import Said, environment
from tests.support.examinations import manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FOREIGN = ("XDG_STATE_HOME", "CODEX_HOME", "CODEX_API_KEY", "FORCE_COLOR", "NO_COLOR", "COLUMNS", "TERM")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The home and working folder of commands run in this process."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    for name in FOREIGN:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment(folder).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)
    door.surroundings.cache_clear()
    yield folder
    door.surroundings.cache_clear()


@pytest.fixture
def command(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Said]:
    """Carries out a command line in this process.

    The code is not hashed at every call, as it is in commands that run as a process of their own.
    """
    del home
    monkeypatch.setitem(examine.__kwdefaults__, "manifest", manifest)

    def carry_out(*words: str | Path) -> Said:
        capsys.readouterr()
        code = main([str(word) for word in words])
        out, err = capsys.readouterr()
        return Said(int(code), out, err)

    return carry_out
