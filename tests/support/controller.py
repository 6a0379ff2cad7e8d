"""A controller for tests: requests, a doorway with a scripted reviewer, and what comes back."""

from __future__ import annotations

import copy
import json
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skill_effectiveness.calibration.actions import Doorway
from skill_effectiveness.calibration.door import respond
from skill_effectiveness.evidence.signals import Cutoff
from tests.support.examinations import MANIFEST, Anything, Scripted, UnsyncedFs, always
from tests.support.private import surroundings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem

SCHEMA = "skill-effectiveness.reviewer-calibration.request.v1"
RESPONSE = "skill-effectiveness.reviewer-calibration.response.v1"
UNREAD = "redacted-invalid-request-id"
EVIDENCE, RESULT = "reviewer-calibration.json", "reviewer-calibration-result.json"
METRICS = "reviewer-calibration-metrics.json"
STAGED = (".reviewer-calibration.pending.json", ".reviewer-calibration-result.pending.json")
CLAIM = ".reviewer-calibration.lock"
INTENT = ".finalization.intent.json"

RUNTIME: dict[str, object] = {
    "schema_version": 1,
    "protocol_revision": "skill-effectiveness.reviewer-calibration.v1",
    "interpreter": {"implementation": "cpython", "version": "3.11.0", "executable_hash": MANIFEST},
    "entries": [{"path": "skill_effectiveness/__init__.py", "sha256": MANIFEST, "size": 0}],
    "dependencies": [{"name": "rfc8785", "version": "0.1.4", "record_sha256": MANIFEST}],
    "manifest_hash": MANIFEST,
}
"""A runtime manifest whose hash is `MANIFEST`; what it is a hash of, no test here asks."""


def probe_request(**changes: Anything) -> dict[str, Any]:
    """A probe."""
    return {"schema": SCHEMA, "request_id": "r-1", "action": "probe", "payload": {}, **changes}


def sample_request(root: Path | str, sample_id: Anything = "s-1", **payload: Anything) -> dict[str, Any]:
    """One sample; further arguments replace fields of the payload."""
    return {
        "schema": SCHEMA,
        "request_id": "r-1",
        "action": "sample",
        "artifact_root": str(root),
        "payload": {
            "sample_id": sample_id,
            "provider": "codex",
            "executable": sys.executable,
            "model": "model-1",
            "reviewer_family": "family-1",
            "timeout_seconds": 220,
            "max_model_calls": 1,
            "runtime_manifest_hash": MANIFEST,
            **payload,
        },
    }


def finalize_request(root: Path | str, ids: Anything = ("s-1", "s-2"), **payload: Anything) -> dict[str, Any]:
    """A finalization; further arguments replace fields of the payload."""
    return {
        "schema": SCHEMA,
        "request_id": "r-1",
        "action": "finalize",
        "artifact_root": str(root),
        "payload": {
            "sample_ids": list(ids) if isinstance(ids, tuple) else ids,
            "runtime_manifest_hash": MANIFEST,
            **payload,
        },
    }


def changed(request: Mapping[str, Any], path: str, value: Anything) -> dict[str, Any]:
    """A copy with another value at a dotted path."""
    document: dict[str, Any] = copy.deepcopy(dict(request))
    *above, last = path.split(".")
    at = document
    for name in above:
        at = at[name]
    at[last] = value
    return document


def without(request: Mapping[str, Any], path: str) -> dict[str, Any]:
    """A copy that lacks the field at a dotted path."""
    document: dict[str, Any] = copy.deepcopy(dict(request))
    *above, last = path.split(".")
    at = document
    for name in above:
        at = at[name]
    del at[last]
    return document


@dataclass(frozen=True)
class Reply:
    """One answer, taken apart and held to its form."""

    exit_code: int
    document: Mapping[str, Any]
    told: str = field(default="", compare=False)

    @classmethod
    def of(cls, line: bytes, exit_code: int, told: str = "") -> Reply:
        """Read a line; it must be one, and say what its exit code says."""
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        document = json.loads(line)
        assert document["schema"] == RESPONSE
        assert {"ok": 0, "invalid": 2, "blocked": 3, "error": 4}[document["status"]] == exit_code
        assert set(document) - {"action"} == {
            "schema",
            "request_id",
            "status",
            "result" if exit_code == 0 else "reason_code",
        }
        return cls(exit_code, document, told)

    @property
    def word(self) -> str:
        """`ok`, or the reason."""
        return str(self.document.get("reason_code", "ok"))

    @property
    def result(self) -> Mapping[str, Any]:
        """What was asked for."""
        assert self.word == "ok", self.word
        result: Mapping[str, Any] = self.document["result"]
        return result


@dataclass
class Controller:
    """Asks the door in this process, with a scripted reviewer behind it.

    Attributes:
        folder: holds the artifact root `root`, the home folder and the temporary one.
        reviewer: who answers; counts its calls.
        fs: file operations.
        lock_wait: seconds.
        settings: replaces parts of the doorway.
        told: what people were told besides.
    """

    folder: Path
    reviewer: Scripted = field(default_factory=lambda: Scripted(always("tie")))
    fs: FileSystem = field(default_factory=UnsyncedFs)
    lock_wait: float = 0.0
    settings: dict[str, Any] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)

    @property
    def root(self) -> Path:
        """The artifact root."""
        return self.folder / "root"

    @property
    def calls(self) -> int:
        """How often the reviewer was asked."""
        return len(self.reviewer.calls)

    def way(self, **settings: Anything) -> Doorway:
        """A doorway; further arguments replace its parts."""
        environ = {"HOME": str(self.folder / "home"), "TMPDIR": str(self.folder)}
        given: dict[str, Any] = {
            "around": surroundings(self.fs, environ=environ),
            "checkout": self.folder / "checkout",
            "manifest": lambda: RUNTIME,
            "cutoff": Cutoff(),
            "binders": {"codex": lambda _path, _around: self.reviewer},
            "tell": self.told.append,
            "lock_wait": self.lock_wait,
        }
        (self.folder / "checkout").mkdir(exist_ok=True)
        return Doorway(**{**given, **self.settings, **settings})

    def ask(self, request: Mapping[str, Any] | bytes, *, way: Doorway | None = None) -> Reply:
        """One request and its answer."""
        data = request if isinstance(request, bytes) else json.dumps(request).encode()
        answer = respond(lambda: data, (), way or self.way())
        return Reply.of(answer.line, answer.exit_code, answer.told)

    def sample(self, sample_id: Anything = "s-1", **payload: Anything) -> Reply:
        """One sample at the root."""
        return self.ask(sample_request(self.root, sample_id, **payload))

    def finalize(self, *ids: str, **payload: Anything) -> Reply:
        """Finalize the root; `s-1` and `s-2` unless others are named."""
        return self.ask(finalize_request(self.root, ids or ("s-1", "s-2"), **payload))

    def sampled(self, *ids: str) -> Controller:
        """The same with these samples taken."""
        for sample_id in ids or ("s-1", "s-2"):
            assert self.sample(sample_id).word == "ok"
        return self

    def file(self, name: str) -> Path:
        """A file of the publication."""
        return self.root / "calibration" / name
