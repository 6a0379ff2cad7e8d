"""Reading issues: from files, and through a program in the place of `gh`."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.acceptance.outcome.claims import Ledger
from skill_effectiveness.acceptance.outcome.errors import OutcomeError
from skill_effectiveness.acceptance.outcome.issues import (
    IssuePlace,
    close_at_forge,
    issue_key,
    issue_reference,
    read_issue,
)
from skill_effectiveness.acceptance.outcome.records import IssueKey
from tests.support.outcomes import BODY, ISSUE, REPO

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.outcomes import Bench

AT_FORGE = IssuePlace(ISSUE)


def refused(bench: Bench, place: IssuePlace = AT_FORGE) -> str:
    with pytest.raises(OutcomeError) as caught:
        read_issue(place, Ledger(), bench.around)
    return caught.value.message


class TestNames:
    @pytest.mark.parametrize(
        ("text", "key"),
        [
            ("acme/app#7", IssueKey("acme/app", 7)),
            ("a.b-c/d_e#12", IssueKey("a.b-c/d_e", 12)),
            ("host.example/acme/app#1", IssueKey("host.example/acme/app", 1)),
        ],
    )
    def test_good(self, text: str, key: IssueKey) -> None:
        assert issue_reference(text) == key

    @pytest.mark.parametrize(
        "text",
        ["acme/app", "#7", "acme/app#0", "acme/app#07", "acme/app#-1", "-x/app#7", "acme//app#7", "../app#7",
         "acme/app#7 ", "acme/app#7\n", "a b/c#1", "issue.md", ""],
    )  # fmt: skip
    def test_none(self, text: str) -> None:
        """What could be an option, a path or another issue is no reference."""
        assert issue_reference(text) is None

    @pytest.mark.parametrize(
        ("repository", "number"), [("a b", 1), ("--json", 1), ("a/b", 0), ("a/b", 2**60), ("x" * 201, 1)]
    )
    def test_misfits(self, repository: str, number: int) -> None:
        with pytest.raises(OutcomeError, match="record_invalid"):
            issue_key(repository, number)


class TestFiles:
    def test_any_bytes_that_are_text(self, bench: Bench) -> None:
        file = bench.base / "i.md"
        file.write_bytes(b"# Problem\r\nx\x00y")
        issue = read_issue(IssuePlace(ISSUE, file), Ledger(), bench.around)
        assert (issue.body, issue.source, issue.state.value, issue.state_reason) == (
            "# Problem\r\nx\x00y", "file", "open", "",
        )  # fmt: skip

    def test_what_is_none(self, bench: Bench, tmp_path: Path) -> None:
        file = bench.base / "i.md"
        file.write_bytes(b"\xff")
        assert refused(bench, IssuePlace(ISSUE, file)) == "record_invalid"
        file.write_bytes(b"x" * 65_537)
        assert refused(bench, IssuePlace(ISSUE, file)) == "record_invalid"
        file.write_bytes(b"x" * 1_048_577)
        assert refused(bench, IssuePlace(ISSUE, file)) == "issue_unreadable"
        assert refused(bench, IssuePlace(ISSUE, bench.base)) == "issue_unreadable"
        assert refused(bench, IssuePlace(ISSUE, tmp_path / "none")) == "issue_unreadable"


class TestForge:
    def test_what_it_says(self, bench: Bench) -> None:
        """O30: exactly the four members are asked for."""
        issue = read_issue(AT_FORGE, Ledger(), bench.around)
        assert (issue.body, issue.source, issue.state.value) == (BODY, "gh", "open")
        assert bench.forge.calls == [
            ["issue", "view", "7", "--repo", REPO, "--json", "number,state,stateReason,body"]
        ]

    def test_missing(self, bench: Bench) -> None:
        (bench.forge.folder / "gh").unlink()
        bare = replace(bench.around, environ={"PATH": str(bench.forge.folder)})
        with pytest.raises(OutcomeError, match="issue_unreadable"):
            read_issue(AT_FORGE, Ledger(), bare)
        assert not close_at_forge(ISSUE, bare)

    def test_a_relative_path_is_not_searched(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        """A repository must not put its own program in the place of the tool."""
        monkeypatch.chdir(bench.forge.folder)
        bare = replace(bench.around, environ={"PATH": "."})
        with pytest.raises(OutcomeError, match="issue_unreadable"):
            read_issue(AT_FORGE, Ledger(), bare)
        assert bench.forge.calls == []

    @pytest.mark.parametrize(
        "document",
        [
            {"number": 8, "state": "OPEN", "stateReason": "", "body": "x"},
            {"number": "7", "state": "OPEN", "stateReason": "", "body": "x"},
            {"number": 7, "state": "MERGED", "stateReason": "", "body": "x"},
            {"number": 7, "state": None, "stateReason": "", "body": "x"},
            {"number": 7, "state": "OPEN", "stateReason": ""},
            {"number": 7, "state": "OPEN", "stateReason": "", "body": None},
            {"number": 7, "state": "OPEN", "stateReason": "", "body": "\ud800"},
            [],
        ],
    )
    def test_what_is_no_issue(self, bench: Bench, document: object) -> None:
        """O47: an issue of which the state is not known is not open."""
        state = {"mode": "", "issues": {f"{REPO}#7": document}}
        (bench.forge.folder / "state.json").write_text(json.dumps(state))
        assert refused(bench) == "issue_unreadable"

    def test_an_older_program_says_null(self, bench: Bench) -> None:
        document = {"number": 7, "state": "CLOSED", "stateReason": None, "body": ""}
        state = {"mode": "", "issues": {f"{REPO}#7": document}}
        (bench.forge.folder / "state.json").write_text(json.dumps(state))
        issue = read_issue(AT_FORGE, Ledger(), bench.around)
        assert (issue.state.value, issue.state_reason) == ("closed", "")

    def test_its_environment(self, bench: Bench) -> None:
        """Nothing that makes it ask, paint or look at another repository; its login stays."""
        spy = bench.forge.folder / "gh"
        lines = ["#!/bin/sh", f"env > {bench.forge.folder}/env", f"pwd >> {bench.forge.folder}/env", "exit 1"]
        spy.write_text("\n".join(lines))
        unwanted = {
            "GH_FORCE_TTY": "1",
            "GH_DEBUG": "api",
            "GH_REPO": "x/y",
            "GIT_DIR": "/x",
            "GH_TOKEN": "t",
        }
        around = replace(bench.around, environ={**bench.around.environ, **unwanted})
        assert not close_at_forge(ISSUE, around)
        seen = (bench.forge.folder / "env").read_text().splitlines()
        names = {line.split("=")[0] for line in seen}
        assert {"GH_TOKEN", "GH_PROMPT_DISABLED", "NO_COLOR"} <= names
        assert not names & {"GH_FORCE_TTY", "GH_DEBUG", "GH_REPO", "GIT_DIR"}
        assert seen[-1] == "/"
