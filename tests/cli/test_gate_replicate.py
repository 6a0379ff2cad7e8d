"""`gate replicate`: exits, lines and the report of trials.md, section 9."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.protocol.document import to_json
from tests.support.commands import Said, no_traceback
from tests.support.summaries import MACHINE, OTHER_MACHINE, of_machine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FIRST, SECOND = of_machine(MACHINE), of_machine(OTHER_MACHINE)


@pytest.fixture
def held(home: Path) -> Path:
    (home / "one.json").write_bytes(dump_line(to_json(FIRST)))
    (home / "two.json").write_bytes(dump_line(to_json(SECOND)))
    return home


def replicate(command: Callable[..., Said], *words: str) -> Said:
    return command("gate", "replicate", *words, "--out", "report.json")


class TestReplicate:
    def test_established(self, command: Callable[..., Said], held: Path) -> None:
        """T56 T61: exit 0; lines and report, which names no tier."""
        said = replicate(command, "one.json", "two.json")
        assert (said.code, said.err) == (0, "")
        assert said.out == (
            "property=replicated-advisory\nestablished=true\nfailures=none\nsummaries=2\nresult=report.json\n"
        )
        report = json.loads((held / "report.json").read_bytes())
        assert report["established"] is True
        assert report["coverage_limitations"] == ["access_root_enforcement", "mount_evidence"]
        assert not {"status", "verdict_tier", "effect", "mean"} & set(report)

    def test_not_established(self, command: Callable[..., Said], held: Path) -> None:
        """T54 T61: exit 1; the report says why."""
        said = replicate(command, "one.json", "one.json")
        assert said.code == 1
        assert said.values["established"] == "false"
        assert said.values["failures"] == "bundle_twice,machine_twice"
        assert json.loads((held / "report.json").read_bytes())["failures"] == [
            "bundle_twice",
            "machine_twice",
        ]

    def test_for_machines(self, command: Callable[..., Said], held: Path) -> None:
        """T56: the same keys."""
        del held
        assert json.loads(replicate(command, "one.json", "--json").out) == {
            "property": "replicated-advisory",
            "established": False,
            "failures": ["too_few"],
            "summaries": 1,
            "result": "report.json",
        }

    @pytest.mark.parametrize("text", [b"", b"nonsense", b"{}", b"[]"])
    def test_what_is_no_summary(self, command: Callable[..., Said], held: Path, text: bytes) -> None:
        """T61: one line names it, and the set is not established."""
        (held / "three.json").write_bytes(text)
        said = replicate(command, "one.json", "two.json", "three.json")
        assert (said.code, said.values["failures"]) == (1, "unloadable")
        assert said.err.startswith("skill_effectiveness_trial: three.json: ")
        assert said.err.count("\n") == 1

    def test_limitations_taken_out(self, command: Callable[..., Said], held: Path) -> None:
        """T25 T61: an edited summary counts as none."""
        edited = to_json(SECOND) | {"coverage_limitations": []}
        (held / "two.json").write_bytes(dump_line(edited))
        assert replicate(command, "one.json", "two.json").values["failures"] == "unloadable"

    def test_a_report_is_no_summary(self, command: Callable[..., Said], held: Path) -> None:
        """T61: what was established cannot be counted again."""
        replicate(command, "one.json", "two.json")
        (held / "report.json").rename(held / "old.json")
        said = replicate(command, "one.json", "two.json", "old.json")
        assert (said.code, said.values["failures"]) == (1, "unloadable")

    @pytest.mark.parametrize("words", [(), ("one.json", "nowhere.json"), ("one.json", ".")])
    def test_bad_input(self, command: Callable[..., Said], held: Path, words: tuple[str, ...]) -> None:
        """T54: exit 2, and no report."""
        said = replicate(command, *words)
        assert said.code == 2
        assert no_traceback(said)
        assert not (held / "report.json").exists()

    def test_a_report_is_never_overwritten(self, command: Callable[..., Said], held: Path) -> None:
        (held / "report.json").write_text("mine")
        assert replicate(command, "one.json", "two.json").code == 2
        assert (held / "report.json").read_text() == "mine"
