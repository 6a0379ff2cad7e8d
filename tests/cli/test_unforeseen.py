"""What an error inside a command over trials looks like from outside: one exit, one line, one crash file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from skill_effectiveness.cli import arms, gate, gate_run, pair, smoke
from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.protocol.document import to_json
from tests.support.arms import PROFILE_ARMS, profile_arms
from tests.support.blinding import PLANS, sides
from tests.support.commands import Said, no_traceback
from tests.support.private import REPOSITORY, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STATE = ".local/state/skill-effectiveness"
PAYLOAD = "payload-4711"

FREEZE = ("arms", "freeze", "arms/profile/profile-full.json", "--out", "out")
PLAN = ("arms", "plan", "--manifest", "off.json", "--manifest", "full.json", "--out", "out")
PLANNED = ("--tasks", "list.json", "--manifests", "list.json", "--trials", "rows.jsonl")
GATE = ("gate", "--bundle", "bundle", *PLANNED, "--out", "out")
REPLICATE = ("gate", "replicate", "off.json", "--out", "report.json")
PAIR = ("pair", "blind", "--root", "out", "--plan", "plan.json", "--first", "a.json", "--second", "b.json")
SMOKE = ("smoke", "--fixture", str(REPOSITORY / "fixtures" / "e10-smoke.json"), "--out", "out")

# The words of a command, the module of it and the name in there that breaks, and where the crash file lies.
COMMANDS: dict[str, tuple[tuple[str, ...], Any, str, str]] = {
    "freeze, before its folder is open": (FREEZE, arms, "freeze_manifest", STATE),
    "freeze, over its folder": (FREEZE, arms, "dump_line", "out"),
    "plan, before its folder is open": (PLAN, arms, "build_plan", STATE),
    "plan, over its folder": (PLAN, arms, "dump_line", "out"),
    "pair, before its folder is open": (PAIR, pair, "parse_plan", STATE),
    "pair, over its folder": (PAIR, pair, "blind_pair", "out"),
    "gate, before its folder is open": (GATE, gate_run, "load_inputs", STATE),
    "gate, over its folder": (GATE, gate_run, "evaluate_bundle", "out"),
    "replicate": (REPLICATE, gate, "read_summary", STATE),
    "smoke, before its folder is open": (SMOKE, smoke, "parse_smoke_fixture", STATE),
    "smoke, over its folder": (SMOKE, smoke, "run_smoke", "out"),
}


def lay_out(home: Path) -> None:
    """Everything that the commands are given."""
    for name, manifest in zip(("off", "full"), profile_arms(), strict=True):
        (home / f"{name}.json").write_bytes(dump_line(to_json(manifest)))
    (home / "plan.json").write_bytes(dump_line(to_json(PLANS["paired-profile"])))
    for name, side in zip("ab", sides("paired-profile"), strict=True):
        (home / f"{name}.json").write_text(json.dumps(side.model_dump(mode="json")), encoding="utf-8")
    (home / "list.json").write_text("[]", encoding="utf-8")
    (home / "rows.jsonl").write_text("", encoding="utf-8")
    (home / "bundle").mkdir(mode=0o700)


def components(home: Path) -> list[str]:
    """The components of the full profile, as options."""
    words = []
    for name, value in PROFILE_ARMS["full"].items():
        structured = not isinstance(value, str)
        text = json.dumps(value) if structured else str(value)
        (home / f"{name}.part").write_text(text, encoding="utf-8")
        words += ["--structure" if structured else "--component", f"{name}={name}.part"]
    return words


@pytest.mark.parametrize("name", COMMANDS)
def test_of_every_command(
    command: Callable[..., Said], home: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """T53: exit 70, a line, no traceback; the file lies with the results of a command that has a folder."""
    words, module, broken, place = COMMANDS[name]
    lay_out(home)

    def fail(*_: object, **_named: object) -> NoReturn:
        raise RuntimeError(PAYLOAD)

    monkeypatch.setattr(module, broken, fail)
    said = command(*words, *(components(home) if words is FREEZE else ()))
    assert (said.code, said.out) == (70, "")
    assert len(said.err.splitlines()) == 1
    assert no_traceback(said)
    assert PAYLOAD not in said.err
    (crash,) = (home / place / "crash").iterdir()
    assert json.loads(crash.read_bytes())
    assert PAYLOAD.encode() not in crash.read_bytes()
    assert wrong_modes(home / place) == []
