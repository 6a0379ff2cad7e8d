"""The folders of the people behind one active control, and their command lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.controls import BRIEF, CONSTRAINTS, RUBRIC, TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.commands import Said

    Command = Callable[..., Said]


class Place:
    """The folders of two authors, the owner and the controller, below one home."""

    def __init__(self, home: Path, command: Command) -> None:
        self.home = home
        self.command = command
        for name, value in (("brief", BRIEF), ("rubric", RUBRIC), ("constraints", CONSTRAINTS)):
            (home / f"{name}.json").write_text(json.dumps(value, indent=2), encoding="utf-8")
        self.out = home / "selection"

    def private(self, name: str, text: str) -> Path:
        """A private file in a private folder of its own name."""
        path = self.home / name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.touch(0o600)
        path.write_text(text, encoding="utf-8")
        return path

    def texts(self, who: str, folder: str) -> list[str | Path]:
        """The options that name both texts of somebody, as private files."""
        words: list[str | Path] = []
        for scope, name in (("subagent", who), ("main", f"{who}-main")):
            words += [f"--{scope}", self.private(f"{folder}/{scope}.md", TEXTS[name])]
        return words

    def candidate(self, who: str, **changed: str) -> Said:
        """Freeze the candidate of an author."""
        declared = {"commitment": f"I, {who}, wrote it.", "attestation": f"I, {who}, saw nothing else."}
        words: list[str | Path] = ["--brief", "brief.json", *self.texts(who, who), "--out", f"{who}-out"]
        for name, text in (declared | changed).items():
            words += [f"--{name}", self.private(f"{who}/{name}.txt", text)]
        return self.command("active-control-freeze-candidate", *words)

    def owner(self, who: str = "owner", out: str = "owner-out") -> Said:
        """Freeze the owner's texts, or those of somebody else in their place."""
        return self.command(
            "active-control-freeze-owner-reference", *self.texts(who, f"{who}-texts"), "--out", out
        )

    @property
    def reference(self) -> Path:
        """The frozen owner reference."""
        return self.home / "owner-out" / "owner-reference.json"

    def prepare(self, *more: str | Path, candidates: tuple[str, ...] = ("one", "two")) -> Said:
        """Prepare the selection of frozen candidates."""
        words: list[str | Path] = ["--owner-reference", self.reference, "--out", self.out]
        for name in ("brief", "rubric", "constraints"):
            words += [f"--{name}", f"{name}.json"]
        for who in candidates:
            words += ["--candidate", self.home / f"{who}-out" / "active-control-candidate.json"]
        return self.command("active-control-prepare", *words, *more)

    def ready(self) -> Said:
        """Everything up to the preparation."""
        for said in (self.candidate("one"), self.candidate("two"), self.owner()):
            assert said.code == 0, said
        return self.prepare()

    def decision(self, **changed: Any) -> Path:  # noqa: ANN401 - any field
        """The selector's private decision for the first candidate shown."""
        shown = json.loads((self.out / "selector-input.json").read_bytes())
        fields = {
            "schema_version": 1,
            "artifact_contract": "skill-effectiveness-active-control-decision-v1",
            "selector_input_hash": shown["selector_input_hash"],
            "rubric_hash": shown["rubric_hash"],
            "selected_opaque_id": shown["opaque_order"][0],
        }
        return self.private("selector/decision.json", json.dumps(fields | changed, indent=1))

    def finalize(self, **changed: Any) -> Said:  # noqa: ANN401 - any field
        """Seal the decision."""
        words = ("--out", self.out, "--decision", self.decision(**changed))
        return self.command("active-control-finalize", *words)

    def measure(self, *more: str | Path) -> Said:
        """Measure the choice."""
        words = ("--out", self.out, "--owner-reference", self.reference, *more)
        return self.command("active-control-measure", *words)

    def artifacts(self) -> list[str | Path]:
        """The options that name what a matched call rests on."""
        return [
            "--selection",
            self.out / "active-control-selection.json",
            "--measurement",
            self.out / "owner-relative-measurement.json",
            "--owner-reference",
            self.reference,
        ]

    def measured(self) -> None:
        """Everything up to the measurement."""
        for said in (self.ready(), self.finalize(), self.measure()):
            assert said.code == 0, said

    def matched(self, scope: str = "main", **changed: str) -> Said:
        """Declare the contract of a scope."""
        shown = json.loads((self.out / "selector-input.json").read_bytes())
        ids = {
            "active-bundle-id": f"{shown['opaque_order'][0]}-{scope}",
            "oracle-bundle-id": f"oracle-owner-{scope}",
        }
        words: list[str | Path] = ["--out", self.out, *self.artifacts(), "--scope", scope]
        for name, value in (ids | changed).items():
            words += [f"--{name}", value]
        return self.command("active-control-matched-call", *words)

    def matched_verify(self, evidence: Path) -> Said:
        """Check a declared contract."""
        words = (*self.artifacts(), "--evidence", evidence)
        return self.command("active-control-matched-call-verify", *words)
