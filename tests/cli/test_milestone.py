"""The command line of milestone: words, exit codes, both streams, and how it is reached."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.cli import door, milestone, milestone_door
from skill_effectiveness.cli.main import main as whole
from skill_effectiveness.evidence.signals import Terminated
from tests.support.commands import RUN
from tests.support.milestones import Case, Hall

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERBS = ("start", "accept", "gate", "crosscheck", "close", "resume", "status", "report", "audit", "deliver")


@pytest.fixture
def case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Case]:
    yield Case(tmp_path / "case", Hall(), monkeypatch, capsys)
    door.surroundings.cache_clear()


def test_a_close_in_lines(case: Case) -> None:
    """M71 M118: what people see, from start to report; nothing is reported up without --json."""
    document = case.repository.base / "milestone.json"
    document.write_text(json.dumps(case.document | {"criteria": ["It is pushed.", "It works."]}))
    settings = case.repository.base / "configuration.json"
    settings.write_text(json.dumps(case.configuration))
    at = ("--run", "r1", "--store", case.store)
    said = case.plain("start", document, "--config", settings, *at)
    assert (said.code, said.values) == (0, {"run": "r1", "deferred": "", "reused": "", "prior": "none"})
    assert said.err == "milestone: warning delivery_phrase: c1\n"
    said = case.plain("gate", *at)
    assert (said.code, said.values["state"], said.values["need_tests"]) == (1, "pending", "1")
    said = case.plain("close", *at)
    assert (said.code, said.values) == (0, {"outcome": "closed", "code": "", "head": case.head})
    assert said.err == ""
    assert case.plain("status", "--store", case.store).out == "r1  m1  closed\n"
    said = case.plain("report", *at)
    assert said.values["gate"] == "pass"
    assert (said.values["crosscheck"], said.values["alignment"]) == ("verified", "not judged")
    assert case.plain("audit", *at).code == 0
    assert "crw.reportUp" not in case.types()


@pytest.mark.parametrize("words", [(), ("nothing",), ("close",), ("accept", "--run", "x"), ("audit",)])
def test_usage(case: Case, words: tuple[str, ...]) -> None:
    """M93: 2, and how it is meant."""
    said = case.plain(*words)
    assert said.code == (0 if words == () and said.out else 2)
    assert "milestone" in said.out + said.err


@pytest.mark.parametrize(("verb", "code"), [("close", 4), ("audit", 2), ("deliver", 2)])
def test_what_is_unforeseen(case: Case, monkeypatch: pytest.MonkeyPatch, verb: str, code: int) -> None:
    """M114: internal, without a traceback: 4, and 2 for verbs that have no other."""

    def fail(*_: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(milestone, "_site", fail)
    said = case(verb)
    assert (said.code, said.document["code"]) == (code, "internal")
    assert "secret" not in said.out + said.err


def test_signals(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """M109: 128+n."""

    def end(*_: object) -> None:
        raise Terminated(signal.SIGHUP)

    monkeypatch.setattr(milestone, "_site", end)
    assert case("close").code == 128 + signal.SIGHUP


def test_it_is_reached_by_the_whole_program(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    """M93: with its own exit codes."""
    assert whole(["milestone", "status", "--run", "x", "--store", "relative", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["code"] == "store_unsafe"
    del case


def test_as_a_process(case: Case) -> None:
    """M93: help lists every verb; a refusal is one line."""
    environ = case.repository.variables()
    words = [sys.executable, str(RUN), "milestone", "--help"]
    done = subprocess.run(words, check=True, capture_output=True, text=True, env=environ)  # noqa: S603 - ours
    assert all(f"  {verb} " in done.stdout for verb in VERBS)
    words = [sys.executable, str(RUN), "milestone", "close", "--run", "x", "--store", str(case.store)]
    done = subprocess.run(words, check=False, capture_output=True, text=True, env=environ)  # noqa: S603 - likewise
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "milestone: run_unknown. No run was begun in this store.\n"


def test_closed_exit_codes() -> None:
    """M93: 0 to 4."""
    assert [code.value for code in milestone_door.ExitCode] == [0, 1, 2, 3, 4]
