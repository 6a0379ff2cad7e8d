"""`provider-probe`: lines, exit codes, and what nobody is told."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from tests.support.commands import PREFIX, Said, codex_that_waits, ended, no_traceback, run, start
from tests.support.private import REPOSITORY, wrong_modes
from tests.support.probed import FORGETS, LEAKS, write_probed
from tests.support.processes import alive, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WORDS = ["provider-probe", "--provider", "codex", "--model", "model-1", "--task-family", "diagnosis"]
WRITTEN = {".provider-probe.lock", "capability-probe-diagnosis.json", "provider-probe-result.json"}


def written(folder: Path) -> set[str]:
    names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    return {name for name in names if not name.startswith(".probing")}


class TestLines:
    def test_nothing_recalled(self, command: Callable[..., Said], home: Path) -> None:
        """T37 T56: exit 0, and the words of a threat that stays."""
        path = write_probed(home / "codex", home, second=FORGETS)
        said = command(*WORDS, "--codex-path", path, "--out", "out")
        assert said.code == 0
        assert said.out == (
            "execution_status=completed\n"
            "capability_matrix_status=causal_core_unavailable\n"
            "isolation_outcome=unresolved_isolation_threat\n"
            "cross_session_recall_detected=false\n"
            "result=provider-probe-result.json\n"
        )
        assert "proves no isolation" in said.err
        assert written(home / "out") == WRITTEN
        assert wrong_modes(home / "out") == []

    def test_a_program_by_its_relative_path(self, command: Callable[..., Said], home: Path) -> None:
        """T37: it starts at the working folder, as with `providers doctor`."""
        write_probed(home / "codex", home, second=FORGETS)
        assert command(*WORDS, "--codex-path", "codex", "--out", "out").code == 0

    def test_each_program_has_its_own_help(self, command: Callable[..., Said], home: Path) -> None:
        """T54: four options are told apart."""
        del home
        for words in (("provider-probe",), ("reviewer-calibration",), ("providers", "doctor")):
            told = " ".join(command(*words, "--help").out.split())
            for whose in ("Codex's", "Claude's", "OpenCode's", "Kimi's"):
                assert told.count(f"Path of {whose} program") == 1

    def test_a_leak(self, command: Callable[..., Said], home: Path) -> None:
        """T37 T56: exit 0 as contaminated; the canary stands nowhere."""
        path = write_probed(home / "codex", home, second=LEAKS)
        said = command(*WORDS, "--codex-path", path, "--out", "out")
        assert said.code == 0
        assert said.out == (
            "execution_status=completed\n"
            "capability_matrix_status=causal_core_unavailable\n"
            "isolation_outcome=contaminated\n"
            "cross_session_recall_detected=true\n"
            "result=provider-probe-result.json\n"
        )
        assert (home / "memory").read_text() not in said.out + said.err

    def test_json_says_the_same(self, command: Callable[..., Said], home: Path) -> None:
        """T56: one canonical object."""
        path = write_probed(home / "codex", home, second=LEAKS)
        said = command(*WORDS, "--codex-path", path, "--out", "out", "--json")
        assert json.loads(said.out) == {
            "execution_status": "completed",
            "capability_matrix_status": "causal_core_unavailable",
            "isolation_outcome": "contaminated",
            "cross_session_recall_detected": True,
            "result": "provider-probe-result.json",
        }


@pytest.mark.slow
def test_a_signal_spends_the_folder(home: Path) -> None:
    """T39 P10: exit 128+15 in the middle of a session; nothing runs on, and the claim stays alone."""
    pids = home / "pids"
    path = codex_that_waits(home / "codex", pids)
    words = [*WORDS, "--codex-path", str(path), "--out", str(home / "out")]
    process = start(home, *words)
    assert wait_until((pids / "grandchild").exists)
    process.send_signal(signal.SIGTERM)
    said = ended(process)
    assert (said.code, said.out) == (128 + signal.SIGTERM, "")
    assert "Stopped by SIGTERM; the folder is spent, so probe again in a new one." in said.err
    assert written(home / "out") == {".provider-probe.lock"}
    numbers = [int((pids / name).read_text()) for name in ("program", "grandchild")]
    assert wait_until(lambda: not any(map(alive, numbers)))
    again = run(home, *words)
    assert (again.code, "already claimed" in again.err) == (2, True)


class TestRefusals:
    def test_tool_activity_leaves_no_report(self, command: Callable[..., Said], home: Path) -> None:
        """T39: exit 2, nothing on stdout, the folder is spent."""
        tool = '{"type": "item.completed", "item": {"id": "i", "type": "web_search", "query": "x"}}'
        path = write_probed(home / "codex", home, second=f"answer('{{}}', {tool})")
        words = [*WORDS, "--codex-path", path, "--out", "out"]
        said = command(*words)
        assert (said.code, said.out) == (2, "")
        assert "used a tool" in said.err
        assert written(home / "out") == {".provider-probe.lock"}
        twice = command(*words, "--json")
        assert (twice.code, json.loads(twice.out)["code"]) == (2, "already_claimed")
        assert len((home / "prompts.jsonl").read_text().splitlines()) == 2

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            (["--provider", "simulated"], "provider_not_probed"),
            (["--claude-path", "/bin/true"], "program_mismatch"),
            (["--codex-path", "none"], "missing"),
            (["--codex-path", "/nowhere/codex"], "missing"),
            (["--timeout-seconds", "601"], "usage"),
            (["--task-family", "cooking"], "usage"),
            (["--model", "no model"], "invalid_call"),
        ],
    )
    def test_bad_input_claims_nothing(
        self, command: Callable[..., Said], home: Path, change: list[str], code: str
    ) -> None:
        """T39 T54: exit 2 before any call."""
        path = write_probed(home / "codex", home)
        said = command(*WORDS, "--codex-path", path, "--out", "out", *change, "--json")
        assert (said.code, json.loads(said.out)["code"]) == (2, code)
        assert PREFIX in said.err
        assert no_traceback(said)
        assert written(home / "out") == set()
        assert not (home / "prompts.jsonl").exists()

    def test_a_folder_in_the_checkout(self, command: Callable[..., Said], home: Path) -> None:
        """T39: private folders lie outside."""
        path = write_probed(home / "codex", home)
        said = command(*WORDS, "--codex-path", path, "--out", REPOSITORY / "build" / "probe")
        assert said.code == 2
        assert not (REPOSITORY / "build" / "probe").exists()
