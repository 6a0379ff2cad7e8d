"""Milestones for tests: a repository, a store, engines that answer as a test says, and the real commands.

    hall = Hall()
    hall.passes["B"] = [needs(finding("B-1"))]
    case = Case(tmp_path, hall, monkeypatch)
    case.start()
    assert case("close").code == 1

An engine finds planted defects and verifies everything else, unless a list of answers says otherwise; the
last answer of a list is given again and again.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from skill_effectiveness.acceptance.milestone.engines import EngineUnavailableError
from skill_effectiveness.acceptance.milestone.probe import DEFECTS
from skill_effectiveness.cli import door, milestone
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.providers import CallKind, CallOutcome, Ending, Provider, ProviderErrorKind, Usage
from skill_effectiveness.providers.events import Event, Message, ToolActivity
from tests.support.commands import Said, no_traceback
from tests.support.fast_processes import USERS, run_plainly
from tests.support.repositories import PlainRepository

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import pytest

    from skill_effectiveness.acceptance.milestone.configuration import EngineProfile
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.execution import Executable
    from skill_effectiveness.providers import ReadCall, WorkCall
    from skill_effectiveness.providers.calls import Cancelled

Reply = Any
"""What an engine gives: a JSON value, a text, an outcome, or a function of the call."""

CHECK = ["sh", "-c", "test ! -e broken"]
"""A required command that passes unless the commit holds a file `broken`."""

_SESSIONS = itertools.count(1)


@dataclass(frozen=True)
class Asked:
    """One call as an engine got it."""

    kind: str
    purpose: str
    profile: str
    prompt: str
    folder: Path
    seconds: float
    thread: int = 0


def answered(
    value: Reply,
    *,
    tokens: int | None = 5000,
    seconds: float = 60,
    commands: int = 2,
    model: str | None = None,
) -> CallOutcome:
    """A successful call that read enough."""
    text = value if isinstance(value, str) else json.dumps(value)
    tool = ToolActivity("command", succeeded=True)
    events: tuple[Event, ...] = (*(tool for _ in range(commands)), Message(text))
    return CallOutcome(
        Ending.SUCCESS,
        answer=text,
        usage=Usage(input_tokens=tokens),
        session_id=f"session-{next(_SESSIONS)}",
        observed_model=model,
        events=events,
        latency_ms=round(seconds * 1000),
    )


def unread(value: Reply) -> CallOutcome:
    """A valid answer of an engine that ran nothing."""
    return answered(value, commands=0)


QUOTA = CallOutcome(Ending.PROVIDER_ERROR, error_kind=ProviderErrorKind.QUOTA_UNAVAILABLE)
SILENT = CallOutcome(Ending.NO_ANSWER)
KILLED = CallOutcome(Ending.TIMEOUT)
BROKEN = CallOutcome(Ending.STREAM_INVALID)
GONE = CallOutcome(Ending.UNSTARTABLE)


def finding(
    name: str = "B-1",
    severity: str = "P1",
    impact: str | None = "core_function",
    kind: str = "defect",
    text: str = "It loses the error.",
    **members: Any,  # noqa: ANN401 - members of a finding
) -> dict[str, Any]:
    """A finding."""
    plain = {"id": name, "kind": kind, "severity": severity, "impact": impact, "file": "a.py", "line": 1}
    return plain | {"text": text} | members


def refs_of(prompt: str) -> list[str]:
    """The criteria and decisions that a packet lists."""
    found: list[str] = []
    for title in ("CRITERIA", "DECISIONS OF THE APPROVED DESIGN"):
        block = prompt.split(f"\n{title}\n", 1)[1].split("\n\n", 1)[0]
        found += [
            line.split(":", 1)[0] for line in block.splitlines() if re.match(r"[A-Za-z0-9._-]+: ", line)
        ]
    return found


def coverage(prompt: str) -> list[dict[str, Any]]:
    """Everything met."""
    return [{"ref": ref, "met": True, "evidence": "a.py"} for ref in refs_of(prompt)]


def verified(*findings: dict[str, Any]) -> Callable[[Asked], dict[str, Any]]:
    """A pass that verifies."""
    return _said("verified", findings)


def needs(*findings: dict[str, Any]) -> Callable[[Asked], dict[str, Any]]:
    """A pass that wants changes."""
    return _said("needs_changes", findings)


def _said(verdict: str, findings: tuple[dict[str, Any], ...]) -> Callable[[Asked], dict[str, Any]]:
    def say(asked: Asked) -> dict[str, Any]:
        covered = coverage(asked.prompt) if asked.purpose == "A" else []
        return {"verdict": verdict, "coverage": covered, "findings": list(findings)}

    return say


def _found(asked: Asked) -> dict[str, Any]:
    """The planted defect, reported."""
    defect = next(each for each in DEFECTS if (asked.folder / each.file).exists())
    planted = finding("B-1", file=defect.file, line=defect.lines[-1], text="Wrong.")
    return {"verdict": "needs_changes", "coverage": [], "findings": [planted]}


PURPOSES = (
    ("This is pass A of two.", "A"),
    ("This is pass B of two.", "B"),
    ("lacks evidence:", "evidence"),
    ("Somebody who corrects", "research"),
    ("Drive the product", "capture"),
    ("This is QA pass A:", "qa-A"),
    ("This is QA pass B:", "qa-B"),
    ("Draw the receipt", "receipt"),
    ("Do not commit.", "fix"),
)
CAPTURE_PATH = ".crw/evidence/s1/qa/screen.txt"


def _captured(asked: Asked) -> dict[str, Any]:
    place = asked.folder / CAPTURE_PATH
    place.parent.mkdir(parents=True)
    place.write_text("screen\n")
    shown = {"path": CAPTURE_PATH, "kind": "text", "shows": "the first screen"}
    return {"captures": [shown], "scenarios": [{"id": "s1", "result": "seen"}], "teardown": "done"}


def _fixed(asked: Asked) -> dict[str, Any]:
    (asked.folder / "fixed").write_text("1\n")
    return {"state": "ready", "question": "", "summary": "Fixed."}


USUAL: Mapping[str, Reply] = {
    "probe": _found,
    "A": verified(),
    "B": verified(),
    "evidence": {"answer": "See tests/test_a.py line 3."},
    "research": {"answer": "It is in a.py."},
    "capture": _captured,
    "qa-A": {"pass": "A", "verdict": "PASS", "findings": []},
    "qa-B": {"pass": "B", "verdict": "PASS", "findings": []},
    "receipt": {"verdict": "PASS", "findings": []},
    "fix": _fixed,
}


@dataclass
class Hall:
    """Where scripted engines stand."""

    script: dict[str, list[Reply]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def bind(self, profile: EngineProfile, around: Surroundings) -> Provider:
        """A binder for the commands."""
        del around
        if profile.name in self.missing:
            raise EngineUnavailableError(profile.name)
        return Scripted(self, profile)

    def play(self, asked: Asked) -> CallOutcome:
        """Answer one call."""
        with self._guard:
            self.asked.append(asked)
            listed = self.script.get(f"{asked.profile}/{asked.purpose}") or self.script.get(asked.purpose)
            reply = USUAL[asked.purpose] if not listed else listed.pop(0) if len(listed) > 1 else listed[0]
        given = reply(asked) if callable(reply) else reply
        return given if isinstance(given, CallOutcome) else answered(given)

    def purposes(self) -> list[str]:
        """What engines were asked for, in order, probes left out."""
        return [each.purpose for each in self.asked if each.purpose != "probe"]

    def of(self, purpose: str) -> list[Asked]:
        """The calls for a purpose."""
        return [each for each in self.asked if each.purpose == purpose]


class Scripted(Provider):
    """An engine that answers as the hall's script says."""

    name: ClassVar[str] = "scripted"
    family: ClassVar[str | None] = None
    session_label: ClassVar[str] = "none"
    tool_label: ClassVar[str] = "none"
    json_fence: ClassVar[bool] = False
    call_kinds: ClassVar[frozenset[CallKind]] = frozenset({CallKind.READ, CallKind.WORK})

    def __init__(self, hall: Hall, profile: EngineProfile) -> None:
        self._hall = hall
        self._profile = profile

    @classmethod
    def at(cls, path: Path, *, around: Surroundings) -> Self:
        raise NotImplementedError

    def environment_keys(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        del environ
        return ()

    def identify(self, around: Surroundings) -> Executable:
        raise NotImplementedError

    def read(self, call: ReadCall, *, around: Surroundings, cancelled: Cancelled = bool) -> CallOutcome:
        del around, cancelled
        return self._play("read", call.prompt, call.checkout, call.timeout_seconds)

    def work(self, call: WorkCall, *, around: Surroundings, cancelled: Cancelled = bool) -> CallOutcome:
        del around, cancelled
        return self._play("work", call.prompt, call.working_copy, call.timeout_seconds)

    def _play(self, kind: str, prompt: str, folder: Path, seconds: float) -> CallOutcome:
        purpose = next(name for sign, name in PURPOSES if sign in prompt)
        if any(defect.intended in prompt for defect in DEFECTS):
            purpose = "probe"
        thread = threading.get_ident()
        return self._hall.play(Asked(kind, purpose, self._profile.name, prompt, folder, seconds, thread))


def profile(name: str = "one", **members: Any) -> dict[str, Any]:  # noqa: ANN401 - members of a profile
    """An engine profile of a configuration."""
    return {"name": name, "adapter": "scripted", "model": f"{name}-1", "family": name} | members


def node(name: str = "n1", **members: Any) -> dict[str, Any]:  # noqa: ANN401 - members of a node
    """A planned node."""
    plain = {"id": name, "slice": f"slice {name}", "criteria": [f"{name} works"], "base": "base"}
    return plain | members


class Case:
    """One repository with a milestone, its store, and the commands over scripted engines."""

    def __init__(
        self, base: Path, hall: Hall, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.repository = PlainRepository(base)
        self.hall = hall
        self._capsys = capsys
        self.first = self.repository.commit(first="1")
        self.repository.git("tag", "base")
        self.repository.commit(**{"a.py": "x = 1\n"})
        for name, value in self.repository.variables().items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("XDG_STATE_HOME", raising=False)
        monkeypatch.chdir(self.repository.root)
        for name in USERS:
            monkeypatch.setattr(name, run_plainly)
        door.surroundings.cache_clear()
        self.document: dict[str, Any] = {
            "plan": "plan-1",
            "id": "m1",
            "repository": str(self.repository.root),
            "target": "main",
            "base": "base",
            "grade": "C3",
            "criteria": ["It works.", "It stays fast."],
            "required": [CHECK],
            "research_limit": 2,
        }
        self.configuration: dict[str, Any] = {"profiles": [profile()]}

    @property
    def store(self) -> Path:
        return self.repository.base / "store"

    @property
    def head(self) -> str:
        return self.repository.git("rev-parse", "main")

    def git(self, *words: str) -> str:
        return self.repository.git(*words)

    def __call__(self, *words: object, run: str | None = "r1", store: object = None) -> Said:
        """Carry out a command with --json."""
        named = [] if run is None else ["--run", run]
        places = ["--store", str(self.store if store is None else store)]
        return self.plain(*words, *named, *places, "--json")

    def plain(self, *words: object) -> Said:
        """Carry out exactly these words."""
        self._capsys.readouterr()
        code = milestone.main([str(word) for word in words], binder=self.hall.bind)
        said = Said(int(code), *self._capsys.readouterr())
        assert no_traceback(said)
        return said

    def start(self, run: str = "r1", **members: Any) -> Said:  # noqa: ANN401 - members of the input
        """Begin a run with the document, members changed for this run only."""
        document = self.repository.base / "milestone.json"
        document.write_text(json.dumps(self.document | members))
        settings = self.repository.base / "configuration.json"
        settings.write_text(json.dumps(self.configuration))
        return self("start", document, "--config", settings, run=run)

    def started(self, run: str = "r1", **members: Any) -> Case:  # noqa: ANN401 - likewise
        """The case, once a run has begun."""
        said = self.start(run, **members)
        assert said.code == 0, said
        return self

    def close(self, run: str = "r1", *words: object) -> Said:
        """Close it."""
        return self("close", *words, run=run)

    def accept(
        self,
        name: str = "n1",
        *words: object,
        head: str = "main",
        receipt: str | None = "red: no\n",
        run: str = "r1",
    ) -> Said:
        """Accept a node with its digest, and a receipt unless there is none."""
        criteria = next(each for each in self.document["nodes"] if each["id"] == name)["criteria"]
        told: list[object] = ["--node", name, "--head", head, "--criteria-digest", digest_object(criteria)]
        if receipt is not None:
            place = self.repository.base / f"{name}.receipt"
            place.write_text(receipt)
            told += ["--receipt", place]
        return self("accept", *told, *words, run=run)

    # What lies there.

    def folder(self, run: str = "r1") -> Path:
        return self.store / "milestone" / "runs" / run

    def rows(self, kind: str | None = None, run: str = "r1") -> list[dict[str, Any]]:
        """Bodies of the rows of a type, or every row."""
        lines = (self.folder(run) / "journal.jsonl").read_bytes().splitlines()
        found = [json.loads(line) for line in lines]
        return found if kind is None else [row["body"] for row in found if row["type"] == kind]

    def types(self, run: str = "r1") -> list[str]:
        return [row["type"] for row in self.rows(run=run)]

    def verdict(self, run: str = "r1") -> dict[str, Any]:
        """The newest V."""
        found: dict[str, Any] = self.rows("crw.crosscheck", run)[-1]["verdict"]
        return found
