"""`study demo` and `study quick`: from a question to a verified bundle, and to three sentences."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.studies.report_files import PAGE, REPORT
from tests.support.commands import Said, no_traceback, run, steers
from tests.support.private import wrong_modes
from tests.support.studies import example

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Command = Callable[..., Said]

pytestmark = pytest.mark.slow


REPORTED = [
    "gate_status", "verdict_tier", "conclusion", "effect", "interval", "p", "tasks", "to_decide_tasks",
    "result",
]  # fmt: skip
SPENT = ["tokens", "cost_units", "wall_seconds", "to_decide_trials", "to_decide_cost_units"]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Said]:
    """The documented command as a process, once."""
    home = tmp_path_factory.mktemp("demo")
    return home, run(home, "study", "demo", "--out", "demo")


class TestDemo:
    def test_the_result_lines(self, shown: tuple[Path, Said]) -> None:
        """S67 S1 S2: exit 0, the planted effect, the bundle, how the report ended, and what it says."""
        _home, said = shown
        assert said.code == 0, said
        assert list(said.values) == ["planted", "bundle", "report_exit", *REPORTED]
        assert (said.values["planted"], said.values["report_exit"]) == ("0.4", "3")
        assert said.values["conclusion"] == "improves"
        low, high = map(float, said.values["interval"].split(".."))
        assert low <= 0.4 <= high
        assert no_traceback(said)

    def test_what_people_see(self, shown: tuple[Path, Said]) -> None:
        """S67: a table, the checks, and the path of the report at the end."""
        home, said = shown
        assert "planted and found" in said.err
        assert "14 of 14 checks passed" in said.err
        assert said.err.splitlines()[-1] == f"look at {home}/demo/run/report/report.html"
        assert (home / "demo" / "run" / "report" / "report.html").is_file()
        assert steers(said.err) == []

    def test_the_bundle_verifies_for_a_stranger(self, shown: tuple[Path, Said]) -> None:
        """S67 S60: with the public key alone."""
        home, _said = shown
        said = run(home, "verify", "demo/bundle", "--pub", "demo/keys/demo.pub")
        assert said.code == 0, said

    def test_everything_is_private(self, shown: tuple[Path, Said]) -> None:
        home, _said = shown
        for name in ("run", "bundle", "keys", "state"):
            assert wrong_modes(home / "demo" / name) == []

    def test_again(self, shown: tuple[Path, Said]) -> None:
        """S67 S28: in the same folder everything is found done, and comes out the same."""
        home, first = shown
        said = run(home, "study", "demo", "--out", "demo")
        assert (said.code, said.out) == (0, first.out), said


class TestQuick:
    @pytest.fixture
    def words(self, home: Path) -> list[str]:
        study = example(home, tasks=2)
        return [
            "study", "quick", "--skill", f"{study}/skills/file-notes", "--tasks", f"{study}/tasks",
            "--driver", "simulated", "--model", "m-1", "--samples", "1", "--out", "R",
        ]  # fmt: skip

    def test_a_dry_run(self, command: Command, home: Path, words: list[str]) -> None:
        """S6: the plan, and no trial."""
        said = command(*words, "--dry-run")
        assert (said.code, said.values["trials"]) == (0, "4")
        assert said.err.splitlines()[-1] == "Now: run.py study run R"
        assert (home / "R" / "plan.json").is_file()
        assert not (home / "R" / "trials").exists()

    def test_the_long_way(self, command: Command, home: Path, words: list[str]) -> None:
        """S5 S1 S2: the study file it leaves gives, under the same seed, the same tables."""
        assert command(*words, "--dry-run").code == 0
        hidden = home / "long" / "private"
        hidden.mkdir(mode=0o700, parents=True)
        shutil.copyfile(home / "R" / "private" / "allocation.json", hidden / "allocation.json")
        (hidden / "allocation.json").chmod(0o600)
        (home / "long").chmod(0o700)
        said = command(*words)
        assert (said.code, list(said.values)) == (3, [*REPORTED, *SPENT])
        assert said.err.splitlines()[-2:] == [
            f"look at {home / 'R' / REPORT / PAGE}",
            "Now: run.py study seal R --out B",
        ]
        assert len([line for line in said.err.splitlines() if line.startswith(("With the", "It took"))]) == 2
        assert command("study", "plan", "R", "--out", "long").code == 0
        assert command("study", "run", "long").code == 0
        assert command("study", "report", "long").code == 3
        columns = [_without_times(home / name / REPORT / "trials.csv") for name in ("R", "long")]
        assert columns[0] == columns[1]
        assert command(*words).code == 3

    def test_with_a_placebo(self, command: Command, home: Path, words: list[str]) -> None:
        """S7 S5: a third arm beside off and full, run and reported as they are."""
        said = command(*words, "--placebo")
        assert (said.code, list(said.values)) == (3, [*REPORTED, *SPENT])
        trials = (home / "R" / REPORT / "trials.csv").read_text().splitlines()
        assert [sum(f",{arm}," in line for line in trials) for arm in ("off", "full", "reference")] == [
            2,
            2,
            2,
        ]
        assert command(*words, "--placebo").code == 3

    def test_other_arguments(self, command: Command, words: list[str]) -> None:
        """S1: exit 2, the folder holds another study."""
        assert command(*words, "--dry-run").code == 0
        said = command(*words[:-4], "--samples", "2", "--out", "R", "--json")
        assert (said.code, said.document["code"]) == (2, "plan_exists")

    def test_no_reviewer(self, command: Command, words: list[str]) -> None:
        """S65: a reviewer without its program or licence."""
        assert "LICENCE=EXE" in command(*words, "--reviewer", "=x").refusal


def _without_times(table: Path) -> list[list[str]]:
    """The rows of a table without what differs between two runs: times and the folder's identity."""
    head, *lines = (line.split(",") for line in table.read_text().splitlines())
    left = {"started_at", "ended_at", "grade_hash", "trial_fingerprint", "completion_binding_hash"}
    return [[cell for name, cell in zip(head, line, strict=True) if name not in left] for line in lines]
