"""`closeout review` with the real codex, from the command line to the decision."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.closeout import Repository, finding, policy, review_item
from tests.support.codex_shim import custom_provider, write_shim
from tests.support.model_server import Answer, Refused, ToolCall
from tests.support.private import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.model_server import ModelServer, Scenario

pytestmark = pytest.mark.realcli

MODEL = "fake-model"
OTHER_SESSION = review_item().replace("differentModel: true", "differentModel: false")


class Reviewing:
    """A repository with one review item, and the real program on PATH."""

    def __init__(self, repository: Repository, program: Path, server: ModelServer) -> None:
        self.repository = repository
        self.program = program
        self.server = server
        self.demand(OTHER_SESSION)

    def demand(self, item: str) -> None:
        """Have the policy ask for this review of the next change."""
        self.repository.with_policy(policy(item), skill=True)
        self.repository.commit(change="1")

    def closeout(self, *words: str) -> subprocess.CompletedProcess[str]:
        """One command, as a person types it."""
        repository = self.repository
        environment = {
            "HOME": str(repository.home),
            "TMPDIR": str(repository.temporary),
            "PATH": f"{repository.base / 'bin'}:/usr/bin:/bin",
            "CODEX_API_KEY": "key-canary",
        }
        return subprocess.run(  # noqa: S603 - our own door
            [
                sys.executable,
                str(REPOSITORY / "run.py"),
                "closeout",
                *words,
                "--store",
                str(repository.store),
            ],
            cwd=repository.root,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def review(self, name: str, scenario: Scenario) -> subprocess.CompletedProcess[str]:
        folder = self.repository.base / "bin"
        folder.mkdir(exist_ok=True)
        write_shim(folder / "codex", self.program, custom_provider(self.server.play(name, scenario)))
        return self.closeout(
            "review", "--gate", "beforePR", "--item", "careful", "--base", "HEAD~1", "--head", "HEAD",
            "--provider", "codex", "--model", MODEL, "--timeout-seconds", "60",
        )  # fmt: skip

    def decision(self) -> tuple[int, dict[str, Any]]:
        done = self.closeout(
            "decision", "--gate", "beforePR", "--base", "HEAD~1", "--head", "HEAD", "--json",
            "--candidate-session", "author", "--candidate-model", "other", "--candidate-provider", "codex",
        )  # fmt: skip
        return done.returncode, json.loads(done.stdout)


@pytest.fixture
def reviewing(codex_program: Path, model_server: ModelServer, tmp_path: Path) -> Reviewing:
    return Reviewing(Repository(tmp_path), codex_program, model_server)


def found(*findings: object) -> str:
    return json.dumps({"findings": list(findings)})


def test_a_review_that_finds_nothing_is_accepted(reviewing: Reviewing) -> None:
    """C60 C47: the reviewer reads the change by a command of its own; its record decides."""
    done = reviewing.review("closeout-clean", ToolCall("git diff HEAD~1..HEAD", lambda _prompt: found()))
    assert done.returncode == 0, done.stderr
    (record,) = reviewing.repository.records()
    assert record["findings"] == []
    assert record["producer"]["provider"] == "codex"
    assert record["producer"]["session"]
    requests = reviewing.server.requests("closeout-clean")
    assert len(requests) == 2
    assert "+1" in json.dumps(requests[1].body)
    code, document = reviewing.decision()
    assert (code, document["decision"]) == (0, "accepted")


def test_a_model_that_is_not_told_is_not_another_one(reviewing: Reviewing) -> None:
    """C32 C60: codex names no model, so a policy that asks for a different one stays blocked."""
    reviewing.demand(review_item())
    done = reviewing.review("closeout-model", Answer(lambda _prompt: found()))
    assert done.returncode == 0, done.stderr
    code, document = reviewing.decision()
    assert (code, document["decision"]) == (3, "blocked")
    assert document["items"][0]["message"] == "reviewer does not satisfy differentModel"


def test_a_review_that_finds_something_is_not(reviewing: Reviewing) -> None:
    """C60 C47: a finding at or above the limit."""
    done = reviewing.review("closeout-found", Answer(lambda _prompt: found(finding("P0"))))
    assert done.returncode == 0, done.stderr
    code, document = reviewing.decision()
    assert (code, document["decision"]) == (1, "rejected")


@pytest.mark.parametrize(
    ("name", "scenario", "word"),
    [
        ("closeout-401", Refused(401, "invalid_api_key", "no"), "review_provider_unavailable"),
        ("closeout-prose", Answer(lambda _prompt: "Looks good to me."), "review_answer_invalid"),
    ],
)
def test_what_stores_no_record(reviewing: Reviewing, name: str, scenario: Scenario, word: str) -> None:
    """C60: nothing is accepted on it, and nothing is left."""
    done = reviewing.review(name, scenario)
    assert done.returncode == 3
    assert word in done.stderr
    assert reviewing.repository.records() == []
    assert list(reviewing.repository.temporary.iterdir()) == []
    assert reviewing.decision()[0] != 0
