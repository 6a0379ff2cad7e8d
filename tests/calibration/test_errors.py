"""Every code of the repeat command and of the loader is raised by the situation it names.

The words of the wire have their own table of situations, in the tests of its door.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from skill_effectiveness.calibration.errors import (
    CalibrationCode,
    CalibrationError,
    CallFailed,
    ExaminationRefused,
    PairFault,
    PairRefused,
    RefusalCode,
    SpentEnding,
)
from skill_effectiveness.calibration.loader import load_calibration
from skill_effectiveness.calibration.repeats import ExaminationPlan
from skill_effectiveness.calibration.reviewer import Reviewer
from skill_effectiveness.calibration.sample import SampleRequest, Sampling, take_sample
from skill_effectiveness.calibration.sealing import seal_pair
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.execution import ExecutableCode, ExecutableError
from skill_effectiveness.providers import CallOutcome, Ending
from tests.support.examinations import (
    MANIFEST,
    OTHER,
    Anything,
    Scripted,
    UnsyncedFs,
    always,
    answer_text,
    manifest,
    open_out,
    run_examination,
)
from tests.support.frozen import CopiedFs
from tests.support.published import VARIANTS

if TYPE_CHECKING:
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.execution import Executable
    from skill_effectiveness.providers import JudgeCall

Situation = Callable[[Path], object]

PLAN = ExaminationPlan(model="model-1", reviewer_family="family-1")
RESULT = "reviewer-calibration-result.json"


def examine(place: Path, provider: Scripted | None = None, **others: Anything) -> None:
    reviewer = Reviewer.real(provider or Scripted(always("tie")))
    plan = others.pop("plan", PLAN)
    run_examination(open_out(place, others.pop("fs", None)), reviewer, plan, **others)


def planned(**changes: Anything) -> Situation:
    return lambda place: examine(place, plan=replace(PLAN, **changes))


def again(spoil: Situation) -> Situation:
    """A complete examination, spoiled in some way and taken up again."""

    def run(place: Path) -> None:
        examine(place)
        spoil(place / "out")
        examine(place, resume=True)

    return run


def damaged_fixture(place: Path) -> None:
    fs = CopiedFs(place)
    fs.path("fixtures/pilot-gates.json").write_bytes(b"{}")
    examine(place, fs=fs)


def no_manifest() -> str:
    raise CalibrationError(CalibrationCode.RUNTIME_MANIFEST_UNAVAILABLE, "An entry is gone.")


def nameless(place: Path) -> None:
    class Nameless(Scripted):
        def identify(self, around: Surroundings) -> Executable:
            del around
            raise ExecutableError(ExecutableCode.MISSING, "There is no program.")

    examine(place, Nameless(always("tie")))


def busy(place: Path) -> None:
    open_out(place).publish(".examination.lock", b"")
    with (place / "out/.examination.lock").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        examine(place)


def exhausted(place: Path) -> None:
    for turn in range(4):
        try:
            examine(place, Scripted(lambda _number, _call: CallOutcome(Ending.TIMEOUT)), resume=turn > 0)
        except ExaminationRefused as refused:
            if refused.code is not RefusalCode.REPEAT_FAILED:
                raise


def one_session(place: Path) -> None:
    def answers(_number: int, call: JudgeCall) -> CallOutcome:
        return CallOutcome(Ending.SUCCESS, answer=answer_text(call, "tie"), session_id="one")

    examine(place, Scripted(answers))


def occupied(place: Path) -> None:
    source = open_out(place)
    for name, data in (
        ("reviewer-calibration.json", VARIANTS["real"].evidence),
        (RESULT, VARIANTS["real"].result),
    ):
        source.publish(name, data)
    target = open_out(place, name="sealed")
    target.publish("notes.txt", b"x")
    seal_pair(source, Ed25519PrivateKey.from_private_bytes(bytes(32)), target)


def simulated_settings(place: Path) -> None:
    class Simulated(Scripted):
        name = "simulated"

    examine(place, Simulated(always("tie")), plan=replace(PLAN, reviewer_family="simulated"))


SITUATIONS: dict[RefusalCode, Situation] = {
    RefusalCode.INVALID_REPEATS: planned(repeats=6),
    RefusalCode.INVALID_TIMEOUT: planned(timeout_seconds=0),
    RefusalCode.INVALID_MODEL: planned(model="a b"),
    RefusalCode.INVALID_REVIEWER_FAMILY: planned(reviewer_family=""),
    RefusalCode.INVALID_SIMULATION: simulated_settings,
    RefusalCode.FIXTURE_INVALID: damaged_fixture,
    RefusalCode.RUNTIME_MANIFEST_UNAVAILABLE: lambda place: examine(place, manifest=no_manifest),
    RefusalCode.PROVIDER_IDENTITY_UNAVAILABLE: nameless,
    RefusalCode.CANCELLED: lambda place: examine(place, cancelled=lambda: True),
    RefusalCode.FOLDER_BUSY: busy,
    RefusalCode.FOLDER_UNUSABLE: again(lambda out: (out / ".examination.lock").chmod(0o644)),
    RefusalCode.ALREADY_CLAIMED: lambda place: (examine(place), examine(place)),
    RefusalCode.CLAIM_INVALID: again(lambda out: (out / ".reviewer-calibration.lock").write_bytes(b"?")),
    RefusalCode.BINDING_INVALID: again(
        lambda out: (out / "reviewer-calibration-binding.json").write_bytes(b"?")
    ),
    RefusalCode.BINDING_DIFFERS: lambda place: (
        examine(place),
        examine(place, resume=True, manifest=lambda: OTHER),
    ),
    RefusalCode.REPEAT_FAILED: lambda place: examine(place, Scripted(always("nonsense"))),
    RefusalCode.ATTEMPTS_EXHAUSTED: exhausted,
    RefusalCode.SESSION_REUSED: one_session,
    RefusalCode.SAMPLES_INVALID: again(lambda out: (out / "attempts" / "notes").mkdir(mode=0o700)),
    RefusalCode.PUBLICATION_BLOCKED: again(lambda out: (out / RESULT).chmod(0o644)),
    RefusalCode.PUBLICATION_DIFFERS: again(lambda out: (out / RESULT).write_bytes(b"{}\n")),
    RefusalCode.TARGET_OCCUPIED: occupied,
}


def test_no_refusal_is_left_out() -> None:
    """E65: a closed set holds nothing that nobody answers."""
    assert set(SITUATIONS) == set(RefusalCode)


@pytest.mark.parametrize("code", SITUATIONS)
def test_each_refusal_is_raised(tmp_path: Path, code: RefusalCode) -> None:
    """E58 E65: the code, and one sentence that names no place of this machine and says what to do."""
    with pytest.raises(ExaminationRefused) as caught:
        SITUATIONS[code](tmp_path)
    assert caught.value.code is code
    assert str(tmp_path) not in f"{caught.value.sentence}{caught.value.field}"
    assert caught.value.sentence.isprintable()
    assert caught.value.sentence.endswith(".")


@pytest.mark.parametrize(
    ("code", "result"),
    [
        (PairFault.DOCUMENT, b"{}\n"),
        (PairFault.DIFFERS, VARIANTS["real"].result.replace(b'"pass"', b'"fail"')),
    ],
)
def test_each_fault_of_a_pair_is_raised(code: PairFault, result: bytes) -> None:
    """E65 R19: a malformed document, and a value that re-deriving does not give."""
    assert len(PairFault) == 2
    found = VARIANTS["real"]
    with pytest.raises(PairRefused) as caught:
        load_calibration(found.evidence, result, inputs=found.inputs)
    assert caught.value.code is code


def exchanged(provider: Scripted) -> None:
    provider.sha256 = OTHER


class Unseen(Scripted):
    """A program that cannot be looked at again after its call."""

    def identify(self, around: Surroundings) -> Executable:
        if self.calls:
            raise ExecutableError(ExecutableCode.NO_RESOURCES, "There is no descriptor left.")
        return super().identify(around)


SPENT: dict[SpentEnding, tuple[Scripted, str]] = {
    # The reviewer, and the place at which the disk is full.
    SpentEnding.NEVER_CALLED: (Scripted(always("tie")), "sample-ledger/.s-1.json"),
    SpentEnding.BINDING_CHANGED: (Scripted(always("tie"), during=exchanged), "nowhere"),
    SpentEnding.UNCONFIRMED: (Unseen(always("tie")), "nowhere"),
    SpentEnding.NOT_STORED: (Scripted(always("tie")), "observations/"),
}


@pytest.mark.parametrize("ending", SpentEnding)
def test_each_ending_of_a_spent_id_is_raised(tmp_path: Path, ending: SpentEnding) -> None:
    """E65 R9: with words that fit a record, and no path."""
    provider, full = SPENT[ending]
    intent = tmp_path / "out/samples/.s-1.intent.json"
    injection = Injection("write", 28, about=lambda path: full in path and intent.exists())
    root = open_out(tmp_path, FaultFs(UnsyncedFs(), injection))
    with pytest.raises(CallFailed) as caught:
        take_sample(
            root,
            SampleRequest("s-1", "model-1", "family-1", 220, MANIFEST),
            Sampling(Reviewer.real(provider), manifest),
        )
    assert caught.value.ending == ending
    assert str(tmp_path) not in caught.value.sentence


def test_a_sentence_is_said_as_it_was_written() -> None:
    """A file name that begins one keeps its spelling."""
    told = "samples/s-1.json cannot be believed."
    assert str(CalibrationError(CalibrationCode.SAMPLE_INVALID, told)) == told


def test_the_words_of_a_root_are_the_words_of_the_wire() -> None:
    """R6: each code that section 3 names, and no other."""
    wire = [
        "invalid_json",
        "request_too_large",
        "invalid_request",
        "protocol_mismatch",
        "invalid_request_id",
        "unsupported_action",
        "invalid_payload",
        "unsupported_provider",
        "invalid_executable",
        "invalid_provider_configuration",
        "invalid_field",
        "invalid_timeout",
        "invalid_cost_policy",
        "invalid_artifact_root",
        "invalid_sample_set",
        "runtime_drift",
        "sample_lock_unavailable",
        "artifact_root_quarantined",
        "finalize_already_started",
        "sample_already_exists",
        "sample_set_mismatch",
        "provider_identity_unavailable",
        "model_call_unresolved",
        "sample_publication_failed",
        "sample_invalid",
        "sample_finality_unknown",
        "sample_intent_mismatch",
        "sample_binding_mismatch",
        "artifact_root_mismatch",
        "fixture_drift",
        "finalization_recovery_required",
        "runtime_manifest_unavailable",
        "fixture_invalid",
        "internal_error",
    ]
    assert len(wire) == 34
    assert [code.value for code in CalibrationCode] == wire
