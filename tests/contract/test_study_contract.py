"""Whole studies on the real agent command lines, which talk to a model server on loopback.

The model is better in one case alone: when its request shows it the skill. So the study has to find that the
skill improves, by rewards that the tasks' own tests give, and the off arm must never have seen it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.execution import Tracer
from tests.support.real_studies import MAKERS, MARK, MARKER, SKILL, Studying, Worker

if TYPE_CHECKING:
    from tests.support.model_server import ModelServer

pytestmark = pytest.mark.realcli


@pytest.fixture
def studying(tmp_path: Path, model_server: ModelServer) -> Studying:
    return Studying(tmp_path, model_server)


@pytest.fixture(params=sorted(MAKERS))
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def real(provider: str, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The real program, as it is installed."""
    if provider != "kimi":
        return Path(request.getfixturevalue(f"{provider}_program"))
    folder = tmp_path / "installed"
    folder.mkdir()
    (folder / "kimi").symlink_to(request.getfixturevalue("kimi_script"))
    (folder / "node").symlink_to(request.getfixturevalue("node_program"))
    return folder / "kimi"


def trials(studying: Studying) -> list[Path]:
    """The documents of all trials."""
    return sorted((studying.tmp_path / "R" / "trials").rglob("trial.json"))


def test_a_skill_that_helps(studying: Studying, provider: str, real: Path) -> None:
    """S4 S34 F31 F32 F36: the word is `improves`; the off arm never saw the skill, nobody the real home."""
    name = f"study-{provider}"
    program = MAKERS[provider](studying.tmp_path, real, studying.server.play(name, Worker()))
    # The two whose calls are quick are recorded as well; what a sandbox does to all four is the same.
    audited = provider in {"claude", "codex"} and Tracer.found(Surroundings.real()) is not None
    code, told, said = studying.quick(program, *(["--audit"] if audited else []))
    assert code == 3, said
    assert told["conclusion"] == "improves", told
    assert told["effect"] == 1
    asked = [request.asked.everything for request in studying.server.requests(name)]
    assert not [text for text in asked if MARKER in text or MARK.search(text)]
    tasks = [text for text in asked if "into answer.txt" in text and "exposure check" not in text]
    shown = [SKILL in text for text in tasks]
    assert any(shown)
    assert not all(shown)
    if audited:
        limits = [
            json.loads(file.read_text())["completion_isolation"]["coverage_limitations"]
            for file in trials(studying)
        ]
        assert limits == [["memory_isolation_proof", "provider_side_persistence_proof"]] * len(limits)
        assert limits
    assert list(studying.temporary.iterdir()) == []
    assert not list(studying.home.rglob("exposure-mark-*"))
