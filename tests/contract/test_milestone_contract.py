"""A whole close whose engine is the real codex, which talks to a model server on loopback."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.acceptance.milestone.probe import DEFECTS
from skill_effectiveness.cli import door, milestone
from tests.support.codex_shim import custom_provider, write_shim
from tests.support.commands import Said, no_traceback
from tests.support.milestones import finding, refs_of
from tests.support.model_server import ToolCall
from tests.support.repositories import PlainRepository

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.model_server import ModelServer
    from tests.support.model_wire import Asked as WireAsked
    from tests.support.model_wire import Reply, Wire

pytestmark = pytest.mark.realcli


def answer(prompt: str) -> str:
    """A sound reviewer: it finds what is planted, and nothing in the range under review."""
    planted = next((each for each in DEFECTS if each.intended in prompt), None)
    if planted is not None:
        found = finding("B-1", file=planted.file, line=planted.lines[-1], text="Wrong.")
        return json.dumps({"verdict": "needs_changes", "coverage": [], "findings": [found]})
    packet = prompt[prompt.index("You review an integrated range") :]
    refs = refs_of(packet) if "pass A of two" in packet else []
    covered = [{"ref": ref, "met": True, "evidence": "a.py"} for ref in refs]
    return json.dumps({"verdict": "verified", "coverage": covered, "findings": []})


class Correcting:
    """The model finds something in the first round and corrects it when it is asked to."""

    def __init__(self) -> None:
        self.fixed = False

    def answer(self, wire: Wire, asked: WireAsked) -> Reply:
        fixing = "Do not commit." in asked.prompt
        if not asked.tool_results:
            return wire.tool_call(asked.model, "echo y > fixed.txt" if fixing else "git log --oneline -3")
        if fixing:
            self.fixed = True
            return wire.text(asked.model, json.dumps({"state": "ready", "question": "", "summary": "Done."}))
        said = json.loads(answer(asked.prompt))
        if "This is pass B of two." in asked.prompt and not self.fixed and said["verdict"] == "verified":
            said |= {"verdict": "needs_changes", "findings": [finding("B-1", text="fixed.txt is missing.")]}
        return wire.text(asked.model, json.dumps(said))


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PlainRepository]:
    """A repository and the environment of everything that runs here."""
    made = PlainRepository(tmp_path / "case", {"CODEX_API_KEY": "key-canary"})
    for name in list(os.environ):
        if name.startswith(("CODEX", "XDG")):
            monkeypatch.delenv(name)
    for name, value in made.variables().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(made.root)
    door.surroundings.cache_clear()
    yield made
    door.surroundings.cache_clear()


@dataclass(frozen=True)
class Closed:
    """A run that was closed, and the report of it."""

    document: dict[str, Any]
    folder: Path
    report: dict[str, Any]


def closed(
    repository: PlainRepository, program: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> Closed:
    """Start and close one milestone with the real program."""
    repository.commit(**{"a.py": "x = 1\n"})
    repository.git("tag", "base")
    repository.commit(**{"a.py": "x = 2\n", "b.py": "y = 1\n"})
    base = repository.base
    shim = write_shim(base / "codex", program, custom_provider(url))
    profile = {
        "name": "real", "adapter": "codex", "model": "fake-model", "family": "gpt", "program": str(shim),
        "limit_seconds": 60, "floors": {"commands": 1, "tokens": 0, "seconds": 0},
    }  # fmt: skip
    document = {
        "plan": "p", "id": "m1", "repository": str(repository.root), "target": "main", "base": "base",
        "criteria": ["It works.", "It stays."], "required": [["git", "diff", "--check", "base"]],
        "decisions": [{"id": "d1", "text": "One file each."}],
    }  # fmt: skip
    (base / "configuration.json").write_text(json.dumps({"profiles": [profile]}))
    (base / "milestone.json").write_text(json.dumps(document))

    def command(*words: object) -> Said:
        capsys.readouterr()
        code = milestone.main([*map(str, words), "--run", "r1", "--store", str(base / "store"), "--json"])
        said = Said(int(code), *capsys.readouterr())
        assert no_traceback(said)
        return said

    started = command("start", base / "milestone.json", "--config", base / "configuration.json")
    assert started.code == 0, started
    said = command("close")
    assert said.code == 0, said
    folder = base / "store" / "milestone" / "runs" / "r1"
    assert list((folder / "crosscheck-wt").iterdir()) == []
    assert list(repository.temporary.iterdir()) == []
    assert len(repository.git("worktree", "list").splitlines()) == 1
    return Closed(said.document, folder, command("report").document)


def test_a_whole_close(
    repository: PlainRepository,
    codex_program: Path,
    model_server: ModelServer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """M71 M111 M115: probe, both passes, close; the engine read by commands of its own in its sandbox."""
    url = model_server.play("milestone", ToolCall("git log --oneline -3", answer))
    found = closed(repository, codex_program, url, capsys)
    close = found.document
    assert close["head"] == repository.git("rev-parse", "main")
    assert close["crosscheck"]["engines"]["A"]["profile"] == "real"
    assert [each["state"] for each in close["crosscheck"]["passes"]] == ["valid", "valid"]
    assert all(each["commands"] >= 1 for each in close["crosscheck"]["passes"])
    requests = model_server.requests("milestone")
    assert len(requests) == 6
    assert re.search(r"[0-9a-f]{7} x", json.dumps(requests[-1].body))
    assert not any("key-canary" in json.dumps(request.body) for request in requests)
    assert len(list((found.folder / "calls").glob("crosscheck-*/stream.bin"))) == 2
    assert found.report["state"] == "closed"


def test_a_correction(
    repository: PlainRepository,
    codex_program: Path,
    model_server: ModelServer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """M74 M78: the engine works in its own worktree, the tool commits, and what passes is published."""
    url = model_server.play("milestone-fix", Correcting())
    found = closed(repository, codex_program, url, capsys)
    assert repository.git("show", "main:fixed.txt") == "y"
    assert repository.git("show", "-s", "--format=%an", "main") == "milestone close"
    assert found.document["head"] == repository.git("rev-parse", "main")
    assert found.document["crosscheck"]["round"] == 2
