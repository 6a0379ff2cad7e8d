"""The four agent programs bound to fakes that tell when they are started, and launches of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from skill_effectiveness.providers import ADAPTERS, LaunchShape, Mount, WorkCall
from tests.support.fake_program import write_fake
from tests.support.kimi import write_configuration
from tests.support.provider_calls import left_behind, surroundings

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.providers import Provider

PROGRAMS = ("claude", "codex", "kimi", "opencode")
MODELS = {"codex": "model-1", "claude": "claude-fake-1", "opencode": "fake/fake-model", "kimi": "fake-model"}
KEYS = {"codex": "CODEX_API_KEY", "claude": "ANTHROPIC_API_KEY"}
PROMPT = "Do it."


def user(tmp_path: Path, **environ: str) -> Surroundings:
    """A user who configured kimi and has a login of each program; without a sandbox, with `rg`."""
    home, tools = tmp_path / "home", tmp_path / "bin"
    write_configuration(home)
    for place in (".codex/auth.json", ".claude/.credentials.json", ".local/share/opencode/auth.json"):
        (home / place).parent.mkdir(parents=True, exist_ok=True)
        (home / place).write_text("{}")
    tools.mkdir(exist_ok=True)
    write_fake(tools / "rg", "")
    keys = {name: f"{provider}-key-canary" for provider, name in KEYS.items()}
    return surroundings(tmp_path, HOME=str(home), PATH=str(tools), **(keys | environ))


def bound(provider: str, tmp_path: Path, around: Surroundings) -> Provider:
    """An adapter, bound to a program that writes the file `started` when it is."""
    body = f"open({str(tmp_path / 'started')!r}, 'w').close()"
    program = write_fake(tmp_path / provider, body)
    return ADAPTERS[provider].at(program, around=around).for_model(MODELS[provider], around)


def mounted(tmp_path: Path, *, skills: bool = True, instructions: bool = True) -> Mount:
    """A skill of three files, one of them a program, and instructions."""
    skill = tmp_path / "arm" / "right-words"
    (skill / "bin").mkdir(parents=True, exist_ok=True)
    (skill / "SKILL.md").write_text("---\nname: right-words\n---\nskill-canary\n")
    (skill / "bin" / "run.sh").write_text("true\n")
    (skill / "bin" / "run.sh").chmod(0o755)
    return Mount((skill,) if skills else (), "rules-canary\n" if instructions else None)


def launched(
    provider: str, tmp_path: Path, mount: Mount | None = None, around: Surroundings | None = None
) -> LaunchShape:
    """What a work call on a copy with one file would start; nothing is left of it."""
    known = around or user(tmp_path)
    copy = tmp_path / "copy"
    copy.mkdir(exist_ok=True)
    (copy / "start.txt").write_text("start\n")
    call = WorkCall(PROMPT, copy, MODELS[provider], 20, mount=mount)
    shape = bound(provider, tmp_path, known).launch(call, around=known).shape(PROMPT)
    assert left_behind(known) == []
    return shape


def without(shape: LaunchShape, path: str) -> LaunchShape:
    """A shape that lacks one path."""
    return replace(shape, tree={name: word for name, word in shape.tree.items() if name != path})
