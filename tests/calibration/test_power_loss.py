"""A power loss at every step of a sample and of an examination: no call is made twice."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.calibration.errors import CalibrationError
from skill_effectiveness.calibration.loader import load_calibration
from skill_effectiveness.calibration.reviewer import Reviewer
from skill_effectiveness.calibration.sample import SampleRequest, Sampling, take_sample
from skill_effectiveness.evidence.pair import load_pair
from tests.support.crash_images import Recording
from tests.support.examinations import (
    INPUTS,
    MANIFEST,
    Scripted,
    always,
    manifest,
    open_out,
    read_inputs_once,
    run_examination,
    simulated,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _inputs_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read_inputs_once(monkeypatch)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """What the images are of; receipts name the path of their root, so images are laid in the same place."""
    base = tmp_path / "base"
    base.mkdir(mode=0o700)
    return base


def images(recording: Recording, base: Path) -> Iterator[Counter[str]]:
    """Lay each image in its place, one after the other; the calls that may have been started by then."""
    assert recording.wrong_modes == []
    for image, started in recording.images():
        shutil.rmtree(base)
        image.materialise(base)
        yield Counter(started)


def request(sample_id: str) -> SampleRequest:
    return SampleRequest(sample_id, "model-1", "family-1", 220, MANIFEST)


def answer(folder: Path, sample_id: str) -> tuple[str, int]:
    """What a request is answered, and how many calls that made."""
    provider = Scripted(always("tie"))
    try:
        take_sample(open_out(folder), request(sample_id), Sampling(Reviewer.real(provider), manifest))
    except CalibrationError as error:
        return error.code.value, len(provider.calls)
    return "allowed", len(provider.calls)


def test_a_sample(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """R42 R9 E53: an id whose call was started is never called again, and a resumed one is called once."""
    recording = Recording(base)
    provider = Scripted(always("tie"), during=lambda _self: recording.acknowledge("s-1"))
    take_sample(open_out(base, recording.fs), request("s-1"), Sampling(Reviewer.real(provider), manifest))
    answers: Counter[str] = Counter()
    for started in images(recording, base):
        told, calls = answer(base, "s-1")
        assert started["s-1"] + calls <= 1
        assert (calls == 1) is (told == "allowed")
        assert told in {"allowed", "sample_already_exists", "artifact_root_quarantined"}
        if told != "artifact_root_quarantined":
            assert answer(base, "s-1") == ("sample_already_exists", 0)
            assert answer(base, "s-2") == ("allowed", 1)
        answers[told] += 1
    with capsys.disabled():
        sys.stdout.write(f"\nsample: {answers.total()} images after a power loss {dict(answers)}\n")
    assert answers.total() > 60
    assert answers.keys() == {"allowed", "sample_already_exists", "artifact_root_quarantined"}


def resume(folder: Path, recording: Recording | None = None) -> Counter[str]:
    """Resume an examination to its end; the calls that it made."""
    asked: list[str] = []

    def before(sample_id: str) -> None:
        asked.append(sample_id)
        if recording is not None:
            recording.acknowledge(sample_id)

    out = open_out(folder, recording.fs if recording else None)
    run_examination(out, simulated(before=before), resume=True)
    return Counter(asked)


def check_completed(folder: Path) -> bytes:
    """The evidence of a complete publication."""
    out = open_out(folder)
    names = ("reviewer-calibration.json", "reviewer-calibration-result.json")
    load_pair(out, *names, lambda first, second: load_calibration(first, second, inputs=INPUTS))
    assert json.loads(out.read("reviewer-calibration-metrics.json"))["synthetic"] is True
    return out.read(names[0])


def test_an_examination(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """R42 R28 E53: a resume completes it with the same evidence, and no attempt is called twice."""
    recording = Recording(base)
    resume(base, recording)
    count, evidence = 0, set()
    for started in images(recording, base):
        asked = started + resume(base)
        assert set(asked.values()) == {1}, asked
        evidence.add(check_completed(base))
        count += 1
    with capsys.disabled():
        sys.stdout.write(f"\nexamination: {count} images after a power loss\n")
    assert count > 200
    assert len(evidence) == 1


def test_a_resumed_repeat(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """R42 R28 E53: after a first loss in the call of a repeat, a second one at any step of the resume."""

    def cut_off(sample_id: str) -> None:
        if sample_id == "r02-a1":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_examination(open_out(base), simulated(before=cut_off))
    recording = Recording(base)
    assert resume(base, recording) == {"r02-a2": 1}
    count, evidence = 0, set()
    for started in images(recording, base):
        again = resume(base)
        assert again.keys() <= {"r02-a2", "r02-a3"}
        assert max((started + again).values()) == 1
        evidence.add(check_completed(base))
        count += 1
    with capsys.disabled():
        sys.stdout.write(f"\nresumed repeat: {count} images after a power loss\n")
    assert count > 100
    assert len(evidence) == 1
