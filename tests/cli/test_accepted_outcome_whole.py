"""From an issue to its close through three tools: a loop does the work, a gate decides, a claim cites it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.cli import accepted_outcome, closedloop, closeout, door
from skill_effectiveness.cli.crash import version
from tests.support.closeout import command_item, policy
from tests.support.crash_images import fast_folder
from tests.support.loops import LoopRepository
from tests.support.milestones import Case, Hall
from tests.support.outcomes import BODY, CRITERION, Forge
from tests.support.private import content, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

WORKER = 'pathlib.Path("done").write_text("yes\\n")'


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopRepository]:
    """A repository with a closeout policy, as the working folder of commands run in this process."""
    with fast_folder() as base:
        made = LoopRepository(base / "place")
        forge = Forge(base / "forge")
        made.write(".agents/closeout.yaml", policy(command_item(argv='["test", "-s", "done"]')))
        made.commit()
        for name, value in made.variables().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("PATH", f"{forge.folder}:{made.variables()['PATH']}")
        monkeypatch.delenv("XDG_STATE_HOME", raising=False)
        monkeypatch.chdir(made.root)
        door.surroundings.cache_clear()
        yield made
        door.surroundings.cache_clear()


@pytest.mark.slow
def test_from_issue_to_close(repository: LoopRepository, capsys: pytest.CaptureFixture[str]) -> None:
    """O30 O60 O76 O79 O82: a loop's commit, a gate's decision, a claim, a close; each by its own door."""

    def said(main: Callable[[Sequence[str]], int], *words: object, code: int = 0) -> Any:  # noqa: ANN401 - any JSON
        capsys.readouterr()
        assert main([str(word) for word in words]) == code, capsys.readouterr()
        return json.loads(capsys.readouterr().out)

    base = repository.base
    store = ("--store", base / "store")
    issue = ("--issue", "acme/app#7")
    claim = (*issue, "--attempt", "a-1", *store, "--json")

    # The loop works until its check passes; the commit is on its private ref.
    config = base / "loop.json"
    config.write_bytes(repository.config(repository.job(WORKER, name="fix", checks=["test -s done"])))
    run = said(closedloop.main, "--json", "--quiet", config)["run"]
    head = repository.git("rev-parse", f"refs/closedloop/{run}/fix")
    words = ("--id", "a-1", "--actor", "agent", "--principal", "user:alice", "--json", *store)
    attempt = said(
        accepted_outcome.main, "attempt", "add", *issue, *words, "--from-closedloop", repository.runs / run
    )
    assert (attempt["state"], attempt["commit"], attempt["source"]) == ("finished", head, "closedloop")

    # The gate decides about that commit.
    at = ("--gate", "beforePR", "--base", "HEAD", "--head", head, *store, "--json")
    decision = base / "decision.json"
    assert closeout.main([str(word) for word in ("run", *at)]) == 0
    decision.write_text(capsys.readouterr().out)
    shown = ("--family", "qualification", "--decision", decision, *store, "--json")
    edge = said(accepted_outcome.main, "edge", "add", *issue, *shown)
    assert (edge["result"], edge["commit"]) == ("succeeded", head)
    assert edge["check"]["artifact_digest"] == f"sha1:{repository.git('rev-parse', f'{head}^{{tree}}')}"

    # Without a policy nothing is graded; with one the claim is accepted and the issue closed, once.
    evidence = base / "evidence.json"
    evidence.write_text(json.dumps({"evidence": [{"criterion": CRITERION, "evidence_id": edge["edge_id"]}]}))
    cited = ("--evidence", evidence)
    assert said(accepted_outcome.main, "submit", *claim, *cited, code=4)["state"] == "not_applicable"
    row = {
        "agents_enabled": True,
        "verified_closing_enabled": True,
        "visibility": "public",
        "admitted_verifiers": [f"runner:closeout-reference@{version()}"],
    }
    file = base / "store" / "outcome" / "policy.json"
    file.write_text(json.dumps({"schema_version": 1, "repositories": {"acme/app": row}}))
    file.chmod(0o600)
    assert said(accepted_outcome.main, "submit", *claim, *cited)["may_close"] is True
    before = content(base / "store")
    assert said(accepted_outcome.main, "close", *claim)["closed"] is False
    assert content(base / "store") == before
    for _ in range(2):
        closed = said(accepted_outcome.main, "close", *claim, "--execute")
        assert closed["claim"]["closed_by_actor"] == "system:accepted-outcome"
    forge = json.loads((base.parent / "forge" / "state.json").read_text())
    assert forge["issues"]["acme/app#7"] == {
        "number": 7, "state": "CLOSED", "stateReason": "COMPLETED", "body": BODY,
    }  # fmt: skip
    assert wrong_modes(base / "store") == []


@pytest.mark.slow
def test_a_milestone_that_was_really_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """O30 O79: its own journal is a receipt, its producer a publisher to be admitted; an open run is none."""
    case = Case(tmp_path / "case", Hall(), monkeypatch, capsys).started()
    forge = Forge(tmp_path / "forge")
    monkeypatch.setenv("PATH", f"{forge.folder}:{case.repository.variables()['PATH']}")
    door.surroundings.cache_clear()

    def said(*words: object, code: int = 0) -> Any:  # noqa: ANN401 - any JSON
        capsys.readouterr()
        named = [*map(str, words), "--issue", "acme/app#7", "--store", str(case.store), "--json"]
        assert accepted_outcome.main(named) == code, capsys.readouterr()
        return json.loads(capsys.readouterr().out)

    attempt = ("--id", "a-1", "--actor", "agent", "--state", "finished", "--commit", case.head)
    asked = ("--principal", "user:alice", "--budget", '{"usd":1}')
    said("attempt", "add", *attempt, *asked)
    shown = ("edge", "add", "--family", "qualification", "--milestone", "r1")
    said(*shown, code=2)
    assert case.close().code == 0
    edge = said(*shown)
    publisher = f"runner:milestone@{version()}"
    assert (edge["check"]["name"], edge["result"], edge["commit"]) == ("milestone/m1", "succeeded", case.head)
    assert edge["check"]["publisher"] == publisher
    evidence = tmp_path / "evidence.json"
    evidence.write_text(json.dumps({"evidence": [{"criterion": CRITERION, "evidence_id": edge["edge_id"]}]}))
    file = case.store / "outcome" / "policy.json"
    for admitted, code, state in (("runner:other@1", 1, "unauthorized"), (publisher, 0, "accepted")):
        row = {
            "agents_enabled": True, "verified_closing_enabled": True, "visibility": "public",
            "admitted_verifiers": [admitted],
        }  # fmt: skip
        file.write_text(json.dumps({"schema_version": 1, "repositories": {"acme/app": row}}))
        file.chmod(0o600)
        graded = said("submit", "--attempt", "a-1", "--evidence", evidence, code=code)
        assert (graded["state"], graded["may_close"]) == (state, state == "accepted")
    door.surroundings.cache_clear()
