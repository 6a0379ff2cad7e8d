"""Drawing: nothing that a person has configured for plots of their own is obeyed, or even looked at."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.cli.drawing import drawn_svg
from skill_effectiveness.evidence.faults import FileError
from tests.support.commands import environment
from tests.support.private import surroundings

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

STYLE = "figure.facecolor: ff00ff\nlines.linewidth: 9\nfont.size: 40\nbackend: nonsense\nsvg.hashsalt: x\n"
PLANTED = b"ff00ff"
# A process that has loaded nothing yet; what it draws goes to stdout.
DRAW = """
import sys
from skill_effectiveness.cli.plots import Bar, Panel, reviewer_plot
assert not any(name.split(".")[0] == "matplotlib" for name in sys.modules)
sys.stdout.buffer.write(reviewer_plot([Panel("good: pass", (Bar("accuracy", 0.9, 0.8, 1.0, 0.8),))]))
"""


def plotted(home: Path, **environ: str) -> bytes:
    """The plot of a fresh process whose home is also its working folder."""
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", DRAW],
        cwd=home,
        env=environment(home, **environ),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What is drawn where nothing is configured."""
    found = plotted(tmp_path_factory.mktemp("plain"))
    assert found.startswith(b"<?xml")
    assert PLANTED not in found
    return found


def styled(folder: Path) -> Path:
    """A configuration file in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "matplotlibrc").write_text(STYLE)
    return folder


def working_folder(home: Path) -> dict[str, str]:
    styled(home)
    return {}


def fifo_in_the_working_folder(home: Path) -> dict[str, str]:
    os.mkfifo(home / "matplotlibrc")
    return {}


def by_name(home: Path) -> dict[str, str]:
    return {"MATPLOTLIBRC": str(styled(home / "mine") / "matplotlibrc")}


def fifo_by_name(home: Path) -> dict[str, str]:
    os.mkfifo(home / "rc")
    return {"MATPLOTLIBRC": str(home / "rc")}


def configuration_folder(home: Path) -> dict[str, str]:
    return {"MPLCONFIGDIR": str(styled(home / "mine"))}


def configuration_folder_below_home(home: Path) -> dict[str, str]:
    styled(home / "mine")
    return {"MPLCONFIGDIR": "~/mine"}


def spoiled_fonts(home: Path) -> dict[str, str]:
    (home / "mine").mkdir()
    for version in range(300, 500):
        os.mkfifo(home / "mine" / f"fontlist-v{version}.json")
    return {"MPLCONFIGDIR": str(home / "mine")}


def below_home(home: Path) -> dict[str, str]:
    styled(home / ".config" / "matplotlib")
    return {}


def fonts_below_home(home: Path) -> dict[str, str]:
    for folder in (home / ".fonts", home / "data" / "fonts"):
        folder.mkdir(parents=True)
        os.mkfifo(folder / "DejaVuSans.ttf")
    return {"XDG_DATA_HOME": str(home / "data")}


def a_program_for_fonts(home: Path) -> dict[str, str]:
    program = home / "bin" / "fc-list"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {home}/ran\nsleep 60\n")
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:{os.environ['PATH']}"}


def backend(home: Path) -> dict[str, str]:
    del home
    return {"MPLBACKEND": "TkAgg"}


def backend_that_is_none(home: Path) -> dict[str, str]:
    del home
    return {"MPLBACKEND": "nonsense"}


def backend_of_a_module(home: Path) -> dict[str, str]:
    (home / "planted.py").write_text(f"open({str(home / 'ran')!r}, 'w').close()\n")
    return {"MPLBACKEND": "module://planted", "PYTHONPATH": str(home)}


@pytest.mark.parametrize(
    "plants",
    [
        # Of two configuration files the first that is found counts, so each of these has one.
        (fifo_in_the_working_folder, backend_of_a_module),
        (working_folder, backend),
        (by_name, fonts_below_home),
        (fifo_by_name, a_program_for_fonts),
        (configuration_folder, backend_that_is_none),
        (below_home, spoiled_fonts),
        (configuration_folder_below_home,),
    ],
    ids=lambda plants: "+".join(plant.__name__ for plant in plants),
)
def test_nothing_that_is_configured_changes_a_byte(
    tmp_path: Path, plain: bytes, plants: tuple[Callable[[Path], dict[str, str]], ...]
) -> None:
    """F32: nor is it waited for, nor written to."""
    home = tmp_path / "home"
    home.mkdir()
    environ: dict[str, str] = {}
    for plant in plants:
        environ |= plant(home)
    before = sorted(path.relative_to(home) for path in home.rglob("*"))
    assert plotted(home, **environ) == plain
    assert sorted(path.relative_to(home) for path in home.rglob("*") if path.name != "tmp") == before
    assert list((home / "tmp").iterdir()) == []


def some_figure(make: type[Figure]) -> Figure:
    figure = make()
    figure.subplots()
    return figure


class TestThisProcess:
    def test_has_everything_back_afterwards(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MPLBACKEND", "nonsense")
        monkeypatch.chdir(tmp_path)
        before = dict(os.environ)
        seen: list[tuple[str, dict[str, str]]] = []

        def draw(make: type[Figure]) -> Figure:
            seen.append((str(Path.cwd()), dict(os.environ)))
            return some_figure(make)

        around = surroundings(environ={"TMPDIR": str(tmp_path)})
        assert drawn_svg(draw, around) == drawn_svg(draw, around)
        assert dict(os.environ) == before
        assert Path.cwd() == tmp_path
        for working_folder, environ in seen:
            assert working_folder.startswith(f"{tmp_path}/")
            assert sorted(environ) == ["HOME", "MPLCONFIGDIR", "PATH", "TMPDIR"]
        assert list(tmp_path.iterdir()) == []

    def test_has_everything_back_after_a_failure(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        before = dict(os.environ)

        def draw(_make: type[Figure]) -> Figure:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            drawn_svg(draw, surroundings(environ={"TMPDIR": str(tmp_path)}))
        assert (dict(os.environ), Path.cwd()) == (before, tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_a_working_folder_that_is_gone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "gone").mkdir()
        os.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()
        assert drawn_svg(some_figure, surroundings(environ={"TMPDIR": str(tmp_path)})).startswith(b"<?xml")
        with pytest.raises(FileNotFoundError):
            Path.cwd()

    def test_nowhere_for_the_private_folders(self, tmp_path: Path) -> None:
        with pytest.raises(FileError):
            drawn_svg(some_figure, surroundings(environ={"TMPDIR": str(tmp_path / "nowhere")}))
