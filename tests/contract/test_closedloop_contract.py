"""The loop with the real codex as worker and reviewer of one job, the model on loopback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.acceptance.loop.config import read_config
from skill_effectiveness.acceptance.loop.runner import run_jobs
from tests.support.codex_shim import custom_provider, write_shim
from tests.support.loops import LoopRepository
from tests.support.model_server import ToolCall

if TYPE_CHECKING:
    from skill_effectiveness.acceptance.loop.summary import RunSummary
    from tests.support.model_server import ModelServer

pytestmark = pytest.mark.realcli

EDIT = "echo done > value"
# The mirrors lie beside the temporary folder of a step.
JUDGE = """printf '{"verdict":"%s"}' pass > "$TMPDIR/../work/out/verdict.json" """


def claims(prompt: str) -> str:
    del prompt
    return 'DONE. {"verdict": "pass"}'


class Loop:
    """A repository whose agents are the real program."""

    def __init__(self, program: Path, server: ModelServer, tmp_path: Path) -> None:
        self.program = program
        self.server = server
        self.tmp_path = tmp_path
        self.repository = LoopRepository(tmp_path / "loop", {"CODEX_API_KEY": "key-canary"})

    def agent(self, name: str, command: str) -> dict[str, object]:
        options = custom_provider(self.server.play(name, ToolCall(command, claims)))
        folder = self.tmp_path / name
        folder.mkdir()
        shim = write_shim(folder / "codex", self.program, options)
        args = ["exec", "--model", "fake-model", "{{prompt}}"]
        return {"command": str(shim), "args": args, "passEnv": ["CODEX_API_KEY"]}

    def run(self, name: str, judge: str) -> RunSummary:
        job = {
            "name": "job",
            "task": "Write done into value.",
            "worker": self.agent(f"{name}-worker", EDIT),
            "reviewer": self.agent(f"{name}-reviewer", judge),
            "checks": ["grep -q done value"],
            "maxAttempts": 1,
            "timeoutSeconds": 60,
            "verbose": True,
        }
        config = read_config(self.repository.config(job))
        return run_jobs(config, around=self.repository.around, observer=self.repository.seen.append)


@pytest.fixture
def loop(codex_program: Path, model_server: ModelServer, tmp_path: Path) -> Loop:
    return Loop(codex_program, model_server, tmp_path)


def test_worker_and_reviewer(loop: Loop) -> None:
    """L39 L75: the edit lands in the worktree, the verdict in the output folder, nothing anywhere else."""
    before = loop.repository.state()
    summary = loop.run("loop", JUDGE)
    assert summary.exit == 0, json.dumps(loop.repository.seen, indent=1)
    assert loop.repository.git("show", f"{summary.jobs[0].ref}:value") == "done"
    assert loop.repository.state() == before
    for name in ("loop-worker", "loop-reviewer"):
        assert len(loop.server.requests(name)) == 2, "the call and its answer"
    argv = loop.repository.of("worker_started")[0]["argv"]
    assert argv[1] == "exec"
    assert argv[2] == "--add-dir"
    assert argv[4:6] == ["--sandbox", "workspace-write"]
    assert not Path(argv[3]).exists()


def test_a_claim_is_no_verdict(loop: Loop) -> None:
    """F49 L57: a reviewer that says pass and writes nothing."""
    summary = loop.run("claim", "true")
    assert summary.exit == 2
    assert loop.repository.of("verdict")[0]["reason"] == "missing"
    assert "DONE" in loop.repository.of("reviewer_exited")[0]["stdout"]
