"""Stores of accepted-outcome for tests: issues, attempts, receipts of sibling tools, a make-believe forge."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from skill_effectiveness.acceptance.outcome.claims import ClaimKey, ClaimRow, Ledger
from skill_effectiveness.acceptance.outcome.closure import Closing, close, consider
from skill_effectiveness.acceptance.outcome.errors import OutcomeCode
from skill_effectiveness.acceptance.outcome.issues import IssuePlace
from skill_effectiveness.acceptance.outcome.recording import (
    NewEdge,
    add_attempt,
    add_edge,
    add_reference,
    record_of,
)
from skill_effectiveness.acceptance.outcome.records import (
    Attempt,
    Citations,
    ClosingReference,
    Edge,
    IssueKey,
)
from skill_effectiveness.acceptance.outcome.sibling_records import Shown
from skill_effectiveness.acceptance.outcome.store import reading, writing
from skill_effectiveness.acceptance.outcome.submission import Judged, submit
from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.journal import Entry, Journal
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from tests.support.private import surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from skill_effectiveness.acceptance.outcome.store import Desk
    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.surroundings import Surroundings

REPO = "acme/app"
ISSUE = IssueKey(REPO, 7)
CRITERION = "Expired tokens are refused"
BODY = f"""## Problem
Expired tokens work.

## Scope
The login.

## Acceptance criteria
- [ ] {CRITERION}

## Success metrics
No expired token passes.
"""
PUBLISHER = "runner:closeout-reference@1.2.3"
REQUESTER = "user:alice"
COMMIT = "a" * 40
OTHER_COMMIT = "b" * 40

SECTIONS = {
    "problem": "Tokens never expire.",
    "scope": "The login.",
    "acceptance_criteria": ["public thing", "private thing"],
    "success_metrics": "None passes.",
}
CLAIM: dict[str, Any] = {
    "actor": "agent",
    "agents_enabled": True,
    "issue": {"number": 7, "repository": REPO, "sections": SECTIONS},
    "attempt": {
        "issue_number": 7,
        "repository": REPO,
        "authority": REQUESTER,
        "budget": {"max_attempts": 3},
        "revision": COMMIT,
    },
    "verification": {
        "verifier": {"id": "ci", "admitted": True, "independent_of_producer": True},
        "separation_required": True,
        "falsifier": "ci reports failed",
        "terminal_result": "passed",
        "false_green_classes": [],
    },
    "evidence": [
        {"criterion": "public thing", "receipt": "receipt-1", "visibility": "public"},
        {"criterion": "private thing", "receipt": "receipt-2", "visibility": "private"},
    ],
}
"""A complete claim: all five parts, every flag true, one public and one private receipt."""


def claim(**changes: object) -> dict[str, Any]:
    """The complete claim with members changed; a path such as `attempt__budget` leads to one inside."""
    made = deepcopy(CLAIM)
    for path, value in changes.items():
        *above, last = path.split("__")
        place = made
        for name in above:
            place = place[name]
        place[last] = value
    return made


FAKE_GH = f"""#!{sys.executable} -IS
import json, os, sys, time
folder = os.path.dirname(os.path.abspath(__file__))
with open(folder + "/calls", "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
state = json.load(open(folder + "/state.json"))
verb, number, repository = sys.argv[2], sys.argv[3], sys.argv[5]
mode = state["mode"]
issue = state["issues"].get(repository + "#" + number)
if mode == "offline" or issue is None or verb in mode.split():
    print("error connecting", file=sys.stderr)
    sys.exit(1)
if verb == "view":
    if mode == "nonsense":
        print("<html>")
        sys.exit(0)
    print(json.dumps(issue))
elif verb == "close":
    if mode == "hang":
        time.sleep(300)
    if "ignore" not in mode:
        issue["state"], issue["stateReason"] = "CLOSED", state.get("reason", "COMPLETED")
        json.dump(state, open(folder + "/state.new", "w"))
        os.rename(folder + "/state.new", folder + "/state.json")
    if "angry" in mode:
        sys.exit(1)
"""


@dataclass
class Forge:
    """A folder with a program in the place of `gh`, and the issues that it knows."""

    folder: Path
    issues: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        program = self.folder / "gh"
        program.write_text(FAKE_GH)
        program.chmod(0o755)
        self.put(ISSUE, BODY)

    def put(self, key: IssueKey, body: str, state: str = "OPEN", reason: str = "") -> None:
        """Have an issue be like this."""
        document = {"number": key.number, "state": state, "stateReason": reason, "body": body}
        self.issues[f"{key.repository}#{key.number}"] = document
        self.behave("")

    def behave(self, mode: str, **others: object) -> None:
        """Have the program behave: offline, nonsense, view or close (refused), ignore, angry, hang."""
        state = {"mode": mode, "issues": self.issues, **others}
        (self.folder / "state.json").write_text(json.dumps(state))

    @property
    def calls(self) -> list[list[str]]:
        """Every argument vector so far."""
        file = self.folder / "calls"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def closes(self) -> int:
        """How often it was asked to close."""
        return sum(call[1] == "close" for call in self.calls)

    def state(self, key: IssueKey = ISSUE) -> str:
        """What an issue is now."""
        state = json.loads((self.folder / "state.json").read_text())
        found: str = state["issues"][f"{key.repository}#{key.number}"]["state"]
        return found


@dataclass
class Bench:
    """A store, a repository, a forge; everything that is good unless said otherwise."""

    base: Path
    fs: FileSystem | None = None
    at_forge: bool = False
    elsewhere: Path | None = None

    def __post_init__(self) -> None:
        self.forge = Forge(self.base / "forge")
        self.put(BODY)
        self._numbers = iter(range(1, 1_000_000))

    @property
    def store(self) -> Path:
        return self.elsewhere or self.base / "store"

    @property
    def place(self) -> IssuePlace:
        """Where the issue is: a file, which is quick to read, or at the forge."""
        return self.place_of(ISSUE)

    def place_of(self, key: IssueKey) -> IssuePlace:
        """Where an issue is."""
        return IssuePlace(key, None if self.at_forge else self.base / f"issue-{key.number}.md")

    def put(self, body: str, key: IssueKey = ISSUE) -> None:
        """Have an issue say this, open."""
        (self.base / f"issue-{key.number}.md").write_bytes(body.encode())
        self.forge.put(key, body)

    @property
    def repository(self) -> Path:
        return self.base / "repository"

    @property
    def around(self) -> Surroundings:
        environ = {
            "PATH": f"{self.forge.folder}:{os.environ['PATH']}",
            "HOME": str(self.base),
            "TMPDIR": str(self.base),
        }
        return surroundings(self.fs, environ=environ)

    def commit(self) -> str:
        """A commit of the repository, made when first asked for."""
        where = ["git", "-C", str(self.repository)]
        who = ["-c", "user.name=n", "-c", "user.email=n@example.invalid"]
        if not self.repository.exists():
            self.repository.mkdir()
            subprocess.run([*where, "init", "-q", "-b", "main"], check=True)  # noqa: S603 - ours
            made = [*where, *who, "commit", "-q", "--allow-empty", "-m", "x"]
            subprocess.run(made, check=True)  # noqa: S603 - ours
        asked = [*where, "rev-parse", "HEAD"]
        return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603 - ours

    @contextmanager
    def desk(self, failed: OutcomeCode = OutcomeCode.RECORD_NOT_STORED) -> Iterator[Desk]:
        """The store, open for writing."""
        with writing(self.store, self.around, None, "test", failed) as desk:
            yield desk

    def ledger(self) -> Ledger:
        """What the rows add up to."""
        return reading(self.store, self.around, None).ledger

    def policy(self, **members: object) -> None:
        """Have a policy row for the repository: both flags on, public, the publisher admitted."""
        row = {
            "agents_enabled": True,
            "verified_closing_enabled": True,
            "visibility": "public",
            "admitted_verifiers": [PUBLISHER],
        } | members
        self.policy_file(json.dumps({"schema_version": 1, "repositories": {REPO: row}}).encode())

    def policy_file(self, data: bytes) -> None:
        """Have these bytes as policy."""
        with (
            PrivateRoot.create(self.store, RootKind.STATE, around=self.plain, checkout=None) as root,
            root.child("outcome", create=True) as folder,
        ):
            folder.replace("policy.json", data)

    @property
    def plain(self) -> Surroundings:
        """Surroundings with the real file system."""
        return replace(self.around, fs=RealFs())

    def attempt(self, **members: object) -> Attempt:
        """Record an attempt that ended at `COMMIT`."""
        value: dict[str, object] = {
            "repository": REPO,
            "issue_number": 7,
            "attempt_id": "attempt-1",
            "actor": "agent",
            "principal": REQUESTER,
            "budget": {"max_attempts": 3},
            "state": "finished",
            "commit": COMMIT,
            "session": "agent-session",
            "source": "manual",
        }
        attempt = record_of(Attempt, value | members)
        with self.desk() as desk:
            return add_attempt(desk, attempt)

    def reference(self, **members: object) -> ClosingReference:
        """Record that `COMMIT` names the issue."""
        value: dict[str, object] = {
            "repository": REPO,
            "issue_number": 7,
            "commit": COMMIT,
            "closed_by_user_id": None,
        }
        with self.desk() as desk:
            return add_reference(desk, record_of(ClosingReference, value | members))

    def edge(self, family: str, result: str | None, **members: Any) -> Edge:  # noqa: ANN401 - any member
        """Record an edge that is no qualification."""
        value: dict[str, Any] = {
            "issue": ISSUE,
            "commit": COMMIT,
            "family": family,
            "result": result,
            "receipt": f"{family}-{next(self._numbers)}",
        }
        with self.desk() as desk:
            return add_edge(desk, NewEdge(**(value | members)), self.around)

    def check(self, status: str = "succeeded", **members: object) -> Edge:
        """Put a qualification into the ledger, as `edge add` would after looking a receipt up."""
        issue = members.pop("issue", ISSUE)
        assert isinstance(issue, IssueKey)
        commit = members.pop("commit", COMMIT)
        check = {
            "repository": issue.repository,
            "name": "closeout/beforePR",
            "commit": commit,
            "artifact_digest": "sha1:" + "c" * 40,
            "status": status,
            "publisher": PUBLISHER,
            "session": None,
            "evidence_digest": "sha256:" + "d" * 64,
        }
        number = next(self._numbers)
        value = {
            "repository": issue.repository,
            "issue_number": issue.number,
            "edge_id": f"edge-{number:024x}",
            "commit": commit,
            "family": "qualification",
            "receipt": f"closeout/beforePR:{number}",
            "result": status,
            "environment": None,
            "check": check | members,
        }
        edge = validate(Edge, value)
        with self.desk() as desk:
            desk.append(("edge_recorded", edge))
        return edge

    def good(self) -> Edge:
        """All that an accepted claim needs but its submission."""
        self.policy()
        self.attempt()
        return self.check()

    def submit(
        self,
        *cited: Edge | str,
        place: IssuePlace | None = None,
        attempt: str = "attempt-1",
        criterion: str = CRITERION,
        false_greens: tuple[str, ...] = (),
    ) -> Judged:
        """Submit the claim that these edges satisfied the criterion."""
        ids = [each if isinstance(each, str) else each.edge_id for each in cited]
        evidence = [{"criterion": criterion, "evidence_id": each} for each in ids]
        citations = validate(Citations, {"evidence": evidence, "false_green_classes": list(false_greens)})
        with self.desk(OutcomeCode.CLAIM_NOT_RECORDED) as desk:
            return submit(desk, place or self.place, attempt, citations, self.around)

    def close(
        self, *, execute: bool = True, place: IssuePlace | None = None, attempt: str = "attempt-1"
    ) -> Closing:
        """Close, or consider closing."""
        place = place or self.place
        if not execute:
            return consider(reading(self.store, self.around, None), place, attempt, self.around)
        with self.desk(OutcomeCode.CLAIM_NOT_RECORDED) as desk:
            return close(desk, place, attempt, self.around)

    def row(self, revision: str = COMMIT, attempt: str = "attempt-1") -> ClaimRow:
        """The claim's row."""
        row = self.ledger().row(ClaimKey(REPO, 7, attempt, revision))
        assert row is not None
        return row

    def rows(self, kind: str) -> int:
        """How many rows of a type the journal has."""
        lines = (self.store / "outcome" / "journal" / "000001.jsonl").read_text().splitlines()
        return sum(json.loads(line)["type"] == kind for line in lines)

    # Receipts of sibling tools, written by hand.

    def closeout_rows(self, *rows: tuple[str, dict[str, Any]]) -> None:
        """Append rows to closeout's journal."""
        with (
            PrivateRoot.create(self.store, RootKind.STATE, around=self.plain, checkout=None) as root,
            root.child("closeout", create=True) as folder,
            Journal.open(folder, purpose="closeout", state=root) as journal,
        ):
            journal.append([Entry(*row) for row in rows])

    def decision(self, **members: object) -> Path:
        """The file of a decision about the repository's commit."""
        document = decision_document(self.commit()) | members
        return self.file(f"decision-{next(self._numbers)}.json", document)

    def journalled(self, decision: Path) -> Path:
        """Note a decision in closeout's journal."""
        data = decision.read_bytes()
        document = json.loads(data)
        body = {
            "gate": document["gate"],
            "base": document["base"],
            "head": document["head"],
            "policyDigest": document["policy"]["digest"],
            "decision": document["decision"],
            "decisionDigest": digest_bytes(data),
        }
        self.closeout_rows(("decision_recorded", body))
        return decision

    def file(self, name: str, document: object) -> Path:
        """A file with a JSON document."""
        path = self.base / name
        path.write_text(json.dumps(document))
        return path

    def qualify(self, **shown: Any) -> Edge:  # noqa: ANN401 - members of Shown
        """Record the edge of a receipt that is shown."""
        new = NewEdge(
            issue=ISSUE, commit=None, family="qualification", shown=Shown(**shown), checkout=self.repository
        )
        with self.desk() as desk:
            return add_edge(desk, new, self.around)


POLICY_DIGEST = "sha256:" + "e" * 64


def decision_document(head: str) -> dict[str, Any]:
    """An accepted decision about a commit, as closeout writes it."""
    return {
        "specVersion": "0.1",
        "publisher": PUBLISHER,
        "decision": "accepted",
        "gate": "beforePR",
        "base": head,
        "head": head,
        "candidate": {"session": "", "model": "", "provider": ""},
        "policy": {"path": ".agents/closeout.yaml", "digest": POLICY_DIGEST, "absent": False},
        "items": [
            {"id": "check", "kind": "command", "state": "passed", "message": "exited 0", "attempt": 1},
            {"id": "careful", "kind": "review", "state": "passed", "message": "ok", "attempt": 2},
        ],
        "warnings": [],
    }
