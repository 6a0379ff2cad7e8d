"""`closeout decision` over 10,000 evidence files against reading and parsing them (closeout.md, section 17).

The rival opens each file, reads it and parses its JSON; it checks nothing. Ours is the whole command behind
the command line: policy and commits, the strict reading and the schema of every record, artifact hashes of
those that match, the evaluation, the stored decision and the journal.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.harness import Figure, ratio, report
from skill_effectiveness.acceptance.closeout.runner import decide
from skill_effectiveness.acceptance.closeout.site import Request, Site
from skill_effectiveness.evidence.surroundings import Surroundings

FILES = 10_000
GOAL = 6
POLICY = """\
specVersion: "0.1"
items:
  - {id: check, kind: command, gate: beforePR, exec: ["true"], timeoutSeconds: 60}
"""
FINDING = {
    "severity": "P2",
    "location": "src/store/journal.py:118",
    "explanation": "The error of the second write replaces that of the first. " * 4,
    "evidence": "Line 118 assigns before it returns. " * 6,
}


def record(number: int) -> dict[str, object]:
    """One valid record of an old candidate: in turns a review with three findings and a command."""
    common: dict[str, object] = {
        "specVersion": "0.1",
        "itemId": f"item-{number % 20}",
        "base": f"{number % 300:040x}",
        "head": f"{number // 40:040x}",
        "policyDigest": f"sha256:{number % 7:064x}",
        "attempt": number + 1,
        "evaluator": {"name": "closeout-reference", "version": "0.1.0"},
    }
    if number % 2:
        producer = {"session": f"session-{number}", "model": "model-a", "provider": "codex"}
        findings = [FINDING] * 3
        return {
            **common,
            "recordType": "review",
            "producer": producer,
            "findings": findings,
            "artifacts": [],
        }
    run = {
        "argv": ["bun", "run", "typecheck"], "exitCode": 0, "timedOut": False, "dirty": False,
        "headMoved": False, "durationMs": 5210, "truncated": False,
    }  # fmt: skip
    log = {"path": f"logs/{number % 7:064x}/{number // 40:040x}/item/{number + 1}.log", "sha256": "0" * 64}
    producer = {"name": "closeout-reference", "version": "0.1.0"}
    return {**common, "recordType": "command", "producer": producer, "exec": run, "artifacts": [log]}


def prepare(folder: Path) -> list[Path]:
    """A repository with one commit and its evidence files."""
    (folder / ".agents").mkdir(parents=True)
    (folder / ".agents" / "closeout.yaml").write_text(POLICY)
    who = ["-c", "user.name=n", "-c", "user.email=n@example.invalid"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", "-C", str(folder), *words], check=True)  # noqa: S603, S607 - fixed words
    (folder / ".closeout").mkdir(mode=0o700)
    files = []
    for number in range(FILES):
        place = folder / ".closeout" / "evidence" / f"{number // 200:03d}"
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        files.append(place / f"{number + 1}.json")
        files[-1].write_text(json.dumps(record(number)))
    return files


def main() -> int:
    around = Surroundings.real()
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary).resolve()
        files = prepare(base / "repo")
        around = replace(around, environ={**around.environ, "HOME": str(base)})
        site = Site(base / "repo", around, "0.1.0", store=base / "store")

        def bare() -> None:
            for path in files:
                with open(path, "rb") as file:  # noqa: PTH123 - the barest way
                    json.loads(file.read())

        cost = ratio(lambda: decide(site, Request("HEAD", "HEAD")), bare, rounds=3)
    return report(Figure("closeout_decision", cost, GOAL))


if __name__ == "__main__":
    sys.exit(main())
