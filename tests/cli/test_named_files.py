"""In which of the files on a command line a fault is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.cli.named_files import naming
from skill_effectiveness.evidence.faults import Fault, FileCode, FileError, StrictCode, StrictError
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.protocol.document import to_json
from tests.support.blinding import PLANS, sides
from tests.support.private import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.commands import Said


def test_name_and_pointer_stand_before_the_sentence() -> None:
    with pytest.raises(StrictError) as caught, naming(Path("/srv/there/gates.json")):
        read_json(b'{"a":[1,NaN]}', Profile.DOCUMENT)
    assert (caught.value.code, caught.value.faults[0].where) == (StrictCode.NON_FINITE, "/a/1")
    assert str(caught.value).startswith("gates.json at /a/1: This number is not finite")


def test_a_fault_of_the_whole_has_no_pointer() -> None:
    with pytest.raises(StrictError, match=r"^gates\.json: ") as caught, naming(Path("gates.json")):
        read_json(b"\xff", Profile.DOCUMENT)
    assert caught.value.code is StrictCode.NOT_UTF8


def test_faults_of_files_name_them_already() -> None:
    missing = FileError(Fault(FileCode.MISSING, "x", "x does not exist."))
    with pytest.raises(FileError) as caught, naming(Path("gates.json")):
        raise missing
    assert caught.value is missing


@pytest.mark.parametrize("broken", ["a.json", "b.json"])
def test_each_side_of_a_pair(command: Callable[..., Said], home: Path, broken: str) -> None:
    """T54: the sentence says which of the files to correct."""
    (home / "plan.json").write_text(json.dumps(to_json(PLANS["paired-profile"])), encoding="utf-8")
    for name, side in zip("ab", sides("paired-profile"), strict=True):
        (home / f"{name}.json").write_text(json.dumps(side.model_dump(mode="json")), encoding="utf-8")
    (home / broken).write_text('{"judge_payload":NaN}', encoding="utf-8")
    files = ("--plan", "plan.json", "--first", "a.json", "--second", "b.json")
    assert command("pair", "blind", "--root", "out", *files).refusal.startswith(f"{broken} at /judge_payload")


@pytest.mark.parametrize("option", ["--tasks", "--manifests", "--config"])
def test_each_file_of_a_gate(command: Callable[..., Said], home: Path, option: str) -> None:
    """T54: likewise."""
    for name, text in (("good", "[]"), ("rows", ""), ("bad", '[{"a":1,"a":2}]')):
        (home / name).write_text(text, encoding="utf-8")
    given = {"--tasks": "good", "--manifests": "good", "--config": "good"} | {option: "bad"}
    words = [word for pair in given.items() for word in pair]
    said = command("gate", "--bundle", "bundle", *words, "--trials", "rows", "--out", "out")
    assert said.refusal.startswith("bad at /0/a: The same member name")
    assert not (home / "out").exists()


def test_the_gates_of_a_smoke_run(command: Callable[..., Said], home: Path) -> None:
    """T54: likewise."""
    (home / "gates.json").write_text('{"thresholds":{"a":1e999}}', encoding="utf-8")
    fixture = REPOSITORY / "fixtures" / "e10-smoke.json"
    said = command("smoke", "--fixture", fixture, "--out", "out", "--pilot-gates", "gates.json")
    assert said.refusal.startswith("gates.json at /thresholds/a: ")
