"""A power loss at every step of a sample and of an examination: no call is forgotten, and none is made twice."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import TYPE_CHECKING

from skill_effectiveness.calibration.errors import CalibrationError, ExaminationRefused
from skill_effectiveness.calibration.loader import load_calibration
from skill_effectiveness.calibration.reviewer import Reviewer
from skill_effectiveness.calibration.sample import SampleRequest, Sampling, take_sample
from skill_effectiveness.evidence.fsdoubles import RecordingFs
from skill_effectiveness.evidence.pair import load_pair
from tests.support.examinations import (
    INPUTS,
    MANIFEST,
    Scripted,
    UnsyncedFs,
    always,
    manifest,
    open_out,
    run_examination,
    simulated,
)
from tests.support.power_loss import Disk, Image, restore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pytest


def images_of(folder: Path, run: Callable[[RecordingFs, list[tuple[int, str]]], None]) -> Iterator[tuple[Image, Counter[str]]]:
    """Each image once, with the calls that had been started by then at the latest moment that can leave it."""
    called: list[tuple[int, str]] = []
    open_out(folder).close()
    recorded = RecordingFs(UnsyncedFs())
    run(recorded, called)
    disk, found = Disk(folder / "out"), {frozenset(): Counter[str]()}
    for number, step in enumerate(recorded.steps, start=1):
        disk.follow(step)
        made = Counter(sample_id for when, sample_id in called if when <= number)
        found |= dict.fromkeys(disk.images(), made)
    yield from found.items()


def answer(folder: Path, sample_id: str) -> tuple[str, int]:
    """What a request is answered, and how many calls that made."""
    provider = Scripted(always("tie"))
    asked = SampleRequest(sample_id, "model-1", "family-1", 220, MANIFEST)
    try:
        take_sample(open_out(folder), asked, Sampling(Reviewer.real(provider), manifest))
    except CalibrationError as error:
        return error.code.value, len(provider.calls)
    return "allowed", len(provider.calls)


def test_a_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """R42 R9 E53: an id whose call was started is never called again, and a resumed one is called once."""

    def run(recorded: RecordingFs, called: list[tuple[int, str]]) -> None:
        provider = Scripted(always("tie"), during=lambda _self: called.append((len(recorded.steps), "s-1")))
        asked = SampleRequest("s-1", "model-1", "family-1", 220, MANIFEST)
        take_sample(open_out(tmp_path, recorded), asked, Sampling(Reviewer.real(provider), manifest))

    answers: Counter[str] = Counter()
    for image, called in images_of(tmp_path, run):
        restore(image, tmp_path / "out")
        told, calls = answer(tmp_path, "s-1")
        assert called["s-1"] + calls <= 1, sorted(name for name, _ in image)
        assert (calls == 1) is (told == "allowed")
        assert told in {"allowed", "sample_already_exists", "artifact_root_quarantined"}
        if told != "artifact_root_quarantined":
            assert answer(tmp_path, "s-1") == ("sample_already_exists", 0)
            assert answer(tmp_path, "s-2") == ("allowed", 1)
        answers[told] += 1
    with capsys.disabled():
        sys.stdout.write(f"\nsample: {answers.total()} images after a power loss {dict(answers)}\n")
    assert answers.total() > 60
    assert answers.keys() == {"allowed", "sample_already_exists", "artifact_root_quarantined"}


def test_an_examination(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """R42 R28 E53: a resume completes it with the same evidence, and no attempt is called twice."""

    def run(recorded: RecordingFs, called: list[tuple[int, str]]) -> None:
        reviewer = simulated(before=lambda sample_id: called.append((len(recorded.steps), sample_id)))
        run_examination(open_out(tmp_path, recorded), reviewer)

    count = refused = 0
    evidence = set()
    for image, called in images_of(tmp_path, run):
        restore(image, tmp_path / "out")
        count += 1
        asked = Counter(called)
        try:
            run_examination(open_out(tmp_path), simulated(before=lambda each: asked.update([each])), resume=True)
        except ExaminationRefused as refusal:
            refused += 1
            raise AssertionError(f"{refusal.code}: {refusal.sentence} {sorted(name for name, _ in image)}") from refusal
        assert set(asked.values()) == {1}, asked
        out = open_out(tmp_path)
        load_pair(
            out,
            "reviewer-calibration.json",
            "reviewer-calibration-result.json",
            lambda first, second: load_calibration(first, second, inputs=INPUTS),
        )
        evidence.add(out.read("reviewer-calibration.json"))
        assert json.loads(out.read("reviewer-calibration-metrics.json"))["synthetic"] is True
    with capsys.disabled():
        sys.stdout.write(f"\nexamination: {count} images after a power loss\n")
    assert count > 200
    assert len(evidence) == 1
