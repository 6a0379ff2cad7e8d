"""Examinations for tests: frozen inputs, reviewers to be watched or scripted, the receipts of a root."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from skill_effectiveness.calibration.inputs import load_inputs
from skill_effectiveness.calibration.models import (
    Judgment,
    LedgerEntry,
    Observation,
    Sample,
    SampleIntent,
    ShownAnswer,
    Usage,
    to_json,
    to_line,
)
from skill_effectiveness.calibration.repeats import Examination, ExaminationPlan, examine
from skill_effectiveness.calibration.reviewer import Reviewer
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.execution import Executable
from skill_effectiveness.protocol.words import BankName, Verdict
from skill_effectiveness.providers import (
    CallKind,
    CallOutcome,
    CodexProvider,
    Ending,
    JudgeCall,
    Provider,
    SimulatedSettings,
)
from tests.support.private import surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import pytest

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.surroundings import Surroundings

Anything: TypeAlias = Any
"""Of JSON documents that are spoiled on purpose, and of arguments that are only passed on."""

MANIFEST = "sha256:" + 64 * "a"
OTHER = "sha256:" + 64 * "b"
INPUTS = load_inputs(RealFs(), BankName.JUDGED)
PROBES = load_inputs(RealFs(), BankName.BIAS_PROBE)
BANK = INPUTS.bank
ORIENTATION = (1110).to_bytes(32, "big")
"""An orientation key that swaps the one case of `receipts` for every sample id that tests give it."""
PERFECT = SimulatedSettings(accuracy=1.0, seed=7)
PLAN = ExaminationPlan(model="sim-1", reviewer_family="simulated")


def manifest() -> str:
    """The runtime manifest hash of every test that does not change it."""
    return MANIFEST


def read_inputs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spare tests that examine hundreds of times the reading of a bank that does not change."""
    for module in ("sample", "repeats", "finalization"):
        monkeypatch.setattr(
            f"skill_effectiveness.calibration.{module}.load_inputs", lambda _fs, _name: INPUTS
        )


class UnsyncedFs(RealFs):
    """The kernel's files without waiting for the medium: a killed process leaves the same, only sooner."""

    def fsync(self, fd: int) -> None:
        del fd


def open_out(folder: Path, fs: FileSystem | None = None, name: str = "out") -> PrivateRoot:
    """A private root of kind `out`, made if missing."""
    around = surroundings(fs or UnsyncedFs())
    return PrivateRoot.create(folder / name, RootKind.OUT, around=around, checkout=None)


class Watched(Provider):
    """The simulated reviewer, with something that happens before each of its calls."""

    name: ClassVar[str] = "simulated"
    family: ClassVar[str | None] = "simulated"
    session_label: ClassVar[str] = "simulated"
    tool_label: ClassVar[str] = "none"
    json_fence: ClassVar[bool] = False
    call_kinds: ClassVar[frozenset[CallKind]] = frozenset({CallKind.JUDGE})

    def __init__(self, inner: Provider, before: Callable[[], object]) -> None:
        self._inner = inner
        self._before = before

    @classmethod
    def at(cls, path: Path, *, around: Surroundings) -> Self:
        raise AssertionError(path, around)

    def environment_keys(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        return self._inner.environment_keys(environ)

    def identify(self, around: Surroundings) -> Executable:
        return self._inner.identify(around)

    def judge(
        self, call: JudgeCall, *, around: Surroundings, cancelled: Callable[[], bool] = lambda: False
    ) -> CallOutcome:
        self._before()
        return self._inner.judge(call, around=around, cancelled=cancelled)


def simulated(
    settings: SimulatedSettings = PERFECT,
    *,
    bank: BankName = BankName.JUDGED,
    before: Callable[[str], object] = lambda _sample_id: None,
) -> Reviewer:
    """A simulated reviewer; `before` is told the sample id at each call."""
    inner = Reviewer.simulated(settings, (INPUTS if bank is BankName.JUDGED else PROBES).bank)
    return Reviewer(
        adapter=inner.adapter,
        adapter_for=lambda shown, sample_id: Watched(
            inner.adapter_for(shown, sample_id), lambda: before(sample_id)
        ),
        simulation=inner.simulation,
    )


@dataclass
class Scripted(Provider):
    """A real provider's double: takes its outcomes from a script and remembers what it was asked.

    Attributes:
        answers: makes the outcome of call number n, from 1.
        sha256: of its program, as `identify` says.
        version: of its program.
        calls: what it was asked so far.
        during: happens while a call runs.
    """

    name: ClassVar[str] = CodexProvider.name
    family: ClassVar[str | None] = CodexProvider.family
    session_label: ClassVar[str] = CodexProvider.session_label
    tool_label: ClassVar[str] = CodexProvider.tool_label
    json_fence: ClassVar[bool] = CodexProvider.json_fence
    call_kinds: ClassVar[frozenset[CallKind]] = frozenset({CallKind.JUDGE})

    answers: Callable[[int, JudgeCall], CallOutcome]
    sha256: str = "sha256:" + 64 * "e"
    version: str = "tool 1.2.3"
    keys: tuple[str, ...] = ("HOME", "PATH")
    calls: list[JudgeCall] = field(default_factory=list)
    during: Callable[[Scripted], object] = lambda _self: None

    @classmethod
    def at(cls, path: Path, *, around: Surroundings) -> Self:
        raise AssertionError(path, around)

    def environment_keys(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        del environ
        return self.keys

    def identify(self, around: Surroundings) -> Executable:
        del around
        return Executable(Path("/opt/tool"), Path("/opt/tool"), self.sha256, self.version)

    def judge(
        self, call: JudgeCall, *, around: Surroundings, cancelled: Callable[[], bool] = lambda: False
    ) -> CallOutcome:
        del around, cancelled
        self.calls.append(call)
        self.during(self)
        return self.answers(len(self.calls), call)


def labels(call: JudgeCall) -> list[str]:
    """The labels of the cases that a call asks about, in shown order."""
    schema: Any = call.answer_schema
    return list(schema["properties"]["judgments"]["items"]["properties"]["case"]["enum"])


def answer_text(call: JudgeCall, verdict: str) -> str:
    """A whole answer that says the same about every case."""
    import json  # noqa: PLC0415 - reviewers write JSON of their own

    return json.dumps({"judgments": [{"case": label, "verdict": verdict} for label in labels(call)]})


def always(verdict: str) -> Callable[[int, JudgeCall], CallOutcome]:
    """A script that answers every case of every call with one verdict."""
    return lambda _number, call: CallOutcome(Ending.SUCCESS, answer=answer_text(call, verdict))


def run_examination(
    out: PrivateRoot,
    reviewer: Reviewer | None = None,
    plan: ExaminationPlan = PLAN,
    *,
    resume: bool = False,
    **others: Anything,
) -> Examination:
    """`examine` with the settings that most tests share."""
    return examine(plan, reviewer or simulated(), out=out, resume=resume, **{"manifest": manifest, **others})


# Receipts as a root holds them.


@dataclass(frozen=True)
class Receipts:
    """The four files of one completed sample."""

    ledger: LedgerEntry
    intent: SampleIntent
    sample: Sample
    observation: Observation


def bindings(sample_id: str, root_hash: str, **changes: Anything) -> dict[str, Anything]:
    """What intent and sample have in common."""
    return {
        "schema_version": 1,
        "sample_id": sample_id,
        "artifact_root_hash": root_hash,
        "provider": "codex",
        "provider_cli_version": "tool 1.2.3",
        "provider_executable_hash": "sha256:" + 64 * "e",
        "model": "model-1",
        "reviewer_family": "family-1",
        "timeout_seconds": 220,
        "max_model_calls": 1,
        "runtime_manifest_hash": MANIFEST,
        "known_answer_fixture_hash": "sha256:" + 64 * "1",
        "case_fixture_hash": "sha256:" + 64 * "2",
        "runner_hash": "sha256:" + 64 * "3",
        **changes,
    }


def receipts(
    sample_id: str, root_hash: str, shown: Iterable[tuple[str, int, str]] = (("c-1", 1, "A win"),)
) -> Receipts:
    """Receipts of a completed sample that showed these cases (id, orientation, verdict as given)."""
    rows = [ShownAnswer(case_id=case, orientation=bit, verdict=Verdict(word)) for case, bit, word in shown]
    common = bindings(sample_id, root_hash)
    sample = Sample(
        **common,
        artifact_contract="skill-effectiveness-reviewer-calibration-sample-v1",
        provider_environment_keys=("HOME", "PATH"),
        runner_contract="codex-cli-reviewer-calibration-single-sample-v1",
        requested_session_mode="ephemeral",
        tool_access="read-only-observed-none",
        judgments=tuple(
            Judgment(case_id=row.case_id, verdict=row.verdict.turned() if row.orientation else row.verdict)
            for row in rows
        ),
    )
    return Receipts(
        ledger=LedgerEntry(
            schema_version=1,
            artifact_contract="skill-effectiveness-reviewer-calibration-sample-ledger-entry-v2",
            sample_id=sample_id,
            artifact_root_hash=root_hash,
            state="model_call_started",
        ),
        intent=SampleIntent(**common, state="completed", sample_hash=digest_object(to_json(sample))),
        sample=sample,
        observation=Observation(
            schema_version=1,
            artifact_contract="skill-effectiveness-reviewer-calibration-observation-v1",
            sample_id=sample_id,
            case_fixture_hash=common["case_fixture_hash"],
            orientation_key_hash=digest_object(ORIENTATION.hex()),
            shown=tuple(rows),
            usage=Usage(input_tokens=5, output_tokens=None, cost_units=None, latency_ms=12),
        ),
    )


def line(record: Anything) -> bytes:
    """The bytes of a record's file."""
    return to_line(record)
