"""Repositories with closeout policies for tests, and the records that belong to them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from skill_effectiveness.acceptance.closeout.evaluation import Candidate
from skill_effectiveness.acceptance.closeout.runner import Blocked, decide, run
from skill_effectiveness.acceptance.closeout.site import Request, Site
from tests.support.repositories import PlainRepository

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.acceptance.closeout.decision import DecisionDocument

VERSION = "7.7.7"
ENTRY = ".agents/closeout.yaml"
SKILL = ".agents/skills/careful/SKILL.md"
HEAD = 'specVersion: "0.1"\n'
BASE_ID = "b" * 40
HEAD_ID = "a" * 40
DIGEST = "sha256:" + "d" * 64
CANDIDATE = Candidate("candidate-session", "candidate-model", "p")


def command_item(name: str = "check", argv: str = '["true"]', seconds: int = 20) -> str:
    """A command item as a YAML line."""
    return f"  - {{id: {name}, kind: command, gate: beforePR, exec: {argv}, timeoutSeconds: {seconds}}}\n"


def review_item(
    name: str = "careful", skill: str = SKILL, *, independent: bool = True, fail_on: str = "P1"
) -> str:
    """A review item as a YAML line."""
    flag = "true" if independent else "false"
    independence = f"independence: {{differentSession: {flag}, differentModel: {flag}}}"
    members = f"id: {name}, kind: review, gate: beforePR, skill: {skill}, {independence}, failOn: {fail_on}"
    return f"  - {{{members}}}\n"


def import_entry(path: str, name: str) -> str:
    """An import as a YAML line."""
    return f"  - {{path: {json.dumps(path)}, as: {name}}}\n"


def policy(*items: str, imports: tuple[str, ...] = ()) -> str:
    """A policy file."""
    parts = [HEAD]
    if imports:
        parts += ["imports:\n", *imports]
    if items:
        parts += ["items:\n", *items]
    return "".join(parts)


class Repository(PlainRepository):
    """A repository with closeout policies, and a store beside it."""

    @property
    def store(self) -> Path:
        return self.base / "store"

    @property
    def evidence(self) -> Path:
        return self.root / ".closeout" / "evidence"

    def with_policy(self, text: str, *, skill: bool = False) -> str:
        """Commit a policy, and the skill if asked; the commit's id."""
        self.write(ENTRY, text)
        if skill:
            self.write(SKILL, "Look carefully.\n")
        return self.commit()

    def site(self, **options: Any) -> Site:  # noqa: ANN401 - any JSON, or any member
        """The site of this repository."""
        return Site(
            **{"root": self.root, "around": self.around, "version": VERSION, "store": self.store} | options
        )

    def decide(
        self,
        base: str = "HEAD",
        head: str = "HEAD",
        candidate: Candidate = CANDIDATE,
        **options: Any,  # noqa: ANN401 - any JSON, or any member
    ) -> DecisionDocument:
        """The decision, blocked as a whole or not."""
        try:
            return decide(self.site(**options), Request(base, head, candidate))
        except Blocked as blocked:
            return blocked.document

    def run(
        self,
        base: str = "HEAD",
        head: str = "HEAD",
        candidate: Candidate = CANDIDATE,
        **options: Any,  # noqa: ANN401 - any JSON, or any member
    ) -> DecisionDocument:
        """The decision of a run, blocked as a whole or not."""
        try:
            return run(self.site(**options), Request(base, head, candidate))
        except Blocked as blocked:
            return blocked.document

    def put_record(self, name: str, value: object) -> Path:
        """Put a file below `evidence/`, made by hand."""
        closeout = self.root / ".closeout"
        closeout.mkdir(mode=0o700, exist_ok=True)
        place = self.evidence / name
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
        return place

    def records(self) -> list[dict[str, Any]]:
        """Every record below `evidence/`, in the order of its path."""
        return [json.loads(path.read_bytes()) for path in sorted(self.evidence.rglob("*.json"))]


def states(document: DecisionDocument) -> list[tuple[str, str, str]]:
    """Id, state and message of every item."""
    return [(item.id, item.state.value, item.message) for item in document.items]


def command_record(item: str = "check", attempt: int = 1, **members: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON, or any member
    """A valid command record; `exec` and `producer` members are merged."""
    run_of = {
        "argv": ["true"], "exitCode": 0, "timedOut": False, "dirty": False, "headMoved": False,
        "durationMs": 5, "truncated": False,
    }  # fmt: skip
    record = {
        **_common(item, attempt),
        "recordType": "command",
        "producer": {"name": "closeout-reference", "version": VERSION},
        "exec": run_of,
    }
    return _merged(record, members)


def review_record(item: str = "careful", attempt: int = 1, **members: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON, or any member
    """A valid review record of an independent reviewer; `producer` members are merged."""
    record = {
        **_common(item, attempt),
        "recordType": "review",
        "producer": {"session": "reviewer-session", "model": "reviewer-model", "provider": "p"},
        "findings": [],
    }
    return _merged(record, members)


def finding(severity: str = "P2") -> dict[str, str]:
    """A valid finding."""
    return {
        "severity": severity,
        "location": "a.py:1",
        "explanation": "It loses the error.",
        "evidence": "Line 1.",
    }


def _common(item: str, attempt: int) -> dict[str, Any]:
    return {
        "specVersion": "0.1",
        "itemId": item,
        "base": BASE_ID,
        "head": HEAD_ID,
        "policyDigest": DIGEST,
        "attempt": attempt,
        "evaluator": {"name": "closeout-reference", "version": VERSION},
        "artifacts": [],
    }


def _merged(record: dict[str, Any], members: dict[str, Any]) -> dict[str, Any]:
    for name, value in members.items():
        merge = name in {"exec", "producer"} and isinstance(value, dict)
        record[name] = {**record[name], **value} if merge else value
    return record
