"""`reviewers demo`: from the first call to verified seals, with nothing but a folder."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, NoReturn
from xml.etree import ElementTree as ET

import pytest

from skill_effectiveness.cli import demonstration
from tests.support.commands import Said, no_traceback, run, steers
from tests.support.private import content, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LINES = "demo_status=verified\ngood=pass\ncareless=fail\nsynthetic=true\nplot=reviewers.svg\n"
MADE = {"good", "good-sealed", "careless", "careless-sealed", "keys", "reviewers.svg"}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Said]:
    """The documented command as a process, once."""
    home = tmp_path_factory.mktemp("demo")
    return home, run(home, "reviewers", "demo", "--out", "demo")


class TestOnce:
    def test_the_result_lines(self, shown: tuple[Path, Said]) -> None:
        """R43 R44: a good reviewer passes, a careless one fails, and both are synthetic."""
        _home, said = shown
        assert (said.code, said.out) == (0, LINES), said
        assert no_traceback(said)

    def test_people_see_both_compared_and_where_to_look(self, shown: tuple[Path, Said]) -> None:
        home, said = shown
        assert "good: sealed; 10 of 10 checks passed\n" in said.err
        assert "careless: sealed; 10 of 10 checks passed\n" in said.err
        assert said.err.splitlines()[-1] == f"look at {home}/demo/reviewers.svg"
        assert steers(said.err) == []

    def test_everything_is_private(self, shown: tuple[Path, Said]) -> None:
        """E16: folders 0700, files 0600."""
        home, _said = shown
        assert (home / "demo").stat().st_mode & 0o777 == 0o700
        assert wrong_modes(home / "demo") == []
        assert {path.name for path in (home / "demo").iterdir() if not path.name.startswith(".")} == MADE

    def test_nothing_is_left_elsewhere(self, shown: tuple[Path, Said]) -> None:
        home, _said = shown
        assert sorted(path.name for path in home.iterdir()) == ["demo", "tmp"]
        assert list((home / "tmp").iterdir()) == []

    def test_the_plot_is_well_formed_and_runs_nothing(self, shown: tuple[Path, Said]) -> None:
        """F21: one SVG without a script."""
        home, _said = shown
        root = ET.parse(home / "demo/reviewers.svg").getroot()  # noqa: S314 - our own
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        names = {element.tag.rpartition("}")[2] for element in root.iter()}
        assert names & {"script", "foreignObject", "iframe", "image", "a"} == set()
        texts = {"".join(element.itertext()) for element in root.iter()}
        assert {"good: pass", "careless: fail"} <= texts


class TestAgain:
    def test_it_finds_everything_done(self, shown: tuple[Path, Said]) -> None:
        """F4: the same lines, the same bytes, no call."""
        home, first = shown
        before = content(home / "demo")
        again = run(home, "reviewers", "demo", "--out", "demo")
        assert (again.code, again.out) == (first.code, first.out)
        assert content(home / "demo") == before
        assert "waiting for the reviewer" not in again.err

    def test_the_sealed_folders_verify_by_the_other_command(
        self, command: Callable[..., Said], shown: tuple[Path, Said]
    ) -> None:
        """R45: with the exported key."""
        folder = shown[0] / "demo"
        for name, status in (("good", "pass"), ("careless", "fail")):
            said = command("verify", folder / f"{name}-sealed", "--pub", folder / "keys/demo.pub")
            assert (said.code, said.values["calibration_status"]) == (0, status)
            assert said.values["synthetic"] == "true"

    def test_another_folder_gives_the_same_verdicts(
        self, command: Callable[..., Said], home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """R43 R44: equal settings and seed, in whatever order the cases were drawn; no connection."""

        def refused(*_given: object, **_named: object) -> NoReturn:
            raise AssertionError("a socket was opened")

        monkeypatch.setattr(socket, "socket", refused)
        said = command("reviewers", "demo", "--out", "demo")
        assert said.out == LINES
        sheets = {
            name: json.loads((home / "demo" / name / "reviewer-calibration-metrics.json").read_bytes())
            for name in ("good", "careless")
        }
        assert {name: sheet["synthetic"] for name, sheet in sheets.items()} == {
            "good": True,
            "careless": True,
        }

    def test_json_says_the_same(self, command: Callable[..., Said], home: Path) -> None:
        del home
        said = command("reviewers", "demo", "--out", "demo", "--json")
        assert said.out == (
            '{"careless":"fail","demo_status":"verified","good":"pass","plot":"reviewers.svg","synthetic":true}\n'
        )


class TestNotVerified:
    def test_a_damaged_sealed_folder_is_refused(
        self, command: Callable[..., Said], home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A demonstration whose seal does not verify is exit 1, and says so."""
        verify = demonstration.verify_folder

        def tampered(folder: Path, *rest: object, **named: object) -> object:
            evidence = folder / "reviewer-calibration.json"
            evidence.write_bytes(evidence.read_bytes() + b" ")
            return verify(folder, *rest, **named)  # type: ignore[arg-type]

        monkeypatch.setattr(demonstration, "verify_folder", tampered)
        said = command("reviewers", "demo", "--out", home / "demo")
        assert said.code == 1
        assert said.values["demo_status"] == "not_verified"

    def test_a_folder_that_will_not_do(self, command: Callable[..., Said], home: Path) -> None:
        (home / "demo").mkdir()
        (home / "demo").chmod(0o755)
        assert command("reviewers", "demo", "--out", "demo").refusal
        assert list((home / "demo").iterdir()) == []

    def test_a_folder_of_something_else(self, command: Callable[..., Said], home: Path) -> None:
        (home / "demo/good").mkdir(mode=0o700, parents=True)
        (home / "demo").chmod(0o700)
        (home / "demo/good/attempts").mkdir(mode=0o700)
        said = command("reviewers", "demo", "--out", "demo", "--json")
        assert (said.code, said.document["code"]) == (2, "claim_invalid")
