"""The checks of providers that the bridge contract names (bridge.md section 9), under those names."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.acceptance.closeout import review
from skill_effectiveness.calibration import answers, sample
from skill_effectiveness.calibration.errors import ExaminationRefused
from skill_effectiveness.calibration.repeats import ExaminationPlan, examine
from skill_effectiveness.calibration.reviewer import Reviewer
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.protocol.words import TaskFamily
from skill_effectiveness.providers import (
    ADAPTERS,
    CallKind,
    CodexProvider,
    Ending,
    claude_events,
    claude_surface,
)
from skill_effectiveness.providers.canary import ProbeRefused
from skill_effectiveness.providers.probe import CLAIM, RESULT, ProbeOrder, probe, read_probe_result
from skill_effectiveness.trials.capability_matrix import matrix, read_probe_file
from tests.support import claude_streams, kimi, opencode_fake
from tests.support.examinations import manifest
from tests.support.fake_claude import READ_TOOLS, asked
from tests.support.four_programs import (
    CLAUDE_ANSWER,
    CLAUDE_RESULT,
    FAMILIES,
    GOOD,
    MODELS,
    OPENCODE_PARTS,
    calls,
    write_program,
)
from tests.support.opencode_fake import with_ripgrep
from tests.support.probed import write_probed
from tests.support.provider_calls import left_behind, surroundings

if TYPE_CHECKING:
    from skill_effectiveness.calibration.repeats import Examination

pytestmark = pytest.mark.slow

PAIR = ("reviewer-calibration.json", "reviewer-calibration-result.json")
FINDINGS = '{"findings": []}'
"""What a code review would take for an answer, and a calibration must not."""


def examined(folder: Path, provider: str, **said: Any) -> Examination:  # noqa: ANN401 - of `write_program`
    """Two repeats of a program in the place of a provider's, in a home of its own."""
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    around = with_ripgrep(folder, HOME=str(home))
    if provider == "kimi":
        kimi.write_configuration(home)
    path = write_program(folder / provider, folder, provider, **said)
    plan = ExaminationPlan(MODELS[provider], FAMILIES[provider], 2, 20)
    reviewer = Reviewer.real(ADAPTERS[provider].at(path, around=around))
    try:
        with PrivateRoot.create(folder / "out", RootKind.OUT, around=around, checkout=None) as out:
            return examine(plan, reviewer, out=out, resume=False, manifest=manifest)
    finally:
        assert left_behind(around) == []


def ending(folder: Path, provider: str, **said: Any) -> str:  # noqa: ANN401 - of `write_program`
    """The ending for which an examination published nothing."""
    with pytest.raises(ExaminationRefused) as caught:
        examined(folder, provider, **said)
    assert not any((folder / "out" / name).exists() for name in PAIR)
    return str(caught.value.field)


def no_review(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make the parser of code reviews unusable; what the parser of calibrations is given is listed."""
    given: list[str] = []
    read = answers.read_answer

    def review_parser(*_: object, **__: object) -> object:
        raise AssertionError("a calibration went through the parser of code reviews")

    def calibration_parser(text: str, *others: Any, **named: Any) -> Any:  # noqa: ANN401 - passed on
        given.append(text)
        return read(text, *others, **named)

    monkeypatch.setattr(review, "findings_of", review_parser)
    monkeypatch.setattr(sample, "read_answer", calibration_parser)
    return given


def test_provider_probe_persists_no_leak_evidence_without_false_promotion(tmp_path: Path) -> None:
    """B48 T37: nothing recalled is kept as evidence, on disk and whole, and promotes nothing."""
    around = surroundings(tmp_path)
    order = ProbeOrder("model-1", TaskFamily.REVIEW, 20)
    path = write_probed(tmp_path / "codex", tmp_path)
    provider = CodexProvider.at(path, around=around)
    with PrivateRoot.create(tmp_path / "out", RootKind.OUT, around=around, checkout=None) as out:
        found = probe(order, provider, out)
        with pytest.raises(ProbeRefused):
            probe(order, provider, out)
    artifact, result = (
        (tmp_path / "out" / name).read_bytes() for name in ("capability-probe-review.json", RESULT)
    )
    kept = read_probe_result(artifact, result)

    assert kept == found
    assert kept.cross_trial_canary.recall_probe_completed is True
    assert kept.cross_trial_canary.cross_session_recall_detected is False
    assert kept.isolation_outcome == "unresolved_isolation_threat"
    assert kept.provider_persistence_declaration == "unverified"
    assert kept.security_review_status == "not_reviewed"
    assert kept.capability_matrix.status == "causal_core_unavailable"
    assert (kept.capability_matrix.covered, kept.capability_matrix.lacking) == ((), (TaskFamily.REVIEW,))
    # Whoever puts the row into a matrix of a trial gets no further with it than the probe did.
    assert not matrix([TaskFamily.REVIEW], "codex", [read_probe_file(artifact)]).is_ready
    told = json.dumps(to_json(kept))
    assert not {"verified", "passed", "ready", "isolated"} & set(told.replace('"', " ").split())
    canary = (tmp_path / "memory").read_text()
    assert not any(canary.encode() in file.read_bytes() for file in (tmp_path / "out").iterdir())
    assert (tmp_path / "out" / CLAIM).exists()


SURFACES: dict[str, dict[str, Any]] = {
    "another server": {"mcp_servers": [{"name": "x", "status": "connected"}]},
    "another skill": {"skills": ["mine"]},
    "another permission mode": {"permissionMode": "bypassPermissions"},
    "an authority nobody knows": {"trusted_hooks": True},
}


def test_claude_reviewer_calibration_reuses_code_review_safety_contract(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B48 R32: one validator for what a session may do, in calibrations and in code reviews alike."""
    validated: list[frozenset[str]] = []
    validate = claude_surface.differences

    def watched(init: Any, surface: Any) -> list[str]:  # noqa: ANN401 - passed on
        validated.append(surface.tools)
        return validate(init, surface)

    monkeypatch.setattr(claude_events, "differences", watched)
    assert examined(tmp_path / "good", "claude").calibration_status == "pass"
    (tmp_path / "reading").mkdir()
    reading = asked(tmp_path / "reading", "say(reading, done)", kind=CallKind.READ)
    assert reading.ending is Ending.SUCCESS
    assert validated == [frozenset({"StructuredOutput"})] * 2 + [frozenset(READ_TOOLS)]

    for number, (name, changed) in enumerate(SURFACES.items()):
        said = [claude_streams.init(**changed), CLAUDE_ANSWER, CLAUDE_RESULT]
        place = tmp_path / str(number)
        assert ending(place / "calibration", "claude", documents=said) == "stream_invalid", name
        (place / "review").mkdir()
        first = claude_streams.init(**({"tools": READ_TOOLS} | changed))
        reviewed = asked(place / "review", "say(first, done)", kind=CallKind.READ, first=first)
        assert reviewed.ending is Ending.STREAM_INVALID, name
    extra = [claude_streams.init(tools=["StructuredOutput", "Read"]), CLAUDE_ANSWER, CLAUDE_RESULT]
    assert ending(tmp_path / "tool", "claude", documents=extra) == "stream_invalid"


def test_opencode_reviewer_calibration_uses_native_session_evidence_without_review_parser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B48 R32: its own run and export say what the session was, and findings are no verdicts."""
    given = no_review(monkeypatch)
    assert examined(tmp_path / "good", "opencode").calibration_status == "pass"
    assert len(given) == 2
    for call in calls(tmp_path / "good"):
        argv, environ = call["argv"], call["environ"]
        assert argv[0] == "run"
        assert argv[argv.index("--agent") + 1] == "reviewer-calibration"
        assert argv[argv.index("--model") + 1] == MODELS["opencode"]
        assert environ["XDG_DATA_HOME"] != str(tmp_path / "good" / "home" / ".local" / "share")
    homes = {call["environ"]["XDG_DATA_HOME"] for call in calls(tmp_path / "good")}
    assert len(homes) == 2

    other = opencode_fake.exported(*OPENCODE_PARTS, agent="build")
    assert ending(tmp_path / "agent", "opencode", export=other) == "stream_invalid"
    hidden = opencode_fake.exported(opencode_fake.tool("bash"), *OPENCODE_PARTS)
    assert ending(tmp_path / "tool", "opencode", export=hidden) == "tool_activity"
    model = opencode_fake.exported(*OPENCODE_PARTS, model="fake/other")
    assert ending(tmp_path / "model", "opencode", export=model) == "model_mismatch"
    parts = (opencode_fake.step_start(), opencode_fake.text(FINDINGS), opencode_fake.step_finish())
    said = {"documents": opencode_fake.stream(*parts), "export": opencode_fake.exported(*parts)}
    assert ending(tmp_path / "findings", "opencode", **said) == "answer_invalid:wrong_shape"


def test_kimi_reviewer_calibration_uses_private_native_stream_without_review_parser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B48 R32 R34: a home of each session's own, its own stream audited whole, and findings no verdicts."""
    given = no_review(monkeypatch)
    assert examined(tmp_path / "good", "kimi").calibration_status == "pass"
    assert len(given) == 2
    started = calls(tmp_path / "good")
    homes = {call["environ"]["KIMI_CODE_HOME"] for call in started}
    assert len(homes) == 2
    assert not any(Path(home).is_relative_to(tmp_path / "good" / "home") for home in homes)
    for call in started:
        config = tomllib.loads(call["config"])
        assert (list(config["models"]), list(config["providers"])) == (["fake-model"], ["loop"])
        assert config["permission"]["rules"] == [{"decision": "deny", "scope": "user", "pattern": "*"}]
        argv = call["argv"]
        assert argv[argv.index("--output-format") + 1] == "stream-json"
        assert not Path(argv[argv.index("--skills-dir") + 1]).is_relative_to(tmp_path / "good" / "home")

    cut = GOOD["kimi"][:-1]
    assert ending(tmp_path / "cut", "kimi", documents=cut) == "stream_invalid"
    tool = [kimi.VERSION_LINE, *kimi.tool(), kimi.message("@answer"), kimi.HINT]
    assert ending(tmp_path / "tool", "kimi", documents=tool) == "tool_activity"
    around = [kimi.VERSION_LINE, kimi.message("Here it is: @answer"), kimi.HINT]
    assert ending(tmp_path / "prose", "kimi", documents=around) == "answer_invalid:not_json"
    findings = [kimi.VERSION_LINE, kimi.message(FINDINGS), kimi.HINT]
    assert ending(tmp_path / "findings", "kimi", documents=findings) == "answer_invalid:wrong_shape"
